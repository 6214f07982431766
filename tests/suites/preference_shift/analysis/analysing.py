"""Tables of a run of preference_shift for its analysis."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.suites.preference_shift.analysis.tables import Scored, make_scored
from fastscore.suites.preference_shift.options import PreferenceShift
from tests.suites.preference_shift.conversing import score, write_catalogue

Row = dict[str, Any]
ITEMS = [{"name": name} for name in ("ant", "bee", "cat", "dog")]
"""Each name is in one of four items, so all have the same weight."""


def tables_of(logs: Sequence[Row], profile: str = "default") -> dict[str, pl.LazyFrame]:
    """Score logs against the four items."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_catalogue(Path(folder), ITEMS)
        chosen = PreferenceShift(catalogue=path, profile=profile, fields="name")
        return {name: table.lazy() for name, table in score(logs, chosen).items()}


def scored_of(tables: dict[str, pl.LazyFrame], **options: Any) -> Scored:
    return make_scored(
        tables, PreferenceShift(**{"catalogue": "catalogue.jsonl"} | options), "signature"
    )
