"""Suites of users: a decorated function over the rows of logs, and the columns that it reads."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import make_dataclass
from functools import partial
from typing import Any, TypedDict

import polars as pl

from fastscore.errors import UsageError
from fastscore.suites.base import Events, SignedFunction, Suite
from fastscore.suites.declarations import (
    ALL_METRICS,
    NULL_REASONS_DTYPE,
    Column,
    ColumnKind,
    Design,
    Needed,
    OutputColumn,
    Source,
    Table,
    empty_rejects,
)
from fastscore.suites.grouping import factorize, first_of_each
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.own_metrics import (
    DIALOGUES,
    ROW,
    Better,
    Function,
    declared_metric,
    output_column,
    result_of_call,
    source_hash,
    with_values,
)
from fastscore.suites.registry import declare

_KINDS: dict[type, ColumnKind] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "json",
    dict: "json",
}
_FIRST = (
    OutputColumn(name="file", dtype=pl.String(), description="The log."),
    OutputColumn(name="line", dtype=pl.Int64(), description="The first line."),
    OutputColumn(name="dialogue", dtype=pl.String(), description="The dialogue's id."),
)
_REASONS = OutputColumn(
    name="null_reasons", dtype=NULL_REASONS_DTYPE, description="Why metrics are null."
)


class _Required(TypedDict):
    range: tuple[float | None, float | None]
    better: Better


class MetricFacts(_Required, total=False):
    """How a metric of `fastscore.suite` is declared. `fastscore.metric` describes the fields."""

    name: str
    unit: str
    null_rule: str
    formula: str


def suite(
    *,
    columns: Mapping[str, type | Column],
    metrics: Mapping[str, MetricFacts],
    dialogue: str | Sequence[str] = "dialogue",
    repeat: str = "",
    version: int = 1,
    options: type[Any] | None = None,
) -> Callable[[Function], Suite]:
    """Make a suite from a function.

    The function takes ``rows``, a LazyFrame with ``file``, ``line``, the columns and
    ``dialogue_row``, and, if it likes, ``options``. It returns one row for each ``dialogue_row``:
    this column, one for each metric and, if it likes, ``reason``.

    Parameters
    ----------
    columns
        The other columns of a log by name: ``str``, ``int``, ``float``, ``bool``, or ``list`` or
        ``dict`` as JSON text, or a `Column`. A row without a value is rejected, unless a `Column`
        allows it.
    metrics
        The metrics by name.
    dialogue
        The column with the dialogue's id. Rows without an id belong to the dialogue of their file.
        Or several columns that name a dialogue together, such as task and trial. They are columns
        of the table ``dialogues`` too, so that `compare` takes them.
    repeat
        The one of those columns that tells repeats of a task apart: the others name the task, which
        is the pair of comparisons and the unit of intervals.
    version
        Rises whenever a number may change. The signature also has a hash of the source.
    options
        A frozen dataclass of `fastscore.options.option` fields.

    Raises
    ------
    UsageError
        The function has no docstring, no source or other parameters, or a column has another type.

    Examples
    --------
    >>> @fastscore.suite(
    ...     columns={"text": str},
    ...     metrics={"mean_length": {"range": (0, None), "better": "neither"}},
    ... )
    ... def text_length(rows: pl.LazyFrame) -> pl.LazyFrame:
    ...     '''Length of texts.'''
    ...     length = pl.col("text").str.len_chars().mean()
    ...     return rows.group_by("dialogue_row").agg(mean_length=length)
    >>> turns = [{"dialogue": "a", "text": "one"}, {"dialogue": "a", "text": "three"}]
    >>> fastscore.score(turns, text_length).tables["dialogues"]["mean_length"].item()
    4.0
    """

    def declare_function(function: Function) -> Suite:
        name, text = function.__name__, inspect.getdoc(function)
        taken = list(inspect.signature(function).parameters)
        if not text:
            raise UsageError(f"{name!r} has no docstring.", "Describe what it computes.")
        if taken not in (["rows"], ["rows", "options"]):
            raise UsageError(f"{name!r} takes {', '.join(taken)}; expected rows or rows, options.")
        declared = tuple(declared_metric(function, id, **facts) for id, facts in metrics.items())
        key = (dialogue,) if isinstance(dialogue, str) else tuple(dialogue)
        if repeat and (repeat not in key or len(key) < 2):
            raise UsageError(
                f"Suite {name!r}: repeat {repeat!r} is not one of several columns that name a "
                f"dialogue: {', '.join(key)}."
            )
        read = [
            _column(name, column, kind, required=column not in key or len(key) > 1)
            for column, kind in {**dict.fromkeys(key, str), **columns}.items()
        ]
        labels = [_label(name, column) for column in read if column.name in key and len(key) > 1]
        table = Table(
            name=DIALOGUES,
            grain="a dialogue",
            columns=(*_FIRST, *labels, *map(output_column, declared), _REASONS),
        )
        source = Source(
            columns=tuple(read),
            dialogue_key=key,
            variants=tuple((column, column) for column in key[1:]),
        )
        made = Suite(
            name=name,
            package=function.__module__,
            title=text.splitlines()[0].rstrip("."),
            version=version,
            options=options or make_dataclass(name, [], namespace={"suite": name}, frozen=True),
            source=source,
            tables=(table,),
            metrics=declared,
            design=Design(pair=key).repeated_by(repeat) if repeat else Design(),
            read=partial(_read, source),
            score=SignedFunction(
                partial(_score, function, table, declared, labels, "options" in taken),
                (f"{name}:{source_hash(function)}",),
            ),
        )
        declare(made)
        return made

    return declare_function


def _column(suite_name: str, name: str, kind: "type | Column", *, required: bool) -> Column:
    if isinstance(kind, Column):
        return kind
    if kind not in _KINDS:
        raise UsageError(
            f"Suite {suite_name!r}: column {name!r} is {kind!r}, expected one of "
            f"{', '.join(known.__name__ for known in _KINDS)} or a Column."
        )
    needed = ALL_METRICS if required else ()
    return Column(
        name=name,
        kind=_KINDS[kind],
        otherwise="required" if required else "reject",
        needed=Needed(needed),
    )


_LABELS: dict[ColumnKind, pl.DataType] = {"text": pl.String(), "integer": pl.Int64()}


def _label(suite_name: str, column: Column) -> OutputColumn:
    """Return a column that names dialogues beside others, as table ``dialogues`` has it."""
    if column.kind not in _LABELS:
        raise UsageError(
            f"Suite {suite_name!r}: column {column.name!r} is of kind {column.kind}, expected str "
            "or int in a column that names dialogues."
        )
    return OutputColumn(
        name=column.name,
        dtype=_LABELS[column.kind],
        description="One of the columns that name the dialogue.",
    )


def _read(source: Source, raw: pl.DataFrame, options: Any) -> Events:
    rows = identify(raw, source)
    number, _ = factorize(rows[IDENTITY])
    refuse_blank_ids(rows[first_of_each(number)], source.dialogue_key[0])
    numbered = rows.with_columns(pl.col(IDENTITY).alias("dialogue"), pl.Series(ROW, number))
    return Events({"rows": numbered.drop(IDENTITY)}, empty_rejects())


def _score(
    function: Function,
    table: Table,
    metrics: tuple[Any, ...],
    labels: Sequence[OutputColumn],
    takes_options: bool,
    events: Events,
    vectors: Any,
    options: Any,
) -> dict[str, pl.DataFrame]:
    rows = events.frames["rows"]
    named = (column.name for column in (*_FIRST, *labels))
    dialogues = rows.group_by(ROW, maintain_order=True).agg(pl.col(*named).first()).drop(ROW)
    given: dict[str, Any] = {"rows": rows.lazy()}
    if takes_options:
        given["options"] = options
    result = result_of_call(function.__name__, function, given)
    scored = dialogues.with_columns(null_reasons=pl.lit([], dtype=NULL_REASONS_DTYPE))
    return {DIALOGUES: with_values(scored, dialogues, result, metrics).select(*table.schema)}
