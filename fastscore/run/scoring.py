"""Scoring in memory: what a shard's rows become, before anything is committed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from fastscore_jit.stopping import raise_if_stopped

from fastscore.logs.file_ranges import Shard
from fastscore.logs.integrity.limits import Limits
from fastscore.logs.integrity.rejects import listed_rejects
from fastscore.logs.read.rows import Part, Rows, join_parts, read_parts
from fastscore.run.context import Loaded
from fastscore.run.missing import RowCounts, count_missing
from fastscore.run.texts_to_embed import TextsToEmbed, perplexity_texts, perplexity_view
from fastscore.suites.base import Events
from fastscore.suites.declarations import REJECTS_TABLE, Table
from fastscore.vectors.view import VectorView


@dataclass(frozen=True, slots=True)
class ShardScores:
    """What scoring a shard gives.

    Frames by table, rejects in input order, counts by name, the texts that the model cut, and the
    words that the suite does not know.
    """

    tables: Mapping[str, pl.DataFrame]
    rejects: pl.DataFrame
    counts: Mapping[str, int]
    cut_texts: pl.DataFrame
    unknown_words: pl.DataFrame


def compute_tables(loaded: Loaded, shard: Shard) -> ShardScores:
    """Score a shard in memory, embedding the texts that the store lacks."""
    return compute_rows(loaded, _read_rows(loaded, shard), files_of(shard))


def compute_rows(loaded: Loaded, rows: Rows, files: Sequence[str]) -> ShardScores:
    """Score rows of whole dialogues, of files named in their order, as `compute_tables` does."""
    events, found = _events(loaded, rows)
    compared = TextsToEmbed.of(loaded.suite, events, loaded.options)
    return score_events(loaded, files, events, found, compared)


def score_events(
    loaded: Loaded,
    files: Sequence[str],
    events: Events,
    found: RowCounts,
    compared: TextsToEmbed,
) -> ShardScores:
    """Score what was read, of files named in their order."""
    suite = loaded.suite
    vectors = vectors_of(loaded, events, compared)
    raise_if_stopped()
    tables = suite.score(events, vectors, loaded.options)
    rejects = _in_input_order(listed_rejects(events.rejects), files)
    return ShardScores(
        tables={table.name: _declared(table, tables[table.name]) for table in suite.tables},
        rejects=rejects,
        counts={**found.counts, "rejects": int(rejects["count"].sum())},
        cut_texts=compared.cut(loaded.context.embedder),
        unknown_words=found.unknown,
    )


def vectors_of(loaded: Loaded, events: Events, compared: TextsToEmbed) -> VectorView:
    """Return what a suite scores events by: vectors of texts, and perplexities where asked for."""
    vectors, settings = compared.view(loaded.context.embedder), loaded.context.perplexity
    if settings is None:
        return vectors
    judged = perplexity_texts(loaded.suite, events, loaded.options)
    return replace(vectors, log_perplexities=perplexity_view(settings, judged))


def read_events(loaded: Loaded, shard: Shard) -> tuple[Events, RowCounts]:
    """Read a shard's rows as the suite's events, and count what they lack."""
    return _events(loaded, _read_rows(loaded, shard))


def _read_rows(loaded: Loaded, shard: Shard) -> Rows:
    source, context = loaded.source, loaded.context
    chosen = context.chosen
    ranges = [replace(file_range, limits=context.limits) for file_range in shard.file_ranges]
    parts = _within_limits(read_parts(ranges, source), context.limits, shard)
    if chosen is not None:
        parts = (chosen.kept(part, source) for part in parts)
    return join_parts(parts, source)


def _within_limits(parts: Iterator[Part], limits: Limits, shard: Shard) -> Iterator[Part]:
    """Hand parts on until too much memory is taken or the run is asked to stop.

    What is handed on will be joined, which takes as much again.
    """
    held = 0
    for part in parts:
        raise_if_stopped()
        held += int(part.frame.estimated_size())
        limits.check_memory(shard.file_ranges[0].file, more=held)
        yield part


def _events(loaded: Loaded, rows: Rows) -> tuple[Events, RowCounts]:
    raise_if_stopped()
    events = loaded.suite.read(rows.frame, loaded.options)
    raise_if_stopped()
    found = count_missing(rows.frame, loaded.source, events)
    found = replace(found, counts={**rows.counts, **events.counts, **found.counts})
    of_suite = events.rejects.with_columns(pl.lit(1, pl.Int64).alias("count"), last_line="line")
    rejects = pl.concat([rows.rejects, of_suite])
    return replace(events, rejects=rejects), found


def files_of(shard: Shard) -> list[str]:
    """Return the files of a shard, in their order."""
    return [file_range.file for file_range in shard.file_ranges]


def _declared(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    if dict(frame.schema) != table.schema:
        raise TypeError(f"table {table.name!r}: got {frame.schema}, declared {table.schema}")
    return frame


def _in_input_order(rejects: pl.DataFrame, files: Sequence[str]) -> pl.DataFrame:
    if rejects.is_empty():
        return rejects.select(REJECTS_TABLE.keys())
    position = {file: index for index, file in enumerate(files)}
    file_position = pl.col("file").replace_strict(position, return_dtype=pl.Int64)
    return rejects.sort(file_position, "line", maintain_order=True).select(REJECTS_TABLE.keys())
