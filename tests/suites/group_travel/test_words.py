"""Normalising, folding, informative tokens, rooms, conflicts and theory: by hand."""

import hashlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.run.signature import signature
from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.group_travel.lexicon import (
    affirmed_tokens,
    load_lexicon,
    names_conflict,
    normalise,
    quotes_theory,
    wanted_rooms,
)
from tests.oracles.group_travel_words import norm
from tests.suites.group_travel.travelling import dialogue, turn
from tests.suites.reading import changed_lexicon, lexicon_of

WORDS = load_lexicon()


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Alexander’s Tavern", "alexanders tavern"),
        ("Café d'Orsay & Bar, Paris", "cafe dorsay and bar paris"),
        ("  STRASSE\tStraße ", "strasse strasse"),
        ("ﬁne № 5", "fine no 5"),
        ("हिन्दी खाना", "हनद खन"),
        ("各种菜", "各种菜"),
        ("--", ""),
    ],
)
def test_normal_texts(text: str, normal: str) -> None:
    assert normalise(pl.Series([text])).to_list() == [normal]


@given(st.lists(st.none() | st.text(max_size=20), max_size=5))
def test_normal_texts_by_the_steps_of_the_definition(texts: list[str | None]) -> None:
    expected = [None if text is None else norm(text) for text in texts]
    assert normalise(pl.Series(texts, dtype=pl.String)).to_list() == expected


@pytest.mark.parametrize(
    ("preference", "rooms"),
    [
        ("private room rather than a shared room", ["private"]),
        ("not a shared room", ["entire", "private"]),
        ("We don't want to share a room; an entire home is best", ["entire"]),
        ("Anything but hostels", ["entire", "private"]),
        ("entire apartments, or separate rooms", ["entire", "private"]),
        ("a place to ourselves or our own room", ["entire", "private"]),
        ("no private room or shared room", ["shared"]),
        ("no entire home, no private room and no dorm", []),
        ("we share room and board", []),
        ("close to downtown", []),
        ("not too far, but a private bedroom", ["private"]),
        ("instead of any old hostel, whole villas", ["entire"]),
    ],
)
def test_rooms_that_are_wanted(preference: str, rooms: list[str]) -> None:
    assert wanted_rooms(pl.Series([preference, ""]), WORDS).to_list() == [rooms, []]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("We differ on food", True),
        ("There is a CONFLICT here", True),
        ("no conflict here", False),
        ("Conflict: no conflict among you", False),
        ("Conflict : none", False),
        ("no conflict: but we differ", True),
        ("There is not any real difference", False),
        ("not for one second is it balanced", True),
        ("without a doubt, opinions diverge", True),
        ("don't worry, conflicting wishes", True),
        ("No conflict or disagreement", False),
        ("a trade-off", True),
        ("a tradeoff and the middle ground", True),
        ("indifferent", False),
        ("no_conflict", False),
        ("We_differ", False),
        ("anything but a compromise", False),
        ("", False),
    ],
)
def test_conflicts_that_are_named(text: str, named: bool) -> None:
    assert names_conflict(pl.Series([text]), WORDS).to_list() == [named]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("We can include both cuisines", False),
        ("include-both rule", True),
        ("self select principle", True),
        ("Self-Selection rule", True),
        ("log-rolling across days", True),
        ("Strategy: least_misery.", True),
        ("parental  authority", True),
        ("parent budget hc", True),
        ("the parents decide", True),
        ("apparent authority", False),
        ("sub-groups split up", True),
        ("intergenerational fairness", True),
        ("generational wealth", False),
        ("nash", True),
        ("gnash", False),
        ("Higher pref with compensation principle", True),
        ("a snake_case word", True),
        ("½u_s", False),
        ("u_s½", False),
        ("½ u_s!", True),
        ("Borda counts", False),
    ],
)
def test_theory_that_is_quoted(text: str, quoted: bool) -> None:
    assert quotes_theory(pl.Series([text]), WORDS).to_list() == [quoted]


@pytest.mark.parametrize(
    ("text", "affirmed"),
    [
        ("no spicy thai food today, museums rather than the zoo", "museums"),
        ("I do not really feel like eating Italian", "i do"),
        ("Italian rather than any other Thai place in town", "italian"),
        ("anything but sushi; tapas", "tapas"),
        ("nothing notable", "nothing notable"),
        ("No", ""),
    ],
)
def test_tokens_before_which_their_clause_has_no_negator(text: str, affirmed: str) -> None:
    found = affirmed_tokens(pl.Series([text]), WORDS)["token"].to_list()
    assert " ".join(found).split() == affirmed.split()


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
