"""Reading a judge's file beside a run: rows by declared columns, and what could not be read."""

import tempfile
from pathlib import Path

import polars as pl

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Source


def read_judgements(file: str | Path, source: Source) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a judge's file.

    Parameters
    ----------
    file
        JSON Lines, JSON, CSV or Parquet, plain or compressed.
    source
        Its columns.

    Returns
    -------
    tuple of pl.DataFrame
        The rows, and the rejects in the schema of `REJECT_SCHEMA`.

    Raises
    ------
    InputError
        The file is not there or cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        files = resolve_inputs([file], source.formats)
        plan = plan_shards(files, source, scratch=Path(scratch))
        parts = [read_shard(shard, source) for shard in plan.shards]
    rows = pl.concat([part.frame for part in parts])
    return rows, pl.concat([part.rejects for part in parts])
