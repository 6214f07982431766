"""The generated logs follow the recipe, and the same arguments give the same bytes."""

import gzip
import json
from pathlib import Path
from typing import Any

import click
import pytest
import zstandard
from click.testing import CliRunner

from benchmarks.miner_logs import (
    SAMPLE,
    Dialogue,
    Neighbours,
    Turn,
    counterparts,
    generate,
    main,
    predict,
    read_dialogues,
    simulate_miners,
)

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
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.jsonl"
    path.write_text("".join(json.dumps(dialogue) + "\n" for dialogue in (A, B)))
    return path


def read_rows(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in sorted(folder.iterdir()) for line in file.open()]
    return [json.loads(line) for line in lines]


def test_a_pair_of_dialogues_worked_by_hand(pair: Path, tmp_path: Path) -> None:
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


def test_rows_carry_the_runner_s_fields_and_labels(pair: Path, tmp_path: Path) -> None:
    generate(tmp_path / "logs", data=[pair], miners=2)
    rows = read_rows(tmp_path / "logs")
    labels = {"dialogue_uid", "challenge_uid", "miner_uid", "miner_hotkey"}
    for row in rows:
        extra = {"ground_truth"} if row["event"] == "utterance_complete" else {"step", "prediction"}
        assert set(row) == {"event", "utterance_index"} | extra | labels
    order = [(row["dialogue_uid"], row["miner_uid"]) for row in rows]
    runs = [key for index, key in enumerate(order) if not index or order[index - 1] != key]
    assert runs == [("pair-a", "0"), ("pair-a", "1"), ("pair-b", "0"), ("pair-b", "1")]


@pytest.mark.parametrize(
    ("n_words", "known"), [(1, [1, 1, 1, 1]), (4, [1, 2, 3, 4]), (6, [2, 3, 5, 6])]
)
def test_prefixes_round_up(n_words: int, known: list[int]) -> None:
    truth = " ".join("t" * n_words)
    steps = predict(truth, "x x x x x x x x")
    assert [step.split().count("t") for step in steps] == [0, *known]
    assert {len(step.split()) for step in steps} == {8}


def test_step_zero_is_the_borrowed_utterance_verbatim() -> None:
    assert predict("a  b", " x\ty ")[0] == " x\ty "
    assert predict("", "x y") == ["x y"] * 5
    assert predict("a b", "") == ["", "a", "a", "a b", "a b"]


def test_ties_go_to_the_earlier_utterance_and_other_speakers_to_the_position() -> None:
    def dialogue(*turns: tuple[str, str, str]) -> Dialogue:
        return Dialogue("x", "s", tuple(Turn(who, text, (act,)) for who, text, act in turns))

    lender = dialogue(("U", "first", "A"), ("S", "second", "B"), ("U", "third", "A"))
    borrower = dialogue(("S", "", "C"), ("U", "", "A"), ("W", "", "A"), ("W", "", "A"))
    assert counterparts(borrower, lender) == ["second", "first", "third", "third"]


def test_dialogues_borrow_round_their_service_and_never_from_themselves() -> None:
    services = ["x", "y", "x", "z", "x"]
    turn = (Turn("U", "text", ()),)
    neighbours = Neighbours([Dialogue(str(n), s, turn) for n, s in enumerate(services)])
    assert [neighbours.following(index) for index in range(5)] == [2, 2, 4, 4, 0]
    assert [neighbours.following(0, distance) for distance in (1, 2, 3, 4)] == [2, 4, 2, 4]
    assert Neighbours([Dialogue("only", "x", turn)]).following(0) == 0


def test_more_dialogues_than_there_are_repeat_under_new_ids(pair: Path, tmp_path: Path) -> None:
    generate(tmp_path / "logs", data=[pair], dialogues=5, layout="dialogue")
    uids = {row["dialogue_uid"] for row in read_rows(tmp_path / "logs")}
    assert uids == {"pair-a", "pair-b", "pair-a-r2", "pair-b-r2", "pair-a-r3"}
    assert len(list((tmp_path / "logs").iterdir())) == 5


@pytest.mark.parametrize("compression", ["none", "gz", "zst"])
def test_the_same_arguments_give_the_same_bytes(tmp_path: Path, compression: Any) -> None:
    contents = []
    for name, seed in [("one", 1), ("two", 1), ("other", 2)]:
        options = {"dialogues": 20, "miners": 3, "shards": 3, "compression": compression}
        generate(tmp_path / name, seed=seed, **options)
        files = sorted((tmp_path / name).iterdir())
        contents.append([(file.name, file.read_bytes()) for file in files])
    suffix = {"none": "", "gz": ".gz", "zst": ".zst"}[compression]
    assert [name for name, _ in contents[0]] == [f"part-0000{n}.jsonl{suffix}" for n in range(3)]
    assert contents[0] == contents[1] != contents[2]


def test_layout_and_compression_change_no_row(tmp_path: Path) -> None:
    options: dict[str, Any] = {"dialogues": 9, "miners": 2, "seed": 3}
    generate(tmp_path / "plain", **options)
    generate(tmp_path / "gz", compression="gz", shard_megabytes=0.05, **options)
    generate(tmp_path / "zst", compression="zst", layout="dialogue", **options)
    plain = (tmp_path / "plain" / "part-00000.jsonl").read_bytes()
    shards = sorted((tmp_path / "gz").iterdir())
    assert len(shards) > 1
    assert b"".join(gzip.decompress(file.read_bytes()) for file in shards) == plain
    logs = [zstandard.decompress(file.read_bytes(), 10**7) for file in (tmp_path / "zst").iterdir()]
    assert sorted(b"".join(logs).splitlines()) == sorted(plain.splitlines())
    assert len(logs) == 18


def test_miners_err_at_their_own_rates_and_texts_recur(tmp_path: Path) -> None:
    miners = simulate_miners(8, 0)
    assert len({miner.hotkey for miner in miners}) == 8
    assert miners[0].blank == miners[0].truncate == 0
    assert len({miner.blank for miner in miners}) == 8
    generate(tmp_path / "logs", miners=8, dialogues=30)
    predictions = [r["prediction"] for r in read_rows(tmp_path / "logs") if "prediction" in r]
    assert "" in predictions
    assert len(set(predictions)) < 0.6 * len(predictions)


def test_the_sample_is_small_and_covers_many_services() -> None:
    dialogues = read_dialogues([SAMPLE])
    assert SAMPLE.stat().st_size < 300_000
    assert len(dialogues) == 300
    assert len({dialogue.service for dialogue in dialogues}) == 17


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "bad.jsonl:2"),
        ("{", "bad.jsonl:2"),
        ('{"id": "c", "services": [], "turns": [["U", "x", []]]}', "bad.jsonl:2"),
        ('{"id": "c", "services": ["s"], "turns": []}', "no turn"),
        ('{"id": "c", "services": ["s"], "turns": [["U", 7, []]]}', "no string"),
        (json.dumps(A), "also occurs at"),
    ],
)
def test_bad_dialogues_are_named_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(A) + "\n" + line + "\n")
    with pytest.raises(click.ClickException, match=message):
        read_dialogues([path])


def test_missing_and_empty_sources_and_filled_outputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="does not exist"):
        generate(tmp_path / "logs", data=[tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(click.ClickException, match="holds no"):
        generate(tmp_path / "logs", data=[tmp_path / "empty"])
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(click.ClickException, match="holds no dialogue"):
        generate(tmp_path / "logs", data=[tmp_path / "empty.jsonl"])
    with pytest.raises(click.ClickException, match="not empty"):
        generate(tmp_path, dialogues=1)


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["-o", str(tmp_path / "logs"), "--dialogues", "2"])
    assert result.exit_code == 0, result.output
    assert "1 files, 2 dialogue logs" in result.output
