"""Each verb refuses an argument that it cannot use in one sentence with the argument's name."""

import copy
import importlib
import inspect
import json
import math
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from fastscore import sets, text
from fastscore.errors import InputError, UsageError, names_arguments
from fastscore.logs.samples.refusals import MissingColumnsError
from tests.conftest import fastscore_command, write_lines
from tests.run.logs import utterance

WRITE_ROWS = 'Write rows to a file: polars.DataFrame(rows).write_ndjson("chats.jsonl").'
METRIC = "average_U_best_early"
NAN = float("nan")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    logs = fastscore.example("score_dialogue", folder / "example").logs
    return fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0), output=folder / "run")


OF_COMPARE = [
    ({"alpha": "0.05"}, "alpha is '0.05', expected float."),
    ({"alpha": 1}, "alpha is 1.0, expected a number above 0 and below 1."),
    ({"margin": 0}, "margin is 0.0, expected a number above 0."),
    ({"margin": -1.0}, "margin is -1.0, expected a number above 0."),
    ({"margin": NAN}, "margin is nan, expected a number above 0."),
    ({"margin": math.inf}, "margin is inf, expected a finite number above 0."),
    ({"margin": "0.02"}, "margin is '0.02', expected float."),
    ({"plan": "many"}, "plan is 'many', expected float."),
    ({"plan": NAN}, "plan is nan, expected a number above 0."),
    ({"unpaired": "yes"}, "unpaired is 'yes', expected bool."),
    ({"cluster": ["dialogue_uid"]}, "cluster is ['dialogue_uid'], expected str."),
    ({"pair_by": 5}, "pair_by is 5, expected str."),
    ({"repeats": 5}, "repeats is 5, expected str."),
    ({"metrics": METRIC}, "metrics is of type str, expected a list."),
    ({"metrics": [5]}, "metrics[0] is of type int, expected a text."),
    ({"levels": "1"}, "levels is of type str, expected a list."),
    ({"test": "z"}, "test is 'z'. Known: 'auto', 't'."),
    ({"judge": 5}, "judge is of type int, expected a path or a list."),
    ({"judge_scale": 5}, "judge_scale is 5, expected 2 numbers."),
]


def test_every_verb_refuses_pairs_of_independent_samples(run, tmp_path):
    design = {"pair_by": "dialogue_uid", "unpaired": True}
    page = tmp_path / "page.html"
    calls = [
        lambda: fastscore.compare(run, run, **design),
        lambda: fastscore.check(run, minimum={METRIC: 0.1}, **design),
        lambda: fastscore.check(run, against=run, max_drop={METRIC: 0.1}, **design),
        lambda: fastscore.report(run, output=page, **design),
        lambda: fastscore.report(run, run, output=page, **design),
    ]
    for call in calls:
        with pytest.raises(
            UsageError, match="pair_by names 'dialogue_uid', and unpaired makes no pairs"
        ):
            call()
    assert not page.exists()
    # a flag wins over the file of limits, and so does --unpaired over its pairs
    limits = tmp_path / "limits.toml"
    limits.write_text(f'[check]\npair_by = "dialogue_uid"\nmax_drop = {{{METRIC} = 0.1}}\n')
    words = ["check", run.path, "--against", run.path, "--unpaired", "--config", limits]
    assert fastscore_command(words).returncode == 0


@pytest.mark.parametrize("margin", [math.inf, 0, NAN])
def test_margins_of_a_check_are_numbers_above_0(run, margin):
    refused = f"'{margin}' is (not a margin|no finite number)"
    for name in ("no_worse", "equal_within"):
        with pytest.raises(UsageError, match=f"{name}: {refused}"):
            fastscore.check(run, against=run, **{name: {METRIC: margin}})


@pytest.mark.parametrize(("given", "message"), OF_COMPARE, ids=lambda each: str(each)[:40])
def test_compare_names_what_it_cannot_use(run, given, message):
    with pytest.raises(UsageError) as raised:
        fastscore.compare(run, run, **given)
    assert str(raised.value) == message


def test_levels_may_be_numbers(run):
    values = [int(one) for one in run.tables["dialogues"]["miner_uid"].unique().sort()[:2]]
    found = fastscore.compare(run, by="miner_uid", levels=values)
    same = fastscore.compare(run, by="miner_uid", levels=[str(one) for one in values])
    assert found.differences.equals(same.differences)
    assert found.sides["side"].unique().sort().to_list() == sorted(map(str, values))
    with pytest.raises(UsageError, match="no miner_uid is '-7'"):
        fastscore.compare(run, by="miner_uid", levels=[-7, *values])


SCORES = [{"dialogue": "a", "overall": 4}]
MANY = {
    "summary": (
        lambda run, _: fastscore.summary(run, cluster=5),
        "cluster is 5, expected str.",
    ),
    "summary by": (
        lambda run, _: fastscore.summary(run, by=[5]),
        "by[0] is of type int, expected a text.",
    ),
    "summarise": (
        lambda run, _: fastscore.summary(run, by=5),
        "by is of type int, expected a text or a list.",
    ),
    "pass_k": (
        lambda run, _: fastscore.pass_k(run, "miner_uid", metrics="x"),
        "metrics is of type str, expected a list.",
    ),
    "check": (
        lambda run, _: fastscore.check(run, minimum=[METRIC]),
        "minimum is of type list, expected a dict: {'METRIC': 0.4}.",
    ),
    "check unpaired": (
        lambda run, _: fastscore.check(run, minimum={METRIC: 0}, unpaired="yes"),
        "unpaired is 'yes', expected bool.",
    ),
    "report": (
        lambda run, to: fastscore.report(run, output=to, cluster=["miner_uid"]),
        "cluster is ['miner_uid'], expected str.",
    ),
    "agreement columns": (
        lambda *_: fastscore.agreement("a.csv", "b.csv", columns="coherence"),
        "columns is of type str, expected a list.",
    ),
    "agreement scale": (
        lambda *_: fastscore.agreement("a.csv", "b.csv", scale=5),
        "scale is 5, expected 2 numbers.",
    ),
    "score of a column": (
        lambda *_: fastscore.score(pl.Series(["tea?", "no"]), "score_dialogue"),
        "The source is a Series of texts that are no paths: 'tea?'. Give the frame with all "
        "columns.",
    ),
    "rank": (
        lambda *_: fastscore.rank(5),
        "The source is of type int; expected a path, paths, a frame or rows (dicts).",
    ),
    "judge of rows": (
        lambda _, to: fastscore.judge(SCORES, "m", output=to),
        f"logs[0] is of type dict, expected a path. {WRITE_ROWS}",
    ),
    "judge of a run": (
        lambda run, to: fastscore.judge(run, "m", output=to),
        "logs is of type Run, expected a path or a list. Give its folder, run.path.",
    ),
    "judge of a frame": (
        lambda _, to: fastscore.judge(pl.DataFrame(SCORES), "m", output=to),
        f"logs is of type DataFrame, expected a path or a list. {WRITE_ROWS}",
    ),
    "judge without a model": (
        lambda _, to: fastscore.judge("a.jsonl", None, output=to),
        "model is None, expected str.",
    ),
    "judge repeats": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, repeats="3"),
        "repeats is '3', expected an integer of at least 1.",
    ),
    "judge temperature": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, temperature="hot"),
        "temperature is 'hot', expected float.",
    ),
    "judge prices": (
        lambda _, to: fastscore.judge("a.jsonl", "m", output=to, prices="x"),
        "prices is 'x', expected two numbers. They are of a million tokens sent, and received: "
        "(0.15, 0.60).",
    ),
    "catalogue in a frame": (
        lambda *_: fastscore.PreferenceShift(catalogue=pl.DataFrame(SCORES)),
        f"catalogue is of type DataFrame, expected a path. {WRITE_ROWS}",
    ),
    "personas in a dict": (
        lambda *_: fastscore.GuestSimulation(personas={"a": 1}),
        "personas is of type dict, expected a path. Write it to a file: "
        'Path("personas.json").write_text(json.dumps(value)).',
    ),
    "plot": (
        lambda run, _: run.plot([METRIC]),
        f"metric is {[METRIC]}, expected str.",
    ),
    "explain": (
        lambda run, _: fastscore.explain(run, seed="x"),
        "seed is 'x', expected an integer of at least 0.",
    ),
    "explain of a run": (
        lambda run, _: fastscore.explain(run, worst=5),
        "worst is 5, expected str.",
    ),
    "annotate": (
        lambda _, to: fastscore.annotate("a.jsonl", "states", "m", output=to, level=-1),
        "level is -1, expected an integer of at least 0.",
    ),
}


@pytest.mark.parametrize("case", MANY)
def test_every_verb_names_what_it_cannot_use(run, tmp_path, case):
    call, message = MANY[case]
    with pytest.raises(UsageError) as raised:
        call(run, tmp_path / "output")
    assert str(raised.value) == message
    assert not list(tmp_path.iterdir())


def test_a_file_of_an_option_is_any_path():
    for name in ("catalogue", "aliases"):
        given = {"catalogue": "a", name: Path("items.csv")}
        assert getattr(fastscore.PreferenceShift(**given), name) == "items.csv"


def test_several_values_may_be_any_sequence(run):
    for metrics in ([METRIC], (METRIC,)):
        assert fastscore.compare(run, run, metrics=metrics).differences.height == 1
    by = fastscore.summary(run, by=["miner_uid"])
    assert fastscore.summary(run, by="miner_uid").equals(by)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([{"dialogue": "a", "txt": "x", 5: 3}], "dialogue (1), txt (1), 5 (1)"),
        ([{"dialogue_uid": "d1", 5: 3}], "dialogue_uid (1), 5 (1)"),
        ([{"dialogue_uid": "d1", "y": {6: 7}, "z": [{8: 9}]}], "y (1), y.6 (1), z (1)"),
    ],
)
def test_keys_of_rows_may_be_numbers(rows, found):
    with pytest.raises(MissingColumnsError) as raised:
        fastscore.score(rows, fastscore.ScoreDialogue(lex_weight=1.0))
    assert found in str(raised.value)


@pytest.mark.parametrize("text", ['{"event": "predicted"}\n' * 20_000, '{"a": 1}', "x" * 10_000])
def test_the_text_of_a_log_is_told_to_be_no_path(text):
    with pytest.raises(UsageError, match="The source is text, not a path: ") as raised:
        fastscore.score(text, fastscore.ScoreDialogue(lex_weight=1.0))
    assert len(str(raised.value)) < 250


def test_a_path_may_begin_like_json(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"event": "?"}) + "\n", "utf-8")
    for path in ("[ab].jsonl", "*.jsonl"):
        with pytest.raises(MissingColumnsError):
            fastscore.score(tmp_path / path, fastscore.ScoreDialogue(lex_weight=1.0))


def test_a_verdict_is_a_b_or_tie(tmp_path):
    rows = [("u1", "x", "y", "C"), ("u2", "x", "y", "C")]
    names = ["dialogue", "model_a", "model_b", "overall"]
    pl.DataFrame(rows, names, orient="row").write_csv(tmp_path / "verdicts.csv")
    with pytest.raises(InputError, match=r"\(C\)\. Verdicts are A, B or tie\."):
        fastscore.rank(tmp_path / "verdicts.csv")


def returned(value):
    """Score with an own metric that returns a value; return the error."""

    @fastscore.metric(suite="score_dialogue", range=(0, None), better="neither")
    def a5(dialogues: pl.LazyFrame) -> Any:
        """Return something else than a frame."""
        return value

    rows = utterance("tea", "tea", dialogue_uid="a")
    with pytest.raises(UsageError) as raised:
        fastscore.score(rows, fastscore.ScoreDialogue(lex_weight=1.0), metrics=[a5])
    return str(raised.value)


def test_an_own_metric_returns_a_frame_of_polars():
    assert returned(None) == "'a5' returned None, expected a polars frame."
    assert returned(5) == "'a5' returned 5, expected a polars frame."
    pandas = pytest.importorskip("pandas").DataFrame({"a": [1]})
    assert returned(pandas) == "'a5' returned a pandas DataFrame, expected a polars frame."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metrics": {"words": (0, 1)}}, "'words' is (0, 1), expected a dict with range and bet"),
        ({"metrics": {"words": {"range": (0, 1)}}}, "expected a dict with range and better"),
        ({"metrics": ["words"]}, "metrics is of type list, expected a dict: {'words': {'range'"),
        (
            {"metrics": {"words": {"range": (0, 1), "better": "higher", "nam": ""}}},
            "Metric 'words' has an unknown fact 'nam'. Did you mean 'name'?",
        ),
        ({"columns": ["text"]}, "columns is of type list, expected a dict: {'text': str}."),
    ],
)
def test_a_suite_names_what_it_cannot_use(given, message):
    facts = {"words": {"range": (0, 1), "better": "higher"}}
    with pytest.raises(UsageError) as raised:
        fastscore.suite(**({"columns": {"text": str}, "metrics": facts} | given))
    assert message in str(raised.value)


def test_pandas_that_is_not_installed_is_named(run, monkeypatch):
    monkeypatch.setattr(
        pl.DataFrame, "to_pandas", lambda _: importlib.import_module("pandas.nothing")
    )
    with pytest.raises(UsageError, match=r"needs the package pandas.*Run: pip install pandas$"):
        run.to_pandas()


FUNCTIONS = [name for name in fastscore.__all__ if inspect.isfunction(getattr(fastscore, name))]
KERNELS = [f"{one.__name__.partition('.')[2]}.{name}" for one in (text, sets) for name in dir(one)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fastscore.pass_k("run", k=3),
            "pass_k() has no argument 'k'. Known: 'by', 'metrics', 'repeats', 'run', 'task'.",
        ),
        (
            lambda: fastscore.ScoreDialogue(lexweight=1),
            "ScoreDialogue() has no argument 'lexweight'. Did you mean 'lex_weight'? Known: "
            "'baseline_pairs', 'baseline_seed', 'lex_weight', 'max_text', 'pppl_model', "
            "'pppl_weight', 'semantic'.",
        ),
        (
            lambda: fastscore.score("logs", "preference_shift", catalog="a"),
            "score() has no argument 'catalog'. catalogue is an option of the suite: "
            "fastscore.score(logs, fastscore.PreferenceShift(catalogue=...))",
        ),
        (
            lambda: fastscore.metric(lambda steps: steps),
            "metric() takes 0 positional arguments but 1 was given. Give by name: suite, range, "
            "better, name, unit, null_rule, headline.",
        ),
        (
            lambda: fastscore.Scorer("score_dialogue", quota=1),
            "Scorer() has no argument 'quota'. Known: 'alternate', 'columns', 'device', "
            "'dialogue', 'dim', 'embedder', 'layout', 'metrics', 'precision', 'sort_by', 'store', "
            "'suite', 'table', 'values', 'without'. Options of the suite are given as "
            "fastscore.Scorer(fastscore.ScoreDialogue(...)).",
        ),
    ],
)
def test_a_call_with_an_unknown_argument_suggests_one(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == message
    assert raised.value.__context__ is None


@pytest.mark.parametrize("name", [*FUNCTIONS, *KERNELS, "Embedder"])
def test_no_function_takes_an_unknown_argument(name):
    with pytest.raises(TypeError, match=r"has no argument 'wrong'\."):
        attrgetter(name)(fastscore)(wrong=1)


def test_a_type_error_of_the_body_is_not_about_arguments():
    @names_arguments
    def broken(value):
        return value + "1"

    with pytest.raises(TypeError, match="unsupported operand"):
        broken(1)


def test_a_run_says_where_its_tables_and_functions_are(run):
    for name, found in (
        ("steps", " Type run.tables['steps']."),
        ("compare", " Type fastscore.compare(run, ...)."),
        ("sumary", " Did you mean 'summary'? Known: "),
        ("_repr_png_", ""),
    ):
        with pytest.raises(AttributeError) as raised:
            getattr(run, name)
        assert str(raised.value).startswith(f"A run has no attribute {name!r}.{found}")


def test_advice_for_jq_says_that_a_frame_is_no_file():
    complete = {"event": "utterance_complete", "ground_truth": "tea"}
    rows = [{"event": "predicted", "step": "0.0", "prediction": "te"}, complete | {"step": None}]
    frame = pl.DataFrame([{"dialogue_uid": "d", "utterance_index": 0} | row for row in rows])
    with pytest.raises(fastscore.FastscoreError, match=r"step is '0\.0'") as raised:
        fastscore.score(frame, "score_dialogue")
    assert raised.value.hint.startswith("Make this change in Python, or write the rows to a file")
    assert " FILE > rows.jsonl" in raised.value.hint


def test_tables_say_how_one_is_asked_for(run):
    with pytest.raises(AttributeError, match=r"'steps'\. Type run\.tables\['steps'\]\.$"):
        run.tables.steps  # noqa: B018
    assert list(copy.copy(run.tables)) == list(run.tables)


def test_a_misspelt_progress_is_recognised():
    with pytest.raises(TypeError, match=r"'progres'\. Did you mean 'progress'\?"):
        fastscore.score("logs", "score_dialogue", progres=True)


def test_a_picture_without_a_metric_names_headline_metrics(run):
    with pytest.raises(UsageError) as raised:
        run.plot()
    assert str(raised.value) == (
        f"No metric is named. For example: run.plot('{METRIC}'). Headline metrics: {METRIC}."
    )


def test_an_unknown_name_of_the_package_has_a_suggestion():
    with pytest.raises(AttributeError, match=r"'score_dialogue'. Did you mean 'ScoreDialogue'\?"):
        fastscore.score_dialogue  # noqa: B018
    for module in (fastscore, fastscore.sets, fastscore.text):
        assert dir(module) == sorted(module.__all__)


def test_a_warning_is_at_the_line_that_called(tmp_path):
    logs = fastscore.example("score_dialogue", tmp_path).logs
    with (logs / "dialogues.jsonl").open("a") as log:
        log.write("no JSON\n")
    with pytest.warns(fastscore.RejectsWarning, match="1 of 1,657 lines") as caught:
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0), max_rejects=1.0)
    assert caught[0].filename == __file__


def test_groups_of_a_run_are_named_where_one_is_missing(run):
    labels = "dialogue, dialogue_uid, challenge_uid, challenge_type, miner_uid, miner_hotkey, file"
    with pytest.raises(UsageError, match="Only one run given") as raised:
        fastscore.compare(run)
    assert str(raised.value).endswith(f"groups of this run, such as miner_uid: {labels}.")
    with pytest.raises(UsageError, match="declares no column of repeats") as raised:
        fastscore.pass_k(run)
    assert str(raised.value).endswith(f"Known: {labels}.")


def test_analyse_names_a_suite_without_an_analysis_before_its_units(run):
    with pytest.raises(UsageError, match="is a run of score_dialogue, which has no analysis"):
        fastscore.analyse(run)


def test_a_limit_without_a_value_has_an_example(run):
    done = fastscore_command(["check", run.path, "--min", METRIC])
    wanted = f"minimum is '{METRIC}', expected METRIC=VALUE. For example: {METRIC}=0.1."
    assert done.stderr == f"Error: {wanted}\n"


def test_a_limit_without_a_metric_says_where_metrics_are(run):
    done = fastscore_command(["check", run.path, "--min", "0.2"])
    wanted = "minimum is '0.2', expected METRIC=VALUE. `fastscore metrics score_dialogue` lists"
    assert done.stderr == f"Error: {wanted} metrics.\n"


def test_systems_of_a_run_are_ranked_by_compare(run):
    done = fastscore_command(["rank", run.path])
    wanted = f"{run.path} is a run, which has no scores of judges or people. Name their files. "
    hint = "`fastscore compare RUN --by COLUMN` ranks systems of a run."
    assert done.stderr == f"Error: {wanted}{hint}\n"


@pytest.mark.parametrize("name", ["report", "report.pdf", "folder/"])
def test_a_page_ends_in_html(run, tmp_path, name):
    done = fastscore_command(["report", run.path, "-o", f"{tmp_path}/{name}"])
    example = Path(name).stem
    assert done.stderr.endswith(
        f"{tmp_path / name}', expected a file that ends in .html. For example: {example}.html.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_dialogues_without_an_id_are_named_by_their_file(run, tmp_path):
    log = write_lines(tmp_path / "log.jsonl", utterance("a", "a"))
    other = fastscore.score(log, fastscore.ScoreDialogue(lex_weight=1.0))
    with pytest.raises(UsageError, match=r"is in .*log.jsonl \(such as 'log.jsonl'\)"):
        fastscore.compare(run, other)


def test_repeats_that_leave_no_column_for_tasks_name_the_option_of_the_verb(tmp_path):
    example = fastscore.example("guest_simulation", tmp_path)
    guests = fastscore.score(
        example.logs, fastscore.GuestSimulation(personas=str(tmp_path / "personas.json"))
    )
    with pytest.raises(UsageError) as raised:
        fastscore.pass_k(guests, "test_case")
    assert str(raised.value) == (
        "Tasks are named by 'test_case' alone, which tells repeats apart. "
        "Name the columns of the tasks: `task` of pass_k, `cluster` of summary."
    )


def test_the_help_of_the_package_names_every_function():
    named = re.findall(r"`(\w+)`", fastscore.__doc__ or "")
    assert sorted(named) == sorted([*FUNCTIONS, "sets", "text", "Scorer", "ScoreDialogue"])


def test_a_notebook_completes_the_names_of_tables(run):
    assert run.tables._ipython_key_completions_() == ["steps", "utterances", "dialogues"]
