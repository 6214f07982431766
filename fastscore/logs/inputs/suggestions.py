"""Where what a suite lacks probably stands in a log, and what to type."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from fastscore.errors import UsageError
from fastscore.logs.inputs.chats import counted_rows
from fastscore.logs.inputs.column_map import EACH, NO_MAP, ColumnMap, Flag, column_flag, map_source
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.found_keys import ANY_KEY, FoundKey, FoundKeys
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.inputs.needs import Need, arrays_of, needs_of
from fastscore.logs.inputs.records import Record
from fastscore.logs.inputs.sampling import FileSample, Known, read_records, sample_file, sample_rows
from fastscore.logs.inputs.similar_names import keys_of_others, nearest_key
from fastscore.suites.declarations import Source

_RECORDS_TRIED = 20
_ARRAYS_TRIED = 20
ROW_PER_TURN = "turns"
"""The layout of rows that are turns."""


def suggested(source: Source, lacking: Sequence[Need], found: FoundKeys) -> dict[str, str]:
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
    arrays = [array for array in ("", *found.arrays) if EACH not in array][:_ARRAYS_TRIED]
    keys = map(found.below_line, arrays)
    return max((_suggested(source, lacking, found, each) for each in keys), key=len)


def _suggested(
    source: Source, lacking: Sequence[Need], found: FoundKeys, in_array: Mapping[str, FoundKey]
) -> dict[str, str]:
    advice: dict[str, str] = {}
    for need in lacking:
        siblings = need.holder.items if need.holder else source.columns
        taken = keys_of_others(siblings, need.name)
        if need.column.items:
            arrays = {
                path: _array_key()
                for path in found.arrays
                if EACH not in path and ANY_KEY not in path and path not in taken
            }
            path = nearest_key(need.column, arrays) or next(iter(arrays), None)
        else:
            keys = {**keys_beside(need, source, advice, found), **in_array}
            path = nearest_key(need.column, keys, taken | set(advice.values()))
        if path is not None:
            advice[need.place] = path
    return advice


def _array_key() -> FoundKey:
    return FoundKey(count=1, types=Counter(array=1))


def keys_beside(
    need: Need, source: Source, advice: Mapping[str, str], found: FoundKeys
) -> dict[str, FoundKey]:
    """Return the keys of the objects in which a need should stand, in an array by its new name."""
    if need.holder is not None and need.holder.name in advice:
        return found.below(advice[need.holder.name])
    return found.around(source, need.holder)


def flags_to_type(
    suite: str,
    source: Source,
    lacking: Sequence[Need],
    advice: Mapping[str, str],
    found: FoundKeys,
    seen: FileSample,
) -> list[Flag]:
    """Return what to type: a layout that fits, else columns; nothing if none is near."""
    has_own_array = any(c.items for c in source.columns) and not any(
        need.column.items for need in lacking
    )
    records = list(islice(seen.read(), _RECORDS_TRIED))
    if source.chat is None and (not has_own_array or _are_dialogues(records, source)):
        for name in proposed_layouts(records, suite, source):
            if _fits(name, suite, source, seen):
                return [("--layout", name)]
    flags = [column_flag(need.name, advice[need.place]) for need in lacking if need.place in advice]
    held = [need.holder for need in lacking if need.column.items or need.holder]
    if held and advice:
        flags += _item_flags(lacking, advice, found)
    return list(dict.fromkeys(flags))


def _are_dialogues(records: Sequence[Record], source: Source) -> bool:
    """Tell whether the elements of arrays that are rows by themselves contain arrays of objects."""
    array = source.array_column
    if array is None or any(set(record) != {array} for record in records):
        return False
    firsts = (next(iter(record[array]), None) for record in records)
    values = (value for first in firsts if isinstance(first, dict) for value in first.values())
    return any(isinstance(each, list) and each and isinstance(each[0], dict) for each in values)


def proposed_layouts(records: Sequence[Record], suite: str, source: Source) -> list[str]:
    """Return the names of the layouts that find turns of known speakers in records, best first.

    The best finds most turns, then has fewest speakers that it does not know, then is the simplest.
    """
    ranked = []
    for name in layout_names():
        layout = load_layout(name)
        if layout.chat is None or source.chat_rows is None:
            continue
        if layout.chat.is_row_per_turn and not source.chat_rows.can_be_turns:
            continue
        mapped = map_source(source, layout.of(suite))
        n_known, n_unknown = _count_turns(records, mapped)
        if n_known:
            chat = layout.chat
            steps = (*chat.turns, *chat.id, chat.speaker, chat.text, chat.dialogues)
            is_compiled = mapped.chat is not None and mapped.chat.is_plain
            ranked.append((-n_known, n_unknown, not is_compiled, sum(map(len, steps)), name))
    return [name for *_, name in sorted(ranked)]


def row_per_turn(files: Sequence[InputFile], suite: str, source: Source) -> ColumnMap:
    """Return the map of logs whose rows are turns in the suite's own words; else an empty one."""
    rows = source.chat_rows
    if rows is None or not rows.can_be_turns or source.chat is not None or not files:
        return NO_MAP
    if files[0].path == STDIN or not files[0].size:
        return NO_MAP
    array = source.column(rows.array)
    records = list(islice(read_records(files[0], source), _RECORDS_TRIED))
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
    known = {word for _, word in chat.rows.words}
    n_known = n_unknown = 0
    for record in records:
        for row in counted_rows(record, source):
            turns = row.get(chat.rows.array, ()) if chat.rows.array else (row,)
            for turn in turns if isinstance(turns, list | tuple) else ():
                if isinstance(turn, dict) and turn.get(chat.rows.text) is not None:
                    is_known = turn.get(chat.rows.speaker) in known
                    n_known += is_known
                    n_unknown += not is_known
    return n_known, n_unknown


def _item_flags(lacking: Sequence[Need], advice: Mapping[str, str], found: FoundKeys) -> list[Flag]:
    """Name the columns of an array that was probably found under another name."""
    flags = []
    for need in lacking:
        if not need.column.items or need.place not in advice:
            continue
        keys = found.below(advice[need.place])
        for item in need.column.items:
            if item.needed_by and item.needed_by == need.column.needed_by and item.name not in keys:
                path = nearest_key(item, keys, keys_of_others(need.column.items, item.name))
                if path is not None:
                    flags.append(column_flag(item.name, path))
    return flags


def _fits(layout: str, suite: str, source: Source, seen: FileSample) -> bool:
    """Tell whether rows have all that is needed where a layout says."""
    try:
        source = map_source(source, load_layout(layout).of(suite))
    except UsageError:
        return False
    needs = needs_of(source)
    known = Known(arrays_of(source))
    if seen.file.size and seen.file.path != STDIN:
        again = sample_file(seen.file, source, known)
    else:
        again = sample_rows(seen.read, source, seen.file, known)
    given = [need for need in needs if again.occurrences[need.place].given]
    return not again.open(needs) and all(
        again.occurrences[need.place].proves(need) for need in given
    )
