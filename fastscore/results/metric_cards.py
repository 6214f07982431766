"""What a suite's metrics mean, from their declarations: for a terminal, JSON or a docs table."""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from fastscore.errors import UsageError, did_you_mean, listed
from fastscore.results.number_text import bands_text
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.formulas import plain_formula, plain_words
from fastscore.suites.registry import load_suite, suite_names


def find_metrics(names: Sequence[str]) -> list[Suite]:
    """Return suites with the metrics that are named.

    Parameters
    ----------
    names
        Names of suites and metrics, in any order. A metric is named by its id or by the name in its
        source document: ``M5`` finds metrics of two suites. Without a suite, all suites are
        searched. Without a metric, each suite has all its metrics.

    Raises
    ------
    UsageError
        A name that is neither a suite nor a metric of the suites.
    """
    asked = [name for name in names if name not in suite_names()]
    suites = [load_suite(name) for name in suite_names() if name in names or {*asked} >= {*names}]
    by_name: dict[str, set[str]] = {}
    for metric in (metric for suite in suites for metric in suite.metrics):
        for name in (metric.id, *re.findall(r"\b[A-Z]\d+[a-z]?\b", metric.source)):
            by_name.setdefault(name, set()).add(metric.id)
    for name in asked:
        if name not in by_name:
            within = (
                f" of {listed([suite.name for suite in suites])}" if {*names} != {*asked} else ""
            )
            known = [*by_name, *(() if within else suite_names())]
            raise UsageError(
                f"{name!r} is not a suite or a metric{within}.", did_you_mean(name, known)
            )
    wanted = set().union(*(by_name[name] for name in asked))
    found = [
        dataclasses.replace(
            suite,
            metrics=tuple(metric for metric in suite.metrics if not asked or metric.id in wanted),
        )
        for suite in suites
    ]
    return [suite for suite in found if suite.metrics]


def metric_range(metric: Metric) -> str:
    """Return a metric's range as an interval, open where it is unbounded."""
    low = "(-inf" if metric.minimum is None else f"[{metric.minimum:g}"
    high = "inf)" if metric.maximum is None else f"{metric.maximum:g}]"
    return f"{low}, {high}"


def metrics_text(suite: Suite) -> str:
    """Return a card a metric, as plain text."""
    title = f"{suite.name} (version {suite.version}): {suite.title}"
    return "\n\n".join([title, *(_card(metric) for metric in suite.metrics)])


def metric_facts(metric: Metric) -> dict[str, str]:
    """Return what a metric's card says by the name of each line; nothing that is not declared."""
    facts = {
        "table": metric.table,
        "formula": metric.formula,
        **{plain_formula(symbol): plain_words(text) for symbol, text in metric.symbols},
        "range": f"{metric_range(metric)}, {_direction(metric)}",
        "reading": metric.reading,
        "bands": bands_text(metric.bands),
        "example": metric.example,
        "note": metric.note,
        "uses": ", ".join(metric.uses),
        "only in": ", ".join(metric.conditions),
        "headline": "yes" if metric.headline else "",
        "same as": metric.same_test_as,
        "fixed": fixed_rows(metric),
        "scale": f"one for each {metric.scale_by}" if metric.scale_by else "",
        "baseline": ", ".join(metric.baselines),
        "null": metric.null_rule,
        "source": metric.source,
    }
    return {name: fact for name, fact in facts.items() if fact}


def fixed_rows(metric: Metric) -> str:
    """Return the rows in which a definition fixes the value, such as ``multi_user is false``."""
    rules = [f"{column} is {str(value).lower()}" for column, value in metric.fixed_where]
    return " or ".join(rules)


def _card(metric: Metric) -> str:
    lines = [f"  {name:<8} {fact}" for name, fact in metric_facts(metric).items()]
    return "\n".join([f"{metric.id}  {metric.name}", *lines])


def metrics_json(suites: Sequence[Suite]) -> str:
    """Return every declaration of the suites' metrics as JSON."""
    return json.dumps(
        {
            suite.name: {
                "title": suite.title,
                "version": suite.version,
                "metrics": [_record(metric) for metric in suite.metrics],
            }
            for suite in suites
        },
        indent=2,
        ensure_ascii=False,
    )


def _record(metric: Metric) -> dict[str, Any]:
    """Return a declaration as JSON has it: rules and evidence without polars expressions."""
    record = {field.name: getattr(metric, field.name) for field in dataclasses.fields(metric)}
    del record["derivation"]
    return record | {
        "bands": [dataclasses.asdict(band) for band in metric.bands],
        "null_when": [{"reason": rule.reason, "if": rule.text} for rule in metric.null_when],
        "evidence": [
            {"table": of.table or metric.table, "columns": [*of.names, *of.columns]}
            for of in metric.evidence
        ],
    }


def _direction(metric: Metric) -> str:
    return "no direction" if metric.better == "neither" else f"{metric.better} is better"
