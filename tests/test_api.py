"""Scoring from Python: the same numbers as the command line's, frames in and out."""

import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.settings.options import build_options
from tests.run.logs import write_logs


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


def test_bad_requests_are_named(logs, tmp_path):
    with pytest.raises(TypeError, match="lex_wait"):
        fastscore.ScoreDialogue(lex_wait=1.0)
    with pytest.raises(UsageError, match="Did you mean 'lex_weight'"):
        build_options(fastscore.ScoreDialogue, {"lex_wait": 1.0})
    with pytest.raises(UsageError, match="expected a number from 0 to 1"):
        fastscore.ScoreDialogue(lex_weight=float("nan"))
    with pytest.raises(UsageError, match="expected float"):
        fastscore.ScoreDialogue(lex_weight="1")
    with pytest.raises(UsageError, match="Did you mean 'jaccard'"):
        fastscore.ScoreDialogue(semantic="jacard")
    with pytest.raises(InputError, match="No such file"):
        fastscore.score(tmp_path / "gone.jsonl", fastscore.ScoreDialogue(lex_weight=1.0))
    with pytest.raises(UsageError, match="Both limit and sample"):
        fastscore.score(logs, "score_dialogue", limit=1, sample=1)


def test_a_wrong_suite_is_answered_with_a_sentence(logs):
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    for suite in (options, "score_dialogue"):
        with pytest.raises(UsageError, match=r"The logs come first: fastscore.score\(logs, "):
            fastscore.score(suite, logs)
    with pytest.raises(UsageError, match=r"Make options of it: ScoreDialogue\(\)"):
        fastscore.score(logs, fastscore.ScoreDialogue)
    with pytest.raises(UsageError, match="Did you mean 'score_dialogue'"):
        fastscore.score(logs, "score_dialog")
    with pytest.raises(UsageError, match="The suite is of type dict; expected its name or"):
        fastscore.score(logs, {"lex_weight": 1.0})


def test_options_are_whole_numbers_or_floats_as_declared():
    assert fastscore.ScoreDialogue(lex_weight=1) == fastscore.ScoreDialogue(lex_weight=1.0)
    assert repr(fastscore.ScoreDialogue(lex_weight=1)).startswith("ScoreDialogue(lex_weight=1.0, ")
    assert fastscore.PreferenceShift(catalogue="x", match=None).match == "word"


def test_public_names_are_documented_and_import_lazily():
    for name in fastscore.__all__:
        assert getattr(fastscore, name) is not None
    with pytest.raises(AttributeError):
        fastscore.nothing  # noqa: B018
