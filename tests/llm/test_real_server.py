"""A real model at a real server on this machine: `make test-llm`.

Two agents, three sessions of five turns, judged, scored, analysed; then again from the kept answers
without a connection. What the model says is poor, which is what a test needs: titles that nobody
has, judgements that must be asked for again.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import orjson
import polars as pl
import pytest

from fastscore.run.progress import SilentReporter
from fastscore.simulation.experiment import read_experiment, run_experiment
from tests.simulation.worlds import SAMPLE

pytestmark = pytest.mark.llm

FILE = """
catalogue = "{catalogue}"
agents = ["offline", "openai:smollm2"]
sessions = 3
turns = 5
[models]
base_url = "{url}"
concurrency = 1
answer_tokens = 60
structured = "json-object"
timeout = 300.0
max_failures = 1
[judge]
model = "smollm2"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start the server, and stop it in the end."""
    names = ("FASTSCORE_LLM_PYTHON", "FASTSCORE_LLM_WEIGHTS")
    if not all(name in os.environ for name in names):
        pytest.skip("needs a server: make test-llm")
    python, weights = (os.environ[name] for name in names)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [python, "-m", "llama_cpp.server", "--model", weights, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--n_ctx", "2048", "--n_threads", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        url = f"http://127.0.0.1:{port}/v1"
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{url}/models", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, log.read_text()
                time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def contents(folder):
    kept = ("logs", "judgements", "comparison")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for name in kept
        for path in sorted((folder / name).rglob("*"))
        if path.is_file() and path.parent.name != ".simulation" and path.name != "manifest.json"
    }


def test_agents_are_judged_scored_and_replayed(server, tmp_path, monkeypatch):
    file, folder = tmp_path / "experiment.toml", tmp_path / "run"
    file.write_text(FILE.format(catalogue=SAMPLE, url=server))
    experiment = read_experiment(file)
    summary = run_experiment(experiment, folder, SilentReporter())
    print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    assert summary["spent"]["requests"] >= 15 + 6
    assert summary["spent"]["completion_tokens"] > 0
    dialogues = pl.read_parquet(folder / "scores" / "dialogues" / "*.parquet")
    assert dialogues.sort("model", "dialogue")["n_turns"].to_list() == [5] * 6
    judged = (folder / "judgements" / "judgements.jsonl").read_text().splitlines()
    failed = (folder / "judgements" / "failures.jsonl").read_text().splitlines()
    print(*judged, *failed, sep="\n")
    assert len(judged) + len(failed) == 6
    assert (folder / "analysis" / "analysis.html").is_file()
    assert (folder / "report.html").is_file()

    before = contents(folder)
    other = tmp_path / "replayed"
    other.mkdir()
    for path in folder.glob("*.*"):
        shutil.copy(path, other / path.name)
    monkeypatch.setattr(socket, "socket", None)
    again = run_experiment(experiment, other, SilentReporter(), replay=True)
    assert again["spent"]["requests"] == 0
    assert [name for name in before if name.startswith(("logs", "comparison"))] != []
    assert contents(other) == before
    print("replayed with the same bytes")
