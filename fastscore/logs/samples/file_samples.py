"""What sampled rows of a file show of a suite's columns, and which files have what it needs.

A few rows of each file are mostly proof enough: reading ends as soon as every needed column was
seen with a value. Of a file that seems to lack one the rest is searched, as text, for its key with
a value; where that cannot be, the counts of what is read for scoring decide.
"""

import itertools
import re
from collections.abc import Callable, Collection, Container, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fastscore.files import DamageError
from fastscore.logs.inputs.chats import counted_rows, counted_source
from fastscore.logs.inputs.column_map import EACH, NOWHERE, role_words
from fastscore.logs.inputs.document_values import first_at, json_of, value_at
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.near_names import is_called
from fastscore.logs.read.lines import read_blocks
from fastscore.logs.samples.profile import (
    MOST_ELEMENTS,
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    ColumnSample,
    Profile,
    Record,
    RequiredColumn,
    add_rows,
    all_columns,
    arrays_of,
    list_asked_for,
    required_columns,
    sample_of,
)
from fastscore.logs.samples.records import first_row, read_records
from fastscore.suites.declarations import Column, Source

_LONGEST_MATCH = 1 << 10


@dataclass(slots=True)
class FileSample:
    """What was seen of a file, which `read` reads again.

    ``needs`` are the required columns; none of a file without a row. ``samples`` has what was seen
    of these, and of columns that are asked for, by their places. ``keys`` are those of the first
    rows and of the first objects in their arrays, ``columns`` the declared columns with one of
    them: the file's shape. ``other_ids`` are keys that are called as ids are, if no row has the
    suite's own name of a dialogue. ``nested`` has the columns that are only objects or
    arrays: the key of each, and a value. ``given_up`` tells that no row was seen for long,
    ``alike`` are files after it that begin as it does, if it has everything.
    """

    file: InputFile
    read: Callable[[], Iterator[Record]]
    rows: int = 0
    is_whole: bool = True
    needs: tuple[RequiredColumn, ...] = ()
    samples: dict[str, ColumnSample] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    other_ids: tuple[str, ...] = ()
    nested: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    given_up: bool = False
    alike: list[InputFile] = field(default_factory=list)

    @property
    def files(self) -> list[InputFile]:
        """The file and those that begin as it does."""
        return [self.file, *self.alike]

    @property
    def open(self) -> list[RequiredColumn]:
        """The needs of which no value was seen, here or in an array."""
        given = {need.name for need in self.needs if self.samples[need.place].given}
        return [need for need in self.needs if need.name not in given]

    @property
    def unproven(self) -> list[RequiredColumn]:
        """The needs of which there are values, but not the words that are expected."""
        samples = {need: self.samples[need.place] for need in self.needs}
        return [need for need, found in samples.items() if found.given and not found.proves(need)]

    @property
    def has_values(self) -> bool:
        """Whether something that is needed has a value, other than an array without one."""
        values = [self.samples[need.place] for need in self.needs if not need.column.items]
        return not values or any(found.given or found.may_follow for found in values)

    @property
    def lacking(self) -> list[RequiredColumn]:
        """The required columns whose keys are in no row, though rows should have them."""
        samples = {need: self.samples[need.place] for need in self.needs}
        given = {need.name for need, found in samples.items() if found.keyed or found.may_follow}
        return [need for need, found in samples.items() if found.asked and need.name not in given]

    def give_up(self) -> None:
        """Note that the rest is not looked at."""
        self.given_up, self.is_whole = True, False


@dataclass(slots=True)
class Known:
    """What files before have shown: the first with all that is needed by the keys of its first row.

    ``words`` are the expected words that are somewhere, by place.
    """

    shapes: dict[Hashable, FileSample] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)


def sample_file(
    file: InputFile,
    source: Source,
    known: Known,
    read: Callable[[], Iterator[Record]] | None = None,
) -> FileSample:
    """Look at a file's rows until everything that is needed was seen.

    Of a file that begins as one before it that has everything, the first row is enough: what was
    seen of that one is returned, and the file added to those that are alike.
    """
    first = first_row(file) if known.shapes else None
    before = None if first is None else known.shapes.get(_shape(first, source, file))
    if before is None:
        seen = FileSample(file, read or (lambda: read_records(file, source, seen.give_up)))
        rows = seen.read()
        first = next(rows, None)
        if first is None:
            return seen
        rows = itertools.chain([first], rows)
        shape = _shape(first, source, file)
        before = known.shapes.get(shape)
    if before is not None:
        before.alike.append(file)
        return before
    seen.needs = required_columns(source)
    _sample_rows(rows, source, [*seen.needs, *list_asked_for(source)], seen)
    for need in [] if seen.is_whole else seen.open:
        counts = seen.samples[need.place]
        # all rows of such files have the same columns
        in_columns = file.format in ("csv", "parquet") and not counts.keyed
        counts.may_follow = not in_columns and may_follow(file, need, counts.unusable)
    _search_words(source, seen, known)
    if not (seen.open or seen.unproven):
        known.shapes[shape] = seen
    return seen


def _sample_rows(
    records: Iterator[Record], source: Source, wanted: list[RequiredColumn], seen: FileSample
) -> None:
    """Look at the first rows, and at more where something that is needed has no value in them."""
    keys: dict[str, None] = {}
    inside: set[str] = set()
    has_documents = source.chat is not None and not source.chat.layout.is_row_per_turn
    is_named = not source.dialogue_key or has_documents or bool(source.rows)
    of_rows, profile = counted_source(source), Profile()
    counted = {need.place: need for need in all_columns(of_rows)}
    of_cells = seen.file.format == "csv"
    limit, has_text = ROWS_SAMPLED, _has_text(seen.file)
    while True:
        more = list(itertools.islice(records, limit - seen.rows))
        seen.rows += len(more)
        add_rows([row for record in more for row in rows_of(record, source)], of_rows, profile)
        for record in more if limit == ROWS_SAMPLED else ():
            keys.update(dict.fromkeys(record))
            arrays = {key: each[:1] for key, each in record.items() if isinstance(each, list)}
            for array, first in arrays.items():
                inside |= {
                    f"{array}{EACH}{key}" for each in first if type(each) is dict for key in each
                }
            is_named = is_named or _names_dialogue(record, source)
        for need in wanted:
            found = counted.get(need.place)
            seen.samples[need.place] = (
                sample_of(found, of_rows, profile, of_cells=of_cells) if found else ColumnSample()
            )
        # what is in memory, or packed in columns, has no text to be searched
        words = (need.column.vocabulary for need in seen.unproven)
        any_needed = any(each.any_needed or (each.needed and not has_text) for each in words)
        is_enough = not (seen.open or any_needed) or (limit == MOST_ROWS_SAMPLED and seen.file.size)
        if is_enough or seen.rows < limit:
            seen.is_whole &= next(records, None) is None
            break
        limit = min(2 * limit, MOST_ROWS_SAMPLED) if seen.file.size else 2 * limit
    seen.keys = frozenset((*keys, *inside))
    seen.nested = {
        column.name: (key, profile.keys[key].example)
        for column in source.columns
        for key in column.keys
        if key in profile.keys and {"object", "array"} >= profile.keys[key].types.keys()
    }
    seen.columns = frozenset(column.name for column in source.columns if is_among(column, keys))
    if not is_named:
        of_arrays = arrays_of(source)
        declared = {
            name for column in source.columns if column not in of_arrays for name in column.keys
        }
        seen.other_ids = tuple(
            name for name in keys if name not in declared and is_called("id", name)
        )


def is_among(column: Column, keys: Container[str]) -> bool:
    """Tell whether a column's value, or what holds it, stands under one of the keys of rows."""
    return any(key in keys or key.split(".")[0].removesuffix("[]") in keys for key in column.keys)


def rows_of(record: Record, source: Source) -> Iterator[Record]:
    """Yield the rows of a record: itself, or the elements of its array with what stands beside."""
    if source.chat is not None:
        yield from counted_rows(record, source)
    elif not source.rows:
        yield record
    else:
        elements = json_of(value_at(record, source.rows))
        for element in elements[:MOST_ELEMENTS] if isinstance(elements, list) else ():
            yield {**record, source.rows: [element]}


def _names_dialogue(record: Record, source: Source) -> bool:
    """Tell whether a row names its dialogue, or is one by itself."""
    key = source.column(source.dialogue_key[0])
    ways = [key.keys, *(source.chat.layout.id if source.chat is not None else ())]
    return (
        key.mapped.path == NOWHERE
        or any(keys == (NOWHERE,) or first_at(record, keys) is not None for keys in ways)
        or any(isinstance(json_of(first_at(record, each.keys)), list) for each in arrays_of(source))
    )


def _search_words(source: Source, seen: FileSample, known: Known) -> None:
    """Look for words that are expected and stood in no row of this file or of one before it."""
    for need in seen.needs:
        counts = seen.samples[need.place]
        if need.column.vocabulary.any_needed and not (counts.any_expected or seen.is_whole):
            counts.any_expected = _any_may_follow(seen.file, source, need.column)
        if not need.column.vocabulary.needed:
            continue
        before = known.words.setdefault(need.place, set())
        before |= counts.known
        for word in () if seen.is_whole else set(need.column.vocabulary.needed) - before:
            if any(
                occurs_in(seen.file, rb"\b%s\b" % re.escape(each.encode()))
                for each in _words_for(word, source)
            ):
                before.add(word)
        counts.known |= before


def _words_for(word: str, source: Source) -> Iterator[str]:
    """Yield the words of a log that mean a word of the suite."""
    yield word
    if source.chat is not None:
        meanings = role_words(source.chat.layout, source.chat.rows)
        yield from (found for found, meant in meanings.items() if meant == word)


def may_follow(file: InputFile, need: RequiredColumn, unusable: Collection[str] = ()) -> bool:
    """Tell whether one of a need's keys stands with a value anywhere in a file's text.

    Texts are none of a column that cannot use them.
    Files that are not text, and frames, are not searched: they may contain it.
    """
    keys = (key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys)
    none = rb"\s|null\b" + (rb'|\\?"' if "string" in unusable else b"")
    return any(
        occurs_in(file, rb'"%s\\?"\s*:\s*(?!%s)' % (re.escape(key.encode()), none)) for key in keys
    )


def _any_may_follow(file: InputFile, source: Source, column: Column) -> bool:
    """Tell whether a word of which a column expects any stands anywhere in a file's text."""
    texts = []
    for name, word in column.vocabulary.any_needed:
        if source.column(name).mapped.words or source.chat is not None:
            return True  # other words are meant
        end = b"" if word.endswith("*") else rb'\\?"'
        texts.append(re.escape(word.removesuffix("*").encode()) + end)
    return occurs_in(file, rb'"(?:%s)' % b"|".join(texts))


def _has_text(file: InputFile) -> bool:
    return file.format in ("json", "jsonl") and file.size > 0


def occurs_in(file: InputFile, pattern: bytes) -> bool:
    """Tell whether a file's unpacked text contains a pattern."""
    if not _has_text(file):
        return True
    text = b""
    with suppress(DamageError):
        for block in read_blocks(file.location, file.compression):
            text = text[-_LONGEST_MATCH:] + block
            found = re.search(pattern, text)
            # what is near the end is searched again, with what follows
            if found is not None and found.start() < len(text) - _LONGEST_MATCH:
                return True
    return re.search(pattern, text) is not None


def _shape(record: Record, source: Source, file: InputFile) -> Hashable:
    """Return the keys of a row, and of the first object in each array."""
    arrays = []
    for column in arrays_of(source):
        array = json_of(first_at(record, column.keys))
        first = array[0] if isinstance(array, list) and array else None
        arrays.append(frozenset(first) if isinstance(first, dict) else None)
    return file.format, frozenset(record), tuple(arrays)
