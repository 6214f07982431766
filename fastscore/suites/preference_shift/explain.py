"""Why the numbers of preference_shift are what they are, by concepts or as ``legacy`` has them."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import counted
from fastscore.suites.declarations import Metric
from fastscore.suites.preference_shift.conversations import SLOWEST_DELAY
from fastscore.suites.preference_shift.extraction import prepared_matcher
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.preference_shift.show import mark_concepts
from fastscore.suites.preference_shift.topic_recovery import (
    ALIGNED,
    DELAY_SPAN,
    FIRST_DELAY,
    LONGEST_SEEN,
    OVERLAP_DECIDES,
)
from fastscore.suites.preference_shift.topics import joined_topics
from fastscore.suites.showing import Derivation, Dialogue, Evidence, Row, ratio

_MEANS = {
    "cross_coherence": "cc",
    "context_retention": "cr",
    "topic_interference": "i",
    "context_adaptation_score": "tas",
    "dst_precision_mean": "dst_precision",
    "dst_recall_mean": "dst_recall",
    "dst_f1_mean": "dst_f1",
    "dst_joint_accuracy_mean": "dst_joint_accuracy",
}
_TOTALS = {
    "missing_concepts_total": "missing_concepts",
    "hallucinated_concepts_total": "hallucinated_concepts",
}

_BY_COSINE = ("n_recovered_cosine", "n_known_shifts_cosine")


def explain(dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShift) -> Derivation:
    """Explain a metric's value in a row of its table."""
    if options.is_legacy and metric.id in LEGACY:
        return explain_legacy(dialogue, metric, row, options)
    if metric.table == "turns":
        return _of_turn(metric.id, row, options)
    if metric.table == "segments":
        return _of_segment(dialogue, metric.id, row, options)
    if metric.table == "shifts":
        return _of_shift(dialogue, metric, row, options)
    if metric.id in _MEANS:
        return _mean(dialogue.tables["turns"], _MEANS[metric.id])
    if metric.id in _TOTALS:
        return _total(dialogue, _TOTALS[metric.id])
    if metric.numerator and metric.denominator:
        return ratio(
            row[metric.numerator],
            row[metric.denominator],
            _shifts(
                dialogue,
                by_cosine=metric.numerator in _BY_COSINE or metric.denominator in _BY_COSINE,
            ),
            because="no shift, as published",
        )
    return _weighted(dialogue, metric.id, row, options)


def _of_turn(metric: str, row: Row, options: PreferenceShift) -> Derivation:
    user, system = set(row["user_concepts"]), set(row["system_concepts"])
    texts = (
        Evidence(
            what="user",
            found=", ".join(sorted(user)) or "no concept",
            text=row["user_text"],
            marks=mark_concepts(row["user_text"], sorted(user), system),
        ),
        Evidence(
            what="system",
            found=", ".join(sorted(system)) or "no concept",
            text=row["system_text"],
            marks=mark_concepts(row["system_text"], sorted(system), user),
        ),
    )
    if metric == "cc":
        both, either = len(user & system), len(user | system)
        return ratio(
            both,
            either,
            texts,
            text=f"{both} / {either} concepts",
            of_nothing=1.0,
            because="neither text has a concept",
        )
    if metric == "cr":
        return _cosine(Counter(user), Counter(system), options, texts)
    if metric == "i":
        return _copied(row, options, texts)
    if metric == "tas":
        return _adaptation(row["cc"], row["cr"], row["i"], options)
    return _tracked(metric, system, set(row["gold_concepts"] or ()), texts)


def _tracked(
    metric: str, system: set[str], gold: set[str], texts: tuple[Evidence, ...]
) -> Derivation:
    """Hold the system's concepts to those of the constraints."""
    evidence = (Evidence(what="held to", found=", ".join(sorted(gold)) or "nothing"), *texts)
    hits = len(system & gold)
    if metric == "dst_precision":
        none = "the system names nothing"
        return ratio(hits, len(system), evidence, of_nothing=float(not gold), because=none)
    if metric == "dst_recall":
        none = "it is held to nothing"
        return ratio(hits, len(gold), evidence, of_nothing=1.0, because=none)
    if metric == "dst_f1":
        return ratio(
            2 * hits,
            len(system) + len(gold),
            evidence,
            text=f"2 * {hits} / ({len(system)} + {len(gold)})",
            of_nothing=1.0,
            because="both are empty",
        )
    said = "equal" if system == gold else "not equal"
    return ratio(int(system == gold), 1, evidence, text=f"the sets are {said}")


def _cosine(
    user: Counter[str],
    system: Counter[str],
    options: PreferenceShift,
    texts: Sequence[Evidence],
) -> Derivation:
    """Multiply vectors that have at each concept its IDF, as often as it counts."""
    concepts, _ = prepared_matcher(options)
    asked = pl.Series([*user, *system], dtype=pl.String).unique().implode()
    known = pl.DataFrame({"concept": concepts.terms["concept"], "idf": concepts.idf})
    idf = dict(known.filter(pl.col("concept").is_in(asked)).iter_rows())
    shared = sorted(user.keys() & system.keys())
    product = sum(user[name] * system[name] * idf[name] ** 2 for name in shared)
    lengths = math.prod(
        math.sqrt(sum((count * idf[name]) ** 2 for name, count in side.items()))
        for side in (user, system)
    )
    weights = ", ".join(f"{name} (IDF {idf[name]:.4f})" for name in shared)
    return ratio(
        float(product),
        lengths,
        [Evidence(what="shared concepts", found=weights or "none"), *texts],
        text=f"{product:.4f} / ({lengths:.4f}, the product of both lengths)",
        because="one has no concept",
    )


def _copied(row: Row, options: PreferenceShift, texts: Sequence[Evidence]) -> Derivation:
    """Find the order of n-grams of which most are the user's, and those."""
    shares: list[tuple[float, int, set[str], set[str]]] = []
    for order in options.orders:
        said, copied = (
            {" ".join(words[at : at + order]) for at in range(len(words) - order + 1)}
            for words in map(_words, (row["system_text"], row["user_text"]))
        )
        if said:
            shares.append((len(said & copied) / len(said), order, said, said & copied))
    none = f"the system has no {options.copy_orders} words in a row"
    _, order, said, copied = max(shares, key=lambda one: one[0], default=(0.0, 0, set(), set()))
    return ratio(
        len(copied),
        len(said),
        [Evidence(what="n-grams of both", found="; ".join(sorted(copied)) or "none"), *texts],
        text=f"{len(copied)} / {len(said)} of the system's runs of {order} words, most of "
        f"{options.copy_orders}",
        because=none,
    )


def _words(text: str) -> list[str]:
    # letters beyond ASCII separate words, as published; only ASCII ones have another case here
    return [word.lower() for word in re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?", text)]


def _adaptation(cc: float, cr: float, copied: float, options: PreferenceShift) -> Derivation:
    value = options.alpha * cc + options.beta * cr - options.gamma * copied
    return Derivation(
        text=f"{options.alpha:g} * {cc:.4f} + {options.beta:g} * {cr:.4f} - {options.gamma:g} * "
        f"{copied:.4f}, clipped to [-1, 1]",
        result=min(1.0, max(-1.0, value)),
        evidence=(
            Evidence(what="cc", found=cc),
            Evidence(what="cr", found=cr),
            Evidence(what="i", found=copied),
        ),
    )


def _of_segment(dialogue: Dialogue, metric: str, row: Row, options: PreferenceShift) -> Derivation:
    turns = dialogue.tables["turns"].filter(
        pl.col("turn").is_between(row["start_turn"], row["end_turn"])
    )
    if metric == "segment_tas":
        return _adaptation(row["segment_cc"], row["segment_cr"], row["segment_i"], options)
    if metric == "segment_i":
        return _mean(turns, "i")
    user, system = (
        Counter(concept for concepts in turns[name] for concept in concepts)
        for name in ("user_concepts", "system_concepts")
    )
    evidence = (
        Evidence(what="user's concepts", found=", ".join(sorted(user)) or "none"),
        Evidence(what="system's concepts", found=", ".join(sorted(system)) or "none"),
    )
    if metric == "segment_cr":
        return _cosine(user, system, options, evidence)
    both, either = len(user & system), len(user | system)
    return ratio(
        both,
        either,
        evidence,
        text=f"{both} / {either} concepts",
        of_nothing=1.0,
        because="no text has a concept",
    )


def _of_shift(dialogue: Dialogue, metric: Metric, row: Row, options: PreferenceShift) -> Derivation:
    last = row["turn"] + max(1, options.window) - 1
    turns = dialogue.tables["turns"].filter(pl.col("turn").is_between(row["turn"], last))
    if metric.id == "i_around_shift":
        return _mean(turns, "i")
    tests = [f"cr >= {options.recovery_cr:g}"]
    if metric.id == "delay":
        tests = [f"cc >= {options.recovery_cc:g}"]
        if options.recovery == "cc-or-cr":
            tests.append(f"cr >= {options.recovery_cr:g}")
    by_cc = pl.col("cc") >= options.recovery_cc
    by_cr = pl.col("cr") >= options.recovery_cr
    met = by_cr if metric.id != "delay" else by_cc | by_cr if len(tests) > 1 else by_cc
    first = turns.filter(met)["turn"].min()
    assert isinstance(first, int)
    return Derivation(
        text=f"{' or '.join(tests)} from turn {row['turn']} to {last}: turn {first} is the first",
        result=first - row["turn"],
        evidence=tuple(
            Evidence(
                what=f"turn {turn['turn']}",
                found=f"cc {_number(turn['cc'])}, cr {_number(turn['cr'])}",
            )
            for turn in turns.iter_rows(named=True)
        ),
    )


def _mean(turns: pl.DataFrame, name: str) -> Derivation:
    turns = turns.drop_nulls(name)
    values = turns[name].to_list()
    return ratio(
        float(sum(values)),
        len(values),
        _values(turns, name) or (Evidence(what="turns with both texts", found=0),),
        text=f"{sum(values):.4f} / {len(values)} turns",
        because="no turn, as published",
    )


def _total(dialogue: Dialogue, name: str) -> Derivation:
    turns = dialogue.tables["turns"].drop_nulls("cc")
    counts = [len(concepts) for concepts in turns[name]]
    return Derivation(
        text=" + ".join(map(str, counts)) or "no turn",
        result=sum(counts),
        evidence=tuple(
            Evidence(what=f"turn {turn['turn']}", found=", ".join(turn[name]) or "none")
            for turn in turns.iter_rows(named=True)
        )
        or (Evidence(what="turns with both texts", found=0),),
    )


def _values(turns: pl.DataFrame, name: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(what=f"turn {turn['turn']}", found=turn[name])
        for turn in turns.iter_rows(named=True)
    )


def _shifts(dialogue: Dialogue, *, by_cosine: bool = False) -> tuple[Evidence, ...]:
    recovered, delay = ("recovered_cosine", "delay_cosine") if by_cosine else ("recovered", "delay")
    return tuple(
        Evidence(
            what=f"shift at turn {shift['turn']}",
            found=f"recovered after {counted(shift[delay], 'turns')}"
            if shift[recovered]
            else "unknown"
            if shift[recovered] is None
            else "not recovered",
        )
        for shift in dialogue.tables["shifts"].iter_rows(named=True)
    ) or (Evidence(what="shifts", found=0),)


def _weighted(dialogue: Dialogue, metric: str, row: Row, options: PreferenceShift) -> Derivation:
    known = dialogue.tables["shifts"].filter(pl.col("recovered").is_not_null())
    delays = [SLOWEST_DELAY if delay is None else delay for delay in known["delay"]]
    speed, said = 0.0, "mean of 1 - clip(delay / 5), 0 if not recovered,"
    if metric == "cas_all":
        speed = sum(1 - min(delay, SLOWEST_DELAY) / SLOWEST_DELAY for delay in delays) / len(delays)
    else:
        said = "1 - clip(delay / 5)"
        speed = 1 - min(1.0, max(0.0, row["avg_recovery_delay"] / SLOWEST_DELAY))
    parts = {
        "topic_recovery_rate": row["topic_recovery_rate"],
        said: speed,
        "1 - mean i": 1 - min(1.0, max(0.0, row["topic_interference"])),
        "cross_coherence": row["cross_coherence"],
        "context_retention": row["context_retention"],
    }
    return weigh(parts, list(options.cas_shares.values()), _shifts(dialogue))


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


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
        shares = [_follow(dialogue, shift) for shift in _shift_rows(dialogue)]
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


def _shift_rows(dialogue: Dialogue) -> list[Row]:
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
