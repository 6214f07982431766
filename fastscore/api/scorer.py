"""Scoring of Arrow batches, for engines that map a function over their own data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Never

import numpy as np
import polars as pl

from fastscore.api.arguments import (
    SuiteName,
    TableName,
    check_workers_find,
    request_of,
    unknown_keyword,
)
from fastscore.errors import InputError, UsageError, did_you_mean, names_arguments, warn_caller
from fastscore.logs.inputs.column_map import map_source
from fastscore.logs.inputs.frames import as_frame
from fastscore.logs.integrity.rejects import describe_reject
from fastscore.logs.read.chosen import dialogue_ids
from fastscore.logs.read.rows import Part, join_parts
from fastscore.logs.score_input import RejectsWarning, ScoreInput, read_frame
from fastscore.run.commit import REJECTS
from fastscore.run.context import Loaded, embedder_identity, run_context
from fastscore.run.request import DEFAULT_EMBEDDER, StrPath
from fastscore.run.scoring import ShardScores, compute_rows
from fastscore.settings.extras import load
from fastscore.settings.options import SuiteOptions
from fastscore.suites.base import Suite
from fastscore.suites.declarations import REJECTS_TABLE, Source
from fastscore.suites.identity import (
    NOTHING,
    NameSet,
    RunNames,
    dialogue_hashes,
    dialogue_heads,
    identify,
    with_ids,
)
from fastscore.suites.own_metrics import OwnMetric

if TYPE_CHECKING:
    import pyarrow as pa

    from fastscore.vectors.embedder import Embed, Embedder

ROWS_AT_ONCE = 100_000
"""Number of rows of a stream to score together: each call has a fixed cost of milliseconds."""


@names_arguments
class Scorer:
    """A function from batches of rows to the scores of their dialogues.

    It can be pickled. Models and kernels are loaded at the first batch, once in a process.

    Parameters
    ----------
    suite
        The suite's options, or its name.
    table
        The table that calls and streams return, or ``"rejects"``. Default: the suite's first.
    metrics, embedder, precision, device, dim, store, columns, values, layout, alternate,
    sort_by, dialogue, without
        As of `fastscore.score`.

    Raises
    ------
    UsageError
        An unknown suite or table, or an option that cannot be used.

    Examples
    --------
    >>> scorer = fastscore.Scorer(fastscore.ScoreDialogue(lex_weight=1.0), "steps")
    >>> batches = fastscore.scan("logs", "score_dialogue").collect().to_arrow().to_batches()
    >>> pa.Table.from_batches(scorer.map_batches(batches), scorer.schema).num_rows
    """

    def __init__(
        self,
        suite: SuiteName | SuiteOptions | Suite,
        table: TableName | None = None,
        *,
        metrics: Sequence[OwnMetric | str] = (),
        embedder: "StrPath | Embedder | Embed | None" = DEFAULT_EMBEDDER,
        precision: Literal["fp32", "bf16"] = "fp32",
        device: Literal["cpu", "cuda"] = "cpu",
        dim: int | None = None,
        store: StrPath | None = None,
        columns: Mapping[str, str] | None = None,
        values: Mapping[str, Mapping[str, str]] | None = None,
        layout: str | None = None,
        alternate: Literal["user", "assistant"] | None = None,
        sort_by: str | None = None,
        dialogue: str | None = None,
        without: str | None = None,
        **_others: Never,
    ) -> None:
        if _others:
            raise unknown_keyword(next(iter(_others)), suite, type(self), "Scorer(")
        self._request = request_of(locals())
        self._screened: set[tuple[str, ...]] = set()
        tables = [each.name for each in self._request.load_suite().tables]
        self.table: str = tables[0] if table is None else table
        if self.table not in (*tables, REJECTS):
            raise UsageError(
                f"Unknown table {table!r} of {self._request.suite}.",
                did_you_mean(self.table, [*tables, REJECTS]),
            )

    def __getstate__(self) -> dict[str, Any]:
        check_workers_find(self._request.suite)
        return {"_request": self._request, "_screened": self._screened, "table": self.table}

    def __repr__(self) -> str:
        return f"Scorer({self._request.suite!r}, {self.table!r})"

    @cached_property
    def _loaded(self) -> Loaded:
        request = self._request
        suite = request.load_suite()
        identity = embedder_identity(request.model, suite, request.options)
        return run_context(request, suite, identity).load()

    @property
    def signature(self) -> str:
        """Versions, options and the model: equal signatures mean equal numbers."""
        return self._loaded.context.signature

    @property
    def key(self) -> list[str]:
        """The columns of a dialogue's identity: engines sort and repartition rows by them."""
        source = map_source(self._request.load_suite().source, self._request.column_map)
        ids = source.dialogue_key or (source.row_id.columns if source.row_id else ())
        return [source.column(name).keys[0] for name in ids]

    @cached_property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of the results of calls and streams, known before scoring."""
        tables = self._request.load_suite().tables
        schemas = {table.name: table.schema for table in tables} | {REJECTS: REJECTS_TABLE}
        return _plain(pl.DataFrame(schema=schemas[self.table])).schema

    def scores(self, batch: Any) -> ShardScores:
        """Score a batch of whole dialogues.

        Parameters
        ----------
        batch
            A frame as `fastscore.score` takes one. If it has columns ``file`` (text) and ``line``
            (integers), they are the places of its rows.

        Returns
        -------
        ShardScores
            ``tables`` by name and ``rejects``, frames of polars, and ``counts``.

        Raises
        ------
        InputError
            The batch lacks a column that every metric needs.
        """
        return self._score(list(self._read(self._frame(batch), 1)), set())

    def __call__(self, batch: Any) -> "pa.Table":
        """Score a batch of whole dialogues; return the rows of the table.

        Rows that cannot be scored are counted in a `RejectsWarning`. `scores` returns them too.
        """
        return self._chosen(self.scores(batch))

    def map_batches(
        self, batches: Iterable[Any], *, rows: int = ROWS_AT_ONCE
    ) -> "Iterator[pa.RecordBatch]":
        """Score a stream of batches in which the rows of each dialogue are together.

        A dialogue that continues in later batches is scored with all its rows.

        Parameters
        ----------
        batches
            Batches, as `scores` takes. Or one frame.
        rows
            Minimum number of rows to score together. Memory grows with it.

        Yields
        ------
        pa.RecordBatch
            Rows of the table, in the order of the stream.

        Raises
        ------
        InputError
            A dialogue comes again after others.
        """
        stream = _Stream(self._loaded.source)
        named: set[int] = set()
        n_read = 0
        if not isinstance(batches, Iterator) and (whole := as_frame(batches)) is not None:
            batches = [whole]
        for frame in _regrouped(map(self._frame, batches), rows):
            complete: list[Part] = []
            for part in self._read(frame, n_read + 1):
                n_read += part.lines
                complete += stream.complete(part)
            if complete:
                yield from self._chosen(self._score(complete, named)).to_batches()
        if n_read:
            yield from self._chosen(self._score(stream.last, named)).to_batches()

    def _frame(self, batch: Any) -> pl.DataFrame:
        """Take a batch as a frame; refuse one that lacks a column that every metric needs."""
        frame = as_frame(batch)
        if frame is None:
            raise UsageError(
                f"The batch is of type {type(batch).__name__}, expected a frame.",
                "Give an Arrow batch or table, or a frame of polars or pandas.",
            )
        columns = tuple(frame.columns)
        if frame.height and columns not in self._screened:
            source = self._loaded.source
            ScoreInput(frame=frame).screen(source, self._request.suite, is_part=True)
            self._screened.add(columns)
        return frame

    def _read(self, frame: pl.DataFrame, first_line: int) -> Iterator[Part]:
        if not frame.height:
            return iter(())
        return read_frame(frame, self._loaded.source, first_line=first_line, has_places=True)

    def _score(self, parts: Sequence[Part], named: set[int]) -> ShardScores:
        """Score rows. An id that repeats, or whose hash is in ``named``, gets a place."""
        rows, source = join_parts(parts, self._loaded.source), self._loaded.source
        files = {path: path for path in rows.frame["file"].unique()}
        shared = NOTHING
        if source.row_id is not None or source.key_within_file:
            heads, _ = dialogue_heads(rows.frame, source)
            hashes = dialogue_hashes(with_ids(heads, source), source)
            again = NameSet.repeated(hashes).among(hashes)
            again |= np.isin(hashes[:, 0], list(named.intersection(hashes[:, 0].tolist())))
            named.update(hashes[:, 0].tolist())
            shared = NameSet.of(hashes[again])
        rows = replace(rows, frame=identify(rows.frame, source, RunNames(shared, files)))
        paths = pl.concat([rows.frame["file"], rows.rejects["file"]]).unique(maintain_order=True)
        return compute_rows(self._loaded, rows, paths.to_list())

    def _chosen(self, scores: ShardScores) -> "pa.Table":
        if self.table == REJECTS:
            return _plain(scores.rejects)
        if scores.rejects.height:
            first = describe_reject(scores.rejects.row(0, named=True))
            warn_caller(
                f"Not scored: {scores.counts['rejects']:,} of {scores.counts['lines']:,} rows. "
                f"{first}. All of them: Scorer(..., table={REJECTS!r}).",
                RejectsWarning,
            )
        return _plain(scores.tables[self.table])


class _Stream:
    """Separates rows of complete dialogues from those of the last one, which may continue."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: set[bytes] = set()
        self._last_id = b""
        self.last: list[Part] = []

    def complete(self, part: Part) -> list[Part]:
        """Take the next rows; return the complete dialogues, and keep the last one in `last`."""
        starts, ids = _runs(part, self._source)
        if ids and ids[0] == self._last_id:
            starts, ids = starts[1:], ids[1:]
        for start, id in zip(starts, ids, strict=True):
            if id in self._seen:
                raise _scattered(part.frame.row(start, named=True), self._source.dialogue_key)
            self._seen.add(id)
        if not starts:
            self.last.append(part)
            return []
        self._last_id = ids[-1]
        rest = part.frame[starts[-1] :]
        n_before = part.lines - rest.height
        complete = [*self.last, replace(part, frame=part.frame[: starts[-1]], lines=n_before)]
        self.last = [replace(part, frame=rest, rejects=[], lines=rest.height, blank=0)]
        return complete


def _runs(part: Part, source: Source) -> tuple[list[int], list[bytes]]:
    """Return where the runs of rows of one dialogue begin, and the id of each."""
    # most rows have the key of the row before, and need no id
    key = [pl.col(name) for name in ("file", *source.dialogue_key)]
    begins = pl.any_horizontal(each.ne_missing(each.shift()) for each in key)
    begins |= pl.col(source.dialogue_key[0]).is_null() if source.dialogue_key else pl.lit(True)
    rows = part.frame.select(begins | (pl.int_range(pl.len()) == 0)).to_series().arg_true()
    if rows.is_empty():
        return [], []
    ids = dialogue_ids(part.frame[rows], source, part.format)
    changes = np.append(True, (ids[1:] != ids[:-1]).any(axis=1))
    return rows.filter(changes).to_list(), [id.tobytes() for id in ids[changes]]


def _regrouped(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Join frames up to a number of rows, as reading has a fixed cost of some milliseconds."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(each.height for each in held) >= rows:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    # a batch in which a column is null throughout may have another type of it
    return pl.concat(frames, how="diagonal_relaxed") if len(frames) > 1 else frames[0]


def _scattered(row: Mapping[str, Any], key: Sequence[str]) -> InputError:
    name = ", ".join(f"{column} {row[column]!r}" for column in key if row[column] is not None)
    return InputError(
        f"{row['file']}:{row['line']}: the dialogue ({name or 'of rows without a name'}) comes "
        "again after rows of others, so a part of it is scored already.",
        f"Sort the stream by {', '.join(key) or 'file'} first, and within it by the order of the "
        "log.",
    )


def _plain(frame: pl.DataFrame) -> "pa.Table":
    """Return Arrow of types that every engine reads: no large offsets, views or dictionaries."""
    pa = load("pyarrow", "An Arrow table")
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    for index, field in enumerate(table.schema):
        kind = _small(pa, field.type)
        if kind != field.type:
            table = table.set_column(index, field.name, table.column(index).cast(kind))
    return table


def _small(pa: Any, kind: Any) -> Any:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_small(pa, kind.value_type))
    if pa.types.is_dictionary(kind):
        return _small(pa, kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _small(pa, field.type)) for field in kind])
    return kind
