"""Which records of the catalogue the places of a plan are.

A plan and a catalogue that belong together make an itinerary; dialogues with equal plans and
equal catalogues share one, and everything about it is found once.
"""

from dataclasses import dataclass

import polars as pl

from fastscore.suites.distinct import distinct
from fastscore.suites.group_travel.catalogue import KIND_DTYPE, Catalogue
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.plan_days import STOP
from fastscore.suites.group_travel.plans import SLOT_OF_KIND, Plans
from fastscore.suites.group_travel.schema import KIND_OF_SLOT

_LAST_RESORT = 100


@dataclass(frozen=True, slots=True)
class Grounded:
    """The places of itineraries.

    Attributes
    ----------
    places
        A row a distinct place of an itinerary: ``itinerary``, ``place`` (its name as it stands
        first), ``key``, ``is_grounded``.
    place_records
        The records of each grounded place: ``place_row``, ``record``.
    slot_places
        The places of an itinerary's slots: ``itinerary``, ``slot``, ``name``, ``record``; a row
        a record, and one with a null where there is none.
    """

    places: pl.DataFrame
    place_records: pl.DataFrame
    slot_places: pl.DataFrame


def ground_places(
    itineraries: pl.DataFrame, plans: Plans, catalogue: Catalogue, cells: pl.DataFrame
) -> Grounded:
    """Look the places of itineraries up.

    Parameters
    ----------
    itineraries
        ``plan`` and ``catalogue``, a row an itinerary.
    plans, catalogue
        What they refer to.
    cells
        The cells of each catalogue: ``catalogue``, ``cell``.

    Returns
    -------
    Grounded
        A name is looked up by its normalised forms: the whole, without a part in brackets at its
        end, up to its last comma. Of a slot's place, all forms are tried in the slot's kind of
        catalogue before any other.
    """
    codes, names = distinct(plans.names["name"])
    candidates = _candidates(names)
    of_plan = plans.names.select(
        "plan",
        pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND).alias("slot"),
        pl.Series("name_row", codes, dtype=pl.Int64),
    ).unique(["plan", "slot", "name_row"], maintain_order=True)
    named = (
        itineraries.with_row_index("itinerary")
        .with_columns(pl.col("itinerary").cast(pl.Int64))
        .join(of_plan, on="plan", maintain_order="left_right")
    )
    hits = _hits(named, candidates, catalogue, cells)
    return Grounded(
        *_distinct_places(named, hits, candidates, names), _slot_places(named, hits, names)
    )


def _candidates(names: pl.Series) -> pl.DataFrame:
    """Return the forms of each name by rank: ``name_row``, ``rank``, ``key``."""
    frame = names.to_frame("name").with_row_index("name_row")
    bare = pl.col("name").str.extract(r"(?s)^(.*?)\s*\([^()]*\)\s*$")
    first = pl.col("name").str.extract(r"(?s)^(.*),")
    forms = frame.select(
        pl.col("name_row").cast(pl.Int64), pl.concat_list("name", bare, first).alias("form")
    ).explode("form")
    forms = forms.with_columns(pl.int_range(pl.len()).over("name_row").alias("rank"))
    forms = forms.drop_nulls("form").with_columns(
        pl.col("form").map_batches(normalise, return_dtype=pl.String).alias("key")
    )
    return forms.filter(pl.col("key") != "").select("name_row", "rank", "key")


def _hits(
    named: pl.DataFrame, candidates: pl.DataFrame, catalogue: Catalogue, cells: pl.DataFrame
) -> pl.DataFrame:
    """Return the records that any form of a name finds, each with the form's rank."""
    codes, _ = distinct(pl.concat([catalogue.records["key"], candidates["key"]]))
    n_records = catalogue.records.height
    records = catalogue.records.select(
        "cell",
        pl.Series("key_code", codes[:n_records], dtype=pl.Int64),
        pl.int_range(pl.len()).alias("record"),
        "kind",
    )
    forms = candidates.select(
        "name_row", "rank", pl.Series("key_code", codes[n_records:], dtype=pl.Int64)
    )
    # few forms are any record's: they go first
    forms = forms.join(records.select("key_code").unique(), on="key_code", how="semi")
    wanted = named.select("itinerary", "catalogue", "name_row").unique(maintain_order=True)
    return (
        wanted.join(forms, on="name_row")
        .join(cells, on="catalogue")
        .join(records, on=["cell", "key_code"])
        .select("itinerary", "name_row", "rank", "kind", "record")
    )


def _distinct_places(
    named: pl.DataFrame, hits: pl.DataFrame, candidates: pl.DataFrame, names: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    found = ["itinerary", "name_row"]
    best = hits.filter(pl.col("rank") == pl.col("rank").min().over(found))
    last = candidates.group_by("name_row").agg(pl.col("rank").max().alias("last_rank"))
    keyed = (
        named.select(found)
        .unique(maintain_order=True)
        .join(best.select(*found, "rank").unique(), on=found, how="left", maintain_order="left")
        .join(last, on="name_row", how="left", maintain_order="left")
        .with_columns(
            pl.col("rank").is_not_null().alias("is_grounded"),
            pl.coalesce("rank", "last_rank").alias("rank"),
        )
        .join(candidates, on=["name_row", "rank"], how="left", maintain_order="left")
    )
    places = keyed.unique(["itinerary", "key"], keep="first", maintain_order=True).select(
        "itinerary",
        pl.lit(names).gather(pl.col("name_row")).alias("place"),
        "key",
        "is_grounded",
    )
    numbered = places.select("itinerary", "key", pl.int_range(pl.len()).alias("place_row"))
    records = (
        best.join(keyed.select(*found, "key"), on=found)
        .join(numbered, on=["itinerary", "key"])
        .select("place_row", "record")
        .unique()
        .sort("place_row", "record")
    )
    return places, records


def _slot_places(named: pl.DataFrame, hits: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    place = ["itinerary", "slot", "name_row"]
    of_slots = named.filter(pl.col("slot") != STOP).select(place)
    own_kind = pl.col("slot").replace_strict(KIND_OF_SLOT, return_dtype=KIND_DTYPE)
    order = pl.col("rank") + pl.when(pl.col("kind") == own_kind).then(0).otherwise(_LAST_RESORT)
    found = of_slots.join(hits, on=["itinerary", "name_row"]).with_columns(order.alias("order"))
    best = found.filter(pl.col("order") == pl.col("order").min().over(place))
    return (
        of_slots.join(
            best.select(*place, "record").unique().sort("record"),
            on=place,
            how="left",
            maintain_order="left_right",
        )
        .with_columns(pl.lit(names).gather(pl.col("name_row")).alias("name"))
        .select("itinerary", "slot", "name", "record")
    )
