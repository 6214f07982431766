"""Real dialogues, turn by turn, against the plain scorer that was written from the definitions.

The bundled sample always; with FASTSCORE_DATA naming a folder that has redial_valid.jsonl.gz and
redial_movies.jsonl.gz, also all 1,000 dialogues against the whole catalogue.
"""

import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastscore
from benchmarks.preference_shift_logs import (
    DATA,
    KINDS,
    SPEAKERS,
    read_lines,
    read_source,
    write_jsonl,
)
from tests.conftest import often
from tests.oracles import preference_shift as plain
from tests.oracles import preference_shift_concepts as plain_concepts

PROFILES = list(plain_concepts.PROFILES)


def data_folder():
    folder = os.environ.get("FASTSCORE_DATA")
    if not folder or not (Path(folder) / "redial_valid.jsonl.gz").exists():
        pytest.skip("FASTSCORE_DATA names no folder with redial_valid.jsonl.gz")
    return Path(folder)


def make(kind, folder):
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


def compare(logs, movies, profile, folder):
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
    for name, rows in rows_by_table(expected).items():
        assert len(tables[name]) == len(rows)
        for found, theirs in zip(tables[name], rows, strict=True):
            ours = found | {"dialogue": re.sub("/(model|in)=.*", "", found["dialogue"])}
            for column, key in (SAME[name] | CLOSE[name]).items():
                is_close = column in CLOSE[name] and None not in (ours[column], theirs[key])
                wanted = pytest.approx(theirs[key], rel=0, abs=1e-12) if is_close else theirs[key]
                assert ours[column] == wanted, (name, column, ours, theirs)
    lost = sum(len(log["conversation"]) for log in logs) - 2 * len(tables["turns"])
    assert scores.rejects.height == lost == sum(row["n_unpaired"] for row in tables["dialogues"])
    return tables


def alike(*columns, **renamed):
    """Return the plain scorer's name of each column."""
    return {column: column for column in columns} | renamed


WRONG = {"missing_concepts": "missing", "hallucinated_concepts": "hallucinated"}
SAME = {
    "dialogues": alike(
        "session_id",
        "shift_points",
        model="model_name",
        n_turns="num_turns",
        n_both_empty="both_empty_turns",
        missing_concepts_total="missing_total",
        hallucinated_concepts_total="hallucinated_total",
    ),
    "turns": alike("dialogue", "turn", "is_shift", "user_concepts", "system_concepts", "cc", "i")
    | WRONG,
    "segments": alike("dialogue", "start_turn", "end_turn") | WRONG,
    "shifts": alike("dialogue", "turn", "delay", "recovered"),
}
CLOSE = {
    "dialogues": alike(
        "avg_recovery_delay",
        "cas",
        "cas_all",
        cross_coherence="cc",
        context_retention="cr",
        topic_interference="i",
        context_adaptation_score="tas",
        topic_recovery_rate="recovery_rate",
        topic_interference_around_shifts="i_around_shifts",
    ),
    "turns": alike("cr", "tas"),
    "segments": {f"segment_{name}": name for name in ("cc", "cr", "i", "tas")},
    "shifts": {},
}


def rows_by_table(expected):
    """Lay the plain scorer's rows out as the suite's tables."""
    tables = {
        "dialogues": expected,
        "turns": [],
        "segments": [],
        "shifts": [],
    }
    for row in expected:
        name = {"dialogue": row["session_id"]}
        tables["segments"] += [name | segment for segment in row["segments"]]
        tables["shifts"] += [
            name | {"turn": turn, "delay": delay, "recovered": recovered}
            for turn, delay, recovered in zip(
                row["shift_points"], row["delays"], row["recovered"], strict=True
            )
        ]
        for number, turn in enumerate(row["turns"], start=1):
            concepts = {key: sorted(turn[key]) for key in ("user_concepts", "system_concepts")}
            place = {"turn": number, "is_shift": number in row["shift_points"]}
            tables["turns"].append(turn | name | place | concepts)
    return tables


@pytest.mark.parametrize(
    ("kind", "profile"),
    [("plain", "published"), ("unaligned", "default"), *(("shifted", one) for one in PROFILES)],
)
def test_every_turn_of_the_sample(kind, profile, tmp_path):
    compare(*make(kind, DATA), profile, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_every_turn_of_all_dialogues(profile, tmp_path):
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
def test_any_conversation(conversations, items, profile, tmp_path_factory):
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
