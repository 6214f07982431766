"""What sampled rows of a file show of a suite's columns, and which files have what it needs.

A few rows of each file are mostly proof enough: reading ends as soon as every needed column was
seen with a value. Of a file that seems to lack one the rest is searched, as text, for its key with
a value; where that cannot be, the counts of what is read for scoring decide.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fastscore.logs.inputs.chats import (
    counted_rows,
    counted_source,
)
from fastscore.logs.inputs.column_map import EACH, LEFT_OUT, NOWHERE, role_words
from fastscore.logs.inputs.document_values import json_of
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.found_keys import (
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    Record,
    json_type,
    json_types,
)
from fastscore.logs.read.lines import read_blocks
from fastscore.logs.samples.records import first_row, read_records
from fastscore.suites.declarations import ALL_METRICS, Column, Source
from fastscore.unpacked import DamageError


@dataclass(frozen=True, slots=True)
class RequiredColumn:
    """A column and where it should stand.

    Parameters
    ----------
    name
        Its name.
    holder
        The column whose array's objects hold it, None where rows do.
    column
        Its declaration.
    """

    name: str
    holder: Column | None
    column: Column

    @property
    def place(self) -> str:
        """Its name with the array that holds it."""
        return f"{self.holder.name}{EACH}{self.name}" if self.holder else self.name


def all_columns(source: Source) -> Iterator[RequiredColumn]:
    """Yield the columns of a source, arrays before what they hold."""
    for column in source.columns:
        yield RequiredColumn(column.name, None, column)
        for item in column.items:
            yield RequiredColumn(item.name, column, item)


def arrays_of(source: Source) -> tuple[Column, ...]:
    """Return the columns that hold arrays of objects."""
    return tuple(column for column in source.columns if column.items)


def required_columns(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    return tuple(need for need in all_columns(source) if need.column.needed_by == ALL_METRICS)


def list_asked_for(source: Source) -> tuple[RequiredColumn, ...]:
    """Return what else the user said the place of."""
    return tuple(
        need
        for need in all_columns(source)
        if need.column.mapped.path
        and not source.asked_for.isdisjoint((need.name, need.place))
        and need.column.needed_by != ALL_METRICS
    )


_MOST_ELEMENTS = 1000


@dataclass(slots=True)
class ColumnSample:
    """What was seen of a need in some rows.

    Parameters
    ----------
    asked
        In how many rows, or objects of an array, it should stand.
    keyed
        In how many of them one of its keys stands, null or not.
    given
        In how many it has a value.
    known
        The words that the suite expects or knows and that stand somewhere.
    words
        Words that it does not know, with their numbers.
    any_expected
        Whether one of the words stands, or may stand after, of which the suite expects any.
    unusable
        Values that reading makes null for their JSON type, by that, with their numbers.
    may_follow
        Whether it may have a value after the rows that were looked at.
    """

    asked: int = 0
    keyed: int = 0
    given: int = 0
    known: set[str] = field(default_factory=set)
    words: Counter[str] = field(default_factory=Counter)
    any_expected: bool = False
    unusable: Counter[str] = field(default_factory=Counter)
    may_follow: bool = False

    @property
    def by_count(self) -> list[tuple[str, int]]:
        """The words that the suite does not know, the most frequent first."""
        return sorted(self.words.items(), key=lambda item: (-item[1], item[0]))

    def add(self, other: "ColumnSample") -> None:
        """Count what was seen elsewhere as well."""
        self.asked += other.asked
        self.keyed += other.keyed
        self.given += other.given
        self.known |= other.known
        self.any_expected |= other.any_expected
        self.unusable += other.unusable
        self.may_follow |= other.may_follow
        self.words += other.words

    def proves(self, need: RequiredColumn) -> bool:
        """Whether there is a value, and every word that is expected, or any where one is enough."""
        return (
            self.given > 0
            and self.known.issuperset(need.column.vocabulary.needed)
            and (self.any_expected or not need.column.vocabulary.any_needed)
        )


def is_among(column: Column, keys: Container[str]) -> bool:
    """Tell whether a column's value, or what holds it, stands under one of the keys of rows."""
    return any(key in keys or key.split(".")[0].removesuffix("[]") in keys for key in column.keys)


def rows_of(record: Record, source: Source) -> Iterator[Record]:
    """Yield the rows of a record: itself, or the elements of its array with what stands beside."""
    if source.chat is not None:
        yield from counted_rows(record, source)
        return
    if not source.rows:
        yield record
        return
    elements = json_of(_value_at(record, source.rows)[1])
    if isinstance(elements, list):
        for element in elements[:_MOST_ELEMENTS]:
            yield {**record, source.rows: [element]}


def count_samples(
    row: Record,
    source: Source,
    needs: Iterable[RequiredColumn],
    samples: Mapping[str, ColumnSample],
    *,
    of_cells: bool,
) -> None:
    """Add what a row shows of needs to what was seen of them; empty cells show no value."""
    holders = arrays_of(source)
    arrays = {column.name: json_of(stored(row, column)[1]) for column in holders}
    named = {item.name for column in holders for item in column.items}
    nested = any(isinstance(array, list) for array in arrays.values())
    for need in needs:
        counts = samples[need.place]
        if need.holder is not None:
            for element in _objects_of(arrays[need.holder.name]):
                _count(counts, need.column, *stored(element, need.column))
        elif not (nested and need.name in named) and _is_asked(row, need.column, source):
            is_there, value = stored(row, need.column)
            empty = of_cells and value == "" and need.column.kind != "text"
            of_type = need.column.otherwise != "null" or of_cells or _is_usable(value, need.column)
            if not of_type:
                counts.unusable[json_type(value)] += 1
            _count(counts, need.column, is_there, value if of_type and not empty else None)
            if need.column.vocabulary.any_needed and not counts.any_expected:
                counts.any_expected = _has_any(row, need.column, source)


def _objects_of(array: Any) -> list[Record]:
    """Return the objects in an array; one of texts or arrays lacks all that they should have."""
    elements = array[:_MOST_ELEMENTS] if isinstance(array, list) else []
    return [each for each in elements if isinstance(each, dict)] or [
        {} for each in elements if isinstance(each, list | str)
    ]


def _has_any(row: Record, column: Column, source: Source) -> bool:
    """Tell whether one of the words stands in a row of which a column expects any."""
    for name, word in column.vocabulary.any_needed:
        found = _word(row, source.column(name))
        if found == word or (found and word.endswith("*") and found.startswith(word[:-1])):
            return True
    return False


def _word(row: Record, column: Column) -> str | None:
    """Return the word of a row, as the suite knows it."""
    found = stored(row, column)[1]
    return dict(column.mapped.words).get(found, found) if isinstance(found, str) else None


def _is_usable(value: Any, column: Column) -> bool:
    """Tell whether a value is null, or of a JSON type that its column is read from."""
    # columns of frames and Parquet may hold whole numbers as reals
    return (
        value is None
        or isinstance(value, float)
        or json_type(value) in json_types(column) | set(column.accepts)
    )


def _is_asked(row: Record, column: Column, source: Source) -> bool:
    """Tell whether a column is read in a row."""
    where = column.only_where or column.needed_where
    return where is None or _word(row, source.column(where[0])) == where[1]


def _count(counts: ColumnSample, column: Column, is_there: bool, value: Any) -> None:
    meant = dict(column.mapped.words).get(value) if isinstance(value, str) else None
    if meant == LEFT_OUT:
        return
    counts.asked += 1
    counts.keyed += is_there
    if value is None:
        return
    counts.given += 1
    words = column.vocabulary
    if isinstance(value, int) and words.needed:
        value = json.dumps(value)  # a word that the suite does not know
    if (words.needed or words.known) and isinstance(value, str):
        word = meant or value
        if word in words.needed or (words.known and words.includes(word)):
            counts.known.add(word)
        elif len(counts.words) < _MOST_ELEMENTS or word in counts.words:
            counts.words[word] += 1


def stored(row: Record, column: Column) -> tuple[bool, Any]:
    """Return whether a column's key stands in a row, and its value."""
    is_there = False
    for key in column.keys:
        at_key, value = _value_at(row, key)
        is_there |= at_key
        if value is not None:
            return True, value
    return is_there, None


def _value_at(row: Record, path: str) -> tuple[bool, Any]:
    """Return whether a path leads anywhere in a row, and where to."""
    if path in row:
        return True, row[path]
    array, each, inner = path.partition(EACH)
    if each:
        elements = json_of(_value_at(row, array)[1])
        if isinstance(elements, list) and elements and isinstance(elements[0], dict):
            return _value_at(elements[0], inner)
        return False, None
    head, dot, rest = path.partition(".")
    inside = json_of(row.get(head)) if dot else None
    return _value_at(inside, rest) if isinstance(inside, dict) else (False, None)


IS_ID = re.compile(
    r"(dialog(ue)?|conv(ersation)?|session|chat|thread|episode|call)([ _-]?(no|key|name|number))?"
    r"|([\w-]+[ _-])?u?u?id|\w+U?U?(Id|ID)",
    re.IGNORECASE,
)
"""How keys are called that name something."""
_LONGEST_MATCH = 1 << 10


@dataclass(slots=True)
class FileSample:
    """What was seen of a file.

    Parameters
    ----------
    file
        The file.
    read
        Reads its rows again.
    rows
        How many rows were looked at.
    is_whole
        Whether these are all.
    needs
        The required columns; none of a file without a row.
    samples
        What was seen of these, and of columns that are asked for, by their places.
    columns
        The declared columns with a key in the first rows: the file's shape.
    other_ids
        Keys that are called as ids are, if no row has the suite's own name of a dialogue.
    given_up
        Whether no row was seen for so long that the rest was not looked at.
    alike
        Files after it that begin as it does, when it has everything: no more of them was looked at.
    """

    file: InputFile
    read: Callable[[], Iterator[Record]]
    rows: int = 0
    is_whole: bool = True
    needs: tuple[RequiredColumn, ...] = ()
    samples: dict[str, ColumnSample] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    other_ids: tuple[str, ...] = ()
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
    def has_all(self) -> bool:
        """Whether everything that is needed was seen."""
        return self.rows > 0 and not self.open and not self.unproven

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
    """What files before have shown.

    Parameters
    ----------
    shapes
        By the keys of the first row, the first files that have all that is needed.
    words
        By place the expected words that stand somewhere.
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
    seen.needs, asked_for = required_columns(source), list_asked_for(source)
    seen.samples = {need.place: ColumnSample() for need in (*seen.needs, *asked_for)}
    _sample_first_rows(rows, source, [*seen.needs, *asked_for], seen)
    for need in [] if seen.is_whole else seen.open:
        counts = seen.samples[need.place]
        # all rows of such files have the same columns
        in_columns = file.format in ("csv", "parquet") and not counts.keyed
        counts.may_follow = not in_columns and may_follow(file, need)
    _search_words(source, seen, known)
    if seen.has_all:
        known.shapes[shape] = seen
    return seen


def _sample_first_rows(
    rows: Iterable[Record], source: Source, wanted: Iterable[RequiredColumn], seen: FileSample
) -> None:
    """Look at the first rows, and at more where something that is needed has no value in them."""
    keys: dict[str, None] = {}
    is_named = not source.dialogue_key or source.chat is not None or bool(source.rows)
    of_rows = counted_source(source)
    places = list(all_columns(of_rows))
    of_cells = seen.file.format == "csv"
    for record in rows:
        if seen.rows >= ROWS_SAMPLED:
            any_needed = (need for need in seen.unproven if need.column.vocabulary.any_needed)
            wanted = [*seen.open, *any_needed]
            # what is in memory has no text to be searched
            if not wanted or (seen.rows == MOST_ROWS_SAMPLED and seen.file.size):
                seen.is_whole = False
                break
        else:
            keys.update(dict.fromkeys(record))
            is_named = is_named or _names_dialogue(record, source)
        seen.rows += 1
        open_places = {need.place for need in wanted}
        counted = [need for need in places if need.place in open_places]
        for row in rows_of(record, source):
            count_samples(row, of_rows, counted, seen.samples, of_cells=of_cells)
    seen.columns = frozenset(column.name for column in source.columns if is_among(column, keys))
    if not is_named:
        declared = {name for column in source.columns for name in column.keys}
        seen.other_ids = tuple(
            name for name in keys if name not in declared and IS_ID.fullmatch(name)
        )


def _names_dialogue(record: Record, source: Source) -> bool:
    """Tell whether a row names its dialogue, or is one by itself."""
    key = source.column(source.dialogue_key[0])
    arrays = (column for column in source.columns if column.items)
    return key.mapped.path == NOWHERE or any(
        stored(record, column)[1] is not None for column in (key, *arrays)
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


def may_follow(file: InputFile, need: RequiredColumn) -> bool:
    """Tell whether one of a need's keys stands with a value anywhere in a file's text.

    Files that are not text, and frames, are not searched: they may contain it.
    """
    keys = (key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys)
    return any(
        occurs_in(file, rb'"%s\\?"\s*:\s*(?!\s|null\b)' % re.escape(key.encode())) for key in keys
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


def occurs_in(file: InputFile, pattern: bytes) -> bool:
    """Tell whether a file's unpacked text contains a pattern."""
    if file.format not in ("json", "jsonl") or not file.size:
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
        array = json_of(stored(record, column)[1])
        first = array[0] if isinstance(array, list) and array else None
        arrays.append(frozenset(first) if isinstance(first, dict) else None)
    return file.format, frozenset(record), tuple(arrays)
