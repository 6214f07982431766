"""The page of the Python interface has every public name, as the code declares it."""

import inspect

import pytest

import fastscore
from docs.python_reference import PAGE, filled, public_names, signature

MODULES = {"sets", "text"}


def test_the_page_has_what_the_code_declares():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run python docs/python_reference.py"
    assert {*public_names(), *MODULES, "__version__"} == {*fastscore.__all__}
    assert all(f"fastscore.{name}" in page for name in MODULES)


@pytest.mark.parametrize("name", public_names())
def test_a_name_has_a_purpose_and_an_example(name):
    text = inspect.getdoc(getattr(fastscore, name)) or ""
    assert text
    assert "\n>>> " in text


def test_the_help_of_options_has_each():
    text = inspect.getdoc(fastscore.ScoreDialogue)
    assert "lex_weight\n    Weight of the lexical part." in text
    for options in (fastscore.PreferenceShift, fastscore.GroupTravel, fastscore.GuestSimulation):
        named = [line for line in inspect.getdoc(options).splitlines() if line.isidentifier()]
        assert set(named) >= {*inspect.signature(options).parameters}


def test_a_signature_is_written_as_it_is_called():
    assert signature("runs", fastscore.runs) == (
        "fastscore.runs(folder: str | PathLike[str] = '.') -> DataFrame"
    )
    shown = signature("scan", fastscore.scan).splitlines()
    assert shown[1:4] == [
        "    source: Any,",
        "    suite: SuiteName | SuiteOptions | Suite,",
        "    *,",
    ]
    assert signature("metrics", fastscore.metrics) == "fastscore.metrics(*names: str) -> DataFrame"
