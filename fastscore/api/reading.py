"""Reading logs from Python: scanned lazily, or looked at."""

import dataclasses
import os
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.api.arguments import (
    SuiteName,
    check_mapping,
    check_number,
    check_paths,
    named_options,
)
from fastscore.errors import UsageError
from fastscore.logs.inputs.column_map import ColumnMap, column_map, map_source
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.inspection import Inspection, Trial, inspect_logs
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.read.rows import Part, join_parts, read_files
from fastscore.logs.read.scan import LogsWarning, scan_rejects, scan_rows
from fastscore.logs.read.score_input import ScoreInput
from fastscore.logs.read.spool import spool_stdin
from fastscore.options import SuiteOptions, build_options
from fastscore.processors import available_processors
from fastscore.suites.base import Suite
from fastscore.suites.declarations import REJECT_SCHEMA
from fastscore.suites.registry import load_suite, suite_names

ROWS_TRIED = 200
"""How many rows of a file `inspect` reads as a suite does."""


def scan(
    source: Any,
    suite: SuiteName | SuiteOptions | Suite,
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
        The suite whose columns are read: its name or its options.
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
    >>> turns = fastscore.scan("logs", "score_dialogue")
    >>> turns.filter(pl.col("step") == 0).select("file", "line", "prediction").collect()
    """
    name, _ = named_options(suite, source, "scan")
    check_mapping("columns", columns, {"prediction": "guess.text"})
    check_mapping("values", values, {"event": {"guess": "predicted"}})
    check_number("workers", workers)
    moved = layout_map(layout, name) | column_map(columns, values)
    declared = map_source(load_suite(name).source, moved)
    given = ScoreInput.of(source)
    if STDIN in given.paths:
        raise UsageError("Standard input can be read only once.", "Name files, or score it.")
    given, note = given.logs(declared, name)
    if note:
        warnings.warn(note, LogsWarning, stacklevel=2)
    read = partial(given.read, threads=workers or available_processors())
    return (scan_rejects if rejects else scan_rows)(read, declared, f"{name}: {given}")


def inspect(*logs: str | os.PathLike[str]) -> Inspection:
    """Look at logs: their keys, which suites can read them, with which flags.

    Parameters
    ----------
    *logs
        Files, folders and globs; ``-`` is standard input.

    Raises
    ------
    InputError
        Nothing is there.

    Examples
    --------
    >>> print(fastscore.inspect("logs"))
    """
    sources = {name: load_suite(name).source for name in suite_names()}
    inputs = check_paths("inspect", logs)
    if STDIN not in inputs:
        return inspect_logs(inputs, sources, _try_reading)
    with tempfile.TemporaryDirectory() as folder:
        kept = spool_stdin(InputFile(STDIN, "jsonl", "none", 0), Path(folder))
        path = kept.stored or kept.path
        found = inspect_logs(
            [path if each == STDIN else each for each in inputs], sources, _try_reading
        )
    files = [
        replace(each, file=replace(each.file, path=STDIN)) if each.file.path == path else each
        for each in found.files
    ]
    others = {STDIN if each == path else each: reason for each, reason in found.others.items()}
    return Inspection(tuple(inputs), tuple(files), others)


def _try_reading(file: InputFile, suite_name: str, columns: ColumnMap) -> Trial:
    """Read the first rows of a file with a suite's own reader."""
    suite = load_suite(suite_name)
    declared = map_source(suite.source, columns)
    parts: list[Part] = []
    for part in read_files([file], declared):
        parts.append(part)
        if sum(each.frame.height for each in parts) >= ROWS_TRIED:
            break
    rows = join_parts(parts, declared)
    required = {
        field.name: "FILE"
        for field in dataclasses.fields(suite.options)
        if field.metadata.get("required")
    }
    events = suite.read(rows.frame.head(ROWS_TRIED), build_options(suite.options, required))
    rejects = pl.concat([rows.rejects.select(*REJECT_SCHEMA), events.rejects])
    return Trial(events.n_scored, rejects.height, _fault(rejects))


def _fault(rejects: pl.DataFrame) -> str:
    """Describe the first reject."""
    if rejects.is_empty():
        return ""
    first = rejects.row(0, named=True)
    advice = (
        ". To join messages of one speaker that follow each other, add --merge-speakers"
        if first["reason"] == "unpaired_turn"
        else ""
    )
    return (
        f"line {first['line']}: {first['field'] or 'row'}: {first['reason']} (found "
        f"{first['found']}, expected {first['expected']}){advice}"
    )
