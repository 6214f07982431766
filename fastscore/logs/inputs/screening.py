"""Which files are logs of a suite, and what to tell a user whose logs are not.

A file in a folder or glob whose rows have no such key is left aside by name; one that was named
itself, or a run in which nothing has it, is an error that says what to type.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fastscore.errors import InputError, UsageError
from fastscore.logs.inputs.column_map import EACH, mapped
from fastscore.logs.inputs.files import STDIN, Format, InputFile
from fastscore.logs.inputs.found_keys import (
    SHOWN,
    FoundKey,
    FoundKeys,
    count_keys,
    listed,
    shortened,
)
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.inputs.looking import Known, Seen, look, look_at, may_follow
from fastscore.logs.inputs.needs import Need, arrays_of, asked_for, needs_of
from fastscore.logs.inputs.records import Record, begins_with
from fastscore.logs.inputs.sights import Sight
from fastscore.logs.inputs.similar_names import (
    KINDS,
    column_flag,
    nearest_key,
    nearest_words,
    owned,
)
from fastscore.suites.declarations import Source

_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Screened:
    """What is read, and what a user should know of it.

    Parameters
    ----------
    files
        The files that are read.
    left_aside
        The files that are no logs of the suite.
    notes
        Lines about files that were left aside, and about what is pooled.
    """

    files: tuple[InputFile, ...]
    left_aside: tuple[InputFile, ...]
    notes: tuple[str, ...]


def screen(files: Sequence[InputFile], source: Source, suite: str) -> Screened:
    """Look at files before they are read.

    Parameters
    ----------
    files
        The inputs.
    source
        The suite's source, columns mapped.
    suite
        The suite's name.

    Raises
    ------
    InputError
        A named file, or all of them together, lacks what every metric needs, or has no row at all.
    """
    needs = needs_of(source)
    if not needs:
        return Screened(tuple(files), (), ())
    kept: list[Seen] = []
    left: list[tuple[Seen, list[Need]]] = []
    known = Known(arrays_of(source))
    for file in files:
        seen = look(file, source, known)
        lacking = seen.lacks(needs)
        # who reads all of it knows more
        if seen.given_up or not (lacking or _beginning(seen)):
            kept.append(seen)
        elif file.pattern:
            left.append((seen, lacking))
        else:
            raise _foreign_error(suite, source, [(seen, lacking)])
    if not kept:
        raise _foreign_error(suite, source, left)
    _check_together(suite, source, kept)
    notes = [_left_note(suite, source, left)] if left else []
    notes += _pooled_notes(kept)
    return Screened(
        tuple(seen.file for seen in kept), tuple(seen.file for seen, _ in left), tuple(notes)
    )


def screen_rows(
    read: Callable[[], Iterator[Record]], format: Format, name: str, source: Source, suite: str
) -> None:
    """Raise `InputError` where rows in memory lack what every metric needs; see `screen`."""
    seen = look_at(read, source, InputFile(name, format, "none", 0), Known(arrays_of(source)))
    lacking = seen.lacks(needs_of(source))
    if lacking:
        raise lacking_error(suite, source, lacking, [seen])
    _check_together(suite, source, [seen])


def _check_together(suite: str, source: Source, kept: Sequence[Seen]) -> None:
    """Refuse files in no row of which something needed has a value, or a word that is known."""
    needs, others = needs_of(source), asked_for(source)
    total = {need.place: Sight() for need in (*needs, *others)}
    for seen in kept:
        for place, sight in seen.sights.items():
            total[place].add(sight)
    sights = {need: total[need.place] for need in needs}
    given = {need.name for need, sight in sights.items() if sight.given or sight.may_follow}
    lacking = [need for need, sight in sights.items() if sight.asked and need.name not in given]
    if lacking:
        raise lacking_error(suite, source, lacking, kept)
    for need, sight in sights.items():
        error = _words_error(suite, need, sight) or _any_word_error(suite, need, sight)
        if error is not None:
            raise error
    stands = {need.name for need in others if total[need.place].keyed}
    for need in others:
        if need.name not in stands and not any(_may_stand(seen, need) for seen in kept):
            raise lacking_error(suite, source, [need], kept)


def _may_stand(seen: Seen, need: Need) -> bool:
    """Tell whether a key may stand behind the rows that were looked at."""
    in_columns = seen.file.format in ("csv", "parquet") and need.holder is None
    return not seen.is_whole and not in_columns and may_follow(seen.file, need)


def _beginning(seen: Seen) -> str:
    """Return how a file begins that holds text but no row; nothing of any other."""
    if seen.rows or seen.file.format not in ("json", "jsonl"):
        return ""
    text = begins_with(seen.file).decode(errors="replace").partition("\n")[0].rstrip()
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _foreign_error(
    suite: str, source: Source, foreign: Sequence[tuple[Seen, Sequence[Need]]]
) -> InputError:
    """Make the error of files that are no logs of a suite."""
    lacking = next((lacking for _, lacking in foreign if lacking), ())
    if lacking:
        return lacking_error(suite, source, lacking, [seen for seen, needs in foreign if needs])
    first = foreign[0][0]
    return InputError(
        f"{_named([seen for seen, _ in foreign])}: {_no_row(first)}.", _what_is_read(first)
    )


def _no_row(seen: Seen) -> str:
    what = "no line is a JSON object" if seen.file.format == "jsonl" else "no JSON object"
    return f"{what}; it begins with {_beginning(seen)!r}"


def _what_is_read(seen: Seen) -> str:
    if seen.file.format == "json":
        return "A JSON document holds an object, or an array of them."
    if _beginning(seen).startswith("["):
        return "JSON Lines have one object on each line: `jq -c '.[]'` writes those of an array so."
    return "JSON Lines have one object on each line: `jq -c .` writes an indented file so."


def lacking_error(
    suite: str, source: Source, lacking: Sequence[Need], seen: Sequence[Seen]
) -> InputError:
    """Make the error of rows that lack what all metrics need, or what was asked for."""
    found = count_keys(seen[0].read())
    advice = suggested(source, lacking, found)
    what = f"what {suite} needs" if lacking[0] in needs_of(source) else "a column that is asked for"
    lines = [f"{_named(seen)}: no row has {what}."]
    told: set[str] = set()
    for need in lacking:
        lines += [
            f"  {need.place}: {_absence(need, seen)}",
            f"    looked for: {', '.join(need.column.keys)}",
        ]
        keys = listed(_keys_beside(need, source, advice, found))
        if keys not in told:
            lines.append(f"    found: {keys}")
            told.add(keys)
        if need.place in advice:
            lines.append(f"    nearest: {advice[need.place]}")
    return InputError("\n".join(lines), _to_type(suite, source, lacking, advice, found, seen[0]))


def _words_error(suite: str, need: Need, sight: Sight) -> InputError | None:
    """Make the error of a column in which expected words stand under another name, or none do."""
    absent = [word for word in need.column.expects if word not in sight.known]
    words = sorted(sight.words.items(), key=lambda item: (-item[1], item[0]))
    flags = nearest_words(need.name, [word for word, _ in words], absent)
    if not words or not absent:
        return None
    return InputError(
        f"No row has what {suite} needs: {need.place} is never {' or '.join(map(repr, absent))}.\n"
        f"  looked for: {', '.join(need.column.expects)}\n"
        f"  found: {shortened([f'{word!r} ({count:,})' for word, count in words])}",
        f"Type {' '.join(flags)}."
        if flags
        else f"Say what they mean: --value {need.name}:WORD={need.column.expects[0]}.",
    )


def _any_word_error(suite: str, need: Need, sight: Sight) -> InputError | None:
    """Make the error of a column in which none of the words stands of which one is expected."""
    column = need.column
    has_words = bool(sight.words or sight.known)
    if not (column.expects_any and has_words) or sight.any_expected:
        return None
    expected = [word for name, word in column.expects_any if name == column.name]
    elsewhere = [
        f", and {name} never begins with {word.removesuffix('*')!r}"
        for name, word in column.expects_any
        if name != column.name
    ]
    words = sorted(sight.words.items(), key=lambda item: (-item[1], item[0]))
    found = [f"{word!r} ({count:,})" for word, count in words] + list(
        map(repr, sorted(sight.known))
    )
    flags = nearest_words(need.name, [word for word, _ in words], column.knows)
    typed = any(flag.rstrip("'").endswith(f"={word}") for flag in flags for word in expected)
    return InputError(
        f"No row has what {suite} needs: {need.place} is never "
        f"{', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}{''.join(elsewhere)}.\n"
        f"  found: {shortened(found)}",
        f"Type {' '.join(flags)}."
        if typed
        else f"Say what they mean: --value {need.name}:WORD={expected[0]}.",
    )


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
        taken = owned(siblings, need.name)
        if need.column.items:
            arrays = {
                path: _array_key()
                for path in found.arrays
                if EACH not in path and path not in taken
            }
            path = nearest_key(need.column, arrays) or next(iter(arrays), None)
        else:
            keys = {**_keys_beside(need, source, advice, found), **in_array}
            path = nearest_key(need.column, keys, taken | set(advice.values()))
        if path is not None:
            advice[need.place] = path
    return advice


def _array_key() -> FoundKey:
    return FoundKey(count=1, types=Counter(array=1))


def _keys_beside(
    need: Need, source: Source, advice: Mapping[str, str], found: FoundKeys
) -> dict[str, FoundKey]:
    """Return the keys of the objects in which a need should stand, in an array by its new name."""
    if need.holder is not None and need.holder.name in advice:
        return found.below(advice[need.holder.name])
    return found.around(source, need.holder)


def _to_type(
    suite: str,
    source: Source,
    lacking: Sequence[Need],
    advice: Mapping[str, str],
    found: FoundKeys,
    seen: Seen,
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
        flags += _item_flags(source, lacking, advice, found)
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


def _item_flags(
    source: Source, lacking: Sequence[Need], advice: Mapping[str, str], found: FoundKeys
) -> list[str]:
    """Name the columns of an array that was probably found under another name."""
    flags = []
    for need in lacking:
        if not need.column.items or need.place not in advice:
            continue
        keys = found.below(advice[need.place])
        for item in need.column.items:
            if item.needed_by and item.needed_by == need.column.needed_by and item.name not in keys:
                path = nearest_key(item, keys, owned(need.column.items, item.name))
                if path is not None:
                    flags.append(column_flag(item.name, path))
    return flags


def _fits(layout: str, suite: str, source: Source, seen: Seen) -> bool:
    """Tell whether rows have all that is needed where a layout says."""
    try:
        source = mapped(source, load_layout(layout).of(suite))
    except UsageError:
        return False
    needs = needs_of(source)
    again = look_at(seen.read, source, seen.file, Known(arrays_of(source)))
    given = [need for need in needs if again.sights[need.place].given]
    return not again.open(needs) and all(again.sights[need.place].proves(need) for need in given)


def _named(seen: Sequence[Seen]) -> str:
    first = seen[0].file.path
    return first if len(seen) == 1 else f"{first} and {len(seen) - 1:,} more"


def _absence(need: Need, seen: Sequence[Seen]) -> str:
    """Say how a need is absent; files of columns lack one as a whole."""
    sights = [each.sights[need.place] for each in seen if each.sights]
    asked = sum(sight.asked for sight in sights)
    unusable = sum((sight.unusable for sight in sights), Counter[str]())
    if unusable:
        found = ", ".join(f"{kind}s ({count:,})" for kind, count in unusable.most_common())
        return f"found {found}, expected {KINDS[need.column.kind]}, in {_objects(need, asked)}"
    in_columns = all(each.file.format in ("csv", "parquet") for each in seen)
    if need.holder is None and in_columns and not any(sight.keyed for sight in sights):
        return "no such column"
    if not all(each.is_whole for each in seen):
        return f"absent or null in all {_objects(need, 0).removeprefix('0 ')}"
    return f"absent or null in {_objects(need, asked)}"


def _objects(need: Need, asked: int) -> str:
    if need.holder is None:
        return "1 row" if asked == 1 else f"{asked:,} rows"
    what = f"{need.holder.name}[]"
    return f"1 object of {what}" if asked == 1 else f"{asked:,} objects of {what}"


def _left_note(suite: str, source: Source, left: Sequence[tuple[Seen, Sequence[Need]]]) -> str:
    names = []
    for seen, lacking in left[:SHOWN]:
        if not lacking:
            names.append(f"{seen.file.path} ({_no_row(seen)})")
            continue
        found = listed(count_keys(seen.read(), 1).below(""))
        names.append(
            f"{seen.file.path} (no {', '.join(need.place for need in lacking)}; found {found})"
        )
    more = f"; and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
    what = "1 file is no log" if len(left) == 1 else f"{len(left):,} files are no logs"
    return f"left aside, as {what} of {suite}: {'; '.join(names)}{more}"


def _pooled_notes(kept: Sequence[Seen]) -> list[str]:
    """Say which folders are pooled, and which files have another shape than most."""
    notes = []
    # a shell expands globs: files that are named themselves are pooled as others are
    parted = (seen.file.path.rpartition(os.sep) for seen in kept if seen.file.path != STDIN)
    folders = Counter(folder or root or "." for folder, root, _ in parted)
    if len(folders) > 1:
        counted = [f"{folder} ({count:,})" for folder, count in folders.items()]
        notes.append(
            f"pools the files of {len(folders):,} folders as one run: {shortened(counted)}"
        )
    shapes = Counter(seen.columns for seen in kept if seen.rows)
    usual, _ = shapes.most_common(1)[0] if shapes else (frozenset(), 0)
    for shape, count in shapes.items():
        if shape != usual:
            first = next(seen.file.path for seen in kept if seen.columns == shape and seen.rows)
            parts = [
                f"{word} {', '.join(sorted(names))}"
                for word, names in (("without", usual - shape), ("with", shape - usual))
                if names
            ]
            files = "1 file" if count == 1 else f"{count:,} files"
            notes.append(
                f"pools files of different shape: {files} of {len(kept):,} {' and '.join(parts)} "
                f"(first: {first})"
            )
    return notes
