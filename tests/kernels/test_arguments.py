"""Wrong arguments of kernels: each is named before a kernel reads it."""

import re

import fastscore_kernels as kernels
import numpy as np
import polars as pl
import pytest
from fastscore_kernels.targets import Targets

from tests.kernels.test_cosine import vectors
from tests.kernels.test_sets import csr
from tests.kernels.test_texts import spaced

MATRIX = vectors(3, 4)
SUMS, OUT, WORDS = np.zeros(3, np.uint64), np.empty((2, 8), np.uint8), np.zeros(3, np.uint64)
ONE, TWO = csr([{1}]), csr([{1}, {2}])
BAG = (np.array([3], np.int32), np.array([1]), np.array([0, 1]))
POINTS, PLACES = spaced(["ab"])
NGRAMS = kernels.index_character_ngrams(POINTS, PLACES, [0, 1])
NEGATIVE = Targets(([-1], [0, 1]), ([0], [0, 1]))


def overlap(values, offsets):
    column = (np.array(values), np.array(offsets, np.int64))
    return kernels.jaccard_csr(column, column)


def rows_read(rows, places, out=OUT):
    return kernels.read_rows(-1, 0, np.array(rows), SUMS, out, np.array(places))


def nearest(offsets=PLACES, top=1, least=0.5):
    return kernels.nearest_by_character_ngrams(NGRAMS, POINTS, offsets, top=top, least=least)


def cosines(rows, matrix=MATRIX):
    return kernels.cosine_pairs(matrix, rows, [0])


OF_OFFSETS = {
    "is empty; expected one more offset": [],
    "within 0 and 2": [0, 3],
    "falls from 1 to 0 at position 1; expected": [1, 0, 2],
}
OF_GROUPS = (
    kernels.gini_ragged,
    kernels.segment_first_argmax,
    lambda values, offsets: kernels.segment_moments(values, offsets, 3),
    lambda values, offsets: kernels.distinct_counts_ragged(values.astype(np.int32), offsets),
    lambda values, offsets: kernels.mean_pair_cosine_groups(MATRIX, values, offsets, 5, 0),
    lambda values, offsets: overlap([1, 2], offsets),
)

CASES = [
    *(
        (
            lambda kernel=kernel, offsets=offsets: kernel(np.zeros(2, np.int64), offsets),
            ValueError,
            message,
        )
        for kernel in OF_GROUPS
        for message, offsets in OF_OFFSETS.items()
    ),
    # --- vectors
    (lambda: cosines([0], MATRIX.astype(np.float64)), ValueError, "float64"),
    (lambda: cosines([0], np.asfortranarray(MATRIX)), ValueError, "not C-contiguous"),
    (lambda: cosines([0], MATRIX[:, :2]), ValueError, "not C-contiguous"),
    (lambda: cosines([-1]), IndexError, "`rows_a` holds -1 at position 0"),
    (lambda: cosines([3]), IndexError, "0 to 2"),
    (lambda: cosines([0.0]), TypeError, "float64"),
    (lambda: cosines([[0]]), ValueError, "2 dimensions"),
    (lambda: cosines([0, 1]), ValueError, "`rows_a` has 2 rows and `rows_b` has 1"),
    (
        lambda: kernels.mean_pair_cosine_groups(MATRIX, [0, 1], [0, 2], 0, 0),
        ValueError,
        "`pairs` is 0",
    ),
    (
        lambda: kernels.max_cosine_ragged(MATRIX, [0], [0, 1], [1], [0, 0, 1]),
        ValueError,
        "`rows` has 1 rows and `groups` has 2",
    ),
    (
        lambda: kernels.max_cosine_ragged(MATRIX, [0], [-2], [1], [0, 1]),
        IndexError,
        "`groups` holds -2 at position 0",
    ),
    *(
        (lambda drawn=drawn: kernels.mt19937_pairs(*drawn), error, "expected")
        for error, drawn in (
            (ValueError, (1, 1, 0)),
            (ValueError, (2**32 + 1, 1, 0)),
            (ValueError, (2, -1, 0)),
            (TypeError, (2, 1, 0.5)),
            (TypeError, (2.0, 1, 0)),
            (TypeError, (True, 1, 0)),
        )
    ),
    # --- groups and ranges
    (lambda: kernels.gini_ragged([np.nan, -0.5], [0, 2]), ValueError, "-0.5 at position 1"),
    (lambda: kernels.group_rows([0, 2], 2), IndexError, "`owners` holds 2 at position 1"),
    (lambda: kernels.take_ranges([5, 6], [1], [2]), ValueError, "hold 1 and 3 at position 0"),
    # --- hashes, ids and rows of files
    (lambda: kernels.text_hash128(["a", None]), ValueError, "null"),
    (lambda: kernels.distinct_ids(np.zeros((3, 2), np.int64)), ValueError, "uint64 of shape"),
    (lambda: kernels.index_ids([(WORDS, WORDS)]).find(WORDS), ValueError, "uint64 of shape"),
    (lambda: kernels.index_ids([(WORDS, WORDS[:2])]), ValueError, "`second` has 2"),
    *(
        (lambda wrong=wrong: kernels.index_ids([(WORDS, wrong)]), ValueError, "`second` has dtype")
        for wrong in (np.zeros(3, np.int64), WORDS[:, None], np.zeros(6, np.uint64)[::2])
    ),
    (lambda: rows_read([3], [0]), IndexError, "`rows` holds 3"),
    (lambda: rows_read([0], [2]), IndexError, "`places` holds 2"),
    (lambda: rows_read([0], [0, 1]), ValueError, "`places` has 2"),
    (lambda: rows_read([0], [0], OUT.view(np.float32)), ValueError, "C-contiguous uint8"),
    (lambda: kernels.checksum_rows(OUT.T), ValueError, "C-contiguous uint8"),
    # --- texts
    *(
        (lambda a=a, b=b: kernels.levenshtein_pairs(a, b), error, message)
        for a, b, error, message in (
            (pl.Series(["x", None]), ["a", "b"], ValueError, "null"),
            ([None], ["a"], ValueError, "at position 0"),
            (["x"], ["a", "b"], ValueError, "`a` has 1 rows and `b` has 2"),
            (pl.Series([1, 2]), ["a", "b"], TypeError, "`a` has type Int64"),
            ([1, 2], ["a", "b"], TypeError, "`a` is list"),
        )
    ),
    *(
        (lambda n=n: kernels.levenshtein_pairs(["a"], ["b"], threads=n), ValueError, "`threads`")
        for n in (0, -1, 1.5, True)
    ),
    *(
        (lambda kernel=kernel: kernel(pl.Series(["a", None])), ValueError, "null")
        for kernel in (kernels.string_changes, kernels.outer_whitespace)
    ),
    *(
        (lambda orders=orders: kernels.ngram_copy_ratio(["a"], ["b"], orders), ValueError, "orders")
        for orders in ((), (0,), (3, -1), ((3,),))
    ),
    (
        lambda: kernels.ngram_copy_ratio(["a"], ["b", "c"]),
        ValueError,
        "`system` has 1 rows and `user` has 2",
    ),
    *(
        (lambda given=given: kernels.count_phrases(["a"], [0], ["a"], *given), ValueError, message)
        for given, message in (
            ((([1], [0, 1]), [0]), "`wanted` reaches beyond the 1"),
            ((([0], [0, 1]), [1]), "`owner` reaches beyond the 1"),
            ((([0], [0, 1]), [0, 0]), "`text` has 1 rows, `owner` 2"),
        )
    ),
    (
        lambda: kernels.count_token_hits(([0], [0, 1]), [0], NEGATIVE),
        ValueError,
        "`tokens` holds -1",
    ),
    (lambda: nearest(np.add(PLACES, [1, 0])), ValueError, "`points` has no space at an offset"),
    (lambda: nearest(top=0), ValueError, "expected at least 1 and a number above 0"),
    (lambda: nearest(least=0.0), ValueError, "expected at least 1 and a number above 0"),
    (
        lambda: kernels.index_character_ngrams(POINTS.astype(float), PLACES, [0, 1]),
        TypeError,
        "`points` has dtype float64",
    ),
    # --- sets
    (lambda: overlap([1, 1], [0, 2]), ValueError, "1 then 1 in row 0"),
    (lambda: overlap([3, 5, 4], [0, 1, 3]), ValueError, "5 then 4 in row 1"),
    (lambda: overlap([1.5], [0, 1]), TypeError, "float64"),
    (lambda: overlap([2**40], [0, 1]), TypeError, "int64"),
    (lambda: kernels.jaccard_csr(ONE, TWO), ValueError, "`a` has 1 rows and `b` has 2"),
    (lambda: kernels.jaccard_csr([1, 2], ONE), TypeError, "expected (values, offsets)"),
    (lambda: kernels.idf_cosine_csr(ONE, ONE, [1.0]), IndexError, "holds the value 1"),
    (
        lambda: kernels.idf_cosine_counted_csr((BAG[0] - 2, *BAG[1:]), BAG, np.ones(3)),
        IndexError,
        "`b` holds the value 3 at position 0; expected places",
    ),
    (lambda: kernels.count_shared_ngrams(["a"], ["b"], 7), ValueError, "`order` is 7; expected"),
    (lambda: kernels.count_shared_ngrams(["a"], [], 1), ValueError, "`a` has 1 rows and `b` has 0"),
    (
        lambda: kernels.count_shared_members(([], [], [0]), ([], [], [0, 0])),
        ValueError,
        "`a` has 0 rows and `b` has 1",
    ),
    (
        lambda: kernels.count_shared_members((SUMS[:1], [], [0]), ([], [], [0])),
        ValueError,
        "`a[0]` has 1 rows",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES, ids=[case[2] for case in CASES])
def test_a_wrong_argument_is_named(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
