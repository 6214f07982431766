"""A conversation turn by turn with concepts marked, and explanations with weights and phrases."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl
from fastscore_kernels import cosine_pairs

from fastscore.extras import explained
from fastscore.suites.base import AnalysisSettings, CommittedRun
from fastscore.suites.declarations import EvidenceRows, Metric
from fastscore.suites.preference_shift.extraction import prepared_matcher
from fastscore.suites.preference_shift.options import CAS_PARTS, PreferenceShift
from fastscore.suites.preference_shift.recovery import (
    ALIGNED,
    DELAY_SPAN,
    FIRST_DELAY,
    LONGEST_SEEN,
    answers_after_shifts,
)
from fastscore.suites.preference_shift.score import SLOWEST_DELAY
from fastscore.suites.showing import (
    Derivation,
    Dialogue,
    DialogueView,
    Drawing,
    Evidence,
    Listing,
    Mark,
    Row,
    Section,
    Turn,
    derive,
    disjoint,
    occurrences,
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
    """Mark the values of concepts, as good if the other side has them too."""
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


_RATIOS = {
    "cc": ("n_shared", "n_either"),
    "segment_cc": ("n_shared", "n_either"),
    "dst_precision": ("n_hits", "n_system"),
    "dst_recall": ("n_hits", "n_gold"),
    "dst_f1": ("n_hits_twice", "n_system_and_gold"),
}
"""Ratios of counts of the concepts that the tables list."""
_OTHER_SIDE = {"user_concepts": "system_concepts", "system_concepts": "user_concepts"}


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShift) -> Derivation:
    """Explain a metric's value in a row of its table."""
    known = {name: f"{getattr(options, name):g}" for name in ("alpha", "beta", "gamma")}
    values: dict[str, object] = {**row, **known}
    evidence: list[Evidence] = []
    if metric.table in ("turns", "segments"):
        user, system = _concepts(dialogue, metric, row)
        values |= _counts(row, set(user), set(system))
        if metric.id in ("cr", "segment_cr"):
            evidence += _weights(user, system, options)
        if metric.id == "i":
            evidence += _copied(row, options.orders)
            values["shares"] = ", ".join(f"{one.values['share']:.4f}" for one in evidence)
    if metric.id in _RATIOS:
        numerator, denominator = _RATIOS[metric.id]
        metric = replace(metric, numerator=numerator, denominator=denominator)
    if options.is_legacy and metric.id in _LEGACY:
        dialogue, metric = _by_topics(dialogue, metric, row, options)
    elif metric.table == "shifts":
        metric, of_window = _in_window(metric, row, options)
        values |= of_window
    elif metric.id in ("cas", "cas_all"):
        metric = replace(metric, derivation=_weighted(metric, row, options))
    found = derive(dialogue, metric, values)
    return replace(found, evidence=(*_marked(found, row), *evidence))


def _marked(found: Derivation, row: Row) -> Iterator[Evidence]:
    """Mark the concepts in texts, as good if the other side has them too."""
    for piece in found.evidence:
        (column,) = piece.values if len(piece.values) == 1 else ("",)
        if not piece.text or column not in _OTHER_SIDE:
            yield piece
            continue
        others = set(row[_OTHER_SIDE[column]])
        yield replace(piece, marks=mark_concepts(piece.text, row[column], others))


def _concepts(dialogue: Dialogue, metric: Metric, row: Row) -> tuple[list[str], list[str]]:
    """Return the concepts of both sides in a turn or a segment, as often as turns have them."""
    place = "turn" if metric.table == "turns" else "segment"
    turns = dialogue.tables["turns"].filter(pl.col(place) == row[place])
    user, system = (
        [concept for concepts in turns[name] for concept in concepts] for name in _OTHER_SIDE
    )
    return user, system


def _counts(row: Row, user: set[str], system: set[str]) -> dict[str, int]:
    gold = set(row.get("gold_concepts") or ())
    hits, n_system, n_gold = len(system & gold), len(system), len(gold)
    return {
        "n_shared": len(user & system),
        "n_either": len(user | system),
        "n_hits": hits,
        "n_system": n_system,
        "n_gold": n_gold,
        "n_hits_twice": 2 * hits,
        "n_system_and_gold": n_system + n_gold,
    }


def _weights(user: list[str], system: list[str], options: PreferenceShift) -> Iterator[Evidence]:
    """Show the inverse document frequency of each concept, and how often each side has it."""
    concepts, _ = prepared_matcher(options)
    known = pl.DataFrame({"concept": concepts.terms["concept"], "idf": concepts.idf})
    either = sorted({*user, *system})
    asked = known.filter(pl.col("concept").is_in(pl.Series(either, dtype=pl.String).implode()))
    for concept, idf in asked.sort("concept").iter_rows():
        values = {"idf": idf, "user": user.count(concept), "system": system.count(concept)}
        found = f"IDF {idf:.4f}, user {values['user']}, system {values['system']}"
        yield Evidence(what=concept, found=found, values=values)


def _copied(row: Row, orders: tuple[int, ...]) -> Iterator[Evidence]:
    """Show the system's runs of words that the user's text has too."""
    # letters beyond ASCII separate words, as published; only ASCII ones have another case here
    pattern = r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?"
    texts = [re.findall(pattern, row[name]) for name in ("system_text", "user_text")]
    for order in orders:
        system, user = (
            {" ".join(words[at : at + order]).lower() for at in range(len(words) - order + 1)}
            for words in texts
        )
        shared = sorted(system & user)
        share = len(shared) / max(1, len(system))
        found = f"{len(shared)} of {len(system)}: {'; '.join(shared) or 'none'}"
        yield Evidence(what=f"runs of {order} words", found=found, values={"share": share})


def _in_window(
    metric: Metric, row: Row, options: PreferenceShift
) -> tuple[Metric, dict[str, object]]:
    """Restrict the evidence to the turns from the shift to the end of its window."""
    last = row["turn"] + max(1, options.window) - 1
    window = pl.col("turn").is_between(row["turn"], last)
    narrowed = tuple(replace(of, where=window) for of in metric.evidence)
    tests = [f"cc >= {options.recovery_cc:g}", f"cr >= {options.recovery_cr:g}"]
    if metric.id == "delay_cosine":
        tests = tests[1:]
    elif options.recovery == "cc":
        tests = tests[:1]
    first = row["turn"] + (row[metric.id] if metric.unit == "turns" else 0)
    return replace(metric, evidence=narrowed), {
        "test": " or ".join(tests),
        "last": last,
        "first": first,
    }


def _weighted(metric: Metric, row: Row, options: PreferenceShift) -> str:
    """Write CAS with its weights; parts without a value are left out, as legacy does."""
    terms = {part: f"{{{part}}}" for part in CAS_PARTS}
    terms["topic_interference"] = "(1 - clip({topic_interference}))"
    terms["avg_recovery_delay"] = f"(1 - clip({{avg_recovery_delay}} / {SLOWEST_DELAY:g}))"
    if options.is_legacy:
        late = f"({{avg_recovery_delay}} - {FIRST_DELAY:g}) / {DELAY_SPAN:g}"
        terms["avg_recovery_delay"] = f"(1 - clip({late}))"
    if metric.id == "cas_all":
        early = f"1 - clip(delay / {SLOWEST_DELAY:g})"
        terms["avg_recovery_delay"] = f"mean of {early}, 0 if not recovered, delays {{delay}}"
    there = {
        part: share
        for part, share in options.cas_shares.items()
        if row[part] is not None or metric.id == "cas_all"
    }
    total = " + ".join(f"{share:g} * {terms[part]}" for part, share in there.items())
    if len(there) == len(CAS_PARTS):
        return total
    return f"({total}) / {sum(there.values()):g}"


_LEGACY = (
    "cross_coherence",
    "context_retention",
    "topic_interference",
    "context_adaptation_score",
    "cas",
    "delay",
)
"""The metrics that the profile legacy computes in another way."""
_ANSWERS = EvidenceRows(
    table="answers",
    names=("shift", "turn"),
    columns=("like_new", "like_old", "topics", "new_topics", "old_topics", "shift"),
)
_COSINES = EvidenceRows(table="pairs", names=("turn",), columns=("cosine",), text="system_text")


def _by_topics(
    dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShift
) -> tuple[Dialogue, Metric]:
    """Return a metric of the profile legacy with its evidence, and the rows of that."""
    turns, vectors = dialogue.tables["turns"], dialogue.vectors
    assert vectors is not None
    if metric.id in ("cas", "context_adaptation_score"):
        columns = tuple(part for part in CAS_PARTS if row[part] is not None)
        evidence = EvidenceRows(columns=columns)
        written = _weighted(metric, row, options)
    elif metric.id in ("delay", "topic_interference"):
        answers = answers_after_shifts(turns, dialogue.tables["shifts"], vectors)
        evidence = _ANSWERS
        written = (
            f"mean over shifts of answers with like_old >= {ALIGNED:g} / answers up to the "
            f"recovery (at most {LONGEST_SEEN} without one)"
        )
        if metric.id == "delay":
            evidence = replace(_ANSWERS, same=("shift",))
            written = f"answer with topics number {{delay}} is the first with like_new >= {ALIGNED}"
        dialogue = replace(dialogue, tables={**dialogue.tables, "answers": answers})
    else:
        before = "user_text" if metric.id == "cross_coherence" else "system_text"
        later = turns if metric.id == "cross_coherence" else turns[1:]
        first, second = turns[before][: later.height], later["system_text"]
        cosines = cosine_pairs(vectors.matrix, vectors.codes(first), vectors.codes(second))
        pairs = later.select("turn", "system_text", pl.Series("cosine", cosines))
        evidence, written = _COSINES, "mean of {cosine}"
        dialogue = replace(dialogue, tables={**dialogue.tables, "pairs": pairs})
    return dialogue, replace(
        metric, evidence=(evidence,), derivation=written, fixed_where=(), numerator=None
    )
