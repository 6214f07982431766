import numpy as np
import polars as pl
import pytest
from fastscore_kernels import text_hash128
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import murmur3_x64_128


def test_published_vectors():
    texts = ["", "hello", "The quick brown fox jumps over the lazy dog"]
    assert [f"{high:016x}{low:016x}" for high, low in text_hash128(texts).tolist()] == [
        "00000000000000000000000000000000",
        "cbd8a7b341bd9b025b1e906a48ae1d19",
        "e34bbc7bbc071b6c7a433ca9c49a9347",
    ]


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=40), max_size=4))
def test_equals_the_oracle(texts):
    expected = [murmur3_x64_128(text.encode()) for text in texts]
    assert text_hash128(texts).tolist() == expected


@pytest.mark.parametrize("length", [*range(34), 1_000, 100_003])
def test_every_length_of_tail(length):
    text = "".join(chr(33 + at % 90) for at in range(length))
    assert text_hash128([text]).tolist() == [murmur3_x64_128(text.encode())]


def test_layout_chunks_and_threads_change_nothing():
    texts = [f"text {at} 你好" * (at % 5) for at in range(70_000)]
    whole = text_hash128(pl.Series(texts), threads=2)
    assert whole.dtype == np.uint64
    np.testing.assert_array_equal(whole[100:150], text_hash128(texts[100:150], threads=1))


def test_nulls_are_refused():
    with pytest.raises(ValueError, match="null"):
        text_hash128(["a", None])
