"""The measuring itself: costs, agreement, sizes and ratios, without timing anything."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest
from click.testing import CliRunner

from benchmarks.end_to_end import dialogues_for, distinct_pairs, net_rate
from benchmarks.miner_logs import Dialogue, Turn, generate
from benchmarks.processes import Cost, ProcessFailedError, measure
from benchmarks.scenarios import DisagreementError, Result, Side, alternate, check_agreement, table
from tests.oracles.published_script import main as published_script

STEP = {
    "lexical_similarity": 0.5,
    "earliness": 1.0,
    "semantic_cosine_raw": 0.25,
    "semantic_similarity": 0.125,
    "U_step": 0.3125,
}


def write_scores(folder: Path, **changed: float) -> Path:
    folder.mkdir()
    step = {"step": 0, **STEP, **changed, "prediction": "x"}
    document = {"utterances": [{"utterance_number": 3, "steps": [step]}]}
    (folder / "talk-score.json").write_text(json.dumps(document))
    return folder


def write_run(folder: Path, **changed: Any) -> Path:
    for name in ("dialogues", "steps"):
        (folder / name).mkdir(parents=True)
    pl.DataFrame({"dialogue": ["d"], "file": ["logs/talk.jsonl"]}).write_parquet(
        folder / "dialogues" / "part-00000.parquet"
    )
    row = {"dialogue": "d", "utterance_index": 3, "step": 0, **STEP, **changed}
    pl.DataFrame([row]).write_parquet(folder / "steps" / "part-00000.parquet")
    return folder


def test_equal_numbers_agree(tmp_path: Path) -> None:
    scores, run = write_scores(tmp_path / "scores"), write_run(tmp_path / "run")
    agreement = check_agreement(scores, run, lexical_only=True)
    assert agreement.rows == 1
    assert set(agreement.largest.values()) == {0.0}


def test_a_null_part_agrees_with_zero(tmp_path: Path) -> None:
    scores = write_scores(tmp_path / "scores", semantic_cosine_raw=0.0, semantic_similarity=0.0)
    off = {"semantic_cosine_raw": None, "semantic_similarity": None}
    run = write_run(tmp_path / "run", **off)
    assert check_agreement(scores, run, lexical_only=True).rows == 1


@pytest.mark.parametrize(
    ("column", "change", "agrees"),
    [
        ("lexical_similarity", 0.0001, False),
        ("lexical_similarity", 0.00001, True),
        ("semantic_cosine_raw", 0.0001, True),
        ("semantic_similarity", 0.0001, True),
        ("semantic_similarity", 0.0002, False),
        ("semantic_similarity", float("nan"), False),
        ("U_step", 0.0001, True),
        ("U_step", -0.0003, False),
    ],
)
def test_each_part_has_its_tolerance(
    tmp_path: Path, column: str, change: float, agrees: bool
) -> None:
    scores = write_scores(tmp_path / "scores")
    run = write_run(tmp_path / "run", **{column: STEP[column] + change})
    if agrees:
        check_agreement(scores, run, lexical_only=False)
    else:
        with pytest.raises(DisagreementError, match=column):
            check_agreement(scores, run, lexical_only=False)


def test_rows_that_only_one_side_has_are_named(tmp_path: Path) -> None:
    scores, run = write_scores(tmp_path / "scores"), write_run(tmp_path / "run", step=1)
    with pytest.raises(DisagreementError, match="same logs"):
        check_agreement(scores, run, lexical_only=True)


def test_a_process_is_measured_from_outside(tmp_path: Path) -> None:
    held = "held = b'x' * 300_000_000; import pathlib; pathlib.Path('ran').touch()"
    cost = measure([sys.executable, "-S", "-c", held], cwd=tmp_path)
    assert (tmp_path / "ran").exists()
    assert cost.wall > 0
    assert cost.cpu > 0
    assert 300 < cost.peak_mb < 340
    small = measure([sys.executable, "-S", "-c", "pass"], cwd=tmp_path)
    assert small.peak_mb < 60


def test_a_failed_process_quotes_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="no such thing"):
        measure([sys.executable, "-S", "-c", "raise SystemExit('no such thing')"], cwd=tmp_path)


def test_dialogues_for_gives_at_least_so_many_rows() -> None:
    def dialogue(n_turns: int) -> Dialogue:
        return Dialogue("x", "s", (Turn("U", "text", ()),) * n_turns)

    source = [dialogue(2), dialogue(4)]  # 10 and 20 rows
    counts = [dialogues_for(source, rows) for rows in (1, 10, 11, 30, 31, 41, 60)]
    assert counts == [1, 1, 2, 2, 3, 4, 4]


def test_pairs_are_counted_once(tmp_path: Path) -> None:
    texts = ["a", "b", "a", "a"]
    rows = [{"event": "predicted", "prediction": text} for text in texts]
    lines = [*rows[:3], {"event": "utterance_complete", "ground_truth": "a"}]
    lines += [rows[3], {"event": "utterance_complete", "ground_truth": "b"}]
    (tmp_path / "part.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert distinct_pairs(tmp_path) == 3


def test_both_ways_agree_on_real_dialogues(tmp_path: Path) -> None:
    logs, scores, run = tmp_path / "logs", tmp_path / "scores", tmp_path / "run"
    counts = generate(logs, dialogues=6, miners=2, layout="dialogue")
    arguments = [str(logs), "-o", str(scores), "--lex-weight", "1"]
    assert CliRunner().invoke(published_script, arguments).exit_code == 0
    score = [sys.executable, "-m", "fastscore", "score", "score_dialogue", str(logs), "-q"]
    measure([*score, "-o", str(run), "--lex-weight", "1"], cwd=tmp_path)
    assert check_agreement(scores, run, lexical_only=True).rows == counts.predictions


def test_the_published_script_asks_for_weights_where_it_needs_them(tmp_path: Path) -> None:
    result = CliRunner().invoke(published_script, [str(tmp_path), "-o", str(tmp_path / "scores")])
    assert result.exit_code == 2
    assert "needs --weights" in result.output


def side(rows: int, *walls: float) -> Side:
    return Side(rows, [Cost(wall, wall / 2, 100.0) for wall in walls])


def test_start_up_is_taken_off_the_rate() -> None:
    sides = {"x": side(101, 3.0, 11.0, 7.0), "x start-up": side(1, 2.0)}
    assert net_rate(sides, "x", "wall") == 20.0
    sides["x start-up"] = side(1, 7.0)
    with pytest.raises(click.ClickException, match="more rows"):
        net_rate(sides, "x", "wall")


def test_actions_alternate() -> None:
    order: list[str] = []
    alternate([lambda: order.append("a"), lambda: order.append("b")], 3)
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_the_table_gives_medians_and_spread() -> None:
    result = Result("mixed", {"published script": side(2000, 1.0, 4.0, 2.0)}, {"times": 5.5}, {})
    lines = table(result).splitlines()
    assert (
        lines[4]
        == "| published script | 2,000 | 2.00 (1.00-4.00) | 1.00 (0.50-2.00) | 100 | 1,000 |"
    )
    assert "- times: **5.50**" in lines
