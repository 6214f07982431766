"""Columns stored with types: the usable ones, and the conversion of each value."""

from datetime import date
from typing import Any

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.read.stored_columns import check_stored, convert_stored, json_text
from fastscore.suites.declarations import Column, Mapped, MappedColumn


def converted(column: Column, values: pl.Series) -> tuple[list[Any], list[str]]:
    """Return the values of the good rows, and line, reason and found value of the others."""
    frame = pl.DataFrame({column.name: values})
    stored = check_stored("frame", frame.schema, [column], "Convert it.")
    rows, rejects = convert_stored(stored, frame, first_line=11)
    told = [f"{reject.line} {reject.reason} {reject.found}" for reject in rejects]
    return rows[column.name].to_list(), told


def test_integers_out_of_range_are_rejects_unless_null_is_as_good() -> None:
    values = pl.Series([2**63 - 1, 2**63], dtype=pl.UInt64)
    assert converted(Column(name="a", kind="integer"), values) == (
        [2**63 - 1],
        [f"12 out_of_range int {2**63}"],
    )
    lenient = Column(name="a", kind="integer", otherwise="null")
    assert converted(lenient, values) == ([2**63 - 1, None], [])


def test_words_are_replaced_as_a_map_says() -> None:
    column = MappedColumn(name="a", kind="text", mapped=Mapped(words=(("human", "user"),)))
    assert converted(column, pl.Series(["human", "Human", None]))[0] == ["user", "Human", None]


def test_the_first_name_with_a_value_counts_row_by_row() -> None:
    columns = [Column(name="a", kind="text", aliases=("b", "c"), otherwise="required")]
    frame = pl.DataFrame({"c": ["c", "c", None], "b": [None, "b", None], "other": [1, 2, 3]})
    stored = check_stored("frame", frame.schema, columns, "")
    assert set(stored.dtypes) == {"b", "c"}
    rows, (reject,) = convert_stored(stored, frame, first_line=1)
    assert rows.to_dict(as_series=False) == {"line": [1, 2], "a": ["c", "b"]}
    assert (reject.line, reject.field, reject.reason) == (3, "a", "missing_field")
    assert reject.found == "null"


def test_a_column_is_read_only_where_another_says_so() -> None:
    columns = [
        Column(name="kind", kind="text"),
        Column(name="step", kind="integer", otherwise="required", only_where=("kind", "guess")),
    ]
    frame = pl.DataFrame({"kind": ["guess", "end", None, "guess"], "step": [1.0, 0.5, 0.5, None]})
    rows, rejects = convert_stored(check_stored("f", frame.schema, columns, ""), frame, 1)
    assert rows["step"].to_list() == [1, None, None]
    assert [(each.line, each.reason) for each in rejects] == [(4, "missing_field")]


def test_of_several_faulty_columns_the_first_declared_is_told() -> None:
    columns = [Column(name=name, kind="integer") for name in "ab"]
    frame = pl.DataFrame({"b": [0.5], "a": [0.5]})
    _, (reject,) = convert_stored(check_stored("f", frame.schema, columns, ""), frame, 1)
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
def test_a_type_that_can_never_serve_is_refused(
    kind: Any, accepts: Any, dtype: pl.DataType, served: str
) -> None:
    column = Column(name="a", kind=kind, accepts=accepts)
    with pytest.raises(InputError, match=f"frame: the column 'a' .* expected {served}") as caught:
        check_stored("frame", {"a": dtype}, [column], "Convert it.")
    assert caught.value.hint == "Convert it."
    assert check_stored("frame", {"a": pl.Null()}, [column], "").dtypes == {"a": pl.Null()}


@pytest.mark.parametrize(
    ("kind", "accepts", "values"),
    [
        ("text", (), [5, 6]),
        ("text", (), [1.5, 0.0]),
        ("text", ("integer",), [True, False]),
        ("integer", (), ["5", "x"]),
        ("integer", ("string",), [True, False]),
        ("integer", (), [[1], [2]]),
        ("number", (), ["0.5", ""]),
        ("number", (), [True, False]),
        ("boolean", (), [1, 0]),
        ("boolean", (), ["true", "false"]),
    ],
)
def test_values_of_another_type_are_rejects(kind: Any, accepts: Any, values: list[Any]) -> None:
    column = Column(name="a", kind=kind, accepts=accepts)
    rows, rejects = converted(column, pl.Series([*values, None]))
    assert rows == [None]
    assert [each.split()[1] for each in rejects] == ["wrong_type"] * 2
    lenient = Column(name="a", kind=kind, accepts=accepts, otherwise="null")
    assert converted(lenient, pl.Series(values)) == ([None, None], [])


@pytest.mark.parametrize("kind", ["text", "integer", "boolean"])
def test_nan_is_a_value_that_is_missing(kind: Any) -> None:
    values = pl.Series([float("nan"), None], dtype=pl.Float64)
    assert converted(Column(name="a", kind=kind), values) == ([None, None], [])
    _, rejects = converted(Column(name="a", kind=kind, otherwise="required"), values)
    assert [each.split()[1] for each in rejects] == ["missing_field"] * 2


def test_a_required_column_must_stand_under_one_of_its_names() -> None:
    column = Column(name="a", kind="text", aliases=("b",), otherwise="required")
    with pytest.raises(InputError, match="there is no column 'a'; expected") as caught:
        check_stored("frame", {"x": pl.String(), "y": pl.Date()}, [column], "")
    assert caught.value.hint == "Columns: 'x', 'y'."
    assert check_stored("frame", {"b": pl.String()}, [column], "").dtypes == {"b": pl.String()}


def test_without_columns_rows_keep_their_number() -> None:
    stored = check_stored("frame", {"x": pl.Date()}, [], "")
    rows, rejects = convert_stored(stored, pl.DataFrame({"x": [date(2026, 1, 1)] * 3}), 5)
    assert rows.to_dict(as_series=False) == {"line": [5, 6, 7]}
    assert rejects == []


def test_values_are_written_as_json() -> None:
    frame = pl.DataFrame(
        {"a": [{"x": [1, None], "y": "é\n}"}, None], "b": [True, None], "c": ['"', "}"]}
    )
    written = frame.select(json_text(pl.col(name)).alias(name) for name in "abc")
    assert written.to_dict(as_series=False) == {
        "a": ['{"x":[1,null],"y":"é\\n}"}', None],
        "b": ["true", None],
        "c": ['"\\""', '"}"'],
    }
