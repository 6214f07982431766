"""What a comparison is, and how it is shown to a person or to a program: no number is made here."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from html import escape
from typing import Any

import polars as pl

from fastscore.errors import UsageError, counted, did_you_mean, listed
from fastscore.results.metric_text import (
    NONE,
    Record,
    decimals_for,
    interval_text,
    number_text,
    p_text,
    under_headings,
    write_data,
)
from fastscore.results.repeats import PASS_SCHEMA, REPEATS_SCHEMA, passes_grid, repeats_grid
from fastscore.results.summary_table import ARROWS, main_reason, name_columns
from fastscore.suites.declarations import NULL_REASONS, Metric
from fastscore.terminal import plain, result_console
from fastscore.terminal.grids import (
    Column,
    Format,
    Grid,
    column_of,
    html_tables,
    print_notes,
    show_grids,
)

NAMED = 4
MOST_NOTES = 12
MOST_DIFFERENCES = 100
STRONGEST = 20
"""A terminal or a notebook shows so many differences; if there are more, only the strongest."""
VERDICTS = ("better", "worse", "higher", "lower")
EFFECTS = {"paired": "g_z", "independent": "g"}

SIDES_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "side", "metric"), pl.String()),
    **dict.fromkeys(("n", "n_null", *(f"n_{reason}" for reason in NULL_REASONS)), pl.Int64()),
    **dict.fromkeys(("n_dialogues", "n_units"), pl.Int64()),
    **dict.fromkeys(("mean", "low", "high", "standard_error", "degrees_of_freedom"), pl.Float64()),
    "reason": pl.String(),
}
"""One row a group, side and metric, over all rows of the side: rows with and without a value, the
dialogues and units with a value, the mean over rows with its 95 % interval, and why it has none."""

DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "a", "b", "metric"), pl.String()),
    "design": pl.Enum(["paired", "independent"]),
    **dict.fromkeys(("pair", "unit"), pl.String()),
    **dict.fromkeys(("n_a", "n_b", "n_base", "n_units", "null_a", "null_b"), pl.Int64()),
    **dict.fromkeys(("parts_a", "parts_b", "partial_a", "partial_b"), pl.Int64()),
    **dict.fromkeys(("missing_a", "missing_b"), pl.Int64()),
    **dict.fromkeys(("mean_a", "mean_b", "difference", "low", "high"), pl.Float64()),
    **dict.fromkeys(("standard_error", "degrees_of_freedom"), pl.Float64()),
    **dict.fromkeys(("method", "test"), pl.String()),
    **dict.fromkeys(("p", "p_holm"), pl.Float64()),
    "family": pl.String(),
    "family_size": pl.Int64(),
    "alpha": pl.Float64(),
    "significant": pl.Boolean(),
    **dict.fromkeys(("verdict", "lacking"), pl.String()),
    "p_skewed": pl.Float64(),
    **dict.fromkeys(("higher", "lower"), pl.Int64()),
    **dict.fromkeys(("p_sign", "uneven", "margin", "p_no_worse", "p_equal"), pl.Float64()),
    **dict.fromkeys(("effect", "effect_low", "effect_high", "detectable", "plan"), pl.Float64()),
    **dict.fromkeys(("units_needed", "repeats_needed"), pl.Int64()),
    "reason": pl.String(),
}
"""One row a group, pair of sides and metric. `docs/compare.md` describes the columns."""

DROPS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("metric", "a", "b"), pl.String()),
    **dict.fromkeys(("n_a", "n_units", "null_b"), pl.Int64()),
    **dict.fromkeys(("mean_a", "mean_b", "drop", "low", "high", "limit", "p"), pl.Float64()),
    "p_holm": pl.Float64(),
    "outcome": pl.String(),
}
"""One row a metric with a limit: how much worse the second side is, with its interval, and the
one-sided p of a true drop of at most the limit, corrected over the limits."""

OMNIBUS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "metric"), pl.String()),
    **dict.fromkeys(("p", "p_holm"), pl.Float64()),
}
"""One row a metric: the p of "all sides have one mean", corrected over the metrics."""

PUBLISHED_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "a", "b", "metric"), pl.String()),
    **dict.fromkeys(("n_a", "n_b"), pl.Int64()),
    **dict.fromkeys(("mean_a", "normal_low_a", "normal_high_a", "mean_b"), pl.Float64()),
    **dict.fromkeys(("normal_low_b", "normal_high_b", "cohens_d", "student_t"), pl.Float64()),
    **dict.fromkeys(("student_p", "welch_t", "welch_p", "mann_whitney_u"), pl.Float64()),
    "mann_whitney_p": pl.Float64(),
}
"""The statistics of the public guest_simulation code and document, one row a group, pair of sides
and metric: independent samples of one value a dialogue. ``normal`` is the mean -/+ 1.96 standard
errors with variances over n, as is the pooled deviation of ``cohens_d``. Nothing is corrected."""

RANKING_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("group", "metric"), pl.String()),
    "place": pl.Int64(),
    "system": pl.String(),
    "mean_difference": pl.Float64(),
    "sample": pl.String(),
    **dict.fromkeys(("place_low", "place_high"), pl.Int64()),
    **dict.fromkeys(("apart_from_next", "is_best"), pl.Boolean()),
}
"""One row a group, metric and system, best first, by its mean difference from the others over the
``sample`` that is named. At least ``place_low - 1`` systems have a verdict of being better, and all
beyond ``place_high`` of being worse. ``apart_from_next``: there is a verdict on a system and the
next one; ``is_best``: there is none on the first system and it."""

SCHEMAS = {
    "sides": SIDES_SCHEMA,
    "differences": DIFFERENCES_SCHEMA,
    "ranking": RANKING_SCHEMA,
    "published": PUBLISHED_SCHEMA,
    "repeats": REPEATS_SCHEMA,
    "pass_k": PASS_SCHEMA,
    "drops": DROPS_SCHEMA,
    "omnibus": OMNIBUS_SCHEMA,
}
"""The tables of a comparison, in the order in which JSON has them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` returns.

    Parameters
    ----------
    suite
        The suite of the runs.
    sides
        One row for each group, side and metric: ``n``, ``n_null``, ``n_dialogues``, ``n_units``,
        ``mean``, ``low`` and ``high``.
    differences
        One row for each group, pair of sides and metric: ``a``, ``b``, ``mean_a``, ``mean_b``,
        ``difference`` (b - a), ``low``, ``high``, ``p``, ``p_holm``, ``significant``, ``verdict``,
        ``n_units``, ``effect`` and others. `docs/compare.md` describes all columns.
    ranking
        One row for each metric and system, best first: ``place``, ``system``, ``mean_difference``,
        ``apart_from_next``, ``is_best``. It has no rows for two systems.
    notes
        Other signatures, rows left out, too few units.
    unit
        What the units are: the columns whose values they have.
    alpha
        The level below which a corrected p-value is significant.
    metrics
        The metrics that are compared, with a judge's scores.
    published
        Statistics of the published guest_simulation code, with ``published_statistics=True``:
        ``cohens_d``, ``student_p``, ``welch_p``, ``mann_whitney_p``.
    repeats
        With a column of repeats: standard deviations between dialogues and between repeats.
    pass_k
        With a column of repeats: pass^k of metrics that are 0 or 1.
    drops
        How much worse a metric became, tested against a limit of `check`. `compare` has no limits,
        so it has no rows.
    omnibus
        A test of all sides at once, in reports alone: ``p`` and ``p_holm``.
    differing
        The parts of signatures that differ.

    Examples
    --------
    >>> found = fastscore.compare("run", by="miner_uid", metrics=["average_U_best_early"])
    >>> found.ranking.head(3)
    """

    suite: str
    sides: pl.DataFrame
    differences: pl.DataFrame
    ranking: pl.DataFrame
    notes: tuple[str, ...]
    unit: str
    alpha: float
    metrics: tuple[Metric, ...]
    published: pl.DataFrame
    repeats: pl.DataFrame
    pass_k: pl.DataFrame
    differing: tuple[str, ...]
    drops: pl.DataFrame
    omnibus: pl.DataFrame

    @property
    def metric_by_id(self) -> dict[str, Metric]:
        """What is compared, by id."""
        return {metric.id: metric for metric in self.metrics}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it without what explains metrics: that is in functions of the suite's modules."""
        bare = tuple(replace(metric, evidence=(), derivation="") for metric in self.metrics)
        kept = {each.name: getattr(self, each.name) for each in fields(self)} | {"metrics": bare}
        return type(self), tuple(kept.values())

    def __str__(self) -> str:
        """Return the headline: what differs and in which direction."""
        return headline(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show the headline and the differences, every text escaped, in a notebook."""
        shown, left_out = _strongest(self)
        text = headline(self) + (f" {left_out}. `differences` has all." if left_out else "")
        return f"<p>{escape(text)}</p>{html_tables(comparison_grids(shown)[:-1])}"


def show_comparison(
    comparison: Comparison, *, everything: bool = False, format: Format = "table"
) -> None:
    """Show how the sides differ, their means and what a reader must know beside that.

    Of many differences a terminal shows the strongest, unless everything is asked for.
    """
    content = {name: getattr(comparison, name) for name in ("suite", "notes", "unit", "alpha")}
    tables = {name: getattr(comparison, name) for name in SCHEMAS}
    always = ("sides", "differences")
    content |= {name: rows for name, rows in tables.items() if rows.height or name in always}
    if write_data({"differences": _named(comparison)} if format == "csv" else content, format):
        return
    if format == "table":
        shown, left_out = (comparison, "") if everything else _strongest(comparison)
        grids, notes = comparison_grids(shown), [*comparison.notes, *verdict_notes(shown)]
        if left_out:
            grids[-1:] = paper_grids(shown)  # a row a system: intervals side by side take blocks
            notes.insert(0, f"{left_out}. --all shows all, and --format csv writes them")
        show_grids(grids, format, plain(headline(comparison)))
        print_notes(result_console(), notes)
    else:
        show_grids(document_grids(comparison), format)


def document_grids(comparison: Comparison, metrics: Sequence[str] = ()) -> list[Grid]:
    """Lay out the tables of a document: the means of a paper, then those of `comparison_grids`.

    Metrics that are named are shown alone. They stay corrected over all that were compared.
    """
    for metric in metrics:
        if metric not in comparison.metric_by_id:
            known = did_you_mean(metric, comparison.metric_by_id)
            raise UsageError(f"The comparison has no metric {metric!r}.", known)
    if metrics:
        shown = pl.col("metric").is_in(metrics)
        tables = {name: getattr(comparison, name).filter(shown) for name in SCHEMAS}
        comparison = replace(comparison, **tables)
    return [*paper_grids(comparison), *comparison_grids(comparison)]


def comparison_grids(comparison: Comparison) -> list[Grid]:
    """Lay out a ranking of three systems or more, the differences, then the means of the sides."""
    declared = comparison.metric_by_id
    designs = _comparable(comparison).partition_by("design", maintain_order=True)
    grids = [_differences(design, comparison) for design in designs]
    if comparison.ranking.height:
        grids.insert(0, _ranking(comparison.ranking, declared))
    if comparison.repeats.height:
        names = _names(comparison.repeats.to_dicts(), declared)
        grids.append(repeats_grid(comparison.repeats, names))
    if comparison.pass_k.height:
        grids.insert(0, passes_grid(comparison.pass_k, comparison.unit))
    if comparison.published.height:
        grids.append(_published(comparison.published, declared))
    return [*grids, _sides(comparison)]


def paper_grids(comparison: Comparison) -> Iterator[Grid]:
    """Lay out the means of each group with a row a system and a column a metric, best in bold."""
    declared = comparison.metric_by_id
    sides = comparison.sides.filter(pl.col("n") > 0)
    for (group,), rows in sides.group_by("group", maintain_order=True):
        systems = rows["side"].unique(maintain_order=True).to_list()
        bold = _best(comparison, group)
        columns = [Column("system", tuple(systems), right=False)]
        for metric in rows["metric"].unique(maintain_order=True):
            records = {row["side"]: row for row in rows.filter(metric=metric).to_dicts()}
            decimals = decimals_for(row["mean"] for row in records.values())
            cells = tuple(_mean(records.get(system), min(decimals, 3)) for system in systems)
            marked = frozenset(
                place for place, system in enumerate(systems) if (metric, system) in bold
            )
            arrow = ARROWS[declared[metric].scale.better].strip()
            columns.append(Column(f"{metric} {arrow}".strip(), cells, bold=marked))
        title = f"means with 95 % confidence intervals (unit: {comparison.unit})"
        yield Grid(_within(group, title), tuple(columns))


def _headline_differences(comparison: Comparison) -> pl.DataFrame:
    """Return the differences of headline metrics, if any, and of two metrics of one test, one."""
    told = _comparable(comparison)
    copies = [metric.id for metric in comparison.metrics if metric.same_test_as]
    head = told.filter(pl.col("family") == "headline")
    head = head if head.height else told
    distinct = head.filter(pl.col("metric").is_in(copies).not_())
    return distinct if distinct.height else head


def _strongest(comparison: Comparison) -> tuple[Comparison, str]:
    """Leave out all but the strongest differences of many, and note how many are left."""
    n = _comparable(comparison).height
    if n <= MOST_DIFFERENCES:
        return comparison, ""
    is_undecided, weakness = pl.col("verdict") == "", -pl.col("effect").abs()
    found = _headline_differences(comparison)
    without = comparison.differences.filter(pl.col("difference").is_null())  # for their notes
    shown = found.sort(is_undecided, weakness, nulls_last=True, maintain_order=True)[:STRONGEST]

    def of_shown(rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        return rows.join(shown, on=columns, how="semi", nulls_equal=True, maintain_order="left")

    short = replace(
        comparison,
        differences=pl.concat([shown, without]),
        sides=of_shown(comparison.sides, "group", "metric"),
        ranking=of_shown(comparison.ranking, "group", "metric"),
        repeats=of_shown(comparison.repeats, "group", "metric"),
        pass_k=of_shown(comparison.pass_k, "group", "metric"),
        published=of_shown(comparison.published, "group", "a", "b", "metric"),
    )
    return short, f"{shown.height} of {n:,} differences are shown, the strongest"


def headline(comparison: Comparison) -> str:
    """Return one sentence on what differs and in which direction, by the headline metrics."""
    if _comparable(comparison).is_empty():
        return "Nothing is compared: no metric has a value on both sides."
    rows = _headline_differences(comparison).to_dicts()
    size = max((row["family_size"] or 0 for row in rows), default=0)
    designs = " and ".join(dict.fromkeys(map(design_text, rows)))
    how = f"{designs}; Holm-corrected p < {comparison.alpha:g} over {counted(size, 'tests')}"
    kind = "headline metric" if rows[0]["family"] == "headline" else "metric"
    pairs = {(row["group"], row["a"], row["b"]) for row in rows}
    if len(pairs) > 1:
        return _many(rows, f"{kind}s", how)
    row = rows[0]
    one_sided = _on_one_side(comparison, row["family"])
    if not any(one["difference"] for one in rows):
        both = " that both have" if one_sided else ""
        return f"{row['b']} equals {row['a']} in the mean of every {kind}{both}.{one_sided}"
    if all(one["p"] is None for one in rows):
        return f"{row['b']} against {row['a']}: no {kind} can be tested ({designs}).{one_sided}"
    decided = [one for one in rows if verdict_text(one) != NONE]
    # what all of them lack, such as dialogues of pairs, is named once
    is_common = len({one["lacking"] for one in decided}) == 1
    common = f"; {decided[0]['lacking']}" if is_common and decided[0]["lacking"] else ""
    parts = []
    for verdict in (*VERDICTS, "equal", "no worse"):
        found = [
            f"{one['metric']} {_signed(one['difference'])}{'' if is_common else beside(one)}"
            for one in decided
            if verdict_text(one) == verdict
        ]
        if found:
            more = ", ..." if len(found) > NAMED else ""
            of_margin = "" if verdict in VERDICTS else f" within {row['margin']:g}"
            names = f"{', '.join(found[:NAMED])}{more}"
            parts.append(f"{verdict}{of_margin} in {counted(len(found), 'metrics')}: {names}")
    if not parts:
        return f"{row['b']} and {row['a']} cannot be told apart in any {kind} ({how}).{one_sided}"
    untested = [one["metric"] for one in rows if one["p"] is None]
    undecided = len(rows) - len(decided) - len(untested)
    others = f"; undecided in {counted(undecided, 'metrics')}" if undecided else ""
    others += f"; no test of {listed(untested)}" if untested else ""
    what = f"{'; '.join(parts)}{common}{others}"
    return f"{row['b']} against {row['a']}: {what} ({how}).{one_sided}"


def _on_one_side(comparison: Comparison, family: str) -> str:
    """Name the metrics of a family that have a mean on one side alone."""
    has_values = comparison.sides.group_by("metric", "side").agg(pl.col("n").sum() > 0)
    is_one_sided = pl.col("n").any() & ~pl.col("n").all()
    found = has_values.group_by("metric").agg(is_one_sided.alias("is_one_sided"))
    one_sided = found.filter("is_one_sided")["metric"].to_list()
    of_family = comparison.differences.filter(family=family)["metric"].unique(maintain_order=True)
    names = [name for name in of_family if name in one_sided]
    return f" One side alone has a value of {listed(names)}." if names else ""


def _many(rows: Sequence[Record], kind: str, how: str) -> str:
    clear = [row for row in rows if row["verdict"]]
    n_tested = sum(row["p"] is not None for row in rows)
    n_untested = len(rows) - n_tested
    untested = f"; {n_untested:,} {'has' if n_untested == 1 else 'have'} no test"
    untested *= n_untested > 0
    if not n_tested and all(row["difference"] == 0.0 for row in rows):
        return f"All {len(rows):,} differences in {kind} are 0."
    if not n_tested:
        return f"None of {len(rows):,} differences in {kind} can be tested."
    tested = f"{counted(n_tested, 'tested differences')} in {kind}"
    if not clear:
        return f"None of {tested} is significant ({how}){untested}."
    largest = max(clear, key=lambda row: abs(row["effect"] or 0.0))
    return (
        f"{len(clear):,} of {tested} {'is' if len(clear) == 1 else 'are'} significant ({how}), "
        "the largest effect size in "
        f"{_within(largest['group'], largest['metric'])}, "
        f"{_signed(largest['difference'])} at {largest['b']} against {largest['a']}"
        f"{beside(largest)}{untested}."
    )


def design_text(row: Record) -> str:
    """Name the design of a difference: what a pair is, and the unit if it is another."""
    how = f"pairs by {row['pair']}" if row["pair"] else "independent samples"
    return how if row["unit"] == row["pair"] else f"{how}, unit {row['unit']}"


def verdict_text(row: Record) -> str:
    """Return the verdict, what the margin shows, or that the difference is undecided."""
    if row["verdict"] or row["margin"] is None:
        return str(row["verdict"] or NONE)
    if row["p_equal"] is not None and row["p_equal"] < row["alpha"]:
        return "equal"
    no_worse = row["p_no_worse"] is not None and row["p_no_worse"] < row["alpha"]
    return "no worse" if no_worse else NONE


def lacking_text(row: Record, a: str, b: str) -> str:
    """Return what one side lacks: values, parts of them, and dialogues of pairs."""
    only = " only" if row["pair"] else ""
    found = []
    for side, of in ((a, "a"), (b, "b")):
        nulls, parts, missing = (row[f"{what}_{of}"] for what in ("null", "parts", "missing"))
        found += [f"{nulls:,} null in {side}{only}"] if nulls else []
        found += [f"{counted(parts, 'parts')} missing in {side}"] if parts else []
        found += [f"{counted(missing, 'dialogues')} missing in {side}"] if missing else []
    return ", ".join(found)


def beside(row: Record) -> str:
    """Write in parentheses after a verdict what one side lacks."""
    return f" ({row['lacking']})" if row["lacking"] else ""


def remarks(row: Record) -> list[str]:
    """Return what a reader must know of a verdict, beside what one side lacks."""
    found = []
    value, verdict = row["difference"], row["verdict"]
    if value is not None and row["uneven"]:
        is_most = abs(row["uneven"]) > abs(value - row["uneven"])
        withheld = ", so there is no verdict" if is_most and row["significant"] else ""
        found.append(
            f"{_signed(row['uneven'])} of {_signed(value)} comes from unequal numbers of rows"
            f"{withheld}"
        )
    low, high, p = row["low"], row["high"], row["p_holm"]
    if low is not None and low <= 0 <= high and p is not None and p < row["alpha"]:
        found.append(
            f"the interval includes 0, so there is no verdict ({row['test']}: p = {p_text(p)})"
        )
    if not verdict:
        return found
    skewed = row["p_skewed"]
    if skewed is not None and skewed * row["family_size"] >= row["alpha"]:
        found.append(
            f"not significant if rare large values are missing by chance (skewed: p = "
            f"{p_text(skewed)})"
        )
    higher, lower = row["higher"], row["lower"]
    if higher is not None and (higher - lower) * value < 0:
        found.append(f"{higher:,} of {higher + lower:,} units are higher, {lower:,} lower")
    return found


def _signed(value: float) -> str:
    decimals = decimals_for([value])
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"  # no zero is negative


def _within(group: object, text: str) -> str:
    """Write before a text to which group it belongs."""
    return text if group is None else f"{group}: {text}"


def _named(comparison: Comparison) -> pl.DataFrame:
    """Put each metric's name and direction beside its id."""
    metric, first = pl.col("metric"), ("group", "a", "b", "metric")
    names = metric.replace({one.id: one.name for one in comparison.metrics}).alias("name")
    better = metric.replace({one.id: one.scale.better for one in comparison.metrics})
    return comparison.differences.select(*first, names, better.alias("better"), pl.exclude(*first))


def _comparable(comparison: Comparison) -> pl.DataFrame:
    """Return the differences that a reader is told: those of two means."""
    return comparison.differences.filter(pl.col("difference").is_not_null())


def verdict_notes(comparison: Comparison) -> list[str]:
    """Note what a reader must know beside the verdicts, and which metrics have no difference."""
    rows = comparison.differences.to_dicts()
    notes, empty = [], list[str]()
    several = len({(row["group"], row["a"], row["b"]) for row in rows}) > 1
    for row in rows:
        at = f", {_sides_of(row)}" if several else ""
        if row["difference"] is not None:
            notes += [f"{row['metric']}{at}: {text}" for text in remarks(row)]
        elif row["null_a"] or row["null_b"]:
            notes.append(f"{row['metric']}{at}: {row['lacking']}")
        else:
            empty.append(row["metric"])
    told = {row["metric"] for row in rows if row["metric"] not in empty}
    empty = [id for id in dict.fromkeys(empty) if id not in told]
    if empty:
        notes.append(f"no difference, as one side or both have no value: {', '.join(empty)}")
    if len(notes) > MOST_NOTES:
        left = len(notes) - MOST_NOTES
        notes[MOST_NOTES:] = [f"{counted(left, 'more notes')} on single verdicts: see csv or json"]
    return notes


def _best(comparison: Comparison, group: object) -> set[tuple[str, str]]:
    """Return the metrics and systems whose mean cannot be told from the best one, unless none can.

    Two systems have no ranking: the better one is best if the difference has a verdict.
    """
    of_group = pl.col("group").eq_missing(pl.lit(group, pl.String))
    ranking = comparison.ranking.filter(of_group)
    if ranking.height:
        # one that few pairs tell apart, below one that many do, is not shown as a best one
        above = pl.col("is_best").cum_min().over("metric", order_by="place")
        told = ranking.filter(above, pl.col("is_best").all().over("metric").not_())
        return set(told.select("metric", "system").iter_rows())
    is_better = pl.col("verdict") == "better"
    rows = comparison.differences.filter(of_group, is_better | (pl.col("verdict") == "worse"))
    return set(rows.select("metric", pl.when(is_better).then("b").otherwise("a")).iter_rows())


_names = partial(name_columns, drop=-6)


def _differences(rows: pl.DataFrame, comparison: Comparison) -> Grid:
    """Lay out a row a metric under each pair of systems, or a row a pair under few metrics."""
    declared = comparison.metric_by_id
    pairs, metrics = (
        rows.partition_by(*names, maintain_order=True)
        for names in (("group", "a", "b"), ("metric",))
    )
    many = len(pairs) > len(metrics)
    records: list[Record] = [
        row for part in (metrics if many else pairs) for row in part.to_dicts()
    ]
    headings: dict[int, str] = {}
    if len(pairs) > 1:
        heading = partial(_metric_heading, declared) if many else _sides_of
        records, headings = under_headings(records, heading)
    first = rows.row(0, named=True)
    design = str(first["design"])
    sides = _sides_of(first) if len(pairs) == 1 else "b against a"
    column = partial(column_of, records)
    level = f"{100 * (1 - comparison.alpha):g} % CI"
    names = _names(records, declared, headings)
    if many and headings:
        under = (headings.get(place) or _sides_of(row) for place, row in enumerate(records))
        names = [Column("b against a", tuple(under), right=False, wraps=True)]
    columns = [
        *names,
        column("mean a", lambda row: number_text(row["mean_a"], _decimals(row)), drop=-3),
        column("mean b", lambda row: number_text(row["mean_b"], _decimals(row)), drop=-2),
        column(f"difference [{level}]", _difference),
        # a mark after what is below alpha
        column(
            f"p (Holm, α={comparison.alpha:g})",
            lambda row: p_text(row["p_holm"]) + "*" * bool(row["significant"]),
        ),
        column("", _verdict, right=False, wraps=True, drop=3),
        column(
            f"{EFFECTS[design]} [95 % CI]",
            lambda row: interval_text(row["effect"], row["effect_low"], row["effect_high"], 2),
            drop=-1,
        ),
        column("p", lambda row: p_text(row["p"]), drop=-5),
        column("detectable", lambda row: number_text(row["detectable"], 3), drop=-7),
    ]
    if first["plan"] is not None:
        columns.append(column(f"units for {first['plan']:g}", _needed))
    if design == "paired":
        columns.append(column("pairs", lambda row: f"{row['n_a']:,}", drop=-4))
        columns.append(column("+, -", _higher_and_lower, drop=-6))
    else:
        columns.append(column("n a, n b", lambda row: f"{row['n_a']:,}, {row['n_b']:,}", drop=-4))
    if any(row and row["reason"] for row in records):
        columns.append(column("null", lambda row: row["reason"] or "", right=False, drop=2))
    families = rows.drop_nulls("p_holm").group_by("family", maintain_order=True)
    sizes = families.agg(pl.max("family_size")).rows()
    tested = [f"{name} ({counted(size, 'tests')})" for name, size in sizes]
    tests = f"corrected within {', '.join(tested)}" if tested else "no test"
    repeated = "intervals for new repeats too; " if comparison.repeats.height else ""
    title = f"{design}: {sides} ({design_text(first)}; {repeated}{tests})"
    return Grid(title, tuple(columns), frozenset(headings))


def _verdict(row: Record) -> str:
    """Write the verdict, and what a side lacks; the title says which side is a."""
    lacking = lacking_text(row, "a", "b")
    return f"{verdict_text(row)} ({lacking})" if lacking else verdict_text(row)


def _higher_and_lower(row: Record) -> str:
    """Write how many pairs are higher and lower in b: unknown where no unit is in both."""
    return NONE if row["higher"] is None else f"{row['higher']:,}, {row['lower']:,}"


def _needed(row: Record) -> str:
    """Write how many units, or how many repeats, the planned difference takes."""
    ways = [("", row["units_needed"]), (" repeats", row["repeats_needed"])]
    return " or ".join(f"{n:,}{what}" for what, n in ways if n is not None) or NONE


def _ranking(rows: pl.DataFrame, declared: Mapping[str, Metric]) -> Grid:
    def heading(row: Record) -> str:
        return _within(row["group"], _metric_heading(declared, row))

    records, headings = under_headings(rows.to_dicts(), heading)
    column = partial(column_of, records)
    names = tuple(headings.get(place) or row["system"] for place, row in enumerate(records))
    columns = (
        Column("system", names, right=False, wraps=True),
        column("place", lambda row: str(row["place"])),
        column("bounds of the place", "{place_low} to {place_high}".format_map, drop=0),
        column("mean difference from the others", lambda row: _signed(row["mean_difference"])),
        column("apart from next", apart_text, right=False),
        column("sample", lambda row: row["sample"], right=False, drop=-1),
    )
    return Grid("ranking", columns, frozenset(headings))


def _metric_heading(declared: Mapping[str, Metric], row: Record) -> str:
    metric = declared[row["metric"]]
    return f"{metric.heading} {ARROWS[metric.scale.better]}"


def apart_text(row: Record) -> str:
    """Write whether a system can be told apart from the next one of a ranking."""
    return {True: "yes", False: "no", None: NONE}[row["apart_from_next"]]


def _published(rows: pl.DataFrame, declared: Mapping[str, Metric]) -> Grid:
    records = rows.to_dicts()
    column = partial(column_of, records)
    columns = [
        column("b against a", _sides_of, right=False),
        *_names(records, declared),
        column("mean a [normal 95 %]", lambda row: _normal(row, "a"), drop=-2),
        column("mean b [normal 95 %]", lambda row: _normal(row, "b"), drop=-1),
        column("Cohen's d", lambda row: number_text(row["cohens_d"], 3)),
        column("p Student", lambda row: p_text(row["student_p"])),
        column("p Welch", lambda row: p_text(row["welch_p"])),
        column("p Mann-Whitney", lambda row: p_text(row["mann_whitney_p"])),
    ]
    title = "published statistics: variances over n, nothing corrected"
    return Grid(title, tuple(columns))


def _normal(row: Record, side: str) -> str:
    return interval_text(row[f"mean_{side}"], row[f"normal_low_{side}"], row[f"normal_high_{side}"])


def _sides_of(row: Record) -> str:
    return _within(row["group"], f"{row['b']} against {row['a']}")


def _difference(row: Record) -> str:
    return interval_text(row["difference"], row["low"], row["high"], _decimals(row))


def _decimals(record: Record) -> int:
    return decimals_for((record["mean_a"], record["mean_b"], record["difference"]))


def _sides(comparison: Comparison) -> Grid:
    """Lay out every side's mean over all its rows, its interval, n and nulls."""
    sides = comparison.sides
    ids = sides["metric"].unique(maintain_order=True).to_list()
    columns = _names([{"metric": id} for id in ids], comparison.metric_by_id)
    for (group, side), rows in sides.group_by("group", "side", maintain_order=True):
        records = {record["metric"]: record for record in rows.to_dicts()}
        cells = tuple(_side(records.get(id)) for id in ids)
        columns.append(Column(_within(group, str(side)), cells, group=True))
    title = f"mean of each side over all its rows [95 % CI, unit: {comparison.unit}], n and nulls"
    return Grid(title, tuple(columns))


def _side(record: Record | None) -> str:
    if record is None:
        return NONE
    nulls = f", {record['n_null']:,} {main_reason(record)}" if record["n_null"] else ""
    return f"{_mean(record, decimals_for([record['mean']]))} ({record['n']:,}{nulls})"


def _mean(row: Record | None, decimals: int) -> str:
    return NONE if row is None else interval_text(row["mean"], row["low"], row["high"], decimals)
