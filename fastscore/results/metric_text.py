"""Metrics and their numbers as people read them, and what a source document calls a value."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import groupby
from operator import ge, gt, le, lt
from typing import Any

import polars as pl

from fastscore.errors import UsageError, did_you_mean, listed
from fastscore.statistics.clustered import Estimate
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Band, Metric
from fastscore.suites.formulas import plain_formula, plain_words
from fastscore.suites.registry import load_suite, suite_names
from fastscore.terminal import result_console, write
from fastscore.terminal.grids import Format, Grid, print_notes, show_grids

NONE = "-"
REASONS = {
    "too_few_units": "too few units",
    "too_few_values": "too few dialogues",
    "zero_variance": "no variance",
    "several_scales": "several scales",
    "by_definition": "by definition",
    "no_disagreement": "no disagreement",
    "opposite_ratings": "opposite scores",
    "below_minus_one": "below -1",
    "no_categories": "scores between categories",
    "separated": "no finite strengths",
}
"""The words for a missing number or interval, in every table and finding."""

Record = Mapping[str, Any]


def decimals_for(values: Iterable[float | None]) -> int:
    """Return how many decimals numbers of one kind are written with, by the largest of them."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return 4 if largest < 10 else 2 if largest < 1_000 else 1


def number_text(value: float | None, decimals: int = 4, sign: str = "") -> str:
    """Write a number, a dash for none; what rounds to zero has no minus."""
    return NONE if value is None else f"{value:{sign}z,.{decimals}f}"


def value_text(value: float | None) -> str:
    """Write a number with as many decimals as it needs."""
    return number_text(value, decimals_for([value]))


def interval_text(
    value: float | None, low: float | None, high: float | None, decimals: int = 4
) -> str:
    """Write a number and the ends of its interval, where it has one."""
    if low is None or high is None:
        return number_text(value, decimals)
    ends = f"{number_text(low, decimals)}, {number_text(high, decimals)}"
    return f"{number_text(value, decimals)} [{ends}]"


def estimate_text(estimate: Estimate) -> str:
    """Write a mean with its interval, where it has one, to three decimals."""
    decimals = max(1, decimals_for([estimate.value]) - 1)
    return interval_text(estimate.value, estimate.low, estimate.high, decimals)


def p_text(p: float | None) -> str:
    """Write a p-value: four decimals, small ones by their power of ten."""
    if p is None:
        return NONE
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"


def reading_of(
    value: float | None, low: float | None, high: float | None, bands: Sequence[Band]
) -> str | None:
    """Return the reading of the first band that contains a mean and its whole interval."""
    if value is None or low is None or high is None:
        return None
    return next(
        (
            band.reading
            for band in bands
            if all(
                holds(end, bound) for _, holds, bound in _bounds(band) for end in (low, value, high)
            )
        ),
        None,
    )


def band_bounds(band: Band) -> str:
    """Write the bounds of a band: ``above 0.8``, ``0.7 to 0.85``, ``1``."""
    if band.at_least is not None and band.at_least == band.at_most:
        return f"{band.at_least:g}"
    if band.at_least is not None and band.at_most is not None:
        return f"{band.at_least:g} to {band.at_most:g}"
    return " and ".join(f"{word} {bound:g}" for word, _, bound in _bounds(band))


def _bounds(band: Band) -> list[tuple[str, Callable[[float, float], bool], float]]:
    """Return the words, comparisons and values of a band's bounds."""
    bounds = (
        ("at least", ge, band.at_least),
        ("above", gt, band.above),
        ("at most", le, band.at_most),
        ("below", lt, band.below),
    )
    return [(word, holds, bound) for word, holds, bound in bounds if bound is not None]


def bands_text(bands: Sequence[Band]) -> str:
    """Write all bands of a metric in a line: ``above 0.8 excellent, below 0.5 poor``."""
    return ", ".join(f"{band_bounds(band)} {band.reading}" for band in bands)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula, or strips before one."""


def write_csv(frame: pl.DataFrame) -> str:
    """Write a frame as CSV; an apostrophe goes before text that a spreadsheet would compute.

    Only text is touched: a negative number stays a number.
    """
    text = pl.col(pl.String)
    is_formula = text.str.slice(0, 1).is_in(FORMULA_STARTS)
    safe = frame.with_columns(pl.when(is_formula).then("'" + text).otherwise(text).name.keep())
    return safe.rename(
        {name: f"'{name}" for name in frame.columns if name.startswith(FORMULA_STARTS)}
    ).write_csv()


def json_text(content: Mapping[str, Any]) -> str:
    """Write values and frames as JSON, every number at full precision."""
    plain = {
        name: value.to_dicts() if isinstance(value, pl.DataFrame) else value
        for name, value in content.items()
    }
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def show_found(content: Mapping[str, Any], grids: Iterable[Grid], format: Format) -> None:
    """Show values and frames as `write_data`, or as grids with the notes among the values."""
    if write_data(content, format):
        return
    show_grids(grids, format)
    if format == "table":
        print_notes(result_console(), content["notes"])


def write_data(content: Mapping[str, Any], format: Format) -> bool:
    """Write values and frames for programs, as CSV the frames alone, if the format is for them."""
    if format == "json":
        write(json_text(content))
    elif format == "csv":
        frames = [value for value in content.values() if isinstance(value, pl.DataFrame)]
        write(write_csv(pl.concat(frames, how="diagonal")))
    return format in ("json", "csv")


def under_headings(
    rows: Iterable[Record], heading: Callable[[Record], str]
) -> tuple[list[Record], dict[int, str]]:
    """Put an empty record before the rows of each heading, and name its place."""
    records: list[Record] = []
    headings: dict[int, str] = {}
    for text, part in groupby(rows, heading):
        headings[len(records)] = text
        records += [{}, *part]
    return records, headings


def find_metrics(names: Sequence[str]) -> list[Suite]:
    """Return suites with the metrics that are named."""
    of_suites = [name for name in suite_names() if name in names]
    suites = [load_suite(name) for name in of_suites or suite_names()]
    by_name: dict[str, set[str]] = {}
    for metric in (metric for suite in suites for metric in suite.metrics):
        for name in (metric.id, *re.findall(r"\b[A-Z]\d+[a-z]?\b", metric.source)):
            by_name.setdefault(name, set()).add(metric.id)
    asked = [name for name in names if name not in of_suites]
    for name in asked:
        if name not in by_name:
            within = f" of {listed(of_suites)}" if of_suites else ""
            known = [*by_name, *(() if of_suites else suite_names())]
            hint = did_you_mean(name, known)
            if not of_suites and not get_close_matches(name, known):
                hint = (
                    "`fastscore metrics` lists all of installed suites. A metric of your own is "
                    f"explained in its run: `fastscore explain RUN DIALOGUE {name}`."
                )
            raise UsageError(f"{name!r} is not a suite or a metric{within}.", hint)
    wanted = set().union(*(by_name[name] for name in asked))
    found = []
    for suite in suites:
        metrics = tuple(one for one in suite.metrics if not asked or one.id in wanted)
        found += [dataclasses.replace(suite, metrics=metrics)] if metrics else []
    return found


def metric_range(metric: Metric) -> str:
    """Return a metric's range as an interval, open where it is unbounded."""
    low = "(-inf" if metric.scale.minimum is None else f"[{metric.scale.minimum:g}"
    high = "inf)" if metric.scale.maximum is None else f"{metric.scale.maximum:g}]"
    return f"{low}, {high}"


def metric_names(suite: Suite) -> str:
    """Return a suite's title, and a line a metric: its id and its name."""
    lines = [f"  {metric.id:<32} {metric.name}" for metric in suite.metrics]
    return "\n".join([f"{suite.name}: {suite.title}", *lines])


def metrics_text(suite: Suite) -> str:
    """Return a card a metric, as plain text."""
    lines = [f"{suite.name} (version {suite.version}): {suite.title}"]
    lines += [f"  source   {paper}" for paper in suite.papers]
    lines += [f"  people   {suite.agreement}"] if suite.agreement else []
    for metric in suite.metrics:
        lines += ["", f"{metric.id}  {metric.name}"]
        lines += [f"  {name:<8} {fact}" for name, fact in metric_facts(metric).items()]
    return "\n".join(lines)


def metric_facts(metric: Metric) -> dict[str, str]:
    """Return what a metric's card says by the name of each line; nothing that is not declared."""
    better = metric.scale.better
    direction = "no direction" if better == "neither" else f"{better} is better"
    facts = {
        "table": metric.table,
        "formula": metric.formula.text,
        **{plain_formula(symbol): plain_words(text) for symbol, text in metric.formula.symbols},
        "range": f"{metric_range(metric)}, {direction}",
        "reading": plain_words(metric.reading),
        "bands": bands_text(metric.scale.bands),
        "example": plain_words(metric.example),
        "note": plain_words(metric.note),
        "uses": ", ".join(metric.uses),
        "only in": ", ".join(metric.conditions),
        "headline": "yes" if metric.role == "headline" else "",
        "same as": metric.same_test_as,
        "fixed": fixed_rows(metric),
        "scale": f"one for each {metric.scale.by}" if metric.scale.by else "",
        "baseline": ", ".join(metric.baselines),
        "null": metric.null_rule,
        "source": metric.source,
    }
    return {name: fact for name, fact in facts.items() if fact}


def fixed_rows(metric: Metric) -> str:
    """Return the rows in which a definition fixes the value, such as ``multi_user is false``."""
    rules = [f"{one.column} is {str(one.value).lower()}" for one in metric.fixed_where]
    return " or ".join(rules)


def metrics_json(suites: Sequence[Suite]) -> str:
    """Return every declaration of the suites' metrics as JSON."""
    return json.dumps(
        {
            suite.name: {
                "title": suite.title,
                "version": suite.version,
                "papers": suite.papers,
                "agreement": suite.agreement,
                "metrics": [_record(metric) for metric in suite.metrics],
            }
            for suite in suites
        },
        indent=2,
        ensure_ascii=False,
    )


def _record(metric: Metric) -> dict[str, Any]:
    """Return a declaration as JSON has it, flat: rules and evidence without expressions."""
    scale, (numerator, denominator) = metric.scale, metric.micro or (None, None)
    of_metric = ("id", "name", "table", "null_rule", "source", "reading", "example", "note")
    lists = ("uses", "conditions", "same_test_as", "baselines")
    return {
        **{name: getattr(metric, name) for name in (*of_metric, *lists)},
        "symbols": metric.formula.symbols,
        "latex": metric.formula.latex,
        "formula": metric.formula.text,
        **{name: getattr(scale, name) for name in ("minimum", "maximum", "better", "unit")},
        "scale_by": scale.by,
        "bands": [dataclasses.asdict(band) for band in scale.bands],
        "null_when": [{"reason": rule.reason, "if": rule.text} for rule in metric.null_rules],
        "numerator": numerator,
        "denominator": denominator,
        "evidence": [
            {"table": of.table or metric.table, "columns": [*of.names, *of.columns]}
            for of in metric.evidence
        ],
        "is_secondary": metric.role == "part",
        "headline": metric.role == "headline",
        "fixed_where": [(one.column, one.value) for one in metric.fixed_where],
    }
