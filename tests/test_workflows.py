"""Workflows call targets of the Makefile, pin actions by hash, and pass the linter."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fastscore import example
from tests.conftest import write_lines

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BUILT_FROM = [*WORKFLOWS, ROOT / "Containerfile", ROOT / "conda" / "recipe.yaml"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+(\.\d+)*$")
MATRIX = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def jobs(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def commands(job):
    """Return the commands of a job, once for each value of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    shown = [step["run"] for step in job["steps"] if "run" in step]
    return [
        MATRIX.sub(lambda name, chosen=chosen: chosen[name[1]], command)
        for values in itertools.product(*matrix.values())
        for chosen in [dict(zip(matrix, values, strict=True))]
        for command in shown
    ]


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_can_plan_every_command():
    found = {each for path in WORKFLOWS for job in jobs(path).values() for each in commands(job)}
    for command in sorted(found):
        program, *words = command.split()
        assert program == "make", command
        done = subprocess.run(
            ["make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path):
    lines = [line.strip() for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not PINNED.search(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_can_change_nothing_and_end(path):
    assert yaml.safe_load(path.read_text("utf-8"))["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 350 for job in jobs(path).values())


def test_tests_run_on_every_python_and_platform_that_is_claimed():
    matrix = jobs(ROOT / ".github" / "workflows" / "tests.yml")["test"]["strategy"]["matrix"]
    classifier = re.compile(r"Programming Language :: Python :: (3\.\d+)$")
    claimed = {found[1] for each in PROJECT["classifiers"] if (found := classifier.match(each))}
    assert claimed == set(matrix["python"])
    wheels = jobs(ROOT / ".github" / "workflows" / "wheels.yml")["wheel"]["strategy"]["matrix"]
    assert matrix["system"] == wheels["system"]
    systems = [system.split("-")[0] for system in matrix["system"]]
    assert systems == ["ubuntu", "ubuntu", "macos", "macos", "windows"]


def weekly(page="check"):
    """The workflow of a page: of a run's checks, or of a judge."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return str(next(each for each in found if "\njobs:" in each))  # another is GitLab's


def test_the_linter_has_no_remarks_on_workflows_nor_on_those_of_pages(tmp_path):
    linter = Path(sys.executable).with_name("actionlint")
    if not linter.is_file():
        pytest.skip("actionlint is not installed")
    for page in ("check", "judging"):
        (tmp_path / f"{page}.yml").write_text(weekly(page))
    for files in (WORKFLOWS, sorted(tmp_path.glob("*.yml"))):
        done = subprocess.run([linter, *files], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")


def test_the_weekly_workflow_of_the_page_works_as_plain_shell(tmp_path):
    steps = {
        step["name"]: step["run"]
        for step in yaml.safe_load(weekly())["jobs"]["scores"]["steps"]
        if "run" in step
    }
    assert list(steps) == ["baseline", "install", "score", "page", "check"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def week():
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        codes = []
        for name in ("score", "page", "check"):
            shell = ["bash", "-e", "-c", steps[name]]
            done = subprocess.run(shell, cwd=tmp_path, env={**os.environ, "PATH": path}, text=True)
            codes.append(done.returncode)
            if done.returncode:
                return codes
        shutil.copytree(tmp_path / "run", tmp_path / "baseline", dirs_exist_ok=True)  # uploaded
        return codes

    example("score_dialogue", tmp_path)
    assert week() == [0, 0, 0]
    kept = (tmp_path / "baseline" / "manifest.json").read_text()
    assert (tmp_path / "report.html").exists()
    log = tmp_path / "logs" / "dialogues.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows:  # a system that says nothing at its first three steps
        if row["event"] == "predicted" and row["step"] < 3:
            row["prediction"] = ""
    write_lines(log, rows)
    assert week() == [0, 0, 1]
    assert (tmp_path / "baseline" / "manifest.json").read_text() == kept


def test_the_gate_of_the_page_on_judges_passes_at_first_and_fails_at_a_fall(tmp_path):
    steps = yaml.safe_load(weekly("judging"))["jobs"]["judge"]["steps"]
    (gate,) = (step["run"] for step in steps if step.get("name") == "gate")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def week(folder, score):
        (tmp_path / folder).mkdir()
        place = {"model": None, "judged_file": "log.jsonl", "judged_line": 1}
        rows = [
            {"dialogue": f"{folder}-{n}", "judge": {"helpfulness": score}, **place}
            for n in range(5)
        ]
        write_lines(tmp_path / folder / "judgements.jsonl", rows)
        about = {
            "suite": "chats",
            "rubric": "r",
            "rubric_hash": "0" * 32,
            "model": "m",
            "scale": [1, 5],
        }
        counts = {"dialogues": 5, "dialogues_judged": 5, "dimensions": {"helpfulness": {}}}
        (tmp_path / folder / "summary.json").write_text(json.dumps(about | counts))
        (tmp_path / folder / "manifest.json").write_text('{"too_many_failures": false}')
        shell, environment = ["bash", "-e", "-c", gate], {**os.environ, "PATH": path}
        done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return done.returncode, "helpfulness drop at most" in done.stdout

    # of 10! / (5! 5!) = 252 divisions one is as low: p = 1 / 252
    assert [week("judgements", 3), week("baseline", 4)] == [(0, False), (1, True)]


@pytest.mark.parametrize("path", BUILT_FROM, ids=lambda path: path.name)
def test_no_host_is_named(path):
    if not path.exists():
        pytest.skip("not built")
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\b[\w-]+\.(?:com|dev|io|net|org)\b", text) == []
