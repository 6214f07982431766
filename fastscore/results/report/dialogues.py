"""The dialogues of a page: a list of them, and some turn by turn."""

import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import takewhile

import polars as pl
from markupsafe import Markup, escape

from fastscore.errors import InputError, UsageError
from fastscore.logs.read.scan import LogsWarning
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.dialogues import Dialogues
from fastscore.results.report.values import Named, Values, cell_of, listing_of, value_text
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.showing import Dialogue, DialogueView, Mark
from fastscore.suites.summary import ALL

LONGEST_TEXT = 4_000


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """Return a text as markup in which nothing but the marks is markup.

    Parameters
    ----------
    text
        A text of a log; what is beyond `LONGEST_TEXT` characters is left out and counted.
    marks
        Places in it, ascending and apart from each other.
    """
    shown = text[:LONGEST_TEXT]
    parts = []
    place = 0
    for mark in marks:
        start, stop = max(place, mark.start), min(mark.stop, len(shown))
        if start >= stop:
            continue
        kind = "good" if mark.good else "bad"
        parts.append(escape(shown[place:start]))
        parts.append(
            Markup('<mark class="{}" title="{}">{}</mark>').format(
                kind, mark.label, shown[start:stop]
            )
        )
        place = stop
    parts.append(escape(shown[place:]))
    if len(text) > LONGEST_TEXT:
        left_out = Markup('<span class="cut"> … {:,} more characters</span>')
        parts.append(left_out.format(len(text) - LONGEST_TEXT))
    return Markup("").join(parts)


DIALOGUES_LISTED = 300
DIALOGUES_SHOWN = 48
COLUMNS_LISTED = 8
TURNS_SHOWN = 120


def dialogues_of(suite: Suite, one: Named) -> Values:
    """Choose dialogues to list and to show: the worst, median and best of each metric."""
    dialogues = Dialogues(one.run)
    metrics = _whole_metrics(suite, one)
    groups = [name for name in one.run.summary["group"].unique(maintain_order=True) if name != ALL]
    scored = one.run.scan(LABEL_TABLE)
    present = scored.collect_schema()
    labels = [name for name in groups if name in present][:2]
    values = (
        scored.select(*labels, *(metric.id for metric in metrics))
        .collect(engine="streaming")
        .with_columns(dialogues.names["name"])
        .with_row_index("row")
    )
    picks, by_metric = _picks(values, metrics)
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
                        "text": value_text(row[metric.id]),
                    }
                    for metric in metrics[:COLUMNS_LISTED]
                ],
            }
            for row in listed.iter_rows(named=True)
        ],
        "n": values.height,
        "prefix": _common_start(values["name"]),
        "by_metric": by_metric,
        **_shown(suite, dialogues, metrics, values, picks),
    }


def _common_start(names: pl.Series) -> str:
    """Return how all names begin, whole words of it."""
    pairs = zip(str(names.min()), str(names.max()), strict=False)
    start = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return re.sub(r"[^\W_]*$", "", start) if len(names) > 1 else ""


def _whole_metrics(suite: Suite, one: Named) -> list[Metric]:
    """Return the metrics of which whole dialogues have values."""
    whole = set(one.run.summary.filter(pl.col("group") == ALL, pl.col("n") > 0)["metric"])
    return [
        metric
        for metric in suite.metrics
        if metric.table == LABEL_TABLE and not metric.is_secondary and metric.id in whole
    ]


def _picks(
    values: pl.DataFrame, metrics: Sequence[Metric]
) -> tuple[dict[int, list[tuple[str, str]]], dict[str, Values]]:
    """Choose the rows that are shown, with why, and name them by metric."""
    picks: dict[int, list[tuple[str, str]]] = {}
    by_metric: dict[str, Values] = {}
    for metric in metrics:
        ordered = values.select("row", "name", metric.id).drop_nulls(metric.id)
        ordered = ordered.sort(metric.id, "name", descending=[metric.better == "lower", False])
        if ordered.is_empty():
            continue
        by_metric[metric.id] = {}
        for word, place in _places(ordered[metric.id], metric).items():
            row = int(ordered["row"][place])
            if row not in picks and len(picks) >= DIALOGUES_SHOWN:
                continue
            picks.setdefault(row, []).append((word, metric.name))
            by_metric[metric.id][word] = {
                "name": ordered["name"][place],
                "value": value_text(ordered[metric.id][place]),
            }
    return picks, by_metric


def _places(ordered: pl.Series, metric: Metric) -> dict[str, int]:
    """Name places in ordered values: the ends and the middle; ties at an end are called so."""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return {"one of equal ones" if ordered.len() > 1 else "the only one": 0}
    low, high = ("smallest", "largest") if metric.better == "neither" else ("worst", "best")
    ends = {0: (low, (ordered == first).sum()), ordered.len() - 1: (high, (ordered == last).sum())}
    words = {
        place: word if ties == 1 else f"one of the {ties:,} {word}"
        for place, (word, ties) in ends.items()
    }
    return {words[0]: 0, "median": ordered.len() // 2, words[ordered.len() - 1]: ordered.len() - 1}


def _listed(
    values: pl.DataFrame, metrics: Sequence[Metric], picks: Mapping[int, list[tuple[str, str]]]
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
    picks: Mapping[int, list[tuple[str, str]]],
) -> Values:
    if suite.show is None or not picks:
        return {"shown": [], "note": ""}
    rows = sorted(picks)
    found, note = _read(suite, dialogues, rows)
    shown = []
    for row, dialogue in zip(rows, found, strict=True):
        view = suite.show(dialogue)
        scores = values.row(row, named=True)
        shown.append(
            {
                "name": scores["name"],
                "picked": _why(picks[row]),
                "file": dialogue.tables[LABEL_TABLE]["file"][0],
                "scores": [(metric, value_text(scores[metric.id])) for metric in metrics],
                **_view(view),
            }
        )
    return {"shown": shown, "note": note}


def _why(picked: Sequence[tuple[str, str]]) -> str:
    """Say for which metrics a dialogue is shown, the worst, median and best ones together."""
    words = dict.fromkeys(word for word, _ in picked)
    return "; ".join(
        f"{word}: {', '.join(name for one, name in picked if one == word)}" for word in words
    )


def _read(suite: Suite, dialogues: Dialogues, rows: Sequence[int]) -> tuple[list[Dialogue], str]:
    """Read the chosen dialogues: from the tables, and from the logs where the texts are there."""
    if suite.texts_in_logs:
        try:
            return dialogues.read(rows), ""
        except (InputError, UsageError, OSError) as error:
            note = f"The texts of dialogues are not shown. {error}"
            warnings.warn(note, LogsWarning, stacklevel=2)
            return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], note
    return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], ""


def _view(view: DialogueView) -> Values:
    """Write a dialogue's turns, as many as a page can hold."""
    return {
        "turns": [
            {
                "speaker": turn.speaker,
                "place": turn.place,
                "text": marked(turn.text, turn.marks),
                "scores": [(name, value_text(value)) for name, value in turn.scores.items()],
                "notes": turn.notes,
            }
            for turn in view.turns[:TURNS_SHOWN]
        ],
        "more_turns": max(0, len(view.turns) - TURNS_SHOWN),
        "listings": [listing_of(listing) for listing in view.listings],
    }
