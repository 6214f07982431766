"""Logs with one turn a row, for suites whose rows are dialogues."""

import json
from pathlib import Path

import fastscore
from tests.conftest import fastscore_command


def test_turns_as_rows_become_dialogues(tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.json"
    catalogue.write_text(json.dumps([{"name": "Heat", "genre": ["comedy"], "plot": ""}]))
    log = tmp_path / "log.jsonl"
    rows = [
        {"conversation_id": name, "role": role, "content": text}
        for name in "abc"
        for role, text in (("user", "a comedy, please"), ("assistant", "Heat is a comedy"))
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = fastscore_command(["inspect", log])
    command = next(line for line in told.stdout.splitlines() if "score preference_shift" in line)
    options = command.split(str(log))[1].split()
    layout = options[options.index("--layout") :][:2] if "--layout" in options else []
    settings = ["--catalogue", catalogue, "--embedder", "none", "--segments", "metadata"]
    target = ["-o", tmp_path / "run", *layout, *settings]
    done = fastscore_command(["score", "preference_shift", log, *target])
    assert done.returncode == 0, done.stderr
    dialogues = fastscore.open_run(tmp_path / "run").tables["dialogues"]
    assert dialogues["n_turns"].to_list() == [1, 1, 1]
    # the user names comedy, the answer comedy and Heat: 1 / 2
    assert dialogues["cross_coherence"].to_list() == [0.5, 0.5, 0.5]
