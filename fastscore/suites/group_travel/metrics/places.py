"""M9 and M15: places of the plan that are real, that were asked for, and that please unasked.

A plan and a catalogue that belong together make an itinerary. Dialogues with equal plans and equal
catalogues share one, and everything about it is found once. A name is looked up once in each
catalogue, whichever itineraries have it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import fastscore_kernels as kernels
import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.declarations import NullRule, share
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.normalise import as_ids, normalise
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, TextCodes, reaches
from fastscore.suites.group_travel.terms import (
    CATALOGUES,
    KIND_OF_SLOT,
    PLAN_KINDS,
    SLOT_OF_KIND,
)
from fastscore.suites.grouping import (
    Ragged,
    factorize,
    first_of_each,
    group_rows,
    take,
    take_ranges,
)
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.suites.group_travel.catalogue import Catalogue
    from fastscore.suites.group_travel.plans import Plans

M9 = share(
    id="M9",
    name="Plan grounding rate",
    symbols=(
        ("P", "distinct places of the plan, stops included"),
        ("G", "places of P whose name the catalogue has"),
    ),
    latex=r"\mathrm{M9} = \frac{|G|}{|P|}",
    better="higher",
    numerator="M9_num",
    denominator="M9_den",
    null_when=(
        use.NO_PLAN,
        NullRule(
            when=~pl.col("has_catalogue"),
            reason="missing_input",
            text="the dialogue has no catalogue",
        ),
        NullRule(
            when=pl.col("M9_den") == 0,
            reason="missing_input",
            text="the plan names no place",
        ),
    ),
    evidence=(EvidenceRows(table="places", names=("place",), columns=("grounded",)),),
    reading="The share of places that exist. Names are compared in normal form, never roughly.",
    example="15 places, all of them in the catalogue: 15 / 15 = 1.",
    note="The 45 published plans of TravelPlanner have 943 of 946 places.",
    headline=True,
    uses=(use.PLAN, use.CATALOGUE),
    source="Metric Reference, M9",
)
M15 = share(
    id="M15",
    name="Serendipity score",
    symbols=(
        ("G", "places of the plan that the catalogue has"),
        ("N", "places of G whose name is part of a preference"),
        (
            r"m_g",
            "greatest similarity of a record of place g and a preference of the dialogue",
        ),
        (r"\theta", "threshold `--serendipity-sim`, 0.30"),
    ),
    latex=r"\mathrm{M15} = \frac{|\{g \in G \setminus N \mid m_g \ge \theta\}|}{|G|}",
    better="higher",
    numerator="M15_num",
    denominator="M15_den",
    null_when=(
        use.UNKNOWN_PREFERENCE,
        use.NO_PLAN,
        NullRule(
            when=pl.col("M15_den") == 0,
            reason="missing_input",
            text="no place is in the catalogue",
        ),
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
    headline=True,
    uses=(use.PREFERENCES, use.PLAN, use.CATALOGUE, use.EMBEDDER),
    source="Metric Reference, M15",
)
METRICS = (M9, M15)

PLACE_SLOTS = tuple(KIND_OF_SLOT)
"""The slots that places are chosen for."""
_STOP = len(PLACE_SLOTS)
_SLOT_OF_KIND = np.array(
    [
        PLACE_SLOTS.index(SLOT_OF_KIND[kind]) if kind in SLOT_OF_KIND else _STOP
        for kind in PLAN_KINDS
    ]
)
_OWN_KIND = np.array([CATALOGUES.index(KIND_OF_SLOT[slot]) for slot in PLACE_SLOTS])
_SHORTEST_NAME = 3


@dataclass(frozen=True, slots=True)
class GroundedPlaces:
    """The places of itineraries.

    Attributes
    ----------
    places
        A row a distinct place of an itinerary: ``itinerary``, ``place`` (its name as it is
        first), ``key``, ``is_grounded``.
    place_records
        The records of each place; none of one that is not grounded.
    names
        The name of each place of a slot, String.
    name_records
        Its records.
    slot_places
        Rows of `names` for each slot of each itinerary: those of `PLACE_SLOTS` of the first
        itinerary, then of the second.
    """

    places: pl.DataFrame
    place_records: Ragged
    names: pl.Series
    name_records: Ragged
    slot_places: Ragged


def ground_places(
    itineraries: pl.DataFrame, plans: "Plans", catalogue: "Catalogue", cells: pl.DataFrame
) -> GroundedPlaces:
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
    GroundedPlaces
        A name is looked up by its normalised forms: the whole, without a part in brackets at its
        end, up to its last comma. Of a slot's place, all forms are tried in the slot's kind of
        catalogue before any other.
    """
    codes, names = factorize(plans.names["name"])
    of_plan = plans.names["plan"].to_numpy()
    slots = _SLOT_OF_KIND[plans.names["kind"].to_physical().to_numpy()]
    once = first_of_each((of_plan * (_STOP + 1) + slots) * len(names) + codes)
    rows, offsets = take(
        group_rows(of_plan[once], plans.plans.height), itineraries["plan"].to_numpy()
    )
    itinerary = np.repeat(np.arange(itineraries.height), np.diff(offsets))
    slot, name = slots[once][rows], codes[once][rows]

    catalogues = itineraries["catalogue"].to_numpy()[itinerary]
    asked, lookup = np.unique(catalogues * len(names) + name, return_inverse=True)
    index = _Index.of(names, catalogue, cells)
    in_catalogue, named = np.divmod(asked, max(len(names), 1))
    found = index.find_names(in_catalogue, named)
    firsts = first_of_each(itinerary * len(index.keys) + found.key[lookup])
    places = pl.DataFrame(
        {
            "itinerary": itinerary[firsts],
            "place": names.gather(name[firsts]),
            "key": index.keys.gather(found.key[lookup][firsts]),
            "is_grounded": found.size[lookup][firsts] > 0,
        }
    )
    chosen = np.flatnonzero(slot != _STOP)
    choices, choice = np.unique(lookup[chosen] * _STOP + slot[chosen], return_inverse=True)
    of_lookup, kind = np.divmod(choices, _STOP)
    of_choices = index.find_names(in_catalogue[of_lookup], named[of_lookup], kind)
    return GroundedPlaces(
        places,
        found.records(index, lookup[firsts]),
        names.gather(name[chosen]),
        of_choices.records(index, choice),
        group_rows(itinerary[chosen] * _STOP + slot[chosen], itineraries.height * _STOP),
    )


@dataclass(frozen=True, slots=True)
class _Matches:
    """What lookups found: the number of the place's key, and a range of `_Index.record`."""

    key: Indices
    start: Indices
    size: Indices

    def records(self, index: "_Index", rows: Indices) -> Ragged:
        """Return the records that some of the lookups found."""
        return take_ranges(index.record, self.start[rows], self.size[rows])


@dataclass(frozen=True, slots=True)
class _Index:
    """The records of catalogues by key and kind, and the forms of names.

    Attributes
    ----------
    keys
        Distinct normalised names.
    forms : int64 (3, names)
        By rank the number of the key of each form of a name, -1 for none.
    place : int64 (records of catalogues,)
        Catalogue, key and kind of each as one number, ascending.
    record : int64 (records of catalogues,)
        Which record it is.
    """

    keys: pl.Series
    forms: npt.NDArray[np.int64]
    place: Indices
    record: Indices

    @classmethod
    def of(cls, names: pl.Series, catalogue: "Catalogue", cells: pl.DataFrame) -> "_Index":
        bare = names.str.extract(r"(?s)^(.*?)\s*\([^()]*\)\s*$")
        first = names.str.extract(r"(?s)^(.*),")
        forms = normalise(pl.concat([names.alias("name"), bare.alias("name"), first.alias("name")]))
        records = catalogue.records
        codes, keys = factorize(pl.concat([records["key"], forms.fill_null("").rename("key")]))
        of_names = np.where((forms.fill_null("") == "").to_numpy(), -1, codes[records.height :])
        of_cells = group_rows(records["cell"].to_numpy(), catalogue.cells.height)
        record, offsets = take(of_cells, cells["cell"].to_numpy())
        owner = np.repeat(cells["catalogue"].to_numpy(), np.diff(offsets))
        kind = records["kind"].to_physical().to_numpy().astype(np.int64)
        place = (owner * len(keys) + codes[record]) * len(CATALOGUES) + kind[record]
        order = np.argsort(place, kind="stable")
        return cls(keys, of_names.reshape(3, len(names)), place[order], record[order])

    def find_names(
        self, catalogue: Indices, name: Indices, slot: Indices | None = None
    ) -> _Matches:
        """Look names up in catalogues, in the kind of their slot before any other.

        The first form that is found counts; where none is, the last form is the place's key.
        """
        forms = self.forms[:, name]
        at = (catalogue * len(self.keys) + forms) * len(CATALOGUES)
        tries = [(at, at + len(CATALOGUES))]
        if slot is not None:
            own = at + _OWN_KIND[slot]
            tries.insert(0, (own, own + 1))
        key = np.full(len(name), -1)
        for form in forms:
            key = np.where(form >= 0, form, key)
        start, size = np.zeros(len(name), np.int64), np.zeros(len(name), np.int64)
        for first, last in tries:
            for rank, form in enumerate(forms):
                begin = np.searchsorted(self.place, first[rank])
                there = np.searchsorted(self.place, last[rank]) - begin
                new = (size == 0) & (form >= 0) & (there > 0)
                key, start = np.where(new, form, key), np.where(new, begin, start)
                size = np.where(new, there, size)
        return _Matches(key, start, size)


def places_of(
    itineraries: pl.DataFrame,
    plans: "Plans",
    catalogue: "Catalogue",
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
    texts = pl.DataFrame({"place_row": of_place, "text": catalogue.records["text"].gather(record)})
    return {
        "places": grounded.places,
        "place_texts": texts,
        "itineraries": checks.select("itinerary", "passed", "checks", "has_catalogue"),
    }


def score_places(
    frames: dict[str, pl.DataFrame],
    texts: TextCodes,
    similarity: Similarity,
    options: GroupTravel,
) -> pl.DataFrame:
    """Score the places of each dialogue's plan.

    Returns
    -------
    pl.DataFrame
        ``dialogue_row`` and the columns of `schema.PLACES` from ``place`` on; in the order of the
        dialogues and of their plans.
    """
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
    row = places["dialogue_row"].to_numpy()

    def count(rows: pl.Series) -> Indices:
        return np.bincount(row[rows.fill_null(False).to_numpy()], minlength=n_dialogues)

    return pl.DataFrame(
        {
            "M9_num": count(places["grounded"]),
            "M9_den": np.bincount(row, minlength=n_dialogues),
            "M15_num": count(places["serendipitous"]),
            "M15_den": count(places["grounded"]),
        }
    )
