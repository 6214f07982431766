"""The metrics by hand, from their definitions."""

import math
from typing import Any

import pytest

from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from tests.suites.preference_shift.conversing import (
    DRAMA,
    ONE,
    TWO,
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


def test_a_turn_by_hand(catalogue: str) -> None:
    said = "A drama with Al Pacino, like Heat?"
    answered = "A drama like Heat is Her."
    (row,) = turn_rows(score([log(*exchange(said, answered))], options(catalogue)))
    assert row["user_concepts"] == ["actor=al pacino", "genre=drama", "name=heat"]
    assert row["system_concepts"] == ["genre=drama", "name=heat", "name=her"]
    assert row["cc"] == 2 / 4
    common = TWO**2 + ONE**2
    assert row["cr"] == pytest.approx(common / (common + ONE**2), rel=1e-15)
    assert row["i"] == 0.0
    # 0.5 + 0.62 - 0 is above 1
    assert row["tas"] == 1.0
    assert row["missing_concepts"] == ["actor=al pacino"]
    assert row["hallucinated_concepts"] == ["name=her"]
    assert (row["turn"], row["segment"], row["is_shift"]) == (1, 1, False)
    assert (row["user_text"], row["system_text"]) == (said, answered)
    assert row["both_empty"] is False


def test_copying_by_the_specification(catalogue: str) -> None:
    said, answered = "a quick brown fox", "the quick brown fox jumps"
    (row,) = turn_rows(score([log(*exchange(said, answered))], options(catalogue)))
    assert row["i"] == 1 / 3
    (row,) = turn_rows(score([log(*exchange(said, answered))], options(catalogue, copy_orders="2")))
    assert row["i"] == 2 / 4


def test_a_text_that_is_not_given_is_no_empty_text(catalogue: str) -> None:
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


def test_means_are_missing_where_no_turn_has_both_texts(catalogue: str) -> None:
    lacking = [{"speaker": "USER", "text": EMPTY}, {"speaker": "SYSTEM"}]
    tables = score([log(*lacking)], options(catalogue))
    (dialogue,) = tables["dialogues"].to_dicts()
    reasons = {each["metric"]: each["reason"] for each in dialogue["null_reasons"]}
    assert dialogue["cross_coherence"] is None
    assert reasons["cross_coherence"] == "missing_input"
    (segment,) = tables["segments"].to_dicts()
    assert (segment["segment_cc"], segment["segment_tas"]) == (None, None)


def test_weights_of_adaptation(catalogue: str) -> None:
    said = answered = "drama for the whole evening"
    chosen = options(catalogue, alpha=0.25, beta=0.5, gamma=0.5)
    (row,) = turn_rows(score([log(*exchange(said, answered))], chosen))
    assert (row["cc"], row["cr"], row["i"]) == (1.0, 1.0, 1.0)
    assert row["tas"] == 0.25
    chosen = options(catalogue, gamma=4.0)
    assert score([log(*exchange(said, answered))], chosen)["turns"]["tas"].item() == -1.0


def test_plot_keywords_of_structured_have_its_prefix(catalogue: str) -> None:
    said = "The other crew explored a spaceship, does it?"
    chosen = options(catalogue, profile="structured", plot_keywords=True, fields="genre,name")
    (row,) = turn_rows(score([log(*exchange(said, EMPTY))], chosen))
    # substrings: "her" in other, "x" in explored; of the plot words crew and spaceship
    assert row["user_concepts"] == ["name=her", "name=x", "plot_kw=crew", "plot_kw=spaceship"]


def test_state_tracking_by_hand(catalogue: str) -> None:
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
def test_state_tracking_of_empty_sets(
    catalogue: str, constraints: Any, answered: str, expected: tuple[float, ...]
) -> None:
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
        ({"catalogue": ""}, "No catalogue is named"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PreferenceShift(**{"catalogue": "movies.json", **values})


def test_a_profile_is_spelled_out_in_the_options() -> None:
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


def test_trivial_agents_by_hand(catalogue: str) -> None:
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
