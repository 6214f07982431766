"""Select the bundled sample of coffee orders from Taskmaster-4 dialogues.

Usage: python benchmarks/data/select_tm4_sample.py SOURCE.jsonl.gz OUTPUT.jsonl.gz [COUNT]
"""

import gzip
import sys
from pathlib import Path

import orjson


def main(source: str, output: str, count: str = "150") -> None:
    with gzip.open(source, "rb") as stream:
        lines = [line for line in stream if orjson.loads(line)["final_order"]]
    step = len(lines) // int(count)
    sample = b"".join(lines[::step][: int(count)])
    Path(output).write_bytes(gzip.compress(sample, compresslevel=9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
