"""Numbers of lines as columns, against Python's numbers."""

import json
import struct
from typing import Any

import numpy as np
from fastscore_readers.json.lines import scan_jsonl
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.logs.read.columns import convert, places
from fastscore.suites.declarations import REJECT_REASONS, Column

WHOLE = (
    st.integers()
    | st.integers(-(2**63) - 2, -(2**63) + 2)
    | st.integers(2**63 - 3, 2**63 + 2)
    | st.just("-0")
).map(str)
NUMBERS = (
    WHOLE
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False, places=4).map("{:f}".format)
    | st.tuples(st.integers(0, 10**19), st.integers(-400, 400)).map("{0[0]}e{0[1]}".format)
    | st.tuples(st.integers(), st.integers(0, 10**40)).map("{0[0]}.{0[1]}".format)
    | st.sampled_from(["0.0", "-0.0", "NaN", "-Infinity", "1E22", "9007199254740993", "1" * 400])
)
SPELLED = WHOLE | st.sampled_from(
    ["", "-", "x", "1x", "00012", "- 1", "1.0", "+1", " 7\t", "1_0", "\u0663", "0" * 30 + "7"]
)


def converted(values: list[str], column: Column) -> list[tuple[Any, int]]:
    """Convert what lines give one key."""
    data = "\n".join(f'{{"k": {value}}}' for value in values).encode()
    scan = scan_jsonl(np.frombuffer(data, np.uint8), (b"k",))
    found, faults = convert(places(scan, (b"k",), column), column)
    return [*zip(found, faults.tolist(), strict=True)]


@given(st.lists(NUMBERS, max_size=8))
@example(["0.5", "12.25", "-3", "1e3", "0.1", "1E-3", "7"])
def test_numbers_are_the_nearest_doubles(texts):
    found = converted(texts, Column(name="k", kind="number"))
    for text, (value, fault) in zip(texts, found, strict=True):
        is_huge = text.removeprefix("-").isdigit() and abs(float(text)) == float("inf")
        assert fault == (1 + REJECT_REASONS.index("out_of_range") if is_huge else 0)
        if not is_huge:
            assert struct.pack("d", value) == struct.pack("d", float(text))


@given(st.lists(WHOLE | SPELLED.map(json.dumps), max_size=8))
def test_whole_numbers_are_those_of_python(texts):
    found = converted(texts, Column(name="k", kind="integer", accepts=("string",)))
    for text, (value, fault) in zip(texts, found, strict=True):
        try:
            expected = int(json.loads(text))
        except ValueError:
            assert (value, REJECT_REASONS[fault - 1]) == (None, "wrong_type")
            continue
        if -(2**63) <= expected < 2**63:
            assert (value, fault) == (expected, 0)
        else:
            assert (value, REJECT_REASONS[fault - 1]) == (None, "out_of_range")
