"""What a new user meets whose logs have other columns: an error that says what to type."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.examples import write_example
from tests.conftest import fastscore_command
from tests.logs.inputs.test_screening import OTHER_NAMES
from tests.logs.inputs.wrong_logs import NEEDED, RIGHT, changed, nulled, renamed, write

MORE = {
    "score_dialogue": ("--lex-weight", "1"),
    "preference_shift": ("--segments", "metadata"),
    "group_travel": ("--embedder", "none"),
}
CATALOGUE = [{"name": "Her", "genre": ["comedy"]}]


def options(suite: str, tmp_path: Path) -> list[str]:
    more = list(MORE.get(suite, ()))
    if suite == "preference_shift":
        catalogue = tmp_path / "catalogue.json"
        catalogue.write_text(json.dumps(CATALOGUE))
        more += ["--catalogue", str(catalogue)]
    return more


def score(suite: str, tmp_path: Path, *words: object) -> tuple[int, str, str]:
    run = tmp_path / "run"
    done = fastscore_command(["score", suite, *words, "-o", run, *options(suite, tmp_path)])
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("suite", sorted(RIGHT))
def test_a_renamed_column_ends_the_run_before_it_begins(suite: str, tmp_path: Path) -> None:
    name = OTHER_NAMES[suite]
    log = write(tmp_path / "log.jsonl", renamed(suite, name))
    code, out, error = score(suite, tmp_path, log)
    assert (code, out) == (3, "")
    assert error.endswith(f"Type --column {NEEDED[suite]}={name}.\n")
    assert not (tmp_path / "run").exists()


def test_what_is_typed_then_scores(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", renamed("score_dialogue", "text"))
    right = write(tmp_path / "right.jsonl", RIGHT["score_dialogue"])
    code, _, error = score("score_dialogue", tmp_path, log, "--column", "prediction=text")
    assert code == 0, error
    run = fastscore.open_run(tmp_path / "run")
    assert run.signature.endswith("|columns=prediction=text")
    expected = fastscore.score(right, "score_dialogue", lex_weight=1.0)
    steps = run.table("steps").collect()
    assert steps.drop("dialogue").equals(expected.tables["steps"].drop("dialogue"))
    # by configuration, and in Python
    config = tmp_path / "config.toml"
    config.write_text(
        '[columns]\nprediction = "nope"\n[score_dialogue.columns]\nprediction = "text"'
    )
    again = fastscore_command(
        [
            "score",
            "score_dialogue",
            log,
            "-o",
            tmp_path / "run",
            "--config",
            config,
            "--lex-weight=1",
        ]
    )
    assert again.returncode == 0, again.stderr
    scores = fastscore.score(log, "score_dialogue", lex_weight=1.0, columns={"prediction": "text"})
    assert scores.signature == run.signature
    # another map is another run
    more = ("--column", "prediction=text", "--value", "event:guess=predicted")
    code, _, error = score("score_dialogue", tmp_path, log, *more)
    assert code == 2
    assert "holds a run with another signature" in error


def test_a_trace_beside_its_own_results(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    trace = write(logs / "trace.jsonl", RIGHT["memory_finance"])
    write(logs / "turn_eval.jsonl", [{"dialog_id": "d1", "turn_pair_id": n} for n in range(316)])
    code, out, error = score("memory_finance", tmp_path, logs)
    assert code == 0, error
    assert "left aside, as 1 file is no log of memory_finance" in error
    assert "1 dialogue, 2 turns; from 1 line of 1 file, 0 rejects" in out
    run = fastscore.open_run(tmp_path / "run")
    assert [entry["name"] for entry in run.manifest.inputs] == [str(trace)]
    assert run.manifest.left_aside == [str(logs / "turn_eval.jsonl")]


def test_metrics_that_lack_their_column_are_named_first(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{**row, "itinerary": "{}"} for row in RIGHT["group_travel"]]
    log = write(tmp_path / "log.csv", rows)
    code, out, _ = score("group_travel", tmp_path, log)
    assert code == 0
    first = out.splitlines()[0]
    assert first.startswith(
        "W1, W2, W3, M9, M10, M10b, M11, M12, M13, M15, M16 are null in every row"
    )
    assert "no row has plan (looked for: plan; found: " in first
    assert first.endswith("type --column plan=itinerary)")
    code, _, error = score("group_travel", tmp_path, log, "--strict")
    assert code == 3
    assert "Metrics lack a column in every row, and --strict is given; all else is scored." in error


def test_labels_of_turns_under_another_name_are_missed(tmp_path: Path) -> None:
    (row,) = RIGHT["memory_finance"]
    turns = [{**turn, "turn_tags": {"memory_required_keys_gt": []}} for turn in row["turns"]]
    log = write(tmp_path / "log.jsonl", [{**row, "turns": turns}])
    code, out, error = score("memory_finance", tmp_path, log)
    assert code == 0, error
    said = " ".join(out.split("\n")[:2])
    assert "judge_score_mean" in said
    assert (
        "are null in every row, compliance_label_acc is scored without it: no row has "
        "turns[].gt_turn_tags" in said
    )
    assert "type --column gt_turn_tags=turn_tags" in said


def test_texts_that_are_null_in_some_rows_are_counted(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write(logs / "a.jsonl", RIGHT["memory_finance"])
    lacking = [{**row, "dialog_id": "d2"} for row in nulled("memory_finance")]
    write(logs / "b.jsonl", lacking)
    code, out, error = score("memory_finance", tmp_path, logs)
    assert code == 0, error
    assert "turns[].pred_assistant_text: null in 2 of 4 objects\n" in out
    dialogues = pl.read_parquet(tmp_path / "run" / "dialogues" / "*.parquet")
    assert dialogues.sort("dialogue")["m4_turns"].to_list() == [2, 0]
    # the count does not depend on how many shards there are
    scores = fastscore.score(logs, "memory_finance", profile="published")
    assert scores.notes[-1] == (
        "turns[].pred_assistant_text: null in 2 of 4 objects; counted as empty, as published"
    )
    assert scores.tables["dialogues"].sort("dialogue")["m4_turns"].to_list() == [2, 2]


@pytest.mark.parametrize("layout", ["openai", "sharegpt"])
def test_logs_of_named_layouts_are_scored_as_the_suites_own(layout: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    array, who, said, words = {
        "openai": ("messages", "role", "content", ("user", "assistant")),
        "sharegpt": ("conversations", "from", "value", ("human", "gpt")),
    }[layout]
    talks = [["a comedy", "Her, a comedy"], ["Her?", "no", 'a "comedy"', "yes \\ é\u2028"]]
    theirs, ours = [], []
    for number, talk in enumerate(talks):
        turns = [{who: words[place % 2], said: text} for place, text in enumerate(talk)]
        turns.insert(0, {who: "system", said: "Recommend movies."})
        theirs.append({"id": f"s{number}", "session_id": f"s{number}", array: turns})
        speakers = ("USER", "SYSTEM")
        turns = [{"speaker": speakers[at % 2], "text": text} for at, text in enumerate(talk)]
        ours.append({"session_id": f"s{number}", "conversation": turns})
    options = {"catalogue": str(catalogue), "segments": "metadata"}
    found = fastscore.score(theirs, "preference_shift", layout=layout, **options)
    expected = fastscore.score(ours, "preference_shift", **options)
    for name, table in expected.tables.items():
        assert found.tables[name].equals(table), name
    assert found.signature.startswith(expected.signature + "|columns=")


def talks(*speakers: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "session_id": f"s{number}",
            "conversation": [
                {"speaker": user, "text": "a comedy"},
                {"speaker": system, "text": "Her, a comedy"},
            ],
        }
        for number, (user, system) in enumerate(speakers)
    ]


def test_words_that_are_foreign_in_some_rows_are_named(tmp_path: Path) -> None:
    rows = talks(("USER", "SYSTEM"), ("customer", "SYSTEM"), ("user", "assistant"))
    log = write(tmp_path / "log.jsonl", rows)
    code, out, error = score("preference_shift", tmp_path, log)
    told = (
        "conversation[].speaker: 'assistant' in 1, 'customer' in 1, 'user' in 1 of 6 objects; "
        "known: USER, SYSTEM; type --value speaker:assistant=SYSTEM --value speaker:customer=USER "
        "--value speaker:user=USER\n"
    )
    assert told in out
    # a dialogue of which nothing pairs is a reject
    assert code == 3
    assert "2 of 3 lines are rejects, more than --max-rejects 0.001 allows" in error
    flags = told.partition("type ")[2].split()
    code, out, error = score("preference_shift", tmp_path, log, *flags, "--overwrite")
    assert code == 0, error
    assert "known: USER" not in out
    # of one that pairs in part, turns are left aside
    (row,) = talks(("USER", "SYSTEM"))
    row["conversation"].append({"speaker": "customer", "text": "thanks"})
    log = write(tmp_path / "part.jsonl", [row])
    code, out, error = score("preference_shift", tmp_path, log, "--overwrite")
    assert code == 0, error
    assert "'customer' in 1 of 3 objects" in out


FOREIGN_WORDS = {
    "guest_simulation": (
        [
            {"conversation_id": "c", "role": "Agent", "content": "a burger"},
            *({"conversation_id": "c", "role": "agent", "content": text} for text in "abc"),
            {"conversation_id": "c", "role": "Assistant", "content": "bye"},
        ],
        ("role: 'Agent' in 1, 'Assistant' in 1 of 5 rows; known: agent, guest, ",),
        "type --value role:Agent=agent --value role:Assistant=assistant",
    ),
    "score_dialogue": (
        [*RIGHT["score_dialogue"], {**RIGHT["score_dialogue"][0], "event": "prediction"}],
        ("event: 'prediction' in 1 of 4 rows; known: predicted, revealed, utterance_complete; ",),
        "type --value event:prediction=predicted",
    ),
    "group_travel": (
        [*RIGHT["group_travel"], {**RIGHT["group_travel"][1], "intent": "present_plan"}],
        ("intent: 'present_plan' in 1 of 3 rows; known: user_provide_*, ",),
        "type --value intent:present_plan=sys_present_plan",
    ),
    "memory_finance": (
        changed(
            "memory_finance",
            lambda turn: {
                **turn,
                "turn_status": ("OK", "ok")[turn["turn_pair_id"] % 2],
                "gt_turn_tags": {"compliance_label_gt": "Severe"},
            },
        ),
        (
            "turns[].turn_status: 'OK' in 1 of 2 objects; known: ok, timeout, error; ",
            "turns[].gt_turn_tags.compliance_label_gt: 'Severe' in 2 of 2 objects, which no rule "
            "knows",
        ),
        "type --value turn_status:OK=ok",
    ),
}


@pytest.mark.parametrize("suite", FOREIGN_WORDS)
def test_every_closed_vocabulary_is_looked_after(suite: str, tmp_path: Path) -> None:
    rows, told, advice = FOREIGN_WORDS[suite]
    log = write(tmp_path / "log.jsonl", rows)
    code, out, error = score(suite, tmp_path, log)
    assert code == 0, error
    for each in (*told, advice):
        assert each in out
    # it does not depend on what is in a shard, and a run says what memory does
    options = {"score_dialogue": {"lex_weight": 1.0}}.get(suite, {})
    scores = fastscore.score(log, suite, embedder="none", **options)
    assert list(scores.notes) == [
        *fastscore.open_run(tmp_path / "run").manifest.lacking,
        *fastscore.open_run(tmp_path / "run").manifest.notes,
    ]


def chats(*roles: str, times: int = 1) -> list[dict[str, Any]]:
    return [{"conversation_id": "c", "role": role, "content": "so"} for role in roles * times]


@pytest.mark.parametrize(
    ("suffix", "rows", "found", "advice"),
    [
        (
            "jsonl",
            chats("human", "gpt", "human"),
            "'human' (2), 'gpt' (1)",
            "Type --value role:human=guest --value role:gpt=system.",
        ),
        ("csv", chats("user", "assistant"), "'user' (1), 'assistant'", "role:user=guest."),
        # all that is looked at of a longer file, in which no text says otherwise
        ("jsonl", chats("u", "b", times=150), "'b' (100), 'u' (100)", "role:WORD=agent."),
        ("parquet", chats("bot"), "'bot' (1)", "Say what they mean: --value role:WORD=agent."),
    ],
)
def test_a_log_without_a_guest_is_refused(
    suffix: str, rows: list[dict[str, Any]], found: str, advice: str, tmp_path: Path
) -> None:
    log = write(tmp_path / f"log.{suffix}", rows)
    code, out, error = score("guest_simulation", tmp_path, log)
    assert (code, out) == (3, "")
    assert error.startswith(
        "Error: No row has what guest_simulation needs: role is never 'agent', 'guest', "
        "'guest_simulation_agent' or 'guest_simulation_llm', and name never begins with 'guest'.\n"
        f"  found: {found}\n"
    )
    assert error.endswith(f"{advice}\n")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="role is never 'agent'"):
        fastscore.score(rows[:20], "guest_simulation")
    # the first of them is the guest
    words = ["--value", f"role:{rows[0]['role']}=agent"]
    code, _, error = score("guest_simulation", tmp_path, log, *words, "--level", "1")
    assert code == 0, error


def test_a_guest_may_come_late_or_by_name(tmp_path: Path) -> None:
    late = chats("u", "b", times=150) + chats("agent")
    named = [{**row, "name": "guest_7"} for row in chats("u", "b")]
    first, second = chats("b"), chats("agent", "b")
    for place, files in enumerate(((late,), (named,), (first, second))):
        logs = tmp_path / str(place)
        for number, rows in enumerate(files):
            write(logs / f"{number}.jsonl", rows)
        code, out, error = score("guest_simulation", tmp_path, logs, "--level", "1", "--overwrite")
        assert code == 0, error
        assert "role: 'b' in " in out


def test_without_a_guest_in_a_long_table_the_words_are_told_in_the_end(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", chats("human", "gpt", times=150))
    code, out, error = score("guest_simulation", tmp_path, log)
    assert (code, out) == (3, "")
    assert "Nothing was scored: there is no row for messages in 300 lines of" in error
    assert "\n  role: 'gpt' in 150, 'human' in 150 of 300 rows; known: agent, " in error
    assert "type --value role:gpt=system --value role:human=guest\n" in error
    with pytest.raises(InputError, match="role: 'gpt' in 150, 'human' in 150 of 300 rows"):
        fastscore.score(log, "guest_simulation")


def test_lines_of_one_name_are_not_put_together_in_silence(tmp_path: Path) -> None:
    chat = [{"from": "human", "value": "a burger"}, {"from": "gpt", "value": "this"}]
    log = write(tmp_path / "log.jsonl", [{"id": "same", "conversations": chat}] * 3)
    code, out, error = score("guest_simulation", tmp_path, log, "--layout", "sharegpt")
    assert code == 0, error
    assert (
        "conversation_id: 3 lines have the names of 1 dialogue and are put together by them; type "
        "--column conversation_id=KEY if each line is a dialogue of its own\n" in out
    )
    # with a layout, too, the keys that stand beside are named
    assert "found: conversations[].from (6), conversations[].value (6), id (3)" in out


def test_what_a_file_gives_is_not_asked_of_the_log(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", FOREIGN_WORDS["guest_simulation"][0])
    code, out, _ = score("guest_simulation", tmp_path, log)
    assert code == 0
    assert "no row has guest_persona (" in out
    assert "also given by --personas)" in out
    write_example("guest_simulation", tmp_path / "example")
    personas = tmp_path / "example" / "personas.json"
    code, out, error = score(
        "guest_simulation", tmp_path, log, "--personas", personas, "--overwrite"
    )
    assert code == 0, error
    assert "guest_persona" not in out.partition("\n\n")[0]


def test_nothing_is_printed_where_nothing_was_scored(tmp_path: Path) -> None:
    log = tmp_path / "empty.jsonl"
    log.write_bytes(b"")
    for more in ((), ("--json",)):
        code, out, error = score("score_dialogue", tmp_path, log, *more)
        assert (code, out) == (3, "")
        assert "Nothing was scored: there is no row for steps in 0 lines of " in error


def test_a_seed_without_a_sample_is_refused(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"])
    code, _, error = score("score_dialogue", tmp_path, log, "--seed", "3")
    assert (code, error) == (
        2,
        "Error: --seed is given without --sample. It says which sample is scored: add --sample "
        "N.\n",
    )


@pytest.mark.parametrize("form", [list, pl.DataFrame])
@pytest.mark.parametrize("rows", ["renamed", "nulled", "rejected", "none"])
def test_memory_and_runs_say_the_same(form: Any, rows: str, tmp_path: Path) -> None:
    given = {
        "renamed": renamed("score_dialogue", "text"),
        "nulled": nulled("score_dialogue"),
        "rejected": [{**row, "utterance_index": "x"} for row in RIGHT["score_dialogue"]],
        "none": [],
    }[rows]
    said = []
    for output in (None, tmp_path / "run"):
        with pytest.raises(InputError) as caught:
            fastscore.score(form(given), "score_dialogue", lex_weight=1.0, output=output)
        said.append(str(caught.value).partition("; all are listed")[0].removesuffix("."))
    assert said[0] == said[1]
    if rows == "none" and form is list:
        assert said[0].startswith("The source is an empty list: there is nothing to read.")


def test_a_scan_warns_of_what_is_missing_and_leaves_other_files_aside(tmp_path: Path) -> None:
    log = write(tmp_path / "logs" / "a.jsonl", renamed("score_dialogue", "text"))
    with pytest.warns(fastscore.LogsWarning, match="Type --column prediction=text"):
        rows = fastscore.scan(log, "score_dialogue")
    assert rows.collect().height == 3
    with pytest.warns(fastscore.LogsWarning, match="no such column"):
        fastscore.scan(pl.read_ndjson(log), "score_dialogue")
    write(tmp_path / "logs" / "a.jsonl", RIGHT["score_dialogue"])
    write(tmp_path / "logs" / "b.jsonl", [{"results": 1}])
    with pytest.warns(fastscore.LogsWarning, match="left aside, as 1 file is no log of"):
        rows = fastscore.scan(tmp_path / "logs", "score_dialogue")
    assert rows.collect().height == 3


def test_frames_are_screened_too() -> None:
    frame = pl.DataFrame(renamed("score_dialogue", "text"))
    with pytest.raises(InputError, match="frame: no row has what score_dialogue needs") as caught:
        fastscore.score(frame, "score_dialogue", lex_weight=1.0)
    assert str(caught.value).endswith("Type --column prediction=text.")
    assert (
        fastscore.score(frame, "score_dialogue", lex_weight=1.0, columns={"prediction": "text"})
        .tables["steps"]
        .height
        == 2
    )


def test_other_messages(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"])
    (tmp_path / "run").write_text("")
    code, _, error = score("score_dialogue", tmp_path, log)
    assert (code, error) == (
        2,
        f"Error: {tmp_path / 'run'} is a file; a run is a folder. Choose another name with -o.\n",
    )
    wrong = fastscore_command(["scor"])
    assert wrong.returncode == 2
    assert "No such command 'scor' of `" in wrong.stderr
    assert "Did you mean 'score'?" in wrong.stderr
    wrong = fastscore_command(["models", "exprt"])
    assert "Did you mean 'export'?" in wrong.stderr
    wrong = fastscore_command(
        ["score", "score_dialogue", log, "-o", tmp_path / "x", "--embedder", "none"]
    )
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "Error: score_dialogue needs an embedder with --lex-weight 0.5 and --semantic "
        "calibrated, and --embedder is none. Type --lex-weight 1.0 or --semantic jaccard or "
        "--embedder MODEL; `fastscore models list` names them.\n"
    )
