"""Where what a suite lacks probably stands in a log, and what to type."""

from collections import Counter
from collections.abc import Mapping, Sequence

from fastscore.errors import UsageError
from fastscore.logs.inputs.column_map import EACH, map_source
from fastscore.logs.inputs.found_keys import FoundKey, FoundKeys
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.inputs.needs import Need, arrays_of, needs_of
from fastscore.logs.inputs.sampling import FileSample, Known, sample_rows
from fastscore.logs.inputs.similar_names import column_flag, keys_of_others, nearest_key
from fastscore.suites.declarations import Source


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
    arrays = (found.below_line(array) for array in ("", *found.arrays) if EACH not in array)
    return max((_suggested(source, lacking, found, keys) for keys in arrays), key=len)


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
                if EACH not in path and path not in taken
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


def to_type(
    suite: str,
    source: Source,
    lacking: Sequence[Need],
    advice: Mapping[str, str],
    found: FoundKeys,
    seen: FileSample,
) -> str:
    """Say what to type: a layout that fits, columns, or where to look."""
    if _is_array_of_rows(source, found):
        return (
            f"An array by itself is one {source.array_column} here, and this one holds several "
            "rows: `jq -c '.[]'` writes them as JSON Lines, one a line."
        )
    for name in layout_names():
        if _fits(name, suite, source, seen):
            return f"Type --layout {name}."
    flags = [column_flag(need.name, advice[need.place]) for need in lacking if need.place in advice]
    held = [need.holder for need in lacking if need.column.items or need.holder]
    if held and advice:
        flags += _item_flags(lacking, advice, found)
    if flags:
        return f"Type {' '.join(dict.fromkeys(flags))}."
    return (
        f"Say where it stands: --column {lacking[0].name}=KEY; `fastscore inspect` lists the keys "
        "of a log and the suites that it fits."
    )


def _is_array_of_rows(source: Source, found: FoundKeys) -> bool:
    """Tell whether an array that is read as one row holds objects with arrays of their own."""
    array = source.array_column
    return (
        array is not None
        and set(found.below("")) == {array}
        and any(path.startswith(array + EACH) for path in found.arrays)
    )


def _item_flags(lacking: Sequence[Need], advice: Mapping[str, str], found: FoundKeys) -> list[str]:
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
    again = sample_rows(seen.read, source, seen.file, Known(arrays_of(source)))
    given = [need for need in needs if again.occurrences[need.place].given]
    return not again.open(needs) and all(
        again.occurrences[need.place].proves(need) for need in given
    )
