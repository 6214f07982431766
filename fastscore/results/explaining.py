"""Why a number of a dialogue is what it is: scored again by itself."""

import dataclasses
import json
import random
from collections.abc import Sequence

import polars as pl

from fastscore.errors import RunError, UsageError, nearest
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.dialogues import Dialogues
from fastscore.results.runs import Run
from fastscore.results.show_explanations import explanations_text
from fastscore.suites.declarations import Metric
from fastscore.suites.showing import Derivation, Dialogue, Explanation, Number, derive
from fastscore.wording import worded

SEMANTIC_TOLERANCE = 1e-6
_PLACES = ("utterance_index", "step", "turn", "segment", "shift", "turn_pair_id", "message_id")


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Explanations:
    """Why numbers of a dialogue are what they are.

    Parameters
    ----------
    dialogue
        The dialogue's name.
    file
        Its log.
    explanations
        One for each value: formula, numbers in it, and evidence.
    text
        All of it as text, for people.
    """

    dialogue: str
    file: str
    explanations: tuple[Explanation, ...]
    text: str

    def __repr__(self) -> str:
        return self.text


def explain(dialogues: Dialogues, row: int, metrics: Sequence[str]) -> list[Explanation]:
    """Explain metrics of one dialogue.

    Parameters
    ----------
    dialogues
        Those of a complete run.
    row
        The dialogue's place in the run's table ``dialogues``.
    metrics
        Ids of metrics; for one of turns or steps every row of the dialogue is explained.

    Raises
    ------
    UsageError
        An unknown metric, or a run that was scored with what is no longer there.
    InputError
        The log is no longer what was scored.
    RunError
        Scored again, a number is not the run's.
    """
    declared = {metric.id: metric for metric in dialogues.suite.metrics}
    for id in metrics:
        if id not in declared:
            raise UsageError(
                f"Suite {dialogues.suite.name!r} has no metric {id!r}.", nearest(id, declared)
            )
    dialogues.run.require_declared()
    (committed,) = dialogues.tables([row])
    dialogue = dialogues.rescore(committed)
    found = []
    for id in metrics:
        metric = declared[id]
        again, before = dialogue.tables[metric.table], committed[metric.table]
        if not _same(again[id], before[id], dialogues.run.manifest.embedder is not None):
            raise RunError(
                f"{dialogues.run.path}: {id} of {dialogues.names['name'][row]!r} is not what it is "
                "when the dialogue is scored again.",
                "See what is damaged with `fastscore summary RUN --verify`.",
            )
        found += _rows(dialogues, dialogue, metric, before[id].to_list())
    return found


def _same(again: pl.Series, before: pl.Series, by_meaning: bool) -> bool:
    """Tell whether scores are the same: bit by bit, or with vectors within 1e-6."""
    if not by_meaning or not again.dtype.is_numeric():
        return again.equals(before)
    if len(again) != len(before) or not again.is_null().equals(before.is_null()):
        return False
    return bool(((again - before).abs().fill_null(0.0) <= SEMANTIC_TOLERANCE).all())


def _rows(
    dialogues: Dialogues, dialogue: Dialogue, metric: Metric, committed: Sequence[Number]
) -> list[Explanation]:
    found = []
    rows = dialogue.tables[metric.table].iter_rows(named=True)
    for row, value in zip(rows, committed, strict=True):
        reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"] or ()}
        working = Derivation(text=metric.formula, result=None)
        if value is not None:
            explain = dialogues.suite.explain
            working = (
                derive(dialogue, metric, row)
                if explain is None
                else explain(dialogue, metric, row, dialogues.options)
            )
        found.append(
            Explanation(
                metric=metric.id,
                place=", ".join(
                    f"{name.replace('_', ' ')} {row[name]}"
                    for name in _PLACES
                    if name in row and metric.table != LABEL_TABLE
                ),
                value=value,
                reason="" if value is not None else reasons.get(metric.id, "switched off"),
                numerator=working.numerator,
                denominator=working.denominator,
                working=working.text,
                result=working.result,
                evidence=working.evidence,
                lines=_lines(dialogue, None if metric.table == LABEL_TABLE else row.get("line")),
            )
        )
    return found


def _lines(dialogue: Dialogue, line: int | None) -> tuple[int, ...]:
    """Return the line of a row, all lines of its dialogue where a row is one."""
    if line is not None:
        return (line,)
    return () if dialogue.raw is None else tuple(dialogue.raw["line"].unique().sort())


def choose_dialogue(
    dialogues: Dialogues,
    name: str | None = None,
    *,
    worst: str | None = None,
    best: str | None = None,
    seed: int | None = None,
) -> int:
    """Choose a dialogue: by a part of its name, by a metric, or at random.

    Raises
    ------
    UsageError
        None of these, several, or nothing that they stand for.
    """
    ways = [way for way in (name, worst, best, seed) if way is not None]
    if len(ways) != 1:
        raise UsageError(
            f"A dialogue is chosen in one way, not in {len(ways)}." if ways else "Which dialogue?",
            "Name it, or use --worst METRIC, --best METRIC or --random.",
        )
    if dialogues.names.is_empty():
        raise UsageError(
            f"{dialogues.run.path}: the run has no dialogue.",
            "See its rejected lines in table `rejects`.",
        )
    if name is not None:
        return dialogues.find(name)
    if seed is not None:
        return random.Random(seed).randrange(dialogues.names.height)
    metric = str(worst or best)
    ranked = dialogues.ranked(metric)
    if not ranked:
        raise UsageError(f"{dialogues.run.path}: no dialogue has a {metric}.")
    return ranked[0 if worst else -1]


def explain_run(
    run: Run,
    dialogue: str | None = None,
    metric: str | None = None,
    *,
    worst: str | None = None,
    best: str | None = None,
    seed: int | None = None,
) -> Explanations:
    """Explain numbers of a dialogue that is named or chosen; see `fastscore.explain`."""
    dialogues = Dialogues(run)
    row = choose_dialogue(dialogues, dialogue, worst=worst, best=best, seed=seed)
    chosen = metric or worst or best
    found = explain(dialogues, row, [chosen] if chosen else dialogues.explained_metrics)
    file = dialogues.tables([row])[0][LABEL_TABLE]["file"][0]
    text = worded(explanations_text(dialogues, row, found))
    return Explanations(dialogues.names["name"][row], file, tuple(found), text)


def explanations_json(name: str, file: str, found: Sequence[Explanation]) -> str:
    """Return explanations as JSON, every number at full precision."""
    content = {
        "dialogue": name,
        "file": file,
        "explanations": [dataclasses.asdict(one) for one in found],
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
