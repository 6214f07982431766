"""Choose the bundled sample of MemFinRobot's traces: the shortest dialogue of each scenario.

Usage: python benchmarks/data/select_memfinrobot_sample.py TRACES.jsonl.gz
"""

import gzip
import json
import sys
from pathlib import Path

MOST = 4


def main() -> None:
    shortest: dict[str, str] = {}
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        for line in lines:
            scenario = json.loads(line)["scenario_type"]
            if len(line) < len(shortest.get(scenario, line + " ")):
                shortest[scenario] = line
    kept = sorted(shortest.values(), key=len)[:MOST]
    target = Path(__file__).parent / "memfinrobot_sample.jsonl.gz"
    target.write_bytes(gzip.compress("".join(kept).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
