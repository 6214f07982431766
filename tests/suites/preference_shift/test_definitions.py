"""The metrics by hand, from their definitions: turns, shifts, profile legacy."""

import math

import numpy as np
import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from fastscore.suites.preference_shift.concepts import topics_of
from fastscore.vectors.view import VectorView
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
    turn_rows,
    user,
)

EMPTY = "..."


def test_copying_by_the_specification(catalogue):
    said, answered = "a quick brown fox", "the quick brown fox jumps"
    (row,) = turn_rows(score([log(*exchange(said, answered))], options(catalogue)))
    assert row["i"] == 1 / 3
    (row,) = turn_rows(score([log(*exchange(said, answered))], options(catalogue, copy_orders="2")))
    assert row["i"] == 2 / 4


def test_a_text_that_is_not_given_is_no_empty_text(catalogue):
    lacking = [{"speaker": "USER", "text": None}, {"speaker": "SYSTEM"}]
    tables = score([log(*lacking, *exchange(DRAMA, DRAMA))], options(catalogue))
    first, second = turn_rows(tables)
    assert [first[name] for name in ("cc", "cr", "i", "tas", "user_text")] == [None] * 5
    reasons = {each["metric"]: each["reason"] for each in first["null_reasons"]}
    assert {reasons[name] for name in ("cc", "cr", "i", "tas")} == {"missing_input"}
    assert second["cc"] == 1.0
    (dialogue,) = tables["dialogues"].to_dicts()
    # the mean over the one turn of two that has both texts
    assert (dialogue["cross_coherence"], dialogue["n_turns"]) == (1.0, 2)


def test_means_are_missing_where_no_turn_has_both_texts(catalogue):
    lacking = [{"speaker": "USER", "text": EMPTY}, {"speaker": "SYSTEM"}]
    tables = score([log(*lacking)], options(catalogue))
    (dialogue,) = tables["dialogues"].to_dicts()
    reasons = {each["metric"]: each["reason"] for each in dialogue["null_reasons"]}
    assert dialogue["cross_coherence"] is None
    assert reasons["cross_coherence"] == "missing_input"
    (segment,) = tables["segments"].to_dicts()
    assert (segment["segment_cc"], segment["segment_tas"]) == (None, None)


def test_weights_of_adaptation(catalogue):
    said = answered = "drama for the whole evening"
    chosen = options(catalogue, alpha=0.25, beta=0.5, gamma=0.5)
    (row,) = turn_rows(score([log(*exchange(said, answered))], chosen))
    assert (row["cc"], row["cr"], row["i"]) == (1.0, 1.0, 1.0)
    assert row["tas"] == 0.25
    chosen = options(catalogue, gamma=4.0)
    assert score([log(*exchange(said, answered))], chosen)["turns"]["tas"].item() == -1.0


def test_plot_keywords_of_structured_have_its_prefix(catalogue):
    said = "The other crew explored a spaceship, does it?"
    chosen = options(catalogue, profile="structured", plot_keywords=True, fields="genre,name")
    (row,) = turn_rows(score([log(*exchange(said, EMPTY))], chosen))
    # substrings: "her" in other, "x" in explored; of the plot words crew and spaceship
    assert row["user_concepts"] == ["name=her", "name=x", "plot_kw=crew", "plot_kw=spaceship"]


def test_state_tracking_by_hand(catalogue):
    meta = {"constraints": {"genre": ["Drama", "nothing"], "title": "Heat", "year": 1995,
                            "actor": None, "mood": "x"}}  # fmt: skip
    turns = [
        user("hello", **meta),
        system("A drama: Heat, with Al Pacino"),
        user(DRAMA),
        system(""),
    ]
    rows = turn_rows(score([log(*turns)], options(catalogue)))
    assert rows[0]["gold_concepts"] == ["genre=drama", "name=heat", "year=1995"]
    assert rows[0]["dst_precision"] == 2 / 3
    assert rows[0]["dst_recall"] == 2 / 3
    assert rows[0]["dst_f1"] == pytest.approx(2 / 3, rel=1e-15)
    assert rows[0]["dst_joint_accuracy"] == 0.0
    assert rows[1]["dst_f1"] is None
    assert rows[1]["gold_concepts"] is None
    assert {"metric": "dst_f1", "reason": "missing_input"} in rows[1]["null_reasons"]
    # structured knows no names, and takes the user's concepts where there are no constraints
    tables = score([log(*turns)], options(catalogue, profile="structured"))
    rows = turn_rows(tables)
    assert rows[0]["gold_concepts"] == ["genre=drama", "year=1995"]
    assert (rows[1]["dst_precision"], rows[1]["dst_recall"]) == (0.0, 0.0)
    assert tables["dialogues"]["n_gold"].item() == 2


@pytest.mark.parametrize(
    ("constraints", "answered", "expected"),
    [
        ({}, "", (1.0, 1.0, 1.0, 1.0)),
        ({}, DRAMA, (0.0, 1.0, 0.0, 0.0)),
        ({"genre": DRAMA}, "", (0.0, 0.0, 0.0, 0.0)),
        ({"genre": DRAMA}, DRAMA, (1.0, 1.0, 1.0, 1.0)),
        ({"genre": DRAMA}, "drama horror", (0.5, 1.0, 2 / 3, 0.0)),
        ({"genre": []}, "", (1.0, 1.0, 1.0, 1.0)),
        ({"plot_keywords": "crew"}, "", (1.0, 1.0, 1.0, 1.0)),
        # a value counts in its own field only
        ({"actor": DRAMA}, DRAMA, (0.0, 1.0, 0.0, 0.0)),
    ],
)
def test_state_tracking_of_empty_sets(catalogue, constraints, answered, expected):
    given = log(user("hello", constraints=constraints), system(answered))
    (row,) = turn_rows(score([given], options(catalogue)))
    names = ("dst_precision", "dst_recall", "dst_f1", "dst_joint_accuracy")
    assert tuple(row[name] for name in names) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fields": ","}, "fields is ','"),
        ({"fields": "genre,genre"}, "each name once"),
        ({"fields": "genre,plot"}, "plot_keywords"),
        ({"copy_orders": "3,x"}, "copy_orders is '3,x', expected one or more numbers"),
        ({"copy_orders": "0"}, "at least 1"),
        ({"alpha": math.inf}, "alpha is inf, expected a finite number"),
        ({"gamma": -math.inf}, "gamma is -inf"),
        ({"beta": math.nan}, "beta is nan"),
        ({"cas_weights": "1,2"}, "cas_weights is '1,2', expected 5 numbers"),
        ({"cas_weights": "0,0,0,0,0"}, "one above 0"),
        ({"cas_weights": "nan,0,0,0,1"}, "cas_weights"),
        (
            {"cas_weights": "0,1,0,0,0", "profile": "legacy"},
            "another weight than that of the delay",
        ),
        ({"catalogue": ""}, "No catalogue is named"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        PreferenceShift(**{"catalogue": "movies.json", **values})


def test_a_profile_is_spelled_out_in_the_options():
    for profile, match, recovery, threshold in (
        ("default", "word", "cc", 0.65),
        ("published", "substring", "cc", 0.65),
        ("structured", "substring", "cc-or-cr", 0.35),
    ):
        found = PreferenceShift(profile=profile, catalogue="movies.json")
        assert (found.match, found.recovery, found.recovery_cc) == (match, recovery, threshold)
        assert found.plot_keywords is (profile == "published")
    changed = PreferenceShift(
        profile="published", catalogue="m.json", plot_keywords=False, recovery="cc-or-cr"
    )
    assert (changed.plot_keywords, changed.recovery_cc) == (False, 0.35)


def test_trivial_agents_by_hand(catalogue):
    # a refusal agrees in the turn without a concept alone, an echo copies all phrases of four words
    # TAS: 0 and 1, and 1 + 1 - 1 and 1; after the shift the second turn recovers, and the first
    chosen = options(catalogue)
    tables = score([shifted("a drama like Heat", "x", "hello", "x", points=[1])], chosen)
    lazy = {name: frame.lazy() for name, frame in tables.items()}
    columns = (
        *("agent", "cross_coherence", "context_retention", "topic_interference"),
        *("context_adaptation_score", "topic_recovery_rate", "avg_recovery_delay"),
    )
    rows = SUITE.trivial_agents(lazy, chosen).select(columns).sort("agent").rows()
    assert rows == [
        ("always refusing", 0.5, 0.0, 0.0, 0.5, 1.0, 1.0),
        ("echoing the user", 1.0, 0.5, 0.5, 1.0, 1.0, 0.0),
    ]


# --- shifts


def test_windows_of_recovery(catalogue):
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


def reasons_of(row):
    return {each["metric"]: each["reason"] for each in row["null_reasons"]}


def test_a_shift_whose_window_lacks_a_text_is_unknown(catalogue):
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


def test_weights_of_the_conversation_score(catalogue):
    chosen = options(catalogue, cas_weights="1,1,0,0,0")
    given = shifted(*GOOD, *BAD, *GOOD, points=[2])
    (row,) = score([given], chosen)["dialogues"].to_dicts()
    # recovered after one turn: (1 - 1/5)
    assert row["cas"] == pytest.approx((1 + 0.8) / 2, rel=1e-15)


def test_a_recovery_later_than_the_slowest_counts_for_no_less_than_none(catalogue):
    late = score([shifted(*BAD * 7, *GOOD, points=[1])], options(catalogue, window=9))
    (row,) = late["dialogues"].to_dicts()
    assert row["avg_recovery_delay"] == 7
    assert row["cas_all"] == row["cas"]


def test_shift_points_come_from_events_and_from_either_metadata(catalogue):
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
def test_when_shift_metadata_are_there(catalogue, given, present):
    (row,) = score([given], options(catalogue))["dialogues"].to_dicts()
    assert row["has_shift_metadata"] is present
    assert row["segments_by"] == ("metadata" if present else "none")
    assert row["n_shifts"] == 0


# --- profile legacy: recovery of topics


CORNERS = {
    "ghost": [1.0, 0.0, 0.0],
    "love": [0.0, 1.0, 0.0],
    "dark": [0.6, 0.8, 0.0],
    "ghost love": [0.0, 1.0, 0.0],
    "the table": [0.0, 0.0, 1.0],
    "": [0.0, 0.0, 1.0],
}
VECTORS = VectorView.from_texts(list(CORNERS), np.array(list(CORNERS.values())))


def legacy(catalogue, **more):
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
def test_by_hand(catalogue, texts, points, found, expected):
    more = {} if points is None else {"shift_events": [{"turn": point} for point in points]}
    tables = score([log(*exchange(*texts), **more)], legacy(catalogue), VECTORS)
    assert tables["shifts"].select("turn", "delay").rows() == found
    row = tables["dialogues"].row(0, named=True)
    assert tuple(row[metric] for metric in METRICS) == pytest.approx(expected)
    assert row["cas"] == row["context_adaptation_score"]


def test_nothing_to_recover_or_to_say(catalogue):
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


def test_segments_are_of_texts(catalogue):
    with pytest.raises(UsageError, match="profile legacy"):
        legacy(catalogue, segments="metadata")
    assert legacy(catalogue).segments == "heuristic"


def test_of_words_that_score_alike_the_earlier_stay():
    # all six have a stem and stand twice; "ghosts" is the last to appear, though not to end
    text = pl.Series(
        ["sadly happy tense darker lovely ghosts ghosts lovely darker tense happy sadly"]
    )
    assert topics_of(text)[1].to_list() == ["sadly happy tense darker lovely"]
