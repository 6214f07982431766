"""Keys of JSON lines, and where they change, against Python's json."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from fastscore_jit.arrays import Mask
from fastscore_readers.fill import LineScan
from fastscore_readers.json import tokens
from fastscore_readers.json.lines import scan_jsonl
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.logs.plan.index import changes
from fastscore.logs.read.columns import fills, places
from fastscore.suites.declarations import Column
from tests.oracles.jsonl import naive_scan

KEYS = ("uid", "miner")
ENDINGS = (
    '"uid":"a","miner":"m"}',
    '"uid": "a" , "miner" : "m"} ',
    '"uid":"b","miner":"m"}',
    '"uid":7,"miner":"m","rest":[1,{"uid":"z"}]}',
    '"miner":"m","x":{"miner":"n","uid":"c"},"uid":"a"}',
    '"uid":"a"}',
    '"u\\u0069d":"a","miner":"m"}',
    '"uid":"a","miner":"m"}}',
    '"uid":"\\"}","miner":null}',
)
BEGINNINGS = (
    "{",
    '{"text":"hello",',
    '{"text":"hello, you",\t',
    '{"uid":"z",',
    '{"miner":"z","uid":"z",',
    '{"nested":{"text":"x",',
    '{"list":[{"text":"x",',
    '{"list":["x",',
    '{"text":"open ,',
    '{"text":"open \\',
    '{"text":"open \\",',
    '{"text":"two","k',
    '{"number":-1.5e3,',
    '{"text":"\u00e9\u4e2d",',
    '{"text":"ends with uid","',
    "",
    "[1,",
    "x,",
)


def named(
    data: bytes, keys: tuple[str, ...] = KEYS, *, filled: bool = True
) -> tuple[LineScan, Mask]:
    """Scan what lines name, as a plan does, or by places alone; and where the names may change."""
    encoded = tuple(key.encode() for key in keys)
    columns = [Column(name=key, kind="text") for key in keys]
    fill = fills(columns) if filled else None
    scan = scan_jsonl(np.frombuffer(data, np.uint8), encoded, fill=fill)
    changed = np.zeros(scan.line.size, np.bool_)
    # planning asks only of blocks that have rows
    for column in columns if changed.size else ():
        changed |= changes(places(scan, encoded, column))
    return scan, changed


def values_of(scan: LineScan, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the wanted values of all rows from their places."""
    values: list[dict[str, Any]] = [{} for _ in scan.line]
    for key, name in enumerate(keys):
        starts, ends = scan.value_bytes(key)
        for row, tag in enumerate(scan.tags[key].tolist()):
            if tag != tokens.ABSENT:
                text = scan.data[starts[row] : ends[row]].tobytes().decode()
                quoted = tag in (tokens.STRING, tokens.ESCAPED)
                values[row][name] = json.loads(f'"{text}"' if quoted else text)
    return values


def check_lines(data: bytes, keys: tuple[str, ...] = KEYS) -> int:
    """Compare every line that is a valid object; count the runs of rows that name the same."""
    rows = [line for line in naive_scan(data) if line.status == "row"]
    expected = [{key: row.values[key] for key in keys if key in row.values} for row in rows]
    for filled in (False, True):
        scan, changed = named(data, keys, filled=filled)
        assert scan.start.tolist() == [line.start for line in rows]
        assert scan.line.tolist() == [line.number for line in rows]
        assert values_of(scan, keys) == expected
        for row in range(1, len(rows)):
            assert changed[row] or expected[row] == expected[row - 1]
    return int(changed.sum())


@pytest.mark.parametrize("ending", ENDINGS)
def test_all_pairs_of_lines_with_one_ending(ending: str) -> None:
    for beginning, other in product(BEGINNINGS, BEGINNINGS):
        check_lines(f"{other}{ending}\n{beginning}{ending}\n{other}{ending}".encode())


def test_lines_with_one_ending_are_one_run() -> None:
    lines = [f'{{"text":"{text}","uid":"a","miner":"m"}}' for text in ("x", "yy", "", "zzz" * 50)]
    lines += [line.replace('"a"', '"b"') for line in lines]
    assert check_lines("\n".join(lines).encode()) == 2


def test_runs_of_many_blocks() -> None:
    lines = [f'{{"uid":"{row // 3000}","text":"{"x" * (row % 90)}"}}' for row in range(20_000)]
    assert check_lines("\n".join(lines).encode()) >= 7


TEXTS = (
    *('"a"', '"ab"', '"b"', "null", None, '"\\u0061"', '"1"', '""'),
    *('"many letters, a"', '"many letters, b"', '"many letter\\u0073, a"'),
)


# a value that is no text leaves none of the column to be filled
@given(
    st.lists(st.sampled_from(TEXTS), max_size=40)
    | st.lists(st.sampled_from((*TEXTS, "1", "[1]")), max_size=40),
    st.booleans(),
)
@example(list(TEXTS), True)
def test_changes_are_where_a_value_is_written_otherwise(
    values: list[str | None], filled: bool
) -> None:
    lines = ["{}" if value is None else f'{{"k": {value}}}' for value in values]
    _, changed = named("\n".join(lines).encode(), ("k",), filled=filled)
    expected = [row == 0 or value != values[row - 1] for row, value in enumerate(values)]
    assert changed[1:].tolist() == expected[1:]
