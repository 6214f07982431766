"""Missing input is null, empty input is no statement: metric by metric."""

import json
from typing import Any

import polars as pl
import pytest

from fastscore.suites.group_travel import SUITE
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.suites.group_travel.test_uses import Turns, example
from tests.suites.group_travel.travelling import DEFAULTS, opening, raw_rows, turn

OF_PLANS = {"W1", "W2", "W3", "M10", "M11", "M12", "M13"}
OF_ALL_SLOTS = {"M2", "M8", "M8a", "M8b", "M15"}
OF_LODGING = OF_PLANS | OF_ALL_SLOTS
OF_ATTRACTION = OF_LODGING | {"M10b"}
# the example explains how this slot was resolved, and no other
OF_CUISINE = OF_ATTRACTION | {"M14"}
(_, A_CUISINE, _, A_LODGING, B_ATTRACTION, SYNTHESIS, FEEDBACK, SYS_FEEDBACK, PRESENTATION,
 ACCEPTANCE) = range(10)  # fmt: skip
UNSAID = {
    A_CUISINE: OF_CUISINE,
    A_LODGING: OF_LODGING,
    B_ATTRACTION: OF_ATTRACTION,
    # its metadata flags the conflict and has an explanation, so M2 and M3 are known
    SYNTHESIS: {"M4b", "M8", "M8a"},
    FEEDBACK: set(),
    SYS_FEEDBACK: {"M4b"},
    PRESENTATION: {"M4b", "M8", "M8b"},
    ACCEPTANCE: set(),
}
BY_NOBODY = {
    A_CUISINE: OF_CUISINE | {"M1", "M6"},
    A_LODGING: OF_LODGING | {"M1", "M6"},
    SYNTHESIS: set(),
    FEEDBACK: set(),
    PRESENTATION: set(),
    ACCEPTANCE: {"M6"},
}
CASES = [
    *(("utterance", place, null) for place, null in UNSAID.items()),
    *(("speaker", place, null) for place, null in BY_NOBODY.items()),
]


def scored(turns: Turns, layout: str = "rows") -> tuple[dict[str, Any], pl.DataFrame]:
    """Score a dialogue without vectors, in rows or as an array in which nulls do not stand."""
    rows = raw_rows(turns)
    if layout == "array":
        given = [{k: v for k, v in each.items() if v is not None} for each in turns]
        rows = raw_rows([{"turns": json.dumps(given)}], name="trip{}.jsonl")
    events = SUITE.read(rows, DEFAULTS)
    tables = SUITE.score(events, VectorView.empty(), DEFAULTS)
    return tables["dialogues"].row(0, named=True), events.rejects


def missing(row: dict[str, Any]) -> set[str]:
    found = {each["metric"] for each in row["null_reasons"] if each["reason"] == "missing_input"}
    assert all(row[name] is None for name in found)
    return found


def but_for(turns: Turns, place: int, **cells: Any) -> Turns:
    return [each | cells if number == place else each for number, each in enumerate(turns)]


@pytest.mark.parametrize(
    ("layout", "cell", "place", "null"),
    [("rows", *case) for case in CASES] + [("array", *case) for case in CASES[:: often(4, 1)]],
)
def test_a_metric_is_null_where_a_turn_that_it_reads_was_not_given(
    layout: str, cell: str, place: int, null: set[str]
) -> None:
    row, _ = scored(but_for(example(), place, **{cell: None}), layout)
    empty, _ = scored(but_for(example(), place, **{cell: ""}), layout)
    assert missing(row) == null
    assert missing(empty) == set()
    for metric in METRICS:
        if metric.id not in null:
            assert row[metric.id] == empty[metric.id], metric.id
        elif metric.micro is not None:
            assert [row[column] for column in metric.micro] == [0, 0], metric.id


@pytest.mark.parametrize("layout", ["rows", "array"])
def test_who_states_or_accepts_something_is_asked_for_by_line(layout: str) -> None:
    for place, n_rejects in ((A_CUISINE, 1), (ACCEPTANCE, 1), (SYNTHESIS, 0), (PRESENTATION, 0)):
        _, rejects = scored(but_for(example(), place, speaker=None), layout)
        assert rejects["reason"].to_list() == ["missing_field"] * n_rejects


def test_a_synthesis_without_a_flag_or_an_explanation_rests_on_its_utterance() -> None:
    row, _ = scored(but_for(example(), SYNTHESIS, utterance=None, metadata=None))
    # and M14, of which nothing is explained, is not applicable
    assert missing(row) == {"M2", "M3", "M4b", "M8", "M8a"}
    # six words of another turn explain the slot, and name the conflict
    turns = but_for(example(), SYNTHESIS, utterance=None, metadata=None)
    said = "We find a compromise for you all"
    row, _ = scored([*turns, turn("System", "sys_synthesize_cuisine", said)])
    assert missing(row) == {"M4b", "M8", "M8a"}
    assert (row["M2"], row["M3"]) == (1.0, 1.0)


def test_channels_do_not_fire_for_a_share_that_is_unknown() -> None:
    whole, _ = scored(example())
    row, _ = scored(but_for(example(), A_CUISINE, utterance=None))
    assert (whole["n_room_channel"], row["n_room_channel"]) == (1, 0)


def test_a_single_user_is_one_voice_whoever_speaks() -> None:
    states = turn("", "user_provide_cuisine", "pizza") | {"speaker": None}
    row, _ = scored([opening("C1", member_count=3), states])
    assert (row["M1"], row["M1_num"], row["M1_den"]) == (1 / 3, 1, 3)
    # where only the voices could tell that it is single
    row, _ = scored([turn("System", "sys_welcome", metadata={"member_count": 3}), states])
    assert row["M1"] is None


def test_members_that_are_counted_by_who_speaks_need_speakers() -> None:
    turns = [opening("C2"), turn("Ann", "user_provide_cuisine", "pizza")]
    nobody = turn("", "user_respond_cuisine", "fine") | {"speaker": None}
    assert scored([*turns, nobody])[0]["M1"] is None
    assert scored([*turns, nobody | {"intent": "sys_request_vote_cuisine"}])[0]["M1"] == 1.0
    listed = [opening("C2", member_count=2), *turns[1:]]
    assert scored([*listed, nobody])[0]["M1"] == 0.5


def test_everybody_accepts_whoever_else_does() -> None:
    nobody = turn("", "user_accept_plan", "yes") | {"speaker": None}
    assert scored([*example(), nobody])[0]["M6"] is None
    row, _ = scored([*example(), turn("Everyone", "user_accept_plan", "yes"), nobody])
    assert row["M6"] == 1.0
