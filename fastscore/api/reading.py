"""Inspecting and scanning logs without a run, and the commands that fit them."""

import dataclasses
import glob
import os
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from fastscore.api.arguments import SuiteName, request_of
from fastscore.errors import (
    FastscoreError,
    UsageError,
    counted,
    listed,
    names_arguments,
    warn_caller,
)
from fastscore.files import free_names
from fastscore.logs.inputs.column_map import (
    EXAMPLE,
    ColumnMap,
    Flag,
    UnmappedLogError,
    column_flag,
    in_shared_words,
    layout_flag,
    map_of,
    map_source,
    typed,
)
from fastscore.logs.inputs.files import FORMAT_NAMES, STDIN, InputFile, resolve_inputs
from fastscore.logs.inputs.frames import spool_stdin
from fastscore.logs.inputs.layout import as_toml
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.read.rows import Part, Rows, join_parts, read_files
from fastscore.logs.samples.chat_samples import ROW_PER_TURN
from fastscore.logs.samples.findings import jq_path
from fastscore.logs.samples.inspection import (
    CHATS_SOURCE,
    EXAMPLE_CHARACTERS,
    InspectedFile,
    Inspection,
    Trial,
    inspect_logs,
    key_rows,
    may_fit,
    shapes,
    turns_of_chats,
)
from fastscore.logs.samples.profile import (
    MOST_ROWS_SAMPLED,
    SHOWN,
    Profile,
    RequiredColumn,
    all_columns,
)
from fastscore.logs.samples.records import read_records
from fastscore.logs.samples.refusals import MissingColumnsError, UnknownWordsError, suggest_words
from fastscore.logs.samples.rewrites import chats_of_lines
from fastscore.logs.samples.screening import screen
from fastscore.logs.score_input import LogsWarning, ScoreInput, scan_rejects, scan_rows
from fastscore.run.context import run_context
from fastscore.run.notes import note_on_systems
from fastscore.run.request import Request
from fastscore.run.scoring import compute_rows
from fastscore.settings.options import SuiteOptions, build_options, flag_name, path_advice
from fastscore.suites.base import Suite
from fastscore.suites.chats import CHATS
from fastscore.suites.declarations import REJECT_SCHEMA, REPLACED_ROWS, Source
from fastscore.suites.identity import RunNames
from fastscore.suites.registry import load_suite, suite_names
from fastscore.suites.summary import ALL, summarise
from fastscore.terminal import plain
from fastscore.terminal.grids import Column, Grid, print_grid

if TYPE_CHECKING:
    from rich.console import Console

_NAMED = 3
_MOST_CHARACTERS = 600
"""From here on the inputs, or the flags, of a command are written in a shorter way."""
_MOST_KEYS, _MOST_KEYS_READ, _KEY_CHARACTERS, _REASON_CHARACTERS = 200, 20, 200, 1600
"""How many keys are shown of a file, and of one that is read without naming any; sizes of texts."""


def commands(inspection: Inspection, suites: Mapping[str, Suite]) -> dict[str, str]:
    """Return the command for each fitting suite, those that fit most files first."""
    found: dict[str, str] = {}
    outputs = free_names("run")
    for suite, (inputs, flags) in _best_inputs(inspection).items():
        if suite == CHATS:
            continue
        files = [(flag_name(name), "FILE") for name in _required_options(suites[suite])]
        logs, options, before = _joined(inputs), shlex.join(flags), ""
        if len(options) > _MOST_CHARACTERS:
            options = f"--layout {suite}.toml"
            before = f"fastscore inspect {logs} --as-layout {suite} > {suite}.toml; "
        words = ("fastscore score", suite, logs, "-o", next(outputs), options, *chain(*files))
        found[suite] = before + " ".join(word for word in words if word)
    return found


def judge_command(inspection: Inspection, output: Path | None = None) -> str:
    """Return what judges chats; nothing if no judge reads them, or a suite does as they are."""
    best = _best_inputs(inspection)
    if CHATS not in best or any(not fit.flags for each in inspection.files for fit in each.fits):
        return ""
    return _judging(*best[CHATS], output)


def _judging(inputs: Sequence[str], flags: Sequence[str], output: Path | None = None) -> str:
    folder = shlex.quote(str(output or next(free_names("judgements"))))
    model = "--model MODEL --base-url URL"
    words = ("fastscore judge", _joined(inputs), "-o", folder, shlex.join(flags), model)
    return " ".join(word for word in words if word)


def _required_options(suite: Suite) -> list[str]:
    return [
        each.name for each in dataclasses.fields(suite.options) if each.metadata.get("required")
    ]


def _joined(paths: Sequence[str]) -> str:
    """Write paths, or if they are long the glob that matches just them; a placeholder if none."""
    if len(joined := shlex.join(paths)) <= _MOST_CHARACTERS:
        return joined
    suffixes = {os.path.splitext(path)[1] for path in paths}
    pattern = os.path.join(os.path.dirname(paths[0]), f"*{suffixes.pop()}")
    is_exact = not suffixes and {*glob.glob(pattern)} == {*paths}
    return shlex.quote(pattern) if is_exact and len(pattern) <= _MOST_CHARACTERS else "INPUT..."


def _best_inputs(inspection: Inspection) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Return the inputs that each suite reads by flags of one kind, and these flags."""
    fitting: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in inspection.files:
        for fit in each.every_fit:
            fitting.setdefault((fit.suite, fit.flags), []).append(each.file.path)
    best: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for (suite, flags), paths in sorted(fitting.items(), key=lambda item: -len(item[1])):
        if suite in best:
            continue
        # files of a folder that do not fit at all are skipped
        others = [
            each
            for each in inspection.files
            if each.file.path not in paths and any(fit.suite == suite for fit in each.every_fit)
        ]
        best[suite] = (_inputs(inspection, paths) if not others else paths, flags)
    return best


def _inputs(inspection: Inspection, paths: Sequence[str]) -> list[str]:
    """Return the inputs that contain the files, as given by the user."""
    return [
        given
        for given in inspection.inputs
        if not os.path.isfile(given)
        or os.path.realpath(given) in map(os.path.realpath, paths)
        or any(path.startswith(os.path.join(given, "")) for path in paths)
    ]


def layout_of(inspection: Inspection, suite: str) -> str:
    """Return the layout by which a suite reads the most files, as TOML."""
    fits = [fit for each in inspection.files for fit in each.fits if fit.suite == suite]
    if not fits:
        known = dict.fromkeys(fit.suite for each in inspection.files for fit in each.fits)
        raise UsageError(
            f"No file of {', '.join(inspection.inputs)} can be read by {suite!r}.",
            f"Suites that can read them: {', '.join(known) or 'none'}.",
        )
    most = max(fits, key=lambda fit: sum(other.columns == fit.columns for other in fits))
    return as_toml(f"Logs like {inspection.inputs[0]}", most.columns, suite)


def show_inspection(
    console: "Console", inspection: Inspection, suites: Mapping[str, Suite]
) -> None:
    """Print the answer, the files of one shape together with their keys, and the commands."""
    typed = commands(inspection, suites)
    judging = judge_command(inspection)
    for line in _answer(inspection, typed, suites, is_judged=bool(judging)):
        console.print(line, soft_wrap=True)
    console.print()
    for group in shapes(inspection.files):
        _show_shape(console, group)
    if inspection.others:
        console.print("No logs (`fastscore inspect FILE` says how one can be converted):")
        for path, reason in inspection.others.items():
            console.print(f"  {plain(path)}: {cut(reason, _REASON_CHARACTERS)}", soft_wrap=True)
        console.print()
    every = [*filter(None, [judging]), *typed.values()]
    if every:
        console.print("Type:")
    for command in every:
        console.print(f"  {plain(command)}", soft_wrap=True)
    for line in questions(inspection, is_read=bool(every)):
        console.print(plain(line), soft_wrap=True)


def questions(inspection: Inspection, *, is_read: bool) -> Iterator[str]:
    """Say what must be answered before a judge or a suite reads files."""
    asking: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for each in inspection.files:
        if each.asking is not None and each.judged is None:
            key = each.asking.question, each.asking.flags
            asking.setdefault(key, []).append(each.file.path)
    for (question, flags), paths in asking.items():
        yield f"To judge: {question.replace(EXAMPLE, _judging(_inputs(inspection, paths), flags))}"
    numbered = dict.fromkeys(filter(None, map(_numbered_turns, inspection.files)))
    yield from numbered
    if is_read:
        if judge_command(inspection):
            yield from dict.fromkeys(_labels_of_systems(inspection))
        return
    for command in filter(None, map(_elements_command, inspection.files)):
        yield f"If each element is a chat: {command}"
    others = [each for each in inspection.files if each.asking is None]
    hints = [(each.asked[suite], why) for each in others for suite, why in each.unfit.items()]
    if any(hint and hint in why for hint, why in hints):
        yield "For a suite: do what its line that begins with `not` says."
    with_texts = [
        each.found
        for each in others
        if each.is_unnamed and any("string" in key.types for key in each.found.keys.values())
    ]
    yield from () if numbered else dict.fromkeys(map(_keys_of_chats, with_texts))


def _numbered_turns(inspected: InspectedFile) -> str:
    """Say that columns such as ``turn 1`` and ``turn 2`` are not read as the turns of one row."""
    keys = inspected.found.keys.items()
    texts = [name for name, key in keys if {*key.types} == {"string"} and "." not in name]
    stems = Counter(map(_without_number, texts))
    several = [repr(plain(name)) for name in texts if stems[_without_number(name)] > 1]
    if len(several) < 3 or inspected.found.arrays:
        return ""
    return (
        f"If the columns {listed(several, 4)} are turns of one dialogue, join them first, as "
        "`concat_list` of polars does, and add --column turns=KEY --alternate user."
    )


def _without_number(name: str) -> str:
    return re.sub(r"[ _-]?\d{1,2}$", "", name)


_VERSION = re.compile(
    r"(?i)([^\[]*[ _-])?(version|variant|policy|checkpoint)|modell?([ _-](name|id))?"
)
_READ_AS_MODEL = ("model", "model_name")


def _labels_of_systems(inspection: Inspection) -> Iterator[str]:
    """Say how a key that may name systems becomes the label that comparisons are by."""
    for each in inspection.files:
        keys = each.found.keys
        named = () if keys.keys() & {*_READ_AS_MODEL} else filter(_VERSION.fullmatch, keys)
        for name in (one for one in named if len(keys[one].words) > 1):
            flag = typed([column_flag("model", name)])
            yield f"If {plain(name)!r} tells systems apart, such as two versions, add: {flag}"


def _keys_of_chats(found: Profile) -> str:
    """Say what names the keys of chats, in arrays or in rows."""
    for name, key in found.keys.items():
        texts = key.example if "array" in key.types and name not in found.arrays else []
        if texts and not chats_of_lines(name, texts):
            flags = typed([column_flag("messages", name), Flag("alternate", ("user",))])
            return f"If the user begins, `fastscore judge` reads texts by turns: {flags}"
    turns = column_flag("turns", "KEY") if found.arrays else layout_flag(ROW_PER_TURN)
    flags = typed([turns, column_flag("speaker", "KEY"), column_flag("text", "KEY")])
    return f"`fastscore judge` reads any chat whose keys are named: {flags}"


def _elements_command(inspected: InspectedFile) -> str:
    """Return what writes the chats of a document's one array of them as lines, if it has such."""
    nested = [path.split("[].") for path in inspected.found.keys]
    outer = {parts[0] for parts in nested if len(parts) > 2}
    if inspected.found.rows != 1 or len(outer) != 1:
        return ""
    path = jq_path(outer.pop().split("."))
    return f"{shlex.join(['jq', '-c', f'{path}[]', inspected.file.path])} > chats.jsonl"


_ANY_CHAT = (
    "`fastscore judge` and a suite of your own (`@fastscore.suite`) score these chats, as any chat."
)


def _answer(
    inspection: Inspection,
    typed: Mapping[str, str],
    suites: Mapping[str, Suite],
    *,
    is_judged: bool,
) -> Iterator[str]:
    """Name the suites that read most, what each measures, and how much of the first rows."""
    n_files = len(inspection.files)
    if is_judged:
        yield _ANY_CHAT
    for suite in typed:
        fits = [fit for each in inspection.files for fit in each.fits if fit.suite == suite]
        trials = [fit.trial for fit in fits if fit.trial]
        n_scored = sum(trial.n_scored for trial in trials)
        n_rejects = sum(trial.n_rejects for trial in trials)
        rejects = (
            f", {counted(n_rejects, 'rejects')}: add --max-rejects 1 if they are over 0.1 % of "
            "all lines"
        )
        of_files = f"{len(fits):,} of {counted(n_files, 'files')}"
        scored = f"scores {n_scored:,} turns or steps of the first rows"
        title = suites[suite].title
        yield f"{suite} reads {of_files} and {scored}{rejects if n_rejects else ''}"
        yield f"  It measures {title[0].lower()}{title[1:]}."
    if inspection.files and not any(each.found.rows for each in inspection.files):
        yield "No row was found in any of it."
    elif not typed:
        yield (
            "No suite can read any of it as it is: the last lines say what to name. "
            "`fastscore layouts` lists the layouts that are known."
        )


def _show_shape(console: "Console", group: Sequence[InspectedFile]) -> None:
    first = group[0]
    names = listed([each.file.path for each in group], _NAMED)
    size = sum(each.file.size for each in group)
    packed = {each.file.compression for each in group} - {"none"}
    named = first.file.kind or FORMAT_NAMES[first.file.format]
    kind = named + "".join(f", {each}" for each in sorted(packed))
    console.print(f"{plain(names)}", soft_wrap=True)
    rows = counted(first.found.rows, "rows")
    looked = f"all {rows}" if first.is_whole else f"the first {rows}"
    of_first = " of the first file" if len(group) > 1 else ""
    console.print(f"{counted(len(group), 'files')}, {kind}, {size:,} bytes; {looked}{of_first}")
    keys = list(key_rows(first.found))
    head = keys[: _MOST_KEYS_READ if first.every_fit else _MOST_KEYS]
    if head:
        print_grid(console, _key_grid(head))
    if head != keys:
        console.print(f"and {counted(len(keys) - len(head), 'more keys')}: --json lists all")
    if first.speakers:
        speakers = [f"{cut(word, EXAMPLE_CHARACTERS)} = {r}" for word, r in first.speakers.items()]
        console.print(f"speakers: {plain(listed(speakers, SHOWN))}", soft_wrap=True)
    for fit in first.fits:
        flags = shlex.join(fit.flags).replace(" --", "\n--").split("\n")
        named = f" with {listed([cut(flag, _KEY_CHARACTERS) for flag in flags], SHOWN, ' ')}"
        console.print(f"fits {fit.suite}{plain(named) if fit.flags else ''}", soft_wrap=True)
        for need in fit.lacking:
            _show_lack(console, need)
    suites: dict[str, list[str]] = {}
    for suite, reason in first.unfit.items() if first.found.rows else ():
        suites.setdefault(reason, []).append(suite)
    for reason, unfit in suites.items():
        shown = plain(cut(reason, _REASON_CHARACTERS))
        console.print(f"not {', '.join(unfit)}: {shown}", soft_wrap=True)
    console.print()


def _show_lack(console: "Console", need: RequiredColumn) -> None:
    without = f"  without {' or '.join((need.place, *need.column.needed.given_by))}"
    needed = need.column.needed
    for what, names in (("null everywhere", needed.by), ("scored all the same", needed.affects)):
        if names:
            console.print(f"{without}, {what}: {', '.join(names)}", soft_wrap=True)


def _key_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    paths = (cut(row["path"], _KEY_CHARACTERS) for row in rows)
    types = tuple(", ".join(row["types"]) or "null" for row in rows)
    nulls = tuple(f"{row['null_share']:.0%}" for row in rows)
    return Grid(
        "",
        (
            Column("key", _texts(paths), right=False),
            Column("types", types, right=False),
            Column("in", _texts(f"{row['count']:,}" for row in rows), drop=1),
            Column("null", nulls, drop=0),
            Column("example", _texts(row["example"] for row in rows), right=False, wraps=True),
        ),
    )


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(plain, texts))


@names_arguments
def scan(
    source: Any,
    suite: SuiteName | SuiteOptions | Suite,
    *,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    layout: str | None = None,
    alternate: Literal["user", "assistant"] | None = None,
    sort_by: str | None = None,
    dialogue: str | None = None,
    without: str | None = None,
    rejects: bool = False,
    workers: int | None = None,
) -> pl.LazyFrame:
    """Scan logs lazily, with the rows that a suite would score.

    The project's reader as a polars source: sharded logs of every format, packed or not, broken
    lines left aside and named. Projections, predicates and row limits of a query are used while
    it is read, and only a few batches are in memory at once.

    Parameters
    ----------
    source
        Logs, a frame or rows, as `score` takes.
    suite
        The suite whose columns are read: its name or its options.
    columns, values, layout, alternate, sort_by, dialogue, without
        Where the columns are in the logs, as `score` takes them.
    rejects
        Scan the rejected lines instead: place, field, reason, found value.
    workers
        Number of reading threads. Default: one per processor. The rows do not depend on it.

    Returns
    -------
    pl.LazyFrame
        The columns ``file``, ``line`` (from 1, in Parquet and frames the row's number) and
        ``byte_offset`` (null if rows have none), then the suite's columns, in input order. Or the
        rejects. A query over rows that meets rejects ends with a `RejectsWarning`. Files in a
        folder that are not logs of the suite are skipped. A `LogsWarning` names them, and the
        columns that every metric needs and no row has.

    Raises
    ------
    UsageError
        An unknown suite, or standard input.
    InputError
        Nothing matches. Errors while a query runs are raised by polars.

    Examples
    --------
    >>> turns = fastscore.scan("logs", "score_dialogue")
    >>> turns.filter(pl.col("step") == 0).select("file", "line", "prediction").collect()
    """
    request = request_of(locals(), "scan")
    name = request.suite
    declared = map_source(load_suite(name).source, request.column_map)
    given = request.memory or ScoreInput(paths=request.inputs)
    if STDIN in given.paths:
        raise UsageError("Standard input can be read only once.", "Name files, or score it.")
    given, note = given.logs(declared, name)
    if note:
        warn_caller(note, LogsWarning)
    read = partial(given.read, threads=request.threads)
    return (scan_rejects if rejects else scan_rows)(read, declared, f"{name}: {given}")


@names_arguments
def inspect(*logs: str | os.PathLike[str]) -> Inspection:
    """Look at logs: their keys, which suites can read them, with which flags.

    Parameters
    ----------
    *logs
        Files, folders and globs. ``-`` is standard input.

    Raises
    ------
    InputError
        Nothing is there.

    Examples
    --------
    >>> print(fastscore.inspect("logs"))
    """
    sources = {name: load_suite(name).source for name in suite_names()} | {CHATS: CHATS_SOURCE}
    for path in logs:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"A log is of type {type(path).__name__}; expected files, folders and globs.",
                path_advice(path)
                or "Give each as an argument of its own: fastscore.inspect(*logs).",
            )
    inputs = [os.fspath(path) for path in logs]
    if STDIN not in inputs:
        return inspect_logs(inputs, sources, _try_reading)
    with tempfile.TemporaryDirectory() as folder:
        kept = spool_stdin(InputFile(STDIN, "jsonl", "none", 0), Path(folder))
        path = kept.stored or kept.path
        found = inspect_logs(
            [path if each == STDIN else each for each in inputs], sources, _try_reading
        )
    files = [
        replace(each, file=replace(each.file, path=STDIN)) if each.file.path == path else each
        for each in found.files
    ]
    others = {STDIN if each == path else each: reason for each, reason in found.others.items()}
    return Inspection(tuple(inputs), tuple(files), others)


def _try_reading(file: InputFile, suite_name: str, columns: ColumnMap) -> Trial:
    """Read the first rows of a file with a suite's own reader."""
    suite = None if suite_name == CHATS else load_suite(suite_name)
    declared = map_source(CHATS_SOURCE if suite is None else suite.source, columns)
    parts: list[Part] = []
    for part in read_files([file], declared):
        parts.append(part)
        if sum(each.frame.height for each in parts) >= MOST_ROWS_SAMPLED:
            break
    rows = join_parts(parts, declared, RunNames())
    if suite is None:
        said = [turn for _, turn in turns_of_chats(rows.frame) if isinstance(turn, dict)]
        n_said = sum(bool(turn.get("role") and turn.get("content")) for turn in said)
        return Trial(n_said, rows.rejects.height, _fault(rows.rejects, file.path))
    required = dict.fromkeys(_required_options(suite), "FILE")
    rows = replace(rows, frame=rows.frame.head(MOST_ROWS_SAMPLED))
    options = build_options(suite.options, required)
    events = suite.read(rows.frame, options)
    if events.n_scored and not required and _is_null_everywhere(suite, columns, rows, file.path):
        return Trial(0, rows.rejects.height, "every metric of the first rows would be null")
    if events.counts.get(REPLACED_ROWS):
        mixed = note_on_systems(read_records(file, declared), declared, suite)
        if mixed:
            return Trial(0, rows.rejects.height, f"rows are replaced by later ones: {mixed}")
    rejects = pl.concat([rows.rejects.select(*REJECT_SCHEMA), events.rejects])
    if not events.n_scored and hasattr(options, _JOIN):
        joined = suite.read(rows.frame, build_options(suite.options, {**required, _JOIN: True}))
        if joined.n_scored:
            n_rejects = rows.rejects.height + joined.rejects.height
            return Trial(joined.n_scored, n_rejects, options=(flag_name(_JOIN),))
    return Trial(events.n_scored, rejects.height, _fault(rejects, file.path))


_JOIN = "merge_speakers"
"""The option that joins messages of one speaker that follow each other."""


def _is_null_everywhere(suite: Suite, columns: ColumnMap, rows: Rows, file: str) -> bool:
    """Score the first rows, and tell whether they make no row or every metric of them is null."""
    request = Request(suite=suite.name, embedder=None)
    if suite.needs_vectors(request.options) and not suite.runs_without_embedder:
        return False
    loaded = run_context(request, suite, None, columns).load()
    scored = compute_rows(loaded, rows, [file])
    if next(iter(scored.tables.values())).is_empty():
        return True
    tables = {name: table.lazy() for name, table in scored.tables.items()}
    whole = summarise(suite, tables, request.options).filter(pl.col("group") == ALL)
    return whole.height > 0 and not (whole["n"] + whole["n_fixed"] > 0).any()


def _fault(rejects: pl.DataFrame, file: str) -> str:
    """Describe the first reject, and how its value is converted."""
    if rejects.is_empty():
        return ""
    first = rejects.row(0, named=True)
    advice = suggest_words(file, first).removesuffix(".")
    return (
        f"line {first['line']}: {first['field'] or 'row'}: {first['reason']} (found "
        f"{first['found']}, expected {first['expected']}){'.' if advice else ''}{advice}"
    )


def hint_for(request: Request, error: UnmappedLogError) -> str | None:
    """Return what must be typed or added, or which suite reads the logs as they are; else None."""
    if request.column_map:
        is_asked = isinstance(error, UnknownWordsError | MissingColumnsError)
        return f"Keep the options that you typed. {error.hint}" if error.flags or is_asked else None
    if not request.inputs or STDIN in request.inputs:
        return None
    return _command_that_fits(request, error)


def _command_that_fits(request: Request, error: UnmappedLogError) -> str | None:
    """Return the sentence with all flags, another suite's command, or what is asked; else None.

    The flags of an error may be only the first: those that follow are found by reading.
    """
    suites = {name: load_suite(name) for name in suite_names()}
    sources = {name: suite.source for name, suite in suites.items()}
    source = sources.pop(request.suite)
    try:
        sources = {
            name: other
            for name, other in sources.items()
            if any(may_fit(other, each) for each in error.keys)
        }
        is_layout = any(flag.option == "layout" for flag in error.flags)
        moved = {flag.words[0] for flag in error.flags if flag.option == "column"}
        # after a key of words these may be asked for
        asks_words = not moved.isdisjoint(
            need.name
            for need in all_columns(source)
            if need.column.vocabulary.needed or need.column.vocabulary.any_needed
        )
        has_more = bool(is_layout or error.example) or (
            asks_words and not _is_screened(request, map_source(source, map_of(error.flags)))
        )
        if not sources and not has_more:
            return None
        files = inspect_logs(request.inputs, {request.suite: source}, _try_reading).files
        fits = [fit for each in files for fit in each.fits]
        if fits:
            told = typed(in_shared_words(error.flags, source))
            every = {shlex.join(fit.flags) for fit in fits}
            if len(every) > 1 or told in every or "" in every:  # some files fit as they are
                return None
            return f"Type {every.pop()}.{error.more}"
        found = inspect_logs(request.inputs, sources, _try_reading) if sources else None
    except FastscoreError:
        return None
    others = [fit for each in found.files for fit in each.fits if not fit.flags] if found else []
    if found and others:
        suite = others[0].suite
        return f"These logs fit {suite}. Type: `{commands(found, suites)[suite]}`"
    asked = {each.asked.get(request.suite, "") for each in files}
    return asked.pop() if len(asked) == 1 else None


def _is_screened(request: Request, source: Source) -> bool:
    """Tell whether the logs that a request names have nothing more to ask, if mapped in a way."""
    with suppress(UnmappedLogError):
        screen(resolve_inputs(request.inputs, source.formats), source, request.suite)
        return True
    return False
