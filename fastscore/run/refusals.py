"""Errors of a run of which nothing, or too little, was scored."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastscore.errors import InputError, counted


def no_row_error(
    table: str,
    counts: Mapping[str, int],
    notes: Sequence[str],
    inputs: str,
    rejects: str | None,
) -> InputError:
    """Make the error of a run without a row.

    Parameters
    ----------
    table
        The table that is empty.
    counts
        The run's counts.
    notes
        What else there is to say of its rows.
    inputs
        What was read.
    rejects
        What to say of its rejects.
    """
    lines = counts.get("lines", 0) - counts.get("blank", 0)
    found = ", ".join(counted(value, name) for name, value in counts.items() if value)
    return InputError(
        f"Nothing was scored: there is no row for {table} in {counted(lines, 'lines')} of "
        f"{inputs} ({found or 'nothing was read'})." + "".join(f"\n  {each}" for each in notes),
        rejects,
    )


def told_reject(reject: Mapping[str, Any]) -> str:
    """Tell of a reject, a row of `REJECT_SCHEMA`."""
    field = f", field {reject['field']}" if reject["field"] else ""
    return (
        f"The first: {reject['file']}:{reject['line']}{field}: {reject['reason']} (found "
        f"{reject['found']}, expected {reject['expected']})"
    )


def nothing_error(suite: str, lacking: Sequence[str]) -> InputError:
    """Make the error of a run in which every metric is null."""
    return InputError(
        f"Nothing was scored: every metric of {suite} is null in every row."
        + "".join(f"\n  {each}" for each in lacking),
        "The tables say why, row by row, in null_reasons.",
    )


def strict_error(notes: Sequence[str]) -> InputError:
    """Make the error of ``--strict``."""
    return InputError(
        "Metrics lack a column in every row, and --strict is given; all else is scored.\n  "
        + "\n  ".join(notes),
        "Map the columns, or leave --strict out.",
    )
