"""Where what a suite lacks probably stands in a log, and what to type."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from operator import attrgetter
from typing import Any

from fastscore.logs.inputs.chats import BARE, is_array_of_turns
from fastscore.logs.inputs.column_map import (
    EACH,
    NO_MAP,
    REPLY,
    ColumnMap,
    Flag,
    UnmappedLogError,
    column_flag,
    edited_layout,
    layout_flag,
    map_source,
    typed,
)
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.found_keys import (
    ANY_KEY,
    ROWS_SAMPLED,
    FoundKey,
    FoundKeys,
    Record,
    is_of_reply,
    keys_of_others,
    nearest_key,
)
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.samples.chat_rules import count_turns, first_unread, has_keys_of, reads_alike
from fastscore.logs.samples.column_samples import (
    FileSample,
    Known,
    RequiredColumn,
    sample_file,
)
from fastscore.logs.samples.records import read_records, records
from fastscore.suites.declarations import Column, Source

_ARRAYS_TRIED = 20
_FEWEST_VALUES = 2
_DIGITS = re.compile(r"\d+")
ROW_PER_TURN = "turns"
"""The layout of rows that are turns."""


def suggested(
    source: Source, lacking: Sequence[RequiredColumn], found: FoundKeys
) -> dict[str, str]:
    """Return for what is lacking the paths at which it probably stands, by its place."""
    if any(column.items for column in source.columns) or source.rows:
        return _suggested(source, lacking, found, {})
    # rows are lines, or the objects of one array
    arrays = [array for array in ("", *_own_arrays(found)) if EACH not in array][:_ARRAYS_TRIED]
    keys = map(found.below_line, arrays)
    return max((_suggested(source, lacking, found, each) for each in keys), key=len)


def _suggested(
    source: Source,
    lacking: Sequence[RequiredColumn],
    found: FoundKeys,
    in_array: Mapping[str, FoundKey],
) -> dict[str, str]:
    advice: dict[str, str] = {}
    for need in lacking:
        siblings = need.holder.items if need.holder else source.columns
        taken = keys_of_others(siblings, need.name)
        if need.column.items:
            arrays = {
                path: FoundKey(count=1, types=Counter(array=1))
                for path in _own_arrays(found)
                if EACH not in path and ANY_KEY not in path and path not in taken
            }
            path = nearest_key(need.column, arrays) or next(iter(arrays), None)
        else:
            keys = {**keys_beside(need, source, advice, found), **in_array}
            path = _nearest_key(need.column, source, keys, taken | set(advice.values()))
        if path is not None:
            advice[need.place] = path
    return advice


def _own_arrays(found: FoundKeys) -> list[str]:
    """Return the arrays that are no values of a map: one of several dialogues by their ids.

    Several whose objects have the same keys are dialogues each, or sides of one. What is called a
    reply is no dialogue.
    """
    by_shape: dict[tuple[str, frozenset[str]], list[str]] = {}
    for path in found.arrays:
        parent, _, name = path.rpartition(".")
        if not is_of_reply(name):
            by_shape.setdefault((parent, frozenset(found.below(path))), []).append(name)
    return [
        f"{parent}.{name}" if parent else name
        for (parent, _), names in by_shape.items()
        if len(names) < _FEWEST_VALUES
        and len({_DIGITS.sub("", name) for name in names}) == len(names)
        for name in names
    ]


def _nearest_key(
    column: Column, source: Source, keys: Mapping[str, FoundKey], taken: Collection[str]
) -> str | None:
    """Return the key that a column probably is: of speakers by its values, else by its name."""
    rows = source.chat_rows
    if rows is not None and column.name == rows.speaker:
        for path, key in keys.items():
            if key.names_speakers and path not in taken:
                return path
    return nearest_key(column, keys, taken)


def keys_beside(
    need: RequiredColumn, source: Source, advice: Mapping[str, str], found: FoundKeys
) -> dict[str, FoundKey]:
    """Return the keys of the objects in which a need should stand, in an array by its new name."""
    if need.holder is not None and need.holder.name in advice:
        return found.below(advice[need.holder.name])
    return found.around(source, need.holder)


def flags_to_type(
    suite: str,
    source: Source,
    lacking: Sequence[RequiredColumn],
    advice: Mapping[str, str],
    found: FoundKeys,
    seen: FileSample,
) -> list[Flag]:
    """Return what to type: a layout that fits, else columns; nothing if none is near."""
    if source.chat is None:
        flags = fitting_layout(list(islice(seen.read(), ROWS_SAMPLED)), suite, source, seen)
        if flags:
            return flags
    flags = [column_flag(need.name, advice[need.place]) for need in lacking if need.place in advice]
    held = [need.holder for need in lacking if need.column.items or need.holder]
    if held and advice:
        flags += _item_flags(source, lacking, advice, found)
    return list(dict.fromkeys(flags))


def layout_of_arrays(suite: str, source: Source, seen: FileSample) -> list[Flag]:
    """Return the flags of the layout that reads the arrays of a file in which no object is."""
    if source.chat_rows is None or source.chat is not None:
        return []
    rows = records(seen.file, BARE, holds_rows=is_array_of_turns)
    return fitting_layout(list(islice(rows, ROWS_SAMPLED)), suite, source, seen)


def fitting_layout(
    records: Sequence[Record], suite: str, source: Source, seen: FileSample
) -> list[Flag]:
    """Return the flags of the layout that a file is in; none without one, or of several.

    A file is in a layout if a dialogue of its first rows has the layout's own keys, some speakers
    are known, and no reply is left unread. Of layouts that read the same the simplest is taken.
    """
    found = list(_layouts_of(records, suite, source))
    complete = [each for each in found if not each.unread]
    fits = [each for each in complete or found if _has_all(each.source, seen)]
    # what another layout takes for parts of one dialogue are no dialogues by their keys
    fits = [each for each in fits if not each.is_inside] or fits
    if not fits:
        return []
    best = min(fits, key=attrgetter("rank"))
    others = [each.name for each in fits if not reads_alike(best.source, each.source, records)]
    if others:
        raise UnmappedLogError(
            f"{seen.file.path}: it is in several layouts, which read it in different ways: "
            f"{', '.join(sorted((best.name, *others)))}.",
            [],
            unless=f"Type one of them, for example {typed([layout_flag(best.name)])}.",
        )
    reply = [column_flag(REPLY, best.unread)] if best.unread else []
    return [layout_flag(best.name), *reply]


@dataclass(frozen=True, slots=True)
class _Fit:
    """A layout whose keys a file has: the source by it, a reply that it leaves unread, its rank.

    ``is_inside`` tells whether the dialogues are inside a document that is none.
    """

    name: str
    source: Source
    unread: str
    is_inside: bool
    rank: tuple[Any, ...]


def _layouts_of(records: Sequence[Record], suite: str, source: Source) -> Iterator[_Fit]:
    """Yield the layouts whose keys records have."""
    rows = source.chat_rows
    bare = source.array_column or BARE
    holds_arrays = any(set(record) <= {BARE, bare} for record in records)
    # an array is a document by itself
    documents = [record[bare] if set(record) == {bare} else record for record in records]
    for name in layout_names():
        layout = load_layout(name)
        chat = layout.chat
        if chat is None or rows is None or not chat.needs:
            continue
        if chat.is_row_per_turn and (holds_arrays or not rows.can_be_turns):
            continue
        columns = layout.of(suite)
        has_keys = partial(has_keys_of, layout=edited_layout(columns, rows))
        own = [*compress(records, map(has_keys, documents))]
        if not own:
            continue
        mapped = map_source(source, columns)
        is_compiled = mapped.chat is not None and mapped.chat.is_plain
        if is_compiled and holds_arrays and not rows.array:
            continue  # paths begin at keys
        unread = first_unread(own, mapped)
        if unread:
            mapped = map_source(source, columns | ColumnMap(((REPLY, unread),)))
        n_known, n_unnamed = count_turns(own, mapped)
        if not n_known:
            continue
        steps = (*chat.turns, *chat.id, chat.speaker, chat.text, chat.dialogues)
        is_of_texts = not chat.speaker and not chat.text
        rank = (n_unnamed, not is_of_texts, not is_compiled, sum(map(len, steps)), name)
        yield _Fit(name, mapped, unread, "" not in chat.dialogues, rank)


def _has_all(source: Source, seen: FileSample) -> bool:
    """Tell whether everything that is needed has a value; words may still have to be mapped."""
    read = None if seen.file.size else seen.read
    sample = sample_file(seen.file, source, Known(), read)
    return sample.rows > 0 and not sample.open


def row_per_turn(files: Sequence[InputFile], suite: str, source: Source) -> ColumnMap:
    """Return the map of logs whose rows are turns in the suite's own words; else an empty one."""
    rows = source.chat_rows
    if rows is None or not rows.can_be_turns or source.chat is not None or not files:
        return NO_MAP
    if files[0].path == STDIN or not files[0].size:
        return NO_MAP
    array = source.column(rows.array)
    records = list(islice(read_records(files[0], source), ROWS_SAMPLED))
    is_turns = records and all(
        record.get(rows.speaker) is not None
        and rows.text in record
        and not any(key in record for key in array.keys)
        for record in records
    )
    return load_layout(ROW_PER_TURN).of(suite) if is_turns else NO_MAP


def _item_flags(
    source: Source, lacking: Sequence[RequiredColumn], advice: Mapping[str, str], found: FoundKeys
) -> list[Flag]:
    """Name the columns of an array that was probably found under another name."""
    flags = []
    for need in lacking:
        if not need.column.items or need.place not in advice:
            continue
        keys = found.below(advice[need.place])
        for item in need.column.items:
            if item.needed_by and item.needed_by == need.column.needed_by and item.name not in keys:
                taken = keys_of_others(need.column.items, item.name)
                path = _nearest_key(item, source, keys, taken)
                if path is not None:
                    flags.append(column_flag(item.name, path))
    return flags
