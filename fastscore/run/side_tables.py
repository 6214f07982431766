"""What shards leave beside the tables of their suite: texts that were cut, words unknown to it."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from fastscore.run.layout import CUT_TEXTS, UNKNOWN_WORDS, part_name
from fastscore.run.missing import UNKNOWN_SCHEMA
from fastscore.run.receipts import Receipt


def count_cut_texts(folder: Path, receipts: Sequence[Receipt]) -> int:
    """Count the distinct texts of a run of which the model took the beginning only."""
    if not receipts:
        return 0
    parts = [folder / CUT_TEXTS / part_name(receipt.index) for receipt in receipts]
    ids = pl.scan_parquet(parts, glob=False).select("id_high", "id_low")
    return int(ids.unique().select(pl.len()).collect().item())


def scan_unknown_words(folder: Path, receipts: Sequence[Receipt]) -> pl.LazyFrame:
    """Scan the words that the suite does not know, which few shards have."""
    parts = [
        folder / output.path
        for receipt in receipts
        for output in receipt.outputs
        if output.path.startswith(f"{UNKNOWN_WORDS}/")
    ]
    return pl.scan_parquet(parts, glob=False) if parts else pl.LazyFrame(schema=UNKNOWN_SCHEMA)
