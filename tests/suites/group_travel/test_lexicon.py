"""Word lists of one's own, and their hash in the signature."""

import hashlib
from pathlib import Path

from fastscore.run.signature import signature
from fastscore.suites.group_travel import SUITE, GroupTravel
from tests.suites.group_travel.travelling import dialogue, turn
from tests.suites.reading import changed_lexicon, lexicon_of


def test_a_lexicon_of_ones_own(tmp_path: Path) -> None:
    path = changed_lexicon(
        "group_travel", tmp_path, "'least misery',", "'least misery', 'seafood',"
    )
    turns = [turn("System", "sys_present_plan", "Seafood!")]
    assert dialogue(*turns)["M4b"] == 0.0
    row = dialogue(*turns, options=GroupTravel(lexicon=path))
    assert (row["M4b"], row["lexicon_version"]) == (1.0, "1")


def test_the_signature_has_the_hash_of_the_words(tmp_path: Path) -> None:
    def signed(path: str) -> str:
        return signature(SUITE, GroupTravel(lexicon=path), None)

    # the built-in file by its content, as any other
    digest = hashlib.blake2b(lexicon_of("group_travel").read_bytes(), digest_size=8).hexdigest()
    assert f"|lexicon=blake2b:{digest}|" in signed("")
    assert signed("") == signed(str(lexicon_of("group_travel")))
    assert signed("") != signed(changed_lexicon("group_travel", tmp_path, "'least misery',", ""))
