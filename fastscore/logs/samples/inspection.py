"""What logs contain, which suites can read them, and what to type.

For each suite the flags are followed that `screen` proposes, until it proposes none. Then the
suite's own reader reads the first rows with these flags. A suite fits only if something of them
would be scored.
"""

import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import FastscoreError, InputError
from fastscore.logs.inputs.column_map import (
    EACH,
    EXAMPLE,
    NO_MAP,
    ColumnMap,
    Flag,
    UnmappedLogError,
    in_shared_words,
    map_of,
    map_source,
    typed,
    value_flag,
)
from fastscore.logs.inputs.files import (
    FORMAT_NAMES,
    InputFile,
    frame_call,
    list_left_aside,
    resolve_inputs,
)
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.inputs.near_names import meanings_of_truth, role_meanings, roles_of_two
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import NOT_READ, fitting_layout, sample_speakers
from fastscore.logs.samples.file_samples import Known, is_among, sample_file
from fastscore.logs.samples.findings import FILE
from fastscore.logs.samples.profile import (
    ROWS_SAMPLED,
    SHOWN,
    Profile,
    RequiredColumn,
    all_columns,
    fold_maps,
    profile_of,
    required_columns,
)
from fastscore.logs.samples.records import beginning_of, records
from fastscore.logs.samples.refusals import LISTED, MissingColumnsError, encoding_error
from fastscore.logs.samples.screening import screen
from fastscore.suites.chats import CHATS, ROLES, ChatRows
from fastscore.suites.declarations import ALL_METRICS, Column, Needed, RowId, Source

EXAMPLE_CHARACTERS = 60
ARRAY = "array"
"""What an array that is a row by itself is called."""
CHATS_SOURCE = Source(
    columns=(
        Column("id", "text", accepts=("integer",)),
        Column("model", "text", aliases=("model_name",)),
        Column(
            "messages",
            "json",
            needed=Needed(ALL_METRICS),
            items=tuple(
                Column(name, "text", needed=Needed(ALL_METRICS)) for name in ("role", "content")
            ),
        ),
    ),
    formats=("json", "jsonl", "parquet"),
    row_dialogues=("json", "jsonl", "parquet"),
    row_id=RowId(columns=("id",)),
    variants=(("model", "model"),),
    array_column="messages",
    chat_rows=ChatRows(
        id="id",
        array="messages",
        speaker="role",
        text="content",
        words=tuple((role, role.upper()) for role in ROLES),
        model="model",
        can_be_turns=True,
    ),
)


def turns_of_chats(raw: pl.DataFrame) -> Iterator[tuple[int, Any]]:
    """Yield the turns of rows of `CHATS_SOURCE`, each with the number of its row."""
    for number, (file, line, cell) in enumerate(raw.select("file", "line", "messages").iter_rows()):
        try:
            found = json.loads(cell or "[]")
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise InputError(
                f"{file}:{line}: messages is {str(cell)[:40]!r}, expected an array of messages.",
                "For one message per row, give the layout turns.",
            )
        yield from ((number, turn) for turn in found)


_ROUNDS = 6
_FILES_TRIED = 20
"""So many files with the same keys are read as a suite does."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a suite's own reader makes of the first rows: what is scored, rejects, and the first.

    ``fault`` is the first reject: its field, reason, what was found and expected. Empty for none.
    ``options`` are those of the suite without which nothing would be scored.
    """

    n_scored: int
    n_rejects: int
    fault: str = ""
    options: tuple[str, ...] = ()


Try = Callable[[InputFile, str, ColumnMap], Trial]
"""Reads the first rows of a file as a suite does, by its name and with columns mapped."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A suite that can read a file: what must be typed, the map that this makes, and what lacks.

    ``lacking`` are columns that some metrics need, or that some depend on. ``trial`` is None of a
    file that was not tried, as very many have the same keys. ``question`` says what must be true
    of the file, if its rows do not say so, with `EXAMPLE` in place of what is typed.
    """

    suite: str
    flags: tuple[str, ...]
    lacking: tuple[RequiredColumn, ...]
    columns: ColumnMap
    trial: Trial | None
    speakers: Mapping[str, str]
    question: str = ""


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """What was found in a file: its keys, the suites that can read it, and why the others cannot.

    The suites that would score most come first. ``judged`` is how a judge reads it, as `CHATS`,
    and ``asking`` how it does if something is true that must be asked; ``is_unnamed`` tells that it
    finds no chat by the names of keys. ``asked`` says for suites that cannot, and for `CHATS`,
    what is asked of whoever typed them.
    """

    file: InputFile
    found: Profile
    is_whole: bool
    fits: tuple[Fit, ...]
    unfit: Mapping[str, str]
    asked: Mapping[str, str]
    judged: Fit | None = None
    asking: Fit | None = None
    is_unnamed: bool = False

    @property
    def every_fit(self) -> tuple[Fit, ...]:
        """How suites and a judge read it."""
        return (*self.fits, *filter(None, [self.judged]))

    @property
    def speakers(self) -> dict[str, str]:
        """The roles of the words for speakers; what one suite leaves out another may read."""
        every = [item for fit in self.fits for item in fit.speakers.items()]
        # what is read by any suite comes last, and counts
        return dict(sorted(dict(sorted(every, key=lambda item: item[1] != NOT_READ)).items()))


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found in some inputs; of files that no suite reads the reason."""

    inputs: tuple[str, ...]
    files: tuple[InspectedFile, ...]
    others: Mapping[str, str]

    def __repr__(self) -> str:
        fits = {
            each.file.path: [shlex.join((fit.suite, *fit.flags)) for fit in each.fits]
            for each in self.files
        }
        lines = [f"{path}: {'; '.join(found) or 'no suite'}" for path, found in fits.items()]
        return "\n".join([*lines, *(f"{path}: {reason}" for path, reason in self.others.items())])


def inspect_logs(
    inputs: Sequence[str], sources: Mapping[str, Source], try_reading: Try
) -> Inspection:
    """Look at logs."""
    every = tuple(FORMAT_NAMES)
    others = list_left_aside(inputs, every)
    try:
        files = resolve_inputs(inputs, every)
    except InputError:
        if not others:
            raise
        files = ()
    inspected = []
    shapes_seen: dict[Hashable, list[InspectedFile]] = {}
    with tempfile.TemporaryDirectory(prefix="fastscore-") as folder:
        for file in files:
            try:
                head = beginning_of(file, Path(folder))
                found = _inspected(file, head, sources, try_reading, shapes_seen)
                inspected.append(found)
            except FastscoreError as error:
                others[file.path] = error.message
    return Inspection(tuple(map(os.fspath, inputs)), tuple(_written_together(inspected)), others)


_OF_JQ = "Type jq -c "


def _written_together(inspected: Sequence[InspectedFile]) -> Iterator[InspectedFile]:
    """Name all files in what writes several anew: each by itself would replace the one before."""
    paths: dict[str, list[str]] = {}
    for each in inspected:
        for said in {
            _with_file(text, each.file) for text in (*each.unfit.values(), *each.asked.values())
        }:
            paths.setdefault(said, []).append(each.file.path)
    for each in inspected:
        yield replace(
            each,
            unfit={suite: _of_all(text, each.file, paths) for suite, text in each.unfit.items()},
            asked={suite: _of_all(text, each.file, paths) for suite, text in each.asked.items()},
        )


def _with_file(said: str, file: InputFile) -> str:
    """Return what jq is typed for with FILE in place of a file; nothing of anything else."""
    _, typed_jq, command = said.partition(_OF_JQ)
    return command.replace(shlex.quote(file.path), FILE) if typed_jq else ""


def _of_all(said: str, file: InputFile, paths: Mapping[str, Sequence[str]]) -> str:
    before, typed_jq, _ = said.partition(_OF_JQ)
    command = _with_file(said, file)
    names = [shlex.quote(path) for path in paths.get(command, ())]
    if not typed_jq or len(names) < 2:
        return said
    folders = {os.path.split(path)[0] for path in paths[command]}
    if len(names) > SHOWN and len(folders) == 1:
        suffix = os.path.splitext(file.path)[1]
        names = [f"{shlex.quote(folders.pop())}/*{suffix}"]
    return f"{before}{typed_jq}{command.replace(FILE, ' '.join(names))}"


def may_fit(source: Source, keys: frozenset[str]) -> bool:
    """Tell whether rows with some keys may be a suite's as they are; those without any may."""
    spelled = keys | {key.lower() for key in keys}  # names of CSV have no case
    stands: set[str] = set()
    lacks: set[str] = set()
    for need in required_columns(source):
        is_there = is_among(need.column, spelled)
        if need.holder is not None:
            arrays = [key + EACH for key in need.holder.keys]
            inside = {key[len(each) :] for each in arrays for key in keys if key.startswith(each)}
            is_there = is_among(need.column, inside)
            if not inside:
                continue  # no object of the array was seen
        # what stands in some rows only may follow
        (stands if is_there or need.column.needed.where else lacks).add(need.name)
    return not keys or lacks <= stands


def _inspected(
    file: InputFile,
    head: InputFile,
    sources: Mapping[str, Source],
    try_reading: Try,
    shapes_seen: dict[Hashable, list[InspectedFile]],
) -> InspectedFile:
    rows = records(head)
    found = profile_of(rows)
    if not found.rows:  # lines or documents that are arrays
        rows = (row for row in records(head, ARRAY) if row[ARRAY])
        found = profile_of(rows)
    is_whole = head is file and next(rows, None) is None
    alike = shapes_seen.setdefault((file.format, file.kind, frozenset(found.keys)), [])
    is_unnamed = bool(alike) and alike[0].is_unnamed
    unfit = dict(alike[0].unfit) if alike else {}
    asked = dict(alike[0].asked) if alike else {}
    if len(alike) == _FILES_TRIED:
        untried = tuple(replace(fit, trial=None) for fit in alike[0].fits)
        return replace(alike[0], file=file, found=found, is_whole=is_whole, fits=untried)
    fits = _fits_as(head, alike[0], sources, try_reading) if alike else []
    if not fits:
        unfit, asked = {}, {}
        for suite, source in sources.items():
            try:
                fits.append(_fit(head, found, suite, source, try_reading))
            except FastscoreError as error:
                unfit[suite], asked[suite] = error.reason, error.hint or ""
                causes = (error, error.__cause__)  # of chats, which come last
                is_unnamed = any(isinstance(each, MissingColumnsError) for each in causes)
        # what fits as it is comes first, then what would score most
        fits.sort(
            key=lambda fit: (
                len(fit.flags) > 0,
                -(fit.trial.n_scored if fit.trial else 0),
                len(fit.lacking),
            )
        )
    why = unfit.pop(CHATS, "")
    if asked.get(CHATS, "")[1:].removesuffix(".") not in why:
        why = f"{why.removesuffix('.')}. {asked[CHATS]}"
    asked[CHATS] = why
    if not fits and unfit and (encoded := encoding_error(head)):
        raise encoded
    of_suites = tuple(fit for fit in fits if fit.suite != CHATS)
    of_judge = next((fit for fit in fits if fit.suite == CHATS), None)
    is_asked = of_judge is not None and bool(of_judge.question)
    judged, asking = (None, of_judge) if is_asked else (of_judge, None)
    is_unnamed &= of_judge is None
    inspected = InspectedFile(
        file, found, is_whole, of_suites, unfit, asked, judged, asking, is_unnamed
    )
    alike.append(inspected)
    return inspected


def _fits_as(
    file: InputFile, before: InspectedFile, sources: Mapping[str, Source], try_reading: Try
) -> list[Fit]:
    """Read a file by the flags of one before it with the same keys; none if that leaves faults."""
    fits = []
    for fit in (*before.every_fit, *filter(None, [before.asking])):
        own = _as_read(file, map_source(sources[fit.suite], fit.columns))
        trial = try_reading(own, fit.suite, fit.columns)
        usual = fit.trial.n_rejects if fit.trial else 0
        if not trial.n_scored or trial.n_rejects > usual:
            return []
        fits.append(replace(fit, trial=trial))
    return fits


def _as_read(file: InputFile, source: Source) -> InputFile:
    """Return a file in the format that a suite reads it in, one without JSON as JSON Lines."""
    (own,) = resolve_inputs([file.path], source.formats)
    return replace(file, format=own.format)


def _fit(file: InputFile, found: Profile, suite: str, source: Source, try_reading: Try) -> Fit:
    """Follow the flags that errors propose until there is none, then read with them."""
    rows = source.chat_rows
    columns = NO_MAP
    flags: tuple[Flag, ...] = ()
    own_formats = source.formats
    # any format is read by a layout, or in Python as a frame
    source = replace(source, formats=tuple(dict.fromkeys((*own_formats, file.format))))
    file = _as_read(file, source)
    if suite == CHATS and found.rows:  # as `judge` does, a layout is looked for first
        of_any = replace(source, array_column=None)  # a line with messages is no array by itself
        seen = sample_file(file, of_any, Known())
        flags = (*fitting_layout(suite, of_any, seen, [*islice(seen.read(), ROWS_SAMPLED)]),)
        columns = _map_of(flags, suite)
    asked = question = reason = ""
    lacks: UnmappedLogError | None = None
    unnamed: MissingColumnsError | None = None
    for _ in range(_ROUNDS):
        try:
            if not found.rows:
                raise InputError(f"{file.path}: no row was found.")
            screen([replace(file, pattern="")], map_source(source, columns), suite)
            more: Sequence[Flag] = _other_speaker(file, map_source(source, columns), flags)
        except UnmappedLogError as error:
            if set(error.flags) <= set(flags) and source.array_column and file.format == "json":
                source = replace(source, array_column=None)  # an array of dialogues, not of turns
                continue
            lacks = error if isinstance(error, MissingColumnsError) else lacks
            more = error.flags or error.example
            if set(more) <= set(flags):
                if flags and unnamed is None and isinstance(error, MissingColumnsError):
                    unnamed, source = error, _not_needing(source, error.absent)
                    continue  # what else is to be typed
                raise _with_question(unnamed or error, flags, reason, source) from error
            if not error.flags:
                reason, question = reason or error.reason, question or _asked_by(error)
            asked = error.more.replace(LISTED, "") if error.flags else ""
        if more:
            flags, columns = (*flags, *more), columns | _map_of(more, suite)
        else:
            if unnamed is not None:
                raise _with_question(unnamed, flags, reason, source) from unnamed
            _check_words(file, map_source(source, columns))
            trial = try_reading(file, suite, columns)
            if not trial.n_scored:
                begin = f"with {typed(in_shared_words(flags, source))} " if flags else ""
                why = trial.fault or "nothing of the first rows would be scored"
                said = f"{begin}{why}" + (f".{asked}" if asked else "")
                hint = f"{said[0].upper()}{said[1:].removesuffix('.')}."
                raise InputError(said, hint) from lacks
            lacking = tuple(
                need
                for need in _lacking(map_source(source, columns), found)
                if need.column.needed.by != ALL_METRICS
            )
            shared = in_shared_words(flags, source)
            if file.format not in own_formats and (rows is None or not columns):
                raise InputError(
                    f"{file.path!r} is a CSV file, which this suite does not read. "
                    f"Python scores it as a frame: {_frame_call(file.path, suite, columns)}."
                )
            if question and suite != CHATS:
                said = question.replace(EXAMPLE, " ".join((typed(shared), *trial.options)))
                raise InputError(f"{reason.removesuffix('.')}. {said}", said)
            words = (*(word for flag in shared for word in flag.typed), *trial.options)
            sample = sample_speakers(file, map_source(source, columns))
            speakers = sample.speakers if sample is not None else {}
            return Fit(suite, words, lacking, columns, trial, speakers, question)
    raise InputError(f"{file.path}: no columns of it were found to serve {suite}.")


def _check_words(file: InputFile, source: Source) -> None:
    """Refuse a log of one kind of rows, of a suite that scores two kinds together."""
    if source.chat_rows is not None:
        return
    seen = sample_file(file, source, Known())
    for need in seen.unproven:
        for word in need.column.vocabulary.needed:
            if word not in seen.samples[need.place].known:
                raise InputError(f"{need.name} is never {word!r}, and nothing is scored without it")


def _other_speaker(file: InputFile, source: Source, flags: Sequence[Flag]) -> list[Flag]:
    """Return what names both speakers that a key is true and false of, or the other one of two."""
    rows = source.chat_rows
    named = {flag.words[1] for flag in flags if flag.option == "value"}
    keys = [
        flag.words[1]
        for flag in flags
        if rows is not None and flag.option == "column" and flag.words[0] == rows.speaker
    ]
    if rows is None or not (named or keys):
        return []
    sample, own = sample_speakers(file, source), dict(rows.words)
    words = sample.found_words if sample is not None else []
    if named:
        roles = roles_of_two(words)
    else:
        are_flags = words == ["false", "true"]
        roles = meanings_of_truth(keys[0].rpartition(EACH)[2]) if are_flags else {}
    return [
        value_flag(rows.speaker, word, own[role])
        for word, role in roles.items()
        if word not in {*role_meanings(words), *named} and role in own
    ]


def _frame_call(path: str, suite: str, columns: ColumnMap) -> str:
    """Write the call by which Python scores a CSV file as a frame."""
    values: dict[str, dict[str, str]] = {}
    for name, found, meant in columns.values:
        values.setdefault(name, {})[found] = meant
    maps = {"columns": dict(columns.columns), "values": values}
    given = "".join(f", {name}={found!r}" for name, found in maps.items() if found)
    return frame_call(path, repr(suite), given)


def _asked_by(error: UnmappedLogError) -> str:
    return error.asked if isinstance(error, MissingColumnsError) else error.unless


_WRITTEN = re.compile(r"(?<=\.jsonl)\.$")
"""The end of a command that writes a log anew."""


def _with_question(
    error: UnmappedLogError, flags: Sequence[Flag], reason: str, source: Source
) -> InputError:
    """Add to an error what it asks, after the flags that were followed before.

    ``reason`` is that of an error whose example leads to this one.
    """
    flags, asked = in_shared_words(flags, source), _asked_by(error)
    asked = asked.replace(EXAMPLE, typed(error.example))
    if not asked and isinstance(error, MissingColumnsError):
        needed = [need.place for need in required_columns(source) if need.holder is None]
        if flags or len(error.absent) == 1 < len(needed):  # the rows have the rest
            asked = (error.hint or "").replace(LISTED, "")
    if reason:
        why = error.reason.removesuffix(".")
        said = f"{reason} With {typed(flags)}: {why}. {asked}".strip()
        return InputError(said, said)
    if error.flags or not asked:
        return error
    # one example has all that is typed, except of a log that is written anew for a layout
    before = f"{typed(flags)} " if flags and "read it with --layout" not in asked else ""
    asked = re.sub(r"(?=--[\w-]+ \S)", lambda _: before, asked, count=1)
    # the id may be another one then
    if before and not any(flag.words[0] == "id" for flag in flags):
        asked = _WRITTEN.sub(lambda _: f", and read it with {before.strip()}.", asked)
    return InputError(f"{error.reason.removesuffix('.')}. {asked}", asked)


def _not_needing(source: Source, names: Collection[str]) -> Source:
    """Return a source whose metrics can do without some columns of rows."""
    columns = (
        replace(column, needed=Needed()) if column.name in names else column
        for column in source.columns
    )
    return replace(source, columns=tuple(columns))


def _map_of(flags: Sequence[Flag], suite: str) -> ColumnMap:
    columns = NO_MAP
    for flag in flags:
        if flag.option == "layout":
            columns |= layout_map(flag.words[0], suite)
    return columns | map_of(flags)


def _lacking(source: Source, found: Profile) -> list[RequiredColumn]:
    """Return the columns that stand nowhere, neither in rows nor in an array's objects."""
    lacking: dict[str, RequiredColumn] = {}
    given: set[str] = set()
    for need in all_columns(source):
        column, keys = need.column, found.around(source, need.holder)
        # names of CSV have no case
        with_values = {path.lower() for path, key in keys.items() if key.count > key.nulls}
        if any(key.lower() in with_values for key in column.keys):
            given.add(need.name)
        elif keys and (column.needed.by or column.needed.affects):
            lacking[need.name] = need  # of two, the one in the array that is there
    return [need for need in lacking.values() if need.name not in given]


def as_json(inspection: Inspection, commands: Mapping[str, str]) -> dict[str, Any]:
    """Return an inspection as plain values, with the command of each suite that fits."""
    return {
        "inputs": list(inspection.inputs),
        "files": [_file_json(each) for each in inspection.files],
        "others": dict(inspection.others),
        "commands": dict(commands),
    }


def _file_json(inspected: InspectedFile) -> dict[str, Any]:
    file = inspected.file
    return {
        "path": file.path,
        "format": file.format,
        "compression": file.compression,
        "bytes": file.size,
        "rows_looked_at": inspected.found.rows,
        "whole": inspected.is_whole,
        "keys": list(key_rows(inspected.found)),
        "speakers": inspected.speakers,
        "fits": [
            {
                "suite": fit.suite,
                "flags": list(fit.flags),
                "scored_of_the_first_rows": fit.trial and fit.trial.n_scored,
                "rejects_of_the_first_rows": fit.trial and fit.trial.n_rejects,
                "null_for_want_of": {
                    need.place: list(need.column.needed.by)
                    for need in fit.lacking
                    if need.column.needed.by
                },
                "scored_without": {
                    need.place: list(need.column.needed.affects)
                    for need in fit.lacking
                    if need.column.needed.affects
                },
            }
            for fit in inspected.fits
        ],
        "unfit": dict(inspected.unfit),
    }


def key_rows(found: Profile) -> Iterator[dict[str, Any]]:
    """Yield every key: path, count, share of nulls, types with their counts, an example."""
    for path, key in fold_maps(found.keys).items():
        text = isinstance(key.example, str)
        example = key.example if text else json.dumps(key.example, ensure_ascii=False, default=str)
        yield {
            "path": path,
            "count": key.count,
            "null_share": round(key.nulls / key.count, 4) if key.count else 0.0,
            "types": dict(key.types.most_common()),
            "example": cut(" ".join(example.split()), EXAMPLE_CHARACTERS),
        }


def shapes(files: Iterable[InspectedFile]) -> list[list[InspectedFile]]:
    """Group files of one format and one set of suites that fit, with the same flags."""
    groups: dict[Any, list[InspectedFile]] = {}
    for each in files:
        fits = tuple((fit.suite, fit.flags) for fit in each.fits)
        groups.setdefault((each.file.format, fits, frozenset(each.found.keys)), []).append(each)
    return list(groups.values())
