"""Score conversations in plain Python: one conversation, one turn, one catalogue value at a time.

Written from the definitions of the suite preference_shift, with the standard library alone: the
peer that `benchmarks.preference_shift` measures against, and the oracle of the suite's tests. As in
the published evaluator, a text's concepts are found by trying every value of the catalogue.
"""

import gzip
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]

STRUCTURED_FIELDS = ("genre", "actor", "director", "writer", "language", "year")
FIELDS = (*STRUCTURED_FIELDS, "name")
GENRE_SUFFIXES = (" film", " movie", " fiction")
STOP_WORDS = frozenset((
    "the", "and", "with", "that", "this", "from", "into", "about", "their", "they", "them", "have",
    "when", "where", "after", "before", "toward", "towards", "against", "while", "over", "under",
    "through", "also", "film", "movie", "story", "stories", "life", "lives", "takes", "place",
    "city", "town", "family", "people",
))  # fmt: skip
PLOT_KEYWORDS_A_TEXT = 3
ORDERS = (3, 4)
UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
DELAY_SPAN = 5
CAS_WEIGHTS = {
    "recovery_rate": 0.01,
    "recovery_delay": 0.02,
    "interference": 0.02,
    "cc": 0.30,
    "cr": 0.15,
}


@dataclass(frozen=True)
class Profile:
    """The switches of an evaluation."""

    fields: tuple[str, ...] = FIELDS
    plot: bool = False
    on_words: bool = True
    cc_recovers: float = 0.65
    cr_recovers: float | None = None
    window: int = 3
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    rate_without_shifts: float | None = None
    empty_conversations_are_zero: bool = False
    absent_texts_are_empty: bool = False


PROFILES = {
    "default": Profile(),
    "published": Profile(
        plot=True,
        on_words=False,
        rate_without_shifts=0.0,
        empty_conversations_are_zero=True,
        absent_texts_are_empty=True,
    ),
    "structured": Profile(
        fields=STRUCTURED_FIELDS,
        on_words=False,
        cc_recovers=0.35,
        cr_recovers=0.65,
        rate_without_shifts=0.0,
        empty_conversations_are_zero=True,
        absent_texts_are_empty=True,
    ),
}


@dataclass
class Catalogue:
    """What a catalogue's items are known by: values and plot keywords, each with its items."""

    n_items: int
    items_of: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    plots: dict[str, set[int]] = field(default_factory=dict)

    def idf(self, concept: str) -> float:
        """Return a concept's inverse document frequency."""
        name, value = concept.split("=", 1)
        items = self.plots[value] if name == "plot" else self.items_of[name][value]
        return math.log((1 + self.n_items) / (1 + len(items))) + 1


def read_lines(path: Path) -> list[Row]:
    """Read a file of JSON Lines, packed or not."""
    content = path.read_bytes()
    lines = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in lines.decode().splitlines() if line.strip()]


def normalise(name: str, value: Any) -> str:
    """Return a value as it is compared; blank values are no values."""
    text = "" if value is None else str(value).strip()
    if name == "year":
        return "".join(character for character in text if character.isdigit())
    text = text.lower()
    if name == "genre":
        for suffix in GENRE_SUFFIXES:
            text = text.replace(suffix, "")
        text = text.strip()
    return text


def plot_words(text: str) -> list[str]:
    """Return a text's plot keywords, each once, in their order."""
    words = re.findall(r"[a-zA-Z]{4,}", text.lower())
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS))


def make_catalogue(records: Mapping[str, Row] | Sequence[Row]) -> Catalogue:
    """Index the items of a catalogue: records by title, or a list of them."""
    keyed: Iterable[tuple[Any, Row]] = (
        records.items() if isinstance(records, Mapping) else ((None, row) for row in records)
    )
    titled = list(keyed)
    catalogue = Catalogue(len(titled) or 1, {name: {} for name in FIELDS})
    for item, (title, record) in enumerate(titled):
        for name in FIELDS:
            values = record.get(name, title) if name == "name" else record.get(name)
            for value in values if isinstance(values, list) else [values]:
                norm = normalise(name, value)
                if norm:
                    catalogue.items_of[name].setdefault(norm, set()).add(item)
        for word in plot_words(record.get("plot") or ""):
            catalogue.plots.setdefault(word, set()).add(item)
    return catalogue


def is_word_character(character: str) -> bool:
    """Tell characters that words are made of in scripts that put spaces between words."""
    category = unicodedata.category(character)
    unspaced = any(first <= ord(character) <= last for first, last in UNSPACED)
    return (category[0] in "LMN" or category == "Pc") and not unspaced


def is_inside_word(text: str, edge: int) -> bool:
    """Tell whether the characters on both sides of an edge are of one word."""
    return (
        0 < edge < len(text) and is_word_character(text[edge - 1]) and is_word_character(text[edge])
    )


def stands_as_words(text: str, value: str) -> bool:
    """Tell whether a value stands in a text with no edge inside a word."""
    start = text.find(value)
    while start >= 0:
        if not is_inside_word(text, start) and not is_inside_word(text, start + len(value)):
            return True
        start = text.find(value, start + 1)
    return False


def concepts(text: str | None, catalogue: Catalogue, profile: Profile) -> set[str]:
    """Return the concepts that a text mentions."""
    lowered = (text or "").lower()
    found = {
        f"{name}={value}"
        for name in profile.fields
        for value in catalogue.items_of[name]
        if value in lowered and (not profile.on_words or stands_as_words(lowered, value))
    }
    if profile.plot:
        known = [word for word in plot_words(lowered) if word in catalogue.plots]
        found |= {f"plot={word}" for word in known[:PLOT_KEYWORDS_A_TEXT]}
    return found


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
    """Return the n-grams of a text's words."""
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
    """Return the nearest value of a range."""
    return min(max(value, low), high)


def adaptation(cc: float, cr: float, i: float, profile: Profile) -> float:
    """Return the weighted sum of a turn's or segment's parts, clipped."""
    alpha, beta, gamma = profile.weights
    return clip(alpha * cc + beta * cr - gamma * i, -1.0, 1.0)


def is_user(turn: Row) -> bool:
    """Tell whether the user speaks."""
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
    """Return what the simulator noted at a user's turn."""
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
    """Score the stretches between shifts."""
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
    """Return the arithmetic mean."""
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


def conversation_adaptation(
    rate: float | None, delay: float | None, cc: float | None, cr: float | None, i: float | None
) -> float | None:
    """Return the weighted mean of the conversation's parts; none where nothing recovered."""
    if rate is None or delay is None or cc is None or cr is None or i is None:
        return None
    parts = {
        "recovery_rate": rate,
        "recovery_delay": 1 - clip(delay / DELAY_SPAN, 0, 1),
        "interference": 1 - clip(i, 0, 1),
        "cc": cc,
        "cr": cr,
    }
    weighted = math.fsum(CAS_WEIGHTS[name] * part for name, part in parts.items())
    return weighted / math.fsum(CAS_WEIGHTS.values())


def conversation_adaptation_over_all(
    delays: Sequence[int | None], cc: float | None, cr: float | None, i: float | None
) -> float | None:
    """Return the same with every shift counted: one that never recovered is the slowest."""
    if not delays or cc is None or cr is None or i is None:
        return None
    parts = {
        "recovery_rate": sum(delay is not None for delay in delays) / len(delays),
        "recovery_delay": mean(
            [0 if delay is None else 1 - clip(delay / DELAY_SPAN, 0, 1) for delay in delays]
        ),
        "interference": 1 - clip(i, 0, 1),
        "cc": cc,
        "cr": cr,
    }
    weighted = math.fsum(CAS_WEIGHTS[name] * part for name, part in parts.items())
    return weighted / math.fsum(CAS_WEIGHTS.values())


def windows_of(turns: Sequence[Row], points: Sequence[int], window: int) -> list[list[Row]]:
    """Return the turns from each shift on that lie in its window."""
    return [list(turns[point - 1 : point - 1 + window]) for point in points]


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
    around = [
        row["i"]
        for rows in windows_of(turns, points, profile.window)
        for row in rows
        if row["is_scored"]
    ]
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
        "cas": conversation_adaptation(rate, delay, means["cc"], means["cr"], means["i"])
        if turns
        else None,
        "cas_all": conversation_adaptation_over_all(known, means["cc"], means["cr"], means["i"])
        if turns
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
    """Score conversations one by one."""
    return [score_conversation(log, catalogue, profile) for log in logs]
