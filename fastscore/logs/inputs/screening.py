"""Which files are logs of a suite, and which are left aside or refused.

A file in a folder or glob whose rows have no such key is left aside by name; one that was named
itself, or a run in which nothing has it, is an error that says what to type.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from fastscore.logs.inputs.chats import names_no_speaker
from fastscore.logs.inputs.dialogue_ids import check_ids
from fastscore.logs.inputs.files import STDIN, Format, InputFile
from fastscore.logs.inputs.found_keys import SHOWN, count_keys, listed, shortened
from fastscore.logs.inputs.needs import Need, arrays_of, list_asked_for, needs_of
from fastscore.logs.inputs.occurrences import Occurrences
from fastscore.logs.inputs.records import Record
from fastscore.logs.inputs.refusals import (
    any_word_error,
    beginning,
    describe_no_row,
    foreign_error,
    lacking_error,
    speakers_error,
    words_error,
)
from fastscore.logs.inputs.sampling import (
    ROWS_SAMPLED,
    FileSample,
    Known,
    may_follow,
    sample_file,
    sample_rows,
)
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
    kept: list[FileSample] = []
    left: list[tuple[FileSample, list[Need]]] = []
    known = Known(arrays_of(source))
    for file in files:
        seen = sample_file(file, source, known)
        if seen.file is not file:
            continue
        lacking = seen.lacks(needs)
        # who reads all of it knows more
        if seen.given_up or not (lacking or beginning(seen)):
            kept.append(seen)
        elif file.pattern:
            left.append((seen, lacking))
        else:
            raise foreign_error(suite, source, [(seen, lacking)])
    if not kept:
        raise foreign_error(suite, source, left)
    _check_together(suite, source, kept)
    for seen in kept:
        check_ids(suite, source, seen)
    notes = [_left_note(suite, left)] if left else []
    notes += _alternating_notes(source, kept)
    aside = {seen.file.path for seen, _ in left}
    read = tuple(file for file in files if file.path not in aside)
    notes += _pooled_notes(read, kept)
    return Screened(read, tuple(seen.file for seen, _ in left), tuple(notes))


def screen_rows(
    read: Callable[[], Iterator[Record]],
    format: Format,
    name: str,
    source: Source,
    suite: str,
    *,
    is_part: bool = False,
) -> None:
    """Raise `InputError` where rows in memory lack what every metric needs; see `screen`.

    In a part of a log (`is_part`) the keys are looked for, not values and words.
    """
    seen = sample_rows(read, source, InputFile(name, format, "none", 0), Known(arrays_of(source)))
    lacking = seen.lacks(needs_of(source))
    if lacking:
        raise lacking_error(suite, source, lacking, [seen])
    if not is_part:
        _check_together(suite, source, [seen])
    check_ids(suite, source, seen)


def _check_together(suite: str, source: Source, kept: Sequence[FileSample]) -> None:
    """Refuse files in no row of which something needed has a value, or a word that is known."""
    needs, others = needs_of(source), list_asked_for(source)
    total = {need.place: Occurrences() for need in (*needs, *others)}
    for seen in kept:
        for place, counts in seen.occurrences.items():
            total[place].add(counts)
    occurrences = {need: total[need.place] for need in needs}
    given = {need.name for need, counts in occurrences.items() if counts.given or counts.may_follow}
    lacking = [
        need for need, counts in occurrences.items() if counts.asked and need.name not in given
    ]
    # an empty file is none of those that lack something
    kept = [seen for seen in kept if seen.rows] or kept
    if lacking:
        raise lacking_error(suite, source, lacking, kept)
    for need, counts in occurrences.items():
        shown = (suite, source, need, counts, kept)
        error = words_error(*shown) or any_word_error(*shown) or speakers_error(*shown)
        if error is not None:
            raise error
    stands = {need.name for need in others if total[need.place].keyed}
    for need in others:
        if need.name not in stands and not any(_may_occur(seen, need) for seen in kept):
            raise lacking_error(suite, source, [need], kept)


def _may_occur(seen: FileSample, need: Need) -> bool:
    """Tell whether a key may stand after the rows that were looked at."""
    in_columns = seen.file.format in ("csv", "parquet") and need.holder is None
    if in_columns or (seen.is_whole and not seen.alike):
        return False
    return any(may_follow(file, need) for file in seen.files)


def _left_note(suite: str, left: Sequence[tuple[FileSample, Sequence[Need]]]) -> str:
    names = []
    for seen, lacking in left[:SHOWN]:
        if not lacking:
            names.append(f"{seen.file.path} ({describe_no_row(seen)})")
            continue
        found = listed(count_keys(seen.read(), 1).below(""))
        names.append(
            f"{seen.file.path} (no {', '.join(need.place for need in lacking)}; found {found})"
        )
    more = f"; and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
    what = "1 file is no log" if len(left) == 1 else f"{len(left):,} files are no logs"
    return f"left aside, as {what} of {suite}: {'; '.join(names)}{more}"


def _alternating_notes(source: Source, kept: Sequence[FileSample]) -> list[str]:
    """Name the files in which no turn says who speaks, so that turns alternate."""
    if source.chat is None:
        return []
    named = [
        seen.file.path
        for seen in kept
        if any(names_no_speaker(row, source) for row in islice(seen.read(), ROWS_SAMPLED))
    ]
    if not named:
        return []
    return [
        f"no turn says who speaks in {shortened(named)}: turns alternate, the user begins. If a "
        f"key names the speaker, type --column {source.chat.rows.speaker}=KEY"
    ]


def _pooled_notes(files: Sequence[InputFile], kept: Sequence[FileSample]) -> list[str]:
    """Say which folders are pooled, and which files have another shape than most."""
    notes = []
    # a shell expands globs: files that are named themselves are pooled as others are
    parted = (file.path.rpartition(os.sep) for file in files if file.path != STDIN)
    folders = Counter(folder or root or "." for folder, root, _ in parted)
    if len(folders) > 1:
        counted = [f"{folder} ({count:,})" for folder, count in folders.items()]
        notes.append(
            f"pools the files of {len(folders):,} folders as one run: {shortened(counted)}"
        )
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
            count_of = "1 file" if count == 1 else f"{count:,} files"
            notes.append(
                f"pools files of different shape: {count_of} of {len(files):,} "
                f"{' and '.join(parts)} (first: {first})"
            )
    return notes
