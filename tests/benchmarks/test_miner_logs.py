"""The generated logs follow the recipe, and the same arguments give the same bytes."""

import json

import pytest

from benchmarks.miner_logs import generate
from tests.conftest import write_lines

A = {
    "id": "a",
    "services": ["Taxi_1", "Hotel_1"],
    "turns": [
        ["U", "I need a taxi", ["INFORM_INTENT"]],
        ["S", "Where to ?", ["REQUEST"]],
        ["U", "The old harbour please now", ["INFORM"], {"Taxi_1.to": ["harbour"]}],
    ],
}
B = {
    "id": "b",
    "services": ["Taxi_1"],
    "turns": [
        ["U", "Hi", ["GREET"]],
        ["S", "Hello how can I help", ["OFFER"]],
        ["U", "Get me a cab to the airport", ["INFORM_INTENT"]],
        ["S", "When", ["REQUEST"]],
    ],
}


@pytest.fixture
def pair(tmp_path):
    return write_lines(tmp_path / "pair.jsonl", (A, B))


def read_rows(folder):
    lines = [line for file in sorted(folder.iterdir()) for line in file.open()]
    return [json.loads(line) for line in lines]


def test_a_pair_of_dialogues_worked_by_hand(pair, tmp_path):
    counts = generate(tmp_path / "logs", data=[pair])
    rows = read_rows(tmp_path / "logs")
    assert (counts.files, counts.dialogues, counts.utterances, counts.predictions) == (1, 2, 7, 35)
    assert counts.bytes == (tmp_path / "logs" / "part-00000.jsonl").stat().st_size
    assert [row["event"] for row in rows] == (["predicted"] * 5 + ["utterance_complete"]) * 7
    texts = [row.get("prediction", row.get("ground_truth")) for row in rows]
    # same speaker and acts: "Get me a cab to the airport", though another turn is nearer
    assert texts[:6] == [
        "Get me a cab to the airport",
        "I me a cab to the airport",
        "I need a cab to the airport",
        "I need a cab to the airport",
        "I need a taxi to the airport",
        "I need a taxi",
    ]
    # same speaker and acts: "When"; 3 words: 1, 2, 3 and 3 of them
    assert texts[6:12] == ["When", "Where", "Where to", "Where to ?", "Where to ?", "Where to ?"]
    # no utterance with INFORM: the same speaker's nearest; 5 words: 2, 3, 4 and 5 of them
    assert texts[12:18] == [
        "Get me a cab to the airport",
        "The old a cab to the airport",
        "The old harbour cab to the airport",
        "The old harbour please to the airport",
        "The old harbour please now the airport",
        "The old harbour please now",
    ]
    # of b's utterances, "Hi" has no match but the speaker: a's position 0 is nearest
    assert texts[18:24] == ["I need a taxi", *["Hi need a taxi"] * 4, "Hi"]


@pytest.mark.parametrize("compression", ["none", "zst"])
def test_the_same_arguments_give_the_same_bytes(tmp_path, compression):
    contents = []
    for name, seed in [("one", 1), ("two", 1), ("other", 2)]:
        options = {"dialogues": 20, "miners": 3, "shards": 3, "compression": compression}
        generate(tmp_path / name, seed=seed, **options)
        files = sorted((tmp_path / name).iterdir())
        contents.append([(file.name, file.read_bytes()) for file in files])
    suffix = {"none": "", "zst": ".zst"}[compression]
    assert [name for name, _ in contents[0]] == [f"part-0000{n}.jsonl{suffix}" for n in range(3)]
    assert contents[0] == contents[1] != contents[2]
