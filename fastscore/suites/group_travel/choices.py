"""What itineraries chose for slots, and the places of their days: texts that are compared."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.columns import list_column
from fastscore.suites.group_travel.catalogue import Catalogue
from fastscore.suites.group_travel.grounding import PLACE_SLOTS, GroundedPlaces
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.plans import Plans
from fastscore.suites.grouping import group_rows, take

PLACE_SLOT_NUMBER = {slot: number for number, slot in enumerate(PLACE_SLOTS)}


def choices_of(
    itineraries: pl.DataFrame,
    plans: Plans,
    catalogue: Catalogue,
    grounded: GroundedPlaces,
    choices: pl.DataFrame,
    options: GroupTravel,
) -> dict[str, pl.DataFrame]:
    """Return what itineraries chose for slots.

    All frames have ``choice``. ``choice_places``: ``text``, a place's record or, where it has
    none, its name. ``choice_texts``: all that lexical evidence may stand in. ``choice_targets``:
    what M12 compares, in one text or in parts. ``choice_rooms`` and ``choice_components``: room
    types of the records, and the parts of their categories.
    """
    itinerary = choices["itinerary"].to_numpy()
    slot = choices["slot"].replace_strict(PLACE_SLOT_NUMBER, return_dtype=pl.Int64).to_numpy()
    plan = itineraries["plan"].to_numpy()[itinerary]
    of_slot = itinerary * len(PLACE_SLOTS) + slot
    rows, offsets = take(grounded.slot_places, of_slot)
    choice = np.repeat(np.arange(len(of_slot)), np.diff(offsets))
    record, offsets = take(grounded.name_records, rows)
    is_bare = np.diff(offsets) == 0
    of_record = np.repeat(choice, np.diff(offsets))
    records = catalogue.records.select("text", "room", "components")[record]
    names = _texts_by_owner("choice", choice, grounded.names.gather(rows))
    described = _texts_by_owner("choice", of_record, records["text"])
    raw = plans.plans["raw_output"].gather(plan)
    rooms = _texts_by_owner("choice", of_record, records["room"]).rename({"text": "room"})
    parts = records["components"]
    components = pl.DataFrame(
        {
            "choice": np.repeat(of_record, parts.list.len().to_numpy()),
            "component": parts.explode(empty_as_null=False),
        }
    )
    return {
        "choice_places": pl.concat([described, names.filter(pl.Series(is_bare))]),
        "choice_texts": pl.concat(
            [names, described, _texts_by_owner("choice", np.arange(len(raw)), raw)]
        ),
        "choice_targets": _targets(_slot_texts(plans, plan, slot), raw, options),
        "choice_rooms": rooms.drop_nulls(),
        "choice_components": components,
    }


def _targets(entered: pl.Series, raw: pl.Series, options: GroupTravel) -> pl.DataFrame:
    """Return what M12 compares, by choice: the plan's entries and its raw output.

    Read in windows they are two texts, as the raw output is that of every slot; blank ones are
    left out.
    """
    choice = np.arange(len(entered))
    parts = [entered] if options.m12_target == "slot" else [entered, raw]
    if options.m12_long == "windows":
        targets = pl.concat([_texts_by_owner("choice", choice, part) for part in parts])
        return targets.filter(pl.col("text").str.strip_chars() != "")
    is_said = pl.Series(np.zeros(len(entered), np.bool_))
    for part in parts:
        is_said |= part.str.strip_chars() != ""
    joined = entered if len(parts) == 1 else entered + "\n" + raw
    return _texts_by_owner("choice", choice, joined).filter(is_said)


def _slot_texts(plans: Plans, plan: Indices, slot: Indices) -> pl.Series:
    """Return what plans enter for slots, in one text."""
    of_slot = (
        plans.entries["slot"].replace_strict(PLACE_SLOT_NUMBER, return_dtype=pl.Int64).to_numpy()
    )
    entered = plans.entries["plan"].to_numpy() * len(PLACE_SLOTS) + of_slot
    rows, offsets = group_rows(entered, plans.plans.height * len(PLACE_SLOTS))
    texts = list_column(plans.entries["text"].gather(rows), offsets).list.join("; ")
    return texts.gather(plan * len(PLACE_SLOTS) + slot)


def places_of(
    itineraries: pl.DataFrame,
    plans: Plans,
    catalogue: Catalogue,
    catalogue_cells: pl.DataFrame,
    grounded: GroundedPlaces,
) -> dict[str, pl.DataFrame]:
    """Return the places of itineraries, their records' texts, and the checks of their days."""
    filled = catalogue.records.select("cell").unique()
    has_records = catalogue_cells.join(filled, on="cell").select("catalogue").unique()
    checks = (
        itineraries.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("itinerary"))
        .join(plans.checks, on="plan", how="left", maintain_order="left")
        .with_columns(
            pl.col("catalogue").is_in(has_records["catalogue"].implode()).alias("has_catalogue")
        )
    )
    record, offsets = grounded.place_records
    of_place = np.repeat(np.arange(grounded.places.height), np.diff(offsets))
    texts = _texts_by_owner("place_row", of_place, catalogue.records["text"].gather(record))
    return {
        "places": grounded.places,
        "place_texts": texts,
        "itineraries": checks.select("itinerary", "passed", "checks", "has_catalogue"),
    }


def _texts_by_owner(name: str, owners: Indices, texts: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({name: owners, "text": texts})
