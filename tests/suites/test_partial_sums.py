"""Summaries of tables that are added up in parts: the bytes of the whole, for any split."""

import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from fastscore import open_run
from fastscore.api.examples import example_names
from fastscore.settings.options import build_options
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Design, Fixed, Scale
from fastscore.suites.summary import Added, add_up_parts, joint_sizes, measure_parts, summarise
from tests.conftest import often
from tests.suites.summaries import suite_of
from tests.suites.test_summary_intervals import BOUNDED, DIALOGUES, LABELS, ROWS, Row, tables

Frames = Mapping[str, pl.LazyFrame]


def as_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def stored(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame as it is read from a file that it was written to."""
    return pl.read_parquet(as_bytes(frame.collect())).lazy()


def summarise_in_parts(
    suite: Suite, whole: Frames, parts: Sequence[Frames], options: Any
) -> pl.DataFrame:
    sizes = joint_sizes([measure_parts(suite, part, options) for part in parts])
    sums = [add_up_parts(suite, part, options, sizes) for part in parts]
    added = [
        {
            name: Added(
                pl.concat([stored(one[number][name].sums) for one in sums]),
                pl.concat([stored(one[number][name].reasons) for one in sums]),
                size,
            )
            for name, size in of_tables.items()
        }
        for number, of_tables in enumerate(sizes)
    ]
    return summarise(suite, whole, options, added=added)


def split(frames: Frames, n_parts: int, seed: int) -> list[dict[str, pl.LazyFrame]]:
    """Split the rows of tables at random: parts may be empty, dialogues in several."""
    rng = random.Random(seed)
    parts: list[dict[str, pl.LazyFrame]] = [{} for _ in range(n_parts)]
    for name, lazy in frames.items():
        frame = lazy.collect()
        of_rows = [rng.randrange(n_parts) for _ in range(frame.height)]
        for number, part in enumerate(parts):
            chosen = [row for row, of_row in enumerate(of_rows) if of_row == number]
            part[name] = frame[chosen].lazy()
    return parts


def rated(labels: Sequence[str] = LABELS, **declared: Any) -> Suite:
    """Return a suite whose rows have one metric with a range and one without.

    It has sums of two columns, values that are fixed, and several scales.
    """
    metrics = [
        replace(BOUNDED, scale=Scale("higher", -1.0), micro=("top", "n")),
        replace(BOUNDED, id="top", scale=Scale("higher", None, None)),
        replace(
            BOUNDED, id="open", scale=Scale("higher", -1.0, by="n"), fixed_where=(Fixed("n", 1),)
        ),
    ]
    return suite_of(metrics, labels, **declared)


@settings(max_examples=often(10, 900), deadline=None)
@given(
    dialogues=DIALOGUES,
    rows=ROWS,
    n_parts=st.integers(1, 5),
    seed=st.integers(0, 99),
    unit=st.sampled_from([("dialogue",), ("level",), ("level", "kind")]),
)
@pytest.mark.parametrize("labels", [LABELS, ("kind",), ()], ids=["joined", "carried", "none"])
def test_any_split_of_rows_gives_the_same_bytes(
    dialogues: list[Row],
    rows: list[Row],
    n_parts: int,
    seed: int,
    labels: Sequence[str],
    unit: Sequence[str],
) -> None:
    whole = tables(dialogues, rows)
    whole["rows"] = whole["rows"].with_columns(
        (pl.col("dialogue") % 3 + 1).alias("n"),
        (pl.col("score") * 2.0**70).alias("top"),
        pl.col("score").alias("open"),
    )
    if labels == ("kind",):
        whole["rows"] = whole["rows"].with_columns(kind=pl.col("file"))
    suite = rated(labels, design=Design(pair=unit))
    expected = summarise(suite, whole, None)
    parts = split(whole, n_parts, seed)
    found = summarise_in_parts(suite, whole, parts, None)
    assert as_bytes(found) == as_bytes(expected)


@pytest.mark.parametrize("name", example_names())
def test_any_split_of_an_example_gives_the_bytes_of_its_summary(
    name: str, example_run: Callable[[str], Path]
) -> None:
    run = open_run(example_run(name))
    options = build_options(run.suite.options, run.manifest.options)
    whole = {table.name: run.lazy_tables[table.name] for table in run.suite.tables}
    found = summarise_in_parts(run.suite, whole, split(whole, 7, 7), options)
    assert as_bytes(found) == as_bytes(pl.read_parquet(run.folder / "summary.parquet"))
