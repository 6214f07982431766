import numpy as np
import pytest
from fastscore_kernels import bucket_starts, distinct_ids, find_ids
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.ids import distinct, find

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
    first, second = columns(sorted(set(among)))
    return find_ids(*columns(wanted), first, second, bucket_starts(first)).tolist()


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
    assert found(wanted, among) == find(wanted, sorted(set(among)))


def test_by_hand():
    ids = as_ids([(7, 1), (3, 9), (7, 0), (3, 9), (7, 1)])
    first, second, positions, inverse = distinct_ids(ids)
    assert first.tolist() == [3, 7, 7]
    assert second.tolist() == [9, 0, 1]
    assert positions.tolist() == [1, 2, 0]
    assert inverse.tolist() == [2, 0, 1, 0, 2]
    starts = bucket_starts(first)
    assert find_ids(*columns([(7, 1), (7, 2), (3, 9)]), first, second, starts).tolist() == [
        2,
        -1,
        0,
    ]


def test_one_first_word_for_all():
    """Ids that are no hashes end up in one bucket, and are found all the same."""
    among = [(5, other) for other in range(300)]
    assert found([(5, 299), (4, 0), (5, 300), (6, 1)], among) == [299, -1, -1, -1]
    assert found([(other, 0) for other in range(300)], [(9, 0), (250, 0)])[8:11] == [-1, 0, -1]


def test_many_hashes_are_all_found():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**64, (5000, 2), dtype=np.uint64)
    first, second, positions, inverse = distinct_ids(np.concatenate([ids, ids[::-1]]))
    np.testing.assert_array_equal(ids[positions], np.column_stack((first, second)))
    np.testing.assert_array_equal(inverse[:5000], inverse[:4999:-1])
    places = find_ids(*np.ascontiguousarray(ids.T), first, second, bucket_starts(first))
    np.testing.assert_array_equal(places, inverse[:5000])


def test_wrong_arguments_are_refused():
    words = np.zeros(3, np.uint64)
    with pytest.raises(ValueError, match="expected uint64 of shape"):
        distinct_ids(np.zeros((3, 2), np.int64))
    with pytest.raises(ValueError, match="made of other ids"):
        find_ids(words, words, words, words, bucket_starts(words[:2]))
    with pytest.raises(ValueError, match="`second` has 2"):
        find_ids(words, words[:2], words, words, bucket_starts(words))
