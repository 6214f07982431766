"""The logs that the benchmark and the tests of preference_shift are made of."""

import itertools
import random
from typing import Any

import pytest

from benchmarks.preference_shift_logs import (
    KINDS,
    MODELS,
    disjoint_pairs,
    join_messages,
    read_source,
    repeat_logs,
)

DIALOGUES, MOVIES = read_source()


def test_messages_of_one_speaker_are_joined_from_the_users_first() -> None:
    turns = [["S", "Hi", ["A"]], ["U", "a", ["B"]], ["U", "b", ["C"]], ["S", "c", []]]
    found = [(m.speaker, m.text, m.movies) for m in join_messages(turns)]
    assert found == [("USER", "a b", ("B", "C")), ("SYSTEM", "c", ())]


@pytest.mark.parametrize("kind", KINDS)
def test_logs_alternate_and_are_the_same_every_time(kind: str) -> None:
    logs = list(KINDS[kind](DIALOGUES, MOVIES, random.Random(0)))
    assert logs == list(KINDS[kind](DIALOGUES, MOVIES, random.Random(0)))
    for log in logs:
        speakers = [turn["speaker"] for turn in log["conversation"]]
        assert speakers == ["USER", "SYSTEM"] * (len(speakers) // 2)


def test_joined_dialogues_have_no_genre_in_common() -> None:
    genres = {movie["name"]: set(movie["genre"]) for movie in MOVIES}

    def of(dialogue: Any) -> set[str]:
        return {g for message in dialogue for name in message.movies for g in genres[name]}

    pairs = disjoint_pairs(DIALOGUES, MOVIES, random.Random(0))
    assert len(pairs) >= 15
    assert all(of(first) and of(second) and not of(first) & of(second) for first, second in pairs)


def test_every_model_answers_the_same_users() -> None:
    logs = list(KINDS["models"](DIALOGUES, MOVIES, random.Random(0)))
    for _, same in itertools.groupby(logs, key=lambda log: log["session_id"]):
        answered = list(same)
        assert [log["model_name"] for log in answered] == list(MODELS)
        users = [[turn["text"] for turn in log["conversation"][::2]] for log in answered]
        assert all(texts == users[0] for texts in users)


def test_repetitions_reach_the_number_of_turns_with_new_texts() -> None:
    logs = list(repeat_logs("plain", DIALOGUES, MOVIES, 1_000))
    assert sum(len(log["conversation"]) for log in logs) == 2_000
    assert len({log["session_id"] for log in logs}) == len(logs)
    texts = {turn["text"] for log in logs for turn in log["conversation"]}
    assert len(texts) > 1_400
