"""A conversation turn by turn with concepts marked, and explanations with weights and phrases."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
from fastscore_kernels import ngram_copy_ratio

from fastscore.settings.extras import explained
from fastscore.suites.base import AnalysisSettings, CommittedRun, Dialogue, Events
from fastscore.suites.json_values import Problems
from fastscore.suites.preference_shift.concepts import prepared_matcher
from fastscore.suites.preference_shift.events import name_dialogues, read_messages
from fastscore.suites.preference_shift.metrics import mark_concepts
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.score import name_answers, score_with_counts
from fastscore.suites.showing import DialogueView, Listing, Section, Turn, spoken

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

_ABBREVIATIONS = (
    "CC is cross-coherence, the overlap of the user's and the system's concepts; CR context "
    "retention, the same by how rare concepts are; I interference, the share of copied words; TAS "
    "the turn adaptation score CC + CR - I; CAS the conversation adaptation score."
)


def show_dialogue(dialogue: Dialogue) -> DialogueView:
    """Lay out each turn and its answer, with shared, missing and unasked concepts marked."""
    turns = []
    for turn in dialogue.tables["turns"].iter_rows(named=True):
        user, system = set(turn["user_concepts"]), set(turn["system_concepts"])
        place = f"turn {turn['turn']}, segment {turn['segment']}"
        turns.append(
            Turn(
                speaker="user",
                text=turn["user_text"],
                place=place,
                marks=mark_concepts(turn["user_text"], turn["user_concepts"], system),
                notes=("preference shifts here",) if turn["is_shift"] else (),
            )
        )
        notes = [
            f"{word}: {', '.join(concepts)}"
            for word, concepts in (
                ("shared", sorted(user & system)),
                ("missing", turn["missing_concepts"]),
                ("not asked for", turn["hallucinated_concepts"]),
            )
            if concepts
        ]
        if turn["both_empty"]:
            notes.append("no concept in either text: CC is 1")
        turns.append(
            Turn(
                speaker=turn["model"] or "system",
                text=turn["system_text"],
                place=f"turn {turn['turn']}",
                scores={name: turn[name] for name in ("cc", "cr", "i", "tas")},
                marks=mark_concepts(turn["system_text"], turn["system_concepts"], user),
                notes=tuple(notes),
            )
        )
    shifts = dialogue.tables["shifts"].select("turn", "recovered", "delay")
    listings = (Listing(title="shifts", frame=shifts),) if shifts.height else ()
    return DialogueView(turns=tuple(turns), listings=listings)


def report_sections(run: CommittedRun, options: PreferenceShift) -> list[Section]:
    """Show the suite's own analysis: figures with their captions, and what it could not do."""
    with explained("The analysis of preference_shift"):
        from fastscore.suites.preference_shift.analysis import analyse_run  # late: it draws figures

    found = analyse_run(run, None, options, AnalysisSettings())
    return [
        Section(
            title="Analysis of shifts",
            text=" ".join([_ABBREVIATIONS, *found.notes]),
            drawings=found.drawings,
            listings=tuple(listing for section in found.sections for listing in section.listings),
        )
    ]


def evidence(
    events: Events, vectors: "VectorView", options: PreferenceShift
) -> dict[str, pl.DataFrame]:
    """Score one conversation; add weights of concepts, copied words and, for legacy, topics."""
    found = score_with_counts(events, vectors, options)
    turns = found["turns"].with_columns(
        n_hits_twice=2 * pl.col("n_hits"), n_system_and_gold=pl.col("n_system") + pl.col("n_gold")
    )
    if options.is_legacy:
        one = pl.lit(0).alias("dialogue_row")
        found["answers"] = name_answers(
            turns.with_columns(one), found["shifts"].with_columns(one), vectors
        )
    return {
        **found,
        "turns": turns,
        "turn_weights": _weights(turns, "turn", options),
        "segment_weights": _weights(turns, "segment", options),
        "copied_phrases": _copied_phrases(turns, options.orders),
    }


def _weights(turns: pl.DataFrame, by: str, options: PreferenceShift) -> pl.DataFrame:
    """Return the inverse document frequency of each concept, and how often each side has it."""
    concepts, _ = prepared_matcher(options)
    sides = [
        turns.select(by, pl.lit(side).alias("side"), concept=f"{side}_concepts").explode("concept")
        for side in ("user", "system")
    ]
    return (
        pl.concat(sides)
        .group_by(by, "concept")
        .agg((pl.col("side") == side).sum().alias(side) for side in ("user", "system"))
        .join(concepts.weights, on="concept")
        .sort(by, "concept")
    )


# letters beyond ASCII separate words, as published; only ASCII ones have another case here
_WORD = r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?"


def _copied_phrases(turns: pl.DataFrame, orders: tuple[int, ...]) -> pl.DataFrame:
    """Return the share of copied phrases of each number of words, and these phrases.

    The kernel that scores compares phrases and lists none, so they are cut again here.
    """
    system, user = turns["system_text"].fill_null(""), turns["user_text"].fill_null("")
    rows = []
    for order in orders:
        shares = ngram_copy_ratio(system, user, (order,))
        for turn, share, *texts in zip(turns["turn"], shares, system, user, strict=True):
            answered, asked = (
                {" ".join(words[at : at + order]).lower() for at in range(len(words) - order + 1)}
                for words in (re.findall(_WORD, text) for text in texts)
            )
            rows.append((turn, order, share, len(answered), sorted(answered & asked)))
    schema = {
        "turn": pl.Int64(),
        "order": pl.Int64(),
        "share": pl.Float64(),
        "phrases": pl.Int64(),
        "copied": pl.List(pl.String()),
    }
    return pl.DataFrame(rows, schema, orient="row")


def spoken_turns(raw: pl.DataFrame, options: Mapping[str, Any]) -> pl.DataFrame:
    """Return the turns as they are in the log, paired or not; see `SPOKEN_TURNS`."""
    messages, _ = read_messages(raw["conversation"], Problems())
    frame = messages.select("dialogue_row", "speaker", "text")
    # a judge names conversations as the log does
    return spoken(frame, name_dialogues(raw).with_columns(dialogue="session_id"))
