"""Showing a comparison to a person, or to a program as JSON."""

import json
import sys
from collections.abc import Mapping

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.table import Table as RichTable

from fastscore.results.compare import Comparison
from fastscore.results.show import number_text, result_console
from fastscore.suites.base import NULL_REASONS

TESTS = {
    "paired": ("d_z", "paired t", "Wilcoxon"),
    "independent": ("d", "Welch's t", "Mann-Whitney"),
}
EFFECTS = ("effect", "effect_unsigned")
PUBLISHED_TESTS = {**TESTS, "independent": ("d", "Student's t", "Mann-Whitney")}


def show_comparison(comparison: Comparison, *, as_json: bool) -> None:
    """Show what the sides hold, how they differ and what a reader must know beside that."""
    if as_json:
        sys.stdout.write(comparison_json(comparison))
        return
    console = result_console()
    tests = PUBLISHED_TESTS if comparison.published_statistics else TESTS
    console.print(_sides(comparison.sides))
    for design in comparison.differences.partition_by("design", maintain_order=True):
        console.print(_differences(design, tests, comparison.alpha))
    for note in comparison.notes:
        console.print(f"note: {note}", soft_wrap=True)


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


def _sides(sides: pl.DataFrame) -> RichTable:
    grouped = sides["group"].is_not_null().any()
    reasons = [f"n_{reason}" for reason in NULL_REASONS if sides[f"n_{reason}"].sum()]
    table = RichTable(title="means", title_justify="left", box=SIMPLE_HEAD)
    for name in (*["group"] * grouped, "metric", "side"):
        table.add_column(name, overflow="fold")
    for name in ("mean", "n", *(name.removeprefix("n_") for name in reasons), "dialogues"):
        table.add_column(name, justify="right")
    table.add_column("mean of dialogues [95 %]", justify="right")
    for row in sides.iter_rows(named=True):
        table.add_row(
            *[row["group"]] * grouped,
            row["metric"],
            row["side"],
            number_text(row["mean"]),
            *(f"{row[name]:,}" for name in ("n", *reasons, "n_dialogues")),
            _with_interval(row["dialogue_mean"], row["t_low"], row["t_high"]),
        )
    return table


def _differences(
    rows: pl.DataFrame, tests: Mapping[str, tuple[str, str, str]], alpha: float
) -> RichTable:
    first = rows.row(0, named=True)
    design = str(first["design"])
    effect, t_test, rank_test = tests[design]
    labels = [name for name in ("group", "a", "b") if rows[name].n_unique() > 1]
    one_pair = not {"a", "b"} & set(labels)
    sides = f"{first['b']} against {first['a']}" if one_pair else "b against a"
    table = RichTable(
        title=f"{design}: {sides}",
        title_justify="left",
        box=SIMPLE_HEAD,
        caption=f"* p < alpha = {alpha:g}, two-sided",
        caption_justify="left",
    )
    for name in (*labels, "metric"):
        table.add_column(name, overflow="fold")
    sizes = ["pairs"] if design == "paired" else ["n a", "n b"]
    p_values = (f"p {t_test}", "Holm", f"p {rank_test}", "Holm")
    for name in (*sizes, "difference [95 %]", effect, f"|{effect}|", *p_values):
        table.add_column(name, justify="right")
    with_reasons = rows["reason"].is_not_null().any()
    if with_reasons:
        table.add_column("null")
    for row in rows.iter_rows(named=True):
        table.add_row(
            *(row[name] for name in labels),
            row["metric"],
            *(f"{row[name]:,}" for name in ("n_a", "n_b")[: len(sizes)]),
            _with_interval(row["difference"], row["low"], row["high"]),
            *("-" if row[name] is None else f"{row[name]:.3f}" for name in EFFECTS),
            *(_p_value(row[name], alpha) for name in ("t_p", "t_p_holm", "rank_p", "rank_p_holm")),
            *[row["reason"] or ""] * with_reasons,
        )
    return table


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return number_text(value)
    return f"{number_text(value)} [{number_text(low)}, {number_text(high)}]"


def _p_value(p: float | None, alpha: float) -> str:
    if p is None:
        return "-"
    text = f"{p:.4f}" if p >= 1e-4 else f"{p:.1e}"
    return f"{text}{'*' if p < alpha else ' '}"
