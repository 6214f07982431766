"""Characters, tokens, targets, keywords and n-grams against their oracles."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastscore_kernels import (
    count_phrases,
    count_token_hits,
    find_phrases,
    index_character_ngrams,
    keyword_groups,
    nearest_by_character_ngrams,
    ngram_copy_ratio,
    number_hashes,
    number_ranges,
    number_texts,
    number_tokens,
    outer_whitespace,
    plain_words,
    replace_characters,
    string_changes,
)
from fastscore_kernels.targets import Targets
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import texts as naive_texts
from tests.oracles.kernels import copy_ratio, naive_keyword_groups, naive_numbers
from tests.oracles.ngrams import Published

texts = st.lists(
    st.text(st.sampled_from("aab  é汉😀\u0301&'-\n") | st.characters(codec="utf-8"), max_size=12)
)


def shouted(character):
    table = {"'": "", "&": " and ", "\n": " ", "-": "  ", "b": "汉b😀", "😀": "x"}
    return table.get(character, character.upper())


@given(texts)
def test_replaced_characters_oracle(given_texts):
    expected = naive_texts.replace_characters(given_texts, shouted)
    assert replace_characters(given_texts, shouted).to_list() == expected
    assert replace_characters(pl.Series(given_texts, dtype=pl.String), shouted).to_list() == (
        expected
    )


@given(
    st.lists(
        st.text(st.sampled_from("aAnN z9,-'\u0130\u212aé汉\n") | st.characters(codec="utf-8"))
    ),
    st.sets(st.sampled_from(["a", "an", "n", "k", "i"])),
)
def test_plain_words_oracle(given_texts, without):
    expected = naive_texts.plain_words(given_texts, sorted(without))
    assert plain_words(given_texts, without=sorted(without)).to_list() == expected


plain = st.lists(st.sampled_from(["a", "ab", "b", "abcdefghi"]), max_size=6).map(" ".join)


@st.composite
def phrases_of_owners(draw):
    """Draw texts, the text of each row, phrases, those of each owner, and each row's owner."""
    given_texts = draw(st.lists(plain, min_size=1, max_size=6))
    phrases = draw(st.lists(plain.filter(bool), min_size=1, max_size=6))
    phrase = st.lists(st.integers(0, len(phrases) - 1), max_size=6, unique=True)
    wanted = draw(st.lists(phrase, min_size=1, max_size=4))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, len(given_texts) - 1), st.integers(0, len(wanted) - 1)),
            max_size=12,
        )
    )
    return given_texts, [text for text, _ in rows], phrases, wanted, [owner for _, owner in rows]


@given(phrases_of_owners())
def test_counted_phrases_oracle(case):
    given_texts, text, phrases, wanted, owner = case
    offsets = np.cumsum([0, *map(len, wanted)])
    listed = np.concatenate([*map(np.array, wanted), []]).astype(np.int64)
    found = count_phrases(given_texts, text, phrases, (listed, offsets), owner)
    expected = naive_texts.count_phrases(given_texts, text, phrases, wanted, owner)
    assert list(zip(*(each.tolist() for each in found), strict=True)) == expected


CHARACTERS = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]


def test_no_other_character_has_a_plain_lower_case():
    others = CHARACTERS[128:]
    found = zip(others, plain_words(others).to_list(), strict=True)
    assert [(letter, word) for letter, word in found if word] == [("\u0130", "i"), ("\u212a", "k")]
    assert re.findall("[a-z0-9]", "".join(others).lower()) == ["i", "k"]  # of those two


@given(st.binary(max_size=40), st.data())
def test_numbered_ranges_oracle(data, drawn):
    places = st.tuples(st.integers(0, len(data)), st.integers(0, len(data))).map(sorted)
    ranges = drawn.draw(st.lists(places, max_size=20))
    known = {}
    expected = [known.setdefault(data[a:b], len(known)) for a, b in ranges]
    codes, firsts = number_ranges(
        np.frombuffer(data, np.uint8), [a for a, _ in ranges], [b for _, b in ranges]
    )
    assert codes.tolist() == expected
    assert firsts.tolist() == [expected.index(number) for number in range(len(known))]


def test_many_ranges_are_numbered():
    row = np.arange(5_000)
    data = (row[:, None] >> np.arange(13) & 1).astype(np.uint8).ravel()
    starts = np.concatenate((row, row[::-1])) * 13
    codes, firsts = number_ranges(data, starts, starts + 13)
    assert codes.tolist() == [*row, *row[::-1]]
    assert firsts.tolist() == row.tolist()
    with pytest.raises(ValueError, match=r"`starts` and `ends` hold 1 and 0 at position 0"):
        number_ranges(data, [1], [0])


@given(
    st.lists(st.sampled_from(["", "a", "b", "a text that lies outside", "a text that lies here"])),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 24)), max_size=30),
)
def test_numbered_texts_of_gathered_rows_oracle(given_texts, rows):
    base = pl.Series([*given_texts, "a text that lies outside"], dtype=pl.String)
    gathered = base.gather([row % len(base) for row, _ in rows])
    # views that begin at one address may be of different lengths
    cut = gathered.to_frame("text").select(
        pl.col("text").str.head(pl.Series([size for _, size in rows], dtype=pl.Int64))
    )
    column = pl.concat([gathered.rename("text"), cut["text"], gathered.rename("text")])
    known = {}
    expected = [known.setdefault(text, len(known)) for text in column]
    codes, firsts = number_texts(column)
    assert codes.tolist() == expected
    assert firsts.tolist() == [expected.index(number) for number in range(len(known))]


@given(texts)
def test_numbered_tokens_oracle(given_texts):
    found = number_tokens(given_texts)
    sequences, vocabulary = naive_texts.number_tokens(given_texts)
    cuts = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    assert [found.ids[a:b].tolist() for a, b in cuts] == sequences
    assert found.vocabulary.to_list() == vocabulary


tokens = st.lists(st.integers(0, 5), max_size=7)
targets = st.lists(st.lists(tokens, max_size=3), min_size=1, max_size=4)


def flat(rows, dtype):
    values = [value for row in rows for value in row]
    return np.array(values, dtype), np.append(0, np.cumsum([len(row) for row in rows], dtype=int))


@given(targets, st.data())
def test_hits_and_phrases_oracle(given_targets, data):
    place = st.integers(0, len(given_targets) - 1)
    queries = data.draw(st.lists(st.tuples(st.lists(st.integers(0, 6), max_size=3), place)))
    all_texts = [text for target in given_targets for text in target]
    rows, start = [], 0
    for target in given_targets:
        rows.append(list(range(start, start + len(target))))
        start += len(target)
    packed = Targets(flat(all_texts, np.int32), flat(rows, np.int64))
    asked = flat([query for query, _ in queries], np.int32)
    owner = np.array([target for _, target in queries], np.int64)
    plain_queries = [query for query, _ in queries]
    plain_targets = [given_targets[target] for _, target in queries]
    hits = count_token_hits(asked, owner, packed)
    assert hits.tolist() == naive_texts.count_token_hits(plain_queries, plain_targets)
    found = find_phrases(asked, owner, packed)
    assert found.tolist() == naive_texts.find_phrases(plain_queries, plain_targets)


WHITESPACE = "\t\x0b\x1c\x1f \x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
edged = st.lists(
    st.text(st.sampled_from(WHITESPACE + "ab\u200b\u2007é汉😀Â\u1681\u3001"), max_size=4)
    | st.text()
)


@given(edged)
def test_outer_whitespace_oracle(given_texts):
    assert outer_whitespace(given_texts).tolist() == naive_texts.outer_whitespace(given_texts)


def test_outer_whitespace_is_what_strip_takes_for_every_code_point():
    alone = pl.Series(CHARACTERS)
    expected = [character.isspace() for character in CHARACTERS]
    for column in (alone, alone + "汉", "汉" + alone):
        assert outer_whitespace(column).tolist() == expected
    assert outer_whitespace(["a" + "".join(CHARACTERS) + "b"]).tolist() == [False]


@given(
    st.lists(st.sampled_from(["", "a", "b", "汉", "long enough to lie outside", "0123456789ab"]))
)
def test_string_changes_oracle(given_texts):
    expected = naive_texts.string_changes(given_texts)
    assert string_changes(given_texts).tolist() == expected
    assert string_changes(pl.Series(given_texts, dtype=pl.String)).tolist() == expected


def test_string_changes_across_chunks_and_slices():
    rows = [f"dialogue of many rows {row // 4096}" for row in range(20_000)]
    expected = naive_texts.string_changes(rows)
    column = pa.array(rows, pa.string_view())
    assert string_changes(column).tolist() == expected
    assert string_changes(column.slice(8191)).tolist() == [False, *expected[8192:]]
    assert string_changes([]).tolist() == []


# --- keywords and numbers of distinct values


ALPHABET = "ab波动é߿一丁😀🙂"
TEXTS = st.lists(
    st.text(alphabet=ALPHABET, max_size=12)
    | st.text(alphabet="波动一二", max_size=30)
    | st.text(alphabet=ALPHABET + " ,的是", min_size=20, max_size=150),
    max_size=6,
)
KEYWORDS = st.text(alphabet=ALPHABET, min_size=1, max_size=3) | st.text(
    alphabet="波动一", min_size=1, max_size=4
)
GROUPS = st.lists(st.lists(KEYWORDS, max_size=3), max_size=5)


@given(TEXTS, GROUPS, st.sampled_from((1, 40)))
def test_keyword_groups_oracle(texts, groups, repeat):
    groups = groups * repeat
    bits = keyword_groups(texts, groups)
    assert bits.shape == (len(texts), max(1, -(-len(groups) // 64)))
    found = [
        {g for g in range(64 * bits.shape[1]) if int(row[g // 64]) >> (g % 64) & 1} for row in bits
    ]
    assert found == naive_keyword_groups(texts, groups)


@given(
    st.lists(
        st.none()
        | st.text("ab\0é", max_size=3)
        | st.text(max_size=20)
        # texts of a few lengths that differ in one byte
        | st.tuples(st.sampled_from((7, 8, 9, 16, 17, 31, 33, 64, 70)), st.integers(0, 69)).map(
            lambda drawn: "a" * drawn[1] + "b" + "a" * (drawn[0] - drawn[1])
        ),
        max_size=40,
    )
)
def test_number_texts_oracle(texts):
    codes, firsts = number_texts(texts)
    assert (codes.tolist(), firsts.tolist()) == naive_numbers(texts)
    views = pl.Series(["before", *texts], dtype=pl.String)[1:]
    assert number_texts(views)[0].tolist() == codes.tolist()


@given(st.lists(st.integers(0, 5) | st.integers(0, 2**64 - 1), max_size=40))
def test_number_hashes_oracle(hashes):
    codes, firsts = number_hashes(np.array(hashes, np.uint64))
    assert (codes.tolist(), firsts.tolist()) == naive_numbers(hashes)


# --- copied n-grams of words


spoken = st.one_of(
    st.sampled_from(
        ["a", "b", "A", "ab", "don't", "DON'T", "x'y'z", "'", "''", "é", "你", "1", "_"]
    ),
    st.text("aB1' -é你\u212a", max_size=6),
)
turns = st.lists(spoken, max_size=14).map(" ".join)


@st.composite
def pairs(draw):
    """Draw two turns, of which the second may quote the first."""
    system, user = draw(turns), draw(turns)
    start, stop = sorted(draw(st.tuples(st.integers(0, 40), st.integers(0, 40))))
    return system, user + draw(st.sampled_from(["", " ", "'"])) + system[start:stop]


@given(st.lists(pairs(), max_size=4), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_copied_ngrams_oracle(rows, orders):
    system, user = [row[0] for row in rows], [row[1] for row in rows]
    got = ngram_copy_ratio(system, user, orders)
    assert got.tolist() == [copy_ratio(s, u, orders) for s, u in rows]


# --- candidates nearest by character n-grams


def spaced(texts):
    """Lay texts out as the kernel takes them."""
    joined = " " + "".join(f"{text} " for text in texts)
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    return points, np.cumsum([0, *(len(text) + 1 for text in texts)])


def nearest(groups, texts, top, least, threads=None):
    index = index_character_ngrams(
        *spaced([value for group in groups for value in group]), np.cumsum([0, *map(len, groups)])
    )
    out = nearest_by_character_ngrams(
        index, *spaced(texts), top=top, least=least, threads=threads
    ).reshape(len(texts), len(groups), top)
    return [[[row for row in best if row >= 0] for best in text] for text in out.tolist()]


words = st.lists(st.text("abé\U0001f600", min_size=1, max_size=6), min_size=1, max_size=3)
values = st.lists(words.map(" ".join), min_size=1, max_size=6, unique=True)
asked = st.lists(st.lists(st.text("abcé\U0001f600", max_size=7), max_size=4).map(" ".join))


@given(st.lists(values, min_size=1, max_size=3), asked, st.integers(1, 4), st.floats(0.05, 1.0))
def test_equals_cosines_of_scikit_learn(groups, texts, top, least):
    found = nearest(groups, texts, top, least)
    published = {tuple(group): Published(group) for group in groups}
    first = np.cumsum([0, *map(len, groups)])
    for text, by_group in zip(texts, found, strict=True):
        for group, before, rows in zip(groups, first[:-1], by_group, strict=True):
            expected = published[tuple(group)].cosines(text)
            got = [expected[row - before] for row in rows]
            others = [c for i, c in enumerate(expected) if i + before not in rows]
            assert len(set(rows)) == len(rows) <= top
            assert all(cosine >= least - 1e-12 for cosine in got)
            assert got == pytest.approx(sorted(got, reverse=True), abs=1e-12)
            if len(rows) < top:
                assert all(cosine < least + 1e-12 for cosine in others)
            else:
                assert max(others, default=0.0) <= min(got) + 1e-12
