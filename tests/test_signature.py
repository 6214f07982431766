"""Options of suites, their names in signatures, and refusals before a run."""

from dataclasses import dataclass

import pytest

import fastscore
from fastscore.errors import UsageError
from fastscore.run.signature import EmbedderIdentity, signature
from fastscore.settings.options import build_options, option
from fastscore.suites.registry import load_suite
from fastscore.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    window: int = option(3, help="A window.", minimum=1, maximum=9)
    lexicon: str = option("", help="A file.", names_file=True)
    verbose: bool = option(False, help="Talk.", signed=False)


def test_a_signature_holds_versions_options_and_model():
    suite = load_suite("score_dialogue")
    embedder = EmbedderIdentity(
        recipe="tiny", fingerprint="0123456789abcdef", precision="fp32", dim=64
    )
    assert signature(suite, build_options(suite.options, {"lex_weight": 0.25}), embedder) == (
        f"fastscore={__version__}|suite=score_dialogue.1|lex_weight=0.25|semantic=calibrated|"
        "baseline_pairs=20000|baseline_seed=0|max_text=1000000|pppl_model=none|pppl_weight=0.0|embedder=tiny@01234567,fp32,dim=64"
    )


def test_files_are_signed_by_content_and_unsigned_options_are_left_out(tmp_path):
    suite = load_suite("score_dialogue")

    def signed(**values):
        return signature(suite, build_options(Options, values), None)

    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("x = 1")
    second.write_text("x = 1")
    assert signed(lexicon=str(first)) == signed(lexicon=str(second)) != signed()
    before = signed(lexicon=str(first))
    first.write_text("x = 2")
    assert signed(lexicon=str(first)) != before
    assert "lexicon=none" in signed()
    assert "verbose" not in signed(verbose=True)
    with pytest.raises(UsageError, match=r"lexicon .* cannot be read"):
        signed(lexicon=str(tmp_path / "gone.toml"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lex_weight": float("nan")}, "expected a number from 0 to 1"),
        ({"lex_weight": "1"}, "expected float"),
        ({"semantic": "jacard"}, "Did you mean 'jaccard'"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_named(given, message):
    with pytest.raises(UsageError, match=message):
        fastscore.ScoreDialogue(**given)


def test_an_unknown_option_is_named():
    with pytest.raises(TypeError, match="lex_wait"):
        fastscore.ScoreDialogue(lex_wait=1.0)
    with pytest.raises(TypeError, match=r"fastscore\.ScoreDialogue\(lex_weight=\.\.\.\)\)$"):
        fastscore.score("logs", "score_dialogue", lex_weight=1.0)
    with pytest.raises(TypeError, match="Did you mean 'output'"):
        fastscore.score("logs", "score_dialogue", outptu="run")
    with pytest.raises(UsageError, match="Did you mean 'lex_weight'"):
        build_options(fastscore.ScoreDialogue, {"lex_wait": 1.0})


def test_options_are_whole_numbers_or_floats_as_declared():
    assert fastscore.ScoreDialogue(lex_weight=1) == fastscore.ScoreDialogue(lex_weight=1.0)
    assert repr(fastscore.ScoreDialogue(lex_weight=1)).startswith("ScoreDialogue(lex_weight=1.0, ")
    assert fastscore.PreferenceShift(catalogue="x", match=None).match == "word"


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        (fastscore.ScoreDialogue, r"Make options of it: ScoreDialogue\(\)"),
        ("score_dialog", "Did you mean 'score_dialogue'"),
        ({"lex_weight": 1.0}, "The suite is of type dict; expected its name or"),
    ],
)
def test_a_wrong_suite_is_answered_with_a_sentence(suite, message):
    with pytest.raises(UsageError, match=message):
        fastscore.score("logs", suite)
