"""Coffee orders of Taskmaster-4 with defects. Scores equal those of the plain scorer."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks.guest_simulation_logs import SAMPLE, read_orders, write_csv, write_shards
from tests.by_keywords import score_by_keywords
from tests.oracles import guest_simulation as plain

COUNT = 200
DATA = Path(os.environ.get("FASTSCORE_TM4", SAMPLE))


def personas_of(logs: Path) -> Path:
    return logs.with_name(f"{logs.name}-personas.json")


def scored(logs: Path, **options: Any) -> Mapping[str, pl.DataFrame]:
    personas = str(personas_of(logs))
    found = score_by_keywords(logs, "guest_simulation", personas=personas, **options)
    assert found.rejects.is_empty(), found.rejects.to_dicts()
    return found.tables


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guests") / "logs"
    write_shards(folder, read_orders(DATA), COUNT)
    return folder


@pytest.mark.parametrize("profile", ["default", "published"])
def test_real_orders_are_scored_as_by_the_plain_scorer(logs: Path, profile: str) -> None:
    found = scored(logs, profile=profile)["dialogues"].rows(named=True)
    lines = [line for path in sorted(logs.iterdir()) for line in path.read_text().splitlines()]
    expected = plain.score_lines(lines, plain.read_personas(personas_of(logs)), profile=profile)
    assert len(found) == len(expected) == COUNT
    for row, (key, values) in zip(found, expected.items(), strict=True):
        assert (row["conversation_id"], row["experiment_level"]) == key
        assert row["state_source"] == values["state_source"]
        for metric in plain.METRICS:
            assert row[metric] == pytest.approx(values[metric], abs=1e-12), (metric, row)
    # orders with and without a defect, and states of two sources
    assert 0.1 * COUNT < sum(row["ORA"] == 1.0 for row in found) < 0.7 * COUNT
    assert {"columns", "tools"} <= {row["state_source"] for row in found}


def test_csv_files_of_levels_are_read_as_published(tmp_path: Path, logs: Path) -> None:
    write_csv(tmp_path / "logs", read_orders(DATA), COUNT)
    by_format = [scored(folder)["dialogues"] for folder in (tmp_path / "logs", logs)]
    # a conversation's place differs, and so does the order of files
    places = ("file", "line", "dialogue", "conversation_id")
    key = ["experiment_level", "test_case", "persona"]
    csv, jsonl = (frame.drop(places).sort(key) for frame in by_format)
    assert csv.equals(jsonl)
