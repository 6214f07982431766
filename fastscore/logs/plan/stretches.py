"""Stretches: parts of files of whole dialogues, none of which can be parted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array

from fastscore.logs.integrity.file_state import FileState

ROW_BYTES = 128
"""A row whose number is known counts as so many bytes at least: one of few bytes takes hardly less
memory than any other."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Parts of files in order, each of whole dialogues that cannot be parted; int64 arrays.

    Each begins at ``start``, with ``line``, and ends where the next one of its file begins; its
    rows count for `ROW_BYTES` at least where they are counted.
    """

    file: Int64Array
    start: Int64Array
    line: Int64Array
    n_bytes: Int64Array


def stretches_of(spans: pl.DataFrame, states: Sequence[FileState]) -> Stretches:
    """Part files where no dialogue is open; every byte belongs to one stretch.

    Parameters
    ----------
    spans
        Of these files, by file and first row.
    states
        The files, each of which has a stretch at least.
    """
    # packed bytes cannot be entered in the middle
    entered = [state.compression == "none" for state in states]
    weights = [
        state.file.size / max(state.size, 1) if state.file.format == "parquet" else 1.0
        for state in states
    ]
    sizes = np.array([state.size for state in states], np.int64)
    begins = np.cumsum(sizes) - sizes
    # places as if the files stood one after another: what is open in one is closed in the next
    of_span = spans["file"].to_numpy()
    first = begins[of_span] + spans["first"].to_numpy()
    open_until = np.maximum.accumulate(begins[of_span] + spans["last"].to_numpy())
    cuts = 1 + np.flatnonzero(
        (first[1:] > open_until[:-1])
        & (of_span[1:] == of_span[:-1])
        & np.array(entered, np.bool_)[of_span[1:]]
    )
    start = np.concatenate((begins, first[cuts]))
    order = np.argsort(start, kind="stable")
    start = start[order]
    stop = np.append(start, sizes.sum())[1:]
    file = np.concatenate((np.arange(sizes.size), of_span[cuts]))[order]
    lines = np.concatenate((np.ones(sizes.size, np.int64), spans["line"].to_numpy()[cuts]))
    is_parquet = np.array([state.file.format == "parquet" for state in states], np.bool_)
    own_rows = (spans["is_local"] & (spans["key_high"] == 0)) * spans["dialogues"]
    counted = np.bincount(
        np.searchsorted(start, first, side="right") - 1, own_rows.to_numpy(), start.size
    )
    n_rows = np.where(is_parquet[file], stop - start, counted)
    n_bytes = np.rint((stop - start) * np.array(weights)[file])
    n_bytes = np.maximum(n_bytes, ROW_BYTES * n_rows).astype(np.int64)
    return Stretches(file, start - begins[file], lines[order], n_bytes)
