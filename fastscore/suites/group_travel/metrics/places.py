"""M9 and M15: places of the plan that are real, that were asked for, and that please unasked.

A plan and a catalogue that belong together make an itinerary. Dialogues with equal plans and equal
catalogues share one, and everything about it is found once. A name is looked up once in each
catalogue, whichever itineraries have it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import fastscore_kernels as kernels
import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.declarations import Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import KIND_OF_SLOT, SLOT_OF_KIND, as_ids, normalise
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, TextCodes, reaches
from fastscore.suites.grouping import group_rows, take
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.suites.group_travel.catalogue import Catalogue
    from fastscore.suites.group_travel.plans import Plans

M9 = Metric(
    id="M9",
    name="Plan grounding rate",
    formula=Formula(
        r"\mathrm{M9} = \frac{|G|}{|P|}",
        ("P", "distinct places of the plan, stops included"),
        ("G", "places of P whose name the catalogue has"),
    ),
    scale=Scale("higher"),
    micro=("M9_num", "M9_den"),
    null_when=(
        use.NO_PLAN,
        NullRule(~pl.col("has_catalogue"), "missing_input", "the dialogue has no catalogue"),
        NullRule(pl.col("M9_den") == 0, "missing_input", "the plan names no place"),
    ),
    evidence=(EvidenceRows(table="places", names=("place",), columns=("grounded",)),),
    reading="The share of places that exist. Names are compared in normal form, never roughly.",
    example="15 places, all of them in the catalogue: 15 / 15 = 1.",
    note="The 45 published plans of TravelPlanner have 943 of 946 places.",
    role="headline",
    uses=(use.PLAN, use.CATALOGUE),
    source="Metric Reference, M9",
)
M15 = Metric(
    id="M15",
    name="Serendipity score",
    formula=Formula(
        r"\mathrm{M15} = \frac{|\{g \in G \setminus N \mid m_g \ge \theta\}|}{|G|}",
        ("G", "places of the plan that the catalogue has"),
        ("N", "places of G whose name is part of a preference"),
        (r"m_g", "greatest similarity of a record of place g and a preference of the dialogue"),
        (r"\theta", "threshold `--serendipity-sim`, 0.30"),
    ),
    scale=Scale("higher"),
    micro=("M15_num", "M15_den"),
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
    role="headline",
    uses=(use.PREFERENCES, use.PLAN, use.CATALOGUE, use.EMBEDDER),
    source="Metric Reference, M15",
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

    Itineraries have ``plan`` and ``catalogue``, the cells of catalogues ``catalogue`` and ``cell``.
    A name for a slot is looked up in the slot's kind of catalogue before any other.
    """
    slot = pl.col("kind").cast(pl.String).replace_strict(SLOT_OF_KIND, default=None)
    names = plans.names.select("plan", "name", slot=slot).unique(maintain_order=True)
    named = (
        itineraries.with_columns(itinerary=pl.int_range(pl.len()))
        .join(names, on="plan", maintain_order="left_right")
        .drop("plan")
    )
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
    """Return ``passed`` and ``checks`` of the days of itineraries, and ``has_catalogue``."""
    filled = cells.join(catalogue.records, on="cell", how="semi")["catalogue"].unique()
    return (
        itineraries.with_columns(itinerary=pl.int_range(pl.len()))
        .join(plans.checks, on="plan", how="left", maintain_order="left")
        .select(
            "itinerary",
            "passed",
            "checks",
            has_catalogue=pl.col("catalogue").is_in(filled.implode()),
        )
    )


def score_places(
    frames: dict[str, pl.DataFrame], texts: TextCodes, similarity: Similarity, options: GroupTravel
) -> pl.DataFrame:
    """Score the places of each dialogue's plan."""
    dialogues, places = frames["dialogues"], frames["places"]
    n_dialogues, n_places = dialogues.height, places.height
    itinerary = dialogues["itinerary"].to_numpy()
    n_itineraries = frames["itineraries"].height
    of_itinerary = group_rows(places["itinerary"].to_numpy(), n_itineraries)
    place_row, offsets = take(of_itinerary, itinerary)
    dialogue_row = np.repeat(np.arange(n_dialogues), np.diff(offsets))
    found = places[place_row].select("place", "key", pl.col("is_grounded").alias("grounded"))

    dialogue_of_pair = frames["pairs"]["dialogue_row"].to_numpy()
    explicit = _is_explicit(texts, place_row, dialogue_row, dialogue_of_pair, n_dialogues)
    explicit &= ~_is_too_short(found)
    # each text of a place's record asks for itself; the nearest of them counts
    record_rows, record_offsets = take(
        group_rows(frames["place_texts"]["place_row"].to_numpy(), n_places), place_row
    )
    of_place = np.repeat(np.arange(len(place_row)), np.diff(record_offsets))
    asking = similarity.rows["place_texts"][record_rows] if similarity.is_on else record_rows
    nearest = similarity.nearest(
        asking,
        similarity.grouped("pairs", frames["pairs"]["dialogue_row"], n_dialogues),
        dialogue_row[of_place],
    )
    best = np.full(len(place_row), -1.0)
    np.fmax.at(best, of_place, nearest)
    is_grounded = found["grounded"].to_numpy()
    compared = is_grounded & (best >= 0.0)
    serendipitous = compared & ~explicit & reaches(best, options.serendipity_sim)
    return found.with_columns(
        pl.Series("explicit", explicit).set(pl.Series(~is_grounded), None),
        pl.Series("similarity", best).set(pl.Series(~compared), None),
        pl.Series("serendipitous", serendipitous).set(pl.Series(~compared), None),
    ).insert_column(0, pl.Series("dialogue_row", dialogue_row))


def _is_explicit(
    texts: TextCodes,
    place_row: Indices,
    dialogue_row: Indices,
    dialogue_of_pair: Indices,
    n_dialogues: int,
) -> Mask:
    """Tell which places a preference of their dialogue names, word by word."""
    from fastscore_kernels.targets import Targets

    ids, offsets = texts.tokens.plain
    # a text of one token that nothing else has is put after each preference: no name crosses it
    end = len(texts.tokens.vocabulary)
    ids = np.append(ids, np.int32(end))
    offsets = np.append(offsets, offsets[-1] + 1)
    rows, bounds = group_rows(dialogue_of_pair, n_dialogues)
    parted = np.empty(2 * len(rows), np.int64)
    parted[0::2], parted[1::2] = texts.codes["pairs"][rows], len(offsets) - 2
    targets = Targets((ids, offsets), (parted, 2 * bounds))
    plain = (texts.tokens.plain[0].astype(np.int64), texts.tokens.plain[1])
    names = take(plain, texts.codes["places"][place_row])
    named: Mask = kernels.find_phrases(as_ids(names), dialogue_row, targets, threads=1)
    return named


def _is_too_short(places: pl.DataFrame) -> Mask:
    """Tell which names are one word of fewer than three letters."""
    key = pl.col("key")
    one_word = ~key.str.contains(" ", literal=True)
    short: Mask = (
        places.select(one_word & (key.str.len_chars() < _SHORTEST_NAME)).to_series().to_numpy()
    )
    return short


def count_places(places: pl.DataFrame, n_dialogues: int) -> pl.DataFrame:
    """Count the numerators and denominators of M9 and M15 in each dialogue."""
    return use.count_in_dialogues(
        places,
        n_dialogues,
        M9_num=pl.col("grounded").sum(),
        M9_den=pl.len(),
        M15_num=pl.col("serendipitous").sum(),
        M15_den=pl.col("grounded").sum(),
    )
