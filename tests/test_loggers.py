"""Runs in MLflow, Weights & Biases and datasets, each beside the real client, offline."""

import json
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.errors import RunConflictError, UsageError
from fastscore.loggers import log_to_mlflow, log_to_wandb, numbers_of, write_dataset
from tests.run.logs import utterance

TURNS = [
    row
    for uid, guess in (("a", "hello word"), ("b", "hello world"), ("c", "x"))
    for row in utterance("hello world", guess, dialogue_uid=uid)
]
# one step each: 1 - 1 / 11, 1, and 1 - 11 / 11
MEAN = (10 / 11 + 1 + 0) / 3


@pytest.fixture
def run(tmp_path):
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    return fastscore.score(TURNS, options, output=tmp_path / "run")


def test_means_and_ends_of_intervals_are_numbers(run):
    found = numbers_of(run)
    assert found["average_U_best_early"] == pytest.approx(MEAN)
    assert found["average_U_best_early.ci_low"] < MEAN < found["average_U_best_early.ci_high"]
    assert "semantic_similarity" not in found  # null, as only words are compared


def test_mlflow_has_the_run(run, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    identity = log_to_mlflow(run, name="lexical")
    found = mlflow.get_run(identity)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["average_U_best_early"] == pytest.approx(MEAN)
    assert found.data.params["suite"] == "score_dialogue"
    assert found.data.params["lex_weight"] == "1.0"
    assert found.data.tags["fastscore.signature"] == run.signature
    path = mlflow.artifacts.download_artifacts(
        run_id=identity, artifact_path="fastscore/summary.json"
    )
    assert json.loads(Path(path).read_text())["signature"] == run.signature
    with mlflow.start_run() as active:
        assert log_to_mlflow(run.path) == active.info.run_id


def test_wandb_has_the_run(run, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    identity = log_to_wandb(run, project="tests")
    assert wandb.run is None
    wandb.teardown()  # what was written is on disk then
    (folder,) = (tmp_path / "wandb").glob(f"offline-run-*-{identity}")
    (stored,) = folder.glob("*.wandb")
    content = stored.read_bytes()
    assert b"average_U_best_early" in content
    assert b"score_dialogue" in content
    with wandb.init(project="tests") as active:
        assert log_to_wandb(run) == active.id
        assert active.summary["average_U_best_early"] == pytest.approx(MEAN)


def test_a_dataset_is_a_folder_with_a_card(run, tmp_path):
    card = write_dataset(run, tmp_path / "dataset").read_text()
    assert "config_name: dialogues" in card
    assert run.signature in card
    assert f"| `average_U_best_early` | {MEAN:.6g} |" in card
    stored = pl.read_parquet(tmp_path / "dataset" / "data" / "dialogues.parquet")
    assert stored["average_U_best_early"].mean() == pytest.approx(MEAN)
    assert not isinstance(stored["null_reasons"].explode().struct.field("reason").dtype, pl.Enum)
    with pytest.raises(RunConflictError, match="cannot take a data set: it holds"):
        write_dataset(run, tmp_path / "dataset")


def test_the_library_of_datasets_reads_the_folder(run, tmp_path):
    datasets = pytest.importorskip("datasets")
    write_dataset(run, tmp_path / "dataset")
    found = datasets.load_dataset(
        str(tmp_path / "dataset"), "dialogues", cache_dir=str(tmp_path / "cache")
    )
    values = found["train"].to_polars()["average_U_best_early"]
    assert values.mean() == pytest.approx(MEAN)
    default = datasets.load_dataset(str(tmp_path / "dataset"), cache_dir=str(tmp_path / "cache"))
    assert "mean" in default["train"].column_names


def test_a_missing_client_is_one_message(run, monkeypatch):
    import sys

    for log, name in ((log_to_mlflow, "mlflow"), (log_to_wandb, "wandb")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match=rf"pip install 'fastscore-dialogue\[{name}\]'"):
            log(run)
