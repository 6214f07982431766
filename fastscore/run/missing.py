"""What the rows of a run lack: how often needed columns are null, which words are unknown.

Counted while rows are read; added up over shards by their receipts, the words that a suite does
not know by a table of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from fastscore.logs.samples.profile import all_columns
from fastscore.suites.base import Events, Nulls
from fastscore.suites.columns import unknown_words
from fastscore.suites.declarations import (
    ODD_LETTERS,
    REPEATED_ROWS,
    THOUGHTS,
    Column,
    Source,
)

NULL, ASKED, EMPTY = "null:", "asked:", "empty:"
"""Before the path of a column, in counts: rows that lack it, rows that should have it, those of
them that count as having an empty one."""
JOINED_LINES, JOINED_DIALOGUES = "joined_lines", "joined_dialogues"
"""How many lines of rows share the name of a dialogue with another line, and how many names."""
_LEAST_CHARACTERS = 20
"""Shorter messages, such as "Yes, please.", are said more than once."""
_THOUGHT = r"(?i)<(think|thinking|thought|reasoning)>"
_ODD_LETTER = (
    "[\u0300-\u036f\u2018\u2019\u00a0\u202f]"
    r"|\\u(03[0-6][0-9a-fA-F]|201[89]|00[aA]0|202[fF])|&(#\w+|nbsp|amp|apos|quot|lt|gt);"
)
"""Combining marks, curly apostrophes, spaces that do not break, as JSON and HTML have them, too."""
UNKNOWN_SCHEMA = {"column": pl.String, "word": pl.String, "rows": pl.Int64}
_NO_WORDS = pl.DataFrame(schema=UNKNOWN_SCHEMA)
"""Words that a suite does not know: of which column, and in how many rows or objects."""
MOST_NAMED = 100
"""How many of a column's unknown words are looked at to say what to type."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What was counted of rows."""

    counts: dict[str, int]  # by name, as it stands in receipts
    unknown: pl.DataFrame  # every word that the suite does not know, `UNKNOWN_SCHEMA`


def count_missing(frame: pl.DataFrame, source: Source, events: Events) -> RowCounts:
    """Count what rows lack: nulls, names of their own, words that the suite knows."""
    counts: dict[str, int] = {}
    places = {where for column in source.columns if (where := _where(column)) is not None}
    rows_where = {where: frame[where[0]] == where[1] for where in places}
    nulls = {
        column.name: _nulls(frame, column, source, rows_where)
        for column in source.columns
        if column.needed.by or column.vocabulary.known
    }
    text_places = {
        each.place
        for each in all_columns(source)
        if each.column.kind == "text" and not each.column.vocabulary.known
    }
    unknown = []
    for path, found in (nulls | dict(events.nulls)).items():
        counts[NULL + path], counts[ASKED + path] = found.null, found.asked
        as_empty = events.nulls_are_empty and path in text_places
        counts[EMPTY + path] = found.null if as_empty else 0
        unknown += [(path, word, count) for word, count in found.unknown.items()]
    words = _NO_WORDS
    if unknown:
        words = pl.DataFrame(unknown, schema=UNKNOWN_SCHEMA, orient="row").sort("column", "word")
    counts |= _joined(frame, source) | _repeated(frame, source) | _odd_texts(frame, source)
    return RowCounts(counts, words)


def _where(column: Column) -> tuple[str, str] | None:
    """Return the column and the word of the rows in which another is read, or missed."""
    return column.only_where or column.needed.where


def _nulls(
    frame: pl.DataFrame,
    column: Column,
    source: Source,
    rows_where: Mapping[tuple[str, str], pl.Series],
) -> Nulls:
    values, where = frame[column.name], _where(column)
    known = sum(
        rows.sum()
        for (name, word), rows in rows_where.items()
        if name == column.name and word in column.vocabulary.known
    )
    all_known = known + values.null_count() == frame.height
    unknown = {} if all_known else unknown_words(values, column.vocabulary)
    asked = None
    for holder in source.columns:
        if any(item.name == column.name for item in holder.items):
            asked = frame[holder.name].is_null()
    if where is not None:
        asked = rows_where[where]
    if asked is None:
        return Nulls(values.null_count(), frame.height, unknown)
    lacking = int((values.is_null() & asked).sum()) if values.null_count() else 0
    return Nulls(lacking, int(asked.sum()), unknown)


def _is_of_arrays(source: Source) -> bool:
    """Tell whether the rows of a line are elements of its arrays."""
    return bool(source.rows or (source.chat and not source.chat.layout.is_row_per_turn))


def _joined(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the lines whose arrays are put together for want of a name of their own."""
    if not (_is_of_arrays(source) and source.dialogue_key):
        return {}
    dialogue = ("file", *source.dialogue_key)
    named = frame.drop_nulls(source.dialogue_key[0]).select(*dialogue, "line").unique()
    lines = named.group_by(dialogue).len("lines")["lines"]
    several = lines.filter(lines > 1)
    return {JOINED_LINES: int(several.sum()), JOINED_DIALOGUES: len(several)}


def _repeated(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the messages that equal an earlier one of their dialogue, if each is a row."""
    rows = source.chat_rows
    # turns that are joined are no rows any more
    if rows is None or not source.dialogue_key or rows.text not in frame.columns:
        return {}
    # a document that names no dialogue is one by itself
    of_line = pl.lit(None)
    if _is_of_arrays(source):
        of_line = pl.when(pl.col(source.dialogue_key[0]).is_null()).then("line")
    read = frame.select("file", of_line.alias("line"), *(column.name for column in source.columns))
    candidates = read.filter(read.hash_rows().is_duplicated())
    candidates = candidates.filter(pl.col(rows.text).str.len_chars() >= _LEAST_CHARACTERS)
    repeated = candidates.height - candidates.unique().height
    return {REPEATED_ROWS: repeated} if repeated else {}


def _odd_texts(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the rows of chats with thoughts, or with letters that words are not compared by."""
    rows = source.chat_rows
    if rows is None:
        return {}
    texts = pl.col(rows.array or rows.text)
    found = frame.select(
        pl.when(texts.str.contains(pattern)).then(1).sum().alias(name)
        for name, pattern in ((THOUGHTS, _THOUGHT), (ODD_LETTERS, _ODD_LETTER))
    )
    return {name: count for name, count in found.row(0, named=True).items() if count}


@dataclass(frozen=True, slots=True)
class NullCounts:
    """What a column lacks."""

    path: str  # its name, with that of the array that holds it
    # in how many rows, or objects, it is null, and in how many it should stand
    null: int
    asked: int
    n_empty: int  # how many of the nulls count as empty texts
    # in how many rows or objects there is a word that the suite does not know, and how many
    # different ones there are
    n_unknown: int
    n_words: int
    # the most frequent ones, with their numbers: `MOST_NAMED` at most; of equally frequent ones
    # those that sort first
    words: Mapping[str, int]


def take_null_counts(counts: dict[str, int], unknown: pl.LazyFrame) -> list[NullCounts]:
    """Take what columns lack out of a run's counts."""
    ranked = (
        unknown.group_by("column", "word")
        .agg(pl.col("rows").sum())
        .sort("rows", "word", descending=[True, False])
        .group_by("column", maintain_order=True)
        .agg(
            pl.col("rows").sum().alias("total"),
            pl.len().alias("n_words"),
            pl.col("word", "rows").head(MOST_NAMED),
        )
        .collect()
    )
    words = {
        column: (total, n_words, dict(zip(named, rows, strict=True)))
        for column, total, n_words, named, rows in ranked.iter_rows()
    }
    paths = [name.removeprefix(NULL) for name in counts if name.startswith(NULL)]
    return [
        NullCounts(
            path,
            counts.pop(NULL + path),
            counts.pop(ASKED + path),
            counts.pop(EMPTY + path),
            *words.get(path, (0, 0, {})),
        )
        for path in paths
    ]
