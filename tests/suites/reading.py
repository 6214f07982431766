"""Lines and lexicons of tests, read from disk as a run reads them."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from fastscore import suites
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import Rows, read_shard
from fastscore.suites.declarations import Source


def read_lines(source: Source, lines: Iterable[str], name: str = "log.jsonl") -> Rows:
    """Write lines to a file of this name and read it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
        return read_shard(whole_file(str(path)), source)


def changed_lexicon(suite: str, folder: Path, old: str, new: str) -> str:
    """Write a suite's lexicon with one text changed; return its path."""
    text = lexicon_of(suite).read_text(encoding="utf-8")
    assert old in text
    path = folder / "words.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(path)


def lexicon_of(suite: str) -> Path:
    return Path(suites.__file__).parent / suite / "lexicon.toml"
