"""What the system made of each slot's preferences: conflict, strategy and explanation."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, OBJECT

from fastscore.suites.columns import gather_or_null
from fastscore.suites.group_travel.cell_trees import NO_NODE, CellTrees, read_trees
from fastscore.suites.group_travel.cells import is_present
from fastscore.suites.group_travel.faults import faults, warnings_of
from fastscore.suites.group_travel.terms import NULLS, SYNTHESIZE
from fastscore.suites.group_travel.turns import Turns, canonical_slot, cells_of_turns

_FIELDS = (
    "has_conflict",
    "conflict_description",
    "resolution_strategy",
    "resolution_explanation",
    "strategy_id",
    "operator",
    "updated_resolution_explanation",
    "final_revised_decision",
)
_STATE_KEYS = ("slot_decision_state", "synthesis", "slot_decisions")
_TEXTS = ("conflict_description", "resolution_strategy", "strategy_id", "resolution_explanation")
_READ = ("is_object", "has_conflict", "description", "strategy", "explanation")


def read_objects(trees: CellTrees, nodes: Indices) -> pl.DataFrame:
    """Read the fields of objects that have at least one that is known; null where none is meant.

    ``fault`` names a field that should be a text and is an array or object.
    """
    found = trees.members(nodes, _FIELDS)
    strategies = (
        _texts_or_null(trees, found[key]) for key in ("resolution_strategy", "strategy_id")
    )
    return pl.DataFrame(
        {
            "is_object": _is_known(found),
            "has_conflict": trees.booleans(found["has_conflict"]),
            "description": trees.scalars(found["conflict_description"]),
            "strategy": pl.select(pl.coalesce(*strategies)).to_series(),
            "explanation": _texts_or_null(trees, found["resolution_explanation"]),
            "fault": faults(
                len(nodes),
                *(
                    (
                        np.isin(trees.tags[found[field]], (ARRAY, OBJECT)),
                        f"{field} is no text; ignored",
                    )
                    for field in _TEXTS
                ),
            ),
        }
    )


def _is_known(found: Mapping[str, Indices]) -> Mask:
    known: Mask = np.any([nodes != NO_NODE for nodes in found.values()], axis=0)
    return known


def _texts_or_null(trees: CellTrees, nodes: Indices) -> pl.Series:
    """Return texts, null for those that stand for nothing."""
    said = trees.scalars(nodes)
    return said.set(said.str.strip_chars().str.to_lowercase().is_in(NULLS).fill_null(True), None)


def read_metadata_objects(cells: pl.Series) -> pl.DataFrame:
    """Read the metadata of synthesis turns: flat, or under the key synthesis."""
    codes, trees = read_trees(cells)
    is_flat = _is_known(trees.members(trees.roots, _FIELDS))
    nested = trees.members(trees.roots, ("synthesis",))["synthesis"]
    read = read_objects(trees, np.where(is_flat, trees.roots, nested))
    return read.with_columns(pl.coalesce(_no_object(trees), "fault").alias("fault"))[codes]


def _no_object(trees: CellTrees) -> pl.Series:
    return faults(len(trees.roots), (~trees.holds_object, "no object; ignored"))


def read_states(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read what running states say of each slot.

    Returns
    -------
    tuple
        The number of each cell's ``state`` and its ``cell_fault``; and by ``state`` and ``slot``,
        which are distinct, the fields of `read_objects`.
    """
    codes, trees = read_trees(cells)
    by_key = trees.members(trees.roots, _STATE_KEYS)
    slot_of_key = pl.Series([canonical_slot(key) for key in trees.keys], dtype=pl.String)
    states, nodes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for key in _STATE_KEYS:
        of_slots = np.where(trees.tags[by_key[key]] == OBJECT, by_key[key], NO_NODE)
        below, state = trees.below(of_slots)
        states.append(state)
        nodes.append(below)
    found = np.concatenate(nodes)
    read = read_objects(trees, found).with_columns(
        pl.Series("state", np.concatenate(states)),
        slot_of_key.gather(trees.key[found]).alias("slot"),
    )
    known = read.filter("is_object")
    states_of = pl.DataFrame({"state": codes, "cell_fault": _no_object(trees).gather(codes)})
    return states_of, known.unique(["state", "slot"], keep="first", maintain_order=True)


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
        anything, stands in each of its rows. And warnings of cells that could not be read.
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
        The state that each may be read from, and the line in which it stands.
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
