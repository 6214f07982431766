"""The rows of a log by conversation: where each begins, what it is called, who speaks in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import or_

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import number_hashes, string_changes

from fastscore.suites.columns import (
    gather_or_null,
)
from fastscore.suites.grouping import factorize, factorize_rows
from fastscore.suites.guest_simulation.options import GuestSimulation
from fastscore.suites.guest_simulation.terms import GUEST_NAMES, GUEST_ROLES

TEST_CASE_ROW = ("system", "test_case_info")
EXITS = tuple(map("".join, product("eE", "xX", "iI", "tT")))

_LABELS = ["file", "line", "conversation_id", "experiment_level", "test_case"]
_FOLDER_LEVEL = r"(?i)^(?:.*[/\\])?exp([0-9]{1,9})[/\\]"
_SUFFIXES = r"(?i)\.(?:csv|json|jsonl|ndjson|parquet)(?:\.(?:gz|zst))?$"
_TEST_CASE = r"_log_(.+_test_case_number_[0-9]+)$"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a log, those of each conversation together.

    Parameters
    ----------
    columns
        The log's columns.
    place
        The place of each row in the log, int64 (rows,).
    conversation
        Whose it is, int64 (rows,), ascending.
    by_role, is_guest
        Whether its role is the guest's, and whether its role or name is, bool (rows,).
    is_exit, is_case
        Whether it is the word that ends the conversation, or the test case, bool (rows,).
    """

    columns: pl.DataFrame
    place: Indices
    conversation: Indices
    by_role: Mask
    is_guest: Mask
    is_exit: Mask
    is_case: Mask

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, name: str) -> pl.Series:
        """Return a column of the log."""
        return self.columns[name]

    def where(self, kept: Mask, names: Sequence[str]) -> "Rows":
        """Return some of the rows, with the columns of these names."""
        at = np.flatnonzero(kept)
        return Rows(
            self.columns[list(names)][at],
            self.place[at],
            self.conversation[at],
            self.by_role[at],
            self.is_guest[at],
            self.is_exit[at],
            self.is_case[at],
        )


def by_conversation(raw: pl.DataFrame, options: GuestSimulation) -> tuple[Rows, pl.DataFrame]:
    """Give conversations numbers, and put the rows of each together.

    A conversation is the rows of one file, id and level.

    Returns
    -------
    tuple
        The rows; and the labels of the conversations, in order of their first rows.
    """
    level = _level_numbers(raw["experiment_level"])
    changed = _changes(raw["file"]) | _changes(raw["conversation_id"])
    changed[1:] |= level[1:] != level[:-1]
    begins = np.flatnonzero(changed)
    heads = raw[_LABELS][begins]
    of_head, firsts = factorize_rows(
        [factorize(heads["file"])[0], factorize(heads["conversation_id"])[0], level[begins]]
    )
    conversation = np.repeat(of_head, np.diff(np.append(begins, raw.height)))
    place = np.arange(raw.height)
    if len(firsts) != len(begins):
        place = np.argsort(conversation, kind="stable")
        raw, conversation = raw[place], conversation[place]
    test_case = _first_values(heads["test_case"], of_head)
    labels = _labels(heads[firsts].with_columns(test_case), options)
    return _with_speakers(raw, place, conversation), labels


def _with_speakers(columns: pl.DataFrame, place: Indices, conversation: Indices) -> Rows:
    role, name = columns["role"], columns["name"]
    by_role = _true(reduce(or_, (role == guest for guest in GUEST_ROLES)))
    is_guest = by_role | _true(name.str.starts_with(GUEST_NAMES))
    is_exit = _true(columns["content"].is_in(EXITS))
    is_case = _true((role == TEST_CASE_ROW[0]) & (name == TEST_CASE_ROW[1]))
    return Rows(columns, place, conversation, by_role, is_guest, is_exit, is_case)


def _true(answers: pl.Series) -> Mask:
    """Return where an answer is yes, and not null."""
    true: Mask = (answers.fill_null(False) if answers.null_count() else answers).to_numpy()
    return true


def _level_numbers(level: pl.Series) -> Indices:
    """Give distinct levels numbers, a null one too."""
    numbers, _ = number_hashes(level.fill_null(0).to_numpy().astype(np.uint64))
    return np.where(level.is_null().to_numpy(), 0, numbers + 1)


def _first_values(values: pl.Series, numbers: Indices) -> pl.Series:
    """Return the first value of each number that is not null; numbers are by first appearance."""
    given = np.flatnonzero(values.is_not_null().to_numpy())[::-1]
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    # numpy assigns in order: of several values the first stays
    first[numbers[given]] = given
    return gather_or_null(values, first)


def _changes(column: pl.Series) -> Mask:
    """Mark the rows that differ from the one before, the first too."""
    changed: Mask = string_changes(column.fill_null("") if column.null_count() else column)
    if column.null_count():
        missing = column.is_null().to_numpy()
        changed[1:] |= missing[1:] != missing[:-1]
    changed[:1] = True
    return changed


def _labels(heads: pl.DataFrame, options: GuestSimulation) -> pl.DataFrame:
    """Give conversations their names, levels and test cases."""
    of_file, files = factorize(heads["file"])
    of_files = files.to_frame("file").select(
        pl.col("file").str.extract(r"([^/\\]*)$").str.replace(_SUFFIXES, "").alias("stem"),
        pl.col("file").str.extract(_FOLDER_LEVEL).cast(pl.Int64).alias("folder"),
    )
    names = _or_else(heads["conversation_id"], of_files["stem"][of_file])
    level = _or_else(heads["experiment_level"], of_files["folder"][of_file])
    if level.null_count() and options.level:
        level = level.fill_null(options.level)
    # a name recurs at every level
    of_name, distinct_names = factorize(names)
    in_name = distinct_names.str.extract(_TEST_CASE)[of_name]
    return pl.DataFrame(
        {
            "file": heads["file"],
            "line": heads["line"],
            "dialogue": names,
            "experiment_level": level,
            "test_case": _or_else(_or_else(heads["test_case"], in_name), names),
        }
    )


def _or_else(values: pl.Series, others: pl.Series) -> pl.Series:
    """Return values, and others where they are null."""
    if not values.null_count():
        return values
    return values.zip_with(values.is_not_null(), others)
