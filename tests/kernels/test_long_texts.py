"""Edit distances of texts of more than 256 characters, computed side by side in lanes."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from fastscore_kernels import levenshtein_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import often
from tests.oracles.kernels import levenshtein

ALPHABETS = ("ab", "abcdefghijklmnopqrstuvwxyz ", "你好世界是的我在", "a你😀é")
# around words of 64 symbols, the four words of a short text, and the sixteen of a strip
SIZES = (1, 63, 64, 65, 255, 256, 257, 319, 320, 321, 511, 512, 513, 1023, 1024, 1025)


def drawn(rng: np.random.Generator, letters: str, size: int) -> str:
    return "".join(rng.choice(list(letters), size))


def edited(rng: np.random.Generator, text: str, edits: int) -> str:
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
            st.sampled_from(ALPHABETS),
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
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    seconds, after = done.stdout.split()
    assert float(seconds) < 5.0  # it takes milliseconds on an idle machine
    assert int(after) == int(levenshtein_pairs(["kitten" * 100], ["sitting" * 100])[0])
    assert signal.SIGINT.name not in done.stderr
