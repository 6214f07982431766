"""What is shown of runs: tables in every width and format, representations, bands of values."""

import csv
import dataclasses
import functools
import io
import json
import pickle
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from rich.cells import cell_len
from rich.console import Console

import fastscore
from fastscore.results.comparison import Comparison, headline, show_comparison
from fastscore.results.metric_text import bands_text, metrics_text, reading_of, write_csv
from fastscore.results.runs import Run, label_of_systems, notes_on_rows
from fastscore.results.show import show_outcome, show_summary
from fastscore.results.summary_table import (
    LINES,
    WIDTH,
    choose_metrics,
    summary_records,
    unit_name,
    whole_grid,
)
from fastscore.suites.registry import load_suite, suite_names
from fastscore.terminal.grids import Column, Grid, fit_grid, latex, markdown, print_grid
from tests.conftest import NIGHTLY
from tests.results.conftest import SUITES, SuiteRuns
from tests.run.logs import write_logs
from tests.suites.memory_finance.tracing import dialog, turn

WIDTHS = (60, 80, 120, 200) if NIGHTLY else (60, 120)
LOOKS = [
    (suite, width)
    for place, suite in enumerate(SUITES)
    for width in (WIDTHS if NIGHTLY else WIDTHS[place % 2 :][:1])
]
"""Suites and the width of their table: by day one, by turns."""
BY_DAY = [(1, 120), (2, 60)]
"""Runs that are compared, and the width of their table: by day one of each suite, by turns."""
LABELS = {
    "score_dialogue": "miner_uid",
    "group_travel": "condition",
    "guest_simulation": "experiment_level",
    "preference_shift": "model",
    "memory_finance": "file",
}

SHARED_IDS = ("group_travel", "guest_simulation", "preference_shift")
"""Suites of which one id is a conversation in each condition."""


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("suite", "width"), LOOKS)
def test_summary_fits_and_shows_every_mean(
    suite: str,
    width: int,
    suite_runs: Mapping[str, Run],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    run = suite_runs[suite]
    show_summary(run)
    lines = lines_of(capsys)
    noted = {line for note in run.notes for line in note.split("\n")}
    assert noted <= {*lines}
    assert all(cell_len(line) <= width for line in lines if line not in noted)
    text = "\n".join(lines)
    shown = choose_metrics(load_suite(suite), run.summary, [], everything=False)
    summary, metrics = run.summary, [run.suite.metric(id) for id in shown]
    notes = notes_on_rows(run, metrics)
    assert set(lines) >= {note for note in notes if cell_len(note) <= width}
    whole = summary.filter(pl.col("group") == "all")
    for row in whole.filter(pl.col("metric").is_in(shown)).iter_rows(named=True):
        if row["mean"] is not None and row["ci_low"] is not None and row["mean"] < 10:
            ends = f"[{row['ci_low']:z.4f}, {row['ci_high']:z.4f}]"
            assert f"{row['mean']:z.4f} {ends}" in text
        if row["interval_reason"] == "zero_variance" and row["mean"] < 10:
            assert f"{row['mean']:z.4f} [no variance]" in text
        if row["n"] and row["interval_reason"] == "too_few_units":
            assert f"[< 3 {unit_name(run.suite)}]" in text
        if row["n_null"] and not row["n"]:
            assert f"{row['n_null']:,} " in text
    # every word of every name stands, wrapped or not
    words = set(re.findall(r"\S+", text))
    for metric in load_suite(suite).metrics:
        if metric.id in shown:
            assert set(metric.name.split()) <= words


def test_two_systems_fit_one_table_of_80_columns(
    suite_runs: SuiteRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run, names = suite_runs["preference_shift"], ("meta-llama/Meta-Llama-3.1-70B", "openai/gpt-4o")
    levels = ("recorded", "slow")
    found = fastscore.compare(run, by="model", levels=levels)
    sides = found.sides.with_columns(pl.col("side").replace(dict(zip(levels, names, strict=True))))
    show_comparison(dataclasses.replace(found, sides=sides))
    lines = lines_of(capsys)
    assert all(cell_len(line) <= 80 for line in lines)
    assert not [line for line in lines if "continued" in line]
    title = next(at for at, line in enumerate(lines) if line.startswith("mean of each side"))
    assert "meta-llama/Meta-" in lines[title + 1]
    assert "openai/gpt-4o" in " ".join(lines[title + 1 : title + 3])
    row = next(line for line in lines[title:] if "Mean cross-coherence" in line)
    assert len(re.findall(r"\[\S+, \S+\]", row)) == 2


@pytest.fixture(scope="module")
def comparisons(suite_runs: SuiteRuns) -> Callable[[str, int], Comparison]:
    """Return the comparison of a suite's run by label, or with a second run; cached."""

    @functools.cache
    def compared(suite: str, runs: int) -> Comparison:
        run, label = suite_runs[suite], LABELS[suite]
        if runs == 1:
            return fastscore.compare(run, by=label, unpaired=True)
        by = label if suite in SHARED_IDS else None
        return fastscore.compare(run, suite_runs.second(suite), by=by)

    return compared


@pytest.mark.parametrize(
    ("suite", "runs", "width"),
    [
        (suite, *look)
        for place, suite in enumerate(SUITES)
        for look in (product((1, 2), WIDTHS) if NIGHTLY else BY_DAY[place % 2 :][:1])
    ],
)
def test_comparison_fits_and_never_drops_difference_interval_and_p(
    runs: int,
    suite: str,
    width: int,
    comparisons: Callable[[str, int], Comparison],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    comparison = comparisons(suite, runs)
    show_comparison(comparison, everything=True)
    lines = lines_of(capsys)
    assert all(cell_len(line) <= width for line in lines)
    assert "difference" in " ".join(lines)
    assert re.sub(r"\s", "", "".join(lines)).startswith(re.sub(r"\s", "", headline(comparison)))
    text = "\n".join(lines)
    for row in comparison.differences.iter_rows(named=True):
        if row["low"] is not None and max(row["mean_a"], row["mean_b"]) < 10:
            assert f"{row['difference']:z.4f} [{row['low']:z.4f}, {row['high']:z.4f}]" in text


def test_notes_are_wrapped_and_hold_no_control_character(
    suite_runs: SuiteRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    run = suite_runs["preference_shift"]
    found = fastscore.compare(run, suite_runs.second("preference_shift"), pair_by="dialogue")
    kept = pickle.loads(pickle.dumps(found))  # as caches of notebooks do
    assert (str(kept), fastscore.table(kept)) == (str(found), fastscore.table(found))
    noted = dataclasses.replace(found, notes=(*found.notes, f"\x1b[2J{'word ' * 30}"))
    show_comparison(noted)
    lines = lines_of(capsys)
    assert all(cell_len(line) <= 60 for line in lines)
    text = "".join("".join(lines).split())
    for note in noted.notes:  # a long name is folded
        assert "".join(note.replace("\x1b", "\\x1b").split()) in text


def test_metrics_without_a_value_on_either_side_are_named_once(
    suite_runs: SuiteRuns, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = suite_runs["preference_shift"]
    found = fastscore.compare(run, suite_runs.second("preference_shift"), pair_by="dialogue")
    nowhere = found.differences.filter(pl.max_horizontal("n_a", "n_b") == 0)["metric"].to_list()
    assert "dst_f1" in nowhere
    show_comparison(found)
    lines = lines_of(capsys)
    note = f"note: no difference, as one side or both have no value: {', '.join(nowhere)}"
    assert note in " ".join(line.strip() for line in lines)
    means = lines.index(next(line for line in lines if line.startswith("mean of each side")))
    assert not any(line.startswith(id) for id in nowhere for line in lines[:means])


@pytest.mark.parametrize("suite", SUITES)
def test_machine_formats_hold_every_number_unrounded(
    suite: str, suite_runs: Mapping[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run = suite_runs[suite]
    show_summary(run, everything=True, format="csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == run.summary.height
    records = summary_records(
        load_suite(suite), run.summary, run.summary["metric"].unique().to_list()
    )
    by_key = {(r["group"], r["value"] or "", r["metric"]): r for r in records.to_dicts()}
    for row in rows:
        found = by_key[row["group"], row["value"], row["metric"]]
        assert (float(row["mean"]) if row["mean"] else None) == found["mean"]
        assert row["name"] == found["name"]
    metric = run.summary["metric"][0]
    show_summary(run, metrics=[metric], format="json")
    content = json.loads(capsys.readouterr().out)
    assert content["signature"] == run.signature
    assert {record["metric"] for record in content["summary"]} == {metric}


@pytest.mark.parametrize(
    ("suite", "format"),
    [("group_travel", "markdown"), ("preference_shift", "markdown"), ("memory_finance", "latex")],
)
def test_documents_hold_every_column(
    suite: str, format: str, suite_runs: Mapping[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    show_summary(suite_runs[suite], everything=True, format=format)  # type: ignore[arg-type]
    text = capsys.readouterr().out
    for header in ("mean", "sd", "minimum", "maximum"):
        assert header in text
    if format == "latex":
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0
        assert not re.search(r"(?<!\\)[_%#]", text)
    else:
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.replace(r"\|", "").count("|") for line in rows[:3]}) == 1


def test_unknown_names_suggest_the_nearest(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["guest_simulation"]
    with pytest.raises(fastscore.FastscoreError, match="Did you mean 'experiment_level'"):
        show_summary(run, by=["experiment_levels"])
    with pytest.raises(fastscore.FastscoreError) as refused:
        show_summary(run, by=["persona", "levels"])
    assert "'experiment_level'" in str(refused.value)
    assert "n_states" not in str(refused.value)
    with pytest.raises(fastscore.FastscoreError, match="Did you mean 'n_states'"):
        show_summary(run, by=["n_state"])
    with pytest.raises(fastscore.FastscoreError, match=r"no metric 'PAZ'\. Did you mean 'PAS'"):
        show_summary(run, metrics=["PAZ"])


def test_memory_finance_counts_eligible_skipped_and_failed(
    suite_runs: Mapping[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    show_summary(suite_runs["memory_finance"])
    lines = [re.sub(r"\s+", " ", line).strip() for line in lines_of(capsys)]
    place = lines.index("of eligible skipped failed")
    run = suite_runs["memory_finance"]
    turns = run.scan("turns").collect()
    eligible = int(turns["eligible_m1"].sum())
    assert lines[place + 2] == f"M1, turns {eligible} {turns.height - eligible} 0"


def test_outcome_tells_where_everything_is(
    suite_runs: Mapping[str, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run = suite_runs["score_dialogue"]
    show_outcome(run.path, as_json=False)
    text = capsys.readouterr().out
    assert f"signature  {run.signature}" in text
    assert f"tables     {run.path}/{{steps,utterances,dialogues}}/*.parquet\n" in text
    assert "of 1 file, 0 rejects" in " ".join(text.split())
    assert f"next       fastscore compare {run.path} --by miner_uid\n" in text


@pytest.mark.parametrize(("miners", "label"), [("m", None), ("mn", "miner_uid")])
def test_a_part_of_a_pair_is_not_proposed_to_compare_by(miners: str, label: str | None) -> None:
    rows = [
        {"event": event, "utterance_index": 0, "dialogue_uid": "d", "challenge_uid": challenge}
        | {"miner_uid": miner, "step": 0, "prediction": "a", "ground_truth": "a"}
        for miner in miners
        for challenge in "xy"
        for event in ("predicted", "utterance_complete")
    ]
    run = fastscore.score(rows, fastscore.ScoreDialogue(lex_weight=1.0))
    assert run.summary.filter(group="challenge_uid")["value"].n_unique() == 2
    assert label_of_systems(run) == label


def test_columns_go_in_the_stated_order_and_groups_into_blocks() -> None:
    grid = Grid(
        "title",
        (
            Column("name", ("a fairly long name of a metric",), right=False, wraps=True),
            Column("first", ("11111",), drop=-1),
            Column("last", ("22222",), drop=0),
            Column("A", ("33333",), group=True),
            Column("B", ("44444",), group=True),
            Column("C", ("55555",), group=True),
        ),
    )
    headers = {
        width: [[column.header for column in block.columns] for block in fit_grid(grid, width)]
        for width in (80, 60, 46, 28)
    }
    assert headers[80] == [["name", "first", "last", "A", "B", "C"]]
    assert headers[60] == [["name", "first", "last", "A", "B", "C"]]  # its name wraps
    assert headers[46] == [["name", "last", "A", "B", "C"]]
    assert headers[28] == [["name", "A"], ["name", "B"], ["name", "C"]]


def test_no_text_of_a_log_reaches_the_terminal_or_a_document_as_markup() -> None:
    hostile = "\x1b[2J<script>|_&\\ [bold]x"
    grid = Grid(hostile, (Column(hostile, (hostile,), right=False),))
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    print_grid(console, grid)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2J" not in printed
    assert "[bold]x" in printed.replace("\n", "").replace(" ", "").replace("\\\\", "\\")
    assert r"\<script\>\|\_" in markdown(grid)
    assert r"\textless{}script\textgreater{}" in latex(grid)


def test_formulas_become_text_and_numbers_stay() -> None:
    frame = pl.DataFrame(
        {
            "=model": ["=1+1", "plain", None, "@x", "-5", "+", "\tz"],
            "mean": [-1.5, 2.0, 3.0, None, 5.0, 6.0, 7.0],
        }
    )
    assert write_csv(frame) == (
        "'=model,mean\n'=1+1,-1.5\nplain,2.0\n,3.0\n'@x,\n'-5,5.0\n'+,6.0\n'\tz,7.0\n"
    )
    assert write_csv(pl.DataFrame({"n": [-1]})) == "n\n-1\n"


# --- representations of scores and runs


@pytest.fixture
def shown(tmp_path: Path) -> list[fastscore.Run]:
    logs = write_logs(tmp_path / "logs")
    traces = [dialog(turn("ok"), dialog_id=f"d{number}") for number in range(3)]
    return [
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0)),
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0), output=tmp_path / "<b>"),
        fastscore.score(traces, "memory_finance"),
    ]


def test_scores_and_runs_print_on_ten_lines(shown: list[fastscore.Run]) -> None:
    for each in shown:
        lines = repr(each).splitlines()
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= WIDTH
    scores, run, traces = map(repr, shown)
    assert scores.startswith(
        "Scores of score_dialogue\nsteps: 108, utterances: 36, dialogues: 12, rejects: 0\n"
    )
    assert "average_U_best_early" in scores
    assert run.startswith("Run ")
    assert "more in .summary" in traces


def test_notebooks_show_a_table(shown: list[fastscore.Run]) -> None:
    for each in shown:
        # nothing is left open
        page = ElementTree.fromstring(f"<p>{each._repr_html_().replace('<br>', '<br/>')}</p>")
        assert len(page.findall(".//tr")) > 4
        assert each.signature in "".join(page.itertext())
    assert "<b> of score_dialogue" in shown[1]._repr_html_().replace("&lt;b&gt;", "<b>")
    assert "<b>" not in shown[1]._repr_html_()


# --- bands of values, equal in cards and docs

GUESTS = {metric.id: metric.scale.bands for metric in load_suite("guest_simulation").metrics}
DOCS = Path(__file__).parents[2] / "docs" / "suites"


@pytest.mark.parametrize(
    ("metric", "low", "high", "reading"),
    [
        ("PAS", 1.0, 1.0, "perfect"),
        ("PAS", 0.81, 0.81, "excellent"),
        ("PAS", 0.8, 0.8, None),
        ("PAS", 0.49, 0.49, "poor"),
        ("PAS", 0.0, 0.0, "complete mismatch"),
        ("BVS", 0.7, 0.7, None),
        ("BVS", 0.29, 0.29, "too rigid or too erratic"),
        ("BVS", 0.3, 0.3, None),
        ("ORA", 0.9, 0.9, None),
        ("ORA", 0.49, 0.49, "significant deviation"),
        ("DEI", 0.99, 0.99, None),
        ("DEI", 1.0, 1.0, "full explainability"),
        ("CRRS", 0.86, 0.86, "excellent"),
        ("CRRS", 0.85, 0.85, "good"),
        # the document has 0.70 in two bands: the better one is named first
        ("CRRS", 0.70, 0.70, "good"),
        ("CRRS", 0.50, 0.50, "acceptable"),
        ("CRRS", 0.4999, 0.4999, "poor"),
        ("CRRS", None, None, None),
        # a band has the whole interval
        ("PAS", 0.81, 0.99, "excellent"),
        ("PAS", 0.79, 0.99, None),
        ("CRRS", 0.70, 0.85, "good"),
        ("CRRS", 0.69, 0.75, None),
    ],
)
def test_readings_of_guest_simulation_are_the_documents(
    metric: str, low: float | None, high: float | None, reading: str | None
) -> None:
    middle = None if low is None or high is None else (low + high) / 2
    assert reading_of(middle, low, high, GUESTS[metric]) == reading


def test_a_mean_of_one_level_is_read_as_any_other(suite_runs: Mapping[str, Run]) -> None:
    (crrs,) = suite_runs["guest_simulation"].summary.filter(group="all", metric="CRRS").to_dicts()
    guests = load_suite("guest_simulation")
    one = crrs | {"mean": 0.76, "ci_low": 0.743, "ci_high": 0.776}
    for row, reading in ((crrs, ""), (one, "good")):  # of all levels there is no mean
        grid = whole_grid(guests, [row], everything=False, unit="test_case")
        assert {column.header: column.cells[-1] for column in grid.columns}["reading"] == reading


def test_cards_and_docs_have_every_band() -> None:
    with_bands = 0
    for name in suite_names():
        suite = load_suite(name)
        card, docs = metrics_text(suite), (DOCS / f"{name}.md").read_text(encoding="utf-8")
        for metric in suite.metrics:
            if not metric.scale.bands:
                continue
            with_bands += 1
            assert f"  bands    {bands_text(metric.scale.bands)}\n" in card
            assert f"**Bands.** {bands_text(metric.scale.bands)}.\n" in docs
    assert with_bands == 5
