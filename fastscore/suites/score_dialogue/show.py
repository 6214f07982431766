"""A dialogue's predictions beside what was said, and how utility moves from step to step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.settings.options import build_options
from fastscore.statistics.clustered import clustered_mean
from fastscore.suites.base import CommittedRun, Dialogue, Events
from fastscore.suites.score_dialogue.events import read_events
from fastscore.suites.score_dialogue.metrics import METRICS
from fastscore.suites.score_dialogue.options import ScoreDialogue
from fastscore.suites.score_dialogue.score import score_events
from fastscore.suites.showing import (
    Chart,
    DialogueView,
    Section,
    Series,
    Turn,
    matched_characters,
    spoken,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

_SCORES = ("lexical_similarity", "semantic_similarity", "earliness", "U_step")
_LATEST_STEP = 30


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out each utterance: what was said, then every prediction of it.

    Characters that the best prediction has in common with what was said are marked.
    """
    steps = dialogue.tables["steps"].partition_by("utterance_index", as_dict=True)
    turns = []
    for utterance in dialogue.tables["utterances"].iter_rows(named=True):
        turns += _turns(utterance, steps.get((utterance["utterance_index"],)))
    return DialogueView(turns=tuple(turns))


def _turns(utterance: Mapping[str, Any], steps: pl.DataFrame | None) -> list[Turn]:
    place = f"utterance {utterance['utterance_index']}"
    said = Turn(
        speaker="said",
        text=utterance["ground_truth"],
        place=place,
        scores={"U_best": utterance["U_best"]},
    )
    turns = [said]
    for step in steps.iter_rows(named=True) if steps is not None else ():
        best = step["step"] == utterance["best_step"]
        turns.append(
            Turn(
                speaker="predicted",
                text=step["prediction"],
                place=f"step {step['step']}",
                scores={name: step[name] for name in _SCORES if step[name] is not None},
                marks=matched_characters(step["prediction"], utterance["ground_truth"])
                if best
                else (),
                notes=("best step",) if best else (),
            )
        )
    return turns


_LINES = {"lexical_similarity": "lexical", "semantic_similarity": "semantic", "U_step": "U_step"}


def _means_by_step(steps: pl.LazyFrame) -> tuple[Series, ...]:
    """Return a line with its 95 % intervals for each number that steps have."""
    by_dialogue = (
        steps.filter(pl.col("step") <= _LATEST_STEP)
        .group_by("step", "dialogue")
        .agg(pl.col(*_LINES).sum().name.suffix(":sum"), pl.col(*_LINES).count().name.suffix(":n"))
        .sort("step", "dialogue")
        .collect(engine="streaming")
    )
    return tuple(
        Series(name=label, frame=frame)
        for name, label in _LINES.items()
        if (frame := _line(by_dialogue.filter(pl.col(f"{name}:n") > 0), name)).height
    )


def _line(by_dialogue: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the mean at each step, with the dialogue as the unit of its interval."""
    metric = next(metric for metric in METRICS if metric.id == name)
    bounds = metric.scale.minimum, metric.scale.maximum
    rows = []
    for (step,), of_step in by_dialogue.group_by("step", maintain_order=True):
        sums, counts = of_step[f"{name}:sum"], of_step[f"{name}:n"]
        found = clustered_mean(sums, counts, bounds)
        rows.append((step, found.value, found.low, found.high))
    schema = {"x": pl.Int64(), "y": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
    return pl.DataFrame(rows, schema, orient="row")


def _best_steps(utterances: pl.LazyFrame) -> Series:
    """Count utterances by the step at which their utility is best."""
    best = (
        utterances.filter(pl.col("best_step").is_between(0, _LATEST_STEP))
        .group_by(pl.col("best_step").alias("x"))
        .agg(pl.len().alias("y"))
        .sort("x")
        .collect(engine="streaming")
    )
    return Series(name="utterances", frame=best)


def report_sections(run: CommittedRun, options: object) -> list[Section]:
    """Show how similarity and utility move from step to step, over all utterances."""
    means, best = _means_by_step(run.tables["steps"]), _best_steps(run.tables["utterances"])
    return [
        Section(
            title="Utility by step",
            text="Mean similarity of the predictions to what was said, and mean utility, at each "
            "step of an utterance. Similarity should rise as more is heard; earliness makes early "
            "steps worth more.",
            charts=(
                Chart(title="Mean by step", x_label="step", y_label="mean", series=means),
                Chart(
                    title="Step at which utterances reach their best utility",
                    x_label="best step",
                    y_label="utterances",
                    series=(best,),
                    bars=True,
                ),
            ),
        )
    ]


def evidence(
    events: Events, vectors: "VectorView", options: ScoreDialogue
) -> dict[str, pl.DataFrame]:
    """Score one dialogue; put beside each step the ground truth that it is compared with."""
    tables = score_events(events, vectors, options)
    of_step = ("dialogue", "utterance_index")
    ground_truths = tables["utterances"].select(*of_step, "ground_truth")
    steps = tables["steps"].join(ground_truths, on=of_step, how="left", maintain_order="left")
    return {**tables, "steps": steps}


def spoken_turns(raw: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return predictions, each utterance after its own; see `SPOKEN_TURNS`."""
    frames = read_events(raw, build_options(ScoreDialogue, options)).frames
    utterances = (
        frames["utterances"].with_row_index("utterance_row").cast({"utterance_row": pl.Int64})
    )
    number = pl.col("utterance_index").cast(pl.String)
    predicted = frames["steps"].join(utterances, on="utterance_row", how="left")
    turns = pl.concat(
        [
            predicted.select(
                "dialogue_row",
                "utterance_index",
                "step",
                speaker=pl.format("PREDICTION {} OF {}", "step", number),
                text="prediction",
                line="line",
            ),
            utterances.select(
                "dialogue_row",
                "utterance_index",
                step=pl.lit(None, dtype=pl.Int64),
                speaker=pl.format("UTTERANCE {}", number),
                text="ground_truth",
                line="line",
            ),
        ]
    ).sort("dialogue_row", "utterance_index", "step", nulls_last=True)
    lines = turns.group_by("dialogue_row").agg(pl.col("line").min())
    dialogues = frames["dialogues"].with_row_index("dialogue_row").cast({"dialogue_row": pl.Int64})
    placed = dialogues.join(lines, on="dialogue_row", how="left", maintain_order="left")
    return spoken(turns, placed, unit=("dialogue_uid", "challenge_uid"))
