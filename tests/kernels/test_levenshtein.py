"""Edit distances against plain Python: short texts, and long ones in lanes."""

import signal
import textwrap

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastscore_kernels import levenshtein_pairs, levenshtein_similarity_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import often, python_process
from tests.oracles.kernels import levenshtein, levenshtein_similarity

ALPHABETS = (
    "ab",
    "abcdefgh XYZ,.",
    "你好世界是的",
    "aé\u0301ñß",
    "a😀🎉👍\U0010ffff",
    "ab你😀é\x00",
)
texts = st.sampled_from(ALPHABETS).flatmap(lambda letters: st.text(letters, max_size=24))
anything = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@st.composite
def pairs(draw):
    """Draw two texts that may share a prefix and a suffix, and may be equal."""
    start, middle, end = draw(texts), draw(st.one_of(texts, anything)), draw(texts)
    other = draw(st.one_of(texts, anything, st.just(middle)))
    repeat = draw(st.sampled_from([1, 1, 1, 4]))
    return start + middle * repeat + end, draw(st.sampled_from([start, ""])) + other + end


@given(st.lists(pairs(), max_size=3))
def test_equals_the_oracle(rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    assert levenshtein_pairs(a, b).tolist() == [levenshtein(x, y) for x, y in rows]
    expected = [levenshtein_similarity(x, y) for x, y in rows]
    assert levenshtein_similarity_pairs(a, b).tolist() == expected


def test_more_astral_symbols_than_a_pair_may_share():
    many = "".join(chr(0x1F300 + i) for i in range(90))
    a, b = [many, many[:60], "a" + many], [many[::-1], many[60:] + "b", "b" + many[1:] + "a"]
    assert levenshtein_pairs(a, b).tolist() == [
        levenshtein(x, y) for x, y in zip(a, b, strict=True)
    ]


ROWS = (
    ["kitten", "", "你好吗", "a longer text than a view holds"],
    ["sitting", "x", "你好", "a text"],
)


@pytest.mark.parametrize(
    "make",
    [
        list,
        pl.Series,
        tuple,
        lambda rows: pl.Series(rows, dtype=pl.Categorical),
        lambda rows: pl.Series(rows, dtype=pl.Enum([*dict.fromkeys(rows)])),
        pa.array,
        lambda rows: pa.array(rows, pa.large_string()),
        lambda rows: pa.array(rows, pa.string_view()),
        lambda rows: pa.array(rows).dictionary_encode(),
        lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
        lambda rows: pa.chunked_array([rows[:1], rows[1:]]).dictionary_encode(),
        lambda rows: pa.array(["skipped", *rows, "cut"]).slice(1, len(rows)),
        lambda rows: pa.array(["skipped", *rows, "cut"], pa.string_view()).slice(1, len(rows)),
        lambda rows: pl.Series(["skipped", *rows, "cut"]).slice(1, len(rows)),
        lambda rows: pl.concat([pl.Series(rows[:2]), pl.Series(rows[2:])], rechunk=False),
    ],
)
def test_every_layout_of_strings(make):
    expected = [levenshtein(x, y) for x, y in zip(*ROWS, strict=True)]
    assert levenshtein_pairs(make(ROWS[0]), make(ROWS[1])).tolist() == expected
    assert levenshtein_pairs(make(ROWS[0]), ROWS[1]).tolist() == expected


def test_repeated_pairs_and_pairs_that_look_repeated():
    rng = np.random.default_rng(5)
    same_edges = ["x" * 8 + "".join(rng.choice(list("abé"), 90)) + "y" * 8 for _ in range(12)]
    others = ["z" + text[::-1] + "w" for text in same_edges]
    very_long = ["".join(rng.choice(list("abc"), 600)) for _ in range(2)]
    rows = [(x, y) for x in same_edges for y in others] + [tuple(very_long)]
    rows = [rows[at] for at in rng.integers(0, len(rows), 600)] + rows[-1:] * 3
    expected = {row: levenshtein(*row) for row in set(rows)}
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    assert levenshtein_pairs(a, b).tolist() == [expected[row] for row in rows]
    assert levenshtein_pairs(b, a).tolist() == [expected[row] for row in rows]


# --- texts of more than 256 characters, side by side in lanes


LONG_ALPHABETS = ("ab", "abcdefghijklmnopqrstuvwxyz ", "你好世界是的我在", "a你😀é")
# around words of 64 symbols, the four words of a short text, and the sixteen of a strip
SIZES = (1, 63, 64, 65, 255, 256, 257, 319, 320, 321, 511, 512, 513, 1023, 1024, 1025)


def drawn(rng, letters, size):
    return "".join(rng.choice(list(letters), size))


def edited(rng, text, edits):
    """Insert, delete and replace some characters."""
    symbols = list(text)
    for _ in range(edits):
        place = int(rng.integers(0, max(1, len(symbols))))
        symbols[place : place + int(rng.integers(0, 2))] = ["ab你"[int(rng.integers(0, 3))]] * int(
            rng.integers(0, 2)
        )
    return "".join(symbols)


@settings(max_examples=often(12, 400), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(LONG_ALPHABETS),
            st.sampled_from(SIZES),
            st.sampled_from([257, 320, 513, 700]),
            st.sampled_from([None, 0, 3, 100]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 1 << 32),
)
def test_equals_the_oracle_around_words_and_strips(shapes, seed):
    rng = np.random.default_rng(seed)
    a, b = [], []
    for letters, m, n, edits in shapes:
        a.append(drawn(rng, letters, m))
        b.append(drawn(rng, letters, n) if edits is None else edited(rng, a[-1], edits))
    expected = [levenshtein(x, y) for x, y in zip(a, b, strict=True)]
    assert levenshtein_pairs(a, b).tolist() == expected
    assert levenshtein_pairs(b, a).tolist() == expected


@settings(max_examples=often(2, 60), deadline=None)
@given(st.integers(1100, 2000), st.integers(300, 2000), st.integers(0, 1 << 32))
def test_equals_the_oracle_over_several_strips(m, n, seed):
    rng = np.random.default_rng(seed)
    text = drawn(rng, "abcd ", m)
    other = drawn(rng, "abcd ", n) if seed % 2 else edited(rng, text, n % 200)
    assert levenshtein_pairs([text], [other]).tolist() == [levenshtein(text, other)]


def test_a_pair_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 1500, (60, 2))
    a, b = ([drawn(rng, "abc ", size) for size in column] for column in sizes.T)
    a[7], b[7] = a[3], b[3]
    together = levenshtein_pairs(a, b).tolist()
    assert together == [int(levenshtein_pairs([x], [y])[0]) for x, y in zip(a, b, strict=True)]
    assert levenshtein_pairs(a[::-1], b[::-1]).tolist() == together[::-1]


@pytest.mark.parametrize("edits", [0, 1, 511, 512, 513, 4095, 4096, 4097])
def test_distances_that_are_known(edits):
    """A symbol that the other text lacks costs one edit, and nothing costs less."""
    rng = np.random.default_rng(edits)
    base = list(drawn(rng, "abcdefgh ", 20_000))
    places = rng.choice(len(base), edits, replace=False)
    replaced, inserted = base.copy(), base.copy()
    for place in places:
        replaced[place] = "X"
    for place in sorted(places, reverse=True):
        inserted.insert(place, "X")
    text = "".join(base)
    other = ["".join(replaced), "".join(inserted)]
    assert levenshtein_pairs([text, text], other).tolist() == [edits, edits]
    assert levenshtein_pairs(other, [text, text]).tolist() == [edits, edits]


def test_more_symbols_than_lanes_have_codes_for():
    letters = "".join(chr(0x4E00 + code) for code in range(3000))
    turned = letters[1:] + letters[0]
    assert levenshtein_pairs([letters, letters], [turned, letters[::-1]]).tolist() == [2, 3000]


INTERRUPTED = """
    import os, random, signal, sys, threading, time
    from fastscore_kernels import levenshtein_pairs

    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = random.Random(1)
    a, b = ("".join(rng.choices("abcdefgh ", k=1_000_000)) for _ in range(2))
    levenshtein_pairs([a[:3000]], [b[:3000]])  # compiled and loaded
    sent = []

    def interrupt():
        time.sleep(0.5)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        levenshtein_pairs([a], [b], threads=1)
    except KeyboardInterrupt:
        print(f"{time.process_time() - sent[0]:.3f}")
    print(levenshtein_pairs(["kitten" * 100], ["sitting" * 100])[0])
"""


def test_an_interrupt_ends_the_distance_of_two_megabytes():
    done = python_process(textwrap.dedent(INTERRUPTED), check=True)
    seconds, after = done.stdout.split()
    assert float(seconds) < 5.0  # it takes milliseconds on an idle machine
    assert int(after) == int(levenshtein_pairs(["kitten" * 100], ["sitting" * 100])[0])
    assert signal.SIGINT.name not in done.stderr
