"""Coffee orders of Taskmaster-4 with planted defects, recovered exactly; CSV as published."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fastscore
from benchmarks.guest_simulation_logs import (
    SAMPLE,
    Conversation,
    make_conversations,
    read_orders,
    write_csv,
    write_shards,
)
from tests.by_keywords import score_by_keywords

COUNT = 200
DATA = Path(os.environ.get("FASTSCORE_TM4", SAMPLE))


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return list(make_conversations(read_orders(DATA), COUNT))


def scored(folder: Path, **options: Any) -> Mapping[str, pl.DataFrame]:
    personas = str(folder.parent / f"{folder.name}-personas.json")
    found = score_by_keywords(folder, "guest_simulation", personas=personas, **options)
    assert found.rejects.is_empty(), found.rejects.to_dicts()
    return found.tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, pl.DataFrame]:
    folder = tmp_path_factory.mktemp("guests") / "logs"
    write_shards(folder, read_orders(DATA), COUNT)
    return scored(folder)


def test_planted_defects_are_recovered_exactly(
    conversations: list[Conversation], tables: Mapping[str, pl.DataFrame]
) -> None:
    defects = 0
    rows = tables["dialogues"].iter_rows(named=True)
    for made, found in zip(conversations, rows, strict=True):
        final, target = made.expected.final, made.expected.target
        assert (found["conversation_id"], found["experiment_level"]) == (made.id, made.level)
        defects += final != target
        if not final:
            # everything was dropped: no order was ever tracked that is not empty
            assert found["ORA_source"] == "text"
            continue
        assert found["n_final_names"] == len(final)
        assert found["n_target_names"] == len(target)
        assert found["n_common_names"] == len(final & target)
        assert found["ORA"] == 2 * len(final & target) / (len(final) + len(target))
        assert (found["ORA"] == 1.0) == (final == target)
    assert 0.3 * COUNT < defects < 0.9 * COUNT


def test_planted_behaviour_is_recovered_exactly(
    conversations: list[Conversation], tables: Mapping[str, pl.DataFrame]
) -> None:
    rows = tables["dialogues"].iter_rows(named=True)
    for made, found in zip(conversations, rows, strict=True):
        states = made.expected.states
        if not states:
            assert found["state_source"] == "heuristic"
            continue
        changes = sum(
            before[part] != after[part]
            for before, after in zip(states, states[1:], strict=False)  # noqa: RUF007
            for part in (1, 2, 3)
        )
        assert (found["n_states"], found["n_transitions"]) == (len(states), changes)
        expected = 1 - made.expected.mismatches / (4 * len(states))
        assert found["PAS"] == pytest.approx(expected, abs=1e-12)


def test_tools_of_every_level_are_recovered(
    conversations: list[Conversation], tables: Mapping[str, pl.DataFrame]
) -> None:
    rows = tables["dialogues"].iter_rows(named=True)
    for made, found in zip(conversations, rows, strict=True):
        guests = sum(row["role"] == "agent" for row in made.rows)
        # an exit has no attributes for a next message
        attributes = (guests - 1) / guests
        index = {1: 0.0, 2: 0.2, 3: 0.5, 4: 0.5 * attributes, 5: (1 + attributes) / 2}
        assert found["DEI"] == pytest.approx(index[made.level], abs=1e-12)


def test_the_order_of_conversations_changes_nothing(
    tmp_path: Path, conversations: list[Conversation], tables: Mapping[str, pl.DataFrame]
) -> None:
    write_shards(tmp_path / "logs", read_orders(DATA), 1)
    rows = [row for made in reversed(conversations) for row in made.rows]
    personas = str(tmp_path / "logs-personas.json")
    frame = pl.DataFrame(rows, infer_schema_length=None)
    found = fastscore.score(frame, fastscore.GuestSimulation(personas=personas)).tables["dialogues"]
    columns = [name for name in found.columns if name not in ("file", "line")]
    assert found.select(columns).reverse().equals(tables["dialogues"].select(columns))


PLACES = ("file", "line", "dialogue", "conversation_id")


def test_csv_files_of_levels_are_read_as_published(
    tmp_path: Path, conversations: list[Conversation], tables: Mapping[str, pl.DataFrame]
) -> None:
    write_csv(tmp_path / "logs", read_orders(DATA), COUNT)
    found = scored(tmp_path / "logs")
    key = ["experiment_level", "test_case", "persona"]
    # a conversation's place differs, and so does the order of files
    columns = [name for name in tables["dialogues"].columns if name not in PLACES]
    assert (
        found["dialogues"]
        .select(columns)
        .sort(key)
        .equals(tables["dialogues"].select(columns).sort(key))
    )
