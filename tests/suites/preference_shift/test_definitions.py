"""The metrics by hand, from their definitions."""

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE, PreferenceShiftOptions
from tests.suites.preference_shift.conversing import (
    exchange,
    log,
    options,
    score,
    system,
    user,
    write_catalogue,
)

# of four items: in one item ln(5/2) + 1, in two ln(5/3) + 1
ONE, TWO = math.log(5 / 2) + 1, math.log(5 / 3) + 1
EMPTY = "..."
DRAMA, HORROR = "drama", "horror"


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    return write_catalogue(tmp_path)


def turn_rows(tables: dict[str, pl.DataFrame]) -> list[dict[str, Any]]:
    return tables["turns"].to_dicts()


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


@pytest.mark.parametrize(
    ("said", "answered", "cc", "cr"),
    [(EMPTY, EMPTY, 1.0, 0.0), (DRAMA, EMPTY, 0.0, 0.0), (EMPTY, DRAMA, 0.0, 0.0)],
)
def test_empty_sets_as_published(
    catalogue: str, said: str, answered: str, cc: float, cr: float
) -> None:
    tables = score([log(*exchange(said, answered))], options(catalogue))
    (row,) = turn_rows(tables)
    assert (row["cc"], row["cr"]) == (cc, cr)
    assert row["both_empty"] is (said == answered)
    assert tables["dialogues"]["n_both_empty"].item() == int(said == answered)


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


def test_profiles_of_published_files_take_null_for_an_empty_text(catalogue: str) -> None:
    turns = [{"speaker": "USER", "text": None}, {"speaker": "SYSTEM"}]
    (row,) = turn_rows(score([log(*turns)], options(catalogue, profile="published")))
    assert (row["cc"], row["user_text"], row["system_text"]) == (1.0, "", "")


def test_adaptation_is_clipped_by_turn_before_the_mean(catalogue: str) -> None:
    tables = score([log(*exchange(DRAMA, DRAMA, DRAMA, HORROR))], options(catalogue))
    assert tables["turns"]["tas"].to_list() == [1.0, 0.0]
    (row,) = tables["dialogues"].to_dicts()
    assert row["context_adaptation_score"] == 0.5
    assert row["cross_coherence"] + row["context_retention"] - row["topic_interference"] == 1.0


def test_weights_of_adaptation(catalogue: str) -> None:
    said = answered = "drama for the whole evening"
    chosen = options(catalogue, alpha=0.25, beta=0.5, gamma=0.5)
    (row,) = turn_rows(score([log(*exchange(said, answered))], chosen))
    assert (row["cc"], row["cr"], row["i"]) == (1.0, 1.0, 1.0)
    assert row["tas"] == 0.25
    chosen = options(catalogue, gamma=4.0)
    assert score([log(*exchange(said, answered))], chosen)["turns"]["tas"].item() == -1.0


def test_profiles_differ_in_matching_fields_and_plots(catalogue: str) -> None:
    said = "The other crew explored a spaceship, does it?"
    found = {}
    for profile in ("default", "published", "structured"):
        chosen = options(catalogue, profile=profile)
        (row,) = turn_rows(score([log(*exchange(said, EMPTY))], chosen))
        found[profile] = row["user_concepts"]
    assert found["default"] == []
    # substrings: "her" in other, "x" in explored; of the plot words crew and spaceship
    assert found["published"] == ["name=her", "name=x", "plot=crew", "plot=spaceship"]
    assert found["structured"] == []
    chosen = options(catalogue, profile="structured", plot_keywords=True, fields="genre,name")
    (row,) = turn_rows(score([log(*exchange(said, EMPTY))], chosen))
    assert row["user_concepts"] == ["name=her", "name=x", "plot_kw=crew", "plot_kw=spaceship"]


def shifted(*texts: str, points: list[int]) -> dict[str, Any]:
    return log(*exchange(*texts), shift_events=[{"turn": point} for point in points])


GOOD, BAD = (DRAMA, DRAMA), (DRAMA, HORROR)


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


def test_a_shift_is_recovered_by_a_turn_that_is_known_beside_one_that_is_not(
    catalogue: str,
) -> None:
    turns = [*LACKING, *exchange(*GOOD)]
    tables = score([log(*turns, shift_events=[{"turn": 1}])], options(catalogue))
    assert tables["shifts"].select("recovered", "delay").row(0) == (True, 1)
    assert tables["dialogues"]["topic_recovery_rate"].item() == 1.0


OF_RECOVERY = (
    "topic_recovery_rate", "avg_recovery_delay", "recovery_rate_cosine",
    "avg_recovery_delay_cosine", "cas", "cas_all",
)  # fmt: skip


def test_recovery_is_missing_where_all_shifts_are_unknown(catalogue: str) -> None:
    given = log(*exchange(*GOOD), *LACKING, shift_events=[{"turn": 2}])
    tables = score([given], options(catalogue))
    (row,) = tables["dialogues"].to_dicts()
    assert {row[name] for name in OF_RECOVERY} == {None}
    assert (row["n_shifts"], row["n_known_shifts"], row["n_recovered"]) == (1, 0, 0)
    names = (*OF_RECOVERY, "topic_interference_around_shifts")
    assert {reasons_of(row)[name] for name in names} == {"missing_input"}
    (shift,) = tables["shifts"].to_dicts()
    assert (shift["in_dialogue"], shift["i_around_shift"]) == (True, None)
    assert reasons_of(shift) == dict.fromkeys(
        ("delay", "delay_cosine", "i_around_shift"), "missing_input"
    )
    # the profiles of published files take null for an empty text, so nothing is unknown to them
    for profile in ("published", "structured"):
        tables = score([given], options(catalogue, profile=profile))
        assert tables["shifts"]["recovered"].to_list() == [False]
        assert tables["dialogues"]["topic_recovery_rate"].item() == 0.0


def test_the_score_over_all_shifts_needs_a_turn_with_both_texts(catalogue: str) -> None:
    (row,) = score([log(*LACKING, shift_events=[{"turn": 9}])], options(catalogue))[
        "dialogues"
    ].to_dicts()
    # the shift beyond the last turn was not recovered, so much is known
    assert (row["topic_recovery_rate"], row["cas"], row["cas_all"]) == (0.0, None, None)
    assert reasons_of(row)["avg_recovery_delay"] == reasons_of(row)["cas"] == "not_applicable"
    assert reasons_of(row)["cas_all"] == "missing_input"
    assert reasons_of(row)["topic_interference_around_shifts"] == "not_applicable"


def test_the_structured_test_takes_cosine_too(catalogue: str) -> None:
    # CC 1/3 is below both thresholds; the shared rarer value brings CR to
    said, answered = "drama Al Pacino Robert De Niro", "Al Pacino"
    cr = ONE / math.sqrt(TWO**2 + 2 * ONE**2)
    assert cr < 0.65
    logs = [shifted(said, answered, points=[1])]
    for recovery_cr, delay in ((0.65, None), (cr - 1e-9, 0)):
        chosen = options(catalogue, profile="structured", recovery_cr=recovery_cr)
        tables = score(logs, chosen)
        assert tables["turns"]["cc"].to_list() == [1 / 3]
        assert tables["shifts"]["delay"].to_list() == [delay]
        assert tables["shifts"]["delay_cosine"].to_list() == [delay]
    assert score(logs, options(catalogue, recovery_cc=0.33))["shifts"]["delay"].to_list() == [0]


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


def test_no_score_over_all_shifts_without_a_shift_or_a_turn(catalogue: str) -> None:
    tables = score([log(*exchange(*GOOD)), log(shift_events=[{"turn": 1}])], options(catalogue))
    for row in tables["dialogues"].to_dicts():
        assert row["cas_all"] is None
        assert {"metric": "cas_all", "reason": "not_applicable"} in row["null_reasons"]


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


@pytest.mark.parametrize("points", [[], [2]])
def test_no_conversation_score_without_recovery(catalogue: str, points: list[int]) -> None:
    (row,) = score([shifted(*GOOD, *BAD, points=points)], options(catalogue))[
        "dialogues"
    ].to_dicts()
    assert row["cas"] is None
    assert {"metric": "cas", "reason": "not_applicable"} in row["null_reasons"]


@pytest.mark.parametrize(("profile", "rate"), [("default", None), ("published", 0.0),
                                               ("structured", 0.0)])  # fmt: skip
def test_no_shift_and_no_turn(catalogue: str, profile: str, rate: float | None) -> None:
    chosen = options(catalogue, profile=profile)
    tables = score([log(*exchange(*GOOD)), log(), log(shift_events=[{"turn": 1}])], chosen)
    one, none, lost = tables["dialogues"].to_dicts()
    assert one["topic_recovery_rate"] == rate
    assert one["cross_coherence"] == 1.0
    assert one["avg_recovery_delay"] is None
    for row in (none, lost):
        assert row["cross_coherence"] == row["context_adaptation_score"] == rate
        assert row["topic_recovery_rate"] == rate
        assert (row["n_turns"], row["missing_concepts_total"]) == (0, 0)
    named = {reason["metric"] for reason in none["null_reasons"]}
    assert ("cross_coherence" in named) is (rate is None)
    assert ("topic_recovery_rate" in named) is (rate is None)
    assert tables["shifts"]["in_dialogue"].to_list() == [False]


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


def test_points_far_beyond_the_last_turn_cut_nothing(catalogue: str) -> None:
    tables = score([shifted(*GOOD, *GOOD, points=[3, 2**63 - 1])], options(catalogue))
    assert tables["shifts"]["in_dialogue"].to_list() == [False, False]
    assert tables["segments"].height == 1
    assert not tables["turns"]["is_shift"].any()


def test_fields_of_any_name_and_catalogues_without_plots(tmp_path: Path) -> None:
    path = write_catalogue(tmp_path, [{"кухня": ["Грузинская", "thai"]}, {"кухня": "Thai"}])
    turns = user("грузинская!", constraints={"кухня": "Грузинская"}), system("Thai")
    (row,) = turn_rows(score([log(*turns)], options(path, fields="кухня")))
    assert row["missing_concepts"] == row["gold_concepts"] == ["кухня=грузинская"]
    (row,) = turn_rows(score([log(*turns)], options(path, fields="", plot_keywords=True)))
    assert (row["user_concepts"], row["cc"]) == ([], 1.0)


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


def test_no_conversation_depends_on_another(catalogue: str) -> None:
    logs = [
        log(*exchange(*GOOD, *BAD), session_id="a", shift_events=[{"turn": 2}]),
        log(session_id="b"),
        log(*exchange(EMPTY, "Heat", "Her", "Her!"), session_id="c"),
        shifted(*GOOD, *GOOD, *GOOD, points=[1, 3]),
    ]
    chosen = options(catalogue, profile="published")
    together = score(logs, chosen)
    for row, each in enumerate(logs):
        alone = score([each], chosen)
        for name, table in alone.items():
            of_log = together[name].filter(pl.col("line") == row + 1)
            assert table.drop("line").equals(of_log.drop("line")), name


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fields": ","}, "--fields is ','"),
        ({"fields": "genre,genre"}, "each name once"),
        ({"fields": "genre,plot"}, "--plot-keywords"),
        ({"copy_orders": "3,x"}, "--copy-orders is '3,x', expected one or more numbers"),
        ({"copy_orders": "0"}, "at least 1"),
        ({"alpha": math.inf}, "--alpha is inf, expected a finite number"),
        ({"gamma": -math.inf}, "--gamma is -inf"),
        ({"beta": math.nan}, "--beta is nan"),
        ({"cas_weights": "1,2"}, "--cas-weights is '1,2', expected 5 numbers"),
        ({"cas_weights": "0,0,0,0,0"}, "one above 0"),
        ({"cas_weights": "nan,0,0,0,1"}, "--cas-weights"),
        ({"catalogue": ""}, "No catalogue is named"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PreferenceShiftOptions(**{"catalogue": "movies.json", **values})


def test_a_profile_is_spelled_out_in_the_options() -> None:
    for profile, match, recovery, threshold in (
        ("default", "word", "cc", 0.65),
        ("published", "substring", "cc", 0.65),
        ("structured", "substring", "cc-or-cr", 0.35),
    ):
        found = PreferenceShiftOptions(profile=profile, catalogue="movies.json")
        assert (found.match, found.recovery, found.recovery_cc) == (match, recovery, threshold)
        assert found.plot_keywords is (profile == "published")
    changed = PreferenceShiftOptions(
        profile="published", catalogue="m.json", plot_keywords=False, recovery="cc-or-cr"
    )
    assert (changed.plot_keywords, changed.recovery_cc) == (False, 0.35)


def test_every_metric_is_a_column_of_its_table() -> None:
    tables = {table.name: table for table in SUITE.tables}
    for metric in SUITE.metrics:
        column = next(c for c in tables[metric.table].columns if c.name == metric.id)
        assert column.metric == metric.id
        assert column.nullable is (metric.null_rule != "never")
