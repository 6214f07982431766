"""Which files are logs of a suite, and which are left aside or refused.

A file in a folder or glob whose rows have no such key is left aside by name; one that was named
itself, or a run in which nothing has it, is an error that says what to type.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from fastscore.errors import InputError, counted, listed
from fastscore.logs.inputs.column_map import Flag, UnmappedLogError, column_flag, typed, value_flag
from fastscore.logs.inputs.files import STDIN, InputFile
from fastscore.logs.inputs.found_keys import (
    KINDS,
    MOST_ROWS_SAMPLED,
    ROWS_SAMPLED,
    SHOWN,
    Record,
    count_keys,
    list_keys,
    mark_speakers,
    nearest_words,
    role_flags,
    role_meanings,
)
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.read.json_documents import first_text
from fastscore.logs.samples.chat_rules import chat_error, chat_notes, foreign_rows
from fastscore.logs.samples.column_samples import (
    ColumnSample,
    FileSample,
    Known,
    RequiredColumn,
    list_asked_for,
    may_follow,
    occurs_in,
    required_columns,
    sample_file,
)
from fastscore.logs.samples.records import first_row
from fastscore.logs.samples.records import records as records_of
from fastscore.logs.samples.suggestions import (
    flags_to_type,
    keys_beside,
    layout_of_arrays,
    suggested,
)
from fastscore.suites.chats import USER_ROLE
from fastscore.suites.declarations import Source


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
    known = Known()
    for file in files:
        seen = sample_file(file, source, known, read)
        if seen.file is not file:
            continue
        # who reads all of it knows more
        if seen.given_up or not (seen.lacking or beginning(seen)):
            kept.append(seen)
        elif file.pattern:
            left.append(seen)
        else:
            raise foreign_error(suite, source, [seen])
    if not kept:
        raise foreign_error(suite, source, left)
    if not is_part:
        _check_together(suite, source, kept)
    for seen in kept:
        check_ids(suite, source, seen)
    notes = [_left_note(suite, left)] if left else []
    notes += [
        f"{seen.file.path}: {note}"
        for seen in kept
        for note in chat_notes(source, islice(seen.read(), ROWS_SAMPLED))
    ]
    aside = {seen.file.path for seen in left}
    stays = tuple(file for file in files if file.path not in aside)
    notes += _pooled_notes(stays, kept)
    return Screened(stays, tuple(seen.file for seen in left), tuple(notes))


def _check_together(suite: str, source: Source, kept: Sequence[FileSample]) -> None:
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
    if lacking:
        raise lacking_error(suite, source, lacking, kept)
    for seen in kept:
        contradiction = chat_error(seen.file.path, source, seen.read())
        if contradiction is not None:
            raise contradiction
    for need, counts in samples.items():
        shown = (suite, source, need, counts, kept)
        error = words_error(*shown) or speakers_error(*shown)
        if error is not None:
            raise error
    stands = {need.name for need in others if total[need.place].keyed}
    for need in others:
        if need.name not in stands and not any(_may_occur(seen, need) for seen in kept):
            raise lacking_error(suite, source, [need], kept)


def _may_occur(seen: FileSample, need: RequiredColumn) -> bool:
    """Tell whether a key may stand after the rows that were looked at."""
    in_columns = seen.file.format in ("csv", "parquet") and need.holder is None
    if in_columns or (seen.is_whole and not seen.alike):
        return False
    return any(may_follow(file, need) for file in seen.files)


def _left_note(suite: str, left: Sequence[FileSample]) -> str:
    names = [seen.file.path for seen in left]
    for place, seen in enumerate(left[:SHOWN]):
        why = describe_no_row(seen)
        if seen.lacking:
            found = list_keys(count_keys(seen.read(), 1).below(""))
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


_TABLE_ROWS = 20_000
_DIALOGUE_ID = re.compile(
    r"(dialog(ue)?|conv(ersation)?|session|chat|thread|episode|call)[ _-]?(id|uid|uuid|key|name|no|"
    r"num(ber)?)?",
    re.IGNORECASE,
)


def check_ids(suite: str, source: Source, seen: FileSample) -> None:
    """Refuse a file that would be one dialogue although a key of its rows names several."""
    if not seen.other_ids:
        return
    key = source.column(source.dialogue_key[0])
    records = list(islice(seen.read(), MOST_ROWS_SAMPLED))
    found = _named_ids(records, seen) or _repeated_ids(records, seen.other_ids)
    if found is None:
        return
    raise UnmappedLogError(
        f"{seen.file.path}: no row has {key.name}, by which {suite} tells dialogues apart, so the "
        f"file would be one dialogue. {found!r} varies within the file as names of dialogues do.",
        [column_flag(key.name, found)],
        more=f" If the file is one dialogue, type {typed([column_flag(key.name, '')])}.",
    )


def _named_ids(records: Sequence[Record], seen: FileSample) -> str | None:
    """Return a key that is called as names of dialogues are, if it has several values."""
    for name in filter(_DIALOGUE_ID.fullmatch, seen.other_ids):
        values = _values(records, name)
        firsts = (first_row(file) or next(records_of(file), {}) for file in seen.alike)
        others = (row.get(name) for row in firsts)
        if len(set(values)) > 1 or (values and _has_other(seen, seen.file, name, values[0])):
            return name
        if any(
            _has_other(seen, file, name, value)
            for file, value in zip(seen.alike, others, strict=True)
            if isinstance(value, str | int)
        ):
            return name
    return None


def _has_other(seen: FileSample, file: InputFile, name: str, value: str | int) -> bool:
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
    return [value for value in found if isinstance(value, str | int) and value != ""]


_SHOWN_CHARACTERS = 40


def beginning(seen: FileSample) -> str:
    """Return how a file begins that holds text but no row; nothing of any other."""
    if seen.rows or not seen.file.size or seen.file.format not in ("json", "jsonl"):
        return ""
    begins = first_text(seen.file.location, seen.file.compression)
    if b"".join(begins.split()) == b"[]":
        return ""  # an empty document
    text = begins.decode(errors="replace").partition("\n")[0].rstrip()
    return cut(text, _SHOWN_CHARACTERS)


def foreign_error(suite: str, source: Source, foreign: Sequence[FileSample]) -> InputError:
    """Make the error of files that are no logs of a suite."""
    lacking = [seen for seen in foreign if seen.lacking]
    if lacking:
        return lacking_error(suite, source, lacking[0].lacking, lacking)
    first = foreign[0]
    flags = layout_of_arrays(suite, source, first) if beginning(first).startswith("[") else []
    return UnmappedLogError(
        f"{_named(foreign)}: {describe_no_row(first)}.",
        flags,
        unless=_what_is_read(first),
    )


def describe_no_row(seen: FileSample) -> str:
    """Say that a file holds no row, and how it begins."""
    what = "no line is a JSON object" if seen.file.format == "jsonl" else "no JSON object"
    return f"{what}; it begins with {beginning(seen)!r}"


_FOREIGN_LINES = (
    (
        re.compile(r"\s*[\[{(]+\s*'"),
        "It is Python's repr, with single quotes: write each row by json.dumps.",
    ),
    (
        re.compile(r"[^\[{\"]{3,}\{\s*\""),
        "A log prefix stands before the JSON: `sed 's/^[^{]*//'` leaves it out.",
    ),
)
"""How lines begin that are no JSON, and how they are converted."""


def _what_is_read(seen: FileSample) -> str:
    begins = first_text(seen.file.location, seen.file.compression).decode(errors="replace")
    for pattern, advice in _FOREIGN_LINES:
        if pattern.match(begins):
            return advice
    if seen.file.format == "json":
        return "A JSON document holds an object, or an array of them."
    if beginning(seen).startswith("[{"):
        return "JSON Lines have one object on each line: `jq -c '{messages: .}'` names its array."
    if beginning(seen).startswith("["):
        return "JSON Lines have one object on each line: `jq -c '.[]'` writes those of an array so."
    return "JSON Lines have one object on each line: `jq -c .` writes an indented file so."


class MissingColumnsError(UnmappedLogError):
    """Rows without columns that all metrics need, or that were asked for."""

    absent: Mapping[str, str]
    """The place of each column, and in what way it is absent."""

    @property
    def reason(self) -> str:
        """What is absent, on one line."""
        return "; ".join(f"{place}: {how}" for place, how in self.absent.items())


def lacking_error(
    suite: str, source: Source, lacking: Sequence[RequiredColumn], seen: Sequence[FileSample]
) -> UnmappedLogError:
    """Make the error of rows that lack what all metrics need, or what was asked for."""
    of_others = foreign_rows(seen[0].file.path, seen[0].read())
    if of_others is not None:
        return of_others
    found = count_keys(seen[0].read())
    mark_speakers(found, seen[0].read())
    advice = suggested(source, lacking, found)
    what = (
        f"what {suite} needs"
        if lacking[0] in required_columns(source)
        else "a column that is asked for"
    )
    lines = [f"{_named(seen)}: no row has {what}."]
    told: set[str] = set()
    absent = {need.place: _absence(need, seen) for need in lacking}
    for need in lacking:
        lines += [
            f"  {need.place}: {absent[need.place]}",
            f"    looked for: {', '.join(need.column.keys)}",
        ]
        keys = list_keys(keys_beside(need, source, advice, found))
        if keys not in told:
            lines.append(f"    found: {keys}")
            told.add(keys)
        if need.place in advice:
            lines.append(f"    nearest: {advice[need.place]}")
    error = MissingColumnsError(
        "\n".join(lines),
        flags_to_type(suite, source, lacking, advice, found, seen[0]),
        unless=_key_to_name(source, lacking[0]),
    )
    error.absent = absent
    return error


def _key_to_name(source: Source, need: RequiredColumn) -> str:
    """Ask for the key of what is lacking, of speakers also whether they alternate."""
    named = f"Name its key: {typed([column_flag(need.name, 'KEY')])}. "
    rows = source.chat_rows
    if source.chat is not None and rows is not None and need.name == rows.speaker:
        alternate = typed([Flag("alternate", (USER_ROLE,))])
        return f"{named}If turns alternate and the user begins, type {alternate}."
    return f"{named}`fastscore inspect` lists the keys of a log and the suites that it fits."


def words_error(
    suite: str,
    source: Source,
    need: RequiredColumn,
    counts: ColumnSample,
    seen: Sequence[FileSample],
) -> UnmappedLogError | None:
    """Make the error of a column that lacks words: one of those needed, or any of several."""
    vocabulary = need.column.vocabulary
    found = [f"{word!r} ({count:,})" for word, count in counts.by_count]
    absent = [word for word in vocabulary.needed if word not in counts.known]
    if absent and counts.words:
        meant = vocabulary.needed[0]
        flags = word_flags(source, need, counts, absent)
        never = " or ".join(map(repr, absent))
        never += f".\n  looked for: {', '.join(vocabulary.needed)}"
    elif vocabulary.any_needed and not counts.any_expected and (counts.words or counts.known):
        found += map(repr, sorted(counts.known))
        expected = [word for name, word in vocabulary.any_needed if name == need.name]
        meant = expected[0]
        flags = word_flags(source, need, counts, vocabulary.known)
        flags = flags if any(flag.words[-1] in expected for flag in flags) else []
        never = f"{', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}"
        for name, word in vocabulary.any_needed:
            if name != need.name:
                never += f", and {name} never begins with {word.removesuffix('*')!r}"
        never += "."
    else:
        return None
    return UnknownWordsError(
        f"{_named(seen)}: no row has what {suite} needs: {need.place} is never {never}\n"
        f"  found: {listed(found, SHOWN)}",
        flags,
        unless=_question(source, need, counts, meant),
    )


class UnknownWordsError(UnmappedLogError):
    """Words of a column that lacks the words it needs; if no flags map them, the hint asks."""


def _question(source: Source, need: RequiredColumn, counts: ColumnSample, meant: str) -> str:
    """Ask what words mean: of two speakers with what to type if the user is the first."""
    rows, words = source.chat_rows, [*counts.words][:2]
    if rows is None or need.name != rows.speaker or len(words) < len(rows.words[:2]):
        return f"Say what they mean: {typed([value_flag(need.name, 'WORD', meant)])}."
    example = [
        value_flag(need.name, word, own) for word, (_, own) in zip(words, rows.words, strict=False)
    ]
    if source.chat is None and need.holder is not None:
        # in the suite's own arrays only texts are words
        example.insert(0, column_flag(need.name, need.name))
    return f"Say who is who, in this way or the other way round, for example {typed(example)}."


def word_flags(
    source: Source, need: RequiredColumn, counts: ColumnSample, known: Sequence[str]
) -> list[Flag]:
    """Return the flags to type for words: of speakers by their roles, of others by their names."""
    words = [word for word, _ in counts.by_count]
    rows = source.chat_rows
    if rows is not None and need.name == rows.speaker:
        return role_flags(words, counts.known, rows, known)
    return nearest_words(need.name, words, known)


def speakers_error(
    suite: str,
    source: Source,
    need: RequiredColumn,
    counts: ColumnSample,
    seen: Sequence[FileSample],
) -> UnmappedLogError | None:
    """Make the error of speakers one of whom the suite takes for another than they are together."""
    rows = source.chat_rows
    if rows is None or need.name != rows.speaker:
        return None
    found = sorted([*counts.words, *counts.known])
    message = f"{_named(seen)}: {need.place} is {', '.join(map(repr, found))}"
    if source.chat is not None:
        flags = role_flags([*counts.words], counts.known, rows)
        unknown = ", ".join(map(repr, sorted(counts.words)))
        message = f"{message}. The layout or the map of words does not name {unknown}."
        return UnmappedLogError(message, flags) if flags else None
    if need.column.mapped.words:
        return None
    meanings = role_meanings(found)
    own = dict(rows.words)
    others = [word for word in counts.known if own.get(meanings.get(word, ""), word) != word]
    if not others or USER_ROLE not in {meanings.get(word) for word in counts.words}:
        return None
    flags = role_flags(found, (), rows)
    return UnmappedLogError(
        f"{message}: beside the others, {others[0]!r} is probably not who {suite} takes it for.",
        flags,
        more=f" To keep it as it is, type {typed([value_flag(need.name, others[0], others[0])])}.",
    )


def _named(seen: Sequence[FileSample]) -> str:
    first = seen[0].file.path
    count = sum(len(each.files) for each in seen)
    return first if count == 1 else f"{first} and {count - 1:,} more"


def _absence(need: RequiredColumn, seen: Sequence[FileSample]) -> str:
    """Say how a need is absent; files of columns lack one as a whole."""
    samples = [each.samples[need.place] for each in seen if each.samples]
    asked = sum(counts.asked for counts in samples)
    unusable = sum((counts.unusable for counts in samples), Counter[str]())
    if unusable:
        found = ", ".join(f"{kind}s ({count:,})" for kind, count in unusable.most_common())
        return f"found {found}, expected {KINDS[need.column.kind]}, in {_objects(need, asked)}"
    in_columns = all(each.file.format in ("csv", "parquet") for each in seen)
    if need.holder is None and in_columns and not any(counts.keyed for counts in samples):
        return "no such column"
    if not all(each.is_whole and not each.alike for each in seen):
        return f"absent or null in all {_objects(need, 0).removeprefix('0 ')}"
    return f"absent or null in {_objects(need, asked)}"


def _objects(need: RequiredColumn, asked: int) -> str:
    if need.holder is None:
        return counted(asked, "rows")
    return f"{counted(asked, 'objects')} of {need.holder.name}[]"
