"""The short tables of an analysis' page, as HTML: numbers rounded for reading, null as a dash."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import polars as pl

from fastscore.suites.preference_shift.analysis.convergent import CONVERSATION, HEADLINES
from fastscore.suites.preference_shift.analysis.scored import ALL, SCORE_NAMES
from fastscore.suites.showing import Row

Shown = tuple[str, str | Callable[[Row], str]]
"""A column's heading, and the name of the table's column or what to write of a row."""

_DASH = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", _MINUS)


def _cell(value: Any) -> str:
    if value is None:
        return _DASH
    if isinstance(value, float):
        return _number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _interval(value: str, low: str, high: str) -> Callable[[Row], str]:
    def write(row: Row) -> str:
        if row[low] is None or row[high] is None:
            return _cell(row[value])
        return f"{_number(row[value])} [{_number(row[low])}, {_number(row[high])}]"

    return write


def _p(column: str) -> Callable[[Row], str]:
    """Write a p-value, or the reason why the row has none."""

    def write(row: Row) -> str:
        if row[column] is None and row.get("reason") and "holm" not in column:
            return str(row["reason"]).replace("_", " ")
        is_small = row[column] is not None and row[column] < 0.001
        return "< 0.001" if is_small else _cell(row[column])

    return write


def _group(row: Row) -> str:
    return "all" if row["group"] == ALL else str(row["value"])


def _score(row: Row) -> str:
    return SCORE_NAMES[row["score"]]


def _variant(row: Row) -> str:
    words = str(row["variant"]).split("_")
    return " ".join(word.upper() if word in SCORE_NAMES else word for word in words)


def _contrast(row: Row) -> str:
    return f"{row['first']} {_MINUS} {row['second']}"


_COMPONENTS: tuple[Shown, ...] = (
    ("group", _group),
    ("score", _score),
    ("n", "n"),
    ("units", "n_units"),
    ("null", "n_null"),
    ("mean [95 % CI]", _interval("mean", "low", "high")),
    ("sd", "sd"),
    ("median", "median"),
)
_DIFFERENCE: tuple[Shown, ...] = (
    ("difference [95 % CI]", _interval("difference", "difference_low", "difference_high")),
    ("Hedges\u2019 g [95 % CI]", _interval("effect_g", "effect_low", "effect_high")),
    ("p", _p("p")),
    ("p (Holm)", _p("holm_p")),
    ("detectable", "detectable"),
)
_ABLATIONS: tuple[Shown, ...] = (
    ("group", _group),
    ("variant", _variant),
    ("n", "n"),
    ("null", "n_null"),
    ("mean [95 % CI]", _interval("mean", "low", "high")),
    ("rank", "rank"),
    ("pairs", "n_pairs"),
    *_DIFFERENCE,
)
_CONSTRUCT: tuple[Shown, ...] = (
    ("score", _score),
    ("contrast", _contrast),
    ("n", "n"),
    ("units", "n_pair_units"),
    ("null", "n_null"),
    ("first", "mean_first"),
    ("second", "mean_second"),
    *_DIFFERENCE,
)
_TOP_CONCEPTS: tuple[Shown, ...] = (
    ("kind", "kind"),
    ("concept", "concept"),
    ("turns", "n_turns"),
    ("share of turns", "share_of_turns"),
    ("conversations", "n_conversations"),
)
_TOP_SHOWN = 10
_CONVERGENT: tuple[Shown, ...] = (
    ("score", _score),
    ("judge", "judge"),
    ("n", "n"),
    ("units", "n_units"),
    ("score null", "n_null_score"),
    ("judge null", "n_null_judge"),
    ("\u03c1 [95 % CI]", _interval("rho", "rho_low", "rho_high")),
    ("p", _p("rho_p")),
    ("p (Holm)", _p("rho_holm_p")),
    ("detectable", "detectable_rho"),
    ("\u03c4 [95 % CI]", _interval("tau", "tau_low", "tau_high")),
    ("p of \u03c4", _p("tau_p")),
)
_LEVELS: tuple[Shown, ...] = (
    ("level", "level"),
    ("score", _score),
    ("judge", "judge"),
    ("n", "n"),
    ("\u03c1", "rho"),
    ("p", _p("rho_p")),
    ("\u03c4", "tau"),
    ("p of \u03c4", _p("tau_p")),
)


def components_table(table: pl.DataFrame) -> str:
    """Write the scores by group."""
    return _html("Scores by group", _COMPONENTS, table, words=2)


def ablations_table(table: pl.DataFrame) -> str:
    """Write the variants of TAS and CAS."""
    return _html("Variants of TAS and CAS" + _family(table), _ABLATIONS, table, words=2)


def sweep_table(table: pl.DataFrame) -> str:
    """Write the recovery rate, a column a window."""
    rates = table.filter(pl.col("test") == "run")
    windows = rates["window"].unique().sort()
    most = pl.col("n_shifts").max().over("group", "value")
    wide = rates.with_columns(most).pivot(
        "window", index=["group", "value", "n_shifts"], values="rate"
    )
    shown: list[Shown] = [("group", _group), ("shifts at most", "n_shifts")]
    shown += [(f"W = {window}", f"{window}") for window in windows]
    return _html("Recovery rate by window", shown, wide, words=1)


def construct_table(table: pl.DataFrame) -> str:
    """Write the contrasts over all conversations."""
    rows = table.filter(pl.col("group") == ALL)
    caption = "Paired contrasts over all conversations" + _family(rows)
    return _html(caption, _CONSTRUCT, rows, words=2)


def top_concepts_table(table: pl.DataFrame) -> str:
    """Write the most frequent concepts of each kind over all conversations and fields."""
    rows = (
        table.filter(pl.col("group") == ALL)
        .sort(pl.col("kind") == "hallucinated", -pl.col("n_turns"), "concept")
        .filter(pl.int_range(pl.len()).over("kind") < _TOP_SHOWN)
    )
    return _html("Concepts that differ most often", _TOP_CONCEPTS, rows, words=2)


def convergent_table(table: pl.DataFrame) -> str:
    """Write the correlations over all conversations; nothing without a judge."""
    rows = table.filter(pl.col("group") == ALL)
    if rows.is_empty():
        return ""
    within = rows.filter(pl.col("level") == CONVERSATION).sort(
        "is_headline", descending=True, maintain_order=True
    )
    others = rows.filter(pl.col("level") != CONVERSATION, pl.col("score").is_in(HEADLINES))
    found = _html(
        "Rank correlations of conversations within models" + _family(within),
        _CONVERGENT,
        within,
        words=2,
    )
    if others.height:
        caption = "Rank correlations of the models\u2019 means, and of all conversations pooled"
        found += _html(caption, _LEVELS, others, words=3)
    return found


def _family(rows: pl.DataFrame) -> str:
    """Return how many tests Holm's procedure corrected."""
    size = rows["family"].drop_nulls()
    return f"; Holm over a family of {size[0]}" if size.len() else ""


def _html(caption: str, shown: Sequence[Shown], table: pl.DataFrame, *, words: int) -> str:
    """Write a table whose first columns are words, the others numbers."""
    kinds = [' class="text"' if place < words else "" for place in range(len(shown))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(heading)}</th>'
        for kind, (heading, _) in zip(kinds, shown, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cells(kinds, shown, row))}</tr>" for row in table.iter_rows(named=True)
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(kinds: Sequence[str], shown: Sequence[Shown], row: Row) -> list[str]:
    texts = [_cell(row[what]) if isinstance(what, str) else what(row) for _, what in shown]
    return [f"<td{kind}>{escape(text)}</td>" for kind, text in zip(kinds, texts, strict=True)]
