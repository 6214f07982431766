"""M9 and M15: places of the plan that are real, that were asked for, and that please unasked.

A plan and a catalogue that belong together make an itinerary. Dialogues with equal plans and equal
catalogues share one, and everything about it is found once. A name is looked up once in each
catalogue, whichever itineraries have it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from fastscore.suites.declarations import Formula, NullRule
from fastscore.suites.group_travel.lexicon import KIND_OF_SLOT, SLOT_OF_KIND, normalise
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, reaches
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.suites.group_travel.catalogue import Catalogue
    from fastscore.suites.group_travel.plans import Plans

M9 = use.ratio(
    "M9",
    "Plan grounding rate",
    Formula(
        r"\mathrm{M9} = \frac{|G|}{|P|}",
        ("P", "distinct places of the plan, stops included"),
        ("G", "places of P whose name the catalogue has"),
    ),
    null_when=(
        use.NO_PLAN,
        NullRule(~pl.col("has_catalogue"), "missing_input", "the dialogue has no catalogue"),
        NullRule(pl.col("M9_den") == 0, "missing_input", "the plan names no place"),
    ),
    evidence=(EvidenceRows(table="places", names=("place",), columns=("grounded",)),),
    reading="The share of places that exist. Names are compared in normal form, never roughly.",
    example="15 places, all of them in the catalogue: 15 / 15 = 1.",
    note="The 45 published plans of TravelPlanner have 943 of 946 places.",
    uses=(use.PLAN, use.CATALOGUE),
)
M15 = use.ratio(
    "M15",
    "Serendipity score",
    Formula(
        r"\mathrm{M15} = \frac{|\{g \in G \setminus N \mid m_g \ge \theta\}|}{|G|}",
        ("G", "places of the plan that the catalogue has"),
        ("N", "places of G whose name is part of a preference"),
        (r"m_g", "greatest similarity of a record of place g and a preference of the dialogue"),
        (r"\theta", "threshold `--serendipity-sim`, 0.30"),
    ),
    null_when=(
        use.UNKNOWN_PREFERENCE,
        use.NO_PLAN,
        NullRule(pl.col("M15_den") == 0, "missing_input", "no place is in the catalogue"),
        use.NO_PREFERENCE,
        use.NO_EMBEDDER,
    ),
    evidence=(
        EvidenceRows(
            table="places",
            names=("place",),
            columns=("grounded", "explicit", "similarity", "serendipitous"),
            where=pl.col("grounded"),
        ),
    ),
    reading="The share of real places that no preference names and that are near one.",
    example="12 places, 2 of them named, 8 of the other 10 near a preference: 8 / 12 = 0.667.",
    note=(
        "A name is part of a preference if its words follow each other there. A single word "
        "of fewer than three letters never is."
    ),
    uses=(use.PREFERENCES, use.PLAN, use.CATALOGUE, use.EMBEDDER),
)
METRICS = (M9, M15)

_SHORTEST_NAME = 3


@dataclass(frozen=True, slots=True)
class GroundedPlaces:
    """The places of itineraries, looked up in their catalogues."""

    # a row a distinct place of an itinerary: `itinerary`, `place` (its name as it is first), `key`,
    # `is_grounded`
    places: pl.DataFrame
    place_texts: pl.DataFrame  # the texts of the records of each place: `place_row`, `text`
    slot_names: pl.DataFrame  # a row a name for a slot of an itinerary: `itinerary`, `slot`, `name`
    # its records: `itinerary`, `slot`, `name`, `text`, `room`, `components`
    slot_records: pl.DataFrame


def ground_places(
    itineraries: pl.DataFrame, plans: "Plans", catalogue: "Catalogue", cells: pl.DataFrame
) -> GroundedPlaces:
    """Look the places of itineraries up in their catalogues.

    An itinerary is a ``plan`` with a ``catalogue``; ``cells`` are those of catalogues. A name for
    a slot is looked up in the slot's kind of catalogue before any other.
    """
    slot = pl.col("kind").cast(pl.String).replace_strict(SLOT_OF_KIND, default=None)
    names = plans.names.select("plan", "name", slot=slot).unique(maintain_order=True)
    named = itineraries.join(names, on="plan", maintain_order="left_right").drop("plan")
    forms = name_forms(names["name"].unique(maintain_order=True))
    records = cells.join(catalogue.records, on="cell").with_columns(pl.col("kind").cast(pl.String))

    found = _find(named.select("catalogue", "name"), forms, records)
    places = (
        named.join(found, on=["catalogue", "name"], maintain_order="left")
        .unique(["itinerary", "key"], keep="first", maintain_order=True)
        .with_columns(place_row=pl.int_range(pl.len()))
    )
    place_texts = places.filter("is_grounded").join(
        records, on=["catalogue", "key"], maintain_order="left_right"
    )

    for_slots = named.drop_nulls("slot").with_columns(
        kind=pl.col("slot").replace_strict(KIND_OF_SLOT, return_dtype=pl.String)
    )
    in_kind = _find(for_slots.select("catalogue", "kind", "name"), forms, records)
    of_slots = for_slots.join(in_kind, on=["catalogue", "kind", "name"], maintain_order="left")
    elsewhere = of_slots.filter(~pl.col("is_grounded")).drop("key", "is_grounded")
    elsewhere = elsewhere.join(found, on=["catalogue", "name"], maintain_order="left")
    slot_records = [
        of_slots.join(records, on=["catalogue", "kind", "key"], maintain_order="left_right"),
        elsewhere.join(records, on=["catalogue", "key"], maintain_order="left_right"),
    ]
    columns = ["itinerary", "slot", "name", "text", "room", "components"]
    return GroundedPlaces(
        places.select("itinerary", "key", "is_grounded", place="name"),
        place_texts.select("place_row", "text"),
        of_slots.select("itinerary", "slot", "name"),
        pl.concat(frame.select(columns) for frame in slot_records),
    )


def name_forms(names: pl.Series) -> pl.DataFrame:
    """Return ``name`` and ``key``: the forms of names that catalogues are searched for, in order.

    The whole name, without a part in brackets at its end, up to its last comma; all normalised.
    """
    bare = names.str.extract(r"(?s)^(.*?)\s*\([^()]*\)\s*$")
    first = names.str.extract(r"(?s)^(.*),")
    return pl.concat(
        pl.DataFrame({"name": names, "key": normalise(form)}) for form in (names, bare, first)
    ).filter(pl.col("key") != "")


def _find(names: pl.DataFrame, forms: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Return ``key`` and ``is_grounded`` of names: the first form that a record has, else the last.

    Records are those of the name's ``catalogue``, and of its ``kind`` if names have one.
    """
    on = ["key", *(name for name in names.columns if name != "name")]
    known = records.select(on).unique().with_columns(has_record=True)
    key, has_record = pl.col("key"), pl.col("has_record")
    return (
        names.unique(maintain_order=True)
        .join(forms, on="name", how="left", maintain_order="left_right")
        .join(known, on=on, how="left", maintain_order="left")
        .group_by(names.columns, maintain_order=True)
        .agg(
            key=pl.coalesce(key.filter(has_record).first(), key.last(), pl.lit("")),
            is_grounded=has_record.any(),
        )
    )


def check_itineraries(
    itineraries: pl.DataFrame, plans: "Plans", catalogue: "Catalogue", cells: pl.DataFrame
) -> pl.DataFrame:
    """Return the checks of M16 that the days of itineraries pass, and ``has_catalogue``."""
    filled = cells.join(catalogue.records, on="cell", how="semi")["catalogue"].unique()
    return itineraries.join(plans.checks, on="plan", how="left", maintain_order="left").select(
        "itinerary",
        M16_num="passed",
        M16_den="checks",
        has_catalogue=pl.col("catalogue").is_in(filled.implode()),
    )


def score_places(
    frames: dict[str, pl.DataFrame], similarity: Similarity, options: GroupTravel
) -> pl.DataFrame:
    """Score the places of each dialogue's plan."""
    numbered = frames["places"].with_columns(place_row=pl.int_range(pl.len()))
    places = (
        frames["dialogues"]
        .select("dialogue_row", "itinerary")
        .join(numbered, on="itinerary", maintain_order="left_right")
        .with_columns(row=pl.int_range(pl.len()))
    )
    # each text of a place's record asks for itself; the nearest of them counts
    records = frames["place_texts"].with_columns(vector=similarity.vectors["place_texts"])
    asking = places.join(records, on="place_row", maintain_order="left_right")
    nearest = asking.select(
        "row",
        similarity=similarity.nearest(
            asking["vector"], asking["dialogue_row"], "pairs", frames["pairs"]["dialogue_row"]
        ),
    )
    found = places.join(
        nearest.group_by("row").agg(pl.col("similarity").max()),
        on="row",
        how="left",
        maintain_order="left",
    ).join(_said_words(frames["pairs"]), on="dialogue_row", how="left", maintain_order="left")
    key, is_near = pl.col("key"), reaches(found["similarity"], options.serendipity_sim)
    is_long_enough = key.str.contains(" ", literal=True) | (key.str.len_chars() >= _SHORTEST_NAME)
    is_named = pl.col("said").str.contains(pl.format(" {} ", key), literal=True)
    explicit = (is_long_enough & is_named).fill_null(False)
    return found.select(
        "dialogue_row",
        "place",
        "key",
        grounded="is_grounded",
        explicit=pl.when("is_grounded").then(explicit),
        similarity="similarity",
        serendipitous=pl.when(pl.col("similarity").is_not_null()).then(~explicit & is_near),
    )


def _said_words(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return all preferences of each dialogue, normalised, with spaces around each word."""
    words = pairs.select("dialogue_row", said=normalise(pairs["preference"]))
    return words.group_by("dialogue_row").agg(pl.format(" {} ", "said").str.join("\n"))


def count_places(places: pl.DataFrame) -> pl.DataFrame:
    """Count the numerators and denominators of M9 and M15 in each dialogue."""
    return places.group_by("dialogue_row").agg(
        M9_num=pl.col("grounded").sum(),
        M9_den=pl.len(),
        M15_num=pl.col("serendipitous").sum(),
        M15_den=pl.col("grounded").sum(),
    )
