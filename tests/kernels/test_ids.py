import tracemalloc

import numpy as np
import pytest
from fastscore_kernels import distinct_ids, index_ids
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import distinct, find

TOP = 2**64 - 1
# Few words, so that many ids share one, or both.
FEW = st.sampled_from([0, 1, 2, 2**63, TOP])
WORD = FEW | st.integers(0, TOP)
IDS = st.lists(st.tuples(WORD, FEW), max_size=40)


def as_ids(pairs):
    return np.array(pairs, np.uint64).reshape(-1, 2)


def columns(pairs):
    return np.ascontiguousarray(as_ids(pairs).T)


def found(wanted, among):
    return index_ids([tuple(columns(among))]).find(as_ids(wanted)).tolist()


@given(IDS)
def test_distinct_ids_equal_the_oracle(pairs):
    first, second, positions, inverse = distinct_ids(as_ids(pairs))
    expected = distinct(pairs)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected[0]
    assert positions.tolist() == expected[1]
    assert inverse.tolist() == expected[2]


@given(IDS, IDS)
def test_found_ids_equal_the_oracle(wanted, among):
    wanted = wanted + among[::2]
    among = sorted(set(among))
    assert found(wanted, among) == find(wanted, among)


@given(IDS, st.lists(IDS, max_size=6), st.integers(0, 6))
def test_ids_of_groups_that_came_one_by_one_are_found_in_the_first(wanted, groups, known):
    """An index of the first groups finds what it found, though a larger one shares its slots."""
    groups = [tuple(columns(sorted(set(group)))) for group in groups]
    few = index = index_ids(groups[:known])
    for stop in range(known, len(groups) + 1):
        index = index_ids(groups[:stop], index)
    for held, of in ((groups, index), (groups[:known], few)):
        pairs = [list(zip(*(words.tolist() for words in group), strict=True)) for group in held]
        wanted = wanted + [pair for group in pairs for pair in group]
        expected = {
            pair: (number << 32) + row
            for number, group in reversed(list(enumerate(pairs)))
            for row, pair in enumerate(group)
        }
        assert of.find(as_ids(wanted)).tolist() == [expected.get(pair, -1) for pair in wanted]


def test_a_look_up_of_few_ids_allocates_as_much_in_any_index():
    ids = np.random.default_rng(1).integers(0, 2**64, (2, 200_000), np.uint64)
    index, few = index_ids([tuple(ids)]), np.ascontiguousarray(ids[:, :100].T)
    tracemalloc.start()
    assert index.find(few).tolist() == list(range(100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000


def test_by_hand():
    ids = as_ids([(7, 1), (3, 9), (7, 0), (3, 9), (7, 1)])
    first, second, positions, inverse = distinct_ids(ids)
    assert first.tolist() == [3, 7, 7]
    assert second.tolist() == [9, 0, 1]
    assert positions.tolist() == [1, 2, 0]
    assert inverse.tolist() == [2, 0, 1, 0, 2]
    index = index_ids([(first, second), tuple(columns([(7, 2), (7, 1)]))])
    wanted = as_ids([(7, 1), (7, 2), (3, 9), (3, 8)])
    assert index.find(wanted).tolist() == [2, 2**32, 0, -1]


def test_one_first_word_for_all():
    """Ids that are no hashes are after one slot, and are found all the same."""
    among = [(5, other) for other in range(300)]
    assert found([(5, 299), (4, 0), (5, 300), (6, 1)], among) == [299, -1, -1, -1]
    assert found([(other, 0) for other in range(300)], [(9, 0), (250, 0)])[8:11] == [-1, 0, -1]


def test_wrong_arguments_are_refused():
    words = np.zeros(3, np.uint64)
    with pytest.raises(ValueError, match="expected uint64 of shape"):
        distinct_ids(np.zeros((3, 2), np.int64))
    with pytest.raises(ValueError, match="expected uint64 of shape"):
        index_ids([(words, words)]).find(words)
    with pytest.raises(ValueError, match="`second` has 2"):
        index_ids([(words, words[:2])])
    for wrong in (np.zeros(3, np.int64), np.zeros((3, 1), np.uint64), np.zeros(6, np.uint64)[::2]):
        with pytest.raises(ValueError, match="`second` has dtype"):
            index_ids([(words, wrong)])
