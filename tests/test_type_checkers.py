"""Type checkers find mistakes in options: mypy, and pyright by the package basedpyright."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

from mypy import api

from fastscore.api.arguments import SuiteName, TableName
from fastscore.suites.registry import load_suite

PLANTED = Path(__file__).with_name("planted_errors.py")
ROOT = PLANTED.parents[1]


def planted_lines():
    lines = PLANTED.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# error")]


def test_mypy_finds_every_mistake(monkeypatch):
    monkeypatch.chdir(ROOT)  # its settings, and what `make lint` has cached
    shown, _, _ = api.run([str(PLANTED), "--no-error-summary"])
    errors = [line for line in shown.splitlines() if ": error:" in line]
    assert sorted({int(line.split(":")[1]) for line in errors}) == planted_lines(), shown
    assert all(line.startswith("tests/planted_errors.py:") for line in errors), shown


def test_pyright_finds_every_mistake():
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--level", "error", "--outputjson", str(PLANTED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    assert sorted(lines) == planted_lines(), done.stdout


def test_every_table_of_the_suites_is_a_known_name():
    suites = [load_suite(name) for name in get_args(SuiteName)]
    tables = {table.name for suite in suites for table in suite.tables}
    assert {*tables, "rejects"} == set(get_args(TableName))
