"""Which files are logs of a suite, and what to tell a user whose logs are not.

A file in a folder or glob whose rows have no such key is left aside by name; one that was named
itself, or a run in which nothing has it, is an error that says what to type.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fastscore.errors import InputError, UsageError
from fastscore.logs.inputs.column_map import EACH, mapped
from fastscore.logs.inputs.files import STDIN, Format, InputFile
from fastscore.logs.inputs.found_keys import FoundKey, FoundKeys, count_keys
from fastscore.logs.inputs.layout import layout_names, load_layout
from fastscore.logs.inputs.needs import KnownShapes, Need, Seen, Sight, look, look_at, needs_of
from fastscore.logs.inputs.records import Record, begins_with
from fastscore.logs.inputs.similar_names import (
    KINDS,
    nearest_key,
    nearest_word,
    owned,
)
from fastscore.suites.base import Source

_SHOWN = 8
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
    known: KnownShapes = {}
    for file in files:
        seen = look(file, source, known)
        lacking = seen.lacks(needs)
        if not lacking and not _beginning(seen):
            kept.append(seen)
        elif file.pattern:
            left.append((seen, lacking))
        else:
            raise _foreign_error(suite, source, [(seen, lacking)])
    if not kept:
        raise _foreign_error(suite, source, left)
    _check_together(suite, source, needs, kept)
    notes = [_left_note(suite, source, left)] if left else []
    notes += _pooled_notes(kept)
    return Screened(
        tuple(seen.file for seen in kept), tuple(seen.file for seen, _ in left), tuple(notes)
    )


def screen_rows(
    read: Callable[[], Iterator[Record]], format: Format, name: str, source: Source, suite: str
) -> None:
    """Raise `InputError` where rows in memory lack what every metric needs; see `screen`."""
    seen = look_at(read, source, InputFile(name, format, "none", 0), {})
    lacking = seen.lacks(needs_of(source))
    if lacking:
        raise lacking_error(suite, source, lacking, [seen])
    _check_together(suite, source, needs_of(source), [seen])


def _check_together(
    suite: str, source: Source, needs: Iterable[Need], kept: Sequence[Seen]
) -> None:
    """Refuse files in no row of which something needed has a value, or a word that is known."""
    total: dict[str, Sight] = {}
    for seen in kept:
        for place, sight in seen.sights.items():
            total.setdefault(place, Sight()).add(sight)
    given = {need.name for need in needs if total[need.place].given}
    lacking = [need for need in needs if total[need.place].asked and need.name not in given]
    if lacking:
        raise lacking_error(suite, source, lacking, kept)
    for need in needs:
        error = _words_error(suite, need, total[need.place])
        if error is not None:
            raise error


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
    return "JSON Lines have one object on each line: `jq -c .` writes an indented file so."


def lacking_error(
    suite: str, source: Source, lacking: Sequence[Need], seen: Sequence[Seen]
) -> InputError:
    """Make the error of rows that lack what all metrics need."""
    found = count_keys(seen[0].read())
    advice = suggested(source, lacking, found)
    lines = [f"{_named(seen)}: no row has what {suite} needs."]
    listed: set[str | None] = set()
    for need in lacking:
        asked = sum(each.sights[need.place].asked for each in seen)
        lines += [
            f"  {need.place}: {_absence(need, seen, asked)}",
            f"    looked for: {', '.join(need.column.keys)}",
        ]
        array = _array_of(need, source, advice)
        if array not in listed:
            lines.append(f"    found: {_listed(found.below(array or ''))}")
            listed.add(array)
        if need.place in advice:
            lines.append(f"    nearest: {advice[need.place]}")
    return InputError("\n".join(lines), _to_type(suite, source, lacking, advice, found, seen[0]))


def _words_error(suite: str, need: Need, sight: Sight) -> InputError | None:
    """Make the error of a column in which expected words stand under another name, or none do."""
    absent = [word for word in need.column.expects if word not in sight.known]
    words = sorted(sight.words.items(), key=lambda item: (-item[1], item[0]))
    meant = {word: nearest_word(word, absent) for word, _ in words}
    flags = [f"--value {need.name}:{word}={known}" for word, known in meant.items() if known]
    if not words or not absent or (sight.known and not flags):
        return None
    return InputError(
        f"No row has what {suite} needs: {need.place} is never {' or '.join(map(repr, absent))}.\n"
        f"  looked for: {', '.join(need.column.expects)}\n"
        f"  found: {', '.join(f'{word!r} ({count:,})' for word, count in words[:_SHOWN])}",
        f"Type {' '.join(flags)}."
        if flags
        else f"Say what they mean: --value {need.name}:WORD={need.column.expects[0]}.",
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
            array = _array_of(need, source, advice)
            keys = found.below(array or "")
            if need.holder is None and not any(column.items for column in source.columns):
                keys = {**keys, **_in_arrays(found)}
            path = nearest_key(need.column, keys, taken | set(advice.values()))
        if path is not None:
            advice[need.place] = path
    return advice


def _array_key() -> FoundKey:
    return FoundKey(count=1, types=Counter(array=1))


def _in_arrays(found: FoundKeys) -> dict[str, FoundKey]:
    return {path: key for path, key in found.keys.items() if path.count(EACH) == 1}


def _array_of(need: Need, source: Source, advice: Mapping[str, str]) -> str | None:
    """Return the path of the array in whose objects a need stands, None for rows."""
    if need.holder is None:
        return source.rows or None
    return advice.get(need.holder.name, need.holder.keys[0])


def _to_type(
    suite: str,
    source: Source,
    lacking: Sequence[Need],
    advice: Mapping[str, str],
    found: FoundKeys,
    seen: Seen,
) -> str:
    """Say what to type: a layout that fits, columns, or where to look."""
    for name in layout_names():
        if _fits(name, suite, source, seen):
            return f"Type --layout {name}."
    flags = [
        f"--column {need.name}={advice[need.place]}" for need in lacking if need.place in advice
    ]
    held = [need.holder for need in lacking if need.column.items or need.holder]
    if held and advice:
        flags += _item_flags(source, lacking, advice, found)
    if flags:
        return f"Type {' '.join(dict.fromkeys(flags))}."
    return (
        f"Say where it stands: --column {lacking[0].name}=KEY; `fastscore inspect` lists the keys "
        "of a log and the suites that it fits."
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
                    flags.append(f"--column {item.name}={path}")
    return flags


def _fits(layout: str, suite: str, source: Source, seen: Seen) -> bool:
    """Tell whether rows have all that is needed where a layout says."""
    try:
        source = mapped(source, load_layout(layout).of(suite))
    except UsageError:
        return False
    again = look_at(seen.read, source, seen.file, {})
    return all(again.sights[need.place].proves(need) for need in needs_of(source))


def _named(seen: Sequence[Seen]) -> str:
    first = seen[0].file.path
    return first if len(seen) == 1 else f"{first} and {len(seen) - 1:,} more"


def _absence(need: Need, seen: Sequence[Seen], asked: int) -> str:
    """Say how a need is absent; files of columns lack one as a whole."""
    unusable = sum((each.sights[need.place].unusable for each in seen), Counter[str]())
    if unusable:
        found = ", ".join(f"{kind}s ({count:,})" for kind, count in unusable.most_common())
        return f"found {found}, expected {KINDS[need.column.kind]}, in {_objects(need, asked)}"
    in_columns = all(each.file.format in ("csv", "parquet") for each in seen)
    if (
        need.holder is None
        and in_columns
        and not any(each.sights[need.place].keyed for each in seen)
    ):
        return "no such column"
    return f"absent or null in {_objects(need, asked)}"


def _objects(need: Need, asked: int) -> str:
    if need.holder is None:
        return "1 row" if asked == 1 else f"{asked:,} rows"
    what = f"{need.holder.name}[]"
    return f"1 object of {what}" if asked == 1 else f"{asked:,} objects of {what}"


def _listed(keys: Mapping[str, FoundKey]) -> str:
    """List keys with how often they stand there."""
    if not keys:
        return "nothing"
    by_count = sorted(keys.items(), key=lambda item: -item[1].count)
    shown = ", ".join(f"{path} ({key.count:,})" for path, key in by_count[:_SHOWN])
    return shown + (f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else "")


def _left_note(suite: str, source: Source, left: Sequence[tuple[Seen, Sequence[Need]]]) -> str:
    names = []
    for seen, lacking in left[:_SHOWN]:
        if not lacking:
            names.append(f"{seen.file.path} ({_no_row(seen)})")
            continue
        found = count_keys(seen.read(), 1)
        names.append(
            f"{seen.file.path} (no {', '.join(need.place for need in lacking)}; found "
            f"{_listed(found.below(''))})"
        )
    more = f"; and {len(left) - _SHOWN:,} more" if len(left) > _SHOWN else ""
    what = "1 file is no log" if len(left) == 1 else f"{len(left):,} files are no logs"
    return f"left aside, as {what} of {suite}: {'; '.join(names)}{more}"


def _pooled_notes(kept: Sequence[Seen]) -> list[str]:
    """Say which folders are pooled, and which files have another shape than most."""
    notes = []
    # a shell expands globs: files that are named themselves are pooled as others are
    paths = (seen.file.path for seen in kept)
    folders = Counter(os.path.dirname(path) or "." for path in paths if path != STDIN)
    if len(folders) > 1:
        counted = [f"{folder} ({count:,})" for folder, count in folders.items()]
        more = f" and {len(counted) - _SHOWN:,} more" if len(counted) > _SHOWN else ""
        notes.append(
            f"pools the files of {len(folders):,} folders as one run: "
            f"{', '.join(counted[:_SHOWN])}{more}"
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
