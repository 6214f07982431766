"""Scores and summary as plain files: ``scores.csv``, ``summary.csv`` and ``summary.md``."""

from collections.abc import Callable, Mapping

import polars as pl

from fastscore.suites.declarations import NULL_REASONS
from fastscore.suites.group_travel.metrics import METRICS, SUMMARISED
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.summarise import BOTH, CONDITION, DELTA, summarise_dialogues
from fastscore.suites.group_travel.terms import CONDITIONS, CUSTOM, FLAGS
from fastscore.suites.showing import Row

_LABELS = ("dialogue", "file", "line", "condition", *FLAGS, "flag_source", "group_type")
_DECIMALS = 4
PUBLISHED_QUANTILE = 1.96
"""Half the width of the published 95 % intervals, in standard errors of independent dialogues."""
_SUMMARY_COLUMNS = (
    *("suite", "group", "value", "metric", "n", "n_null"),
    *(f"n_{reason}" for reason in NULL_REASONS),
    *("mean", "sd", "ci_low", "ci_high", "minimum", "maximum"),
    *("micro_numerator", "micro_denominator", "micro"),
)


def legacy_files(
    tables: Mapping[str, pl.LazyFrame], inputs: tuple[str, ...], options: GroupTravel
) -> dict[str, bytes]:
    """Return the files by name; none without the option.

    ``scores.csv`` has a row a dialogue, in the order of files, with every digit and an empty cell
    for null; ``summary.csv`` a row a condition and metric; ``summary.md`` the conditions side by
    side, rounded. Their intervals are the published ``mean ± 1.96 sd / sqrt(n)``.
    """
    if not options.legacy_files:
        return {}
    scores = (
        tables["dialogues"]
        .select(*_LABELS, *(metric.id for metric in METRICS))
        .sort("file", "line", maintain_order=True)
        .collect()
    )
    half_width = PUBLISHED_QUANTILE * pl.col("sd") / pl.col("n").sqrt()
    summary = (
        summarise_dialogues(tables, options)
        .with_columns(ci_low=pl.col("mean") - half_width, ci_high=pl.col("mean") + half_width)
        .select(_SUMMARY_COLUMNS)
    )
    return {
        "scores.csv": scores.write_csv().encode(),
        "summary.csv": summary.filter(pl.col("group") != DELTA).write_csv().encode(),
        "summary.md": _markdown(summary).encode(),
    }


def _markdown(summary: pl.DataFrame) -> str:
    by_condition = summary.filter(pl.col("group") == CONDITION)
    columns = [name for name in (*CONDITIONS, CUSTOM) if name in by_condition["value"]]
    deltas = summary.filter(pl.col("group") == DELTA)
    parts = [
        "# group_travel",
        "Lower is better for M4b and M13.",
        "## Macro: mean over dialogues (n; sd; 95 % interval)",
        _table(by_condition, columns, _macro),
        "## Micro: ratio of sums",
        _table(by_condition, columns, _micro),
        "## Differences of macro means",
        _table(deltas, deltas["value"].unique(maintain_order=True).to_list(), _delta),
    ]
    by_both = summary.filter(pl.col("group") == BOTH)
    if by_both.height:
        values = by_both["value"].unique().sort().to_list()
        parts += [
            "## Macro by group type and condition",
            _table(by_both, values, _macro),
        ]
    return "\n\n".join(parts) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DECIMALS}f}"


def _macro(row: Row) -> str:
    if not row["n"]:
        return ""
    spread = [f"n={row['n']}"]
    if row["sd"] is not None:
        spread += [_number(row["sd"]), f"{_number(row['ci_low'])} to {_number(row['ci_high'])}"]
    return f"{_number(row['mean'])} ({'; '.join(spread)})"


def _micro(row: Row) -> str:
    sums = f"{_number(row['micro_numerator'])} / {_number(row['micro_denominator'])}"
    return "" if row["micro"] is None else f"{_number(row['micro'])} = {sums}"


def _delta(row: Row) -> str:
    return _number(row["mean"])


def _table(rows: pl.DataFrame, columns: list[str], cell: Callable[[Row], str]) -> str:
    cells = {(row["metric"], row["value"]): cell(row) for row in rows.to_dicts()}
    lines = [f"| metric | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for metric in SUMMARISED:
        shown = (cells.get((metric.id, value), "") for value in columns)
        lines.append(f"| {metric.id} | {' | '.join(shown)} |")
    return "\n".join(lines)
