"""Runs in which little or nothing has a number: no command ends otherwise than by a message."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastscore import open_run
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.suites.registry import load_suite
from tests.conftest import NIGHTLY, fastscore_command, often

KEPT = {
    *("dialogue_uid", "dialogue_id", "dialog_id", "session_id"),
    *("event", "valid_dialog", "speaker", "intent", "role"),
}
"""What is left of rows without values: names, and what makes them rows at all."""
EVERY = often(8, 1)
KINDS = ("nothing", "one dialogue", "no values")


def without_values(row: Any) -> Any:
    """Make every value null but for names, at any depth; lists keep their length."""
    if isinstance(row, dict):
        return {key: row[key] if key in KEPT else without_values(row[key]) for key in row}
    return [without_values(each) for each in row] if isinstance(row, list) else None


def write_odd(suite: str, kind: str, folder: Path) -> Path:
    """Write logs of a kind beside the example of a suite."""
    write_example(suite, folder)
    found = sorted((folder / "logs").rglob("*.*"))[0]
    odd = folder / "odd" / found.name
    odd.parent.mkdir()
    if kind == "nothing":
        odd = odd.with_suffix(".jsonl")
        odd.write_text('{"event": "predicted", "dialogue_uid": 3.5}\n')
    elif found.suffix == ".csv":
        with found.open() as file, odd.open("w") as written:
            rows = list(csv.DictReader(file))
            writer = csv.DictWriter(written, list(rows[0]))
            writer.writeheader()
            emptied = [{key: row[key] if key in KEPT else "" for key in row} for row in rows]
            writer.writerows(rows if kind == "one dialogue" else emptied)
    else:
        rows = [json.loads(line) for line in found.read_text().splitlines()]
        # score_dialogue has many lines a dialogue, the others one
        kept = [row for row in rows if row.get("dialogue_uid") == rows[0].get("dialogue_uid")]
        kept = kept if "dialogue_uid" in rows[0] else rows[:1]
        if kind == "no values":
            kept = without_values(rows[:20])
        odd.write_text("".join(json.dumps(row) + "\n" for row in kept))
    return odd


def commands(run: Path, folder: Path) -> Iterator[list[object]]:
    """Yield every command that reads a run."""
    suite = load_suite(open_run(run).manifest.suite)
    label = next(c.name for c in suite.tables[-1].columns if c.name not in ("file", "line"))
    dialogues, paired = open_run(run).manifest.tables["dialogues"]["rows"], ("--pair-by", "file")
    yield ["summary", run, "--all"]
    yield ["summary", run, "--by", label]
    if NIGHTLY or not dialogues or dialogues > 1:
        yield ["report", run, "-o", folder / "page.html"]
    yield ["compare", run, run, *paired]
    yield ["compare", run, "--by", label]
    if NIGHTLY:  # minutes of figures
        yield ["analyse", run, "-o", folder / "analysis"]
    for metric in suite.metrics[:: EVERY if dialogues else len(suite.metrics)]:
        yield ["explain", run, "--random", metric.id]
        if metric.scale.better != "neither":
            limits = ["--min", f"{metric.id}=0", "--max-drop", f"{metric.id}=0.1"]
            yield ["check", run, *limits, "--against", run, "--max-missing", 0, *paired]


def test_groups_of_a_column_without_a_value_are_refused(tmp_path: Path) -> None:
    log, run = tmp_path / "log.jsonl", tmp_path / "run"
    turn = {"turn_status": "ok", "pred_assistant_text": "好"}
    log.write_text(json.dumps({"valid_dialog": True, "turns": [turn]}) + "\n")
    fastscore_command(["score", "memory_finance", log, "-o", run])
    # its own summary has groups of the first, the second is any column
    for label in ("scenario_type", "dialog_id"):
        for more in ((), ("--cluster", "file"), ("--format", "csv")):
            done = fastscore_command(["summary", run, "--by", label, *more])
            assert done.returncode == 2
            assert f"no dialogue has a value of {label}" in done.stderr


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suite", example_names())
def test_no_command_ends_in_a_traceback(suite: str, kind: str, tmp_path: Path) -> None:
    logs, run = write_odd(suite, kind, tmp_path), tmp_path / "run"
    words = ["score", suite, logs, "-o", run, "--max-rejects", 1, *example_options(suite, tmp_path)]
    done = fastscore_command(words)
    assert done.returncode in (0, 3), done.stderr
    if not run.exists():  # no line could be read
        assert "no row" in done.stderr or "is empty in all" in done.stderr
        return
    for command in commands(run, tmp_path):
        done = fastscore_command(command)  # what is not caught ends the test
        assert done.returncode in (0, 1, 2, 3), (command, done.stderr)
        assert done.returncode < 2 or done.stderr.startswith("Error: "), done.stderr
