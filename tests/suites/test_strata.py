"""Cells of labels: against counting row by row."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from fastscore.suites import strata, table_batches
from fastscore.suites.strata import Strata

KEY = ("file", "line")
LABELS = ("level", "kind", "absent")
SCHEMA = {
    "file": pl.String,
    "line": pl.Int64,
    "level": pl.Int64,
    "kind": pl.String,
    "absent": pl.String,
}

FILES, LINES = st.sampled_from(["a", "b", None]), st.integers(0, 3)
DIALOGUES = st.lists(
    st.tuples(
        FILES,
        LINES,
        st.none() | st.integers(0, 20),
        st.sampled_from([None, "", "é", "z", "𝔷", "Z"]),
        st.none(),
    ),
    max_size=12,
)
ROWS = st.lists(st.tuples(FILES, LINES), max_size=20)

Dialogue = tuple[Any, ...]


def count_by_value(
    dialogues: list[Dialogue], rows: list[tuple[Any, ...]]
) -> dict[str, dict[str | None, int]]:
    """Count the rows of each value that a dialogue has, of the first dialogue of a key."""
    first: dict[Any, Dialogue] = {}
    for dialogue in dialogues:
        first.setdefault(dialogue[:2], dialogue)
    expected: dict[str, dict[str | None, int]] = {}
    for place, name in enumerate(LABELS, len(KEY)):
        values = sorted({str(d[place]) for d in first.values() if d[place] is not None})
        counts = Counter(str(first[row][place]) for row in rows if row in first)
        if values:
            expected[name] = {value: counts[value] for value in values}
    return expected


def counted_by_stratum(strata: Strata, rows: pl.DataFrame) -> dict[str, dict[str | None, int]]:
    n_rows = np.bincount(strata.of_rows(rows), minlength=strata.n_strata)
    assert n_rows.size == strata.n_strata
    assert strata.whole.add_counts(n_rows).tolist() == [rows.height]
    return {
        name: dict(zip(group.values, group.add_counts(n_rows).tolist(), strict=True))
        for name, group in strata.groups.items()
    }


@given(dialogues=DIALOGUES, rows=ROWS)
def test_rows_are_counted_by_every_label(
    dialogues: list[Dialogue], rows: list[tuple[Any, ...]]
) -> None:
    table = pl.DataFrame(dialogues, schema=SCHEMA, orient="row")
    strata = Strata.of_dialogues(table, KEY, LABELS)
    frame = pl.DataFrame(rows, schema={name: SCHEMA[name] for name in KEY}, orient="row")
    assert counted_by_stratum(strata, frame) == count_by_value(dialogues, rows)
    for group in strata.groups.values():
        assert list(group.values) == sorted(str(value) for value in group.values)


@settings(max_examples=50)
@given(dialogues=DIALOGUES, rows=ROWS, size=st.integers(1, 4))
def test_cells_do_not_depend_on_batches(
    dialogues: list[Dialogue], rows: list[tuple[Any, ...]], size: int
) -> None:
    table = pl.LazyFrame(dialogues, schema=SCHEMA, orient="row")
    frame = pl.DataFrame(rows, schema={name: SCHEMA[name] for name in KEY}, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "BATCH_ROWS", size)
        strata = Strata.of_dialogues(table, KEY, LABELS)
    assert counted_by_stratum(strata, frame) == count_by_value(dialogues, rows)


@settings(max_examples=50)
@given(dialogues=DIALOGUES, size=st.integers(1, 4))
def test_rows_that_carry_labels_are_counted_by_their_own(
    dialogues: list[Dialogue], size: int
) -> None:
    """Whatever their keys: each row is a dialogue of its own here."""
    own = [("own", line, *dialogue[len(KEY) :]) for line, dialogue in enumerate(dialogues)]
    table = pl.LazyFrame(dialogues, schema=SCHEMA, orient="row")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_batches, "BATCH_ROWS", size)
        strata = Strata.of_labels(table, LABELS)
    expected = count_by_value(own, [dialogue[: len(KEY)] for dialogue in own])
    assert counted_by_stratum(strata, table.collect()) == expected


@settings(max_examples=50)
@given(dialogues=DIALOGUES.filter(bool))
def test_keys_of_one_hash_are_told_apart(dialogues: list[Dialogue]) -> None:
    table = pl.DataFrame(dialogues, schema=SCHEMA, orient="row")
    hash_columns = strata._hash_columns

    def hash_badly(keys: pl.DataFrame, seed: int) -> list[strata.Hashes]:
        mask = np.uint64([0, 1, 2**64 - 1][min(seed, 2)])
        return [column & mask for column in hash_columns(keys, seed)]

    expected = count_by_value(dialogues, [dialogue[:2] for dialogue in dialogues])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strata, "_hash_columns", hash_badly)
        patch.setattr(table_batches, "BATCH_ROWS", 3)
        for rows in (table, table.lazy()):
            found = Strata.of_dialogues(rows, KEY, LABELS)
            assert counted_by_stratum(found, table) == expected
