"""Signatures and options: the settings in a signature, and refusals before a run."""

from dataclasses import dataclass

import pytest

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

    def signed(**values: object) -> str:
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
