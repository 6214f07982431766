"""Showing a comparison to a person, or to a program as data."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import polars as pl

from fastscore.results.comparison import Comparison
from fastscore.results.number_text import (
    NONE,
    counted,
    decimals_for,
    interval_text,
    number_text,
    p_text,
)
from fastscore.results.spreadsheet import write_csv
from fastscore.results.summary_table import ARROWS, main_reason
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite
from fastscore.terminal import plain, result_console, write
from fastscore.terminal.grids import (
    Column,
    Format,
    Grid,
    latex,
    markdown,
    print_grid,
    print_notes,
)

EMPTY: Mapping[int, str] = MappingProxyType({})
NAMED = 4

TESTS = {
    "paired": ("d_z", "t", "Wilcoxon"),
    "independent": ("d", "Welch", "Mann-Whitney"),
}
PUBLISHED_TESTS = {**TESTS, "independent": ("d", "Student", "Mann-Whitney")}

Difference = Mapping[str, Any]


def show_comparison(comparison: Comparison, *, format: Format = "table") -> None:
    """Show how the sides differ, what they hold and what a reader must know beside that."""
    if format == "json":
        write(comparison_json(comparison))
    elif format == "csv":
        write(write_csv(_named(comparison)))
    elif format == "table":
        console = result_console()
        console.print(plain(headline(comparison)))
        for grid in comparison_grids(comparison):
            console.print()
            print_grid(console, grid)
        print_notes(console, [*comparison.notes, *_incomparable_note(comparison)])
    else:
        lay_out = markdown if format == "markdown" else latex
        write("\n".join(map(lay_out, comparison_grids(comparison))))


def comparison_json(comparison: Comparison) -> str:
    """Return a comparison as JSON, every number at full precision."""
    content = {
        "suite": comparison.suite,
        "notes": comparison.notes,
        "published_statistics": comparison.published_statistics,
        "alpha": comparison.alpha,
        "sides": comparison.sides.to_dicts(),
        "differences": comparison.differences.to_dicts(),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def comparison_html(comparison: Comparison) -> str:
    """Return what differs and the differences as HTML, every text escaped."""
    grids = comparison_grids(comparison)[:-1]
    parts = [f"<p>{escape(headline(comparison))}</p>"]
    for grid in grids:
        heads = "".join(f"<th>{escape(column.header)}</th>" for column in grid.columns)
        rows = zip(*(column.cells for column in grid.columns), strict=True)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        parts.append(
            f"<table><caption>{escape(grid.title)}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )
    return "".join(parts)


def comparison_grids(comparison: Comparison) -> list[Grid]:
    """Lay out the differences of each design, then the means of the sides."""
    declared = _declared(comparison)
    tests = PUBLISHED_TESTS if comparison.published_statistics else TESTS
    designs = _comparable(comparison).partition_by("design", maintain_order=True)
    differences = [_differences(design, tests, declared) for design in designs]
    return [*differences, _sides(comparison.sides, declared)]


def verdict(row: Difference, metric: Metric | None) -> str:
    """Say in which direction a difference is clear: its corrected p is below its alpha.

    Returns
    -------
    str
        ``better`` or ``worse`` of the second side, ``higher`` or ``lower`` where a metric has no
        direction, empty where the difference is not clear. The p is that of the t test, of the
        rank test where there is none.
    """
    p = row["t_p_holm"] if row["t_p_holm"] is not None else row["rank_p_holm"]
    if p is None or p >= row["alpha"] or not row["difference"]:
        return ""
    direction = "higher" if row["difference"] > 0 else "lower"
    if metric is None or metric.better == "neither":
        return direction
    return "better" if direction == metric.better else "worse"


def headline(comparison: Comparison) -> str:
    """Say in one sentence what differs and in which direction, by the first design."""
    declared = _declared(comparison)
    told = _comparable(comparison)
    first = told["design"][0] if told.height else None
    rows = [row for row in told.to_dicts() if row["design"] == first]
    if not rows:
        return "Nothing is compared: no dialogue stands on both sides."
    verdicts = [(row, verdict(row, declared.get(row["metric"]))) for row in rows]
    clear = [(row, said) for row, said in verdicts if said]
    pairs = {(row["group"], row["a"], row["b"]) for row in rows}
    rest = f"Holm's p < {comparison.alpha:g}"
    if len(pairs) > 1:
        if not clear:
            return f"None of {len(rows):,} differences is clear ({rest})."
        largest = max(clear, key=lambda found: abs(found[0]["effect"] or 0.0))[0]
        where = f"{largest['group']}: " if largest["group"] is not None else ""
        return (
            f"{len(clear):,} of {len(rows):,} differences are clear ({rest}), most of all "
            f"{where}{largest['metric']}, {_signed(largest['difference'])} at {largest['b']} "
            f"against {largest['a']}."
        )
    row = rows[0]
    differences = [one["difference"] for one in rows if one["difference"] is not None]
    if differences and not any(differences):
        return f"{row['b']} equals {row['a']} in the mean of every metric."
    if all(one["t_p"] is None and one["rank_p"] is None for one in rows):
        return f"{row['b']} against {row['a']}: too few dialogues to tell any difference."
    if not clear:
        return f"{row['b']} does not clearly differ from {row['a']} in any metric ({rest})."
    parts = []
    for said in ("better", "worse", "higher", "lower"):
        found = [
            f"{one['metric']} {_signed(one['difference'])}" for one, how in clear if how == said
        ]
        if found:
            more = ", ..." if len(found) > NAMED else ""
            parts.append(f"{said} in {len(found):,} ({', '.join(found[:NAMED])}{more})")
    undecided = len(rows) - len(clear)
    others = f"; {counted(undecided, 'metrics')} not clearly different" if undecided else ""
    return f"{row['b']} against {row['a']}: {', '.join(parts)}{others} ({rest})."


def _signed(value: float) -> str:
    return f"{value:+.{decimals_for([value])}f}"


def _declared(comparison: Comparison) -> dict[str, Metric]:
    metrics = (*load_suite(comparison.suite).metrics, *comparison.judge_metrics)
    return {metric.id: metric for metric in metrics}


def _named(comparison: Comparison) -> pl.DataFrame:
    """Put each metric's name and direction beside its id."""
    declared = _declared(comparison)
    about = pl.DataFrame(
        [(metric.id, metric.name, metric.better) for metric in declared.values()],
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


def _names(
    ids: Sequence[str], declared: Mapping[str, Metric], headings: Mapping[int, str] = EMPTY
) -> list[Column]:
    """Name the metrics, and what stands in the rows that head others."""
    short = max((len(id) for id in ids), default=0) <= 5
    names = tuple(
        headings.get(place) or (declared[id].name if id in declared else id)
        for place, id in enumerate(ids)
    )
    arrows = tuple(ARROWS[declared[id].better] if id in declared else "" for id in ids)
    return [
        Column("id", tuple(ids), right=False, drop=1 if short else -6),
        Column("metric", names, right=False, wraps=True),
        Column("", arrows, right=False),
    ]


def _differences(
    rows: pl.DataFrame, tests: Mapping[str, tuple[str, str, str]], declared: Mapping[str, Metric]
) -> Grid:
    records: list[Difference] = []
    headings: dict[int, str] = {}
    pairs = rows.partition_by("group", "a", "b", maintain_order=True)
    for pair in pairs:
        if len(pairs) > 1:
            headings[len(records)] = _sides_of(pair.row(0, named=True))
            records.append({})
        records += pair.to_dicts()
    first = rows.row(0, named=True)
    design = str(first["design"])
    effect, t_test, rank_test = tests[design]
    sides = _sides_of(first) if len(pairs) == 1 else "b against a"
    corrected = f"(Holm, α={first['alpha']:g})"

    def column(header: str, write: Callable[[Difference], str], **how: Any) -> Column:
        return Column(header, tuple(write(row) if row else "" for row in records), **how)

    columns = [
        *_names([row.get("metric", "") for row in records], declared, headings),
        column("mean a", lambda row: number_text(row["mean_a"], _decimals(row)), drop=-3),
        column("mean b", lambda row: number_text(row["mean_b"], _decimals(row)), drop=-2),
        column("difference [95 %]", _difference),
        column(f"p {t_test} {corrected}", lambda row: _marked(row, "t")),
        column(
            "",
            lambda row: verdict(row, declared.get(row["metric"])) or NONE,
            right=False,
            drop=3,
        ),
        column(f"p {rank_test} {corrected}", lambda row: _marked(row, "rank"), drop=0),
        column(effect, lambda row: number_text(row["effect"], 2), drop=-1),
        column(f"|{effect}|", lambda row: number_text(row["effect_unsigned"], 2), drop=-5),
    ]
    if design == "paired":
        columns.append(column("pairs", lambda row: f"{row['n_a']:,}", drop=-4))
    else:
        columns.append(column("n a, n b", lambda row: f"{row['n_a']:,}, {row['n_b']:,}", drop=-4))
    if any(row and row["reason"] for row in records):
        columns.append(column("null", lambda row: row["reason"] or "", right=False, drop=2))
    return Grid(f"{design}: {sides}", tuple(columns), frozenset(headings))


def _sides_of(row: Difference) -> str:
    where = "" if row["group"] is None else f"{row['group']}: "
    return f"{where}{row['b']} against {row['a']}"


def _marked(row: Difference, test: str) -> str:
    """Write a test's corrected p, with a mark after it if it is below alpha."""
    return p_text(row[f"{test}_p_holm"]) + ("*" if row[f"{test}_significant"] else "")


def _difference(row: Difference) -> str:
    return interval_text(row["difference"], row["low"], row["high"], _decimals(row))


def _decimals(record: Difference) -> int:
    return decimals_for((record["mean_a"], record["mean_b"], record["difference"]))


def _sides(sides: pl.DataFrame, declared: Mapping[str, Metric]) -> Grid:
    """Lay out every side's mean over rows, with how many rows have a value and how many none."""
    ids = sides["metric"].unique(maintain_order=True).to_list()
    columns = _names(ids, declared)
    for (group, side), rows in sides.group_by("group", "side", maintain_order=True):
        records = {record["metric"]: record for record in rows.to_dicts()}
        header = str(side) if group is None else f"{group}: {side}"
        cells = tuple(_side(records.get(id)) for id in ids)
        columns.append(Column(header, cells, group=True))
    return Grid("means, n and nulls of each side", tuple(columns))


def _side(record: Difference | None) -> str:
    if record is None:
        return NONE
    nulls = f", {record['n_null']:,} {main_reason(record)}" if record["n_null"] else ""
    return f"{number_text(record['mean'], decimals_for([record['mean']]))} ({record['n']:,}{nulls})"
