"""The core without extras: a separate process cannot import any module of an extra."""

import gzip
import json
import shlex

import zstandard

from fastscore import scan
from fastscore.api.examples import write_example
from fastscore.settings.extras import EXTRAS, install_command
from fastscore.suites.registry import load_suite
from tests.conftest import python_process

WITHOUT = """
import contextlib, importlib.machinery, io, json, sys
hidden, commands = json.load(sys.stdin)

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder
"""
PROGRAM = f"""{WITHOUT}
from fastscore.cli import _run
found = []
for command in commands:
    sys.argv = ["fastscore", *command]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _run()
    found.append([code, out.getvalue(), err.getvalue()])
assert not set(hidden) & set(sys.modules)
print(json.dumps(found))
"""
CORE = sorted({module for modules in EXTRAS.values() for module in modules})


def run_without(modules, *commands, cwd):
    """Run commands in a process that finds none of some modules: code, stdout, stderr of each."""
    done = python_process(PROGRAM, input=json.dumps([modules, commands]), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


OPTIONS = {
    "score_dialogue": ["--lex-weight", "1"],
    "memory_finance": [],
    "preference_shift": ["--segments", "metadata", "--embedder", "none"],
    "guest_simulation": [],
    "group_travel": ["--embedder", "none"],
}


def test_the_core_scores_shows_explains_and_compares(tmp_path):
    commands = []
    for suite, options in OPTIONS.items():
        named = shlex.split(write_example(suite, tmp_path / suite).command(f"{suite}-run"))
        metric, run = load_suite(suite).metrics[0].id, f"{suite}-run"
        commands += [
            ["example", suite, "-o", suite],
            [*named[1:], *options, "-q"],
            ["check", run, "--max-null", f"{metric}=1"],
            ["compare", run, run, "--metric", metric, "--pair-by", "dialogue"],
            ["summary", run],
            ["summary", run, "--format", "json"],
        ]
        if suite == "score_dialogue":
            commands.append(["explain", run, "--worst", metric])
    found = run_without(CORE, *commands, cwd=tmp_path)
    for command, (code, out, err) in zip(commands, found, strict=True):
        assert code == 0, (command, out, err)
        assert command[-1] != "json" or json.loads(out)


def test_doctor_asks_for_no_model_without_the_extra(tmp_path):
    ((code, out, _),) = run_without(CORE, ["doctor"], cwd=tmp_path)
    assert (code, "ok  model                  not used" in out, "!!" in out) == (0, True, False), (
        out
    )


def test_doctor_asks_for_a_compiler_if_kernels_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "cache"))
    ((code, out, _),) = run_without(CORE, ["doctor"], cwd=tmp_path)
    assert code == 1
    assert [line[:10] for line in out.splitlines() if "!!" in line] == ["!!  kernel"]
    assert "pip install 'fastscore-dialogue[compile]'" in out


def test_every_format_is_read_without_an_extra(tmp_path):
    run_without(CORE, ["example", "score_dialogue", "-o", "example"], cwd=tmp_path)
    rows = scan([*(tmp_path / "example" / "logs").glob("*")], "score_dialogue").collect()
    rows = rows.drop("file", "line", "byte_offset")
    (tmp_path / "logs").mkdir()
    lines = rows.write_ndjson().encode()
    document = b"[" + b",".join(lines.splitlines()) + b"]"
    for name, content in {
        "a.jsonl": lines,
        "b.json": document,
        "d.jsonl.gz": gzip.compress(lines),
        "e.jsonl.zst": zstandard.compress(lines),
    }.items():
        (tmp_path / "logs" / name).write_bytes(content)
    rows.write_parquet(tmp_path / "logs" / "f.parquet")
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    options = ["--lex-weight", "1", "-q", "-o"]
    commands = [["score", "score_dialogue", f"logs/{each}", *options, each[0]] for each in names]
    commands += [["summary", each[0], "--format", "json"] for each in names]
    found = run_without(CORE, *commands, cwd=tmp_path)
    assert [code for code, *_ in found] == [0] * len(commands), found
    summaries = [json.loads(out) for _, out, _ in found[len(names) :]]
    assert summaries == summaries[:1] * len(names)
    rows.write_ipc(tmp_path / "log.arrow")
    arrow = ["score", "score_dialogue", "log.arrow", *options, "x"]
    ((code, _, err),) = run_without(CORE, arrow, cwd=tmp_path)
    assert (code, install_command("arrow") in err) == (2, True), err


TURNS = """
import fastscore
turns = fastscore.scan("example/logs", "score_dialogue").collect()
scores = fastscore.score(turns, fastscore.ScoreDialogue(lex_weight=1.0))
scorer = fastscore.Scorer(fastscore.ScoreDialogue(lex_weight=1.0))
for call in (scores.to_arrow, scores.to_pandas, lambda: scorer(turns)):
    try:
        call()
    except fastscore.errors.UsageError as error:
        print(error)
"""


def test_arrow_tables_and_frames_of_pandas_need_arrow(tmp_path):
    run_without(CORE, ["example", "score_dialogue", "-o", "example"], cwd=tmp_path)
    done = python_process(WITHOUT + TURNS, input=json.dumps([CORE, []]), cwd=tmp_path)
    assert done.stdout.count(install_command("arrow")) == 3, (done.stdout, done.stderr)


EXAMPLE = ["example", "score_dialogue", "-o", "example"]
SCORE = ["score", "score_dialogue", "example/logs", "-o", "run", "-q"]


def test_a_command_names_the_extra_that_it_needs(tmp_path):
    lexical = [*SCORE, "--lex-weight", "1"]
    needed = {
        "embed": [SCORE, ["models", "export", "minilm-l6-v2"]],
        "dask": [[*lexical, "--engine", "dask", "--overwrite"]],
        "plots": [["report", "run", "-o", "report.html"]],
    }
    named = [(extra, words) for extra, commands in needed.items() for words in commands]
    words = [EXAMPLE, lexical, *(words for _, words in named)]
    *before, first, export, dask, plots = run_without(CORE, *words, cwd=tmp_path)
    assert all(each[0] == 0 for each in before), before
    for (extra, _), (code, out, err) in zip(named, (first, export, dask, plots), strict=True):
        assert code == 2, (out, err)
        assert install_command(extra) in err
        assert "Traceback" not in err
    assert "set lex_weight to 1.0" in first[2]
    assert not (tmp_path / "report.html").exists()


def test_an_analysis_names_the_extra_that_it_needs(tmp_path):
    example = write_example("preference_shift", tmp_path / "example")
    scored = shlex.split(example.command(str(tmp_path / "run")))[1:]
    commands = [[*scored, "-q"], ["analyse", "run"]]
    (code, out, err), analysis = run_without(CORE, *commands, cwd=tmp_path)
    assert code == 0, (out, err)
    assert analysis[0] == 2
    assert install_command("plots") in analysis[2]


def test_bf16_needs_its_package(tmp_path):
    command = [*SCORE, "--precision", "bf16"]
    (_, (code, _, err)) = run_without(["openvino"], EXAMPLE, command, cwd=tmp_path)
    assert code == 2
    assert "Traceback" not in err
    assert install_command("openvino") in err or "needs a processor" in err


def test_compiling_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("FASTSCORE_PROCESSOR", "x86-64")
    command = [*SCORE, "--lex-weight", "1"]
    _, (code, _, err) = run_without(["numba", "llvmlite"], EXAMPLE, command, cwd=tmp_path)
    assert code != 0
    assert install_command("compile") in err
    assert "Traceback" not in err


def test_python_names_the_command_too(tmp_path):
    program = """
import fastscore
from fastscore.statistics.agreement import clustered_correlation
from fastscore.statistics.significance import published_statistics
import numpy as np
print(clustered_correlation("spearman", [1, 2, 3, 4], [2, 1, 4, 3], range(4)).value)
try:
    published_statistics(np.array([1.0, 1.0, 2.0]), np.array([2.0, 3.0]))
except fastscore.FastscoreError as error:
    print(error)
"""
    program = WITHOUT + program
    done = python_process(program, input=json.dumps([["scipy"], []]))
    assert done.stdout.startswith("0.6\n"), done.stderr
    assert install_command("stats") in done.stdout
