"""Reading what is in memory by a source's declared columns, as logs are read."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from fastscore.logs.inputs.frames import FRAME_NAME, row_blocks
from fastscore.logs.read.lines import read_lines
from fastscore.logs.read.mapped_rows import stored_source
from fastscore.logs.read.rows import Part, mapped_part, placed, read_streams
from fastscore.logs.read.stored_columns import check_stored, convert_stored
from fastscore.suites.declarations import Source

ROWS_AT_ONCE = 1 << 18


def read_frame(frame: pl.DataFrame, source: Source) -> Iterator[Part]:
    """Read a frame; its lines are its rows.

    Raises
    ------
    InputError
        When the frame lacks a required column or a column's type can never serve.
    """
    advice = "Cast the column to that type first."
    held = stored_source(source)
    stored = check_stored(FRAME_NAME, frame.schema, held.columns, advice)
    for start in range(0, frame.height, ROWS_AT_ONCE):
        raw = frame.slice(start, ROWS_AT_ONCE)
        # a selection of no column has no rows
        raw = raw.select(*stored.dtypes) if stored.dtypes else pl.DataFrame(height=raw.height)
        rows, rejects = convert_stored(stored, raw, start + 1)
        part = Part(placed(rows, FRAME_NAME, held), rejects, raw.height, 0, format="parquet")
        yield mapped_part(part, source, "parquet")


def read_objects(rows: Iterable[Any], source: Source) -> Iterator[Part]:
    """Read rows given as dicts, by the rules of JSON Lines; their lines are their numbers.

    Raises
    ------
    InputError
        When a row holds what JSON has no word for.
    """
    streams = [(0, read_lines(row_blocks(rows)))]
    for part in read_streams(streams, (FRAME_NAME,), source, threads=1):
        # bytes that nobody can look at are no place
        frame = part.frame.with_columns(byte_offset=pl.lit(None, pl.Int64))
        rejects = [replace(reject, byte_offset=None) for reject in part.rejects]
        yield replace(part, frame=frame, rejects=rejects)
