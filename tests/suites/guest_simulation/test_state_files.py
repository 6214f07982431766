"""State rows by columns and by the published files: what counts, and files that are odd."""

import csv
import json

import polars as pl
import pytest

import fastscore
from fastscore.errors import UsageError
from fastscore.run.signature import signature
from fastscore.suites.guest_simulation import SUITE, GuestSimulation
from fastscore.vectors.view import VectorView
from tests.conftest import fastscore_command
from tests.suites.guest_simulation.guests import (
    ADA,
    case,
    dialogue,
    guest,
    items,
    only,
    read,
    restaurant,
    score,
    state,
)

HEADER = (
    "message_index", "message_id", "timestamp", "role", "content_preview",
    "current_items_in_order", "target_items_to_order", "is_ordering_complete",
    "menu_exploration_style", "mood_tone", "ordering_style", "has_tool_calls",
)  # fmt: skip
AS_ADA = ("no", "explores_menu", "casual", "one_by_one")
COLA = "[{'name': 'Cola'}]"
METRICS = ("PAS", "BVS", "ORA")


def record(index, behaviour=AS_ADA, order="[]", id=""):
    """Make a row of a published file."""
    complete, exploration, mood, ordering = behaviour
    return [index, id, "2025-08-30", "agent", "Hi,\nthere", order, "[]",
            complete, exploration, mood, ordering, "False"]  # fmt: skip


def write_file(folder, *records, name="exp5/c", header=HEADER):
    path = folder / f"{name}_states.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *records])
    return path


# --- what a state row is --------------------------------------------------------------------------


def test_a_state_row_without_behaviour_is_passed_over_and_no_state_row_is_the_default():
    # as Ada is to be (4/4); an order alone; nothing at all: no, does not explore, casual, all at
    # once (2/4); the exit
    rows = (state(), guest(current_items_in_order=items("Cola")), guest(), guest("exit"))
    found = dialogue(*rows, case(ADA, "Cola"), profile="published", states="columns")
    assert (found["n_scored_messages"], found["PAS"]) == (2, (1 + 2 / 4) / 2)
    # S, default, default (exit): two changes of six, a = 1/3, BVS = 1 - (1/3 - 1/5) / (4/5) = 5/6
    assert (found["n_states"], found["n_transitions"]) == (3, 2)
    assert found["BVS"] == pytest.approx(5 / 6, abs=1e-15)
    assert found["ORA"] == 1.0
    messages = score(*rows, profile="published", states="columns")["messages"]
    assert messages["state_source"].to_list() == ["columns", None, "default", "default"]
    default = dialogue(*rows, case(ADA, "Cola"))
    assert (default["n_states"], default["PAS"], default["BVS"]) == (1, 1.0, None)


# --- files ----------------------------------------------------------------------------------------

LOG = (restaurant(), guest("one", message_id="m1"), restaurant(), guest("two", message_id="m3"),
       restaurant(), guest("three"), restaurant(), guest("exit"),
       case(ADA, "Cola", "Soup"))  # fmt: skip


def test_files_and_columns_score_alike(tmp_path):
    log, with_states = [], []
    for level in (1, 5):
        for name in ("a", "James-O'Brien_7"):
            labels = {"conversation_id": name, "experiment_level": level}
            records = []
            for place, row in enumerate(LOG):
                log.append(labels | row)
                with_states.append(labels | row)
                if place in (1, 5) or (place == 3 and level == 1):
                    behaviour = ("no", "explores_menu", ("casual", "confused")[place // 5], "")
                    records.append(record(place, behaviour, COLA, id=row.get("message_id", "")))
                    names = ("is_ordering_complete", "menu_exploration_style", "mood_tone")
                    with_states[-1] |= dict(zip(names, behaviour[:3], strict=True))
                    with_states[-1]["current_items_in_order"] = COLA
            write_file(tmp_path / "states", *records, name=f"exp{level}/{name}")
    # the published folders have a file of all states together
    write_file(tmp_path / "states", record(1), record(1), name="exp1/all_conversations")
    for profile in ("default", "published"):
        given = score(*log, states_from=str(tmp_path / "states"), profile=profile)
        expected = score(*with_states, states="columns", profile=profile)
        for table in ("messages", "dialogues"):
            places = [name for name in given[table].columns if name != "file"]
            assert given[table].select(places).equals(expected[table].select(places))


def rejected(folder, *rows, **options):
    """Return the only reject, and the only dialogue."""
    chosen = {"states_from": str(folder), **options}
    events, found, _ = read(*(rows or LOG), options=chosen)
    (reject,) = events.rejects.to_dicts()
    return reject, only(SUITE.score(events, VectorView.empty(), found)["dialogues"])


@pytest.mark.parametrize("profile", ["default", "published"])
def test_a_conversation_without_a_file_is_listed_and_lacks_its_metrics(tmp_path, profile):
    write_file(tmp_path, record(1), name="exp4/c")
    reject, found = rejected(tmp_path, profile=profile)
    assert (reject["line"], reject["field"], reject["reason"]) == (
        2, "states_from", "missing_field")  # fmt: skip
    assert reject["found"] == "no file exp5/c_states.csv"
    assert reject["expected"] == "a file exp5/c_states.csv for every conversation"
    lacking = dict.fromkeys((*METRICS, "CRRS"), "missing_input")
    assert found["null_reasons"] == lacking
    assert (found["DEI"], found["n_scored_messages"]) == (0.0, 0)


def test_the_file_of_a_conversation_without_a_level_is_in_exp0(tmp_path):
    write_file(tmp_path, record(0))
    options = {"states_from": str(tmp_path), "states": "llm"}
    events, _, _ = read(guest(), options=options, level=None)
    assert events.rejects["found"].to_list() == ["no file exp0/c_states.csv"]
    write_file(tmp_path, record(0), name="exp0/c")
    events, _, _ = read(guest(), options=options, level=None)
    assert events.rejects.is_empty()


ODD = {
    "an index that is none": ([record("x")], "wrong_type", ":3: message_index 'x'"),
    "an index of the restaurant": ([record(2)], "out_of_range", ":3: message_index 2"),
    "an index beyond": ([record(1), record(99)], "out_of_range", ":5: message_index 99"),
    "an index of the test case": ([record(8)], "out_of_range", ":3: message_index 8"),
    "an index twice": ([record(1), record(1)], "out_of_range", ":5: message_index 1 once more"),
    "another message": ([record(1, id="m3")], "out_of_range", "1 with message_id 'm3'"),
    "a short row": ([record(1)[:7]], "wrong_cell_count", ":3: 7 cells"),
    "nothing": (b"", "missing_column", ":1: columns none"),
    "too few columns": (
        b"message_index,role\n1,agent\n",
        "missing_column",
        ":1: columns message_index, role",
    ),
    "an open quote": (
        b'message_index,"role\n1,agent\n',
        "bad_quoting",
        ":2: unexpected end of data",
    ),
    "no UTF-8": (b"message_index,\xff\n", "not_utf8", ": 'utf-8' codec can't decode byte 0xff"),
}


@pytest.mark.parametrize(("content", "reason", "shown"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("profile", ["default", "published"])
def test_an_odd_file_costs_its_conversation_what_needs_states(
    tmp_path, content, reason, shown, profile
):
    is_text = isinstance(content, bytes)
    path = write_file(tmp_path, *([] if is_text else content))
    if is_text:
        path.write_bytes(content)
    reject, found = rejected(tmp_path, profile=profile)
    assert (reject["line"], reject["field"], reject["reason"]) == (2, "states_from", reason)
    assert reject["found"].startswith(str(path))
    assert shown in reject["found"]
    assert reject["expected"]
    assert found["null_reasons"] == dict.fromkeys((*METRICS, "CRRS"), "bad_input")
    assert found["DEI"] == 0.0


def test_a_file_without_rows_says_nothing_of_its_conversation(tmp_path):
    write_file(tmp_path)
    found = dialogue(*LOG, states_from=str(tmp_path))
    assert (found["n_states"], found["null_reasons"]["PAS"]) == (0, "not_applicable")


def test_cells_of_any_length_are_read_and_a_limit_is_named(tmp_path, monkeypatch):
    long_order = json.dumps(items("Cola", {"name": "Soup", "note": "x" * 200_000}))
    write_file(tmp_path, record(1, order=long_order), record(3), record(5))
    assert dialogue(*LOG, states_from=str(tmp_path))["ORA"] == 1.0
    monkeypatch.setattr("fastscore.suites.guest_simulation.states._LONGEST_CELL", 100_000)
    events, _, _ = read(*LOG, options={"states_from": str(tmp_path)})
    (rejected,) = events.rejects.to_dicts()
    assert "exp5/c_states.csv:3: field larger than field limit (100000)" in rejected["found"]
    assert rejected["expected"] == "a CSV record whose cells have at most 100,000 characters"


def test_a_broken_order_in_a_file_is_named_with_its_line(tmp_path):
    path = write_file(tmp_path, record(1, order="[{'name': 'Cola'"))
    reject, found = rejected(tmp_path)
    assert (reject["line"], reject["field"]) == (2, "current_items_in_order")
    assert reject["found"].startswith(f"{path}:3: ")
    assert found["null_reasons"]["ORA"] == "bad_input"
    # as published, what is no JSON then is an empty order
    events, _, _ = read(*LOG, options={"states_from": str(tmp_path), "profile": "published"})
    assert events.rejects.is_empty()


def test_a_folder_that_holds_no_states_is_refused(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").touch()
    for name, words in (("gone", "is not there"), ("logs/a.csv", "is a file"),
                        ("logs", "holds a.csv, expected files exp")):  # fmt: skip
        with pytest.raises(UsageError, match=words) as refused:
            SUITE.check(GuestSimulation(states_from=str(tmp_path / name)))
        assert "states_from" in str(refused.value)


@pytest.mark.parametrize("states", ["tools", "heuristic"])
def test_files_beside_another_source_are_refused(states):
    with pytest.raises(UsageError, match=f"states is '{states}', but states_from names"):
        GuestSimulation(states=states, states_from="folder")


def test_the_signature_has_the_files_content(tmp_path):
    def signed():
        return signature(SUITE, GuestSimulation(states_from=str(tmp_path)), None)

    assert "states_from=none" in signature(SUITE, GuestSimulation(), None)
    path = write_file(tmp_path, record(1))
    before = signed()
    assert "states_from=blake2b:" in before
    (tmp_path / "notes.txt").write_text("not a file of states")
    assert signed() == before
    other = path.rename(path.with_name("d_states.csv"))
    renamed = signed()
    other.rename(path)
    write_file(tmp_path, record(3))
    assert len({before, renamed, signed()}) == 3


def test_the_command_reads_published_folders(tmp_path):
    logs, states = tmp_path / "logs" / "exp5", tmp_path / "states"
    logs.mkdir(parents=True)
    columns = ["message_id", "role", "content", "name", "tool_calls"]
    for name in "ab":
        with (logs / f"{name}.csv").open("w", newline="") as file:
            rows = csv.DictWriter(file, columns, extrasaction="ignore")
            rows.writeheader()
            rows.writerows({"tool_calls": "", **row} for row in LOG)
        write_file(states, record(1, id="m1"), record(3, order=COLA), name=f"exp5/{name}")
    command = ["score", "guest_simulation", tmp_path / "logs", "-o", tmp_path / "run", "-q"]
    done = fastscore_command([*command, "--states-from", states, "--profile", "published"])
    assert done.returncode == 0, done.stderr
    found = pl.read_parquet(tmp_path / "run" / "dialogues" / "*.parquet")
    # as Ada is to be, twice; the third message and the exit are the default
    assert found["PAS"].to_list() == [(1 + 1 + 2 / 4) / 3] * 2
    assert found["ORA"].to_list() == [2 / 3] * 2
    refused = fastscore_command([*command, "--states-from", tmp_path / "gone"])
    assert refused.returncode == 2
    assert "is not there, expected a folder of exp*/*_states.csv" in refused.stderr
    frame = pl.DataFrame([json.loads(json.dumps(row)) for row in LOG])
    frame = frame.with_columns(conversation_id=pl.lit("a"), experiment_level=5)
    scores = fastscore.score(frame, fastscore.GuestSimulation(states_from=str(states)))
    assert scores.tables["dialogues"]["PAS"].to_list() == [1.0]
