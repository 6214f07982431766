"""Shifts: recovery, the scores of conversations, segments and shift points, each by hand."""

from typing import Any

import pytest

from fastscore.suites.preference_shift import SUITE
from tests.suites.preference_shift.conversing import (
    BAD,
    DRAMA,
    GOOD,
    exchange,
    log,
    options,
    score,
    shifted,
    system,
    user,
)


def test_windows_of_recovery(catalogue: str) -> None:
    # turns          1     2    3    4     5    6    7    8     9
    texts = [*GOOD, *BAD, *BAD, *GOOD, *BAD, *BAD, *BAD, *GOOD, *GOOD]
    for window, points, delays in (
        (3, [2, 5, 9], [2, None, 0]),
        (4, [5], [3]),
        (0, [2, 9], [None, 0]),
    ):
        tables = score([shifted(*texts, points=points)], options(catalogue, window=window))
        assert tables["shifts"]["delay"].to_list() == delays


LACKING = [{"speaker": "USER", "text": DRAMA}, {"speaker": "SYSTEM", "text": None}]


def reasons_of(row: dict[str, Any]) -> dict[str, str]:
    return {each["metric"]: each["reason"] for each in row["null_reasons"]}


def test_a_shift_whose_window_lacks_a_text_is_unknown(catalogue: str) -> None:
    # turns    1      2      3    4      5     6      7
    # CC       1      ?      0    1      0     0      0; windows of two turns
    turns = [*exchange(*GOOD), *LACKING, *exchange(*BAD, *GOOD, *BAD, *BAD, *BAD)]
    points = [2, 3, 5, 8]
    given = log(*turns, shift_events=[{"turn": point} for point in points])
    tables = score([given], options(catalogue, window=2))
    shifts = tables["shifts"]
    # from 2: unknown and 0; from 3: 0, then 1; from 5: 0 and 0; 8 is beyond the last turn
    assert shifts["recovered"].to_list() == [None, True, False, False]
    assert shifts["delay"].to_list() == [None, 1, None, None]
    assert shifts["recovered_cosine"].to_list() == [None, True, False, False]
    unknown, _, missed, beyond = shifts.to_dicts()
    assert reasons_of(unknown) == {"delay": "missing_input", "delay_cosine": "missing_input"}
    assert reasons_of(missed) == {"delay": "not_applicable", "delay_cosine": "not_applicable"}
    assert set(reasons_of(beyond).values()) == {"not_applicable"}
    (row,) = tables["dialogues"].to_dicts()
    assert (row["n_shifts"], row["n_known_shifts"], row["n_known_shifts_cosine"]) == (4, 3, 3)
    assert row["topic_recovery_rate"] == row["recovery_rate_cosine"] == 1 / 3
    assert row["avg_recovery_delay"] == 1.0
    # CC and CR are 1, 0, 1, 0, 0, 0 over the six turns that have both texts; nothing is copied
    rest = 0.02 * (1 / 3) + 0.04 * 1 + 0.60 * (2 / 6) + 0.30 * (2 / 6)
    assert row["cas"] == pytest.approx(rest + 0.04 * (1 - 1 / 5), rel=1e-14)
    assert row["cas_all"] == pytest.approx(rest + 0.04 * (1 - 1 / 5) / 3, rel=1e-14)
    assert reasons_of(row).keys() <= {metric.id for metric in SUITE.metrics}


def test_weights_of_the_conversation_score(catalogue: str) -> None:
    chosen = options(catalogue, cas_weights="1,1,0,0,0")
    given = shifted(*GOOD, *BAD, *GOOD, points=[2])
    (row,) = score([given], chosen)["dialogues"].to_dicts()
    # recovered after one turn: (1 - 1/5)
    assert row["cas"] == pytest.approx((1 + 0.8) / 2, rel=1e-15)


def test_a_shift_that_never_recovers_counts_in_the_score_over_all_shifts(catalogue: str) -> None:
    # CC and CR are 1, 0, 0, 0, 0: of shifts at 1, 2 and 9 the first recovers at once
    texts = [*GOOD, *BAD, *BAD, *BAD, *BAD]
    (row,) = score([shifted(*texts, points=[1, 2, 9])], options(catalogue))["dialogues"].to_dicts()
    rest = 0.04 * 1 + 0.60 * (1 / 5) + 0.30 * (1 / 5)
    # the published score takes the delay of the one alone, the other the slowest for the rest
    assert row["cas"] == pytest.approx(0.02 * (1 / 3) + 0.04 * 1 + rest, rel=1e-14)
    assert row["cas_all"] == pytest.approx(0.02 * (1 / 3) + 0.04 * (1 / 3) + rest, rel=1e-14)
    failed, kept = score(
        [shifted(*texts, points=[2]), shifted(*GOOD, points=[1])], options(catalogue)
    )["dialogues"].to_dicts()
    assert (failed["cas"], failed["cas_all"]) == (None, pytest.approx(rest, rel=1e-14))
    assert kept["cas_all"] == kept["cas"] == pytest.approx(1.0)
    # a window beyond the slowest delay lets no late recovery count for less than none
    late = score([shifted(*BAD * 7, *GOOD, points=[1])], options(catalogue, window=9))
    (row,) = late["dialogues"].to_dicts()
    assert row["avg_recovery_delay"] == 7
    assert row["cas_all"] == row["cas"]


def test_copying_around_shifts_by_hand(catalogue: str) -> None:
    copied, own = ("one two three", "one two three"), ("one two three", "four five six")
    # I is 1, 0, 1, 1, 0; windows of two turns from 2 on and from 3 on, and one beyond the end
    texts = [*copied, *own, *copied, *copied, *own]
    chosen = options(catalogue, window=2)
    tables = score([shifted(*texts, points=[2, 3, 5, 8]), shifted(*copied, points=[2])], chosen)
    assert tables["shifts"]["i_around_shift"].to_list() == [1 / 2, 1.0, 0.0, None, None]
    first, second = tables["dialogues"].to_dicts()
    assert (first["i_around_shifts_sum"], first["n_turns_around_shifts"]) == (3.0, 5)
    assert first["topic_interference_around_shifts"] == 3 / 5
    assert first["topic_interference"] == 3 / 5
    assert second["topic_interference_around_shifts"] is None
    assert {"metric": "topic_interference_around_shifts", "reason": "not_applicable"} in (
        second["null_reasons"]
    )


def test_shift_points_come_from_events_and_from_either_metadata(catalogue: str) -> None:
    turns = [
        user(DRAMA, turn=1), system(DRAMA), user(DRAMA, shift_event=True), system(DRAMA),
        {"speaker": "USER", "text": DRAMA, "meta": {"is_shift": 1}}, system(DRAMA),
        user(DRAMA, is_shift=False, shift_event=None), system(DRAMA), user(DRAMA), system(DRAMA),
    ]  # fmt: skip
    given = log(*turns, shift_events=[{"turn": 5}, {"turn": 2}])
    (row,) = score([given], options(catalogue))["dialogues"].to_dicts()
    assert row["shift_points"] == [2, 3, 5]
    assert row["has_shift_metadata"] is True


@pytest.mark.parametrize(
    ("given", "present"),
    [
        (log(*exchange(*GOOD)), False),
        (log(*exchange(*GOOD), shift_events=None), False),
        (log(*exchange(*GOOD), shift_events=[]), True),
        (log(user(DRAMA, turn=1), system(DRAMA)), True),
        (log({**user(DRAMA), "meta": {}}, system(DRAMA)), True),
        (log(user(DRAMA), {**system(DRAMA), "user_meta": {"is_shift": True}}), False),
    ],
)
def test_when_shift_metadata_are_there(catalogue: str, given: Any, present: bool) -> None:
    (row,) = score([given], options(catalogue))["dialogues"].to_dicts()
    assert row["has_shift_metadata"] is present
    assert row["segments_by"] == ("metadata" if present else "none")
    assert row["n_shifts"] == 0
