"""Parse JSON Lines files with Python's json, line by line, and do nothing else.

Usage: python tests/oracles/parse_only.py FOLDER
"""

import json
import sys
from pathlib import Path


def main(folder: str) -> None:
    rows = 0
    for path in sorted(Path(folder).glob("*.jsonl")):
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                json.loads(line)
                rows += 1
    print(rows)


if __name__ == "__main__":
    main(sys.argv[1])
