"""Copies among logs are named in the outcome: of files, of dialogues, of rows in a dialogue."""

import csv
import json

import pytest

import fastscore
from fastscore.errors import InputError
from tests.by_keywords import score_by_keywords
from tests.conftest import write_lines
from tests.run.logs import dialogue_lines
from tests.run.running import run_lexical
from tests.suites.preference_shift.conversing import exchange

CATALOGUE = [{"name": "Her", "genre": ["comedy"]}]
LONG = "I would like a comedy with a robot, please."


@pytest.fixture
def catalogue(tmp_path):
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    return str(tmp_path / "catalogue.json")


def conversation(name, text):
    return json.dumps({"session_id": name, "conversation": exchange(text, "Watch Her.")}) + "\n"


def notes(suite, paths, **more):
    settings = {name: more.pop(name) for name in ("shard_bytes", "layout") if name in more}
    output = paths[0].with_suffix(".run")
    output.mkdir(exist_ok=True)
    outcome = run_lexical(paths, output, suite=suite, options=more, overwrite=True, **settings)
    return [note for note in outcome.manifest.notes if "null" not in note]


@pytest.mark.parametrize("shard_bytes", [1, 1 << 20])
def test_lines_of_one_id_that_repeat_a_dialogue(tmp_path, catalogue, shard_bytes):
    path = tmp_path / "log.jsonl"
    lines = [conversation(name, f"{LONG} {name}") for name in ("a", "b", "c")]
    other = conversation("b", "No comedies.")
    path.write_text("".join([*lines, lines[0], other, lines[0], lines[2]]))
    options = {"catalogue": catalogue, "segments": "metadata"}
    (note,) = notes("preference_shift", [path], shard_bytes=shard_bytes, **options)
    assert note == (
        "3 dialogues repeat another one, with the same name and the same values (first: "
        f"{path}:4 repeats {path}:1): such dialogues count twice"
    )
    scores = score_by_keywords(path, "preference_shift", **options)
    assert note in scores.notes


def test_seeds_take_a_free_label_and_leave_the_systems_theirs(tmp_path, catalogue):
    rows = [
        {
            "session_id": name,
            "model_name": model,
            "seed": seed,
            "conversation": exchange(f"{LONG} {model}", "Watch Her." if seed == 1 else "Wait."),
        }
        for name in ("u1", "u2")
        for model in ("a", "b")
        for seed in (1, 2)
    ]
    path = write_lines(tmp_path / "log.jsonl", rows)
    options = {"catalogue": catalogue, "segments": "metadata"}
    (note,) = notes("preference_shift", [path], **options)
    assert (
        note == "seed tells rows of one name apart (it is '1', '2'): type --column true_genre=seed"
    )


def test_equal_dialogues_without_a_name_are_no_copies(tmp_path, catalogue):
    path = tmp_path / "log.jsonl"
    path.write_text(conversation(None, LONG) * 3)
    assert notes("preference_shift", [path], catalogue=catalogue, segments="metadata") == []


def test_files_that_are_copies_are_named_once(tmp_path, catalogue):
    paths = [tmp_path / f"{name}.jsonl" for name in "abcd"]
    for path, name in zip(paths, "xxyx", strict=True):
        path.write_text(conversation(name, LONG))
    options = {"catalogue": catalogue, "segments": "metadata"}
    assert notes("preference_shift", paths, **options) == [
        f"{paths[1]} has the same content as {paths[0]}, and 1 more copy: such dialogues count "
        "twice"
    ]
    assert notes("preference_shift", paths[:2], **options) == [
        f"{paths[1]} has the same content as {paths[0]}: such dialogues count twice"
    ]
    assert notes("preference_shift", paths[1:3], **options) == []
    for path in paths[2:]:
        path.write_text("")
    assert notes("preference_shift", paths[1:], **options) == [
        f"2 empty files of 3: {paths[2]}, {paths[3]}"
    ]
    scores = score_by_keywords(paths[:2], "preference_shift", **options)
    assert (
        f"{paths[1]} has the same content as {paths[0]}: such dialogues count twice" in scores.notes
    )


def test_messages_that_repeat_a_row_of_their_dialogue(tmp_path):
    path = tmp_path / "log.csv"
    rows = [
        {"conversation_id": name, "role": role, "content": content}
        for name in ("a", "b")
        for role, content in (("guest", LONG), ("assistant", "Sure."), ("guest", "Yes, please."))
    ]
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        # of the rows that come again one is long
        table.writerows([*rows, rows[0], rows[1], rows[2], {**rows[0], "role": "assistant"}])
    (note,) = notes("guest_simulation", [path])
    assert note == (
        "1 row repeats an earlier row of the same dialogue in every column that is read: such rows "
        "count twice"
    )


def test_a_log_that_was_written_twice_repeats_short_rows_as_well(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [{"conversation_id": "a", "role": role, "content": role} for role in ("guest", "tool")]
    write_lines(path, rows * 2)
    (note,) = notes("guest_simulation", [path])
    assert note.startswith("2 rows repeat an earlier row of the same dialogue")


def test_a_dialogue_in_two_files_is_noted_if_each_file_has_its_own(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("guest", "assistant")]
    for path in paths:
        row = {"conversation_id": "c", "role": path.stem, "content": path.stem}
        path.write_text(json.dumps(row) + "\n")
    (note,) = notes("guest_simulation", paths)
    assert note.startswith("1 dialogue id in more than one file: the rows of each file are a dia")


def test_what_chats_without_a_name_share_is_no_repeat(tmp_path):
    path = tmp_path / "log.jsonl"
    turns = [{"role": role, "content": LONG} for role in ("user", "assistant", "user")]
    shared = [{**turn, "content": f"{n} {LONG}"} for n, turn in enumerate(turns)]
    chats = [{"messages": [*shared, {**turns[0], "content": last}]} for last in "ab"]
    write_lines(path, chats)
    found = notes("guest_simulation", [path], layout="openai")
    assert not [note for note in found if "repeat an earlier row" in note]


def test_steps_that_are_predicted_again(tmp_path):
    """Without a revealed row an utterance has as many steps as predicted rows."""
    path = tmp_path / "log.jsonl"
    lines = dialogue_lines("d")
    path.write_text("\n".join(lines) + "\n")
    options = {"lex_weight": 1.0}
    assert notes("score_dialogue", [path], **options) == []
    predicted = [line for line in lines if json.loads(line)["event"] == "predicted"]
    completed = [line for line in lines if json.loads(line)["event"] == "utterance_complete"]
    path.write_text("\n".join([*lines, *predicted[:2], completed[0]]) + "\n")
    (note,) = notes("score_dialogue", [path], **options)
    assert note == (
        "3 rows are replaced by a later row for the same step or utterance: the last row counts; "
        "if they are of several systems, map the key that names the system: --column miner_uid=KEY"
    )


def test_systems_under_a_key_that_is_not_read_are_refused(tmp_path):
    path, lines = tmp_path / "log.jsonl", [json.loads(line) for line in dialogue_lines("d")]
    rows = [{**row, "agent_name": name} for name in ("gpt", "llama") for row in lines]
    write_lines(path, rows)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    said = r"agent_name tells .* \(it is 'gpt', 'llama'\): type --column miner_uid=agent_name"
    with pytest.raises(InputError, match=said):
        fastscore.score(path, options, embedder=None)
    last = fastscore.score(path, options, embedder=None, max_rejects=1.0)
    assert last.tables["dialogues"].height == 1
    both = fastscore.score(path, options, embedder=None, columns={"miner_uid": "agent_name"})
    assert both.tables["dialogues"].height == 2
    # a time, and whether a row is a retry, are no systems
    for number, row in enumerate(rows):
        row |= {"agent_name": number < len(lines), "at": f"00:{number:02}"}
    write_lines(path, rows)
    again = fastscore.score(path, options, embedder=None)
    assert again.tables["dialogues"].height == 1


def test_rows_that_name_no_dialogue_are_refused_if_most_are_replaced(tmp_path):
    """Three dialogues under a key that is not read are one, by the last rows of each step."""
    path, rows = tmp_path / "log.jsonl", []
    for name in ("d", "e", "f"):
        rows += [json.loads(line) | {"talk": name} for line in dialogue_lines(name)]
    for row in rows:
        row.pop("dialogue_uid")
    write_lines(path, rows)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    with pytest.raises(InputError, match=r"no row has dialogue_uid, .* --column dialogue_uid=KEY"):
        fastscore.score(path, options, embedder=None)
    told = fastscore.score(path, options, embedder=None, columns={"dialogue_uid": "talk"})
    assert told.tables["dialogues"].height == 3


def test_a_key_that_tells_the_rows_of_two_files_apart_is_named(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = [json.loads(line) for line in dialogue_lines("d")]
    for uid in (5, 9):
        write_lines(logs / f"{uid}.jsonl", [{**row, "uid": uid} for row in lines])
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    said = r"in two files: .* uid tells .* \(it is '5', '9'\): type --column miner_uid=uid\.$"
    for output in (None, tmp_path / "run"):
        with pytest.raises(InputError, match=said):
            fastscore.score(logs, options, embedder=None, output=output)


def test_a_key_that_tells_dialogues_of_one_name_apart_is_noted(tmp_path):
    turn = {"turn_pair_id": 1, "turn_status": "ok", "user_text": "Hi", "gt_turn_tags": {}}
    rows = [
        {
            "dialog_id": name,
            "run_id": "r",
            "model": model,
            "valid_dialog": True,
            "profile_gt": {"risk_level": "low"},
            "turns": [{**turn, "pred_assistant_text": f"By {model}."}],
        }
        for name in ("d1", "d2")
        for model in ("a", "b")
    ]
    path = write_lines(tmp_path / "log.jsonl", rows)
    said = "model tells rows of one name apart (it is 'a', 'b'): type --column run_id=model"
    assert said in notes("memory_finance", [path])
    write_lines(path, [{**row, "run_id": row["model"]} for row in rows])
    assert said not in notes("memory_finance", [path])
    rows[0]["dialog_id"] = None
    write_lines(path, rows)
    # the three others have two names
    null = "dialog_id: null in 1 of 4 dialogues, named by their places"
    output = fastscore.score(path, "memory_finance", embedder=None)
    assert null in output.manifest.notes
