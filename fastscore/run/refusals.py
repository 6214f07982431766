"""Errors of a run of which nothing, or too little, was scored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import InputError, counted
from fastscore.logs.integrity.encodings import suggest_conversion
from fastscore.run.commit import REJECTS, part_name
from fastscore.run.config import RunConfig
from fastscore.run.manifest import Manifest
from fastscore.suites.declarations import PAIRED_TURNS, PARTIAL_REJECTS, UNPAIRED_TURNS

MOST_UNPAIRED = 0.1
"""The share of messages that may pair with nothing, beside one for each dialogue."""


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


def describe_reject(reject: Mapping[str, Any]) -> str:
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


def refusal(config: RunConfig, manifest: Manifest) -> InputError | None:
    """Make the error of a run that counts as refused, None of any other.

    Parameters
    ----------
    config
        What was asked for.
    manifest
        The run's manifest, complete.
    """
    counts = manifest.counts
    rejects = counts.get("rejects", 0) - counts.get(PARTIAL_REJECTS, 0)
    lines = counts.get("lines", 0) - counts.get("blank", 0)
    where = _first_reject(config.output, manifest) if counts.get("rejects") else None
    finest = next(iter(manifest.tables))
    if not manifest.tables[finest]["rows"]:
        return no_row_error(finest, counts, manifest.notes, _named_inputs(manifest), where)
    if manifest.all_null:
        return nothing_error(manifest.suite, manifest.lacking)
    if config.strict and manifest.lacking:
        return strict_error(manifest.lacking)
    if rejects > config.max_rejects * max(lines, 1):
        return InputError(
            f"{rejects:,} of {counted(lines, 'lines')} "
            f"{'is a reject' if rejects == 1 else 'are rejects'}, more than --max-rejects "
            f"{config.max_rejects:g} allows; the others are scored.",
            where,
        )
    return _unpaired_error(counts, manifest.options)


def _unpaired_error(counts: Mapping[str, int], options: Mapping[str, Any]) -> InputError | None:
    """Make the error of logs many of whose messages pair with nothing; None of others.

    The last request of each dialogue may have no reply.
    """
    unpaired, pairs = counts.get(UNPAIRED_TURNS, 0), counts.get(PAIRED_TURNS, 0)
    messages = 2 * pairs + unpaired
    if unpaired - counts.get("dialogues", 0) <= MOST_UNPAIRED * messages:
        return None
    merged = options.get("merge_speakers")
    return InputError(
        f"{unpaired:,} of {counted(messages, 'messages')} pair with nothing, more than "
        f"{MOST_UNPAIRED:.0%} and one for each dialogue; the others are scored.",
        "Look at the speakers in the rejects: words may need --value."
        if merged
        else "Type --merge-speakers to join messages of one speaker that follow each other.",
    )


def _named_inputs(manifest: Manifest) -> str:
    first, *others = (entry["name"] for entry in manifest.inputs)
    return f"{first} and {counted(len(others), 'more files')}" if others else str(first)


def _first_reject(run: Path, manifest: Manifest) -> str:
    parts = [run / REJECTS / part_name(index) for index in range(manifest.shards)]
    rejects = pl.scan_parquet(parts, glob=False)
    first = rejects.head(1).collect().row(0, named=True)
    encoded = rejects.filter(pl.col("reason") == "not_utf8").head(1).collect()
    advice = [
        suggest_conversion(str(row["file"]), row["byte_offset"] or 0) for row in encoded.to_dicts()
    ]
    return f"{describe_reject(first)}; all are listed in {run / REJECTS}." + "".join(advice)
