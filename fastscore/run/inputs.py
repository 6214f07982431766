"""What a run reads: files that can be read more than once, and which dialogues of them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastscore.logs.inputs.files import (
    STDIN,
    UNKNOWN_SUFFIX,
    InputFile,
    list_left_aside,
    resolve_inputs,
)
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.inputs.screening import Screened, screen
from fastscore.logs.inputs.suggestions import ROW_PER_TURN, row_per_turn
from fastscore.logs.objects import is_remote
from fastscore.logs.read.chosen import ChosenDialogues, choose, naming_source
from fastscore.logs.read.lines import read_blocks
from fastscore.logs.read.mapped_rows import stored_source
from fastscore.logs.read.rows import read_files
from fastscore.logs.read.stored_columns import spool_frame, spool_head, spool_rows, spool_stdin
from fastscore.run.context import RunConfig
from fastscore.run.engines.engine import LOCAL
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Source
from fastscore.wording import parameter

_CUT = ("csv", "jsonl")
"""The formats of which the beginning is a log of its own."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What is planned.

    Parameters
    ----------
    files
        Files that stay as they are while the run lasts.
    left_aside
        The paths of files that are no logs of the suite.
    chosen
        The dialogues that are scored, None for all.
    """

    files: tuple[InputFile, ...]
    left_aside: tuple[str, ...] = ()
    chosen: ChosenDialogues | None = None


def named_inputs(config: RunConfig, source: Source) -> tuple[InputFile, ...]:
    """Return what a request names, before anything is written.

    Raises
    ------
    UsageError, InputError
        As `resolve_inputs`.
    """
    if config.memory is not None:
        return (InputFile(FRAME_NAME, "parquet", "none", 0),)
    return resolve_inputs(config.inputs, source.formats, config.format)


def unread_inputs(
    config: RunConfig, suite: Suite, files: Sequence[InputFile], note: Callable[[str], None]
) -> list[str]:
    """Name what is no log or of another format in the inputs' folders, and say what it is.

    Files whose suffix names no format are passed over without a word.
    """
    read = frozenset(file.path for file in files)
    aside = list_left_aside(config.inputs, suite.source.formats, read)
    found = {path: reason for path, reason in aside.items() if reason != UNKNOWN_SUFFIX}
    if found:
        path, reason = next(iter(found.items()))
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        note(f"left aside: {path} ({reason}){more}")
    return list(found)


def with_own_turns(
    config: RunConfig,
    suite: Suite,
    note: Callable[[str], None] = lambda _: None,
    files: Sequence[InputFile] | None = None,
) -> RunConfig:
    """Return the request with the layout of rows that are turns, if its logs are such rows.

    Raises
    ------
    UsageError, InputError
        As `resolve_inputs`.
    """
    source = config.source(suite)
    can_be_turns = source.chat_rows is not None and source.chat_rows.can_be_turns
    if config.memory is not None or config.columns or not can_be_turns:
        return config
    found = row_per_turn(
        named_inputs(config, source) if files is None else files, suite.name, source
    )
    if not found:
        return config
    note(f"each row is a turn: read as by {parameter('layout', ROW_PER_TURN)}")
    return replace(config, columns=found)


def needs_spooling(config: RunConfig, file: InputFile) -> bool:
    """Tell whether a file can be read only once, or is none."""
    return config.memory is not None or file.path == STDIN


def kept_inputs(
    config: RunConfig, source: Source, files: Sequence[InputFile], folder: Path
) -> tuple[InputFile, ...]:
    """Write down in a folder what cannot be read twice.

    Raises
    ------
    UsageError
        Nothing comes from standard input.
    InputError
        What is in memory lacks what every metric needs.
    RunError
        The folder cannot be written.
    """
    memory = config.memory
    if memory is not None:
        memory.screen(source, config.suite)  # what is kept has the wanted columns alone
    if memory is not None and memory.frame is not None:
        return (spool_frame(memory.frame, stored_source(source).columns, folder),)
    if memory is not None:
        return (spool_rows(memory.rows, folder),)
    return tuple(
        spool_stdin(file, folder) if needs_spooling(config, file) else file for file in files
    )


def screened_inputs(
    config: RunConfig, source: Source, files: Sequence[InputFile], note: Callable[[str], None]
) -> Screened:
    """Return the inputs that are logs of the suite, and say which are not.

    Raises
    ------
    InputError
        As `screen`.
    """
    screened = screen(files, source, config.suite)
    for line in (*_separator_notes(screened.files), *screened.notes):
        note(line)
    return screened


def _separator_notes(files: Sequence[InputFile]) -> list[str]:
    """Say which files of CSV are separated by something else than commas."""
    of_kind: dict[str, list[str]] = {}
    for file in files:
        if file.format == "csv" and file.kind:
            of_kind.setdefault(file.kind, []).append(file.path)
    return [
        f"read as {kind}: {first}{f' and {len(others):,} more' if others else ''}"
        for kind, (first, *others) in of_kind.items()
    ]


def chosen_inputs(config: RunConfig, source: Source, screened: Screened, folder: Path) -> Readable:
    """Choose dialogues where some are left out.

    Raises
    ------
    InputError
        When a file cannot be read.
    RunError
        When the folder cannot be written, in which the beginning of a file is kept.
    """
    files, left = screened.files, tuple(file.path for file in screened.left_aside)
    if not config.choice:
        return Readable(files, left)
    parts = read_files(
        files, naming_source(source, config.choice), threads=config.workers, limits=config.limits
    )
    head = choose(parts, source, config.choice)
    if head.last_file is None:
        return Readable(files, left, head.chosen)
    before = itertools.takewhile(lambda file: file.path != head.last_file, files)
    last = next(file for file in files if file.path == head.last_file)
    if head.after is not None and last.format in _CUT:
        blocks = read_blocks(last.location, last.compression, limits=config.limits)
        last = spool_head(last, blocks, head.after, folder)
    return Readable((*before, last), left, head.chosen)


def readable_inputs(
    config: RunConfig,
    source: Source,
    folder: Path,
    note: Callable[[str], None] = lambda _: None,
) -> Readable:
    """Do all of this at once, for what is not committed."""
    files = kept_inputs(config, source, named_inputs(config, source), folder)
    return chosen_inputs(config, source, screened_inputs(config, source, files, note), folder)


def share_paths(files: tuple[InputFile, ...], engine: str) -> tuple[InputFile, ...]:
    """Name files so that every worker finds them; what they are called in rows stays."""
    if engine == LOCAL:
        return files
    return tuple(
        file
        if is_remote(file.location)
        else replace(file, stored=str(Path(file.location).absolute()))
        for file in files
    )
