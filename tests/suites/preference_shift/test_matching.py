"""Extraction against the plain scorer's: every value is tried on every text."""

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.suites.preference_shift import concepts as matching
from fastscore.suites.preference_shift.catalogue import Record, compile_records
from fastscore.suites.preference_shift.concepts import (
    ALIAS_SCHEMA,
    Concepts,
    concepts_of,
    is_word_character,
    matcher_of,
)
from tests.oracles import preference_shift_concepts as plain
from tests.suites.preference_shift.conversing import options


def concepts_from(values: dict[str, list[str]], plot: str = "") -> Concepts:
    """Make concepts of fields of values, and of a plot's keywords."""
    catalogue = compile_records([Record("record 1", None, {**values, "plot": plot})])
    fields = ",".join(name for name in values if name in catalogue.fields)
    return concepts_of(
        catalogue, options("none.json", fields=fields, plot_keywords="plot" in catalogue.fields)
    )


def plainly(
    texts: list[str], values: dict[str, list[str]], plot: str = "", *, words: bool
) -> list[list[str]]:
    catalogue = plain.make_catalogue([{**values, "plot": plot}])
    profile = plain.Profile(plot=True, on_words=words)
    return [sorted(plain.concepts(text, catalogue, profile)) for text in texts]


def extracted(texts: list[str], concepts: Concepts, *, words: bool) -> list[list[str]]:
    matcher = matcher_of(concepts, pl.DataFrame(schema=ALIAS_SCHEMA), words=words)
    return concepts.names(matcher.extract(pl.Series(texts, dtype=pl.String))).to_list()


PIECES = st.sampled_from(
    ["her", "the", "re", "x", "X", "war", "star wars", "wars", "é", "É", "e\u0301", "İ", "i\u0307",
     "ß", "Σ", "σ", "ς", "ΑΣ", "'", "-", "_", ".", "!", " ", "\n", "\t", "\x00", "3", "1979", "²",
     "電影", "影", "ラ", "ー", "ไทย", "ក", "ad", "film", "İstanbul", "K", "k", "🎬", "the "],
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8).map("".join)
VALUES = st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), max_size=6)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4, unique=True),
    names=VALUES,
    actors=VALUES,
    words=st.booleans(),
)
def test_values_are_found_as_by_the_plain_scorer(
    texts: list[str], names: list[str], actors: list[str], words: bool
) -> None:
    values = {"name": [*names, "fixed"], "actor": [*actors, *names[:2]], "genre": names}
    expected = plainly(texts, values, words=words)
    assert extracted(texts, concepts_from(values), words=words) == expected


WORDS = st.sampled_from(
    ["crew", "Crew", "hunt", "hunted", "planet", "cat", "film", "people", "does", "x", "CREWS",
     "thé", "crewé", "K"]
)  # fmt: skip
SPOKEN = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", "", "-", "5", "'", "ß"])), max_size=12
).map(lambda pairs: "".join(word + between for word, between in pairs))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(SPOKEN, min_size=1, max_size=5, unique=True), plot=SPOKEN)
def test_the_first_three_plot_keywords_count(texts: list[str], plot: str) -> None:
    values = {"name": ["crew", "planet"]}
    expected = plainly(texts, values, plot, words=True)
    assert extracted(texts, concepts_from(values, plot), words=True) == expected


@pytest.mark.parametrize("limit", [1, 7, 1 << 18])
def test_neither_parts_nor_order_change_a_text(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_CHARACTERS_PER_PART", limit)
    values, plot = {"name": ["war", "her", "star wars"]}, "war hunted crew"
    concepts = concepts_from(values, plot)
    texts = ["Star Wars", "", "her war", "İ her", "toward", "", "the crew hunted her war crew"]
    expected = plainly(texts, values, plot, words=True)
    assert extracted(texts, concepts, words=True) == expected
    assert extracted(texts[::-1], concepts, words=True) == expected[::-1]
    assert extracted([], concepts, words=True) == []


@pytest.mark.parametrize(
    ("text", "value", "word", "substring"),
    [
        ("an award", "war", False, True),
        ("war!", "war", True, True),
        ("WAR", "war", True, True),
        ("there", "her", False, True),
        ("her", "her", True, True),
        ("X-Men", "x", True, True),
        ("explore x2", "x", False, True),
        ("x_y", "x", False, True),
        ("Amélie", "am", False, True),
        ("Ame\u0301lie", "ame", False, True),
        ("Amélie", "amelie", False, False),
        ("我喜欢星球大战吗", "星球大战", True, True),
        ("私はアリエルが好き", "アリエル", True, True),
        ("ดูหนังไทยกัน", "หนัง", True, True),
        ("phim hoạt hình", "hình", True, True),
        ("foo!wow", "!wow", True, True),
        ("it's", "it", True, True),
        ("1917!", "1917", True, True),
        ("(1979)", "1979", True, True),
        ("21979", "1979", False, True),
        ("9½ weeks", "9", False, True),
        ("C3PO", "3", False, True),
        ("한국영화", "한국", False, True),
    ],
)
def test_words_end_where_the_specification_says(
    text: str, value: str, word: bool, substring: bool
) -> None:
    concepts = concepts_from({"name": [value]})
    assert bool(extracted([text], concepts, words=True)[0]) is word
    assert bool(extracted([text], concepts, words=False)[0]) is substring


def test_only_one_character_grows_in_lower_case() -> None:
    growing = [chr(code) for code in range(0x110000) if len(chr(code).lower()) != 1]
    assert growing == [matching._GROWS]


def test_characters_of_words_are_those_of_the_specification() -> None:
    points = np.arange(0x110000, dtype=np.uint32)
    found = is_word_character(points)
    sample = np.concatenate((np.arange(0x3100), np.arange(0x3100, 0x110000, 97)))
    expected = [plain.is_word_character(chr(code)) for code in sample.tolist()]
    assert found[sample].tolist() == expected


def test_values_of_every_control_character_still_have_a_separator() -> None:
    value = "a" + "".join(map(chr, range(0x20))) + "b"
    concepts = concepts_from({"name": [value, "c"]})
    found = extracted([value, "c", "cc", "c d"], concepts, words=True)
    assert found == [[f"name={value}"], ["name=c"], [], ["name=c"]]
