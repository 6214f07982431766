"""Real dialogues, turn by turn, against the plain scorer that was written from the definitions.

The bundled sample always; with FASTSCORE_DATA naming a folder that has redial_valid.jsonl.gz and
redial_movies.jsonl.gz, also all 1,000 dialogues against the whole catalogue.
"""

import math
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastscore
from benchmarks.preference_shift_logs import (
    DATA,
    KINDS,
    SPEAKERS,
    Movie,
    read_lines,
    read_source,
    write_jsonl,
)
from tests.conftest import often
from tests.oracles import preference_shift as plain
from tests.oracles import preference_shift_concepts as plain_concepts

Row = dict[str, Any]
PROFILES = list(plain_concepts.PROFILES)
CLOSE = {"rel_tol": 0.0, "abs_tol": 1e-12}


def data_folder() -> Path:
    folder = os.environ.get("FASTSCORE_DATA")
    if not folder or not (Path(folder) / "redial_valid.jsonl.gz").exists():
        pytest.skip("FASTSCORE_DATA names no folder with redial_valid.jsonl.gz")
    return Path(folder)


def make(kind: str, folder: Path) -> tuple[list[Row], list[Movie]]:
    """Make the logs of a kind; ``unaligned`` ones keep every message as a turn of its own."""
    dialogues, movies = read_source(folder)
    if kind != "unaligned":
        return list(KINDS[kind](dialogues, movies, random.Random(0))), movies
    rows = read_lines(folder, ("redial_valid.jsonl.gz", "redial_sample.jsonl.gz"))
    logs = [
        {
            "session_id": row["id"],
            "model_name": "redial",
            "conversation": [
                {"speaker": SPEAKERS[turn[0]], "text": turn[1]} for turn in row["turns"]
            ],
            "shift_events": [],
        }
        for row in rows
    ]
    return logs, movies


def compare(
    logs: Sequence[Row], movies: Sequence[Movie], profile: str, folder: Path
) -> dict[str, list[Row]]:
    """Score the logs both ways, compare every row, and return the suite's rows by table."""
    catalogue, path = folder / "catalogue.jsonl", folder / "logs.jsonl"
    write_jsonl(catalogue, movies)
    write_jsonl(path, logs)
    scores = fastscore.score(
        path,
        fastscore.PreferenceShift(catalogue=str(catalogue), profile=profile, segments="metadata"),
        embedder=None,
        max_rejects=1.0,
    )
    expected = plain.score_logs(
        logs, plain_concepts.make_catalogue(movies), plain_concepts.PROFILES[profile]
    )
    tables = {name: frame.to_dicts() for name, frame in scores.tables.items()}
    compare_dialogues(tables["dialogues"], expected)
    compare_turns(tables["turns"], expected)
    compare_segments(tables["segments"], expected)
    compare_shifts(tables["shifts"], expected)
    lost = sum(len(log["conversation"]) for log in logs) - 2 * len(tables["turns"])
    assert scores.rejects.height == lost == sum(row["n_unpaired"] for row in tables["dialogues"])
    return tables


def is_close(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is None and expected is None
    return math.isclose(found, expected, **CLOSE)


def id_in(name: str) -> str:
    """Return the id in a dialogue's name."""
    return re.sub("/(model|in)=.*", "", name)


def compare_turns(found: list[Row], expected: list[Row]) -> None:
    pairs = [
        (row, number, turn) for row in expected for number, turn in enumerate(row["turns"], start=1)
    ]
    assert len(found) == len(pairs)
    for ours, (row, number, turn) in zip(found, pairs, strict=True):
        assert (id_in(ours["dialogue"]), ours["turn"]) == (row["session_id"], number)
        assert ours["is_shift"] == (number in row["shift_points"])
        assert set(ours["user_concepts"]) == turn["user_concepts"]
        assert set(ours["system_concepts"]) == turn["system_concepts"]
        assert ours["missing_concepts"] == turn["missing"]
        assert ours["hallucinated_concepts"] == turn["hallucinated"]
        assert (ours["cc"], ours["i"]) == (turn["cc"], turn["i"])
        assert is_close(ours["cr"], turn["cr"]), (ours, turn)
        assert is_close(ours["tas"], turn["tas"]), (ours, turn)


def compare_segments(found: list[Row], expected: list[Row]) -> None:
    segments = [segment for row in expected for segment in row["segments"]]
    assert len(found) == len(segments)
    for ours, segment in zip(found, segments, strict=True):
        assert [ours["start_turn"], ours["end_turn"]] == [
            segment["start_turn"],
            segment["end_turn"],
        ]
        for name in ("cc", "cr", "i", "tas"):
            assert is_close(ours[f"segment_{name}"], segment[name]), (name, ours, segment)
        assert ours["missing_concepts"] == segment["missing"]
        assert ours["hallucinated_concepts"] == segment["hallucinated"]


def compare_shifts(found: list[Row], expected: list[Row]) -> None:
    shifts = [
        {"dialogue": row["session_id"], "turn": turn, "delay": delay, "recovered": recovered}
        for row in expected
        for turn, delay, recovered in zip(
            row["shift_points"], row["delays"], row["recovered"], strict=True
        )
    ]
    names = ("turn", "delay", "recovered")
    assert [
        {"dialogue": id_in(ours["dialogue"]), **{name: ours[name] for name in names}}
        for ours in found
    ] == shifts


def compare_dialogues(found: list[Row], expected: list[Row]) -> None:
    same = {
        "session_id": "session_id",
        "model": "model_name",
        "n_turns": "num_turns",
        "n_both_empty": "both_empty_turns",
        "shift_points": "shift_points",
        "missing_concepts_total": "missing_total",
        "hallucinated_concepts_total": "hallucinated_total",
    }
    close = {
        "cross_coherence": "cc",
        "context_retention": "cr",
        "topic_interference": "i",
        "context_adaptation_score": "tas",
        "topic_recovery_rate": "recovery_rate",
        "avg_recovery_delay": "avg_recovery_delay",
        "cas": "cas",
        "cas_all": "cas_all",
        "topic_interference_around_shifts": "i_around_shifts",
    }
    assert len(found) == len(expected)
    for ours, row in zip(found, expected, strict=True):
        assert {name: ours[name] for name in same} == {name: row[same[name]] for name in same}
        for name, theirs in close.items():
            assert is_close(ours[name], row[theirs]), (name, ours[name], row[theirs])


@pytest.mark.parametrize(
    ("kind", "profile"),
    [("plain", "published"), ("unaligned", "default"), *(("shifted", one) for one in PROFILES)],
)
def test_every_turn_of_the_sample(kind: str, profile: str, tmp_path: Path) -> None:
    compare(*make(kind, DATA), profile, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_every_turn_of_all_dialogues(profile: str, tmp_path: Path) -> None:
    logs, movies = make("plain", data_folder())
    assert (len(logs), len(movies)) == (1_000, 6_583)
    tables = compare(logs, movies, profile, tmp_path)
    assert len(tables["turns"]) == 5_647


VALUES = (
    *("war", "a", "it", "dark", "dark city", "2001", "ex", "né", "东京", "京", "!", "o'neil", ""),
)
PARTS = (*VALUES, " ", "award ", ", ", "Dark City", "NÉ", "x", "the cat sat on", "there", "-")
values = st.sampled_from(VALUES)
lists = st.lists(values, max_size=3)
texts = st.lists(st.sampled_from(PARTS), max_size=7).map("".join)
movies = st.fixed_dictionaries(
    {"name": values, "genre": st.lists(values.map("{} Film".format), max_size=2)},
    optional={
        "actor": lists,
        "director": lists,
        "writer": lists,
        "language": lists,
        "year": st.sampled_from(("2001", "1995", "", None, "c. 2001")),
        "plot": texts,
    },
)
metas = st.sampled_from((None, {}, {"shift_event": True}, {"is_shift": 1}, {"shift_event": False}))
turns = st.builds(
    lambda speaker, text, meta: {"speaker": speaker, "text": text, "user_meta": meta},
    st.sampled_from(("USER", "SYSTEM")),
    st.none() | texts,
    metas,
)
exchanges = st.lists(
    st.tuples(st.none() | texts, metas, st.none() | texts).map(
        lambda each: [
            {"speaker": "USER", "text": each[0], "user_meta": each[1]},
            {"speaker": "SYSTEM", "text": each[2]},
        ]
    ),
    max_size=6,
).map(lambda pairs: [turn for pair in pairs for turn in pair])
SPOKEN = ([{"speaker": "USER", "text": "a"}, {"speaker": "SYSTEM", "text": "war"}], [])
"""A run in which nobody says anything to anybody is refused; this conversation is always there."""
events = st.lists(st.integers(1, 8).map(lambda turn: {"turn": turn}), max_size=2)


@settings(max_examples=often(12, 400), suppress_health_check=list(HealthCheck))
@given(
    conversations=st.lists(
        st.tuples(exchanges | st.lists(turns, max_size=6), events), min_size=1, max_size=4
    ),
    items=st.lists(movies, min_size=1, max_size=5),
    profile=st.sampled_from(PROFILES),
)
def test_any_conversation(
    conversations: list[Any],
    items: list[Row],
    profile: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    logs = [
        {
            "session_id": f"{number}",
            "model_name": "m",
            "conversation": conversation,
            "shift_events": shifts,
        }
        for number, (conversation, shifts) in enumerate([*conversations, SPOKEN])
    ]
    items = [*items, {"name": "always", "genre": ["there"], "actor": ["a"], "year": "1995"}]
    items[-1] |= {"director": ["b"], "writer": ["c"], "language": ["d"]}
    compare(logs, items, profile, tmp_path_factory.mktemp("any"))
