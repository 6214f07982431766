"""Why the numbers of the profile ``legacy`` are what they are: texts and topics, not concepts."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fastscore.suites.declarations import Metric
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.topic_recovery import (
    ALIGNED,
    DELAY_SPAN,
    FIRST_DELAY,
    LONGEST_SEEN,
    OVERLAP_DECIDES,
)
from fastscore.suites.preference_shift.topics import joined_topics
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio

LEGACY = (
    "cross_coherence",
    "context_retention",
    "topic_interference",
    "context_adaptation_score",
    "cas",
    "delay",
)
"""The metrics that this profile computes in another way."""


def explain_legacy(
    dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShift
) -> Derivation:
    """Explain a metric's value in a row of its table."""
    turns = dialogue.tables["turns"]
    if metric.id == "delay":
        return _delay(dialogue, row)
    if metric.id == "cross_coherence":
        pairs = list(zip(turns["user_text"], turns["system_text"], strict=True))
        return _mean_cosine(dialogue, pairs, "user and answer, turn")
    if metric.id == "context_retention":
        said = turns["system_text"].to_list()
        return _mean_cosine(dialogue, list(itertools.pairwise(said)), "answers after turn")
    if metric.id == "topic_interference":
        shares = [_follow(dialogue, shift) for shift in _shifts(dialogue)]
        return ratio(
            sum(share for _, share, _ in shares),
            len(shares),
            [one for _, _, evidence in shares for one in evidence]
            or [Evidence(what="answers with topics after a shift", found=0)],
            because="no shift, as published",
        )
    delay = row["avg_recovery_delay"]
    speed = None if delay is None else 1 - min(1.0, max(0.0, (delay - FIRST_DELAY) / DELAY_SPAN))
    parts = {
        "topic_recovery_rate": row["topic_recovery_rate"],
        "1 - clip((delay - 1) / 5)": speed,
        "1 - clip(interference)": 1 - min(1.0, max(0.0, row["topic_interference"])),
        "cross_coherence": row["cross_coherence"],
        "context_retention": row["context_retention"],
    }
    return weigh(parts, list(options.cas_shares.values()), ())


def weigh(
    parts: Mapping[str, float | None], shares: Sequence[float], evidence: Sequence[Evidence]
) -> Derivation:
    """Take the weighted mean of the parts that there are."""
    there = [
        (name, part, share)
        for (name, part), share in zip(parts.items(), shares, strict=True)
        if part is not None
    ]
    return ratio(
        sum(part * share for _, part, share in there),
        sum(share for _, _, share in there),
        [*(Evidence(what=name, found=part) for name, part in parts.items()), *evidence],
        text="weighted mean of "
        + ", ".join(f"{name} {part:.4f} (weight {share:g})" for name, part, share in there),
    )


def _vectors(dialogue: Dialogue, texts: Sequence[str]) -> npt.NDArray[np.float64]:
    assert dialogue.vectors is not None
    return dialogue.vectors.matrix[dialogue.vectors.codes(list(texts))].astype(np.float64)


def _mean_cosine(dialogue: Dialogue, pairs: Sequence[tuple[str, str]], what: str) -> Derivation:
    if not pairs:
        return ratio(0, 0, [Evidence(what="pairs of texts", found=0)], because="nothing to compare")
    first, second = (_vectors(dialogue, texts) for texts in zip(*pairs, strict=True))
    cosines = [float(cosine) for cosine in (first * second).sum(axis=1)]
    return ratio(
        sum(cosines),
        len(cosines),
        [
            Evidence(what=f"{what} {number}", found=cosine, text=texts[0])
            for number, (texts, cosine) in enumerate(zip(pairs, cosines, strict=True), start=1)
        ],
    )


def _shifts(dialogue: Dialogue) -> list[Row]:
    return list(dialogue.tables["shifts"].iter_rows(named=True))


def _delay(dialogue: Dialogue, shift: Row) -> Derivation:
    delay, _, evidence = _follow(dialogue, shift)
    return Derivation(
        text=f"the answer with topics number {delay} is the first that is alike to the new topics "
        f"by {ALIGNED:g}",
        result=delay,
        evidence=tuple(evidence),
    )


def _follow(dialogue: Dialogue, shift: Row) -> tuple[int, float, list[Evidence]]:
    """Return after how many answers a shift is recovered (0: never), its interference, and why."""
    turns = dialogue.tables["turns"]
    begin = shift["turn"] - 1
    if begin >= turns.height:
        where = f"shift at turn {shift['turn']}"
        return 0, 0.0, [Evidence(what=where, found="after the last turn")]
    user, system = (joined_topics(turns[f"{who}_text"]).to_list() for who in ("user", "system"))
    segments = turns["segment"].to_list()
    old = ""
    if begin and segments[begin] > 1 and segments[begin - 1] < segments[begin]:
        old = user[segments.index(segments[begin] - 1)]
    delay, seen, hits, evidence = 0, 0, 0, []
    for place in range(begin, turns.height):
        if not system[place]:
            continue
        seen += 1
        new_alike, old_alike = (
            _alike(dialogue, system[place], said) for said in (user[begin], old)
        )
        hits += old_alike >= ALIGNED
        evidence.append(
            Evidence(
                what=f"shift at turn {shift['turn']}, answer {place + 1}",
                found=f"{system[place]}: {new_alike:.4f} to the new topics ({user[begin]}), "
                f"{old_alike:.4f} to the old ({old or 'none'})",
            )
        )
        if new_alike >= ALIGNED:
            delay = seen
            break
    share = hits / max(1, delay or min(seen, LONGEST_SEEN))
    return delay, share, evidence


def _alike(dialogue: Dialogue, topics: str, others: str) -> float:
    """Compare topics by their overlap or, where that is small, by the cosine of their words."""
    if not topics or not others:
        return 0.0
    mine, theirs = set(topics.split(" ")), set(others.split(" "))
    overlap = len(mine & theirs) / len(mine | theirs)
    if overlap >= OVERLAP_DECIDES:
        return overlap
    first, second = _vectors(dialogue, (topics, others))
    return float(first @ second)
