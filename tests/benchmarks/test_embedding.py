"""The benchmarks of embedding and of the store run on something tiny and print every column."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fastscore_models import export

from benchmarks import embedding, embedding_scaling, vector_store
from benchmarks.embedding_scaling import HEADER
from tests.models.tiny_bert import make_recipe, word_tokenizer, write_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that holds a tiny model, which knows no word of the sample but three."""
    cache = tmp_path_factory.mktemp("cache")
    tokenizer = word_tokenizer(["I", "the", "a", *[f"w{number}" for number in range(23)]])
    export(make_recipe(), cache, folder=write_folder(cache / "source", tokenizer))
    return cache


@pytest.fixture
def tiny(cache, monkeypatch):
    """Have the benchmarks embed with the tiny model."""
    monkeypatch.setenv("FASTSCORE_CACHE", str(cache))
    for module in (embedding, embedding_scaling):
        monkeypatch.setattr(module, "MODEL", "tiny")


def run(command, *arguments):
    result = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def columns(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_comparison_prints_every_column(tiny, tmp_path, monkeypatch):
    def peer(weights, *, bfloat16):
        return embedding.onnxruntime_loop()

    monkeypatch.setattr(embedding, "sentence_transformer", peer)
    monkeypatch.setattr(embedding, "peak", lambda shape, precision: 1e9)
    found = tmp_path / "found.json"
    arguments = ["--texts", 40, "--repetitions", 1, "--weights", tmp_path, "--json", found]
    lines = run(embedding.main, *arguments).splitlines()
    (header,) = [line for line in lines if line.startswith("| | sentences/s")]
    assert columns(header)[1:] == [
        *["sentences/s", "tokens/s", "times", "GFLOP/s", "of the peak"],
        *["cos mean", "cos min", "Spearman", "p99", "target"],
    ]
    rows = {columns(line)[0]: columns(line) for line in lines if line.startswith("| ")}
    ours = rows["fastscore fp32"]
    assert len(ours) == len(columns(header))
    assert all(ours)
    assert ours[6:8] == ["1.000000", "1.00000"]
    assert float(ours[8]) > 0.99  # texts of unknown words alone are alike but for rounding
    assert ours[9] == "0.00000"
    assert rows["sentence-transformers fp32"][3] == "1.00"
    assert any(line.startswith("fp32: two threads are") for line in lines) or os.cpu_count() == 1
    assert any(line.endswith("of CPU time is outside the model") for line in lines)
    assert set(json.loads(found.read_text())) == {
        *["host", "rows", "gemm_peak_gflops", "outside", "two_threads"]
    }


def test_growth_measures_points_in_processes_of_their_own(cache, tmp_path):
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks.embedding_scaling", "growth", "--model", "tiny"]
    command += ["--precision", "fp32", "--quick", "--json", str(found)]
    environment = {**os.environ, "FASTSCORE_CACHE": str(cache)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    header, _, row = done.stdout.splitlines()[-3:]
    assert header == HEADER.splitlines()[0]
    assert columns(row)[:2] == ["fp32", "1,000"]
    assert len(columns(row)) == len(columns(header))
    (point,) = json.loads(found.read_text())["growth"]
    assert point["vectors_mb"] == 1000 * 12 * 4 / 1e6
    assert 3 < point["tokens_a_text"] <= 8


def test_ways_to_use_two_cores_are_compared(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding_scaling, "product_gain", lambda precision, repetitions: 1.5)
    found = tmp_path / "found.json"
    arguments = ["--precision", "fp32", "--texts", 30, "--repetitions", 1, "--json", found]
    lines = run(embedding_scaling.cores, *arguments).splitlines()
    assert columns(lines[1]) == ["fp32", "s", "texts/s", "times one thread"]
    rows = [columns(line) for line in lines[3:-1]]
    assert rows[0][0] == "one thread"
    assert rows[0][3] == "1.00"
    assert {len(row) for row in rows} == {4}
    assert {"two threads (as built)", "two processes"} < {row[0] for row in rows}
    assert lines[-1] == "matrix products alone: two threads are 1.50 times as fast as one"
    assert set(json.loads(found.read_text())["seconds"]) == {row[0] for row in rows}


def test_operations_of_a_model_by_hand():
    shape = embedding.Shape(layers=2, hidden=3, inner=5)
    # a layer's weights: 4 x 3 x 3 + 2 x 3 x 5 = 66 multiplications and additions a token;
    # attention: each token with each, 3 components, scores and mixing
    one_text_of_4 = 2 * (2 * 66 * 4 + 2 * 2 * 3 * 4 * 4)
    assert shape.operations([4]) == one_text_of_4
    assert shape.operations([4, 4]) == 2 * one_text_of_4


def test_the_store_prints_every_figure(tmp_path):
    found = tmp_path / "found.json"
    arguments = ["--vectors", 3000, "--repetitions", 1, "--folder", tmp_path, "--json", found]
    lines = run(vector_store.main, *arguments).splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == [
        *["write 3,000 by 3,000", "write 3,000 by 8,192"],
        *["reopen", "look up first", "look up", "gather first", "gather"],
        "look up 5,000",
    ]
    assert all("aim" in line for line in lines[1:])
    written = json.loads(found.read_text())
    assert set(written["read"]) == set(vector_store.READ_AIMS)
    assert {"wall_ratio", "cpu_ratio"} < set(written["write_3000"])
    assert list(tmp_path.iterdir()) == [found]
