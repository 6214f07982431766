"""Shifts: recovery, the scores of conversations, segments and shift points, each by hand."""

import math
from typing import Any

import pytest

from fastscore.suites.preference_shift import SUITE
from tests.suites.preference_shift.conversing import (
    BAD,
    DRAMA,
    GOOD,
    HORROR,
    ONE,
    TWO,
    exchange,
    log,
    options,
    score,
    shifted,
    system,
    user,
)


def test_recovery_by_hand(catalogue: str) -> None:
    # turns          1     2    3    4     5    6    7    8     9
    texts = [*GOOD, *BAD, *BAD, *GOOD, *BAD, *BAD, *BAD, *GOOD, *GOOD]
    tables = score([shifted(*texts, points=[12, 2, 5, 9, 2])], options(catalogue))
    shifts = tables["shifts"]
    assert shifts["turn"].to_list() == [2, 5, 9, 12]
    assert shifts["delay"].to_list() == [2, None, 0, None]
    assert shifts["recovered"].to_list() == [True, False, True, False]
    assert shifts["in_dialogue"].to_list() == [True, True, True, False]
    (row,) = tables["dialogues"].to_dicts()
    assert row["topic_recovery_rate"] == 2 / 4
    assert row["avg_recovery_delay"] == 1.0
    assert (row["n_shifts"], row["n_recovered"], row["delay_sum"]) == (4, 2, 2)
    assert row["shift_points"] == [2, 5, 9, 12]
    wide = score([shifted(*texts, points=[5])], options(catalogue, window=4))
    assert wide["shifts"]["delay"].to_list() == [3]
    narrow = score([shifted(*texts, points=[2, 9])], options(catalogue, window=0))
    assert narrow["shifts"]["delay"].to_list() == [None, 0]


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


def test_conversation_score_by_hand(catalogue: str) -> None:
    texts = [*GOOD, *BAD, *GOOD]
    (row,) = score([shifted(*texts, points=[2])], options(catalogue))["dialogues"].to_dicts()
    # recovered after one turn: (1 - 1/5); no copying; CC and CR are 1, 0, 1
    expected = 0.02 * 1 + 0.04 * 0.8 + 0.04 * 1 + 0.60 * (2 / 3) + 0.30 * (2 / 3)
    assert row["cas"] == pytest.approx(expected, rel=1e-14)
    chosen = options(catalogue, cas_weights="1,1,0,0,0")
    (row,) = score([shifted(*texts, points=[2])], chosen)["dialogues"].to_dicts()
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


def test_segments_end_at_shifts_and_sum_their_turns(catalogue: str) -> None:
    texts = [DRAMA, DRAMA, "drama Heat", HORROR, HORROR, HORROR]
    tables = score([shifted(*texts, points=[3, 7])], options(catalogue))
    first, second = tables["segments"].to_dicts()
    assert (first["start_turn"], first["end_turn"]) == (1, 2)
    assert (second["start_turn"], second["end_turn"]) == (3, 3)
    assert tables["turns"]["segment"].to_list() == [1, 1, 2]
    assert tables["turns"]["is_shift"].to_list() == [False, False, True]
    # unions {drama, heat} and {drama, horror}; sums: drama twice and heat against drama and horror
    assert first["segment_cc"] == 1 / 3
    norms = math.sqrt(4 * TWO**2 + ONE**2) * math.sqrt(TWO**2 + TWO**2)
    assert first["segment_cr"] == pytest.approx(2 * TWO**2 / norms, rel=1e-14)
    assert first["missing_concepts"] == ["name=heat"]
    assert first["hallucinated_concepts"] == ["genre=horror"]
    assert second["segment_cc"] == second["segment_tas"] == 1.0
    assert tables["dialogues"]["n_segments"].item() == 2
    assert tables["dialogues"]["segments_by"].item() == "metadata"


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
