"""What a folder or file is, before a command writes into it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastscore.cli import cli
from fastscore.errors import RunConflictError, UsageError
from fastscore.files import check_output
from tests.llm.stub_server import Stub, serving

SCORES = json.dumps({"proactiveness": 3, "coherence": 3, "personalization": 3})
CATALOGUE = "benchmarks/data/redial_movies_sample.jsonl.gz"


@pytest.fixture
def stub(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("fastscore.llm.requests.cache_root", lambda: tmp_path / "cache")
    with serving(Stub(answer=lambda body: SCORES)) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        yield served


def typed(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def commands(tmp_path, logs, run):
    """Return every command that writes, without its output."""
    chat = ("--model", "m", "--max-failures", "1")
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        f'catalogue = "{CATALOGUE}"\nagents = ["offline"]\nsessions = 1\nturns = 2'
    )
    simulate = ("simulate", "preference_shift", "--catalogue", CATALOGUE, "--sessions", 1)
    return {
        "score": ("score", "preference_shift", logs, "--catalogue", CATALOGUE, "--segments",
                  "metadata", "--embedder", "none"),
        "judge": ("judge", logs, *chat),
        "pairs": ("judge", logs, "--against", shutil.copytree(logs, tmp_path / "others"), *chat),
        "concepts": ("annotate", "concepts", logs, "--catalogue", CATALOGUE, *chat),
        "states": ("annotate", "states", logs, *chat),
        "simulate": (*simulate, "--turns", 2),
        "experiment": ("experiment", experiment),
        "analyse": ("analyse", run),
        "report": ("report", run),
        "runs": ("runs", tmp_path),
        "example": ("example", "preference_shift"),
    }  # fmt: skip


FILES = ("concepts", "report", "runs")


def test_no_command_writes_into_what_is_not_its_own(stub, tmp_path, monkeypatch):
    logs, run = tmp_path / "logs", tmp_path / "run"
    assert typed("simulate", "preference_shift", "--catalogue", CATALOGUE, "--sessions", 2,
                 "--turns", 3, "-o", logs).exit_code == 0  # fmt: skip
    given = commands(tmp_path, logs, run)
    assert typed(*given["score"], "-o", run).exit_code == 0
    judged = tmp_path / "judged"
    assert typed(*given["judge"], "-o", judged).exit_code == 0
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("all of it")
    log = tmp_path / "log.jsonl"
    log.write_bytes((logs / "sessions-00000.jsonl").read_bytes())
    page = tmp_path / "thesis.html"
    page.write_text("<p>all of it")
    asked = len(stub.asked)
    for name, words in given.items():
        for folder, kind in ((logs, "simulate"), (run, "score"), (judged, "judge"), (mine, "")):
            # other arguments are refused by each command's own rules
            if name == kind or (name == "states"):
                continue
            before = contents(folder)
            refused = typed(*words, "-o", folder)
            kinds = UsageError | RunConflictError | SystemExit
            assert isinstance(refused.exception, kinds), (name, folder)
            assert refused.exit_code, (name, folder, refused.output)
            assert contents(folder) == before, (name, folder)
        if name in FILES:
            refused = typed(*words, "-o", page if name in ("report", "runs") else log)
            assert isinstance(refused.exception, RunConflictError), (name, refused.output)
            assert "is not overwritten" in refused.exception.message
            assert log.read_bytes() == (logs / "sessions-00000.jsonl").read_bytes()
    assert len(stub.asked) == asked


def test_a_folder_of_another_judge_is_replaced_on_request(stub, tmp_path):
    logs, judged = tmp_path / "logs", tmp_path / "judged"
    typed("simulate", "preference_shift", "--catalogue", CATALOGUE, "--sessions", 2, "--turns", 3,
          "-o", logs)  # fmt: skip
    others = shutil.copytree(logs, tmp_path / "others")
    judge = ("judge", logs, "-o", judged, "--model")
    assert typed(*judge, "one").exit_code == 0
    before = contents(judged)
    refused = typed(*judge, "other")
    assert isinstance(refused.exception, RunConflictError)
    assert "records another model than" in refused.exception.message
    assert "set overwrite" in refused.exception.hint
    refused = typed(*judge, "one", "--against", others)
    assert "records another against than" in refused.exception.message
    assert contents(judged) == before
    assert typed(*judge, "one").exit_code == 0  # the same command goes on
    assert typed(*judge, "other", "--overwrite").exit_code == 0
    manifest = json.loads((judged / "manifest.json").read_bytes())
    assert (manifest["model"], manifest["spent"]["requests"]) == ("other", 2)
    stub.answer = lambda body: json.dumps(
        {"reason": "", **dict.fromkeys((*json.loads(SCORES), "overall"), "tie")}
    )
    assert typed(*judge, "one", "--against", others, "--overwrite").exit_code == 0
    assert not (judged / "judgements.jsonl").exists()
    assert (judged / "pairs.jsonl").exists()


def test_what_a_folder_holds(tmp_path):
    check_output(tmp_path / "new", "an analysis")
    check_output(tmp_path, "an analysis")
    (tmp_path / "page.html").write_text("<!doctype html><title>Mine</title>")
    with pytest.raises(RunConflictError, match=r"cannot take an analysis: it holds page\.html"):
        check_output(tmp_path, "an analysis", ("analysis.html",))
    with pytest.raises(RunConflictError, match="is not a report, so it is not overwritten"):
        check_output(tmp_path / "page.html", "a report", begins="fastscore")
    with pytest.raises(RunConflictError, match="is a file, expected a folder"):
        check_output(tmp_path / "page.html", "an analysis")
    with pytest.raises(RunConflictError, match="is a folder, expected a file"):
        check_output(tmp_path, "a report", begins="fastscore")
    with pytest.raises(UsageError, match=r"s3:/bucket/page\.html is an address, and a report"):
        check_output(Path("s3://bucket/page.html"), "a report", begins="fastscore")
    (tmp_path / "manifest.json").write_text('{"signature": "x"}')
    with pytest.raises(RunConflictError, match="holds a run, and judgements would overwrite it"):
        check_output(tmp_path, "judgements", ("*",))
    check_output(tmp_path, "a run")
    with pytest.raises(RunConflictError, match=r"cannot take a run: it holds page\.html"):
        check_output(tmp_path, "a run", ("manifest.json",), alone=True)
