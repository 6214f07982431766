"""Runs of one release under another: compared, checked, explained, reported, continued."""

import dataclasses
import io
import json
from contextlib import redirect_stderr

import pytest

from fastscore import open_run
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.run.drive import execute, preview
from fastscore.run.progress import LineReporter, SilentReporter
from fastscore.run.request import Request
from fastscore.run.signature import deciding_differences, differences
from fastscore.suites.registry import load_suite
from fastscore.version import __version__
from tests.conftest import fastscore_command, often
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical

LATER = "9.8.7"
SIGNED = "fastscore=0.1.0|suite=score_dialogue.1|lex_weight=0.5|embedder=none|limit=5"


@pytest.fixture
def release(monkeypatch):
    """Return a function that makes this process one of another release."""

    def become(version):
        for module in ("run.signature", "run.tasks"):
            monkeypatch.setattr(f"fastscore.{module}.__version__", version)

    return become


def command(*words):
    done = fastscore_command(words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=example_names()[-often(1, 9) :])
def older(request, tmp_path_factory):
    """Return the folder of a suite's example, scored by this release."""
    folder = tmp_path_factory.mktemp(request.param)
    write_example(request.param, folder)
    options = example_options(request.param, folder)
    command("score", request.param, folder / "logs", "-o", folder / "older", *options)
    return folder


@pytest.mark.usefixtures("undrawn")
def test_every_command_reads_a_run_of_an_older_release(older, tmp_path, release):
    suite = open_run(older / "older").manifest.suite
    release(LATER)
    run, options = tmp_path / "later", example_options(suite, older)
    command("score", suite, older / "logs", "-o", run, *options)
    assert open_run(older / "older").signature != open_run(run).signature
    declared = load_suite(suite).metrics
    metric = next(each.id for each in declared if each.scale.better != "neither")
    paired = ("--pair-by", "dialogue")
    for first, second in ((older / "older", run), (run, older / "older")):
        command("compare", first, second, "--metric", metric, *paired)
        limits = ("--max-drop", f"{metric}=1000")
        command("check", second, "--against", first, *limits, *paired)
    command("report", older / "older", "-o", tmp_path / "page.html")
    assert command("summary", run) == command("summary", older / "older").replace(
        str(older / "older"), str(run)
    ).replace(f"fastscore={__version__}", f"fastscore={LATER}")
    command("explain", older / "older", "--random", metric)


def test_a_run_is_continued_by_a_later_release(tmp_path, release):
    logs, run = write_logs(tmp_path / "logs"), tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    whole, receipts = contents(run), run / "receipts"
    (receipts / "score-00003.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text())
    kept = {path.name: path.stat().st_mtime_ns for path in receipts.iterdir()}
    release(LATER)
    request = Request(
        suite="score_dialogue",
        inputs=tuple(map(str, logs)),
        output=run,
        options={"lex_weight": 1.0},
        shard_bytes=1,
    )
    assert preview(request, SilentReporter())["scored_shards"] == manifest["shards"] - 1
    stream = io.StringIO()
    with redirect_stderr(stream):
        execute(request, LineReporter())
    assert f"{run}: begun by fastscore {__version__}, continued by {LATER}" in stream.getvalue()
    assert contents(run) == whole
    assert {name: (receipts / name).stat().st_mtime_ns for name in kept} == kept
    # without its manifest, a run is known by the signature of a part
    (run / "manifest.json").unlink()
    run_lexical(logs, run, shard_bytes=1)
    assert contents(run) == whole


def test_a_shard_whose_table_lacks_a_column_of_this_release_is_scored_again(
    tmp_path, release, monkeypatch
):
    logs, run = write_logs(tmp_path / "logs"), tmp_path / "run"
    suite = load_suite("score_dialogue")
    whole = suite.tables[-1]
    fewer = dataclasses.replace(
        whole, columns=tuple(column for column in whole.columns if column.name != "null_reasons")
    )

    def score(*given):
        tables = suite.score(*given)
        return {**tables, fewer.name: tables[fewer.name].select(*fewer.schema)}

    earlier = dataclasses.replace(suite, tables=(*suite.tables[:-1], fewer), score=score)
    with monkeypatch.context() as before:
        for module in ("request", "context"):
            before.setattr(f"fastscore.run.{module}.load_suite", lambda name, own=(): earlier)
        run_lexical(logs, run, shard_bytes=1)
    release(LATER)
    run_lexical(logs, run, shard_bytes=1)
    assert open_run(run).scan(whole.name).collect().columns == list(whole.schema)
    assert open_run(run).damaged() == []


@pytest.mark.parametrize(
    ("other", "differing"),
    [
        (SIGNED, []),
        (SIGNED.replace("0.1.0", "0.1.1"), [("fastscore", "0.1.0", "0.1.1", False)]),
        (
            SIGNED.replace("dialogue.1", "dialogue.2"),
            [("suite", "score_dialogue.1", "score_dialogue.2", True)],
        ),
        (SIGNED.replace("=0.5", "=0.25"), [("lex_weight", "0.5", "0.25", True)]),
        (SIGNED.replace("|limit=5", ""), [("limit", "5", None, True)]),
        # an option of a later release: its default gives the numbers of the earlier one
        (SIGNED.replace("|embedder", "|semantic=calibrated|embedder"), []),
        (
            SIGNED.replace("|embedder", "|semantic=cosine|embedder"),
            [("semantic", None, "cosine", True)],
        ),
        # a part that no suite declares
        (SIGNED.replace("|embedder", "|colour=red|embedder"), [("colour", None, "red", True)]),
    ],
)
def test_what_differs_between_signatures(other, differing):
    found = differences(SIGNED, other)
    assert [dataclasses.astuple(each) for each in found] == differing
    assert deciding_differences(SIGNED, other) == [each for each in found if each.decides]
    back = [(name, second, first, decides) for name, first, second, decides in differing]
    assert [dataclasses.astuple(each) for each in differences(other, SIGNED)] == back
