"""A small run of every suite, scored once for all tests of what is shown of runs."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

import fastscore
from benchmarks import (
    group_travel_logs,
    guest_simulation_logs,
    miner_logs,
    preference_shift_logs,
)
from fastscore.results.runs import Run

SUITES = (
    "score_dialogue",
    "group_travel",
    "guest_simulation",
    "preference_shift",
    "memory_finance",
)
_TRACES = Path(__file__).parents[1] / "suites" / "memory_finance" / "published"


@pytest.fixture(scope="session")
def suite_runs(tmp_path_factory: pytest.TempPathFactory, default_model: str) -> Mapping[str, Run]:
    """Return a run of each suite over a few real dialogues."""
    folder = tmp_path_factory.mktemp("runs")
    store = folder / "store"

    def write(command: object, *arguments: object) -> None:
        done = CliRunner().invoke(command.main, [str(word) for word in arguments])  # type: ignore[attr-defined]
        assert done.exit_code == 0, done.output

    write(miner_logs, "--dialogues", 6, "--miners", 2, "-o", folder / "miners")
    write(group_travel_logs, "--dialogues", 15, "-o", folder / "trips")
    write(guest_simulation_logs, "--conversations", 20, "-o", folder / "guests")
    write(preference_shift_logs, "--kind", "models", "--turns", 300, "--output", folder / "shifts")
    shutil.copytree(_TRACES, folder / "traces", ignore=shutil.ignore_patterns("turn*", "*.json"))
    traces = sorted((folder / "traces").rglob("dialog_trace*"))
    runs = {
        "score_dialogue": fastscore.score(
            folder / "miners", "score_dialogue", output=folder / "run-1", store=store
        ),
        "group_travel": fastscore.score(
            folder / "trips" / "logs", "group_travel", output=folder / "run-2", store=store
        ),
        "guest_simulation": fastscore.score(
            folder / "guests",
            "guest_simulation",
            output=folder / "run-3",
            personas=str(folder / "guests-personas.json"),
        ),
        "preference_shift": fastscore.score(
            folder / "shifts" / "logs.jsonl",
            "preference_shift",
            output=folder / "run-4",
            store=store,
            catalogue=str(folder / "shifts" / "catalogue.jsonl"),
        ),
        "memory_finance": fastscore.score(traces, "memory_finance", output=folder / "run-5"),
    }
    assert all(run.rejects.collect().is_empty() for run in runs.values())
    return runs
