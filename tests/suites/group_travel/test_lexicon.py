"""Word lists of one's own, and their hash in the signature."""

import hashlib
from pathlib import Path

import pytest

from fastscore.errors import UsageError
from fastscore.signature import signature
from fastscore.suites.group_travel import SUITE, GroupTravel, lexicon
from fastscore.suites.group_travel.lexicon import load_lexicon
from tests.suites.group_travel.travelling import dialogue, turn

BUILT_IN = Path(lexicon.__file__).parent / "lexicon.toml"


def changed(folder: Path, old: str, new: str) -> str:
    text = BUILT_IN.read_text(encoding="utf-8")
    assert old in text
    path = folder / "words.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(path)


def test_a_lexicon_of_ones_own(tmp_path: Path) -> None:
    path = changed(tmp_path, "'least misery',", "'least misery', 'seafood',")
    turns = [turn("System", "sys_present_plan", "Seafood!")]
    assert dialogue(*turns)["M4b"] == 0.0
    row = dialogue(*turns, options=GroupTravel(lexicon=path))
    assert (row["M4b"], row["lexicon_version"]) == (1.0, "1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("filler = [", "fillers = [", "unknown key fillers"),
        ('version = "1"', "", "version is missing"),
        ("[slot_generic]", '[slot_generic]\nhotel = ["x"]', "unknown key slot_generic.hotel"),
        ("'least misery'", "'least (misery'", "a regular expression"),
        ('"hostels?"', "7", "rooms.shared is 7"),
        ('version = "1"', "version = ", "not TOML"),
    ],
)
def test_a_faulty_lexicon_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(UsageError, match=r"\S") as refused:
        load_lexicon(path)
    assert message in f"{refused.value.message} {refused.value.hint}"
    assert path in str(refused.value)


def test_the_signature_has_the_hash_of_the_words(tmp_path: Path) -> None:
    def signed(path: str) -> str:
        return signature(SUITE, GroupTravel(lexicon=path), None)

    # the built-in file by its content, as any other
    digest = hashlib.blake2b(BUILT_IN.read_bytes(), digest_size=8).hexdigest()
    assert f"|lexicon=blake2b:{digest}|" in signed("")
    assert signed("") == signed(str(BUILT_IN))
    assert signed("") != signed(changed(tmp_path, "'least misery',", ""))
