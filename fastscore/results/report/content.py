"""What a report says, as plain values for its template: nothing of a log is markup here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.results.compare import Comparison, compare
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.dialogues import Dialogues
from fastscore.results.findings import find, with_interval
from fastscore.results.metric_cards import metric_range
from fastscore.results.number_text import counted, decimals_for, interval_text, number_text, p_text
from fastscore.results.readings import bands_text, reading_of
from fastscore.results.report.charts import Charts
from fastscore.results.report.marked import marked
from fastscore.results.runs import Run
from fastscore.results.show_comparison import headline, verdict
from fastscore.results.summary_table import ARROWS, main_reason
from fastscore.suites.base import CommittedRun, ContributesSections, ShowsDialogues, Suite
from fastscore.suites.declarations import NULL_REASONS, Metric
from fastscore.suites.registry import load_suite
from fastscore.suites.showing import Dialogue, DialogueView, Listing
from fastscore.suites.summary import ALL

BINS = 20
GROUPS_SHOWN = 12
DIALOGUES_LISTED = 300
DIALOGUES_SHOWN = 48
COLUMNS_LISTED = 8
TURNS_SHOWN = 120
REJECTS_SHOWN = 200
LISTED_ROWS = 60
SAMPLES = 1_000
_DESIGNS: tuple[dict[str, Any], ...] = (
    {},
    {"pair_by": "dialogue"},
    {"pair_by": "dialogue", "unpaired": True},
)
"""Pairs by id; else by the mean of all that share an id; else independent samples."""

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Named:
    """A run and what a page calls it."""

    name: str
    run: Run


def make_content(runs: Sequence[Run]) -> Values:
    """Gather everything that the page of one run or several shows.

    Raises
    ------
    UsageError
        Runs of different suites.
    """
    suite = load_suite(runs[0].manifest.suite)
    for run in runs[1:]:
        if run.manifest.suite != suite.name:
            raise UsageError(
                f"{runs[0].path} is a run of {suite.name}, {run.path} one of "
                f"{run.manifest.suite}: a report is about one suite."
            )
    named = [Named(name, run) for name, run in zip(names_of(runs), runs, strict=True)]
    charts = Charts()
    comparisons, notes = _comparisons(named)
    shown = {one.name: _dialogues(suite, one) for one in named}
    return {
        "suite": suite,
        "runs": [_about(one) for one in named],
        "findings": _findings(named, comparisons),
        "notes": notes,
        "metrics": _metrics(suite, named, comparisons, charts),
        "sections": [
            section for one in named for section in _sections(suite, one, charts, len(named) > 1)
        ],
        "dialogues": shown,
        "nulls": [_nulls(one) for one in named],
        "rejects": [_rejects(one) for one in named],
        "null_reasons": NULL_REASONS,
    }


def names_of(runs: Sequence[Run]) -> list[str]:
    """Call each run by its folder's name, or by its whole path where two share one."""
    short = [run.path.resolve().name for run in runs]
    return [
        name if short.count(name) == 1 else str(run.path)
        for name, run in zip(short, runs, strict=True)
    ]


def _about(one: Named) -> Values:
    manifest = one.run.manifest
    tables = [counted(about["rows"], name) for name, about in reversed(manifest.tables.items())]
    return {
        "name": one.name,
        "path": str(one.run.path),
        "signature": one.run.signature,
        "counts": ", ".join(tables),
        "inputs": manifest.inputs[:REJECTS_SHOWN],
        "n_inputs": len(manifest.inputs),
        "options": manifest.options,
        "environment": manifest.environment,
    }


def _comparisons(named: Sequence[Named]) -> tuple[dict[str, Comparison], list[str]]:
    """Compare every further run with the first: by pairs, else as independent samples."""
    found: dict[str, Comparison] = {}
    notes = []
    first = named[0]
    for one in named[1:]:
        for place, how in enumerate(_DESIGNS):
            try:
                comparison = compare(
                    first.run,
                    one.run,
                    allow_different_signatures=True,
                    samples=SAMPLES,
                    **how,
                )
            except FastscoreError as error:
                if place == len(_DESIGNS) - 1:
                    notes.append(f"{one.name} is not compared with {first.name}: {error.message}")
                continue
            found[one.name] = comparison
            notes += comparison.notes
            break
    return found, notes


def _findings(named: Sequence[Named], comparisons: Mapping[str, Comparison]) -> list[Values]:
    found = [
        {"kind": "compared", "text": headline(comparison), "metric": "", "run": ""}
        for comparison in comparisons.values()
    ]
    several = len(named) > 1
    for one in named:
        found += [
            {
                "kind": finding.kind,
                "text": finding.text,
                "metric": finding.metric,
                "run": one.name if several else "",
            }
            for finding in find(one.run)
        ]
    return found


def _metrics(
    suite: Suite,
    named: Sequence[Named],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> list[Values]:
    wholes = {
        one.name: {
            row["metric"]: row
            for row in one.run.summary.filter(pl.col("group") == ALL).iter_rows(named=True)
        }
        for one in named
    }
    declared = {metric.id: metric for metric in suite.metrics}
    tables = [table.name for table in reversed(suite.tables)]
    ids = [id for id in declared if any(id in whole for whole in wholes.values())]
    ids.sort(key=lambda id: (declared[id].part, tables.index(declared[id].table)))
    binned = {one.name: _bins(one, [declared[id] for id in ids], wholes) for one in named}
    return [_metric(declared[id], named, wholes, binned, comparisons, charts) for id in ids]


def _metric(
    metric: Metric,
    named: Sequence[Named],
    wholes: Mapping[str, Mapping[str, Values]],
    binned: Mapping[str, Mapping[str, tuple[list[float], list[int]]]],
    comparisons: Mapping[str, Comparison],
    charts: Charts,
) -> Values:
    sides = []
    for one in named:
        record = wholes[one.name].get(metric.id)
        sides.append(
            {
                "run": one.name,
                "mean": None if record is None else record["mean"],
                "text": "-" if record is None else with_interval(record),
                "n": 0 if record is None else record["n"],
                "n_null": 0 if record is None else record["n_null"],
                "reason": main_reason(record) if record and record["n_null"] else "",
                "micro": None if record is None else record["micro"],
                "reading": reading_of(record["mean"], metric.bands) if record else None,
                "minimum": None if record is None else record["minimum"],
                "maximum": None if record is None else record["maximum"],
            }
        )
    bins = [
        (one.name, binned[one.name][metric.id]) for one in named if metric.id in binned[one.name]
    ]
    histogram = None
    if bins and not metric.part:
        edges = bins[0][1][0]
        title = f"Distribution of {metric.name} over {metric.table}"
        histogram = charts.histogram(edges, [(name, counts) for name, (_, counts) in bins], title)
    return {
        "metric": metric,
        "arrow": ARROWS[metric.better].strip(),
        "range": metric_range(metric),
        "bands": bands_text(metric.bands),
        "sides": sides,
        "differences": [
            _difference(metric, name, comparison) for name, comparison in comparisons.items()
        ],
        "histogram": histogram,
        "groups": [] if metric.part else _groups(metric, named, charts),
    }


def _difference(metric: Metric, name: str, comparison: Comparison) -> Values:
    rows = comparison.differences.filter(pl.col("metric") == metric.id)
    if rows.is_empty():
        return {"run": name, "text": "-", "p": "-", "verdict": "", "value": None}
    row = rows.row(0, named=True)
    decimals = decimals_for((row["mean_a"], row["mean_b"]))
    return {
        "run": name,
        "value": row["difference"],
        "text": interval_text(row["difference"], row["low"], row["high"], decimals),
        "p": p_text(row["t_p_holm"] if row["t_p_holm"] is not None else row["rank_p_holm"]),
        "verdict": verdict(row, metric),
    }


def _groups(metric: Metric, named: Sequence[Named], charts: Charts) -> list[Values]:
    found = []
    summaries = [
        one.run.summary.filter(
            pl.col("metric") == metric.id, pl.col("group") != ALL, pl.col("n") > 0
        )
        for one in named
    ]
    for one, summary in zip(named, summaries, strict=True):
        for (group,), rows in summary.group_by("group", maintain_order=True):
            if not rows.height >= 2:
                continue
            shown = rows.head(GROUPS_SHOWN).to_dicts()
            points = [
                (str(row["value"]), row["mean"], row["ci_low"], row["ci_high"]) for row in shown
            ]
            name = f"{metric.name} by {group}"
            found.append(
                {
                    "title": name if len(named) == 1 else f"{name}, {one.name}",
                    "group": group,
                    "rows": [
                        {**row, "text": with_interval(row), "reason": _reason(row)} for row in shown
                    ],
                    "more": rows.height - len(shown),
                    "chart": charts.intervals(
                        points,
                        f"Mean of {name} with 95 % intervals",
                        beside=[end for other in summaries for end in _ends(other, group)],
                        minimum=metric.minimum,
                        maximum=metric.maximum,
                    ),
                }
            )
    return found


def _ends(summary: pl.DataFrame, group: object) -> list[float]:
    """List what an axis must reach to show the groups of a run."""
    rows = summary.filter(pl.col("group") == group).head(GROUPS_SHOWN)
    return [end for name in ("mean", "ci_low", "ci_high") for end in rows[name].drop_nulls()]


def _reason(row: Values) -> str:
    return main_reason(row) if row["n_null"] else ""


def _bins(
    one: Named, metrics: Sequence[Metric], wholes: Mapping[str, Mapping[str, Values]]
) -> dict[str, tuple[list[float], list[int]]]:
    """Count the values of metrics in equal bins over their range, all in one pass a table."""
    ends = {}
    for metric in metrics:
        seen = [whole[metric.id] for whole in wholes.values() if metric.id in whole]
        lows = [row["minimum"] for row in seen if row["minimum"] is not None]
        highs = [row["maximum"] for row in seen if row["maximum"] is not None]
        if metric.part or not lows or metric.id not in wholes[one.name]:
            continue
        low = min(lows) if metric.minimum is None else min(metric.minimum, *lows)
        high = max(highs) if metric.maximum is None else max(metric.maximum, *highs)
        if metric.minimum == -1.0 and min(lows) >= 0:
            low = 0.0
        ends[metric.id] = (low, high if high > low else low + 1.0)
    chosen = [metric for metric in metrics if metric.id in ends]
    queries = [
        one.run.table(metric.table)
        .select(
            ((pl.col(metric.id).cast(pl.Float64) - ends[metric.id][0]) * _scale(*ends[metric.id]))
            .floor()
            .clip(0, BINS - 1)
            .cast(pl.Int32)
            .alias("bin")
        )
        .drop_nulls()
        .group_by("bin")
        .agg(pl.len().alias("n"))
        for metric in chosen
    ]
    found = {}
    for metric, frame in zip(chosen, pl.collect_all(queries, engine="streaming"), strict=True):
        low, high = ends[metric.id]
        counts = dict(frame.iter_rows())
        edges = [low + (high - low) * place / BINS for place in range(BINS + 1)]
        found[metric.id] = (edges, [counts.get(place, 0) for place in range(BINS)])
    return found


def _scale(low: float, high: float) -> float:
    return BINS / (high - low)


def _sections(suite: Suite, one: Named, charts: Charts, several: bool) -> list[Values]:
    if not isinstance(suite, ContributesSections):
        return []
    options = Dialogues(one.run).options
    seen = CommittedRun(name=one.name, signature=one.run.signature, tables=one.run.tables)
    return [
        {
            "title": f"{section.title}: {one.name}" if several else section.title,
            "text": section.text,
            "charts": [
                {"title": chart.title, "svg": charts.chart(chart), "paper": False}
                for chart in section.charts
            ]
            + [
                {
                    "title": f"{drawing.title}. {drawing.caption}",
                    "svg": charts.placed(drawing.svg, drawing.title),
                    "paper": True,
                }
                for drawing in section.drawings
            ],
            "listings": [listing_of(listing) for listing in section.listings],
        }
        for section in suite.report_sections(seen, options)
    ]


def listing_of(listing: Listing) -> Values:
    """Write a small table's cells, and say how many rows are left out."""
    frame = listing.frame.head(LISTED_ROWS)
    return {
        "title": listing.title,
        "columns": [
            {"name": name, "right": dtype.is_numeric()} for name, dtype in frame.schema.items()
        ],
        "rows": [[cell_of(value) for value in row] for row in frame.iter_rows()],
        "more": listing.frame.height - frame.height,
    }


def cell_of(value: Any) -> str:
    """Write a value for a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value, decimals_for([value]))
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _dialogues(suite: Suite, one: Named) -> Values:
    """Choose dialogues to list and to show: the worst, median and best of each metric."""
    dialogues = Dialogues(one.run)
    whole = set(one.run.summary.filter(pl.col("group") == ALL, pl.col("n") > 0)["metric"])
    metrics = [
        metric
        for metric in suite.metrics
        if metric.table == LABEL_TABLE and not metric.part and metric.id in whole
    ]
    groups = [name for name in one.run.summary["group"].unique(maintain_order=True) if name != ALL]
    scored = one.run.table(LABEL_TABLE)
    present = scored.collect_schema()
    labels = [name for name in groups if name in present][:2]
    values = (
        scored.select(*labels, *(metric.id for metric in metrics))
        .collect(engine="streaming")
        .with_columns(dialogues.names["name"])
        .with_row_index("row")
    )
    picks: dict[int, list[str]] = {}
    by_metric: dict[str, Values] = {}
    for metric in metrics:
        ordered = values.select("row", "name", metric.id).drop_nulls(metric.id)
        ordered = ordered.sort(metric.id, "name", descending=[metric.better == "lower", False])
        if ordered.is_empty():
            continue
        places = {"worst": 0, "median": ordered.height // 2, "best": ordered.height - 1}
        if metric.better == "neither":
            places = {"smallest": 0, "median": ordered.height // 2, "largest": ordered.height - 1}
        by_metric[metric.id] = {}
        for word, place in places.items():
            row = int(ordered["row"][place])
            if row not in picks and len(picks) >= DIALOGUES_SHOWN:
                continue
            picks.setdefault(row, []).append(f"{word} {metric.name}")
            by_metric[metric.id][word] = {
                "name": ordered["name"][place],
                "value": number_text(
                    ordered[metric.id][place], decimals_for([ordered[metric.id][place]])
                ),
            }
    listed = _listed(values, metrics, picks)
    return {
        "columns": metrics[:COLUMNS_LISTED],
        "labels": labels,
        "rows": [
            {
                "name": row["name"],
                "shown": row["row"] in picks,
                "labels": [cell_of(row[label]) for label in labels],
                "values": [
                    {
                        "value": row[metric.id],
                        "text": number_text(row[metric.id], decimals_for([row[metric.id]])),
                    }
                    for metric in metrics[:COLUMNS_LISTED]
                ],
            }
            for row in listed.iter_rows(named=True)
        ],
        "n": values.height,
        "by_metric": by_metric,
        **_shown(suite, dialogues, metrics, values, picks),
    }


def _listed(
    values: pl.DataFrame, metrics: Sequence[Metric], picks: Mapping[int, list[str]]
) -> pl.DataFrame:
    """Keep all dialogues, or those that are shown and the worst by the first metric."""
    if values.height <= DIALOGUES_LISTED or not metrics:
        return values.head(DIALOGUES_LISTED)
    first = metrics[0]
    worst = values.sort(
        first.id, "name", descending=[first.better == "lower", False], nulls_last=True
    ).head(DIALOGUES_LISTED - len(picks))
    rows = set(worst["row"]) | set(picks)
    return values.filter(pl.col("row").is_in(list(rows)))


def _shown(
    suite: Suite,
    dialogues: Dialogues,
    metrics: Sequence[Metric],
    values: pl.DataFrame,
    picks: Mapping[int, list[str]],
) -> Values:
    if not isinstance(suite, ShowsDialogues) or not picks:
        return {"shown": [], "note": ""}
    rows = sorted(picks)
    found, note = _read(suite, dialogues, rows)
    shown = []
    for row, dialogue in zip(rows, found, strict=True):
        view = suite.show_dialogue(dialogue, dialogues.options)
        scores = values.row(row, named=True)
        shown.append(
            {
                "name": scores["name"],
                "picked": picks[row],
                "file": dialogue.tables[LABEL_TABLE]["file"][0],
                "scores": [
                    (metric, number_text(scores[metric.id], decimals_for([scores[metric.id]])))
                    for metric in metrics
                ],
                **view_of(view),
            }
        )
    return {"shown": shown, "note": note}


def _read(suite: Suite, dialogues: Dialogues, rows: Sequence[int]) -> tuple[list[Dialogue], str]:
    """Read the chosen dialogues: from the tables, and from the logs where the texts are there."""
    if isinstance(suite, ShowsDialogues) and suite.texts_in_logs:
        try:
            return dialogues.read(rows), ""
        except (InputError, UsageError, OSError) as error:
            note = f"The texts of dialogues are not shown. {error}"
            return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], note
    return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], ""


def view_of(view: DialogueView) -> Values:
    """Write a dialogue's turns, as many as a page can hold."""
    return {
        "turns": [
            {
                "speaker": turn.speaker,
                "place": turn.place,
                "text": marked(turn.text, turn.marks),
                "scores": [
                    (name, number_text(value, decimals_for([value])))
                    for name, value in turn.scores.items()
                ],
                "notes": turn.notes,
            }
            for turn in view.turns[:TURNS_SHOWN]
        ],
        "more_turns": max(0, len(view.turns) - TURNS_SHOWN),
        "listings": [listing_of(listing) for listing in view.listings],
    }


def _nulls(one: Named) -> Values:
    rows = one.run.summary.filter(pl.col("group") == ALL, pl.col("n_null") > 0)
    return {"run": one.name, "rows": rows.to_dicts()}


def _rejects(one: Named) -> Values:
    counts = one.run.rejects.group_by("reason").agg(n=pl.col("count").sum())
    first = one.run.rejects.head(REJECTS_SHOWN)
    by_reason, rows = pl.collect_all([counts, first], engine="streaming")
    return {
        "run": one.name,
        "n": int(by_reason["n"].sum()),
        "reasons": by_reason.sort("n", "reason", descending=[True, False]).rows(),
        "rows": rows.to_dicts(),
    }
