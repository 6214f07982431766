"""Bad input as a user meets it: every file is scored as far as it goes, or refused by name."""

import json
import os

import polars as pl
import pytest

from tests.conftest import fastscore_command, python_process
from tests.run.logs import dialogue_lines

LEXICAL = ("--lex-weight", "1")
GOOD = "\n".join(line for number in range(3) for line in dialogue_lines(f"d{number}")) + "\n"


def score(*words):
    done = fastscore_command(["score", "score_dialogue", *words, *LEXICAL])
    assert "Traceback" not in done.stderr
    return done


def rejects(run):
    return pl.read_parquet(run / "rejects" / "*.parquet").rows(named=True)


def n_dialogues(run):
    return pl.read_parquet(run / "dialogues" / "*.parquet").height


def test_a_truncated_last_line_is_a_reject_and_the_rest_is_scored(tmp_path):
    log = tmp_path / "cut.jsonl"
    log.write_text(GOOD + dialogue_lines("d9")[0][:-20])
    lines = GOOD.count("\n") + 1
    done = score(log, "-o", tmp_path / "run")
    assert done.returncode == 3
    assert f"1 of {lines} lines is a reject" in done.stderr
    assert f"{log}:{lines}: not_json" in done.stderr
    (reject,) = rejects(tmp_path / "run")
    assert (reject["line"], reject["byte_offset"]) == (lines, len(GOOD))
    assert n_dialogues(tmp_path / "run") == 3
    allowed = score(log, "-o", tmp_path / "run", "--max-rejects", "0.1")
    assert allowed.returncode == 0, allowed.stderr


@pytest.mark.parametrize("column", ["event", "utterance_index"])
def test_a_log_that_lacks_what_every_row_needs_is_refused(tmp_path, column):
    log = tmp_path / "log.parquet"
    rows = pl.DataFrame([json.loads(line) for line in GOOD.splitlines()])
    rows.drop(column).write_parquet(log)
    done = score(log, "-o", tmp_path / "run")
    assert done.returncode == 3
    assert f"{log}: no row has what score_dialogue needs" in done.stderr
    assert f"  {column}: no such column" in done.stderr


def test_a_line_of_100_megabytes_is_a_reject_and_the_rest_is_scored(tmp_path):
    log = tmp_path / "long.jsonl"
    with log.open("w") as file:
        file.write(dialogue_lines("d0")[0] + "\n")
        file.write('{"event": "predicted", "prediction": "')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write('"}\n' + GOOD.replace("d0", "d7"))
    done = score(log, "-o", tmp_path / "run", "--max-rejects", "1")
    assert done.returncode == 0, done.stderr
    (reject,) = rejects(tmp_path / "run")
    assert (reject["line"], reject["reason"]) == (2, "line_too_long")
    assert str(reject["found"]) == f"{(100 << 20) + 40} bytes"
    assert n_dialogues(tmp_path / "run") == 4


@pytest.mark.parametrize("output", ["/proc/run", "{tmp}/good.jsonl", "{tmp}/good.jsonl/run"])
def test_a_place_where_nothing_can_be_written_is_named(tmp_path, output):
    (tmp_path / "good.jsonl").write_text(GOOD)
    output = output.format(tmp=tmp_path)
    done = score(tmp_path / "good.jsonl", "-o", output)
    assert done.returncode in (2, 4)
    assert output in done.stderr
    assert (tmp_path / "good.jsonl").read_text() == GOOD


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / "closed").mkdir(mode=0o555)
    done = score(tmp_path / "good.jsonl", "-o", tmp_path / "closed" / "run")
    assert done.returncode == 4
    assert "Permission denied" in done.stderr


def test_a_log_that_changes_while_it_is_scored_is_refused_and_the_next_run_is_whole(tmp_path):
    """The log is written anew between the plan and the scoring."""
    log = tmp_path / "log.jsonl"
    log.write_text(GOOD)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fastscore.run import drive\n"
        "accept = drive.accept_inputs\n"
        "def change(*arguments):\n"
        "    accept(*arguments)\n"
        f"    log = Path({str(log)!r})\n"
        "    log.write_text(log.read_text().replace('table', 'chair'))\n"
        "drive.accept_inputs = change\n"
        "from fastscore.cli import main\n"
        f"sys.argv = ['fastscore', 'score', 'score_dialogue', {str(log)!r}, '-o', "
        f"{str(tmp_path / 'run')!r}, '--lex-weight', '1']\n"
        "main()\n"
    )
    done = python_process(script)
    assert done.returncode == 3, done.stderr
    assert f"The file '{log}' was changed while it was read." in done.stderr
    assert "Run the same command again" in done.stderr
    assert score(log, "-o", tmp_path / "run").returncode == 0
    assert score(log, "-o", tmp_path / "fresh").returncode == 0
    for table in ("steps", "utterances", "dialogues"):
        again, fresh = (
            (tmp_path / name / table / "part-00000.parquet").read_bytes()
            for name in ("run", "fresh")
        )
        assert again == fresh
