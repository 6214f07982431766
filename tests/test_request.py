"""A run's request: one declaration for Python, the command line, manifests and signatures."""

import inspect

import click
import polars as pl
import pytest

import fastscore
from fastscore.cli.score import run_options
from fastscore.errors import UsageError
from fastscore.run.context import embedder_identity, run_context
from fastscore.run.request import SETTINGS, Request
from fastscore.settings.options import allowed_values, available_processors, flag_name
from fastscore.suites.registry import load_suite, suite_names
from tests.conftest import fastscore_command
from tests.run.logs import write_logs

LEXICAL = fastscore.ScoreDialogue(lex_weight=1.0)
MEMORY = "expected an integer from 256 to 8,796,093,022,207 (MiB), such as 4096."

WRONG = {
    "embedder": {3: "The embedder is of type int; expected the name or folder of a model, "},
    "precision": {"fp64": "precision is 'fp64'. Did you mean 'fp32'? Known: 'bf16', 'fp32'."},
    "device": {"tpu": "device is 'tpu'. Did you mean 'cpu'? Known: 'cpu', 'cuda'."},
    "dim": {
        0: "dim is 0, expected an integer of at least 1.",
        "x": "dim is 'x', expected an integer of at least 1.",
        True: "dim is True, expected an integer of at least 1.",
    },
    "output": {
        3: "output is of type int, expected a path.",
        "a\0b": "The name 'a\\x00b' has a NUL, ",
    },
    "store": {b"x": "store is of type bytes, expected a path."},
    "format": {"xml": "format is 'xml'. Known: 'csv', 'json', 'jsonl', 'parquet'."},
    "layout": {
        3: "layout is 3, expected str.",
        "opena": "There is no layout 'opena'. Did you mean 'openai'?",
    },
    "columns": {"text=content": "columns is of type str, expected a dict: {'text': 'content'}."},
    "values": {3: "values is of type int, expected a dict: {'speaker': {'user': 'USER'}}."},
    "alternate": {"agent": "alternate is 'agent'."},
    "sort_by": {3: "sort_by is 3, expected str."},
    "dialogue": {3: "dialogue is 3, expected str."},
    "without": {
        ("think",): "without is ('think',), expected str.",
        "\ud800": "without is '\\ud800', expected text that is UTF-8.",
    },
    "metrics": {"mine.py": "metrics is of type str, expected a list."},
    "limit": {0: "limit is 0, expected an integer of at least 1."},
    "sample": {2.0: "sample is 2.0, expected an integer of at least 1."},
    "seed": {"x": "seed is 'x', expected an integer.", 1: "seed is given without sample."},
    "max_rejects": {
        "x": "max_rejects is 'x', expected float.",
        float("nan"): "max_rejects is nan, expected a number from 0 to 1.",
        1.5: "max_rejects is 1.5, expected a number from 0 to 1.",
    },
    "strict": {"no": "strict is 'no', expected bool.", 1: "strict is 1, expected bool."},
    "workers": {0: "workers is 0, expected an integer of at least 1."},
    "engine": {"dsk": "engine is 'dsk'. Did you mean 'dask'? Known: 'dask', 'local', 'ray'."},
    "address": {3: "address is 3, expected str."},
    "max_memory": {
        "x": f"max_memory is 'x', {MEMORY}",
        255: f"max_memory is 255, {MEMORY}",
        10**20: "max_memory is an integer of 67 bits, expected one of at most 63.",
    },
    "max_unpacked": {0: "max_unpacked is 0, expected an integer of at least 1."},
    "max_ratio": {
        0.5: "max_ratio is 0.5, expected a number of at least 1.",
        10**400: "max_ratio is an integer of 1,329 bits, expected one of at most 63.",
    },
    "overwrite": {"no": "overwrite is 'no', expected bool."},
    "progress": {"yes": "progress is 'yes', expected True, False or a function."},
}
"""By keyword of `score` wrong values, and how their error begins."""


def test_every_keyword_has_a_wrong_value():
    assert [*WRONG] == [*(each.name for each in SETTINGS), "progress"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for name in WRONG for value, message in WRONG[name].items()],
)
def test_a_wrong_value_is_one_sentence_before_anything_is_read(name, value, message):
    """The logs are not there, which only a run that begins would say."""
    with pytest.raises(UsageError) as caught:
        fastscore.score("gone", LEXICAL, **{name: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    if name in inspect.signature(fastscore.Scorer).parameters:
        with pytest.raises(UsageError) as caught:
            fastscore.Scorer(LEXICAL, **{name: value})
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["columns", "values"])
def test_a_column_has_a_text_for_its_name(name):
    with pytest.raises(UsageError, match="The name of a column is 3, expected text"):
        fastscore.score("gone", LEXICAL, **{name: {3: "x"}})


def test_the_command_line_asks_for_what_python_asks_for(tmp_path):
    logs = write_logs(tmp_path / "logs")
    words = ["--lex-weight", "1", "--sample", "2", "--seed", "4", "--without", "think"]
    words += ["--column", "prediction=prediction", "--max-rejects", "0.5", "--workers", "1"]
    words += ["--max-memory", "3000"]
    done = fastscore_command(["score", "score_dialogue", *logs, "-o", tmp_path / "a", *words])
    assert done.returncode == 0, done.stderr
    settings = {"sample": 2, "seed": 4, "without": "think", "workers": 1}
    settings |= {"columns": {"prediction": "prediction"}, "max_rejects": 0.5, "max_memory": 3000}
    other = fastscore.score(logs, LEXICAL, output=tmp_path / "b", **settings).manifest
    manifest = fastscore.open_run(tmp_path / "a").manifest
    for name in ("signature", "options", "settings", "column_map", "parts_hash"):
        assert getattr(manifest, name) == getattr(other, name)


@pytest.mark.parametrize("call", [fastscore.score, fastscore.Scorer, fastscore.scan])
def test_keywords_are_those_of_the_request(call):
    keywords = {
        name: (parameter.annotation, parameter.default)
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    declared = {each.name: (each.type, each.default) for each in SETTINGS}
    own = {"progress"} if call is fastscore.score else {"rejects"} & keywords.keys()
    assert keywords.keys() - declared.keys() == own
    if call is fastscore.score:
        assert declared.keys() <= keywords.keys()
    for name in keywords.keys() - own:
        assert keywords[name] == declared[name], name


@pytest.mark.parametrize("suite", suite_names())
def test_the_command_line_has_an_option_for_each_setting(suite):
    options = {each.name: each for each in run_options(load_suite(suite))}
    command = click.Command(suite, params=[*options.values()])
    values = command.make_context(suite, []).params
    for each in SETTINGS:
        option = options[each.name]
        assert option.opts[-1] in (flag_name(each.name), flag_name(each.name.removesuffix("s")))
        default = available_processors() if each.name == "workers" else each.default
        assert (values[each.name] or None) == (default or None), each.name
        if isinstance(option.type, click.Choice):
            assert set(option.type.choices) == set(allowed_values(each.type))


@fastscore.metric(suite="score_dialogue", range=(0, None), better="neither")
def longest(steps: pl.LazyFrame) -> pl.LazyFrame:
    """Characters of the longest prediction."""
    return steps.group_by("dialogue_row").agg(value=pl.col("prediction").str.len_chars().max())


def widths(texts):
    return [[float(len(text)), 1.0] for text in texts]


def lengths(texts):
    return [[float(len(text))] * 9 for text in texts]


SIGNED = {
    "embedder": widths,
    "dim": 8,
    "layout": "openai",
    "columns": {"text": "said"},
    "values": {"speaker": {"a": "user"}},
    "alternate": "user",
    "sort_by": "time",
    "dialogue": "uid",
    "without": "think",
    "metrics": [longest],
    "limit": 3,
    "sample": 3,
    "seed": 1,
}
"""Settings by which numbers change, each with another value."""
RECORDED = {"max_rejects": 0.5, "workers": 3, "engine": "dask", "max_memory": 300}
"""Settings that the manifest names, by which no number changes."""
NEITHER = {
    "output": "run",
    "store": "store",
    "format": "json",
    "strict": True,
    "address": "host:1",
    "max_unpacked": 1,
    "max_ratio": 9.0,
    "overwrite": True,
}
OF_A_MODEL = ("precision", "device")
"""Those of an exported model, which the tests of its identity change."""


def facts(**given):
    """Return a run's signature, and how the manifest says that it is done."""
    request = Request(suite="score_dialogue", **{"embedder": lengths, **given})
    suite = request.load_suite()
    identity = embedder_identity(request.model, suite, request.options)
    return run_context(request, suite, identity).signature, request.settings


def test_a_function_as_embedder_makes_no_folder_before_it_is_called(tmp_path, monkeypatch):
    """A scorer is sent to processes, which have a folder of their own each."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scorer = fastscore.Scorer(fastscore.ScoreDialogue(lex_weight=0.5), embedder=lengths)
    assert [*tmp_path.iterdir()] == []
    assert "lengths@" in scorer.signature


def test_every_setting_changes_the_signature_or_the_manifest_or_neither():
    names = [*SIGNED, *RECORDED, *NEITHER, *OF_A_MODEL]
    assert sorted(names) == sorted(each.name for each in SETTINGS)
    signed, recorded = facts()
    for name, value in (SIGNED | RECORDED | NEITHER).items():
        more = {"sample": 3} if name == "seed" else {}
        before = facts(**more)[0] if more else signed
        after, settings = facts(**more, **{name: value})
        assert (after != before) == (name in SIGNED), name
        assert (settings != recorded) == (name in RECORDED), name
    assert recorded["workers"] == available_processors()
    assert facts(max_memory=300)[1]["max_memory"] == 300 << 20
