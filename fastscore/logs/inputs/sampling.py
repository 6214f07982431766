"""Which files have what a suite needs: looked at before anything is scored.

A few rows of each file are mostly proof enough: reading ends as soon as every needed column was
seen with a value. Of a file that seems to lack one the rest is searched, as text, for its key with
a value; where that cannot be, the counts of what is read for scoring decide.
"""

import itertools
import mmap
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from fastscore.logs.inputs.archives import open_unpacked
from fastscore.logs.inputs.chats import (
    array_holds_rows,
    array_name,
    counted_source,
    in_lower_case,
)
from fastscore.logs.inputs.column_map import NOWHERE, role_words
from fastscore.logs.inputs.column_samples import (
    ColumnSample,
    RequiredColumn,
    all_columns,
    arrays_of,
    count_occurrences,
    is_among,
    list_asked_for,
    needs_of,
    rows_of,
    stored,
)
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.records import Record, first_row, json_of, records
from fastscore.logs.integrity.limits import DEFAULT_LIMITS
from fastscore.suites.declarations import Column, Source
from fastscore.unpacked import DamageError

ROWS_SAMPLED = 20
"""How many rows are looked at to say what shape a file has."""
MOST_ROWS_SAMPLED = 200
"""And how many where something that is needed does not stand in those."""
IS_ID = re.compile(
    r"(dialog(ue)?|conv(ersation)?|session|chat|thread|episode|call)([ _-]?(no|key|name|number))?"
    r"|([\w-]+[ _-])?u?u?id|\w+U?U?(Id|ID)",
    re.IGNORECASE,
)
"""How keys are called that name something."""
_SEARCHED_BYTES = 1 << 20
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
    occurrences
        What was seen of each need, by its place; nothing of a file that begins as one before it
        that has everything.
    columns
        The declared columns of which a key stands in the first rows: the file's shape.
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
    is_whole: bool = False
    occurrences: dict[str, ColumnSample] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    other_ids: tuple[str, ...] = ()
    given_up: bool = False
    alike: list[InputFile] = field(default_factory=list)

    @property
    def files(self) -> list[InputFile]:
        """The file and those that begin as it does."""
        return [self.file, *self.alike]

    def open(self, needs: Iterable[RequiredColumn]) -> list[RequiredColumn]:
        """Return the needs of which no value was seen, here or in an array."""
        given = {need.name for need in needs if self.occurrences[need.place].given}
        return [need for need in needs if need.name not in given]

    def unproven(self, needs: Iterable[RequiredColumn]) -> list[RequiredColumn]:
        """Return the needs of which there are values, but not the words that are expected."""
        occurrences = {need: self.occurrences[need.place] for need in needs}
        return [
            need for need, counts in occurrences.items() if counts.given and not counts.proves(need)
        ]

    def lacks(self, needs: Iterable[RequiredColumn]) -> list[RequiredColumn]:
        """Return the needs whose keys stand in no row, though rows should have them."""
        if not self.occurrences:
            return []
        occurrences = {need: self.occurrences[need.place] for need in needs}
        given = {
            need.name for need, counts in occurrences.items() if counts.keyed or counts.may_follow
        }
        return [
            need for need, counts in occurrences.items() if counts.asked and need.name not in given
        ]


@dataclass(slots=True)
class Known:
    """What files before have shown.

    Parameters
    ----------
    arrays
        The columns that hold arrays of objects.
    shapes
        By the keys of the first row, the first files that have all that is needed.
    words
        By place the expected words that stand somewhere.
    """

    arrays: tuple[Column, ...]
    shapes: dict[Hashable, FileSample] = field(default_factory=dict)
    words: dict[str, set[str]] = field(default_factory=dict)


def sample_file(file: InputFile, source: Source, known: Known) -> FileSample:
    """Look at a file's rows until everything that is needed was seen.

    Of a file that begins as one before it that has everything, the first row is enough: what was
    seen of that one is returned, and the file added to those that are alike.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    first = first_row(file) if known.shapes else None
    if first is not None:
        before = known.shapes.get(_shape(first, known.arrays, file))
        if before is not None:
            before.alike.append(file)
            return before
    given_up: list[bool] = []
    seen = sample_rows(
        partial(read_records, file, source, lambda: given_up.append(True)),
        source,
        file,
        known,
    )
    if given_up:
        seen.given_up, seen.is_whole = True, False
    return seen


def read_records(
    file: InputFile, source: Source, given_up: Callable[[], object] = lambda: None
) -> Iterator[Record]:
    """Yield the rows of a file as a source takes them; see `records`."""
    return records(file, array_name(source), given_up, array_holds_rows(source))


def sample_rows(
    read: Callable[[], Iterator[Record]], source: Source, file: InputFile, known: Known
) -> FileSample:
    """Look at rows, which errors say are of a file, as `sample_file` does."""
    source = _with_plain_paths(source) if file.format == "csv" else source
    seen = FileSample(file, read)
    rows = read()
    first = next(rows, None)
    if first is None:
        seen.is_whole = True
        return seen
    shape = _shape(first, arrays_of(source), file)
    if shape in known.shapes:
        known.shapes[shape].alike.append(file)
        return known.shapes[shape]
    needs = needs_of(source)
    seen.occurrences = {need.place: ColumnSample() for need in (*needs, *list_asked_for(source))}
    _sample_first_rows(itertools.chain([first], rows), source, needs, seen)
    open_needs = seen.open(needs)
    if not seen.is_whole:
        for need in open_needs:
            counts = seen.occurrences[need.place]
            # all rows of such files have the same columns
            in_columns = file.format in ("csv", "parquet") and not counts.keyed
            counts.may_follow = not in_columns and may_follow(file, need)
    _search_words(source, needs, seen, known)
    if not open_needs and not seen.unproven(needs):
        known.shapes[shape] = seen
    return seen


def _sample_first_rows(
    rows: Iterable[Record], source: Source, needs: Iterable[RequiredColumn], seen: FileSample
) -> None:
    """Look at the first rows, and at more where something that is needed has no value in them."""
    keys: dict[str, None] = {}
    is_named = not source.dialogue_key or source.chat is not None or bool(source.rows)
    of_rows = counted_source(source)
    places = list(all_columns(of_rows))
    of_cells = seen.file.format == "csv"
    open_needs = [*needs, *list_asked_for(source)]
    seen.is_whole = True
    for record in rows:
        if seen.rows >= ROWS_SAMPLED:
            open_needs = seen.open(needs)
            open_needs += [need for need in seen.unproven(needs) if need.column.expects_any]
            # what is in memory has no text to be searched
            if not open_needs or (seen.rows == MOST_ROWS_SAMPLED and seen.file.size):
                seen.is_whole = False
                break
        else:
            keys.update(dict.fromkeys(record))
            is_named = is_named or _names_dialogue(record, source)
        seen.rows += 1
        open_places = {need.place for need in open_needs}
        counted = [need for need in places if need.place in open_places]
        for row in rows_of(record, source):
            count_occurrences(row, of_rows, counted, seen.occurrences, of_cells=of_cells)
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
    return key.path == NOWHERE or any(
        stored(record, column)[1] is not None for column in (key, *arrays)
    )


def _search_words(
    source: Source, needs: Iterable[RequiredColumn], seen: FileSample, known: Known
) -> None:
    """Look for words that are expected and stood in no row of this file or of one before it."""
    for need in needs:
        counts = seen.occurrences[need.place]
        if need.column.expects_any and not (counts.any_expected or seen.is_whole):
            counts.any_expected = _any_may_follow(seen.file, source, need.column)
        if not need.column.expects:
            continue
        before = known.words.setdefault(need.place, set())
        before |= counts.known
        for word in () if seen.is_whole else set(need.column.expects) - before:
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

    Of what is no text, and of frames, that is not known: it may.
    """
    keys = (key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys)
    return any(
        occurs_in(file, rb'"%s\\?"\s*:\s*(?!\s|null\b)' % re.escape(key.encode())) for key in keys
    )


def _any_may_follow(file: InputFile, source: Source, column: Column) -> bool:
    """Tell whether a word of which a column expects any stands anywhere in a file's text."""
    texts = []
    for name, word in column.expects_any:
        if source.column(name).value_map or source.chat is not None:
            return True  # other words are meant
        end = b"" if word.endswith("*") else rb'\\?"'
        texts.append(re.escape(word.removesuffix("*").encode()) + end)
    return occurs_in(file, rb'"(?:%s)' % b"|".join(texts))


def occurs_in(file: InputFile, pattern: bytes) -> bool:
    """Tell whether a pattern stands in a file's text, unpacked."""
    if file.format not in ("json", "jsonl") or not file.size:
        return True
    with open_unpacked(file.location, file.compression) as stream:
        if file.compression == "none":
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return re.search(pattern, text) is not None
        held, searched = b"", 0
        with suppress(DamageError, OSError):
            while part := stream.read(_SEARCHED_BYTES):
                searched += len(part)
                DEFAULT_LIMITS.check_unpacked(file.path, file.size, searched)
                held = held[-_LONGEST_MATCH:] + part
                if re.search(pattern, held):
                    return True
        return False


def _with_plain_paths(source: Source) -> Source:
    """Write paths as names of CSV are compared: stripped, in lower case."""
    columns = (replace(each, path=each.path.strip().lower()) for each in source.columns)
    plain = replace(source, columns=tuple(columns), rows=source.rows.strip().lower())
    chat = source.chat
    if chat is None:
        return plain
    return replace(plain, chat=replace(chat, layout=in_lower_case(chat.layout)))


def _shape(record: Record, holders: Iterable[Column], file: InputFile) -> Hashable:
    """Return the keys of a row, and of the first object in each array."""
    arrays = []
    for column in holders:
        array = json_of(stored(record, column)[1])
        first = array[0] if isinstance(array, list) and array else None
        arrays.append(frozenset(first) if isinstance(first, dict) else None)
    return file.format, frozenset(record), tuple(arrays)
