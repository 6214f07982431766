"""Showing a comparison to a person, or to a program as data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from types import MappingProxyType
from typing import Any

import polars as pl

from fastscore.results.compare.ranking import Comparison
from fastscore.results.metric_text import (
    NONE,
    counted,
    decimals_for,
    interval_text,
    number_text,
    p_text,
    write_csv,
)
from fastscore.results.repeats import passes_grid, repeats_grid
from fastscore.results.summary_table import ARROWS, main_reason, name_columns
from fastscore.suites.declarations import Metric
from fastscore.terminal import plain, result_console, write
from fastscore.terminal.grids import (
    Column,
    Format,
    Grid,
    column_of,
    html_table,
    print_notes,
    show_grids,
)

EMPTY: Mapping[int, str] = MappingProxyType({})
NAMED = 4
EFFECTS = {"paired": "g_z", "independent": "g"}

Record = Mapping[str, Any]


def show_comparison(comparison: Comparison, *, format: Format = "table") -> None:
    """Show how the sides differ, their means and what a reader must know beside that."""
    if format == "json":
        write(comparison_json(comparison))
    elif format == "csv":
        write(write_csv(_named(comparison)))
    elif format == "table":
        show_grids(comparison_grids(comparison), format, plain(headline(comparison)))
        print_notes(result_console(), [*comparison.notes, *_incomparable_note(comparison)])
    else:
        show_grids([*paper_grids(comparison), *comparison_grids(comparison)], format)


def comparison_json(comparison: Comparison) -> str:
    """Return a comparison as JSON, every number at full precision."""
    content: dict[str, Any] = {
        "suite": comparison.suite,
        "notes": comparison.notes,
        "unit": comparison.unit,
        "alpha": comparison.alpha,
        "sides": comparison.sides.to_dicts(),
        "differences": comparison.differences.to_dicts(),
    }
    for name in ("ranking", "published", "repeats", "pass_k"):
        table: pl.DataFrame = getattr(comparison, name)
        if table.height:
            content[name] = table.to_dicts()
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def comparison_html(comparison: Comparison) -> str:
    """Return the headline and the differences as HTML, every text escaped."""
    tables = (
        html_table((column.header for column in grid.columns), grid.rows, grid.title)
        for grid in comparison_grids(comparison)[:-1]
    )
    return "".join([f"<p>{escape(headline(comparison))}</p>", *tables])


def comparison_grids(comparison: Comparison) -> list[Grid]:
    """Lay out a ranking of three systems or more, the differences, then the means of the sides."""
    declared = comparison.metric_by_id
    designs = _comparable(comparison).partition_by("design", maintain_order=True)
    grids = [_differences(design, comparison) for design in designs]
    if comparison.ranking.height:
        grids.insert(0, _ranking(comparison.ranking, declared))
    if comparison.repeats.height:
        names = _names(comparison.repeats["metric"].to_list(), declared)
        grids.append(repeats_grid(comparison.repeats, names))
    if comparison.pass_k.height:
        grids.insert(0, passes_grid(comparison.pass_k, comparison.unit))
    if comparison.published.height:
        grids.append(_published(comparison.published, declared))
    return [*grids, _sides(comparison)]


def paper_grids(comparison: Comparison) -> Iterator[Grid]:
    """Lay out the means of each group with a row a system and a column a metric, best in bold.

    A mean is in bold if it cannot be told from the best one, unless that holds for all. Two
    systems have no ranking: the better one is in bold if the difference has a verdict.
    """
    declared = comparison.metric_by_id
    sides = comparison.sides.filter(pl.col("n") > 0)
    for (group,), rows in sides.group_by("group", maintain_order=True):
        systems = rows["side"].unique(maintain_order=True).to_list()
        bold = _best(comparison, group)
        columns = [Column("system", tuple(systems), right=False)]
        for metric in rows["metric"].unique(maintain_order=True):
            records = {row["side"]: row for row in rows.filter(metric=metric).to_dicts()}
            decimals = decimals_for(row["mean"] for row in records.values())
            cells = tuple(_mean_cell(records.get(system), min(decimals, 3)) for system in systems)
            marked = frozenset(
                place for place, system in enumerate(systems) if (metric, system) in bold
            )
            arrow = ARROWS[declared[metric].better].strip()
            columns.append(Column(f"{metric} {arrow}".strip(), cells, bold=marked))
        title = f"means with 95 % confidence intervals (unit: {comparison.unit})"
        yield Grid(_within(group, title), tuple(columns))


def headline(comparison: Comparison) -> str:
    """Return one sentence on what differs and in which direction, by the headline metrics."""
    told = _comparable(comparison)
    if told.is_empty():
        return "Nothing is compared: no dialogue has a value on both sides."
    copies = [metric.id for metric in comparison.metrics if metric.same_test_as]
    head = told.filter(pl.col("family") == "headline")
    head = head if head.height else told
    distinct = head.filter(pl.col("metric").is_in(copies).not_())
    head = distinct if distinct.height else head
    rows = head.to_dicts()
    size = max((row["family_size"] or 0 for row in rows), default=0)
    level = f"Holm-corrected p < {comparison.alpha:g} over {counted(size, 'tests')}"
    pairs = {(row["group"], row["a"], row["b"]) for row in rows}
    clear = [row for row in rows if row["verdict"]]
    if len(pairs) > 1:
        return _many(rows, clear, level)
    row = rows[0]
    differences = [one["difference"] for one in rows if one["difference"] is not None]
    if differences and not any(differences):
        return f"{row['b']} equals {row['a']} in the mean of every headline metric."
    if all(one["p"] is None for one in rows):
        return f"{row['b']} against {row['a']}: too few dialogues to tell any difference."
    if not clear:
        return f"{row['b']} and {row['a']} cannot be told apart in any headline metric ({level})."
    parts = []
    for verdict in ("better", "worse", "higher", "lower"):
        found = [
            f"{one['metric']} {_signed(one['difference'])}"
            for one in clear
            if one["verdict"] == verdict
        ]
        if found:
            more = ", ..." if len(found) > NAMED else ""
            parts.append(f"{verdict} in {len(found):,} ({', '.join(found[:NAMED])}{more})")
    undecided = len(rows) - len(clear)
    others = f", undecided in {counted(undecided, 'metrics')}" if undecided else ""
    return f"{row['b']} against {row['a']}: {', '.join(parts)}{others} ({level})."


def _many(rows: Sequence[Record], clear: Sequence[Record], level: str) -> str:
    n_tested = sum(row["p"] is not None for row in rows)
    untested = f"; {len(rows) - n_tested:,} have no test" if n_tested < len(rows) else ""
    if not n_tested:
        return f"None of {len(rows):,} differences in headline metrics can be tested."
    if not clear:
        return (
            f"None of {n_tested:,} tested differences in headline metrics is significant "
            f"({level}){untested}."
        )
    largest = max(clear, key=lambda row: abs(row["effect"] or 0.0))
    return (
        f"{len(clear):,} of {n_tested:,} tested differences in headline metrics are significant "
        f"({level}), the largest effect in {_within(largest['group'], largest['metric'])}, "
        f"{_signed(largest['difference'])} at {largest['b']} against {largest['a']}{untested}."
    )


def _signed(value: float) -> str:
    return f"{value:+.{decimals_for([value])}f}"


def _within(group: object, text: str) -> str:
    """Write before a text to which group it belongs."""
    return text if group is None else f"{group}: {text}"


def _named(comparison: Comparison) -> pl.DataFrame:
    """Put each metric's name and direction beside its id."""
    about = pl.DataFrame(
        [(metric.id, metric.name, metric.better) for metric in comparison.metrics],
        schema=["metric", "name", "better"],
        orient="row",
    )
    rows = comparison.differences.join(about, on="metric", how="left", maintain_order="left")
    first = ("group", "a", "b", "metric", "name", "better")
    return rows.select(*first, pl.exclude(*first))


def _comparable(comparison: Comparison) -> pl.DataFrame:
    """Return the differences that a reader is told: those with a value on either side."""
    return comparison.differences.filter(pl.max_horizontal("n_a", "n_b") > 0)


def _incomparable_note(comparison: Comparison) -> list[str]:
    told = set(_comparable(comparison)["metric"])
    ids = [
        id for id in comparison.differences["metric"].unique(maintain_order=True) if id not in told
    ]
    return [f"no difference, null on both sides: {', '.join(ids)}"] if ids else []


def _best(comparison: Comparison, group: object) -> set[tuple[str, str]]:
    """Return the metrics and systems whose mean cannot be told from the best one."""
    of_group = pl.col("group").eq_missing(pl.lit(group, pl.String))
    ranking = comparison.ranking.filter(of_group)
    if ranking.height:
        told = ranking.filter(pl.col("is_best").all().over("metric").not_(), "is_best")
        return set(told.select("metric", "system").iter_rows())
    is_better = pl.col("verdict") == "better"
    rows = comparison.differences.filter(of_group, is_better | (pl.col("verdict") == "worse"))
    return set(rows.select("metric", pl.when(is_better).then("b").otherwise("a")).iter_rows())


def _names(
    ids: Sequence[str], declared: Mapping[str, Metric], headings: Mapping[int, str] = EMPTY
) -> list[Column]:
    """Name the metrics, and the rows that head others."""
    names = [headings.get(place) or declared[id].name for place, id in enumerate(ids)]
    arrows = [ARROWS[declared[id].better] if id else "" for id in ids]
    return name_columns(ids, names, arrows, drop=-6)


def _differences(rows: pl.DataFrame, comparison: Comparison) -> Grid:
    records: list[Record] = []
    headings: dict[int, str] = {}
    pairs = rows.partition_by("group", "a", "b", maintain_order=True)
    for pair in pairs:
        if len(pairs) > 1:
            headings[len(records)] = _sides_of(pair.row(0, named=True))
            records.append({})
        records += pair.to_dicts()
    first = rows.row(0, named=True)
    design = str(first["design"])
    sides = _sides_of(first) if len(pairs) == 1 else "b against a"
    ids = [row.get("metric", "") for row in records]
    column = partial(column_of, records)
    columns = [
        *_names(ids, comparison.metric_by_id, headings),
        column("mean a", lambda row: number_text(row["mean_a"], _decimals(row)), drop=-3),
        column("mean b", lambda row: number_text(row["mean_b"], _decimals(row)), drop=-2),
        column("difference [95 % CI]", _difference),
        column(f"p (Holm, α={comparison.alpha:g})", _marked),
        column("", lambda row: row["verdict"] or NONE, right=False, drop=3),
        column(f"{EFFECTS[design]} [95 % CI]", _effect, drop=-1),
        column("p", lambda row: p_text(row["p"]), drop=-5),
        column("detectable", lambda row: number_text(row["detectable"], 3), drop=-6),
    ]
    if design == "paired":
        columns.append(column("pairs", lambda row: f"{row['n_a']:,}", drop=-4))
    else:
        columns.append(column("n a, n b", lambda row: f"{row['n_a']:,}, {row['n_b']:,}", drop=-4))
    if any(row and row["reason"] for row in records):
        columns.append(column("null", lambda row: row["reason"] or "", right=False, drop=2))
    families = rows.drop_nulls("p_holm").group_by("family", maintain_order=True)
    sizes = [f"{name} {size:,}" for name, size in families.agg(pl.max("family_size")).rows()]
    tests = f"tests: {', '.join(sizes)}" if sizes else "no test"
    title = f"{design}: {sides} (unit: {comparison.unit}; {tests})"
    return Grid(title, tuple(columns), frozenset(headings))


def _ranking(rows: pl.DataFrame, declared: Mapping[str, Metric]) -> Grid:
    records: list[Record] = []
    headings: dict[int, str] = {}
    for part in rows.partition_by("group", "metric", maintain_order=True):
        first = part.row(0, named=True)
        metric = declared[first["metric"]]
        name = f"{metric.name} ({metric.id}) {ARROWS[metric.better]}"
        headings[len(records)] = _within(first["group"], name)
        records += [{}, *part.to_dicts()]
    column = partial(column_of, records)
    names = tuple(headings.get(place) or row["system"] for place, row in enumerate(records))
    columns = (
        Column("system", names, right=False, wraps=True),
        column("place", lambda row: str(row["place"])),
        column("place [95 %]", _places, drop=0),
        column("mean [95 % CI, simultaneous]", _mean_cell),
        column("letters", lambda row: row["letters"], right=False),
        column("dialogues", lambda row: f"{row['n_dialogues']:,}", drop=-1),
    )
    title = "ranking: systems that share a letter cannot be told apart"
    return Grid(title, columns, frozenset(headings))


def _places(row: Record) -> str:
    return NONE if row["place_low"] is None else f"{row['place_low']} to {row['place_high']}"


def _published(rows: pl.DataFrame, declared: Mapping[str, Metric]) -> Grid:
    records = rows.to_dicts()
    column = partial(column_of, records)
    columns = [
        column("b against a", _sides_of, right=False),
        *_names([row["metric"] for row in records], declared),
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


def _marked(row: Record) -> str:
    """Write the corrected p, with a mark after it if it is below alpha."""
    return p_text(row["p_holm"]) + ("*" if row["significant"] else "")


def _difference(row: Record) -> str:
    return interval_text(row["difference"], row["low"], row["high"], _decimals(row))


def _effect(row: Record) -> str:
    return interval_text(row["effect"], row["effect_low"], row["effect_high"], 2)


def _mean_cell(row: Record | None, decimals: int | None = None) -> str:
    if row is None:
        return NONE
    shown = decimals_for([row["mean"]]) if decimals is None else decimals
    return interval_text(row["mean"], row["low"], row["high"], shown)


def _decimals(record: Record) -> int:
    return decimals_for((record["mean_a"], record["mean_b"], record["difference"]))


def _sides(comparison: Comparison) -> Grid:
    """Lay out every side's mean over all its rows, its interval, n and nulls."""
    sides = comparison.sides
    ids = sides["metric"].unique(maintain_order=True).to_list()
    columns = _names(ids, comparison.metric_by_id)
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
    return f"{_mean_cell(record)} ({record['n']:,}{nulls})"
