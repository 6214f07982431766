"""Values of CSV cells, by hand; `test_csv.py` has any cells beside plain Python."""

import numpy as np
import pytest
from fastscore_readers.json.tokens import ABSENT, ESCAPED, FALSE, FLOAT, INTEGER, STRING, TRUE

from fastscore.logs.read.places import parse_spellings


@pytest.mark.parametrize(
    ("cell", "tag", "text"),
    [
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
        ("01.5", STRING, "01.5"),
        ("tru\u1d49", STRING, "tru\u1d49"),
        ("fal\u017fe", STRING, "fal\u017fe"),
        ("12\n", STRING, "12\n"),
        ("\u0661", STRING, "\u0661"),
    ],
)
def test_what_a_cell_spells(cell: str, tag: int, text: str) -> None:
    data = f"#{cell}#".encode()
    ends = np.array([len(data) - 1])
    tags, starts, ends = parse_spellings(
        np.frombuffer(data, np.uint8), np.array([STRING], np.uint8), np.array([1]), ends
    )
    assert tags.tolist() == [tag]
    assert data[starts[0] : ends[0]].decode() == text


def test_only_cells_without_quotes_inside_spell_something() -> None:
    data = np.frombuffer(b"1,2,3", np.uint8)
    tags, at = np.array([STRING, ESCAPED, ABSENT], np.uint8), np.array([0, 2, 4])
    found, starts, ends = parse_spellings(data, tags, at, at + 1)
    assert found.tolist() == [INTEGER, ESCAPED, ABSENT]
    assert (starts.tolist(), ends.tolist()) == ([0, 2, 4], [1, 3, 5])
    assert tags.tolist() == [STRING, ESCAPED, ABSENT]
