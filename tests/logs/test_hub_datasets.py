"""Data sets of the hub as logs: downloaded whole, pinned to a commit, which the manifest names."""

import io
import zipfile

import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.logs import objects
from tests.conftest import fastscore_command
from tests.hub import hub_served
from tests.run.logs import write_logs

COMMIT, LATER = "a" * 40, "b" * 40
TOKEN = "hf_very_secret"
OPTIONS = fastscore.ScoreDialogue(lex_weight=1.0)
ROOT = f"hf://datasets/owner/logs@{COMMIT}"


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs", files=4)


@pytest.fixture
def hub(monkeypatch, tmp_path, logs):
    with hub_served() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(objects, "_known", {})
        objects._pinned.cache_clear()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.write(logs[0], "inner.jsonl")
        files = {f"data/{log.name}": log.read_bytes() for log in logs}
        hub.token = TOKEN
        hub.add("datasets/owner/logs", COMMIT, {**files, "packed.zip": archive.getvalue()})
        yield hub


@pytest.mark.parametrize(
    "place",
    [
        "hf://datasets/owner/logs/data",
        "hf://datasets/owner/logs@main/data/",
        "hf://datasets/owner/logs/data/*.jsonl",
        "hf://datasets/owner/logs/**/log-*.jsonl",
        f"{ROOT}/data",
    ],
)
def test_files_of_a_data_set_are_scored_and_named_by_their_commit(hub, logs, place):
    found = fastscore.score(place, OPTIONS)
    local = fastscore.score([str(log) for log in logs], OPTIONS)
    assert found.tables["steps"].equals(local.tables["steps"])
    names = [f"{ROOT}/data/{log.name}" for log in logs]
    assert [entry["name"] for entry in found.manifest.inputs] == names


@pytest.mark.parametrize("place", ["data/log-00.jsonl", "packed.zip", "packed.zip/inner.jsonl"])
def test_single_files_and_members_of_archives_are_scored(hub, logs, place):
    found = fastscore.score(f"hf://datasets/owner/logs/{place}", OPTIONS)
    local = fastscore.score(str(logs[0]), OPTIONS)
    assert found.tables["steps"].equals(local.tables["steps"])


def test_a_run_keeps_its_commit_and_its_files_are_fetched_once(hub, tmp_path, monkeypatch):
    run = fastscore.score("hf://datasets/owner/logs/data", OPTIONS, output=tmp_path / "run")
    assert len(hub.downloads()) == 4
    hub.add("datasets/owner/logs", LATER, {"data/other.jsonl": b"no log"})
    again = fastscore.score(f"{ROOT}/data", OPTIONS, output=tmp_path / "run")
    assert again.tables["steps"].equals(run.tables["steps"])
    assert str(fastscore.explain(run, worst="average_U_best_early"))
    assert fastscore.scan(f"{ROOT}/data", "score_dialogue").collect().height
    assert "score_dialogue" in str(fastscore.inspect(f"{ROOT}/data"))
    assert len(hub.downloads()) == 4


def test_the_command_line_shows_the_commit_and_no_token(hub, tmp_path):
    words = ["score", "score_dialogue", "hf://datasets/owner/logs/data", "-o", tmp_path / "run"]
    done = fastscore_command([*words, "--lex-weight", 1])
    assert done.returncode == 0, done.stderr
    assert COMMIT in (tmp_path / "run" / "manifest.json").read_text()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in each for each in written)
    assert TOKEN not in done.stdout + done.stderr
    hub.token = "another"
    done = fastscore_command(["inspect", "hf://datasets/owner/logs/data"])
    assert done.returncode != 0
    assert "the token is not valid or has expired" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("hf://datasets/owner/gone/data", "'owner/gone' at 'main': the hub has no such repository"),
        ("hf://datasets/owner/logs@v9/data", "'owner/logs' at 'v9': there is no such revision"),
        ("hf://datasets/owner/logs/elsewhere", "There is no object .*logs/elsewhere'"),
        ("hf://datasets/owner/logs/*.csv", r"The glob .*\*\.csv' matched nothing"),
    ],
)
def test_what_is_not_there_is_named(hub, place, message):
    with pytest.raises(InputError, match=message):
        fastscore.score(place, OPTIONS)


@pytest.mark.parametrize(
    "place", ["hf://owner/logs", "hf://models/owner/name/a.jsonl", "hf://user:word@host/a.jsonl"]
)
def test_addresses_that_name_no_data_set_are_refused(place):
    with pytest.raises(UsageError, match="names no data set") as raised:
        fastscore.score(place, OPTIONS)
    assert "word" not in str(raised.value)


@pytest.mark.parametrize(
    ("typed", "revision"),
    [
        ("refs/convert/parquet", "refs/convert/parquet"),
        ("refs%2Fpr%2F3", "refs/pr/3"),
        ("~parquet", "refs/convert/parquet"),
        ("v1.0", "v1.0"),
    ],
)
def test_revisions_are_written_as_the_hubs_tools_take_them(hub, typed, revision):
    hub.revisions["datasets/owner/logs"][revision] = COMMIT
    found = objects.look_up(f"hf://datasets/owner/logs@{typed}/data/log-00.jsonl")
    assert found is not None
    assert found.url == f"{ROOT}/data/log-00.jsonl"
