"""Profile legacy: recovery of topics, by hand."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites.preference_shift.concepts import topics_of
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.vectors.view import VectorView
from tests.suites.preference_shift.conversing import exchange, log, score

CORNERS = {
    "ghost": [1.0, 0.0, 0.0],
    "love": [0.0, 1.0, 0.0],
    "dark": [0.6, 0.8, 0.0],
    "ghost love": [0.0, 1.0, 0.0],
    "the table": [0.0, 0.0, 1.0],
    "": [0.0, 0.0, 1.0],
}
VECTORS = VectorView.from_texts(list(CORNERS), np.array(list(CORNERS.values())))


def legacy(catalogue: str, **more: Any) -> PreferenceShift:
    return PreferenceShift(catalogue=catalogue, profile="legacy", **more)


STAYING = [*["ghost", "ghost"], *["love", "ghost"] * 6]
METRICS = (
    *("topic_recovery_rate", "avg_recovery_delay", "topic_interference", "cross_coherence"),
    *("context_retention", "context_adaptation_score"),
)


@pytest.mark.parametrize(
    ("texts", "points", "found", "expected"),
    [
        # the system stays with ghosts once, says what has no topics, and follows: seen are two
        # answers, one with the old topics; weights .01 .02 .02 .30 .15 over .50
        (
            ["ghost", "ghost", "love", "ghost", "love", "the table", "love", "love"],
            [2],
            [(2, 2)],
            (1.0, 2.0, 0.5, 2 / 4, 1 / 3,
             (0.01 + 0.02 * 0.8 + 0.02 * 0.5 + 0.3 * 0.5 + 0.15 / 3) / 0.5),
        ),
        # six answers with the old topics are a share of four; a shift beyond the end has none;
        # without a recovery the weight of the delay is that of the others
        (
            STAYING,
            [2, 9],
            [(2, None), (9, None)],
            (0.0, None, 1.5 / 2, 1 / 7, 1.0, (0.02 * 0.25 + 0.3 / 7 + 0.15) / 0.48),
        ),
        # without metadata the user's texts show the shift; the one answer has the old topics
        (
            ["ghost", "ghost", "ghost", "ghost", "love", "ghost"],
            None,
            [(3, None)],
            (0.0, None, 1.0, 2 / 3, 1.0, (0.3 * 2 / 3 + 0.15) / 0.48),
        ),
        # topics without overlap are as alike as their words: .8 recovers, .6 is no interference
        (
            ["ghost", "ghost", "love", "dark"],
            [2],
            [(2, 1)],
            (1.0, 1.0, 0.0, 0.9, 0.6, (0.01 + 0.02 + 0.02 + 0.3 * 0.9 + 0.15 * 0.6) / 0.5),
        ),
        # an overlap of a half decides, although the words mean the same
        (
            ["ghost", "ghost", "love", "ghost love"],
            [2],
            [(2, None)],
            (0.0, None, 0.0, 1.0, 0.0, (0.02 + 0.3) / 0.48),
        ),
    ],
)  # fmt: skip
def test_by_hand(
    catalogue: str, texts: list[str], points: Any, found: Any, expected: tuple[Any, ...]
) -> None:
    more = {} if points is None else {"shift_events": [{"turn": point} for point in points]}
    tables = score([log(*exchange(*texts), **more)], legacy(catalogue), VECTORS)
    assert tables["shifts"].select("turn", "delay").rows() == found
    row = tables["dialogues"].row(0, named=True)
    assert tuple(row[metric] for metric in METRICS) == pytest.approx(expected)
    assert row["cas"] == row["context_adaptation_score"]


def test_nothing_to_recover_or_to_say(catalogue: str) -> None:
    chosen = legacy(catalogue)
    logs = [
        log(*exchange("ghost", "ghost"), session_id="one"),
        log(session_id="none"),
        log(*exchange("ghost", "love"), session_id="first", shift_events=[{"turn": 1}]),
    ]
    rows = score(logs, chosen, VECTORS)["dialogues"].to_dicts()
    assert [row["n_shifts"] for row in rows] == [0, 0, 1]
    assert [row["topic_recovery_rate"] for row in rows] == [0.0, 0.0, 0.0]
    assert [row["avg_recovery_delay"] for row in rows] == [None, None, None]
    assert [row["context_adaptation_score"] for row in rows[1:2]] == [0.0]
    assert rows[1]["cas"] is None


def test_segments_are_of_texts(catalogue: str) -> None:
    with pytest.raises(UsageError, match="profile legacy"):
        legacy(catalogue, segments="metadata")
    assert legacy(catalogue).segments == "heuristic"


def test_of_words_that_score_alike_the_earlier_stay() -> None:
    # all six have a stem and stand twice; "ghosts" is the last to appear, though not to end
    text = pl.Series(
        ["sadly happy tense darker lovely ghosts ghosts lovely darker tense happy sadly"]
    )
    assert topics_of(text)[1].to_list() == ["sadly happy tense darker lovely"]
