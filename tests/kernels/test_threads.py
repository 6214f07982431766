"""Neither threads nor the rows beside a row change its result."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from fastscore_kernels import (
    cosine_pairs,
    count_shared_ngrams,
    distinct_counts_ragged,
    jaccard_csr,
    levenshtein_pairs,
    mean_pair_cosine_groups,
    ngram_copy_ratio,
    text_hash128,
)

from tests.kernels.test_cosine import vectors

ROWS = 20_000
RNG = np.random.default_rng(3)
LETTERS = "".join(RNG.choice([*"ab 你😀"], 500_000))
ENDS = np.cumsum(RNG.integers(0, 40, (2, ROWS)), axis=1)
FIRST, SECOND = ([LETTERS[a:b] for a, b in pairwise([0, *ends])] for ends in ENDS)
FIRST[20], SECOND[20] = LETTERS[:3_000], LETTERS[-3_000:]
MATRIX = vectors(60, 384)
OF_A, OF_B = RNG.integers(0, 60, (2, ROWS))
OFFSETS = np.append(0, np.cumsum(RNG.integers(0, 6, ROWS)))
MEMBERS = RNG.integers(0, 60, OFFSETS[-1])
STEPS = np.arange(OFFSETS[-1], dtype=np.int32)

KERNELS = {
    "levenshtein_pairs": lambda rows, **more: levenshtein_pairs(FIRST[rows], SECOND[rows], **more),
    "text_hash128": lambda rows, **more: text_hash128(FIRST[rows], **more),
    "a Series": lambda rows, **more: text_hash128(pl.Series(FIRST)[rows], **more),
    "count_shared_ngrams": lambda rows, **more: (
        count_shared_ngrams(FIRST[rows], SECOND[rows], 4, **more).T
    ),
    "ngram_copy_ratio": lambda rows, **more: ngram_copy_ratio(FIRST[rows], SECOND[rows], **more),
    "cosine_pairs": lambda rows, **more: cosine_pairs(MATRIX, OF_A[rows], OF_B[rows], **more),
    "mean_pair_cosine_groups": lambda rows, **more: mean_pair_cosine_groups(
        MATRIX, MEMBERS, ends(rows), 9, 7, **more
    ),
    "jaccard_csr": lambda rows, **more: jaccard_csr(
        (STEPS, ends(rows)), (STEPS, ends(rows)), both_empty=0.0, **more
    ),
    "distinct_counts_ragged": lambda rows, **more: np.diff(
        distinct_counts_ragged(MEMBERS.astype(np.int32), ends(rows), **more)[2]
    ),
}


def ends(rows):
    """Return the offsets of some rows, which may start late."""
    return OFFSETS[rows.start : rows.stop + 1]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_threads_and_neighbours_change_nothing(kernel):
    whole = kernel(slice(0, ROWS), threads=1)
    np.testing.assert_array_equal(kernel(slice(0, ROWS), threads=3), whole)
    for part in (slice(0, 1), slice(7, 60), slice(ROWS - 20, ROWS)):
        np.testing.assert_array_equal(kernel(part), whole[part])
