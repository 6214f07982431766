"""A conversation turn by turn: concepts in the texts, and the scores of every answer."""

from collections.abc import Sequence

from fastscore.extras import explained
from fastscore.suites.alignment import disjoint, occurrences
from fastscore.suites.base import AnalysisSettings, CommittedRun
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.showing import (
    Dialogue,
    DialogueView,
    Drawing,
    Listing,
    Mark,
    Section,
    Turn,
)

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
                marks=mark_concepts(turn["user_text"], sorted(user), system),
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
                marks=mark_concepts(turn["system_text"], sorted(system), user),
                notes=tuple(notes),
            )
        )
    shifts = dialogue.tables["shifts"].select("turn", "recovered", "delay")
    listings = (Listing(title="shifts", frame=shifts),) if shifts.height else ()
    return DialogueView(turns=tuple(turns), listings=listings)


def mark_concepts(text: str, concepts: Sequence[str], others: set[str]) -> tuple[Mark, ...]:
    """Mark where the values of concepts stand, as good where the other side has them too."""
    marks = [
        mark
        for concept in concepts
        for mark in occurrences(
            text, concept.partition("=")[2], good=concept in others, label=concept
        )
    ]
    return disjoint(marks)


def report_sections(run: CommittedRun, options: PreferenceShift) -> list[Section]:
    """Show the suite's own analysis: figures with their captions, and what it could not do."""
    with explained("The analysis of preference_shift"):
        from fastscore.suites.preference_shift.analysis import analyse_run  # late: it draws figures

    found = analyse_run(run, None, options, AnalysisSettings())
    kept = ("components", "construct_validity", "ablations")
    listings = tuple(
        Listing(title=name.replace("_", " "), frame=found.tables[name])
        for name in kept
        if name in found.tables and found.tables[name].height
    )
    drawings = tuple(
        Drawing(title=found.captions[name][0], caption=found.captions[name][1], svg=svg)
        for name, svg in found.figures.items()
    )
    return [
        Section(
            title="Analysis of shifts",
            text=" ".join([_ABBREVIATIONS, *found.notes]),
            drawings=drawings,
            listings=listings,
        )
    ]
