"""The published files of states: ``exp<k>/<conversation>_states.csv`` below a folder.

A file has a row a guest message, exits left out. Its rows say by ``message_index`` which message
they are of: the message's place, from 0, among those of the conversation. Files are small and many,
so each is read by itself, by Python's ``csv``, which counts lines and takes no row of another
width. A file that is missing or odd leaves its conversation without metrics that need states.
Others are scored.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.errors import UsageError
from fastscore.options import read_option_file
from fastscore.suites.declarations import RejectReason
from fastscore.suites.grouping import first_of_group
from fastscore.suites.guest_simulation.options import ORDER_COLUMN, STATE_COLUMNS, GuestSimulation
from fastscore.suites.guest_simulation.rows import Rows
from fastscore.suites.json_values import Problem

FILES = "exp*/*_states.csv"
"""The files of a folder that are states."""

FIELD = "states_from"
_INDEX, _MESSAGE_ID, _PLACE = "message_index", "message_id", "place"
_CELLS = (*STATE_COLUMNS, ORDER_COLUMN)
_SCHEMA = {
    "conversation": pl.Int64(),
    _INDEX: pl.Int64(),
    "given_id": pl.String(),
    **dict.fromkeys(_CELLS, pl.String()),
    _PLACE: pl.String(),
}
_LEVEL = re.compile(r"exp([0-9]{1,9})")
_SUFFIX = "_states.csv"
_LONGEST_CELL = 1 << 30


@dataclass(frozen=True, slots=True)
class StateFiles:
    """What files say of the states of messages."""

    # the guest messages, with the files' cells in their state columns; null without a row
    messages: Rows
    has_row: Mask  # which of them have a row in their file, bool (messages,)
    place: pl.Series  # its place, `file:line` (messages,); null without one
    # conversations that have no file, and whose file cannot be used, bool (conversations,)
    missing: Mask
    bad: Mask
    problems: Mapping[int, Problem]  # what is wrong with these, by conversation

    @property
    def unread(self) -> Mask:
        """Conversations of whose states nothing is known, bool (conversations,)."""
        unread: Mask = self.missing | self.bad
        return unread


@dataclass(slots=True)
class _Found:
    """Rows of files, a column each, and what is wrong with files, by conversation."""

    columns: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in _SCHEMA})
    missing: dict[int, Problem] = field(default_factory=dict)
    bad: dict[int, Problem] = field(default_factory=dict)


class _OddFileError(Exception):
    """A file that cannot be used, and what is wrong with it."""

    def __init__(self, reason: RejectReason, place: str, found: str, expected: str) -> None:
        self.problem = Problem(FIELD, reason, f"{place}: {found}", expected)


def check_files(options: GuestSimulation) -> None:
    """Refuse a folder of states that is none."""
    if options.states_from:
        find_state_files(options.states_from)


def find_state_files(folder: str) -> dict[tuple[int, str], Path]:
    """Return the files of states below a folder by level and conversation."""
    root = Path(folder)
    if not root.is_dir():
        there = "is a file" if root.exists() else "is not there"
        raise UsageError(
            f"states_from {folder}: {there}, expected a folder of {FILES}.",
            "Name the folder that holds exp1, exp2 and so on.",
        )
    found = {}
    for path in sorted(root.glob(FILES)):
        level = _LEVEL.fullmatch(path.parent.name)
        if level:
            found[int(level[1]), path.name.removesuffix(_SUFFIX)] = path
    if not found:
        inside = ", ".join(sorted(entry.name for entry in root.iterdir())[:5]) or "nothing"
        raise UsageError(
            f"states_from {folder}: holds {inside}, expected files {FILES}.",
            "Name the folder that holds exp1, exp2 and so on.",
        )
    return found


def read_state_files(
    folder: str, labels: pl.DataFrame, messages: Rows, index: Indices
) -> StateFiles:
    """Read the states of guest messages from files instead of the log's columns."""
    found = _read_files(find_state_files(folder), labels, np.unique(messages.conversation))
    rows = pl.DataFrame(found.columns, schema=_SCHEMA)
    keys = pl.DataFrame({"conversation": messages.conversation, _INDEX: index})
    ids = messages[_MESSAGE_ID].rename(_MESSAGE_ID)
    _note_strangers(rows, keys.hstack([ids]), found)
    rows = rows.filter(~pl.col("conversation").is_in(list(found.bad)))
    joined = keys.join(rows, on=keys.columns, how="left", maintain_order="left")
    cells = messages.columns.with_columns(joined.select(_CELLS))
    n_conversations = labels.height
    return StateFiles(
        messages=replace(messages, columns=cells),
        has_row=joined[_PLACE].is_not_null().to_numpy(),
        place=joined[_PLACE],
        missing=np.isin(np.arange(n_conversations), list(found.missing)),
        bad=np.isin(np.arange(n_conversations), list(found.bad)),
        problems=found.missing | found.bad,
    )


def message_indices(rows: Rows) -> Indices:
    """Return the place of each row among the messages of its conversation, from 0.

    The row of the test case is not a message. Its values are ignored.
    """
    before: Indices = np.cumsum(~rows.is_case) - ~rows.is_case
    indices: Indices = before - before[first_of_group(rows.conversation)]
    return indices


def _read_files(
    files: Mapping[tuple[int, str], Path], labels: pl.DataFrame, needed: Indices
) -> _Found:
    """Read the files of the conversations that have a message to be told of."""
    found = _Found()
    named = labels["conversation_id"].to_list(), labels["experiment_level"].to_list()
    for conversation in needed.tolist():
        name, level = (values[conversation] for values in named)
        path = files.get((level, name))
        if path is None:
            wanted = f"exp{'<k>' if level is None else level}/{name}{_SUFFIX}"
            known = "no level, so no file" if level is None else f"no file {wanted}"
            found.missing[conversation] = Problem(
                FIELD, "missing_field", known, f"a file {wanted} for every conversation"
            )
            continue
        try:
            rows = _read_file(path)
        except _OddFileError as odd:
            found.bad[conversation] = odd.problem
            continue
        found.columns["conversation"] += [conversation] * len(rows[_INDEX])
        for column, cells in rows.items():
            found.columns[column] += cells
    return found


def _read_file(path: Path) -> dict[str, Sequence[object]]:
    """Return the rows of a file by column: those of `_SCHEMA` but the conversation."""
    place = str(path)
    csv.field_size_limit(_LONGEST_CELL)
    try:
        lines = io.StringIO(read_option_file(path).decode("utf-8-sig"), newline="")
        reader = csv.reader(lines, strict=True)
        header = next(reader, [])
        records = [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        last = f"{place}:{reader.line_num}"
        raise _OddFileError(
            "bad_quoting",
            last,
            str(error),
            f"a CSV record whose cells have at most {_LONGEST_CELL:,} characters",
        ) from error
    except UnicodeDecodeError as error:
        raise _OddFileError("not_utf8", place, str(error), "UTF-8") from error
    except OSError as error:
        found = f"cannot be read ({error.strerror})"
        raise _OddFileError("missing_field", place, found, "a file of states") from error
    lacking = [name for name in (_INDEX, *_CELLS) if header.count(name) != 1]
    if lacking:
        shown = f"columns {', '.join(header) or 'none'}"
        wanted = f"one column each of {', '.join(lacking)}"
        raise _OddFileError("missing_column", f"{place}:1", shown, wanted)
    for line, record in records:
        if len(record) != len(header):
            shown, wanted = f"{len(record)} cells", f"{len(header)}, as in the header"
            raise _OddFileError("wrong_cell_count", f"{place}:{line}", shown, wanted)
    columns = dict(zip(header, zip(*(record for _, record in records), strict=True), strict=True))
    no_cells = ("",) * len(records)
    rows: dict[str, Sequence[object]] = {name: columns.get(name, no_cells) for name in _CELLS}
    rows["given_id"] = columns.get(_MESSAGE_ID, no_cells)
    rows[_PLACE] = [f"{place}:{line}" for line, _ in records]
    rows[_INDEX] = [_whole(record[header.index(_INDEX)], f"{place}:{line}")
                    for line, record in records]  # fmt: skip
    return rows


def _whole(text: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        found = f"{_INDEX} {text!r}"
        raise _OddFileError("wrong_type", place, found, "a whole number from 0")
    return int(text)


def _note_strangers(rows: pl.DataFrame, messages: pl.DataFrame, found: _Found) -> None:
    """Note files with a row that is of no guest message, of another one, or of one twice."""
    matched = rows.join(
        messages.with_columns(is_guest=True),
        on=["conversation", _INDEX],
        how="left",
        maintain_order="left",
    ).with_columns(
        repeated=~pl.struct("conversation", _INDEX).is_first_distinct(),
        other=(pl.col("given_id") != "") & (pl.col("given_id") != pl.col(_MESSAGE_ID)),
    )
    odd = matched.filter(pl.col("is_guest").is_null() | pl.col("repeated") | pl.col("other"))
    for row in odd.unique("conversation", keep="first", maintain_order=True).to_dicts():
        shown = f"{row[_PLACE]}: {_INDEX} {row[_INDEX]}"
        if row["is_guest"] is None:
            expected = "the place, from 0, of a message of the guest in the conversation"
        elif row["repeated"]:
            shown, expected = f"{shown} once more", "one row a message"
        else:
            shown = f"{shown} with {_MESSAGE_ID} {row['given_id']!r}"
            expected = f"{row[_MESSAGE_ID]!r}, the id of that message in the log"
        found.bad[row["conversation"]] = Problem(FIELD, "out_of_range", shown, expected)
