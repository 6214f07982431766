"""Metrics and suites of users are scored, summarised, explained and compared."""

import json
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastscore
from fastscore.api.examples import write_example
from fastscore.errors import InputError, UsageError
from fastscore.results.explaining import Dialogues
from fastscore.settings.extras import EntryPoint
from fastscore.suites import own_metrics, registry
from fastscore.suites.base import Suite
from fastscore.suites.own_metrics import _written
from fastscore.suites.registry import load_suite, suite_names
from tests.conftest import fastscore_command, python_process
from tests.run.logs import write_logs
from tests.run.running import contents

LEXICAL = fastscore.ScoreDialogue(lex_weight=1.0)
FILE = '''
import polars as pl

import fastscore

EDGE = 2

def is_early(step):
    return step < EDGE

@fastscore.metric(suite="score_dialogue", range=(0, 1), better="higher")
def won_early(utterances: pl.LazyFrame) -> pl.LazyFrame:
    """Share of utterances whose best step is the first or second."""
    early = is_early(pl.col("best_step"))
    return utterances.group_by("dialogue_row").agg(early.mean())
'''


@fastscore.metric(suite="score_dialogue", range=(0, None), better="neither", unit="characters")
def longest(steps: pl.LazyFrame) -> pl.LazyFrame:
    """Characters of the longest prediction."""
    lengths = pl.col("prediction").str.len_chars()
    return steps.group_by("dialogue_row").agg(value=lengths.max())


@pytest.fixture
def logs(tmp_path):
    write_logs(tmp_path / "logs")
    return tmp_path / "logs"


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    return str(tmp_path / "mine.py")


def expected(scores):
    """Compute `won_early` by plain Python: the best step of each utterance is below 2."""
    utterances = scores.tables["utterances"].rows(named=True)
    found = []
    for dialogue in scores.tables["dialogues"]["dialogue"]:
        best = [row["best_step"] for row in utterances if row["dialogue"] == dialogue]
        found.append(sum(step < 2 for step in best) / len(best))
    return found


def test_values_are_a_column_of_dialogues_and_a_line_of_the_summary(logs, mine):
    scores = fastscore.score(logs, LEXICAL, metrics=[mine, longest])
    values = expected(scores)
    assert 0 < sum(values) < len(values)
    assert scores.tables["dialogues"]["won_early"].to_list() == values
    (line,) = scores.summary.filter(metric="won_early", group="all").rows(named=True)
    assert line["mean"] == pytest.approx(sum(values) / len(values))
    assert (line["n"], line["n_null"]) == (12, 0)
    # the longest prediction: the first three words of the longest utterance's text
    assert scores.tables["dialogues"]["longest"].min() > 3
    assert "won_early" in repr(scores)
    assert "code=won_early:" in scores.signature


@pytest.mark.usefixtures("undrawn")
def test_every_verb_takes_it_as_any_other(logs, tmp_path, mine):
    run, other = str(tmp_path / "run"), str(tmp_path / "other")
    for folder in (run, other):
        lexical = ("--lex-weight", "1", "--metrics", mine, "-q")
        done = fastscore_command(["score", "score_dialogue", str(logs), "-o", folder, *lexical])
        assert done.returncode == 0, done.stderr
    # its file is not needed any more
    Path(mine).unlink()
    summary = json.loads(
        fastscore_command(["summary", run, "--json", "--metric", "won_early"]).stdout
    )
    assert summary["summary"][0]["metric"] == "won_early"
    compared = json.loads(fastscore_command(["compare", run, other, "--json"]).stdout)
    (row,) = (row for row in compared["differences"] if row["metric"] == "won_early")
    assert row["difference"] == 0.0
    assert fastscore_command(["check", run, "--min", "won_early=0"]).returncode == 0
    assert fastscore_command(["check", run, "--max", "won_early=0"]).returncode == 1
    page = tmp_path / "report.html"
    assert fastscore_command(["report", run, "-o", str(page)]).returncode == 0
    assert "Share of utterances whose best step is the first or second." in page.read_text()
    done = fastscore_command(["explain", run, "--worst", "won_early", "won_early", "--json"])
    (found,) = json.loads(done.stdout)["explanations"]
    table = fastscore.open_run(run).scan("dialogues").collect()
    assert found["value"] == table["won_early"].min()
    assert found["working"].endswith("rows of utterances")
    assert all("best_step" in part["values"] for part in found["evidence"])
    shown = fastscore_command(["explain", run, "--worst", "won_early", "won_early"]).stdout
    assert "Share of utterances whose best step is the first or second." in shown


def test_a_run_is_resumed_under_the_same_source_and_refused_under_another(logs, tmp_path, mine):
    run = tmp_path / "run"
    words = ("score", "score_dialogue", str(logs), "-o", str(run), "--lex-weight", "1")
    # a metric that fails leaves nothing scored: its correction may have the folder
    Path(mine).write_text(FILE.replace('"best_step"', '"bst_step"'))
    assert "ColumnNotFoundError" in fastscore_command([*words, "--metrics", mine]).stderr
    Path(mine).write_text(FILE)
    assert fastscore_command([*words, "--metrics", mine]).returncode == 0
    whole = contents(run)
    next((run / "dialogues").iterdir()).unlink()
    assert fastscore_command([*words, "--metrics", mine]).returncode == 0
    assert contents(run) == whole
    # a helper and a constant of the file count too
    for before, after in (("EDGE = 2", "EDGE = 3"), ("step < EDGE", "step <= EDGE")):
        Path(mine).write_text(FILE.replace(before, after))
        done = fastscore_command([*words, "--metrics", mine])
        assert "holds a run with another signature" in done.stderr
    Path(mine).write_text(FILE + "\n# a comment at the end\n")
    assert fastscore_command([*words, "--metrics", mine]).returncode == 0


def test_all_of_a_constant_counts_alike_in_every_process():
    long = pl.DataFrame({"weight": range(5_000)})
    assert _written(long) == _written(long.clone()) != _written(long.reverse())
    assert _written(np.arange(5_000)) != _written(np.arange(5_000)[::-1])
    command = (
        "from fastscore.suites.own_metrics import _written;"
        "print(_written({'en': {'a', 'the', 'an', 'some'}, 'de': [{'ein', 'der'}, 1.5]}))"
    )
    seeds = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "12")
    written = {python_process(command, env=env, check=True).stdout for env in seeds}
    assert len(written) == 1


USED = """
import functools, re
from dataclasses import dataclass
from polars import DataFrame, Series, col

EDGE = 2
AGE = col("age") + 1
ROWS = Series([1, 2])
WORDS = re.compile({words!r})

@functools.cache
def at_most(step, edge=EDGE): return step <= edge

@dataclass
class Bounds:
    low: int = 0
    high = 9
    @classmethod
    def made(cls): return cls(1)
    @property
    def width(self): return self.high - self.low

class Scaled:
    def __init__(self, by): self.by = by
    def __call__(self, value): return value * self.by

def twice(value, times=2): return value * times

SCALED = Scaled(3)
TABLE = {{"twice": twice, "thrice": functools.partial(twice, times=3)}}

def won():
    at_most(1), at_most(2), TABLE["twice"](2), col("x"), AGE, DataFrame(), ROWS
    return Bounds.made().width, SCALED(1), WORDS.match("")
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("EDGE = 2", "EDGE = 3"),
        ('"age"', '"aged"'),
        ("[1, 2]", "[1, 3]"),
        ("return step <= edge", "return step < edge"),
        ("high = 9", "high = 8"),
        ("low: int = 0", "low: int = 1"),
        ("return cls(1)", "return cls(2)"),
        ("self.high - self.low", "self.high"),
        ("Scaled(3)", "Scaled(4)"),
        ("value * self.by", "value + self.by"),
        ("value * times", "value + times"),
        ("twice, times=3", "twice, times=4"),
        ("xxz", "xxy"),
    ],
)
def test_all_code_that_a_metric_uses_counts(tmp_path, before, after):
    source = USED.format(words="x" * 300 + "z")
    assert before in source
    hashes = [
        own_metrics.source_hash(function_of(tmp_path / f"{number}.py", content))
        for number, content in enumerate((source, source, source.replace(before, after)))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_metric_that_ends_the_process_is_refused(logs, mine):
    def ends(dialogues):
        """End the process."""
        sys.exit(0)

    declared = fastscore.metric(suite="score_dialogue", range=(0, 1), better="higher")
    with pytest.raises(UsageError, match=r"'ends' .*SystemExit: 0"):
        fastscore.score(logs, LEXICAL, metrics=[declared(ends)])
    Path(mine).write_text("raise SystemExit(0)")
    with pytest.raises(UsageError, match="line 1, SystemExit: 0"):
        fastscore.score(logs, LEXICAL, metrics=[mine])


def function_of(path, content):
    path.write_text(content)
    names = {"__name__": path.stem}
    exec(compile(content, path, "exec"), names)
    return names["won"]


def test_an_installed_metric_that_cannot_be_imported_is_refused(monkeypatch):
    gone = EntryPoint("gone", "fastscore_gone:won")
    monkeypatch.setattr(own_metrics, "entry_points", lambda group: (gone,))
    with pytest.raises(UsageError, match="metric gone: fastscore_gone:won cannot be imported"):
        own_metrics.load_metrics(["gone"], "score_dialogue")


def test_an_edit_of_the_same_second_and_length_counts(logs, mine, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    found = []
    for edge in (2, 3):
        Path(mine).write_text(FILE.replace("EDGE = 2", f"EDGE = {edge}"))
        os.utime(mine, (1_000_000_000, 1_000_000_000 + edge / 10))
        run = fastscore.score(logs, LEXICAL, metrics=[mine])
        found.append(run.tables["dialogues"]["won_early"].sum())
    assert found[0] < found[1]
    assert not (Path(mine).parent / "__pycache__").exists()


def test_a_function_of_a_script_reaches_the_workers(logs, tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "script.py"
    call = (
        f"    run = fastscore.score({str(logs)!r}, fastscore.ScoreDialogue(lex_weight=1.0), "
        f'metrics=[won_early], output={str(tmp_path / "run")!r}, engine="dask", workers=1)\n'
        '    print(run.tables["dialogues"]["won_early"].sum())\n'
    )
    script.write_text(f'{FILE}\nif __name__ == "__main__":\n{call}')
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


OPTIONS = {
    "guest_simulation": {"personas": "personas.json"},
    "preference_shift": {"catalogue": "catalogue.jsonl", "segments": "metadata"},
    "score_dialogue": {"lex_weight": 1.0},
}


@pytest.mark.parametrize("suite", suite_names())
def test_inputs_number_the_dialogues_as_their_table_does(suite, tmp_path, monkeypatch):
    write_example(suite, tmp_path)
    declared = load_suite(suite)
    given = {
        name: str(tmp_path / value) if str(value).endswith(("json", "jsonl")) else value
        for name, value in OPTIONS.get(suite, {}).items()
    }
    parts = []

    def score(events, vectors, options):
        parts.append((events, declared.score(events, vectors, options)))
        return parts[-1][1]

    watched = Suite(**(vars(declared) | {"score": score}))
    for module in ("request", "context"):
        monkeypatch.setattr(f"fastscore.run.{module}.load_suite", lambda name, own=(): watched)
    fastscore.score(tmp_path / "logs", declared.options(**given), embedder=None)
    metric = own_metrics.OwnMetric(suite, longest.metric, (), "0")
    for events, tables in parts:
        dialogues = tables["dialogues"]
        named = ["dialogue", *(name for name in ("file", "line") if name in dialogues.columns)]
        numbered = events.frames.get("dialogues", pl.DataFrame())
        shared = [name for name in named if name in numbered.columns]
        assert numbered.select(shared).equals(dialogues.select(shared))
        for name, table in tables.items():
            found = own_metrics._input(declared, metric, name, tables, events).collect()
            shared = [column for column in named if column in table.columns and column != "line"]
            assert found.drop("dialogue_row").equals(table)
            assert found.select(shared).equals(dialogues[found["dialogue_row"]].select(shared))


def returned(*rows, names=("dialogue_row", "value")):
    """Make a metric that returns these rows for two dialogues."""

    def bad(dialogues):
        """Return what a test says."""
        return pl.DataFrame(rows, schema=list(names), orient="row")

    declared = fastscore.metric(suite="score_dialogue", range=(0, 1), better="higher")
    return declared(bad)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0.5)], r"'bad' returned no row for dialogue 'd0-1' .*\(1 row for 2 dialogues\)"),
        ([(0, 0.5), (1, 0.5), (1, 0.5)], r"dialogue 'd0-1' .*more than once \(3 rows for 2 dia"),
        ([(0, 0.5), (1, 0.5), (2, 0.5)], r"'bad' returned 3 rows for 2 dialogues"),
        (
            [(0, 0.5), (1, 1.5)],
            r"returned 1\.5 for dialogue 'd0-1' .*; expected a number from 0 to 1",
        ),
        ([(0, 0.5), (1, float("nan"))], r"'bad' returned nan for dialogue"),
        ([(0, "x"), (1, "y")], r"'bad' returned values of type String, expected numbers"),
        ([(0.0, 0.5), (1.0, 0.5)], r"returned dialogue_row as Float64, expected whole numbers"),
    ],
)
def test_bad_returns_are_refused_by_name(tmp_path, rows, message):
    write_logs(tmp_path, files=1, dialogues=2)
    with pytest.raises(UsageError, match=message):
        fastscore.score(tmp_path, LEXICAL, metrics=[returned(*rows)])


def test_other_columns_reasons_and_errors_are_refused_by_name(tmp_path):
    write_logs(tmp_path, files=1, dialogues=2)
    with pytest.raises(UsageError, match=r"returned columns value; expected dialogue_row, bad"):
        fastscore.score(tmp_path, LEXICAL, metrics=[returned((0.5,), names=("value",))])
    names = ("dialogue_row", "value", "reason")
    rows = ((0, None, "no idea"), (1, 0.5, None))
    with pytest.raises(UsageError, match="returned reason 'no idea'; expected one of not_applic"):
        fastscore.score(tmp_path, LEXICAL, metrics=[returned(*rows, names=names)])

    @fastscore.metric(suite="score_dialogue", range=(0, 1), better="higher")
    def broken(steps: pl.LazyFrame) -> pl.LazyFrame:
        """Read a column that is not there."""
        return steps.select("dialogue_row", "gone")

    with pytest.raises(UsageError, match=r"'broken' \(test_own_metrics\.py\): .*ColumnNotFound"):
        fastscore.score(tmp_path, LEXICAL, metrics=[broken])


def test_nulls_have_a_reason(tmp_path):
    write_logs(tmp_path, files=1, dialogues=3)
    names = ("dialogue_row", "value", "reason")
    rows = ((2, None, "missing_input"), (0, None, None), (1, 1, None))
    scores = fastscore.score(tmp_path, LEXICAL, metrics=[returned(*rows, names=names)])
    table = scores.tables["dialogues"]
    assert table["bad"].to_list() == [None, 1.0, None]
    reasons = [
        [each["reason"] for each in row if each["metric"] == "bad"] for row in table["null_reasons"]
    ]
    assert reasons == [["not_applicable"], [], ["missing_input"]]
    (line,) = scores.summary.filter(metric="bad", group="all").rows(named=True)
    counts = ("n", "n_null", "n_not_applicable", "n_missing_input")
    assert [line[name] for name in counts] == [1, 2, 1, 1]


def test_a_result_may_come_in_chunks(logs):
    @fastscore.metric(suite="score_dialogue", range=(0, 1), better="higher")
    def passes(dialogues: pl.LazyFrame) -> pl.DataFrame:
        """Whether the mean utility is at least .5."""
        value = (pl.col("average_U_best_early") >= 0.5).cast(pl.Float64)
        value = pl.when(pl.col("dialogue_row") != 1).then(value)
        found = dialogues.select("dialogue_row", value=value).collect()
        return pl.concat([found[:5], found[5:]], rechunk=False).set_sorted("dialogue_row")

    dialogues = fastscore.score(logs, LEXICAL, metrics=[passes]).tables["dialogues"]
    means = dialogues["average_U_best_early"]
    expected = [None if row == 1 else float(mean >= 0.5) for row, mean in enumerate(means)]
    assert dialogues["passes"].to_list() == expected


def declared(function, **more):
    given = {"suite": "score_dialogue", "range": (0, 1), "better": "higher"} | more
    return fastscore.metric(**given)(function)


def described(steps):
    """Describe nothing."""
    return steps


def silent(steps):
    return steps


def unknown(turns):
    """Take a table that is not there."""
    return turns


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (described, {"better": "up"}, "better is 'up', expected 'higher', 'lower' or 'neither'"),
        (described, {"range": 1}, "range is 1, expected two numbers or None"),
        (described, {"range": (1, 0)}, r"range is \(1, 0\), expected a smaller number first"),
        *(
            (described, {"range": extreme}, r"expected numbers from -1e\+100 to 1e\+100 that")
            for extreme in ((0, 1e300), (-1.7e308, None), (0, 5e-324))
        ),
        (silent, {}, "'silent' has no docstring"),
    ],
)
def test_bad_declarations_are_refused(function, more, message):
    with pytest.raises(UsageError, match=message):
        declared(function, **more)


@pytest.mark.parametrize("name", ["row", "label", "reason", "<lambda>"])
def test_names_that_tables_use_are_refused(name, monkeypatch):
    monkeypatch.setattr(described, "__name__", name)
    with pytest.raises(UsageError, match=f"Metric '{name}': expected a name such as of"):
        declared(described)


def test_bad_metrics_are_refused(logs, tmp_path, mine):
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\ny = 1 / 0\n")
    other = r"'turns' is no table of score_dialogue and no frame.*ste"
    for metrics, message in (
        ([declared(unknown)], other),
        ([mine, mine], "suite 'score_dialogue' has a column of this name"),
        ([described], "of type function\\. Decorate a function"),
        (["gone.py"], r"gone\.py: no such Python file"),
        (["gone"], r"^metrics gone: no installed metric of this name"),
        ([str(broken)], r"broken\.py: line 2, ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(UsageError, match=message):
            fastscore.score(logs, LEXICAL, metrics=metrics)
    with pytest.raises(UsageError, match="longest: no metric of suite 'guest_simulation'; found"):
        fastscore.score(logs, fastscore.GuestSimulation(), metrics=[longest])
    namespace = {}
    exec(textwrap.dedent(FILE.partition("@fast")[0]) + "def f(steps):\n    'Do.'\n", namespace)
    with pytest.raises(UsageError, match="The source of 'f' cannot be read"):
        declared(namespace["f"])


def test_a_suite_with_a_summary_of_its_own_has_the_metric_too(tmp_path):
    write_example("memory_finance", tmp_path)

    @fastscore.metric(suite="memory_finance", range=(0, None), better="neither", unit="turns")
    def turns_scored(turns: pl.LazyFrame, dialogues: pl.LazyFrame) -> pl.LazyFrame:
        """Count the turns of a dialogue."""
        counts = turns.group_by("dialogue_row").agg(value=pl.len())
        return dialogues.select("dialogue_row").join(counts, on="dialogue_row", how="left")

    scores = fastscore.score(tmp_path / "logs", fastscore.MemoryFinance(), metrics=[turns_scored])
    counted = scores.tables["turns"].group_by("file", "line").len()["len"]
    assert scores.tables["dialogues"]["turns_scored"].sum() == counted.sum()
    groups = scores.summary.filter(metric="turns_scored")["group"].unique().to_list()
    assert set(groups) >= {"all", "scenario_type"}


# --- suites


ROWS = [
    {"dialogue": "a", "text": "one two three", "score": 1.0},
    {"dialogue": "a", "text": "four", "score": 0.0},
    {"dialogue": "b", "text": "", "score": 0.5},
]
FACTS = {"range": (0, None), "better": "neither"}


@pytest.fixture(autouse=True)
def _declared_here(monkeypatch):
    monkeypatch.setattr(registry, "_declared_here", {})


def made(**more):
    @fastscore.suite(
        **{"columns": {"text": str, "score": float}, "metrics": {"words": FACTS, "low": FACTS}}
        | more
    )
    def two_numbers(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Words and lowest scores.

        The mean of words over turns, and the minimum of scores.
        """
        words = pl.col("text").str.count_matches(r"\S+").mean()
        return rows.group_by("dialogue_row").agg(words=words, low=pl.col("score").min())

    return two_numbers


def test_rows_of_python_are_scored_by_it():
    suite = made()
    scores = fastscore.score(ROWS, suite)
    # a: (3 + 1) / 2 words, the lower of 1 and 0; b: no word, 0.5
    found = scores.tables["dialogues"].select("dialogue", "words", "low").rows()
    assert found == [("a", 2.0, 0.0), ("b", 0.0, 0.5)]
    means = dict(scores.summary.select("metric", "mean").rows())
    assert means == {"words": 1.0, "low": 0.25}
    assert suite.title == "Words and lowest scores"
    assert f"suite=two_numbers.1|embedder=none|code={suite.code[0]}" in scores.signature
    assert (
        fastscore.score(ROWS, "two_numbers").tables["dialogues"].equals(scores.tables["dialogues"])
    )


def test_refused_files_leave_nothing_in_a_new_run_directory(tmp_path):
    for name in ("first", "second"):
        pl.DataFrame(ROWS).write_ndjson(tmp_path / f"{name}.jsonl")
    with pytest.raises(InputError, match=r"One dialogue is in two files"):
        fastscore.score(tmp_path / "*.jsonl", made(), output=tmp_path / "run")
    assert list((tmp_path / "run").glob("[!.]*")) == []
    # a run that was planned before stays as it is
    fastscore.score(tmp_path / "first.jsonl", made(), output=tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(InputError, match=r"One dialogue is in two files"):
        fastscore.score(tmp_path / "*.jsonl", made(), output=tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_value_that_may_be_missing_is_null():
    rows = [{"dialogue": "a", "text": None, "score": 1.0}, {"dialogue": "a", "text": "one two"}]
    scores = fastscore.score(rows, made(columns={"text": str | None, "score": float | None}))
    assert scores.tables["dialogues"].select("words", "low").rows() == [(2.0, 1.0)]


def test_another_column_names_the_dialogues_and_metrics_can_be_added():
    suite = made(dialogue="talk", version=2)
    rows = [{**row, "talk": row["dialogue"]} for row in ROWS]

    @fastscore.metric(suite="two_numbers", range=(0, None), better="higher")
    def turns(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Turns of a dialogue."""
        return rows.group_by("dialogue_row").agg(pl.len())

    scores = fastscore.score(rows, suite, metrics=[turns])
    assert scores.tables["dialogues"]["turns"].to_list() == [2.0, 1.0]
    assert scores.tables["dialogues"]["dialogue"].to_list() == ["a", "b"]
    assert "suite=two_numbers.2" in scores.signature


LOWS = {"metrics": {"words": FACTS, "lows": FACTS}}
NARROW = {"metrics": {"words": FACTS, "low": {"range": (0.25, 1), "better": "higher"}}}


@pytest.mark.parametrize(
    ("fields", "call", "message"),
    [
        ({"columns": {"text": set}}, {}, "column 'text' is <class 'set'>, expected one of str, in"),
        (LOWS, {}, "'words, lows' returned columns dialogue_row, words, low; exp"),
        (NARROW, {}, r"'low' returned 0 for dialogue 'a' .*from 0\.25 to 1"),
        *(
            ({"columns": {name: str}}, {}, f"Column '{name}': every suite has a column of this")
            for name in ("file", "line")
        ),
        *(
            ({"metrics": {name: FACTS}}, {}, "expected a name such as of a function")
            for name in ("", "x:open", "^x$", "x\ny", "*")
        ),
        ({"dialogue": ("dialogue", "model")}, {}, "would have two columns 'dialogue'"),
        ({}, {"engine": "dask", "output": "run"}, "declared in this process alone, and workers do"),
    ],
)
def test_bad_suites_are_refused_by_name(fields, call, message):
    with pytest.raises(UsageError, match=message):
        fastscore.score(ROWS, made(**fields), **call)


def test_the_function_of_a_suite_takes_rows():
    with pytest.raises(UsageError, match="'unknown' takes turns; expected rows or rows, options"):
        fastscore.suite(columns={}, metrics={"x": FACTS})(unknown)


SUITE_FILE = """
import polars as pl
import fastscore

@fastscore.suite(columns={"text": str}, metrics={"words": {"range": (0, None), "better": "higher"}})
def words(rows: pl.LazyFrame) -> pl.LazyFrame:
    '''Mean number of words.'''
    counts = pl.col("text").str.count_matches(r"[^ ]+")
    return rows.group_by("dialogue_row").agg(words=counts.mean())
"""


def test_its_run_asks_a_process_that_has_not_imported_it_to_do_so(tmp_path):
    run = fastscore.score(ROWS, made(), output=tmp_path / "run")
    registry._declared_here.clear()
    with pytest.raises(UsageError, match="a suite of your own, import its file first") as refused:
        fastscore.compare(run, run.path)
    (tmp_path / "mine.py").write_text(SUITE_FILE)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    begin = shlex.split(refused.value.hint.partition("mine.py: ")[2])[1:3]
    for command in ("score words rows.jsonl -o scored -q", "check scored --min words=2"):
        words = [sys.executable, *begin, *command.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")  # the mean is 1


@pytest.mark.parametrize("id", ["a / b", "d1.json", "50%", "frame"])
def test_its_dialogues_are_explained_by_the_ids_of_the_log(tmp_path, id):
    rows = [row | {"dialogue": id if row["dialogue"] == "a" else "other"} for row in ROWS]
    run = fastscore.score(rows, made(), output=tmp_path / "run")
    assert Dialogues(run).find(id) == 0


def test_its_metrics_are_explained_by_lines_of_the_log():
    run = fastscore.score(ROWS, made())
    explained = fastscore.explain(run, ROWS[0]["dialogue"], "words")
    (shown,) = explained.explanations
    assert (shown.working, shown.evidence) == ("lines of the log", ())
    assert "  here    lines of the log = " in explained.text
    assert "words: 0" not in explained.text
