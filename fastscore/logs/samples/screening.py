"""Which files are logs of a suite, and which are left aside or refused.

A file in a folder or glob whose rows have no such key is left aside by name; one that was named
itself, or a run in which nothing has it, is an error that says what to type.

Modules of refusals are imported where one is made, and rules of chats where a suite scores chats.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from fastscore.errors import counted, listed
from fastscore.logs.inputs.column_map import EXAMPLE, UnmappedLogError, column_flag, typed
from fastscore.logs.inputs.document_values import json_of, scalars_of
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.near_names import is_called
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.file_samples import (
    FileSample,
    Known,
    may_follow,
    occurs_in,
    sample_file,
)
from fastscore.logs.samples.findings import Finding, jq, jq_key, jq_path
from fastscore.logs.samples.profile import (
    KINDS,
    MOST_ROWS_SAMPLED,
    SHOWN,
    SHOWN_CHARACTERS,
    ColumnSample,
    Record,
    RequiredColumn,
    list_asked_for,
    list_keys,
    profile_of,
    required_columns,
)
from fastscore.logs.samples.records import blank_line, first_row
from fastscore.logs.samples.records import records as records_of
from fastscore.suites.declarations import Column, Source

if TYPE_CHECKING:
    from fastscore.logs.samples.chat_samples import ChatSample


@dataclass(frozen=True, slots=True)
class Screened:
    """The files that are read, those that are no logs of the suite, and what a user should know."""

    files: tuple[InputFile, ...]
    left_aside: tuple[InputFile, ...]
    notes: tuple[str, ...]


def screen(
    files: Sequence[InputFile],
    source: Source,
    suite: str,
    *,
    read: Callable[[], Iterator[Record]] | None = None,
    is_part: bool = False,
) -> Screened:
    """Look at files, or at rows in memory, before they are read."""
    if not required_columns(source):
        return Screened(tuple(files), (), ())
    kept: list[FileSample] = []
    left: list[FileSample] = []
    try:
        return _screen(files, source, suite, read, kept, left, is_part=is_part)
    except UnmappedLogError as error:
        from fastscore.logs.samples.refusals import encoding_error

        looked_at = (seen.file for seen in (*kept, *left))
        encoded = next(filter(None, map(encoding_error, looked_at)), None)
        if encoded is not None:
            raise encoded from error
        # the rows of a document may be others for another suite
        error.keys = [
            frozenset() if each.file.format == "json" else each.keys - {source.array_column or ""}
            for each in (*kept, *left)
        ]
        raise


def _screen(
    files: Sequence[InputFile],
    source: Source,
    suite: str,
    read: Callable[[], Iterator[Record]] | None,
    kept: list[FileSample],
    left: list[FileSample],
    *,
    is_part: bool,
) -> Screened:
    """Look at files; those that are kept and those that are left aside are added to lists."""
    known = Known()
    for file in files:
        seen = sample_file(file, source, known, read)
        if seen.file is not file:
            continue
        # who reads all of it knows more
        if file.format == "jsonl" and file.first_line.strip() == b"[":
            raise Finding(
                "the lines are one JSON array.", unless=jq(".[]", into="rows.jsonl")
            ).refused(file.path)
        if seen.given_up or (seen.rows and not seen.lacking):
            kept.append(seen)
            continue
        from fastscore.logs.samples.refusals import beginning, foreign_error

        if not (seen.lacking or beginning(seen)):
            kept.append(seen)
            continue
        left.append(seen)
        if not file.pattern:
            is_named = seen.lacking and source.chat is not None and source.asked_for
            sample = _first_chats(source, seen) if is_named else None
            raise _absent_key(source, [seen], [sample]) or foreign_error(suite, source, [seen])
    # an array without an element proves nothing
    if not any(seen.has_values or not seen.is_whole for seen in kept) and (left or not kept):
        from fastscore.logs.samples.refusals import foreign_error

        raise foreign_error(suite, source, left)
    chats = [(seen.file.path, _first_chats(source, seen)) for seen in kept]
    if not is_part:
        _check_together(suite, source, kept, chats)
    for seen, (_, sample) in zip(kept, chats, strict=True):
        check_ids(suite, source, seen)
        _check_types(source, seen)
        _check_blank_lines(seen, sample)
    notes = [_left_note(suite, left)] if left else []
    for path, sample in chats:
        if sample:
            from fastscore.logs.samples.chat_rules import chat_notes

            notes += [f"{path}: {note}" for note in chat_notes(source, sample)]
    aside = {seen.file.path for seen in left}
    stays = tuple(file for file in files if file.path not in aside)
    notes += _pooled_notes(stays, kept)
    return Screened(stays, tuple(seen.file for seen in left), tuple(notes))


def _first_chats(source: Source, seen: FileSample) -> "ChatSample | None":
    """Interpret a file's first rows; None of a suite that does not score chats."""
    if source.chat_rows is None:
        return None
    from fastscore.logs.samples.chat_rules import first_chats

    return first_chats(source, seen.read())


def _check_together(
    suite: str,
    source: Source,
    kept: Sequence[FileSample],
    chats: "Sequence[tuple[str, ChatSample | None]]",
) -> None:
    """Refuse files in no row of which something needed has a value, or a word that is known."""
    needs, others = required_columns(source), list_asked_for(source)
    total = {need.place: ColumnSample() for need in (*needs, *others)}
    for seen in kept:
        for place, counts in seen.samples.items():
            total[place].add(counts)
    samples = {need: total[need.place] for need in needs}
    given = {need.name for need, counts in samples.items() if counts.given or counts.may_follow}
    lacking = [need for need, counts in samples.items() if counts.asked and need.name not in given]
    # an empty file is none of those that lack something
    kept = [seen for seen in kept if seen.rows] or kept
    slip = _absent_key(source, kept, [sample for _, sample in chats])
    if slip is not None:
        raise slip
    if lacking:
        from fastscore.logs.samples.refusals import lacking_error

        raise lacking_error(suite, source, lacking, kept)
    for path, sample in chats:
        if sample:
            from fastscore.logs.samples.chat_rules import chat_error

            contradiction = chat_error(path, source, sample)
            if contradiction is not None:
                raise contradiction
    for need, counts in samples.items():
        if counts.proves(need):
            continue
        from fastscore.logs.samples.refusals import words_error

        error = words_error(suite, source, need, counts, kept)
        if error is not None:
            raise error
    stands = {need.name for need in others if total[need.place].keyed}
    for need in others:
        if need.name not in stands and not any(_may_occur(seen, need) for seen in kept):
            from fastscore.logs.samples.refusals import lacking_error

            raise lacking_error(suite, source, [need], kept)


def _absent_key(
    source: Source, seen: Sequence[FileSample], chats: "Sequence[ChatSample | None]"
) -> UnmappedLogError | None:
    """Return the error of an option that names a key of chats which no dialogue has."""
    if source.chat is None:
        return None
    from fastscore.logs.samples.chat_rules import absent_keys

    for flag, keys in absent_keys(source, [sample for sample in chats if sample]):
        need = RequiredColumn(flag.words[0], None, Column(name=flag.words[-1], kind="json"))
        if not any(_may_occur(each, need) for each in seen):
            from fastscore.logs.samples.refusals import absent_key_error

            return absent_key_error(flag, keys, seen)
    return None


def _may_occur(seen: FileSample, need: RequiredColumn) -> bool:
    """Tell whether a key may stand after the rows that were looked at."""
    in_columns = seen.file.format in ("csv", "parquet") and need.holder is None
    if in_columns or (seen.is_whole and not seen.alike):
        return False
    if not seen.file.size:
        keys = {key.rpartition("]")[2].rpartition(".")[2] for key in need.column.keys}
        return any(_holds(record, keys) for record in seen.read())
    return any(may_follow(file, need) for file in seen.files)


def _holds(value: Any, keys: set[str]) -> bool:
    """Tell whether an object, or one inside it, has one of some keys."""
    value = json_of(value)
    if isinstance(value, dict):
        return not keys.isdisjoint(value) or any(_holds(each, keys) for each in value.values())
    return isinstance(value, list) and any(_holds(each, keys) for each in value)


def _left_note(suite: str, left: Sequence[FileSample]) -> str:
    from fastscore.logs.samples.refusals import describe_no_row

    names = [seen.file.path for seen in left]
    for place, seen in enumerate(left[:SHOWN]):
        why = describe_no_row(seen)
        if seen.lacking:
            found = list_keys(profile_of(seen.read(), 1).below(""))
            why = f"no {', '.join(need.place for need in seen.lacking)}; found {found}"
        names[place] += f" ({why})"
    what = "1 file is no log" if len(left) == 1 else f"{len(left):,} files are no logs"
    return f"left aside, as {what} of {suite}: {listed(names, SHOWN, '; ')}"


def _pooled_notes(files: Sequence[InputFile], kept: Sequence[FileSample]) -> list[str]:
    """Say which folders are pooled, and which files have another shape than most."""
    notes = []
    # a shell expands globs: files that are named themselves are pooled as others are
    parted = (file.path.rpartition(os.sep) for file in files if file.path != STDIN)
    folders = Counter(folder or root or "." for folder, root, _ in parted)
    if len(folders) > 1:
        shown = listed([f"{folder} ({count:,})" for folder, count in folders.items()], SHOWN)
        notes.append(f"pools the files of {len(folders):,} folders as one run: {shown}")
    shapes = Counter(seen.columns for seen in kept if seen.rows for _ in seen.files)
    usual, _ = shapes.most_common(1)[0] if shapes else (frozenset(), 0)
    for shape, count in shapes.items():
        if shape != usual:
            first = next(seen.file.path for seen in kept if seen.columns == shape and seen.rows)
            parts = [
                f"{word} {', '.join(sorted(names))}"
                for word, names in (("without", usual - shape), ("with", shape - usual))
                if names
            ]
            notes.append(
                f"pools files of different shape: {counted(count, 'files')} of {len(files):,} "
                f"{' and '.join(parts)} (first: {first})"
            )
    return notes


_TABLE_ROWS, _DEEPEST_VALUE = 20_000, 3


def _check_types(source: Source, seen: FileSample) -> None:
    """Refuse a file whose first rows have only objects or arrays in the place of single values."""
    for name, (key, found) in seen.nested.items() if source.chat is None else ():
        column, is_list = source.column(name), isinstance(found, list)
        value = found[0] if is_list and found else found
        usable = (str, int) if "integer" in (column.kind, *column.accepts) else str
        leaves = scalars_of({"0": value}, _DEEPEST_VALUE)
        inside = [path[2:] for path, leaf in leaves if isinstance(leaf, usable)]
        if column.kind == "json" or column.otherwise == "null" or not inside:
            continue
        first, at = jq_path([*filter(None, inside[0].split("."))]), jq_path(key.split("."))
        spells_array = 'strings | select(try (fromjson | type == "array") catch false)'
        read = f"({at} | {spells_array}) |= fromjson | "
        anew = jq(f"{read}({at} | arrays) |= (.[0] | {first})", into="rows.jsonl")
        flags = [] if is_list else [column_flag(name, f"{key}.{inside[0]}")]
        one = f"To read the first of each: {anew}"
        raise Finding(
            f"{key} is {cut(json.dumps(found, ensure_ascii=False), SHOWN_CHARACTERS)}, expected "
            f"{KINDS[column.kind]}.",
            flags if len(inside) == 1 else [],
            unless=one if is_list else f"Name the value to read, for example {EXAMPLE}.",
            example=flags,
        ).refused(seen.file.path)


def check_ids(suite: str, source: Source, seen: FileSample) -> None:
    """Refuse a file that would be one dialogue although a key of its rows names several."""
    if not seen.other_ids:
        return
    key = source.column(source.dialogue_key[0])
    records = list(islice(seen.read(), MOST_ROWS_SAMPLED))
    found = _named_ids(records, seen) or _repeated_ids(records, seen.other_ids)
    if found is None:
        return
    raise Finding(
        f"no row has {key.name}, by which {suite} tells dialogues apart, so the file would be one "
        f"dialogue. {found!r} varies within the file as names of dialogues do.",
        [column_flag(key.name, found)],
        more=f" If the file is one dialogue, type {typed([column_flag(key.name, '')])} "
        "(nothing after the =).",
    ).refused(seen.file.path)


def _check_blank_lines(seen: FileSample, sample: "ChatSample | None") -> None:
    """Refuse rows without a dialogue's name between which there are blank lines."""
    is_text = seen.file.size and seen.file.format in ("csv", "jsonl")
    if not is_text or sample is None or not sample.has_unnamed_rows:
        return
    line = blank_line(seen.file)
    if line:
        name, is_row = sample.rows.id, 'test("[^ ,;\\t\\r]")'
        program = (
            f"foreach inputs as $line (1; if $line | {is_row} then . else . + 1 end; . as $number "
            f'| $line | select({is_row}) | fromjson + {{{jq_key(name)}: "\\($number)"}})'
        )
        raise Finding(
            f"line {line} is blank, and no row names its dialogue: blank lines probably part "
            "dialogues.",
            unless=f"If they are one dialogue, type {typed([column_flag(name, '')])}. If not: "
            f"{jq(program, by_lines=True, into='turns.jsonl')}",
        ).refused(seen.file.path)


def _named_ids(records: Sequence[Record], seen: FileSample) -> str | None:
    """Return a key that is called as names of dialogues are, if it has several values."""
    for name in filter(partial(is_called, "dialogue"), seen.other_ids):
        values = _values(records, name)
        firsts = (first_row(file) or next(records_of(file), {}) for file in seen.alike)
        others = (row.get(name) for row in firsts)
        if len(set(values)) > 1 or (values and _has_other(seen, seen.file, name, values[0])):
            return name
        if any(
            _has_other(seen, file, name, value)
            for file, value in zip(seen.alike, others, strict=True)
            if isinstance(value, str | int | float)
        ):
            return name
    return None


def _has_other(seen: FileSample, file: InputFile, name: str, value: str | float) -> bool:
    """Tell whether a key has another value than one in a file, of tables in their first rows."""
    if not file.size:
        return False
    if file.format not in ("json", "jsonl"):
        rows = islice(seen.read(), _TABLE_ROWS)
        return any(record.get(name) not in (None, "", value) for record in rows)
    spelled = re.escape(f'"{value}"' if isinstance(value, str) else str(value)).encode()
    pattern = rb'"%s"\s*:\s*(?!%s|null\b)["\d]' % (re.escape(name).encode(), spelled)
    return occurs_in(file, pattern)


def _repeated_ids(records: Sequence[Record], names: Iterable[str]) -> str | None:
    """Return a key that is called an id and has the same value in neighbouring rows only."""
    for name in names:
        values = _values(records, name)
        changes = sum(a != b for a, b in pairwise(values))
        if 1 < len(set(values)) == changes + 1 < len(records) == len(values):
            return name
    return None


def _values(records: Sequence[Record], name: str) -> list[Any]:
    found = (record.get(name) for record in records)
    return [value for value in found if isinstance(value, str | int | float) and value != ""]
