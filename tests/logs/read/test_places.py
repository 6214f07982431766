"""Where values stand: what cells spell, where values change, numbers beside Python's."""

import json
import struct

import numpy as np
import pytest
from fastscore_readers.json.lines import scan_jsonl
from fastscore_readers.json.tokens import FALSE, FLOAT, INTEGER, NULL, STRING, TRUE
from hypothesis import given
from hypothesis import strategies as st

from fastscore.logs.read.columns import Converted, convert
from fastscore.logs.read.places import Places, changes, places, spelled_cells
from fastscore.suites.declarations import Column

CELLS = [
    ("12", INTEGER, "12"),
    (" -12\t", INTEGER, "-12"),
    ("+7", INTEGER, "7"),
    ("007", INTEGER, "007"),
    ("1.5", FLOAT, "1.5"),
    ("+1.5e3", FLOAT, "1.5e3"),
    ("-0.5E-3", FLOAT, "-0.5E-3"),
    ("NaN", FLOAT, "NaN"),
    ("-inf", FLOAT, "-inf"),
    ("Infinity", FLOAT, "Infinity"),
    ("True", TRUE, "True"),
    (" FALSE ", FALSE, "FALSE"),
    ("1_000", STRING, "1_000"),
    ("+-1", STRING, "+-1"),
    ("--1", STRING, "--1"),
    ("1.", STRING, "1."),
    (".5", STRING, ".5"),
    ("1e", STRING, "1e"),
    ("1 2", STRING, "1 2"),
    ("0x10", STRING, "0x10"),
    ("truely", STRING, "truely"),
    ("-", STRING, "-"),
    ("  ", STRING, "  "),
    ("", STRING, ""),
]


@pytest.mark.parametrize("cells", [*([cell] for cell in CELLS), CELLS])
def test_what_cells_spell(cells: list[tuple[str, int, str]]) -> None:
    data = ",".join(cell for cell, *_ in cells).encode()
    ends = np.cumsum([len(cell) + 1 for cell, *_ in cells]) - 1
    starts = ends - [len(cell) for cell, *_ in cells]
    tags = np.full(len(cells), STRING, np.uint8)
    found = spelled_cells(
        Places("csv", np.frombuffer(data, np.uint8), tags, starts, ends), "number"
    )
    for row, (cell, tag, text) in enumerate(cells):
        assert found.tags[row] == (tag if cell else NULL)
        assert data[found.starts[row] : found.ends[row]].decode() == text


@given(
    st.lists(
        st.sampled_from(["1", '"a"', '"ab"', '"b"', "null", None, '"\\u0061"', "[1]"]), max_size=40
    )
)
def test_changes_are_where_a_value_is_written_otherwise(values: list[str | None]) -> None:
    lines = ["{}" if value is None else f'{{"k": {value}}}' for value in values]
    scan = scan_jsonl(np.frombuffer("\n".join(lines).encode(), np.uint8), (b"k",))
    found = changes(places(scan, (b"k",), Column(name="k", kind="text")))
    assert found.tolist() == [
        row > 0 and value != values[row - 1] for row, value in enumerate(values)
    ]


def converted(texts: list[str], column: Column) -> Converted:
    """Convert values that are written so."""
    data = "\n".join(f'{{"k": {text}}}' for text in texts).encode()
    scan = scan_jsonl(np.frombuffer(data, np.uint8), (b"k",))
    assert scan.line.size == len(texts)
    return convert(places(scan, (b"k",), column), column)


@given(
    st.lists(
        st.integers()
        | st.integers(-(2**63) - 2, -(2**63) + 2)
        | st.integers(2**63 - 3, 2**63 + 2)
        | st.sampled_from(["-", "", "x", "1x", "00012", "- 1", "1.0", "+1", " 7", "0" * 30 + "7"])
        | st.sampled_from(["1e3", "7\n", "1_0", "٣", "0x1", "nan", "1" * 400]),
        max_size=8,
    )
)
def test_integers_are_those_of_python(items: list[int | str]) -> None:
    texts = [json.dumps(item) for item in items]
    found = converted(texts, Column(name="k", kind="integer", accepts=("string",)))
    for item, value, fault in zip(items, found.values.to_list(), found.faults, strict=True):
        try:
            expected = int(item)
        except ValueError:
            expected = None
        is_there = expected is not None and -(2**63) <= expected < 2**63
        assert (value if fault == 0 else None) == (expected if is_there else None)


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.decimals(allow_nan=False, allow_infinity=False, places=4).map("{:f}".format)
        | st.decimals(allow_nan=False, allow_infinity=False).map("{:e}".format)
        | st.integers(-(10**300), 10**300).map(str)
        | st.tuples(st.integers(0, 10**19), st.integers(-340, 340)).map("{0[0]}e{0[1]}".format)
        | st.sampled_from(["0.0", "-0.0", "-0", "NaN", "-Infinity", "1e22", "9007199254740993"])
        | st.sampled_from(["1e999", "4.9e-324", "2.4703282292062328e-324", "1E-3", "1e+3"]),
        max_size=8,
    )
)
def test_numbers_are_the_nearest_doubles(texts: list[str]) -> None:
    found = converted(texts, Column(name="k", kind="number"))
    for text, value in zip(texts, found.values.to_list(), strict=True):
        assert struct.pack("d", value) == struct.pack("d", float(text))
