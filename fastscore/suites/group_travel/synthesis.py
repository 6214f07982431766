"""What the system made of each slot's preferences: conflict, strategy and explanation."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from fastscore.suites.group_travel.cells import as_text, is_present, read_distinct, truth
from fastscore.suites.group_travel.schema import NULLS
from fastscore.suites.group_travel.turns import SYNTHESIZE, canonical_slot

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
_SCHEMA = {
    "is_object": pl.Boolean,
    "has_conflict": pl.Boolean,
    "description": pl.String,
    "strategy": pl.String,
    "explanation": pl.String,
}


class SynthesisObject(NamedTuple):
    """The fields of one synthesis; None where they do not stand there or mean nothing."""

    is_object: bool = False
    has_conflict: bool | None = None
    description: str | None = None
    strategy: str | None = None
    explanation: str | None = None


_NOTHING = SynthesisObject()


def meant(value: object) -> str | None:
    """Return a text that is not one of those that stand for nothing."""
    text = as_text(value)
    return None if text is None or text.strip().casefold() in NULLS else text


def read_object(value: Any) -> SynthesisObject:
    """Read an object that has at least one known field."""
    if not isinstance(value, dict) or not any(field in value for field in _FIELDS):
        return _NOTHING
    strategies = (meant(value.get(key)) for key in ("resolution_strategy", "strategy_id"))
    return SynthesisObject(
        True,
        truth(value.get("has_conflict")),
        as_text(value.get("conflict_description")),
        next((strategy for strategy in strategies if strategy is not None), None),
        meant(value.get("resolution_explanation")),
    )


def read_metadata_object(value: Any) -> SynthesisObject:
    """Read the metadata of a synthesis turn: flat, or under the key synthesis."""
    found = read_object(value)
    if not found.is_object and isinstance(value, dict):
        return read_object(value.get("synthesis"))
    return found


def read_state(value: Any) -> Mapping[str, SynthesisObject]:
    """Read what a running state says of each slot."""
    found: dict[str, SynthesisObject] = {}
    for key in _STATE_KEYS:
        slots = value.get(key) if isinstance(value, dict) else None
        for slot, content in slots.items() if isinstance(slots, dict) else ():
            read = read_object(content)
            if read.is_object:
                found.setdefault(canonical_slot(str(slot)), read)
    return found


def read_synthesis(turns: pl.DataFrame) -> pl.DataFrame:
    """Read the synthesis of each slot.

    Parameters
    ----------
    turns
        `turns.Turns.turns`.

    Returns
    -------
    pl.DataFrame
        A row a synthesis turn, in order: ``dialogue_row``, ``slot``, ``utterance``,
        ``has_conflict`` (null where nothing says so), ``description``, ``explanation`` and
        ``has_strategy``. A slot's last state, where no turn of it says anything, stands in each
        of its rows.
    """
    rows = turns.filter(pl.col("kind") == SYNTHESIZE).select(
        "dialogue_row", "line", "slot", "utterance", "metadata", "constraint_state"
    )
    codes, objects = read_distinct(rows["metadata"].fill_null(""), read_metadata_object)
    read = pl.DataFrame(objects, schema=_SCHEMA, orient="row")[codes]
    rows = _fill(pl.concat([rows, read], how="horizontal"), rows["constraint_state"])
    silent = ~pl.col("is_object").any().over("dialogue_row", "slot")
    rows = rows.with_columns(silent.alias("is_silent"))
    if rows["is_silent"].any():
        dialogues = rows.filter("is_silent")["dialogue_row"].unique()
        states = turns.filter(pl.col("dialogue_row").is_in(dialogues.implode()))
        last = (
            states.filter(is_present(states["constraint_state"]))
            .group_by("dialogue_row")
            .agg(pl.col("constraint_state").last().alias("last_state"))
        )
        joined = rows.join(last, on="dialogue_row", how="left", maintain_order="left")
        state = joined.select(pl.when("is_silent").then("last_state")).to_series()
        rows = _fill(joined, state)
    return rows.select(
        *("dialogue_row", "line", "slot", "utterance", "has_conflict", "description"),
        "explanation",
        pl.col("strategy").is_not_null().any().over("dialogue_row", "slot").alias("has_strategy"),
    )


def _fill(rows: pl.DataFrame, states: pl.Series) -> pl.DataFrame:
    """Read rows without an object from the states, by their slot."""
    lacking = (~rows["is_object"] & states.is_not_null()).fill_null(False)
    if not lacking.any():
        return rows
    codes, values = read_distinct(states.filter(lacking), read_state)
    known = [
        {"state": code, "slot": slot, **content._asdict()}
        for code, slots in enumerate(values)
        for slot, content in slots.items()
    ]
    schema = {"state": pl.Int64, "slot": pl.String, **_SCHEMA}
    of_state = pl.DataFrame(known, schema=schema)
    wanted = rows.filter(lacking).select("slot").with_columns(pl.Series("state", codes))
    found = wanted.join(of_state, on=["state", "slot"], how="left", maintain_order="left")
    found = found.with_columns(pl.col("is_object").fill_null(False))
    places = lacking.arg_true()
    return rows.with_columns(rows[name].scatter(places, found[name]) for name in _SCHEMA)
