"""The page of the Python interface has every public name, as the code declares it."""

import inspect

import pytest

import fastscore
from docs.python_reference import PAGE, filled, public_names

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
