"""Write what suites declare into their pages: metrics, an overview, sources, columns.

``python docs/metric_sections.py`` writes the text between each pair of markers in
``docs/suites/*.md``. A test compares pages with declarations.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from fastscore.results.metric_text import bands_text, fixed_rows, metric_range
from fastscore.suites.base import Suite, headline_metrics
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite

PAGES = Path(__file__).parent / "suites"
MARKED = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def filled(page: str, suite: Suite) -> str:
    """Return a page with the declarations of its suite between its markers."""
    return MARKED.sub(lambda found: found[1] + "\n" + WRITERS[found[2]](suite) + found[3], page)


def overview_table(suite: Suite) -> str:
    """Return a table of a suite's metrics, with links to their sections."""
    headline = {metric.id for metric in headline_metrics(suite.metrics)}
    rows = [["Metric", "Name", "Range", "Better", "Table", "Headline"]]
    for each in suite.metrics:
        slug = re.sub(r"[^\w\s-]", "", f"{each.id}: {each.name}").lower().replace(" ", "-")
        scale = "-" if each.scale.better == "neither" else each.scale.better
        found = "yes" if each.id in headline else ""
        link = f"[`{each.id}`](#{slug})"
        rows.append([link, each.name, metric_range(each), scale, f"`{each.table}`", found])
    return _table(rows, ["---"] * 6)


def sources(suite: Suite) -> str:
    """Return what is known of a suite's sources and of its agreement with people."""
    lines = [f"- Source: {paper}" for paper in suite.papers]
    lines.append(f"- Agreement with people: {suite.agreement}")
    lines.append(f"- Version of the suite: {suite.version}. It grows when a definition changes.")
    return "".join(f"{line}\n" for line in (*lines, ""))


def metric_sections(suite: Suite) -> str:
    """Return a section a metric: formula, symbols, range, example, null rule, source."""
    return "".join(f"{line}\n" for metric in suite.metrics for line in _section(metric))


def _section(metric: Metric) -> Iterator[str]:
    yield from (f"### {metric.id}: {metric.name}", "")
    if metric.formula.latex:
        yield from ("```math", metric.formula.latex, "```", "")
    for symbol, meaning in metric.formula.symbols:
        yield f"- ${symbol}$: {meaning}"
    yield from ("",) if metric.formula.symbols else ()
    better = (
        "no better direction"
        if metric.scale.better == "neither"
        else f"{metric.scale.better} is better"
    )
    yield from (f"**Range.** {metric_range(metric)}, {better}. Table `{metric.table}`.", "")
    bands = bands_text(metric.scale.bands)
    for label, text in (
        ("How to read it.", metric.reading),
        ("Bands.", f"{bands}." if bands else ""),
        ("Example.", metric.example),
        ("Note.", metric.note),
    ):
        if text:
            yield from (f"**{label}** {text}", "")
    yield from (*_null_lines(metric), "", f"**Source.** {metric.source}.", "")


def _null_lines(metric: Metric) -> Iterator[str]:
    if metric.null_rules != metric.null_when or not metric.null_when:
        yield f"**Null.** {metric.null_rule[:1].upper()}{metric.null_rule[1:]}."
        return
    yield from ("**Null if**", "")
    for rule in metric.null_rules:
        reason = f"`{rule.reason}`" if rule.reason else "without a reason"
        yield f"- {reason}: {rule.text}"


def headline_table(suite: Suite) -> str:
    """Return a table of a suite's headline metrics."""
    rows = [["Metric", "Value fixed by definition if", "Scale", "Baselines: an agent that is"]]
    for metric in headline_metrics(suite.metrics):
        scale = f"one for each `{metric.scale.by}`" if metric.scale.by else ""
        rows.append([f"`{metric.id}`", fixed_rows(metric), scale, ", ".join(metric.baselines)])
    return _table(rows, ["---"] * 4)


def uses_table(suite: Suite) -> str:
    """Return a table of what a suite's metrics use: a row a metric, a column a source."""
    used = {source: None for metric in suite.metrics for source in metric.uses}
    rows = [["Metric", *used, "Conditions"]]
    for metric in suite.metrics:
        cells = ["yes" if source in metric.uses else "" for source in used]
        rows.append([f"`{metric.id}`", *cells, ", ".join(metric.conditions) or "all"])
    return _table(rows, ["---", *(":-:" for _ in used), "---"])


def columns_table(suite: Suite) -> str:
    """Return a table of the columns of a suite's output, except metrics and their sums."""
    rows = [["Table", "Column", "Content"]]
    counted = {(metric.table, name) for metric in suite.metrics for name in metric.micro or ()}
    for table in suite.tables:
        of_metrics = {each.name for each in table.columns if each.metric}
        of_metrics |= {name for of_table, name in counted if of_table == table.name}
        own = [column for column in table.columns if column.name not in of_metrics]
        rows += [
            [f"`{table.name}`", f"`{each.name}`", each.description.replace("|", "\\|")]
            for each in own
        ]
    return _table(rows, ["---"] * 3)


def _table(rows: list[list[str]], rule: list[str]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (rows[0], rule, *rows[1:])) + "\n"


WRITERS = {
    "overview": overview_table,
    "sources": sources,
    "metrics": metric_sections,
    "headline": headline_table,
    "uses": uses_table,
    "columns": columns_table,
}

if __name__ == "__main__":
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(filled(text, load_suite(path.stem)), encoding="utf-8")
