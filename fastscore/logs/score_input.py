"""Input from a caller: paths, a frame, or rows; read at once, or scanned lazily.

A query never changes which rows there are: a line is a reject even if the query does not use the
faulty column. So columns that can reject a row are always checked. Other columns are read only if
used.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from fastscore.errors import InputError, UsageError, warn_caller
from fastscore.logs.inputs.chats import array_name
from fastscore.logs.inputs.column_map import ORDER
from fastscore.logs.inputs.files import STDIN, Format, InputFile, resolve_inputs
from fastscore.logs.inputs.frames import FRAME_NAME, as_frame, as_rows, row_blocks
from fastscore.logs.integrity.rejects import FileRejects, Reject, cut, describe_reject, reject_frame
from fastscore.logs.read.columns import check_stored, convert_stored
from fastscore.logs.read.lines import read_lines
from fastscore.logs.read.mapped_rows import chat_lines, line_source, stored_source
from fastscore.logs.read.rows import Part, mapped_part, part_schema, read_files, read_streams
from fastscore.logs.samples.profile import Record
from fastscore.logs.samples.records import read_records, row_records
from fastscore.logs.samples.screening import screen
from fastscore.suites.declarations import REJECTS_TABLE, Column, Source

_ROWS_AT_ONCE = 1 << 18
_MOST_PATH, _SHOWN = 4096, 60
"""The longest path in characters, and how many characters of a longer text are shown."""


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """Paths, a frame, or rows."""

    paths: tuple[str, ...] = ()  # files, folders and globs
    frame: pl.DataFrame | None = None  # A frame; see `as_frame`
    rows: tuple[Any, ...] = ()  # dicts, or arrays; see `as_rows`
    format: Format | None = None  # the format of paths without a known suffix
    left_aside: frozenset[str] = frozenset()  # files below these paths to skip

    @classmethod
    def of(cls, source: Any, format: Format | None = None) -> "ScoreInput":
        """Return a caller's input. The format is for paths without a known suffix."""
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            is_json = path.lstrip()[:2] in ('{"', "[{", "[[")
            if (is_json or "\n" in path or len(path) > _MOST_PATH) and not os.path.exists(path):
                raise UsageError(
                    f"The source is text, not a path: {cut(path, _SHOWN)!r}.",
                    "Give the path of its file, or its rows: [json.loads(line) for line in lines].",
                )
            return cls(paths=(path,), format=format)
        if hasattr(source, "read") and not _is_frame(source):
            raise UsageError(
                f"The source is an open file ({type(source).__name__}).",
                "Give its path, or the rows that it contains (dicts).",
            )
        if isinstance(source, Iterator) and not _is_frame(source):
            source = list(source)  # an iterator can be read only once
        column, source = source, _as_sequence(source)
        if isinstance(source, Sequence) and not source:
            raise InputError(
                f"The source is an empty {type(source).__name__}: there is nothing to read.",
                "Give paths, a frame or rows (dicts).",
            )
        frame = as_frame(source)
        if frame is not None:
            return cls(frame=frame)
        rows = as_rows(source)
        if rows is not None:
            return cls(rows=rows)
        is_listed = isinstance(source, Sequence) and not isinstance(source, bytes | bytearray)
        if not is_listed or not all(isinstance(each, str | os.PathLike) for each in source):
            items = f" of {type(source[0]).__name__}" if isinstance(source, Sequence) else ""
            raise UsageError(
                f"The source is of type {type(source).__name__}{items}; expected a path, paths, a "
                "frame or rows (dicts)."
            )
        if str(source[0]).lstrip()[:1] in ("{", "["):
            raise UsageError(
                "The source is a list of JSON texts; expected a path, paths, a frame or rows.",
                "Parse them: [json.loads(text) for text in source].",
            )
        paths = tuple(os.fspath(path) for path in source)
        is_path = "*" in paths[0] or "://" in paths[0] or os.path.exists(paths[0])
        if column is not source and not is_path:
            raise UsageError(
                f"The source is a {type(column).__name__} of texts that are no paths: "
                f"{cut(paths[0], _SHOWN)!r}.",
                "Give the frame with all columns.",
            )
        return cls(paths=paths, format=format)

    @property
    def is_frame(self) -> bool:
        """Whether the input is in memory: a frame or rows."""
        return self.frame is not None or bool(self.rows)

    def __str__(self) -> str:
        return FRAME_NAME if self.is_frame else ", ".join(self.paths)

    def logs(self, source: Source, suite: str) -> tuple["ScoreInput", str]:
        """Return the files to read as a suite's logs, and notes about them."""
        files = () if self.is_frame else self.files(source)
        try:
            if self.is_frame:
                self.screen(source, suite)
                return self, ""
            screened = screen(files, source, suite)
        except InputError as error:
            return self, str(error)
        left = frozenset(file.path for file in screened.left_aside)
        return replace(self, left_aside=left), screened.notes[0] if left else ""

    def screen(self, source: Source, suite: str, *, is_part: bool = False) -> None:
        """Raise `InputError` if input in memory lacks a column that every metric needs.

        For a part of a log (`is_part`), only the names of columns are checked.
        """
        if self.is_frame:
            format: Format = "jsonl" if self.frame is None else "parquet"
            rows = InputFile(FRAME_NAME, format, "none", 0)
            read = partial(self.records, source)
            try:
                screen([rows], source, suite, read=read, is_part=is_part)
            except InputError as error:
                if error.hint and "jq -c" in error.hint:  # there is no file that jq could read
                    error.hint = (
                        "Make this change in Python, or write the rows to a file FILE. "
                        + error.hint.replace(f" {FRAME_NAME} ", " FILE ")
                    )
                raise

    def records(self, source: Source) -> Iterator[Record]:
        """Yield its rows as Python objects, for inspection, never for scoring."""
        if self.frame is not None:
            return self.frame.iter_rows(named=True)
        if self.rows:
            return row_records(self.rows, array_name(source))
        # standard input has been consumed
        files = [file for file in self.files(source) if file.path != STDIN]
        return (row for file in files for row in read_records(file, source))

    def read(self, source: Source, *, threads: int = 1) -> Iterator[Part]:
        """Read it by a source's columns, in order. Memory is bounded by a few batches."""
        if self.frame is not None:
            return read_frame(self.frame, source)
        if self.rows:
            return _read_objects(self.rows, source)
        return read_files(self.files(source), source, threads=threads)

    def files(self, source: Source) -> tuple[InputFile, ...]:
        """Return its files that a source reads, but those left aside."""
        files = resolve_inputs(self.paths, source.formats, self.format)
        return tuple(file for file in files if file.path not in self.left_aside)


def read_frame(
    frame: pl.DataFrame, source: Source, *, first_line: int = 1, has_places: bool = False
) -> Iterator[Part]:
    """Read a frame. Its rows count as lines."""
    advice = "Cast the column to that type first."
    columns = stored_source(source).columns
    names = check_stored(FRAME_NAME, frame.schema, columns, advice)
    line = frame.schema.get("line")
    has_places &= frame.schema.get("file") == pl.String and line is not None and line.is_integer()
    for start in range(0, frame.height, _ROWS_AT_ONCE):
        raw = frame.slice(start, _ROWS_AT_ONCE)
        # a selection of no column has no rows
        read = raw.select(*names) if names else pl.DataFrame(height=raw.height)
        rows, rejects = convert_stored(FRAME_NAME, read, columns, first_line + start)
        part = Part(rows, rejects, raw.height, 0, format="parquet")
        if has_places:
            part = _with_places(part, raw, first_line + start)
        yield mapped_part(part, source, "parquet")


def _with_places(part: Part, raw: pl.DataFrame, first_line: int) -> Part:
    """Replace row numbers by the places in a frame's columns."""
    places = raw.select(
        pl.col("file").fill_null(FRAME_NAME),
        pl.col("line")
        .cast(pl.Int64, strict=False)
        .fill_null(pl.int_range(first_line, first_line + raw.height)),
        # it tells apart the rows of one line
        (pl.col("byte_offset") if "byte_offset" in raw.columns else pl.lit(None))
        .cast(pl.Int64, strict=False)
        .alias("byte_offset"),
    )
    kept = part.frame["line"] - first_line
    found = places[kept] if len(kept) < raw.height else places
    rejects = []
    for reject in part.rejects:
        file, line, offset = places.row(reject.line - first_line)
        rejects.append(replace(reject, file=file, line=line, byte_offset=offset))
    frame = part.frame.drop(places.columns).hstack(found)[part.frame.columns]
    return replace(part, frame=frame, rejects=rejects)


def _read_objects(rows: Iterable[Any], source: Source) -> Iterator[Part]:
    """Read rows given as dicts, by the rules of JSON Lines. Their numbers count as lines."""
    lines = read_lines(row_blocks(rows), FRAME_NAME)
    streams = [(0, chat_lines(lines, source, FRAME_NAME, "jsonl"))]
    own = line_source(source, "jsonl")
    for part in read_streams(streams, (FRAME_NAME,), own, threads=1):
        # the byte offset refers to internal JSON, so it is removed
        frame = part.frame.with_columns(byte_offset=pl.lit(None, pl.Int64))
        rejects = [replace(reject, byte_offset=None) for reject in part.rejects]
        yield replace(part, frame=frame, rejects=rejects)


def _as_sequence(source: Any) -> Any:
    """Return arrays and series of structs, and other collections of objects, as lists."""
    if _is_frame(source) and hasattr(source, "to_pylist") and not hasattr(source, "column_names"):
        return source.to_pylist()
    if isinstance(source, pl.Series):
        return source.to_list()
    if hasattr(source, "tolist") and not hasattr(source, "columns"):
        return source.tolist()
    return list(source) if isinstance(source, Set | ValuesView) else source


def _is_frame(source: Any) -> bool:
    """Return whether an iterator is a frame, such as a reader of Arrow."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_polars")


_SPARSE = 4
"""Rows are few if they are less than this fraction of a batch."""

ReadParts = Callable[[Source], Iterator[Part]]


class RejectsWarning(UserWarning):
    """Lines or rows that cannot be read or scored were left out.

    Examples
    --------
    >>> warnings.simplefilter("error", fastscore.RejectsWarning)
    """


class LogsWarning(UserWarning):
    """Logs lack what a suite needs, or some files were skipped because the suite cannot read them.

    Examples
    --------
    >>> warnings.simplefilter("ignore", fastscore.LogsWarning)
    """


def scan_rows(read: ReadParts, source: Source, name: str) -> pl.LazyFrame:
    """Scan rows lazily; of a layout whose rows are turns, these."""

    def frames(names: list[str] | None) -> Iterator[pl.DataFrame]:
        return _warn_of_rejects(read(_select_columns(source, names)))

    schema = part_schema(source)
    schema.pop(ORDER, None)
    return _lazily(frames, schema, name)


def scan_rejects(read: ReadParts, source: Source, name: str) -> pl.LazyFrame:
    """Scan rejected lines lazily, in `REJECTS_TABLE`; arguments as `scan_rows`."""
    narrowed = _select_columns(source, [])
    return _lazily(lambda _: _reject_frames(read(narrowed)), REJECTS_TABLE, name)


def _lazily(
    read: Callable[[list[str] | None], Iterator[pl.DataFrame]],
    schema: Mapping[str, pl.DataType],
    name: str,
) -> pl.LazyFrame:
    """Return a query of frames, which are read for the names of the wanted columns."""

    def frames(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = limit
        for frame in read(names) if left != 0 else ():
            # polars limits rows before it filters them
            found = frame if left is None else frame.head(left)
            left = None if left is None else left - found.height
            found = found if predicate is None else _kept(found, predicate)
            yield found.select([*schema] if names is None else names)
            if left == 0:
                return

    return register_io_source(
        frames, schema=schema, is_pure=True, explain_name="fastscore", explain_detail=name
    )


def _reject_frames(parts: Iterable[Part]) -> Iterator[pl.DataFrame]:
    """Yield rejects while reading, and at the end the number of others."""
    of_files = FileRejects()
    for part in parts:
        if part.rejects:
            yield reject_frame(of_files.take(part.rejects))
    yield reject_frame(of_files.more())


def _warn_of_rejects(parts: Iterable[Part]) -> Iterator[pl.DataFrame]:
    """Yield the rows of parts; after the last, warn of their rejects."""
    rejects: list[Reject] = []
    count = lines = 0
    for part in parts:
        rejects += part.rejects[: 1 - len(rejects)]
        count += sum(reject.count for reject in part.rejects)
        lines += part.lines - part.blank
        yield part.frame
    if rejects:
        warn_caller(
            f"Left aside, as no row can be made of them: {count:,} of {lines:,} lines. "
            f"{describe_reject(asdict(rejects[0]))}. All of them: fastscore.scan(..., "
            "rejects=True).",
            RejectsWarning,
        )


def _kept(frame: pl.DataFrame, predicate: pl.Expr) -> pl.DataFrame:
    """Filter rows. A few remaining rows are copied, which frees their block's texts."""
    kept = frame.filter(predicate)
    if kept.height * _SPARSE > frame.height:
        return kept
    return pl.DataFrame(kept.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _select_columns(source: Source, names: Sequence[str] | None) -> Source:
    """Drop the columns that the query does not use and that cannot reject a row."""
    if names is None:
        return source
    needed = {column.name for column in source.columns if _can_reject(column)} | set(names)
    needed |= {column.only_where[0] for column in source.columns if column.only_where is not None}
    needed |= {*source.dialogue_key, source.array_column or ""}
    return replace(
        source, columns=tuple(column for column in source.columns if column.name in needed)
    )


def _can_reject(column: Column) -> bool:
    if column.required or column.kind == "text":  # a lone surrogate is invalid text
        return True
    return column.kind != "json" and column.otherwise == "reject"
