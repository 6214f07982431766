"""A new user's logs with other columns: the error names the option to use."""

import json
import shlex

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from tests.by_keywords import score_by_keywords
from tests.cli.scoring import options, score
from tests.conftest import fastscore_command, python_process
from tests.logs.samples.wrong_logs import NEEDED, OTHER_NAMES, RIGHT, nulled, renamed, write
from tests.run.logs import utterance

TWO = {
    "score_dialogue": {"prediction": "guess", "utterance_index": "turn"},
    "memory_finance": {"turns": "messages", "valid_dialog": "is_valid"},
    "group_travel": {"intent": "act", "utterance": "said"},
}


@pytest.mark.parametrize("suite", TWO)
def test_two_renamed_columns_are_named_in_one_command(suite, tmp_path):
    names = TWO[suite]
    rows = [{names.get(k, k): v for k, v in row.items()} for row in RIGHT[suite]]
    log = write(tmp_path / "log.jsonl", rows)
    code, _, error = score(suite, tmp_path, log)
    flags = [f"--column {name}={key}" for name, key in names.items()]
    assert code == 3
    assert any(error.endswith(f"Type {' '.join(each)}.\n") for each in (flags, flags[::-1])), error
    code, _, error = score(suite, tmp_path, log, *" ".join(flags).split())
    assert code == 0, error
    lexical = {"lex_weight": 1.0} if suite == "score_dialogue" else {}
    for given in (log, rows, pl.DataFrame(rows)):
        with pytest.raises(InputError) as caught:
            score_by_keywords(given, suite, embedder=None, **lexical)
        said = str(caught.value)
        assert any(said.endswith(f"Type {' '.join(each)}.") for each in (flags, flags[::-1]))
        scores = score_by_keywords(given, suite, embedder=None, columns=names, **lexical)
        assert next(iter(scores.tables.values())).height


def test_columns_that_nothing_is_near_are_asked_for_together(tmp_path):
    names = {"event": "evt", "utterance_index": "zz", "prediction": "guess"}
    rows = [{names.get(k, k): v for k, v in row.items()} for row in RIGHT["score_dialogue"]]
    with pytest.raises(InputError) as caught:
        score_by_keywords(rows, "score_dialogue", embedder=None, lex_weight=1.0)
    hint = "Name their keys: --column event=KEY --column utterance_index=KEY."
    assert hint in str(caught.value)


def test_what_is_typed_then_scores(tmp_path):
    log = write(tmp_path / "log.jsonl", renamed("score_dialogue", "text"))
    right = write(tmp_path / "right.jsonl", RIGHT["score_dialogue"])
    code, _, error = score("score_dialogue", tmp_path, log, "--column", "prediction=text")
    assert code == 0, error
    run = fastscore.open_run(tmp_path / "run")
    assert run.signature.endswith("|columns=prediction=text")
    expected = fastscore.score(right, fastscore.ScoreDialogue(lex_weight=1.0))
    steps = run.scan("steps").collect()
    assert steps.drop("dialogue").equals(expected.tables["steps"].drop("dialogue"))
    # by configuration, and in Python
    config = tmp_path / "config.toml"
    config.write_text(
        '[columns]\nprediction = "nope"\n[score_dialogue.columns]\nprediction = "text"'
    )
    code, _, error = score("score_dialogue", tmp_path, log, "--config", config)
    assert code == 0, error
    scores = fastscore.score(
        log, fastscore.ScoreDialogue(lex_weight=1.0), columns={"prediction": "text"}
    )
    assert scores.signature == run.signature
    # another map is another run
    more = ("--column", "prediction=text", "--value", "event:guess=predicted")
    code, _, error = score("score_dialogue", tmp_path, log, *more)
    assert code == 2
    assert "holds a run with another signature" in error


def test_what_a_refused_run_says_to_type_replaces_a_run_without_scores(tmp_path):
    of_turn = {"dialogue_uid": "d", "miner_uid": "7", "place": 0}
    rows = [
        {**of_turn, "event": "predicted", "utterance_index": 0, "step": 0, "prediction": "tea"},
        {**of_turn, "event": "utterance_complete", "utterance_index": 1, "ground_truth": "tea"},
    ]
    log = write(tmp_path / "log.jsonl", rows)
    code, _, error = score("score_dialogue", tmp_path, log)
    assert code == 3
    assert "Nothing was scored" in error
    code, _, error = score("score_dialogue", tmp_path, log, "--column", "utterance_index=place")
    assert code == 0, error
    assert fastscore.open_run(tmp_path / "run").tables["steps"].height == 1


def test_a_trace_beside_its_own_results(tmp_path):
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


def test_metrics_that_lack_their_column_are_named_first(tmp_path):
    rows = [{**row, "itinerary": "{}"} for row in RIGHT["group_travel"]]
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
    assert "Metrics lack a column in every row, and strict is set; all else is scored." in error


def test_a_log_without_shifts_names_each_metric_of_shifts(tmp_path):
    example = fastscore.example("preference_shift", tmp_path).folder
    turns = [{"speaker": "USER", "text": "A drama?"}, {"speaker": "SYSTEM", "text": "A drama."}]
    log = write(tmp_path / "log.jsonl", [{"session_id": "c", "conversation": turns}])
    catalogue = str(example / "catalogue.jsonl")
    run = fastscore.score(log, fastscore.PreferenceShift(catalogue=catalogue, segments="metadata"))
    (note,) = [note for note in run.manifest.lacking if "shift_events" in note]
    reasons = run.tables["dialogues"]["null_reasons"].item()
    expected = {each["metric"] for each in reasons if each["reason"] == "not_applicable"}
    assert set(note.partition(" are null")[0].split(", ")) == expected


def test_marks_of_shifts_are_not_proposed_as_the_list_of_shifts(tmp_path):
    example = fastscore.example("preference_shift", tmp_path).folder
    speakers = ("USER", "SYSTEM", "USER", "SYSTEM")
    rows = [
        {"session_id": "c", "speaker": speaker, "text": "A drama.", "shift_event": place == 2}
        for place, speaker in enumerate(speakers)
    ]
    catalogue = str(example / "catalogue.jsonl")
    options = fastscore.PreferenceShift(catalogue=catalogue, segments="metadata")
    run = fastscore.score(write(tmp_path / "log.jsonl", rows), options, layout="turns")
    (note,) = [note for note in run.manifest.lacking if "no row has shift_events" in note]
    assert "shift_event (4)" in note
    assert "type --column" not in note  # a list cannot be read from booleans


def test_a_metric_that_its_definition_fixes_lacks_no_column(tmp_path):
    example = fastscore.example("guest_simulation", tmp_path).folder
    options = fastscore.GuestSimulation(personas=str(example / "personas.json"))
    run = fastscore.score(example / "logs" / "exp1", options, strict=True)
    assert run.tables["dialogues"]["DEI"].to_list() == [0.0] * 4  # as level 1 has it
    assert not run.manifest.lacking


def test_keys_that_were_found_are_listed_once(tmp_path):
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"id": "c", "messages": turns * 2}) + "\n")
    run = fastscore.score(log, "guest_simulation", layout="openai")
    assert [note.count("found: ") for note in run.manifest.lacking] == [1, 0, 0]
    assert all("no row has" in note for note in run.manifest.lacking)


def test_labels_of_turns_under_another_name_are_missed(tmp_path):
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


def test_texts_that_are_null_in_some_rows_are_counted(tmp_path):
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
    scores = fastscore.score(logs, fastscore.MemoryFinance(profile="published"))
    assert scores.notes[-1] == (
        "turns[].pred_assistant_text: null in 2 of 4 objects; counted as empty, as published"
    )
    assert scores.tables["dialogues"].sort("dialogue")["m4_turns"].to_list() == [2, 2]


def test_a_seed_without_a_sample_is_refused(tmp_path):
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"])
    code, _, error = score("score_dialogue", tmp_path, log, "--seed", "3")
    assert (code, error) == (
        2,
        "Error: seed is given without sample. It says which sample is scored: set sample to a "
        "number of dialogues.\n",
    )


@pytest.mark.parametrize("form", [list, pl.DataFrame])
@pytest.mark.parametrize("rows", ["renamed", "nulled", "rejected", "none"])
def test_memory_and_runs_say_the_same(form, rows, tmp_path):
    given = {
        "renamed": renamed("score_dialogue", "text"),
        "nulled": nulled("score_dialogue"),
        "rejected": [{**row, "utterance_index": "x"} for row in RIGHT["score_dialogue"]],
        "none": [],
    }[rows]
    said = []
    for output in (None, tmp_path / "run"):
        with pytest.raises(InputError) as caught:
            fastscore.score(form(given), fastscore.ScoreDialogue(lex_weight=1.0), output=output)
        said.append(str(caught.value).partition("; all are listed")[0].removesuffix("."))
    assert said[0] == said[1]
    if rows == "none" and form is list:
        assert said[0].startswith("The source is an empty list: there is nothing to read.")


def test_a_scan_warns_of_what_is_missing_and_leaves_other_files_aside(tmp_path):
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


def test_other_messages(tmp_path):
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"])
    (tmp_path / "run").write_text("")
    code, _, error = score("score_dialogue", tmp_path, log)
    assert (code, error) == (
        2,
        f"Error: {tmp_path / 'run'} is a file; a run is a folder. Choose another name as output.\n",
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
        "Error: score_dialogue needs an embedder with lex_weight 0.5 and semantic calibrated, "
        "and embedder is none. Set lex_weight to 1.0 or semantic to jaccard or embedder to a "
        "model. `fastscore models list` has them.\n"
    )


MOST_CALLS = 60_000
COUNTED = """
import cProfile, importlib, json, pkgutil, sys
import fastscore
for module in pkgutil.walk_packages(fastscore.__path__, "fastscore."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass  # of an extra that is not installed
for words in json.loads(sys.argv[1]):
    profile = cProfile.Profile()
    sys.argv = ["fastscore", *words]
    try:
        profile.runcall(fastscore.cli.main)
    except SystemExit as error:
        assert error.code == 3, error.code
    profile.create_stats()
    print(sum(calls for _, calls, *_ in profile.stats.values()))
"""
"""Counts what commands call after everything is imported."""


def test_an_error_about_a_renamed_column_calls_little(tmp_path):
    suites = ("preference_shift", "score_dialogue")
    commands = []
    for suite in suites:
        log = write(tmp_path / f"{suite}.jsonl", renamed(suite, OTHER_NAMES[suite]) * 40)
        words = ["score", suite, str(log), "-o", str(tmp_path / "run")]
        commands.append([*words, *options(suite, tmp_path)])
    done = python_process(COUNTED, json.dumps(commands))
    for suite in suites:
        assert f"Type --column {NEEDED[suite]}={OTHER_NAMES[suite]}" in done.stderr, done.stderr
    assert max(map(int, done.stdout.split())) < MOST_CALLS


def test_cells_that_a_suite_reads_as_python_are_no_fault(tmp_path):
    items = "[{'name': 'Mocha', 'quantity': 1}]"
    rows = [
        {**row, "current_items_in_order": items} for row in renamed("guest_simulation", "said_by")
    ]
    code, _, error = score("guest_simulation", tmp_path, write(tmp_path / "log.jsonl", rows))
    assert code == 3
    assert error.endswith("Type --column role=said_by.\n"), error


def test_one_refusal_proposes_all_if_every_key_and_word_has_another_name(tmp_path):
    keys = {"event": "kind", "utterance_index": "utt", "step": "pos", "prediction": "guess"}
    keys |= {"ground_truth": "truth", "dialogue_uid": "conv"}
    words = {"predicted": "guess", "utterance_complete": "final"}
    log = tmp_path / "own.jsonl"
    with log.open("w") as file:
        for uid in "ab":
            for row in utterance("tea", f"tea {uid}"):
                named = {keys[key]: words.get(str(value), value) for key, value in row.items()}
                file.write(json.dumps({**named, "conv": uid}) + "\n")
    score = ["score", "score_dialogue", log, "-o", tmp_path / "run", "--lex-weight", "1"]
    refused = fastscore_command(score)
    assert refused.returncode == 3
    told = refused.stderr.splitlines()[-1]
    assert told.startswith("Name its key: --column ")
    options = shlex.split(told.removeprefix("Name its key: ").removesuffix("."))
    assert "step=KEY" in options
    done = fastscore_command([*score, *(word.replace("KEY", "pos") for word in options)])
    assert done.returncode == 0, done.stderr
    assert fastscore.open_run(tmp_path / "run").tables["dialogues"].height == 2


def test_logs_of_one_suite_scored_by_another_name_it_and_the_command(tmp_path):
    logs = fastscore.example("group_travel", tmp_path / "example").folder / "logs"
    for more in ([], ["--dry-run"]):
        options = ["-o", tmp_path / "run", "--lex-weight", "1", *more]
        done = fastscore_command(["score", "score_dialogue", logs, *options])
        assert done.returncode == 3
        named = f"These logs fit group_travel. Type: `fastscore score group_travel {logs} -o run`"
        assert named in done.stderr


def test_logs_that_fit_no_suite_keep_the_advice(tmp_path):
    (tmp_path / "other.jsonl").write_text(json.dumps({"speed": 3, "colour": "red"}) + "\n")
    with pytest.raises(fastscore.FastscoreError) as caught:
        fastscore.score(tmp_path / "other.jsonl", fastscore.ScoreDialogue(lex_weight=1.0))
    assert "These logs fit" not in str(caught.value)


def test_renamed_rows_of_a_suite_of_arrays_are_told_of_the_layout_of_turns(tmp_path):
    rows = [{"conv": "c1", "speaker": who, "said": "Heat"} for who in ("USER", "SYSTEM")]
    log = write(tmp_path / "log.jsonl", rows)
    typed = ("--column", "session_id=conv", "--column", "text=said")
    code, _, error = score("preference_shift", tmp_path, log, *typed)
    assert code == 3
    assert "If each row is a turn, add --layout turns. Name their keys: " in error
    code, _, error = score("preference_shift", tmp_path, log, *typed, "--layout", "turns")
    assert code == 0, error


def test_what_one_file_of_a_folder_needs_is_named(tmp_path):
    rows = RIGHT["score_dialogue"]
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs" / "a.jsonl", rows)
    other = write(
        tmp_path / "logs" / "b.jsonl", [rows[0] | {"utterance_index": {"a": 1}, "own": 1}]
    )
    code, _, error = score("score_dialogue", tmp_path, tmp_path / "logs")
    assert code == 3
    assert error.startswith(f'Error: {other}: utterance_index is {{"a": 1}}, expected integers. ')
    assert error.endswith("Type --column utterance_index=utterance_index.a.\n")
