"""Where what a suite lacks probably stands in a log, and what to type."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from operator import itemgetter

from fastscore.logs.inputs.chats import BARE, counted_rows, is_array_of_turns
from fastscore.logs.inputs.column_map import EACH, NO_MAP, ColumnMap, map_source
from fastscore.logs.inputs.document_values import json_of
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.found_keys import (
    ANY_KEY,
    ROWS_SAMPLED,
    FoundKey,
    FoundKeys,
    Record,
    keys_of_others,
    nearest_key,
)
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.samples.column_samples import (
    FileSample,
    Known,
    RequiredColumn,
    arrays_of,
    sample_file,
    stored,
)
from fastscore.logs.samples.records import read_records, records
from fastscore.suites.declarations import Column, Source
from fastscore.wording import Flag, column_flag, layout_flag

_ARRAYS_TRIED = 20
_FEWEST_VALUES = 3
_DIGITS = re.compile(r"\d+")
ROW_PER_TURN = "turns"
"""The layout of rows that are turns."""


def suggested(
    source: Source, lacking: Sequence[RequiredColumn], found: FoundKeys
) -> dict[str, str]:
    """Return for what is lacking the paths at which it probably stands, by its place.

    Parameters
    ----------
    source
        The suite's source.
    lacking
        What was not found, arrays before what they hold.
    found
        The keys that were.
    """
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

    A map has three values or more whose objects have the same keys, or names that differ in digits.
    """
    by_shape: dict[tuple[str, frozenset[str]], list[str]] = {}
    for path in found.arrays:
        parent, _, name = path.rpartition(".")
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
    has_own_array = any(c.items for c in source.columns) and not any(
        need.column.items for need in lacking
    )
    records = list(islice(seen.read(), ROWS_SAMPLED))
    if source.chat is None and (not has_own_array or not _are_turns(records, source)):
        layout = fitting_layout(records, suite, source, seen)
        if layout is not None:
            return [layout_flag(layout)]
    flags = [column_flag(need.name, advice[need.place]) for need in lacking if need.place in advice]
    held = [need.holder for need in lacking if need.column.items or need.holder]
    if held and advice:
        flags += _item_flags(source, lacking, advice, found)
    return list(dict.fromkeys(flags))


def _are_turns(records: Sequence[Record], source: Source) -> bool:
    """Tell whether the suite's own array contains objects that are turns.

    Others are lists, texts, or objects that contain arrays of objects as dialogues do.
    """
    arrays = [
        json_of(stored(record, column)[1]) for record in records for column in arrays_of(source)
    ]
    firsts = [array[0] for array in arrays if isinstance(array, list) and array]
    values = (value for first in firsts if isinstance(first, dict) for value in first.values())
    is_bare = all(set(record) == {source.array_column} for record in records)
    if is_bare and any(
        isinstance(each, list) and each and isinstance(each[0], dict) for each in values
    ):
        return False
    return not firsts or any(isinstance(first, dict) for first in firsts)


def layout_of_arrays(suite: str, source: Source, seen: FileSample) -> str | None:
    """Return the layout that reads the arrays of a file in which no object is; None without one."""
    if source.chat_rows is None or source.chat is not None:
        return None
    rows = records(seen.file, BARE, holds_rows=is_array_of_turns)
    return fitting_layout(list(islice(rows, ROWS_SAMPLED)), suite, source, seen)


def fitting_layout(
    records: Sequence[Record], suite: str, source: Source, seen: FileSample
) -> str | None:
    """Return the name of the layout by which a file has all that is needed; None without one.

    The best finds most turns of known speakers in the first records, then has fewest speakers that
    it does not know, then is the simplest.
    """
    ranked = []
    holds_arrays = any(set(record) <= {BARE, source.array_column} for record in records)
    for name in layout_names():
        layout = load_layout(name)
        if layout.chat is None or source.chat_rows is None:
            continue
        if layout.chat.is_row_per_turn and (holds_arrays or not source.chat_rows.can_be_turns):
            continue
        mapped = map_source(source, layout.of(suite))
        is_compiled = mapped.chat is not None and mapped.chat.is_plain
        if is_compiled and holds_arrays and not source.chat_rows.array:
            continue  # paths begin at keys
        n_known, n_unknown = _count_turns(records, mapped)
        if n_known:
            chat = layout.chat
            steps = (*chat.turns, *chat.id, chat.speaker, chat.text, chat.dialogues)
            is_of_texts = not chat.speaker and not chat.text
            simplicity = (not is_of_texts, not is_compiled, sum(map(len, steps)))
            ranked.append(((-n_known, n_unknown, simplicity, name), mapped))
    read = None if seen.file.size else seen.read
    for (*_, name), mapped in sorted(ranked, key=itemgetter(0)):
        if sample_file(seen.file, mapped, Known(), read).has_all:
            return name
    return None


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


def _count_turns(records: Sequence[Record], source: Source) -> tuple[int, int]:
    """Count the turns in records whose speakers are known, and those of others."""
    chat = source.chat
    if chat is None:
        return 0, 0
    words = {word for _, word in chat.rows.words}
    are_known: Counter[bool] = Counter()
    for record in records:
        for row in counted_rows(record, source):
            turns = row.get(chat.rows.array) if chat.rows.array else [row]
            are_known.update(
                turn.get(chat.rows.speaker) in words
                for turn in (turns if isinstance(turns, list) else ())
                if isinstance(turn, dict) and turn.get(chat.rows.text) is not None
            )
    return are_known[True], are_known[False]


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
