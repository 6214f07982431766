"""The types of options, written from the declarations, for editors and type checkers."""

import dataclasses
import inspect
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import pytest
from mypy import api

import fastscore
from fastscore import score_options
from fastscore.run_options import RunOptions
from fastscore.suites.registry import load_suite
from fastscore.suites.typed_options import SUITES, class_name, typed_options

USES = """
import fastscore
from fastscore import Run, Scores

scores: Scores = fastscore.score([{}], "score_dialogue", lex_weight=0.5, limit=3)
run: Run = fastscore.score("logs", "memory_finance", output="run", ignore_memory_keys=True)
name = str("score" + "_dialogue")
other: Scores = fastscore.score("logs", name, anything=1)
reveal_type(fastscore.score("logs", "preference_shift", profile="published"))
"""


def test_the_file_is_what_the_declarations_say() -> None:
    written = Path(str(score_options.__file__)).read_text(encoding="utf-8")
    assert written == typed_options(map(load_suite, SUITES)), (
        "write it anew: python -m fastscore.suites.typed_options"
    )


def test_every_option_of_every_suite_is_typed() -> None:
    typed = [get_type_hints(overload) for overload in get_overloads(fastscore.score)]
    named = [get_args(hints["suite"]) for hints in typed if hints["suite"] is not str]
    assert named == [(suite,) for suite in SUITES for _ in range(2)]
    for suite in SUITES:
        options = {field.name for field in dataclasses.fields(load_suite(suite).options)}
        keywords = getattr(score_options, class_name(suite)).__annotations__
        assert set(keywords) == options | set(RunOptions.__annotations__)


def test_options_of_every_run_are_those_of_score() -> None:
    parameters = inspect.signature(fastscore.score).parameters.values()
    own = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} - {"output"}
    assert own == set(RunOptions.__annotations__)


def test_a_type_checker_knows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uses.py").write_text(USES)
    monkeypatch.chdir(Path(__file__).parents[1])  # its settings, and what `make lint` has cached
    told, _, code = api.run([str(tmp_path / "uses.py")])
    assert code == 0, told
    assert "Revealed type is" in told
    assert "Scores" in told
