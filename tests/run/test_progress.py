"""Progress of stages: lines, bars and calls; rates and the time left, by a clock of the tests."""

import io
import re
import threading
from contextlib import redirect_stderr

import polars as pl
import pytest
from rich.console import Console

import fastscore
from fastscore.run import progress, tasks
from tests.run.logs import utterance, write_logs

OPTIONS = fastscore.ScoreDialogue(lex_weight=0.5)


@pytest.fixture
def clock(monkeypatch):
    """Return the time, which a test moves."""
    seconds = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


class Lines(io.StringIO):
    """A stream that tells when a line comes."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def flush(self):
        super().flush()
        if self.getvalue().endswith("\n"):
            self.written.set()

    def wait(self):
        assert self.written.wait(60)
        return self.getvalue()


def without_memory(text):
    return [line.partition(", peak memory")[0] for line in text.splitlines()]


def test_a_line_comes_though_no_task_ends(clock, monkeypatch):
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.001)
    stream = Lines()
    with redirect_stderr(stream), progress.LineReporter().stage("score", 2):
        clock[0] = 29.9
        assert stream.getvalue() == ""
        clock[0] = 30.0
        assert without_memory(stream.wait()) == ["score: 0/2 tasks, 30.0 s, eta -:--:--"]


STAGES = {
    "texts that are left": (
        ("embed", 3, 400),
        [
            (0.0, "advance", {"texts": 0}),  # an earlier run has embedded all of its texts
            (10.0, "embedded", 100, 50.0, 200),  # the model is loaded, and its first batch done
            (40.0, "embedded", 100, 150.0, 0),  # they cost as much as 150 of mean length
            # 200 of 400 are embedded in 40 s; 150 took 30 s, so that 200 take 40 s
            (40.0, "advance", {"texts": 200}),
            (70.0, "embedded", 200, 200.0, 200),
            (80.0, "advance", {"texts": 200}),
        ],
        [
            "embed: 1/3 tasks, 40.0 s, 200/400 texts (5/s), eta 0:00:40",
            "embed: 2/3 tasks, 70.0 s, 400/400 texts (6/s), eta 0:00:00",
            "embed: 3/3 tasks, 80.0 s, 400/400 texts (5/s)",
        ],
    ),
    "whole tasks of workers elsewhere": (
        ("embed", 2, 300),
        [
            (30.0, "advance", {"texts": 100}),  # 100 of 300 in 30 s
            (60.0, "lost", "worker", 1),
            (60.0, "advance", {"texts": 200}),
        ],
        [
            "embed: 1/2 tasks, 30.0 s, 100/300 texts (3/s), eta 0:01:00",
            "embed: 2/2 tasks, 60.0 s, 300/300 texts (5/s), 1 workers died, 1 tasks done again",
        ],
    ),
    "texts embedded while a shard is scored": (
        ("score", 2),
        [
            (1.0, "embedded", 10, 10.0, 100),
            (31.0, "embedded", 30, 30.0, 0),
            # 40 of 100 of the first of two: 0.2, of which 0.15 took 30 s
            (31.0, "advance", {"rows": 62}),
            (62.0, "advance", {"rows": 62}),
        ],
        [
            "score: 0/2 tasks, 31.0 s, 40/100 texts embedded (1/s), eta 0:02:40",
            "score: 2/2 tasks, 62.0 s, 124 rows (2/s), 40/100 texts embedded (1/s)",
        ],
    ),
}
"""Of a stage its name and totals, what it is told at which second, and the lines."""


@pytest.mark.parametrize("case", STAGES)
def test_lines_tell_what_is_done_and_left(case, clock):
    of_stage, told, lines = STAGES[case]
    stream = io.StringIO()
    with redirect_stderr(stream), progress.LineReporter().stage(*of_stage) as stage:
        for clock[0], doing, *given in told:
            getattr(stage, doing)(*given)
    assert without_memory(stream.getvalue()) == lines


@pytest.mark.parametrize(("seconds", "n_lines"), [(9.9, 0), (10.0, 1)])
def test_a_brief_stage_has_a_line_from_ten_seconds_on(clock, seconds, n_lines):
    stream = io.StringIO()
    with redirect_stderr(stream), progress.LineReporter().stage("compare", 1, brief=True) as stage:
        clock[0] = seconds
        stage.advance({})
    assert len(stream.getvalue().splitlines()) == n_lines


def test_a_bar_shows_what_is_done_and_left(clock, monkeypatch):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=160, get_time=lambda: clock[0])
    monkeypatch.setattr(progress, "note_console", lambda: console)
    reporter = progress.LiveReporter()
    with reporter.stage("embed", 2, 400) as stage:
        clock[0] = 1.0
        stage.embedded(100, 100.0, 200)
        clock[0] = 2.0
        stage.embedded(100, 100.0, 0)
        reporter.bars.refresh()
        shown = stream.getvalue()
        stage.advance({"texts": 200})
    assert "0/2" in shown
    # 100 of 400 took a second; 200 are left
    assert "0:00:02" in shown
    assert "200/400 texts (100/s)" in shown


def test_a_narrow_terminal_shows_totals_and_times_before_rates(clock, monkeypatch):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, get_time=lambda: clock[0])
    monkeypatch.setattr(progress, "note_console", lambda: console)
    reporter = progress.LiveReporter()
    with reporter.stage("annotate", 40_000) as stage:
        clock[0] = 100.0
        stage.done = 10_000
        stage.counts = {"requests": 11_224, "prompt tokens": 9_123_456}
        reporter.bars.refresh()
        shown = stream.getvalue()
    # a quarter took 100 s, so that the rest takes 300 s; 11,224 in 100 s are 112 a second
    assert re.search(
        r"annotate .* 10000/40000 .*0:01:40.* eta .*0:05:00.* 11,224 requests \(112/s\)", shown
    )
    assert "tokens" not in shown
    assert "…" not in shown


def call(told):
    return lambda *each: told.append(each)


@pytest.fixture
def distinct(logs):
    """Return the distinct texts of the logs."""
    rows = pl.concat(
        [pl.read_ndjson(path, infer_schema_length=None) for path in logs], how="diagonal"
    )
    texts = pl.concat([rows["prediction"], rows["ground_truth"]]).drop_nulls().unique().sort()
    return texts.to_list()


def test_embedding_is_told_of_text_by_text(logs, distinct, tmp_path, default_model):
    told = []
    fastscore.score(
        logs, OPTIONS, output=tmp_path / "run", store=tmp_path / "store", progress=call(told)
    )
    embedded = [(done, total) for stage, done, total in told if stage == "embed"]
    assert embedded[0] == (0, len(distinct))
    assert embedded[-1] == (len(distinct), len(distinct))
    assert len({done for done, _ in embedded}) > 2
    assert embedded == sorted(embedded)
    told.clear()
    fastscore.score(
        logs, OPTIONS, output=tmp_path / "warm", store=tmp_path / "store", progress=call(told)
    )
    assert "embed" not in {stage for stage, _, _ in told}
    told.clear()
    fastscore.score(logs, OPTIONS, store=tmp_path / "other", progress=call(told))
    embedded = [(done, total) for stage, done, total in told if stage == "embed"]
    assert embedded[-1] == (len(distinct), len(distinct))
    assert next(each for each in told if each[0] == "score") == ("score", 0, 1)


def test_texts_whose_tokens_are_counted_are_not_told_of(tmp_path, default_model):
    # more words than the model takes tokens
    turns = utterance("two words", "word " * 600)
    told = []
    run = fastscore.score(turns, OPTIONS, store=tmp_path / "store", progress=call(told))
    assert run.cut_texts.height == 1
    assert [each for each in told if each[0] == "embed"][-1] == ("embed", 2, 2)


def test_texts_that_the_store_has_are_not_left(
    logs, distinct, tmp_path, default_model, monkeypatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    embed_bucket = tasks.embed_bucket
    monkeypatch.setattr(tasks, "embed_bucket", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fastscore.score(logs, OPTIONS, output=tmp_path / "run", store=tmp_path / "store")
    monkeypatch.setattr(tasks, "embed_bucket", embed_bucket)
    store = fastscore.VectorStore.of(fastscore.Embedder(default_model), root=tmp_path / "store")
    store.get_or_embed(distinct[:3])
    told = []
    fastscore.score(
        logs, OPTIONS, output=tmp_path / "run", store=tmp_path / "store", progress=call(told)
    )
    left = len(distinct) - 3
    embedded = [(done, total) for stage, done, total in told if stage == "embed"]
    assert (embedded[0], embedded[-1]) == ((0, left), (left, left))
