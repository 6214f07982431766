"""Score conversations in plain Python: one conversation, one turn, one catalogue value at a time.

Written from the definitions of the suite preference_shift, with the standard library alone: the
peer that `benchmarks.preference_shift` measures against, and the oracle of the suite's tests. As in
the published evaluator, a text's concepts are found by trying every value of the catalogue.
"""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.oracles.preference_shift_concepts import PROFILES, Catalogue, Profile, Row, concepts

ORDERS = (3, 4)
DELAY_SPAN = 5
CAS_WEIGHTS = {
    "recovery_rate": 0.01,
    "recovery_delay": 0.02,
    "interference": 0.02,
    "cc": 0.30,
    "cr": 0.15,
}


def read_lines(path: Path) -> list[Row]:
    """Read a file of JSON Lines, packed or not."""
    content = path.read_bytes()
    lines = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in lines.decode().splitlines() if line.strip()]


def cross_coherence(user: set[str], system: set[str]) -> float:
    """Return the overlap of two sets of concepts; two empty ones agree."""
    return len(user & system) / len(user | system) if user | system else 1.0


def context_retention(
    user: Mapping[str, int], system: Mapping[str, int], catalogue: Catalogue
) -> float:
    """Return the cosine of two counts of concepts weighted by their inverse frequencies."""
    if not user or not system:
        return 0.0
    shared = sorted(user.keys() & system.keys())
    dot = math.fsum(user[c] * system[c] * catalogue.idf(c) ** 2 for c in shared)
    norms = [
        math.fsum((n * catalogue.idf(c)) ** 2 for c, n in counted.items())
        for counted in (user, system)
    ]
    return dot / math.sqrt(norms[0] * norms[1])


def word_grams(text: str, n: int) -> set[tuple[str, ...]]:
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?", text)]
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def interference(user: str, system: str) -> float:
    """Return the copied share of the system's n-grams, the largest over the orders."""
    ratios = [0.0]
    for n in ORDERS:
        grams = word_grams(system, n)
        if grams:
            ratios.append(len(grams & word_grams(user, n)) / len(grams))
    return max(ratios)


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def adaptation(cc: float, cr: float, i: float, profile: Profile) -> float:
    """Return the weighted sum of a turn's or segment's parts, clipped."""
    alpha, beta, gamma = profile.weights
    return clip(alpha * cc + beta * cr - gamma * i, -1.0, 1.0)


def is_user(turn: Row) -> bool:
    return turn.get("speaker") == "USER"


def pair_turns(conversation: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the user turns at even places that a system turn follows, with it."""
    return [
        (conversation[i], conversation[i + 1])
        for i in range(0, len(conversation) - 1, 2)
        if is_user(conversation[i]) and conversation[i + 1].get("speaker") == "SYSTEM"
    ]


def score_turn(user: Row, system: Row, catalogue: Catalogue, profile: Profile) -> Row:
    """Score one pair of turns; its two sets of concepts stand in the row too.

    Without both texts there is no score, unless an absent text is an empty one.
    """
    asked = concepts(user.get("text"), catalogue, profile)
    answered = concepts(system.get("text"), catalogue, profile)
    cc = cross_coherence(asked, answered)
    cr = context_retention(Counter(asked), Counter(answered), catalogue)
    i = interference(user.get("text") or "", system.get("text") or "")
    scores = {"cc": cc, "cr": cr, "i": i, "tas": adaptation(cc, cr, i, profile)}
    has_texts = user.get("text") is not None and system.get("text") is not None
    is_scored = has_texts or profile.absent_texts_are_empty
    return {
        **(scores if is_scored else dict.fromkeys(scores)),
        "is_scored": is_scored,
        "missing": sorted(asked - answered),
        "hallucinated": sorted(answered - asked),
        "user_concepts": asked,
        "system_concepts": answered,
    }


def turn_meta(turn: Row) -> Any:
    """Return the simulator's notes at a user's turn."""
    return turn.get("user_meta") or turn.get("meta")


def shift_points(log: Row) -> list[int] | None:
    """Return the user turns, from 1, at which preferences shift; None where nothing is noted."""
    users = [turn for turn in log["conversation"] if is_user(turn)]
    metas = [turn_meta(turn) for turn in users]
    events = log.get("shift_events")
    if events is None and not any(
        isinstance(turn.get(key), dict) for turn in users for key in ("user_meta", "meta")
    ):
        return None
    points = {
        event["turn"]
        for event in events or []
        if isinstance(event.get("turn"), int) and event["turn"] >= 1
    }
    points |= {
        ordinal
        for ordinal, meta in enumerate(metas, start=1)
        if isinstance(meta, dict) and (meta.get("shift_event") or meta.get("is_shift"))
    }
    return sorted(points)


def score_segment(
    turns: Sequence[Row], start: int, end: int, catalogue: Catalogue, profile: Profile
) -> Row:
    """Score the turns from start to end, counted from 1, together."""
    rows = turns[start - 1 : end]
    asked = Counter(concept for row in rows for concept in row["user_concepts"])
    answered = Counter(concept for row in rows for concept in row["system_concepts"])
    cc = cross_coherence(set(asked), set(answered))
    cr = context_retention(asked, answered, catalogue)
    copied = [row["i"] for row in rows if row["is_scored"]]
    i = mean(copied) if copied else 0.0
    scores = {"cc": cc, "cr": cr, "i": i, "tas": adaptation(cc, cr, i, profile)}
    return {
        "start_turn": start,
        "end_turn": end,
        **(scores if copied else dict.fromkeys(scores)),
        "missing": sorted(asked.keys() - answered.keys()),
        "hallucinated": sorted(answered.keys() - asked.keys()),
    }


def segments(
    turns: Sequence[Row], points: Iterable[int], catalogue: Catalogue, profile: Profile
) -> list[Row]:
    if not turns:
        return []
    starts = sorted({1, *(point for point in points if point <= len(turns))})
    ends = [start - 1 for start in starts[1:]] + [len(turns)]
    return [
        score_segment(turns, start, end, catalogue, profile)
        for start, end in zip(starts, ends, strict=True)
    ]


def recovery_delay(
    turns: Sequence[Row],
    shift: int,
    cc_recovers: float | None,
    cr_recovers: float | None,
    window: int,
) -> int | None:
    """Return how many turns after a shift the answer fits, None where none in the window does."""
    for delay, row in enumerate(turns[shift - 1 : shift - 1 + window]):
        if not row["is_scored"]:
            continue
        if cc_recovers is not None and row["cc"] >= cc_recovers:
            return delay
        if cr_recovers is not None and row["cr"] >= cr_recovers:
            return delay
    return None


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def recovery(
    turns: Sequence[Row], points: Sequence[int], profile: Profile
) -> tuple[list[int | None], list[bool | None]]:
    """Return every shift's delay, and whether it recovered.

    Nobody knows where no turn is known to fit and one of the window's has no score.
    """
    delays = [
        recovery_delay(turns, point, profile.cc_recovers, profile.cr_recovers, profile.window)
        for point in points
    ]
    recovered: list[bool | None] = []
    for delay, rows in zip(delays, windows_of(turns, points, profile.window), strict=True):
        if delay is None and not all(row["is_scored"] for row in rows):
            recovered.append(None)
        else:
            recovered.append(delay is not None)
    return delays, recovered


def conversation_adaptation(rate: float | None, promptness: float | None, means: Row) -> Any:
    """Return the weighted mean of the conversation's parts; none where one of them is none."""
    parts = {"recovery_rate": rate, "recovery_delay": promptness, **means}
    if None in parts.values():
        return None
    parts["interference"] = 1 - clip(means["i"], 0, 1)
    weighted = math.fsum(weight * parts[name] for name, weight in CAS_WEIGHTS.items())
    return weighted / math.fsum(CAS_WEIGHTS.values())


def promptness(delay: float) -> float:
    """Return the share of the slowest delay that a recovery did not take."""
    return 1 - clip(delay / DELAY_SPAN, 0, 1)


def windows_of(turns: Sequence[Row], points: Sequence[int], window: int) -> list[list[Row]]:
    """Return the turns from each shift on that lie in its window."""
    return [list(turns[point - 1 : point - 1 + window]) for point in points]


def copied_around(turns: Sequence[Row], points: Sequence[int], window: int) -> list[float]:
    """Return the copied texts of the scored turns in every shift's window."""
    return [
        row["i"] for rows in windows_of(turns, points, window) for row in rows if row["is_scored"]
    ]


def score_conversation(log: Row, catalogue: Catalogue, profile: Profile) -> Row:
    """Score one conversation: its turns, segments, shifts and means.

    Without any note of shifts all turns are one segment: what an embedder would find is left to
    the suite.
    """
    turns = [
        score_turn(user, system, catalogue, profile)
        for user, system in pair_turns(log["conversation"])
    ]
    points = shift_points(log) or []
    delays, recovered = recovery(turns, points, profile)
    known = [delay for delay, is_met in zip(delays, recovered, strict=True) if is_met is not None]
    times = [delay for delay in known if delay is not None]
    rate = len(times) / len(known) if known else None
    if not points:
        rate = profile.rate_without_shifts
    delay = mean(times) if times else None
    scored = [row for row in turns if row["is_scored"]]
    around = copied_around(turns, points, profile.window)
    none = 0.0 if profile.empty_conversations_are_zero else None
    means = {
        name: mean([row[name] for row in scored]) if scored else none
        for name in ("cc", "cr", "i", "tas")
    }
    if not turns:
        rate = none
    return {
        "session_id": log.get("session_id"),
        "model_name": log.get("model_name"),
        "num_turns": len(turns),
        "turns": turns,
        "segments": segments(turns, points, catalogue, profile),
        "shift_points": points,
        "delays": delays,
        "recovered": recovered,
        "recovery_rate": rate,
        "avg_recovery_delay": delay,
        "cas": conversation_adaptation(rate, None if delay is None else promptness(delay), means)
        if turns
        else None,
        # the same with every shift counted: one that never recovered is the slowest
        "cas_all": conversation_adaptation(
            len(times) / len(known), mean([0 if d is None else promptness(d) for d in known]), means
        )
        if turns and known
        else None,
        "i_around_shifts": mean(around) if around else None,
        "missing_total": sum(len(row["missing"]) for row in scored),
        "hallucinated_total": sum(len(row["hallucinated"]) for row in scored),
        "both_empty_turns": sum(
            not row["user_concepts"] and not row["system_concepts"] for row in scored
        ),
        **means,
    }


def score_logs(
    logs: Iterable[Row], catalogue: Catalogue, profile: Profile = PROFILES["default"]
) -> list[Row]:
    return [score_conversation(log, catalogue, profile) for log in logs]
