"""Seeded mutations of all formats, each read beside Python's own reader: `make fuzz`.

A finding is written to ``tests/corpus/readers``, where `tests/readers/test_corpus.py` tries it ever
after; the run goes on. Memory is checked where ``FASTSCORE_CHECKED=1`` is set.

Usage: python -m tests.fuzz_readers [--seconds 3600] [--seed 1]
"""

import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from fastscore_readers.fill import LineScan
from fastscore_readers.json import tokens
from fastscore_readers.json.lines import find_places, scan_jsonl

from fastscore.logs.read.columns import fills, places
from fastscore.suites.declarations import Column
from tests.oracles.jsonl import naive_scan
from tests.readers.test_csv import check as check_csv
from tests.readers.test_json_lines import check_against_json

CORPUS = Path(__file__).parent / "corpus" / "readers"
NAMES = ("uid", "miner")
KEYS = ("a", "event", "step_index", "é", "", "uid", "miner")
TEXTS = (
    *("a", "bc", " ", '"', "\\", "\n", "\t", "é", "中", "😀", "\x7f", "/", "{", "}", "[", "]"),
    *(":", ",", "x" * 50, "\\\\", "\u2028", "\x85", "uid"),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -0.0, 1, -17, 10**17, 10**25, 2**63, -(2**63), 1.5, 1e300, -2.5e-7),
    *(float("nan"), float("inf"), None, True, False),
)
PIECES = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b" ", b"\t", b"\n", b"\r", b"\x00", b"\x1f"),
    *(b"\x0c", b"\x80", b"\xc3", b"\xe4\xb8", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\x80"),
    *(b"\xf4\x90\x80\x80", b"\xc2\xa0", b"\xe3\x80\x80", b"\xef\xbb\xbf", b"0", b"-", b"1", b"."),
    *(b"e", b"+", b"NaN", b"Infinity", b"-Infinity", b"null", b"tru", b"\\u", b"\\ud83d"),
    *(b"\\ude00", b"\\u00e9", b"\\x", b'""', b",,", b"01", b"1.", b'"a":1', b"\\u0061", b"'"),
    *(b"()", b"b'", b"'''", b"None", b"#", b"1_0"),
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b" \n")


def value(rng: random.Random, depth: int = 0) -> Any:
    """Make any JSON value."""
    kind = rng.randrange(10 if depth < 4 else 7)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind < 7:
        return "".join(rng.choices(TEXTS, k=rng.randrange(12)))
    if kind < 8:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return members(rng, depth)


def members(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Make an object of wanted and other keys."""
    names = rng.choices((*KEYS, "other", 'q"q'), k=rng.randrange(7))
    return {name: value(rng, depth + 1) for name in names}


def mutated(rng: random.Random, text: bytes) -> bytes:
    """Change up to three places of a text."""
    made = bytearray(text)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        at = rng.randrange(len(made) + 1)
        match rng.randrange(6):
            case 0 if made:
                made[at % len(made)] ^= 1 << rng.randrange(8)
            case 1 if made:
                made[at % len(made)] = rng.randrange(256)
            case 2:
                del made[at:]
            case 3:
                del made[at : at + rng.randrange(1, 5)]
            case 4:
                made[at:at] = rng.choice(PIECES)
            case _:
                made[at : at + 1] = rng.choice(PIECES)
    return bytes(made)


def json_text(rng: random.Random, made: Any) -> bytes:
    """Write a value in one of the ways of writing."""
    separators = rng.choice(((",", ":"), (", ", ": "), (" ,\t", " : ")))
    text = json.dumps(made, ensure_ascii=rng.random() < 0.5, separators=separators)
    return text.encode("utf-8", "surrogatepass")


def json_lines(rng: random.Random) -> bytes:
    """Make a few lines, mostly of objects."""
    parts = []
    for _ in range(rng.randrange(1, 12)):
        made = members(rng) if rng.random() < 0.9 else value(rng)
        parts += [mutated(rng, json_text(rng, made)), rng.choice(ENDS)]
    return b"".join(parts[: -1 if rng.random() < 0.5 else None])


def records(rng: random.Random) -> bytes:
    """Make a few records of CSV, and how wide they are to be."""
    rows = []
    for _ in range(rng.randrange(1, 8)):
        cells = ["".join(rng.choices(TEXTS, k=rng.randrange(5))) for _ in range(3)]
        quoted = (
            f'"{cell.replace(chr(34), chr(34) * 2)}"' if rng.random() < 0.5 else cell
            for cell in cells
        )
        rows += [",".join(quoted).encode(), rng.choice(ENDS)]
    return mutated(rng, b"".join(rows))


def check_places(data: bytes) -> None:
    """Compare the texts of lines with Python's json."""
    texts = data.splitlines(keepends=True)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - [len(text) for text in texts]
    shape: Any = {"a": [{"a": None, "uid": None}], "event": None, "uid": {"a": [None]}}
    root, faulty = find_places(np.frombuffer(data, np.uint8), starts, ends, shape)
    assert faulty.tolist() == [row for row, text in enumerate(texts) if not is_json(text)]
    for row, text in enumerate(texts):
        if row in faulty or not text.strip(b" \t\r\n"):
            assert root.tags[row] == 0
            continue
        found = json.loads(text.decode())
        event = root.members["event"]
        held = isinstance(found, dict) and "event" in found
        assert (event.tags[row] != 0) == held
        if held and not isinstance(found["event"], str):
            raw = data[event.start[row] : event.end[row]].decode()
            assert repr(json.loads(raw)) == repr(found["event"])
        array = found.get("a") if isinstance(found, dict) else None
        elements = root.members["a"].elements
        assert elements is not None
        count = int((elements.owner == row).sum())
        assert count == (len(array) if isinstance(array, list) else 0)


def is_json(text: bytes) -> bool:
    """Whether a text is one JSON value, or blank."""
    if not text.strip(b" \t\r\n"):
        return True
    try:
        json.loads(text.decode(), parse_int=len)
    except (ValueError, RecursionError):
        return False
    return True


def check_records(data: bytes) -> None:
    """Compare records of three cells with Python's csv."""
    check_csv(data, 3)


def named(data: bytes, keys: tuple[str, ...] = NAMES, *, filled: bool = True) -> LineScan:
    """Scan what lines name, as a plan does, or by places alone."""
    columns = [Column(name=key, kind="text") for key in keys]
    fill = fills(columns) if filled else None
    encoded = tuple(key.encode() for key in keys)
    return scan_jsonl(np.frombuffer(data, np.uint8), encoded, fill=fill)


def values_of(scan: LineScan, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the wanted values of all rows: those of filled columns, others from their places."""
    values: list[dict[str, Any]] = [{} for _ in scan.line]
    encoded = tuple(key.encode() for key in keys)
    for name in keys:
        found = places(scan, encoded, Column(name=name, kind="text"))
        filled = [None] * scan.line.size if found.values is None else found.values.to_list()
        for row, (tag, text) in enumerate(zip(found.tags.tolist(), filled, strict=True)):
            if tag == tokens.NULL:
                values[row][name] = None
            elif tag != tokens.ABSENT:
                values[row][name] = json.loads(found.raw(row)) if text is None else text
    return values


def check_lines(data: bytes, keys: tuple[str, ...] = NAMES) -> None:
    """Compare every line that is a valid object."""
    rows = [line for line in naive_scan(data) if line.status == "row"]
    expected = [{key: row.values[key] for key in keys if key in row.values} for row in rows]
    for filled in (False, True):
        scan = named(data, keys, filled=filled)
        assert scan.start.tolist() == [line.start for line in rows]
        assert scan.line.tolist() == [line.number for line in rows]
        assert values_of(scan, keys) == expected


CHECKS: dict[str, tuple[Callable[[random.Random], bytes], Callable[[bytes], object]]] = {
    "lines": (json_lines, check_against_json),
    "names": (json_lines, check_lines),
    "places": (json_lines, check_places),
    "csv": (records, check_records),
}


@click.command()
@click.option("--seconds", default=3600.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(seconds: float, seed: int) -> None:
    """Try mutations until the time is up; exit 1 if any was read otherwise."""
    rng = random.Random(seed)
    tried: Counter[str] = Counter()
    findings = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, (make, check) in CHECKS.items():
            case = make(rng)
            tried[name] += 1
            try:
                check(case)
            except Exception as error:
                findings += 1
                path = CORPUS / f"{name}-{hashlib.sha256(case).hexdigest()[:12]}"
                path.write_bytes(case)
                click.echo(f"{path}: {type(error).__name__}: {str(error)[:200]}")
    shown = ", ".join(f"{count:,} {name}" for name, count in sorted(tried.items()))
    click.echo(f"seed {seed}: {sum(tried.values()):,} cases ({shown}), {findings} findings")
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
