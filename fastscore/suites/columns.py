"""Columns of output tables: how suites declare them, build them and find their nulls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import takewhile
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit import arrow
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.declarations import (
    NULL_REASONS_DTYPE,
    Column,
    Metric,
    Needed,
    NullReason,
    NullRule,
    OutputColumn,
    Vocabulary,
)
from fastscore.suites.grouping import factorize_rows

BATCH_ROWS = 1 << 17

Rows = pl.DataFrame | pl.LazyFrame


def list_column(values: pl.Series, offsets: Indices) -> pl.Series:
    """Make a List column of the values between offsets."""
    return pl.Series(arrow.list_column(arrow.arrow_array(values.rechunk()), offsets))


def gather_or_null(values: pl.Series, rows: Indices) -> pl.Series:
    """Gather rows, null where the row is negative."""
    missing = rows < 0
    if not missing.any():
        return values[rows]
    longer = values.clone().append(pl.Series([None], dtype=values.dtype))
    return longer[np.where(missing, len(values), rows)]


def put_at(rows: pl.Series | Indices, values: pl.Series, height: int) -> pl.Series:
    """Make a column of so many rows that has values in some of them, and is null in the others."""
    nothing = pl.Series(values.name, [None], dtype=values.dtype).new_from_index(0, height)
    return nothing.scatter(rows, values)


def last_rows(keys: Indices, rows: Indices, n_keys: int) -> Indices:
    """Return for each key the last of some rows that have it, -1 without one."""
    last = np.full(n_keys, -1)
    # numpy assigns in order: of several rows the last stays
    last[keys[rows]] = rows
    return last


def first_rows(keys: Indices, rows: Indices, n_keys: int) -> Indices:
    """Return for each key the first of some rows that have it, -1 without one."""
    return last_rows(keys, rows[::-1], n_keys)


def keep_where(keep: Mask, values: npt.NDArray[Any]) -> pl.Series:
    """Make a column of values that is null where they are not kept."""
    return pl.Series(values).set(pl.Series(~keep), None)


def filled(values: pl.Series, value: Any) -> pl.Series:
    """Put a value in the place of nulls, where there are any."""
    return values.fill_null(value) if values.null_count() else values


def unknown_words(values: pl.Series, vocabulary: Vocabulary) -> dict[str, int]:
    """Count the words in a column that its suite does not know."""
    if not vocabulary.known:
        return {}
    others = values.filter(~values.is_in(vocabulary.known))
    if others.is_empty():
        return {}
    counts = others.value_counts().iter_rows()
    return {word: count for word, count in counts if not vocabulary.includes(word)}


@dataclass(frozen=True, slots=True)
class NullReasons:
    """Which metrics are null in which rows, and why."""

    column: pl.Series  # `null_reasons`, `NULL_REASONS_DTYPE` (n,)
    _kind: Indices
    _nulls: Mapping[str, Mask]

    def is_null(self, metric: str) -> pl.Series:
        """Tell in which rows a metric has no value, bool (n,)."""
        return pl.Series(metric, self._nulls[metric][self._kind])

    def put_into(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Make the metrics of rows null where they have no value, and add the reasons."""
        values = (rows[metric].set(self.is_null(metric), None) for metric in self._nulls)
        return rows.with_columns(*values, self.column)


def find_nulls(
    rows: pl.DataFrame,
    metrics: Sequence[Metric],
    facts: Mapping[str, bool] = MappingProxyType({}),
    *,
    by_reason: Sequence[NullReason] = (),
) -> NullReasons:
    """Find the nulls of metrics and their reasons by the rules that they declare.

    Few kinds of rows exist: each distinct rule is evaluated once for all rows, and its meaning
    for each metric is found once for each kind.
    """
    everywhere, others = _decide(metrics, facts)
    named = {f":{number}": rule for number, rule in enumerate(others)}
    flags = rows.with_columns(
        rule.when.fill_null(False).alias(name) for name, rule in named.items()
    )
    held = {id(rule): flags[name] for name, rule in named.items() if flags[name].any()}
    kind, firsts = np.zeros(rows.height, np.int64), np.zeros(min(rows.height, 1), np.int64)
    if held:
        kind, firsts = factorize_rows([flag.to_numpy().astype(np.int64) for flag in held.values()])
    reasons: list[dict[str, NullReason]] = [{} for _ in firsts]
    nulls = {metric.id: np.zeros(len(firsts), np.bool_) for metric in metrics}
    of_kinds = [(rule, flag[firsts].to_list()) for rule, flag in held.items()]
    for number in range(len(firsts)):
        holding = everywhere | {rule for rule, holds in of_kinds if holds[number]}
        for metric in metrics:
            rule = next((rule for rule in metric.null_rules if id(rule) in holding), None)
            nulls[metric.id][number] = rule is not None
            if rule is not None and rule.reason is not None:
                reasons[number][metric.id] = rule.reason
    if by_reason:
        order = {reason: place for place, reason in enumerate(by_reason)}
        reasons = [dict(sorted(of.items(), key=lambda item: order[item[1]])) for of in reasons]
    listed = _listed(tuple(tuple(of.items()) for of in reasons))
    return NullReasons(listed[kind], kind, nulls)


def switched_off(metrics: Sequence[Metric], facts: Mapping[str, bool]) -> dict[str, NullReason]:
    """Return the metrics that facts make null in every row, with the reasons."""
    everywhere, _ = _decide(metrics, facts)
    first = ((metric.id, metric.null_rules[:1]) for metric in metrics)
    return {
        metric: rule.reason
        for metric, rules in first
        for rule in rules
        if id(rule) in everywhere and rule.reason is not None
    }


def _decide(
    metrics: Sequence[Metric], facts: Mapping[str, bool]
) -> tuple[set[int], list[NullRule]]:
    """Return the ids of the rules that hold in all rows by facts, and the rules of rows."""
    rules = {id(rule): rule for metric in metrics for rule in metric.null_rules}
    decided = {
        str(number): rule.when
        for number, rule in rules.items()
        if facts.keys() >= set(rule.when.meta.root_names())
    }
    everywhere: set[int] = set()
    if decided:
        held = pl.DataFrame([facts] if facts else []).select(
            when.alias(name) for name, when in decided.items()
        )
        everywhere = {int(name) for name, holds in held.row(0, named=True).items() if holds}
    # a rule after one that holds in all rows is never a metric's first
    reached = {
        id(rule)
        for metric in metrics
        for rule in takewhile(lambda rule: id(rule) not in everywhere, metric.null_rules)
    }
    others = reached - {int(number) for number in decided}
    return everywhere, [rule for number, rule in rules.items() if number in others]


@lru_cache(maxsize=256)
def _listed(kinds: tuple[tuple[tuple[str, NullReason], ...], ...]) -> pl.Series:
    """Make a row of each kind; shard after shard has the same ones."""
    listed = [
        [{"metric": metric, "reason": reason} for metric, reason in reasons] for reasons in kinds
    ]
    # polars repeats the row of a column that has only one much slower than it gathers rows
    return pl.Series("null_reasons", [*listed, []], dtype=NULL_REASONS_DTYPE)


def replace_lone_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which no column can contain."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def hold_if_small(rows: pl.LazyFrame) -> Rows:
    """Read a table of no more than a batch once, for all that is asked of it."""
    first = rows.head(BATCH_ROWS + 1).collect(engine="streaming")
    return first.rechunk() if first.height <= BATCH_ROWS else rows


def collected(rows: Rows) -> pl.DataFrame:
    """Return all rows of a result that is small compared with its table."""
    return rows.lazy().collect(engine="streaming")


TEXT = pl.String()
TEXTS = pl.List(pl.String())
WHOLE = pl.Int64()
REAL = pl.Float64()
BOOLEAN = pl.Boolean()


def column(
    name: str,
    dtype: pl.DataType,
    description: str,
    *,
    metric: str | None = None,
    nullable: bool = False,
) -> OutputColumn:
    """Declare a column of an output table in a line."""
    return OutputColumn(name, dtype, description, metric=metric, nullable=nullable)


optional = partial(column, nullable=True)
"""Declares a column that may contain nulls."""


def metric_column(metric: Metric, description: str = "", dtype: pl.DataType = REAL) -> OutputColumn:
    """Declare the column of a metric. Default of its description: the metric's name."""
    return column(
        metric.id,
        dtype,
        description or f"{metric.name}.",
        metric=metric.id,
        nullable=metric.can_be_null,
    )


def text_field(name: str, description: str, *aliases: str, **declared: Any) -> Column:
    """Declare a text column of a log that takes whole numbers too."""
    told: dict[str, Any] = {"accepts": ("integer",), "aliases": aliases, "description": description}
    return Column(name, "text", **{**told, **declared})


def json_field(name: str, description: str, *needed_by: str, **declared: Any) -> Column:
    """Declare a column of a log with values of any type."""
    needed = Needed(needed_by)
    return Column(name, "json", **{"description": description, "needed": needed, **declared})


DIALOGUE_COLUMN = column(
    "dialogue",
    TEXT,
    "Name of the dialogue, unique in its run: its id, its variants and, where needed, its place.",
)
NULL_REASONS_COLUMN = column(
    "null_reasons", NULL_REASONS_DTYPE, "Which metrics of the row are null, and why."
)
