"""What the system made of each slot's preferences: conflict, strategy and explanation."""

from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.columns import gather_or_null
from fastscore.suites.group_travel.cells import (
    as_flag,
    as_object,
    as_text,
    frame_of,
    is_present,
    parse_cell,
    warnings_of,
)
from fastscore.suites.group_travel.terms import NULLS, SYNTHESIZE
from fastscore.suites.group_travel.turns import Turns, canonical_slot, cells_of_turns
from fastscore.suites.grouping import factorize

_FIELDS = frozenset(
    (
        "has_conflict",
        "conflict_description",
        "resolution_strategy",
        "resolution_explanation",
        "strategy_id",
        "operator",
        "updated_resolution_explanation",
        "final_revised_decision",
    )
)
_STATE_KEYS = ("slot_decision_state", "synthesis", "slot_decisions")
_TEXTS = ("conflict_description", "resolution_strategy", "strategy_id", "resolution_explanation")
_SCHEMA = pl.Schema(
    {
        "is_object": pl.Boolean,
        "has_conflict": pl.Boolean,
        **dict.fromkeys(("description", "strategy", "explanation", "fault"), pl.String),
    }
)
_READ = ("is_object", "has_conflict", "description", "strategy", "explanation")


def _read_object(value: Any) -> tuple[Any, ...]:
    """Read the fields of an object that has at least one that is known; see `_SCHEMA`.

    ``fault`` names a field that should be a text and is an array or object.
    """
    found = as_object(value)
    fault = next((name for name in _TEXTS if isinstance(found.get(name), list | dict)), None)
    return (
        _is_known(found),
        as_flag(found.get("has_conflict")),
        as_text(found.get("conflict_description")),
        _text_or_null(found.get("resolution_strategy")) or _text_or_null(found.get("strategy_id")),
        _text_or_null(found.get("resolution_explanation")),
        fault and f"{fault} is no text; ignored",
    )


def _is_known(value: dict[str, Any]) -> bool:
    return not _FIELDS.isdisjoint(value)


def _text_or_null(value: Any) -> str | None:
    """Return a scalar as text, None if it is a placeholder."""
    text = as_text(value)
    return None if text is None or text.strip().lower() in NULLS else text


def _unread(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict) else "no object; ignored"


def read_metadata_objects(cells: pl.Series) -> pl.DataFrame:
    """Read the metadata of synthesis turns: flat, or under the key synthesis."""
    codes, found = factorize(cells)
    rows = []
    for value in map(parse_cell, found):
        members = as_object(value)
        *fields, fault = _read_object(value if _is_known(members) else members.get("synthesis"))
        rows.append((*fields, _unread(value) or fault))
    return frame_of(rows, _SCHEMA)[codes]


def read_states(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read what running states say of each slot.

    Returns
    -------
    tuple
        The number of each cell's ``state`` and its ``cell_fault``; and by ``state`` and ``slot``,
        which are distinct, the fields of `_SCHEMA`.
    """
    codes, found = factorize(cells)
    values = [parse_cell(cell) for cell in found]
    rows = [
        (state, canonical_slot(slot), *_read_object(of_slot))
        for state, value in enumerate(values)
        for key in _STATE_KEYS
        for slot, of_slot in as_object(as_object(value).get(key)).items()
    ]
    schema = pl.Schema({"state": pl.Int64(), "slot": pl.String(), **_SCHEMA})
    read = frame_of(rows, schema).filter("is_object")
    faults = pl.Series("cell_fault", map(_unread, values), dtype=pl.String)
    states_of = pl.DataFrame({"state": codes, "cell_fault": faults.gather(codes)})
    return states_of, read.unique(["state", "slot"], keep="first", maintain_order=True)


def read_synthesis(read: Turns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the synthesis of each slot.

    Parameters
    ----------
    read
        The turns and their cells.

    Returns
    -------
    tuple
        A row a synthesis turn, in order: ``dialogue_row``, ``slot``, ``utterance``,
        ``has_utterance``, ``has_conflict`` (null where nothing says so), ``description``,
        ``explanation`` and ``has_strategy``. A slot's last state, where no turn of it says
        anything, is in each of its rows. And warnings of cells that could not be read.
    """
    turn = np.flatnonzero((read.turns["kind"] == SYNTHESIZE).fill_null(False).to_numpy())
    rows = read.turns.select("dialogue_row", "line", "slot", "utterance", "has_utterance")[turn]
    metadata = cells_of_turns(read.cells["metadata"], turn).fill_null("")
    rows = pl.concat([rows, read_metadata_objects(metadata)], how="horizontal")
    warnings = [warnings_of(rows, pl.lit("metadata"))]
    states = read.cells["constraint_state"]
    rows, of_states = _fill(rows, rows["line"], cells_of_turns(states, turn))
    warnings.append(of_states)
    silent = ~pl.col("is_object").any().over("dialogue_row", "slot")
    rows = rows.with_columns(silent.alias("is_silent"))
    if rows["is_silent"].any():
        last = _last_states(read, rows.filter("is_silent")["dialogue_row"].to_numpy())
        turn = np.where(rows["is_silent"].to_numpy(), last[rows["dialogue_row"].to_numpy()], -1)
        lines = gather_or_null(read.turns["line"], turn)
        rows, of_states = _fill(rows, lines, cells_of_turns(states, turn))
        warnings.append(of_states)
    read_rows = rows.select(
        *("dialogue_row", "line", "slot", "utterance", "has_utterance"),
        *("has_conflict", "description", "explanation"),
        pl.col("strategy").is_not_null().any().over("dialogue_row", "slot").alias("has_strategy"),
    )
    return read_rows, pl.concat(warnings)


def _last_states(read: Turns, dialogues: Indices) -> Indices:
    """Return the turn of the last state that holds anything of some dialogues, -1 for none."""
    of_turn = read.turns["dialogue_row"].to_numpy()
    asked = np.zeros(read.dialogues.height, np.bool_)
    asked[dialogues] = True
    turn = read.cells["constraint_state"]["turn"].to_numpy()
    rows = np.flatnonzero(asked[of_turn[turn]])
    rows = rows[is_present(read.cells["constraint_state"]["cell"].gather(rows)).to_numpy()]
    last = np.full(read.dialogues.height, -1)
    # numpy assigns in order: of several the last stays
    last[of_turn[turn[rows]]] = turn[rows]
    return last


def _fill(
    rows: pl.DataFrame, lines: pl.Series, states: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read rows without an object from the states, by their slot; warn of what is unreadable.

    Parameters
    ----------
    rows
        Turns of synthesis.
    lines, states
        The state that each may be read from, and its line.
    """
    lacking = (~rows["is_object"] & states.is_not_null()).fill_null(False)
    state_of, of_state = read_states(states.filter(lacking))
    wanted = pl.concat(
        [rows.filter(lacking).select("dialogue_row", "slot"), state_of], how="horizontal"
    )
    found = wanted.join(of_state, on=["state", "slot"], how="left", maintain_order="left")
    found = found.with_columns(
        pl.col("is_object").fill_null(False),
        lines.filter(lacking).alias("line"),
        pl.coalesce("cell_fault", "fault").alias("fault"),
    )
    places = lacking.arg_true()
    filled = rows.with_columns(rows[name].scatter(places, found[name]) for name in _READ)
    return filled, warnings_of(found, pl.lit("constraint_state"))
