"""Choose the bundled sample of KdConv: the first dialogues of each domain.

Usage: python benchmarks/data/select_kdconv_sample.py SOURCE.jsonl.gz
"""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

EACH = 20


def main() -> None:
    taken: Counter[str] = Counter()
    kept = []
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        for line in lines:
            domain = json.loads(line)["domain"]
            taken[domain] += 1
            if taken[domain] <= EACH:
                kept.append(line)
    target = Path(__file__).parent / "kdconv_sample.jsonl.gz"
    target.write_bytes(gzip.compress("".join(kept).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
