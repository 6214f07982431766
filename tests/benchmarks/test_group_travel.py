"""The generator of group_travel logs: its planted cases, found by the plain scorer."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchmarks.group_travel import write_logs
from tests.benchmarks.test_plain_group_travel import NO_VECTORS
from tests.conftest import often
from tests.oracles.group_travel import main as plain
from tests.oracles.group_travel_logs import read_dialogues
from tests.oracles.group_travel_metrics import score_dialogue

PLANTED = ("M1", "M2", "M3", "M4", "M4b", "M5", "M9", "M10b", "M16")


def expectations(folder: Path) -> dict[str, dict[str, Any]]:
    with (folder / "expected.jsonl").open() as lines:
        return {row["dialogue"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize(("layout", "dialogues"), [("csv", 60), ("jsonl", often(200, 2000))])
def test_the_plain_scorer_finds_what_was_planted(
    tmp_path: Path, layout: Any, dialogues: int
) -> None:
    write_logs(tmp_path, dialogues=dialogues, layout=layout, defects=0.3, seed=1)
    expected = expectations(tmp_path)
    seen = 0
    for dialogue in read_dialogues([tmp_path / "logs"]):
        found, planted = score_dialogue(dialogue, NO_VECTORS), expected[dialogue.id]
        assert found.condition == planted["condition"]
        for metric in PLANTED:
            score = found.metrics[metric]
            value = [score.num, score.den] if score.den else score.value
            assert value == planted[metric], (dialogue.id, metric)
        seen += 1
    assert seen == dialogues


def test_every_defect_is_planted(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=300, layout="parquet", seed=2)
    rows = list(expectations(tmp_path).values())
    for metric in PLANTED:
        values = [row[metric] for row in rows if isinstance(row[metric], list)]
        assert any(num < den for num, den in values), metric
        assert any(num for num, den in values), metric
    assert {row["condition"] for row in rows} == {"C1", "C2", "C3", "C4", "C5"}


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_logs(tmp_path / name, dialogues=15, layout="csv", seed=3)
    names = sorted(path.name for path in (tmp_path / "one" / "logs").iterdir())
    assert len(names) == 15
    for name in names:
        contents = {(tmp_path / side / "logs" / name).read_bytes() for side in ("one", "two")}
        assert len(contents) == 1
    with pytest.raises(click.ClickException, match="not empty"):
        write_logs(tmp_path / "one", dialogues=1)


def test_the_plain_scorer_as_a_program(tmp_path: Path) -> None:
    write_logs(tmp_path, dialogues=7, seed=4)
    output = tmp_path / "scores.jsonl"
    arguments = [str(tmp_path / "logs"), "-o", str(output), "--first", "5"]
    assert CliRunner().invoke(plain, arguments).exit_code == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["condition"] for row in rows] == ["C1", "C2", "C3", "C4", "C5"]
    assert all(row["metrics"]["M12"]["value"] is None for row in rows)
