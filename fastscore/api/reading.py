"""Reading logs from Python: scanned lazily, or looked at."""

import os
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from fastscore.errors import UsageError
from fastscore.logs.inputs.column_map import column_map, map_source
from fastscore.logs.inputs.files import STDIN
from fastscore.logs.inputs.inspection import Inspection, inspect_logs
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.read.given import Given
from fastscore.logs.read.scan import LogsWarning, scan_rejects, scan_rows
from fastscore.processors import available_processors
from fastscore.suites.registry import load_suite, suite_names


def scan(
    source: Any,
    suite: str,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    layout: str | None = None,
    rejects: bool = False,
    workers: int | None = None,
) -> pl.LazyFrame:
    """Scan logs lazily, with the rows that a suite would score.

    The project's reader as a polars source: sharded logs of every format, packed or not, broken
    lines left aside and named. Projections, predicates and row limits of a query are used while
    it is read, and only a few batches are in memory at once.

    Parameters
    ----------
    source
        A file, folder or glob, several of them, a frame, or rows, as `score` takes.
    suite
        The suite whose columns are read.
    columns
        Where columns stand whose key is another: ``{"prediction": "guess.text"}``.
    values
        What the words in a text column mean: ``{"event": {"guess": "predicted"}}``.
    layout
        A named layout or the TOML file of one, as `score` takes.
    rejects
        Scan what no row could be made of instead: place, field, reason, what was found.
    workers
        How many threads read at once; None for as many as there are processors. The rows do not
        depend on it.

    Returns
    -------
    pl.LazyFrame
        The columns ``file``, ``line`` (from 1; a row's number in Parquet and frames) and
        ``byte_offset`` (null where rows have none), then those of the suite, in input order; or
        the rejects. A query over rows that meets rejects ends with a `RejectsWarning`. Files in a
        folder that are no logs of the suite are left aside, and a `LogsWarning` names them, or
        what no row has that every metric of the suite needs.

    Raises
    ------
    UsageError
        An unknown suite, or standard input.
    InputError
        Nothing matches. What goes wrong while a query runs is raised by polars, which names it.

    Examples
    --------
    >>> turns = fastscore.scan("logs/", "score_dialogue")  # doctest: +SKIP
    >>> turns.filter(pl.col("step") == 0).select("file", "line", "prediction")  # doctest: +SKIP
    """
    moved = layout_map(layout, suite) | column_map(columns, values)
    declared = map_source(load_suite(suite).source, moved)
    given = Given.of(source)
    if STDIN in given.paths:
        raise UsageError("Standard input can be read only once.", "Name files, or score it.")
    given, note = given.logs(declared, suite)
    if note:
        warnings.warn(note, LogsWarning, stacklevel=2)
    read = partial(given.read, threads=workers or available_processors())
    return (scan_rejects if rejects else scan_rows)(read, declared, f"{suite}: {given}")


def inspect(*logs: str | os.PathLike[str]) -> Inspection:
    """Look at logs: their keys, which suites can read them, with which flags.

    Parameters
    ----------
    *logs
        Files, folders and globs.

    Raises
    ------
    InputError
        Nothing is there.
    """
    sources = {name: load_suite(name).source for name in suite_names()}
    return inspect_logs(tuple(os.fspath(log) for log in logs), sources)
