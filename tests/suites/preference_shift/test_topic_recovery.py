"""Profile legacy: recovery of topics, against plain Python that follows the definition."""

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE
from fastscore.suites.preference_shift.concepts import joined_topics
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.vectors.view import VectorView
from tests.suites.preference_shift.conversing import exchange, log, read, score

WORDS = (
    *("love", "dark", "space", "ghost", "drama", "happy", "sad", "romance", "horror", "table"),
    *("the",),
)
WEIGHTS = {"rate": 0.01, "delay": 0.02, "interference": 0.02, "cc": 0.30, "cr": 0.15}
STOP = ("the",)
HINTS = ("romance", "horror", "drama", "ghost", "space")
SCORED = ("love", "dark", "space", "ghost", "drama", "happy", "sad")


def plain_topics(text: str) -> list[str]:
    points: dict[str, int] = {}
    for word in text.split():
        if word not in STOP:
            points[word] = points.get(word, 0) + 1
    for word in points:
        points[word] += 2 * (word in HINTS) + 2 * any(stem in word for stem in SCORED)
    best = sorted(points, key=lambda word: -points[word])[:5]
    return [word for word in best if word in HINTS or any(stem in word for stem in SCORED)]


def jaccard(one: list[str], two: list[str]) -> float:
    union = set(one) | set(two)
    return len(set(one) & set(two)) / len(union) if union else 0.0


def weighted(parts: Mapping[str, float | None]) -> float:
    there = {name: part for name, part in parts.items() if part is not None}
    total = sum(WEIGHTS[name] for name in there)
    return sum(WEIGHTS[name] * part for name, part in there.items()) / total


class Plain:
    """The definition, one conversation and one turn at a time."""

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors

    def similarity(self, one: str, two: str) -> float:
        return float(self.vectors[one].astype(np.float64) @ self.vectors[two].astype(np.float64))

    def alike(self, one: list[str], two: list[str]) -> float:
        if not one or not two:
            return 0.0
        overlap = jaccard(one, two)
        return overlap if overlap >= 0.3 else self.similarity(" ".join(one), " ".join(two))

    def boundaries(self, users: list[str]) -> list[int]:
        return [
            k
            for k in range(1, len(users))
            if self.similarity(users[k - 1], users[k]) < 0.55
            or jaccard(plain_topics(users[k - 1]), plain_topics(users[k])) < 0.35
        ]

    def score(self, texts: list[str], shifts: list[int] | None) -> dict[str, Any]:
        users, systems = texts[::2], texts[1::2]
        points = [k - 1 for k in shifts] if shifts is not None else self.boundaries(users)
        starts = sorted({0, *(k for k in points if k < len(users))})
        delays, interferences = [], []
        for point in points:
            if point >= len(users):
                interferences.append(0.0)
                continue
            new = plain_topics(users[point])
            earlier = [start for start in starts if start < point]
            old = plain_topics(users[earlier[-1]]) if earlier else []
            seen = hits = 0
            recovered = False
            for answer in systems[point:]:
                topics = plain_topics(answer)
                if not topics:
                    continue
                seen += 1
                hits += self.alike(topics, old) >= 0.65
                if self.alike(topics, new) >= 0.65:
                    recovered = True
                    delays.append(seen)
                    break
            interferences.append(hits / max(1, seen if recovered else min(seen, 4)))
        n = len(points)
        rate = len(delays) / n if n else 0.0
        interference = sum(interferences) / n if n else 0.0
        cc = sum(map(self.similarity, users, systems)) / len(users)
        pairs = list(pairwise(systems))
        cr = sum(self.similarity(*pair) for pair in pairs) / len(pairs) if pairs else 0.0
        delay = sum(delays) / len(delays) if delays else None
        parts = {
            "rate": rate,
            "delay": None if delay is None else 1 - min(max((delay - 1) / 5, 0), 1),
            "interference": 1 - min(max(interference, 0), 1),
            "cc": cc,
            "cr": cr,
        }
        return {
            "n_shifts": n,
            "n_recovered": len(delays),
            "topic_recovery_rate": rate,
            "avg_recovery_delay": delay,
            "topic_interference": interference,
            "cross_coherence": cc,
            "context_retention": cr,
            "context_adaptation_score": weighted(parts),
        }


def legacy(catalogue: str, **more: Any) -> PreferenceShift:
    return PreferenceShift(catalogue=catalogue, profile="legacy", **more)


def embedded(logs: list[dict[str, Any]], chosen: PreferenceShift) -> VectorView:
    """Give every text that the suite asks for a vector that leans to one of a few directions."""
    texts = SUITE.texts(read(logs, chosen), chosen).to_list()
    rng = np.random.default_rng(5)
    leaning = rng.normal(size=(len(texts), 6)) + 3 * np.eye(6)[rng.integers(0, 3, len(texts))]
    leaning /= np.linalg.norm(leaning, axis=1, keepdims=True)
    return VectorView.from_texts(texts, leaning)


def test_conversations_are_scored_as_by_plain_python(catalogue: str) -> None:
    chosen, drawn = legacy(catalogue), random.Random(4)
    logs = []
    for number in range(150):
        texts = [
            " ".join(drawn.choices(WORDS, k=drawn.randint(0, 4)))
            for _ in range(2 * drawn.randint(1, 9))
        ]
        if drawn.random() < 0.4:
            shifts = sorted(drawn.sample(range(1, 12), drawn.randint(0, 4)))
            events = [{"turn": turn} for turn in shifts]
            logs.append(log(*exchange(*texts), session_id=str(number), shift_events=events))
        else:
            logs.append(log(*exchange(*texts), session_id=str(number)))
    vectors = embedded(logs, chosen)
    tables = score(logs, chosen, vectors)
    texts = SUITE.texts(read(logs, chosen), chosen).to_list()
    known = dict(zip(texts, vectors.matrix[vectors.codes(texts)], strict=True))
    plain = Plain(known)
    recovered = 0
    for row, made in zip(tables["dialogues"].iter_rows(named=True), logs, strict=True):
        said = [turn["text"] for turn in made["conversation"]]
        events = made.get("shift_events")
        shifts = None if events is None else [event["turn"] for event in events]
        for name, value in plain.score(said, shifts).items():
            assert row[name] == pytest.approx(value, abs=1e-6), (row["dialogue"], name)
        assert row["cas"] == row["context_adaptation_score"]
        recovered += row["n_recovered"]
    assert recovered > 50


def test_by_hand(catalogue: str) -> None:
    # the user turns from ghosts to love at turn 2; the system stays with ghosts once, says what has
    # no topics, and follows: seen are two turns, one of them with the old topics
    texts = ["ghost", "ghost", "love", "ghost", "love", "the table", "love", "love"]
    logs = [log(*exchange(*texts), shift_events=[{"turn": 2}])]
    chosen = legacy(catalogue)
    corners = {"ghost": [1, 0, 0], "love": [0, 1, 0], "the table": [0, 0, 1], "": [0, 0, 1]}
    matrix = np.array([corners[text] for text in corners], np.float64)
    tables = score(logs, chosen, VectorView.from_texts(list(corners), matrix))
    row = tables["dialogues"].row(0, named=True)
    assert (row["topic_recovery_rate"], row["avg_recovery_delay"]) == (1.0, 2.0)
    assert row["topic_interference"] == 0.5
    assert row["cross_coherence"] == 0.5  # turns 1 and 4 of 4
    assert row["context_retention"] == pytest.approx(1 / 3)  # ghost to ghost alone
    # weights .01 .02 .02 .30 .15 over .50: 1, 1 - 1/5, 1 - 1/2, 1/2, 1/3
    expected = (0.01 + 0.02 * 0.8 + 0.02 * 0.5 + 0.3 * 0.5 + 0.15 / 3) / 0.5
    assert row["context_adaptation_score"] == pytest.approx(expected)
    assert tables["shifts"].select("turn", "recovered", "delay").row(0) == (2, True, 2)


def test_nothing_to_recover_or_to_say(catalogue: str) -> None:
    chosen = legacy(catalogue)
    logs = [
        log(*exchange("ghost", "ghost"), session_id="one"),
        log(session_id="none"),
        log(*exchange("ghost", "love"), session_id="first", shift_events=[{"turn": 1}]),
    ]
    corners = {"ghost": [1.0, 0.0], "love": [0.0, 1.0]}
    vectors = VectorView.from_texts(list(corners), np.array(list(corners.values())))
    rows = score(logs, chosen, vectors)["dialogues"].to_dicts()
    assert [row["n_shifts"] for row in rows] == [0, 0, 1]
    assert [row["topic_recovery_rate"] for row in rows] == [0.0, 0.0, 0.0]
    assert [row["avg_recovery_delay"] for row in rows] == [None, None, None]
    assert [row["context_adaptation_score"] for row in rows[1:2]] == [0.0]
    assert rows[1]["cas"] is None


def test_segments_are_of_texts(catalogue: str) -> None:
    with pytest.raises(UsageError, match='profile="legacy"'):
        legacy(catalogue, segments="metadata")
    assert legacy(catalogue).segments == "heuristic"


def test_of_words_that_score_alike_the_earlier_stay() -> None:
    # all six have a stem and stand twice; "ghosts" is the last to appear, though not to end
    text = pl.Series(
        ["sadly happy tense darker lovely ghosts ghosts lovely darker tense happy sadly"]
    )
    assert joined_topics(text).to_list() == ["sadly happy tense darker lovely"]
