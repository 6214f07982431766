"""Bytes of a block that are chosen by bits, copied in every way that a processor may take."""

import numpy as np
import pytest
from fastscore_jit.bits import after_odd
from fastscore_jit.compiling import kernel
from fastscore_jit.memory import _copy_runs, copy_chosen
from hypothesis import given
from hypothesis import strategies as st

words = st.integers(0, 2**64 - 1)


@kernel("out(uint8[:]), int64, uint8[:], uint64[:]", returns="int64", fastmath=False)
def by_runs(target, to, source, bits):
    return _copy_runs(target, to, source, 0, bits[0])


@kernel("out(uint8[:]), int64, uint8[:], uint64[:]", returns="int64", fastmath=False)
def by_this_processor(target, to, source, bits):
    return copy_chosen(target, to, source, 0, bits[0])


@pytest.mark.parametrize("copy", [by_runs, by_this_processor])
@given(bits=words, block=st.binary(min_size=64, max_size=64), to=st.integers(0, 5))
def test_bytes_with_a_set_bit_are_copied_one_after_another(copy, bits, block, to):
    source = np.frombuffer(block + bytes(64), np.uint8)
    target = np.full(5 + 128, 255, np.uint8)
    expected = [byte for place, byte in enumerate(block) if bits >> place & 1]
    count = copy(target, to, source, np.array([bits], np.uint64))
    assert count == len(expected)
    assert target[to : to + count].tolist() == expected
    assert (target[:to] == 255).all()


@given(bits=words)
def test_a_bit_is_marked_where_an_odd_number_is_set_up_to_it(bits):
    found = int(after_odd(np.uint64(bits)))
    assert found == sum(((bits & (2 << place) - 1).bit_count() & 1) << place for place in range(64))
