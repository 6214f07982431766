"""Every command and Python block of README, docs and help runs and prints the shown output."""

import contextlib
import gzip
import io
import json
import linecache
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
import zstandard

from fastscore.api.examples import write_example
from fastscore.suites import registry
from tests.conftest import NIGHTLY, fastscore_command
from tests.documented import (
    ROOT,
    Step,
    commands_by_words,
    commands_of_help,
    commands_of_page,
    pages,
    steps_of_page,
)

ELSEWHERE = {
    r"llama3|--annotations|--states-from states|recommenders": "a chat model's server",
    r"\bjudgements\b|judged-": "a judge's folder; `tests/llm/test_judged_runs.py` opens some",
    r"models export|mxbai|bert|\bDIR\b|\bNAME\b": "weights of one's own, or a download",
    r"my-model|sentence_transformers": "weights of one's own",
    r"models verify|kernels compile": "minutes",
    r"dialogue-17|\b(DIALOGUE|METRIC|RUN|TEXT|EXPERIMENT|old_scores)\b": "data of one's own",
    r"--device cuda|onnxruntime-gpu|\bdocker\b|rattler-build": "a GPU, or an image to build",
    r"--engine (dask|ray)|/shared/": "a cluster; engines have tests of their own",
    r"python -m benchmarks": "minutes of both cores, and peers that only benchmarks install",
    r"\bmake ": "make",
    r"dask_jobqueue": "a cluster of SLURM",
    r"s3a?://|gs://|https://example": "a store of objects",
    r"import (duckdb|dask|ray|daft)|pyspark": "engines, whose recipes have tests of their own",
    r"fastscore migrate": "files of a public script; migration has tests of its own",
}
"""Commands that cannot run here, and why. Their flags are still checked."""


@pytest.fixture(autouse=True)
def one_store(store, monkeypatch):
    monkeypatch.setenv("FASTSCORE_STORE", str(store))


IN_SHELL = "README.md"
"""The page whose commands a shell runs as a user types them. On other pages few need one."""


def run(command, folder, *, in_shell=False, shown=""):
    """Run a command in a folder and compare its output with the page."""
    program, *words = shlex.split(command)
    if program == "fastscore" and not (in_shell or re.search(r"[|<>&;$`*?~]", command)):
        with contextlib.chdir(folder):
            done = fastscore_command(words)
    else:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    is_error = shown.startswith(("Error: ", "Usage: "))
    assert (done.returncode != 0) == is_error, f"{command}\n{done.stdout}\n{done.stderr}"
    compare(command, shown, done.stderr if is_error else done.stdout)


def compare(code, shown, printed):
    """Compare shown with printed lines. A shown line of three dots means any number of lines."""
    if not shown:
        return
    parts = re.split(r"^\s*\.\.\.\n", _plain(shown), flags=re.MULTILINE)
    pattern = "(?:.*\n)*".join(re.escape(part) for part in parts)
    assert re.fullmatch(pattern, _plain(printed)), f"{code}\nprints\n{printed}\nnot\n{shown}"


def _plain(text):
    lines = (re.sub(" {2,}", "  ", line.rstrip()) for line in text.strip().splitlines())
    return "".join(f"{line}\n" for line in lines)


def run_python(code, folder, names, shown):
    """Run a block of Python in a folder and compare its output with the page."""
    out = io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        contextlib.redirect_stdout(out),
        pl.Config(restore_defaults=True),
    ):
        file = f"<page {len(linecache.cache)}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        exec(compile(code, file, "exec"), names)
    compare(code, shown, out.getvalue())


def scored(suite, *runs):
    """Return what scores the example of a suite into runs."""

    def setup(folder):
        example = write_example(suite, folder / suite)
        for name in runs:
            run(example.command(name), folder)

    return setup


def check_limits(folder):
    """Write the configuration that `docs/check.md` shows."""
    (limits,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "docs/check.md").read_text(), re.M | re.S
    )
    (folder / "fastscore.toml").write_text(limits)


def judged(folder):
    """Write scores of a judge, of both kinds that `docs/analysis.md` shows."""
    log = folder / "preference_shift" / "logs" / "conversations.jsonl"
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    (folder / "judge.jsonl").write_text(
        "".join(
            json.dumps({"session_id": row["session_id"], "model_name": row["model_name"]})[:-1]
            + ', "proactiveness": 4, "coherence": 3, "personalization": 5}\n'
            for row in rows
        )
    )
    lines = [f"{row['session_id']},{row['model_name']},7" for row in rows]
    (folder / "scores.csv").write_text("\n".join(["session_id,model_name,tone", *lines]))


def catalogue(folder):
    """Write a catalogue under the names that docs give it."""
    write_example("preference_shift", folder / "movies")
    text = (folder / "movies" / "catalogue.jsonl").read_text("utf-8")
    (folder / "movies.jsonl").write_text(text, "utf-8")
    items = [json.loads(line) for line in text.splitlines()]
    (folder / "movies.json").write_text(json.dumps(items), "utf-8")


def chats(folder):
    """Write the log of `docs/chat_logs.md` and the catalogue of `docs/catalogue.md`."""
    for page, name in (("chat_logs", "chats.jsonl"), ("catalogue", "catalogue.jsonl")):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        (lines,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        (folder / name).write_text(lines, "utf-8")


def chats_run(folder):
    """Score the log of `docs/chat_logs.md`."""
    run(
        "fastscore score preference_shift chats.jsonl -o scored --layout openai"
        " --catalogue catalogue.jsonl --segments metadata --embedder none",
        folder,
    )


def own_metric(folder):
    """Write the file of `docs/own_metrics.md` that its commands name."""
    first = next(step for step in steps_of_page("docs/own_metrics.md") if step.is_python)
    (folder / "mine.py").write_text(first.code, "utf-8")


def ratings(folder):
    """Write the ratings that `docs/agreement.md` shows first."""
    text = (ROOT / "docs/agreement.md").read_text("utf-8")
    rows = re.findall(r"^```csv\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    (folder / "people.csv").write_text(rows, "utf-8")


def example(suite, name):
    """Return what writes the example of a suite into a folder."""

    def setup(folder):
        write_example(suite, folder / name)

    return setup


def odd_ids(folder):
    """Write a log of score_dialogue that names dialogues by another key."""
    write_example("score_dialogue", folder / "example")
    text = (folder / "example" / "logs" / "dialogues.jsonl").read_text("utf-8")
    (folder / "log.jsonl").write_text(text.replace("dialogue_uid", "dialogue_id"), "utf-8")


def people(folder):
    """Write ratings of dialogues of memory_finance."""
    log = folder / "memory_finance" / "logs" / "dialog_trace.jsonl"
    ids = sorted({json.loads(line)["dialog_id"] for line in log.read_text("utf-8").splitlines()})
    rows = (f"{id},{place % 5}" for place, id in enumerate(ids))
    (folder / "people.csv").write_text("\n".join(["dialog_id,rating", *rows]))


def logs(folder):
    """Write a folder of logs of score_dialogue, and one file of them."""
    write_example("score_dialogue", folder / "example")
    plain = (folder / "example" / "logs" / "dialogues.jsonl").read_bytes()
    (folder / "logs").mkdir()
    (folder / "logs" / "a.jsonl.zst").write_bytes(zstandard.compress(plain))
    (folder / "log.jsonl").write_bytes(plain)


def traces(folder):
    """Write packed traces of memory_finance."""
    write_example("memory_finance", folder / "finance")
    plain = (folder / "finance" / "logs" / "dialog_trace.jsonl").read_bytes()
    (folder / "traces.jsonl.gz").write_bytes(gzip.compress(plain))


def rewards(folder):
    """Write rewards of tau-bench as its repository has them, without texts."""
    lines = (ROOT / "tests/results/tau_bench/airline_gpt4o_rewards.jsonl").read_text("utf-8")
    (folder / "gpt-4o-airline.json").write_text(f"[{','.join(lines.splitlines())}]", "utf-8")


def plain_logs(folder):
    """Write a folder of logs of score_dialogue as the example has them."""
    write_example("score_dialogue", folder / "of_score_dialogue")
    (folder / "of_score_dialogue" / "logs").rename(folder / "logs")


SETUPS = {
    "docs/agreement.md": (ratings,),
    "docs/analysis.md": (scored("preference_shift", "run"), judged),
    "docs/catalogue.md": (chats, example("preference_shift", "example")),
    "docs/chat_logs.md": (chats,),
    "docs/choose_a_suite.md": (plain_logs,),
    "docs/dataframes.md": (logs,),
    "docs/explain.md": (chats, chats_run),
    "docs/formats.md": (logs, traces),
    "docs/layouts.md": (chats,),
    "docs/footguns.md": (logs, scored("score_dialogue", "scored")),
    "docs/models.md": (example("score_dialogue", "example"), logs),
    "docs/run_directory.md": (scored("score_dialogue", "run"),),
    "docs/statistics.md": (scored("memory_finance", "base", "new"),),
    "docs/summary.md": (scored("score_dialogue", "run"),),
    "docs/scale.md": (plain_logs,),
    "docs/scorer.md": (plain_logs,),
    "docs/engines.md": (plain_logs,),
    "docs/faq.md": (scored("memory_finance", "run"), people, logs),
    "docs/install.md": (logs,),
    "docs/significance.md": (scored("score_dialogue", "run"),),
    "docs/troubleshooting.md": (chats, odd_ids),
    "docs/check.md": (scored("score_dialogue", "run", "base"), check_limits),
    "docs/compare.md": (scored("memory_finance", "base", "new"), scored("guest_simulation", "run")),
    "docs/own_metrics.md": (logs, own_metric),
    "docs/published_numbers.md": (rewards,),
    "docs/python.md": (logs,),
    "docs/reliability.md": (logs,),
    "docs/report.md": (scored("memory_finance", "run", "base", "new"),),
    "docs/simulation.md": (catalogue,),
    "fastscore analyse": (scored("preference_shift", "run"), judged),
    "fastscore catalogue": (catalogue,),
    "fastscore catalogue show": (catalogue,),
    "fastscore compare": (
        scored("memory_finance", "base", "new"),
        scored("guest_simulation", "run"),
    ),
    "fastscore check": (scored("score_dialogue", "run", "base"),),
    "fastscore explain": (scored("score_dialogue", "run"),),
    "fastscore inspect": (logs,),
    "fastscore report": (scored("memory_finance", "base", "new"),),
    "fastscore score": (logs,),
    "fastscore simulate preference_shift": (catalogue,),
    "fastscore summary": (scored("preference_shift", "run"),),
}
"""What is there before a page's commands, or a help's, are typed."""


def check(steps, folder, setups, *, in_shell=False):
    names = {"__name__": "page"}
    for setup in setups:
        setup(folder)
    with mock.patch.dict(registry._declared_here):  # a page may declare a suite
        _take_steps(steps, folder, names, in_shell=in_shell)


def _take_steps(steps, folder, names, *, in_shell):
    for step in steps:
        is_elsewhere = any(re.search(pattern, step.code) for pattern in ELSEWHERE)
        if step.is_python and is_elsewhere:
            compile(step.code, "page", "exec")
        elif step.is_python:
            run_python(step.code, folder, names, step.output)
        elif is_elsewhere:
            check_flags(step.code)
        else:
            run(step.code, folder, in_shell=in_shell, shown=step.output)


def check_flags(command):
    """Compare the flags of a command with those that there are."""
    words = shlex.split(command)
    if words[0] != "fastscore":
        return
    known = commands_by_words()
    called = max((name for name in known if command.startswith(name)), key=len)
    flags = {flag for each in known[called].params for flag in (*each.opts, *each.secondary_opts)}
    for word in words:
        assert not word.startswith("-") or word in flags, f"{command}: {word}"


FIXTURES = ("default_model", *(() if NIGHTLY else ("undrawn",)))


@pytest.mark.usefixtures(*FIXTURES)
@pytest.mark.parametrize("page", pages())
def test_a_page_runs_as_written(tmp_path, page):
    check(steps_of_page(page), tmp_path, SETUPS.get(page, ()), in_shell=page == IN_SHELL)


def helps_of_their_own():
    """Return the helps that show more than commands of one page, which run there."""
    shown = [set(commands_of_page(page)) for page in pages()]
    return [
        words
        for words, commands in commands_of_help().items()
        if not any(commands_of_one_page >= set(commands) for commands_of_one_page in shown)
    ]


@pytest.mark.usefixtures(*FIXTURES)
@pytest.mark.parametrize("words", helps_of_their_own())
def test_the_commands_of_a_help_run_as_written(tmp_path, words):
    steps = [Step(is_python=False, code=command) for command in commands_of_help()[words]]
    check(steps, tmp_path, SETUPS.get(words, ()))


def test_every_suites_page_begins_with_its_example():
    for page in (ROOT / "docs" / "suites").glob("*.md"):
        first = commands_of_page(f"docs/suites/{page.name}")[:3]
        assert first[0] == f"fastscore example {page.stem} -o example"
        assert first[1].startswith(f"fastscore score {page.stem} example/logs -o run")
        assert first[2] == "fastscore summary run"
