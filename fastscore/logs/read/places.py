"""Where the values of columns stand in a block: which keys are wanted, what was found for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from fastscore_machine.arrays import Bytes, Longs, Mask
from fastscore_readers.fill import Filled
from fastscore_readers.json import located_values
from fastscore_readers.json.tokens import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    NULL,
    OBJECT,
    STRING,
    TRUE,
)
from fastscore_readers.line_scan import LineScan

from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, cut
from fastscore.logs.read.arrow_columns import byte_texts
from fastscore.suites.declarations import Column, ColumnKind, Source


@dataclass(frozen=True, slots=True)
class Places:
    """Type and byte range of one column's value in every row; see `LineScan`.

    ``filled`` is the column itself, where all its values are of its own kind.
    """

    syntax: Format
    data: Bytes
    tags: Bytes
    starts: Longs
    ends: Longs
    filled: Filled | None = None

    def rows(self, rows: Longs) -> "Places":
        """Return some of the rows."""
        filled = self.filled
        if filled is not None:
            filled = replace(filled, values=filled.values[rows], valid=filled.valid[rows])
        tags, starts, ends = self.tags[rows], self.starts[rows], self.ends[rows]
        return Places(self.syntax, self.data, tags, starts, ends, filled)

    def raw(self, row: int) -> bytes:
        """Bytes of a row's value, a JSON string's with its quotes."""
        quotes = 1 if self.tags[row] in (STRING, ESCAPED) and self.syntax != "csv" else 0
        return self.data[self.starts[row] - quotes : self.ends[row] + quotes].tobytes()

    def unescaped(self, rows: Longs) -> tuple[Bytes, Longs, Longs]:
        """Texts of some rows' strings: bytes, starts and ends, an end of -1 where it is no text."""
        if self.syntax != "csv":
            return located_values.unescaped(self.data, self.starts[rows], self.ends[rows])
        texts = [self.raw(row).replace(b'""', b'"') for row in rows.tolist()]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return np.frombuffer(b"".join(texts), np.uint8), ends - np.diff(ends, prepend=0), ends


def wanted_keys(columns: Sequence[Column]) -> tuple[bytes, ...]:
    """List the names and aliases of some columns, each once."""
    names = (name for column in columns for name in column.keys)
    return tuple(dict.fromkeys(name.encode() for name in names))


def text_keys(columns: Sequence[Column], format: Format) -> frozenset[bytes]:
    """Return the names whose values are wanted as texts at once: cells of JSON are texts, too."""
    kinds = ("text", "json") if format == "csv" else ("text",)
    # two columns may read one name
    others = {name for column in columns if column.kind not in kinds for name in column.keys}
    names = {name for column in columns for name in column.keys} - others
    return frozenset(name.encode() for name in names)


def array_key(source: Source) -> bytes | None:
    """Return the key of the column that takes whole arrays."""
    taker = next((each for each in source.columns if each.name == source.array_column), None)
    return None if taker is None else taker.keys[0].encode()


def places(
    scan: LineScan,
    keys: tuple[bytes, ...],
    column: Column,
    *,
    names_dialogue: bool = False,
) -> Places:
    """Find a column's values: its own name's where present, else its aliases' in order."""
    numbers = [keys.index(name.encode()) for name in column.keys]
    there = [key for key in numbers if scan.tags[key].any()]
    first, *others = there or numbers[:1]
    tags, filled = scan.tags[first], None if others else scan.filled.get(first)
    if not there or (filled is not None and not filled.odd):
        starts = ends = np.zeros(scan.line.size, np.int64)
    else:
        filled = None
        starts, ends = scan.value_bytes(first)
    for other in others:
        absent = tags == ABSENT
        other_starts, other_ends = scan.value_bytes(other)
        tags = np.where(absent, scan.tags[other], tags)
        starts, ends = np.where(absent, other_starts, starts), np.where(absent, other_ends, ends)
    found = Places(scan.syntax, scan.data, tags, starts, ends, filled)
    return spelled_cells(found, column.kind, names_dialogue) if scan.syntax == "csv" else found


def spelled_cells(found: Places, kind: ColumnKind, names_dialogue: bool = False) -> Places:
    """Give cells the types of what they spell; an empty one is null unless it is a plain text."""
    if kind not in ("text", "json"):
        found = _spelled(found)
    if kind == "text" and not names_dialogue:
        return found
    if found.filled is None:
        empty = (found.tags != ABSENT) & (found.starts == found.ends)
    else:
        empty = found.filled.valid & (found.filled.values[:, 0] == 0)
        found = replace(found, filled=replace(found.filled, valid=found.filled.valid & ~empty))
    return replace(found, tags=np.where(empty, NULL, found.tags).astype(np.uint8))


_SPELLINGS = {
    INTEGER: r"^[-+]?[0-9]+$",
    FLOAT: r"^[-+]?((0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|(?i:nan|inf|infinity))$",
    TRUE: "^(?i:true)$",
    FALSE: "^(?i:false)$",
}
"""How cells spell what is no text, between spaces and tabs; zeros may lead integers alone."""


def _spelled(found: Places) -> Places:
    """Tell which cells spell a boolean or a number, with the bytes that do, a plus left out."""
    tags, starts, ends = found.tags.copy(), found.starts.copy(), found.ends.copy()
    rows = np.flatnonzero(tags == STRING)
    texts = byte_texts(found.data, starts[rows], ends[rows])
    words = texts.str.strip_chars(" \t")
    before = texts.str.len_bytes() - texts.str.strip_chars_start(" \t").str.len_bytes()
    before += words.str.starts_with("+").cast(pl.UInt32)
    after = texts.str.len_bytes() - texts.str.strip_chars_end(" \t").str.len_bytes()
    for tag, pattern in _SPELLINGS.items():
        is_spelled = words.str.contains(pattern).to_numpy() & (tags[rows] == STRING)
        spelled = rows[is_spelled]
        tags[spelled] = tag
        starts[spelled] += before.to_numpy()[is_spelled]
        ends[spelled] -= after.to_numpy()[is_spelled]
        if is_spelled.all():
            break
    return replace(found, tags=tags, starts=starts, ends=ends)


def changes(found: Places) -> Mask:
    """Mark the rows whose value is written otherwise than that of the row before."""
    changed = np.zeros(found.tags.size, np.bool_)
    changed[1:] = found.tags[1:] != found.tags[:-1]
    if found.filled is not None:
        return changed | found.filled.changes
    texts = byte_texts(found.data, np.where(found.tags == ABSENT, -1, found.starts), found.ends)
    changed[1:] |= texts.ne_missing(texts.shift(1)).to_numpy()[1:]
    return changed


def describe(found: Places, row: int) -> str:
    """Say what stands in a row's value."""
    tag = int(found.tags[row])
    if tag == ABSENT:
        return "absent"
    if tag == NULL and found.syntax != "csv":
        return "null"
    text = cut(found.raw(row)[: 8 * FOUND_CHARACTERS].decode(errors="replace"), FOUND_CHARACTERS)
    if found.syntax == "csv":
        return f"cell {text!r}"
    if tag in (NULL, FALSE, TRUE):
        return text
    kinds = {INTEGER: "integer", FLOAT: "number", ARRAY: "array", OBJECT: "object"}
    return f"{kinds.get(tag, 'string')} {text}"
