"""From a request to a plan: files are named, kept, screened, chosen and cut into shards.

`named_inputs` writes nothing. `plan_inputs` does the rest, in a folder that the caller gives.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fastscore_jit.threads import raise_if_stopped

from fastscore.errors import InputError, listed
from fastscore.logs.inputs.column_map import ColumnMap, map_source
from fastscore.logs.inputs.files import (
    FORMAT_NAMES,
    STDIN,
    UNKNOWN_SUFFIX,
    InputFile,
    list_left_aside,
    resolve_inputs,
)
from fastscore.logs.inputs.frames import (
    FRAME_NAME,
    spool_frame,
    spool_head,
    spool_rows,
    spool_stdin,
)
from fastscore.logs.objects import is_remote
from fastscore.logs.plan.shards import Plan, SplitDialogueError, plan_shards
from fastscore.logs.read.chosen import ChosenDialogues, choose_sample, naming_source, take_first
from fastscore.logs.read.lines import read_blocks
from fastscore.logs.read.mapped_rows import stored_source
from fastscore.logs.read.rows import read_files
from fastscore.logs.samples.records import read_records
from fastscore.logs.samples.screening import Screened, screen
from fastscore.run.engines.engine import LOCAL, Engine
from fastscore.run.notes import note_on_systems
from fastscore.run.progress import SilentReporter, StageProgress
from fastscore.run.request import Request
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source

_CUT = ("csv", "jsonl")
"""The formats of which the beginning is a log of its own."""
_HEAD_ROWS = 10_000
"""The rows of each file in which a key is looked for that tells systems apart."""
_UNSHOWN = SilentReporter()


@dataclass(frozen=True, slots=True)
class NamedInputs:
    """The files that a request names, looked at without writing anything."""

    request: Request
    # its columns, or the layout of rows that are turns if its logs are such rows
    columns: ColumnMap
    source: Source  # the suite's source as these logs are read by it
    files: tuple[InputFile, ...]  # the files that were found
    # Which of them are read. None if some can be read only once: those are kept first.
    screened: Screened | None

    @property
    def stored_files(self) -> list[InputFile]:
        """The files that can be read more than once."""
        return [file for file in self.files if not _is_read_once(self.request, file)]


@dataclass(frozen=True, slots=True)
class PlannedInputs:
    """What is scored."""

    plan: Plan  # the shards
    files: tuple[InputFile, ...]  # files that stay as they are while the run lasts
    # the paths of files that are not logs of the suite, or of another format
    left_aside: tuple[str, ...]
    chosen: ChosenDialogues | None  # the dialogues that are scored, None for all


def named_inputs(
    request: Request, suite: Suite, note: Callable[[str], None] = lambda _: None
) -> NamedInputs:
    """Find the files that a request names, and tell how their rows are laid out."""
    columns = request.column_map
    source = map_source(suite.source, columns)
    if request.memory is not None:
        files: tuple[InputFile, ...] = (InputFile(FRAME_NAME, "parquet", "none", 0),)
        return NamedInputs(request, columns, source, files, None)
    rows = source.chat_rows
    try:
        files = resolve_inputs(request.inputs, source.formats, request.format)
    except InputError:
        if rows is not None:  # a layout reads any format: what is lacking says which
            any_format = replace(source, formats=tuple(FORMAT_NAMES))
            screen(resolve_inputs(request.inputs, any_format.formats), any_format, suite.name)
        raise
    # keys of the dialogue's name and model say nothing of turns
    can_be_turns = rows is not None and rows.can_be_turns and not columns.chat
    if rows is not None and can_be_turns and source.asked_for <= {rows.id, rows.model}:
        from fastscore.logs.samples.chat_samples import ROW_PER_TURN, row_per_turn

        found = row_per_turn(files, suite.name, suite.source)
        if found:
            note(f"each row is a turn: read as by layout {ROW_PER_TURN}")
            columns = found | columns
            source = map_source(suite.source, columns)
    reads_once = any(_is_read_once(request, file) for file in files)
    screened = None if reads_once else _screened(request, source, files, note)
    return NamedInputs(request, columns, source, files, screened)


def plan_inputs(
    inputs: NamedInputs,
    folder: Path,
    *,
    note: Callable[[str], None] = lambda _: None,
    stage: Callable[[str, int], AbstractContextManager[StageProgress]] = _UNSHOWN.stage,
    engine: Engine | None = None,
) -> PlannedInputs:
    """Keep, screen and choose what is read, and cut it into shards."""
    request, source = inputs.request, inputs.source
    screened = inputs.screened
    if screened is None:
        kept = _kept(request, source, inputs.files, folder / "inputs")
        screened = _screened(request, source, kept, note)
    files, chosen = _chosen(request, source, screened, folder / "inputs")
    left_aside = _left_aside(request, source, inputs.files, note)
    left_aside += [file.path for file in screened.left_aside]
    done = 0
    with stage("plan", len(files)) as progress:

        def advance(bytes_read: int, _: int) -> None:
            nonlocal done
            progress.advance({"bytes": bytes_read - done})
            done = bytes_read

        try:
            plan = plan_shards(
                _shared(files, request.engine),
                source,
                shard_bytes=request.shard_bytes,
                scratch=folder / "unpacked",
                progress=advance,
                threads=max(request.threads, 1 if engine is None else engine.processes()),
                map_tasks=None if engine is None else partial(engine.map, lost=progress.lost),
                check_cancelled=raise_if_stopped,
                limits=request.limits,
            )
        except SplitDialogueError as error:
            raise _with_key(error, source, request.load_suite()) from error
        if request.choice.sample is not None:
            chosen = choose_sample(
                plan.shards, source, plan.shared_names, request.choice, request.threads
            )
    return PlannedInputs(plan, files, tuple(left_aside), chosen)


def _is_read_once(request: Request, file: InputFile) -> bool:
    """Tell whether a file can be read only once, or is none."""
    return request.memory is not None or file.path == STDIN


def _kept(
    request: Request, source: Source, files: Sequence[InputFile], folder: Path
) -> tuple[InputFile, ...]:
    """Write down in a folder what cannot be read twice."""
    memory = request.memory
    if memory is not None:
        memory.screen(source, request.suite)  # what is kept has only the wanted columns
    if memory is not None and memory.frame is not None:
        return (spool_frame(memory.frame, stored_source(source).columns, folder),)
    if memory is not None:
        return (spool_rows(memory.rows, folder),)
    return tuple(
        spool_stdin(file, folder) if _is_read_once(request, file) else file for file in files
    )


def _screened(
    request: Request, source: Source, files: Sequence[InputFile], note: Callable[[str], None]
) -> Screened:
    """Return the inputs that are logs of the suite, and say which are not."""
    screened = screen(files, source, request.suite)
    for line in (*_separator_notes(screened.files), *screened.notes):
        note(line)
    return screened


def _separator_notes(files: Sequence[InputFile]) -> list[str]:
    """Say which files of CSV are separated by something else than commas."""
    of_kind: dict[str, list[str]] = {}
    for file in files:
        if file.format == "csv" and file.kind:
            of_kind.setdefault(file.kind, []).append(file.path)
    return [f"read as {kind}: {listed(paths, 1)}" for kind, paths in of_kind.items()]


def _chosen(
    request: Request, source: Source, screened: Screened, folder: Path
) -> tuple[tuple[InputFile, ...], ChosenDialogues | None]:
    """Choose the first dialogues if there is a limit; return the files to read, and these."""
    files = screened.files
    if request.choice.limit is None:
        return files, None
    naming = naming_source(source, of_places=True)
    parts = read_files(files, naming, threads=request.threads, limits=request.limits)
    head = take_first(parts, source, request.choice.limit)
    if head.last_file is None:
        return files, head.chosen
    before = itertools.takewhile(lambda file: file.path != head.last_file, files)
    last = next(file for file in files if file.path == head.last_file)
    if head.after is not None and last.format in _CUT:
        blocks = read_blocks(last.location, last.compression, limits=request.limits)
        last = spool_head(last, blocks, head.after, folder)
    return (*before, last), head.chosen


def _left_aside(
    request: Request, source: Source, files: Sequence[InputFile], note: Callable[[str], None]
) -> list[str]:
    """Name files of other formats in the inputs' folders, and say which there are.

    Files whose suffix names no format are passed over without a word.
    """
    read = frozenset(file.path for file in files)
    aside = list_left_aside(request.inputs, source.formats, read)
    found = {path: reason for path, reason in aside.items() if reason != UNKNOWN_SUFFIX}
    if found:
        named = [f"{path} ({reason})" for path, reason in found.items()]
        note(f"left aside: {listed(named, 1)}")
    return list(found)


def _with_key(error: SplitDialogueError, source: Source, suite: Suite) -> InputError:
    """Name the key that tells the rows of both files apart, if there is one."""
    heads = [itertools.islice(read_records(file, source), _HEAD_ROWS) for file in error.files]
    found = note_on_systems(itertools.chain(*heads), source, suite)
    return InputError(error.message, f"{found}.") if found else error


def _shared(files: tuple[InputFile, ...], engine: str) -> tuple[InputFile, ...]:
    """Name files so that every worker finds them; rows keep their names."""
    if engine == LOCAL:
        return files
    return tuple(
        file
        if is_remote(file.location)
        else replace(file, stored=str(Path(file.location).absolute()))
        for file in files
    )
