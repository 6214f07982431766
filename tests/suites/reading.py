"""Lines of tests, read from disk as a run reads them."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from fastscore.logs.file_ranges import whole_file
from fastscore.logs.read.rows import Rows, read_shard
from fastscore.suites.declarations import Source


def read_lines(source: Source, lines: Iterable[str], name: str = "log.jsonl") -> Rows:
    """Write lines to a file of this name and read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
        return read_shard(whole_file(str(path)), source)
