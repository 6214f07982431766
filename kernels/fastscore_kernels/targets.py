"""Lexical evidence: the tokens and phrases of a query that occur in its target.

A target is a sequence of texts, read as one sequence of tokens. Many queries share a target. Each
target is read once.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.threads import run_chunks
from fastscore_jit.validation import as_offsets, as_rows, as_vector, read_only, same_length

from fastscore_kernels.ragged import group_rows

_TARGETS_PER_CHUNK = 1 << 10

Sequences = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True, slots=True)
class Targets:
    """Texts that queries are compared with.

    Attributes
    ----------
    tokens : (int32 ids, int64 offsets)
        Text ``i`` has the tokens ``ids[offsets[i]:offsets[i + 1]]``, none negative.
    texts : (int64 rows, int64 offsets)
        Target ``t`` is the texts ``rows[offsets[t]:offsets[t + 1]]``, in that order.
    """

    tokens: Sequences
    texts: Sequences


def count_token_hits(
    queries: Sequences, target_of_query: npt.ArrayLike, targets: Targets, **options: Any
) -> npt.NDArray[np.int64]:
    """Count the tokens of each query that occur in its target.

    Parameters
    ----------
    queries : (int32 ids, int64 offsets)
        The tokens of each query. Repeated tokens count each time.
    target_of_query : int64 (n,)
        The target of each query, in any order.
    targets
        The targets.
    **options
        ``threads``: number of threads; None for one per processor.

    Returns
    -------
    int64 (n,)
    """
    return _map_targets(_count_hits, queries, target_of_query, targets, **options)


def find_phrases(
    phrases: Sequences, target_of_phrase: npt.ArrayLike, targets: Targets, **options: Any
) -> npt.NDArray[np.bool_]:
    """Return which phrases occur in their target as consecutive tokens.

    Parameters are those of `count_token_hits`. A phrase may continue from one text into the next.
    An empty phrase never occurs.

    Returns
    -------
    bool (n,)
    """
    return _map_targets(_find_phrases, phrases, target_of_phrase, targets, **options) > 0


def _map_targets(
    work: Any,
    queries: Sequences,
    target_of_query: npt.ArrayLike,
    targets: Targets,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    ids, offsets = _validate_sequences("tokens", targets.tokens, np.int32)
    texts, bounds = _validate_sequences("texts", targets.texts, np.int64)
    wanted, query_offsets = _validate_sequences("queries", queries, np.int32)
    as_rows("texts", texts, offsets.size - 1)
    owner = as_rows("target_of_query", target_of_query, bounds.size - 1)
    same_length("target_of_query", owner.size, "queries", query_offsets.size - 1)
    for name, values in (("tokens", ids), ("queries", wanted)):
        if values.size and values.min() < 0:
            raise ValueError(f"`{name}` holds {values.min()}; expected ids from 0")
    order, query_bounds = group_rows(owner, bounds.size - 1)
    vocabulary = 1 + max(int(ids.max()) if ids.size else 0, int(wanted.max()) if wanted.size else 0)
    out = np.zeros(owner.size, np.int64)
    run_chunks(
        partial(
            work,
            (ids, offsets, texts, bounds),
            (wanted, query_offsets, read_only(order), read_only(query_bounds)),
            vocabulary,
            out,
        ),
        bounds.size - 1,
        chunk=_TARGETS_PER_CHUNK,
        threads=threads,
    )
    return out


def _validate_sequences(
    name: str, sequences: Sequences, dtype: npt.DTypeLike
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    values = as_vector(name, sequences[0], dtype)
    return values, as_offsets(f"{name} offsets", sequences[1], values.size)


@inlined
def _stamp(ids, offsets, texts, first, last, stamp, stamps):  # type: ignore[no-untyped-def]
    """Mark each token of a target; return the number of tokens."""
    length = np.int64(0)
    for text in range(first, last):
        row = texts[text]
        for at in range(offsets[row], offsets[row + 1]):
            stamps[ids[at]] = stamp
        length += offsets[row + 1] - offsets[row]
    return length


@kernel(
    "(int32[:], int64[:], int64[:], int64[:]), "
    "(int32[:], int64[:], int64[:], int64[:]), int64, out(int64[:]), int64, int64",
    fastmath=False,
)
def _count_hits(targets, queries, vocabulary, out, start, stop):  # type: ignore[no-untyped-def]
    """Count (queries,) the tokens that occur in their target, of targets ``start`` to ``stop``."""
    ids, offsets, texts, bounds = targets
    wanted, query_offsets, order, query_bounds = queries
    stamps = np.full(vocabulary, -1, np.int64)
    for target in range(start, stop):
        if query_bounds[target] == query_bounds[target + 1]:
            continue
        _stamp(ids, offsets, texts, bounds[target], bounds[target + 1], target, stamps)
        for place in range(query_bounds[target], query_bounds[target + 1]):
            query = order[place]
            hits = np.int64(0)
            for at in range(query_offsets[query], query_offsets[query + 1]):
                hits += np.int64(stamps[wanted[at]] == target)
            out[query] = hits


@kernel(
    "(int32[:], int64[:], int64[:], int64[:]), "
    "(int32[:], int64[:], int64[:], int64[:]), int64, out(int64[:]), int64, int64",
    fastmath=False,
)
def _find_phrases(targets, queries, vocabulary, out, start, stop):  # type: ignore[no-untyped-def]
    """Mark (queries,) the phrases that occur in targets ``start`` to ``stop``."""
    ids, offsets, texts, bounds = targets
    wanted, query_offsets, order, query_bounds = queries
    stamps = np.full(vocabulary, -1, np.int64)
    joined = np.empty(256, np.int32)
    for target in range(start, stop):
        if query_bounds[target] == query_bounds[target + 1]:
            continue
        length = _stamp(ids, offsets, texts, bounds[target], bounds[target + 1], target, stamps)
        is_joined = False
        for place in range(query_bounds[target], query_bounds[target + 1]):
            query = order[place]
            first = query_offsets[query]
            size = query_offsets[query + 1] - first
            possible = size > 0
            for at in range(first, first + size):
                if stamps[wanted[at]] != target:
                    possible = False
                    break
            if not possible:
                continue
            if not is_joined:
                if joined.size < length:
                    joined = np.empty(2 * length, np.int32)
                filled = np.int64(0)
                for text in range(bounds[target], bounds[target + 1]):
                    row = texts[text]
                    for at in range(offsets[row], offsets[row + 1]):
                        joined[filled] = ids[at]
                        filled += 1
                is_joined = True
            for begin in range(length - size + 1):
                same = True
                for step in range(size):
                    if joined[begin + step] != wanted[first + step]:
                        same = False
                        break
                if same:
                    out[query] = 1
                    break
