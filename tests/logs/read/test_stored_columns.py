"""Columns stored with types: the usable ones, and the conversion of each value."""

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.read.columns import check_stored, convert_stored
from fastscore.suites.declarations import Column


def test_the_first_name_with_a_value_counts_row_by_row():
    columns = [Column(name="a", kind="text", aliases=("b", "c"), otherwise="required")]
    frame = pl.DataFrame({"c": ["c", "c", None], "b": [None, "b", None], "other": [1, 2, 3]})
    assert {*check_stored("frame", frame.schema, columns, "")} == {"b", "c"}
    rows, (reject,) = convert_stored("frame", frame, columns, first_line=1)
    assert rows.select("file", "line", "a").rows() == [("frame", 1, "c"), ("frame", 2, "b")]
    assert (reject.line, reject.field, reject.reason) == (3, "a", "missing_field")
    assert reject.found == "null"


def test_of_several_faulty_columns_the_first_declared_is_told():
    columns = [Column(name=name, kind="integer") for name in "ab"]
    frame = pl.DataFrame({"b": [0.5], "a": [0.5]})
    _, (reject,) = convert_stored("f", frame, columns, 1)
    assert reject.field == "a"


@pytest.mark.parametrize(
    ("kind", "accepts", "dtype", "served"),
    [
        ("text", ("integer",), pl.Date(), "String"),
        ("integer", ("string",), pl.Time(), "an integer type"),
        ("number", (), pl.Duration(), "a numeric type"),
        ("boolean", (), pl.Binary(), "Boolean"),
        ("json", (), pl.Date(), "String, List or Struct"),
        ("json", (), pl.List(pl.Struct({"x": pl.Binary()})), "String, List or Struct"),
    ],
)
def test_a_type_that_can_never_serve_is_refused(kind, accepts, dtype, served):
    column = Column(name="a", kind=kind, accepts=accepts)
    with pytest.raises(InputError, match=f"frame: the column 'a' .* expected {served}") as caught:
        check_stored("frame", {"a": dtype}, [column], "Convert it.")
    assert caught.value.hint == "Convert it."
    assert check_stored("frame", {"a": pl.Null()}, [column], "") == ["a"]


def test_a_required_column_must_stand_under_one_of_its_names():
    column = Column(name="a", kind="text", aliases=("b",), otherwise="required")
    with pytest.raises(InputError, match="there is no column 'a'; expected") as caught:
        check_stored("frame", {"x": pl.String(), "y": pl.Date()}, [column], "")
    assert caught.value.hint == "Columns: 'x', 'y'."
    assert check_stored("frame", {"b": pl.String()}, [column], "") == ["b"]
