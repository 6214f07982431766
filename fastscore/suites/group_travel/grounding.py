"""Which records of the catalogue the places of a plan are.

A plan and a catalogue that belong together make an itinerary; dialogues with equal plans and
equal catalogues share one, and everything about it is found once. A name is looked up once in
each catalogue, whichever itineraries have it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.group_travel.catalogue import Catalogue
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.plan_days import KINDS
from fastscore.suites.group_travel.plans import SLOT_OF_KIND, Plans
from fastscore.suites.group_travel.terms import CATALOGUES, KIND_OF_SLOT
from fastscore.suites.grouping import (
    Ragged,
    factorize,
    first_of_each,
    group_rows,
    take,
    take_ranges,
)

PLACE_SLOTS = tuple(KIND_OF_SLOT)
"""The slots that places are chosen for."""
_STOP = len(PLACE_SLOTS)
_SLOT_OF_KIND = np.array(
    [PLACE_SLOTS.index(SLOT_OF_KIND[kind]) if kind in SLOT_OF_KIND else _STOP for kind in KINDS]
)
_OWN_KIND = np.array([CATALOGUES.index(KIND_OF_SLOT[slot]) for slot in PLACE_SLOTS])


@dataclass(frozen=True, slots=True)
class GroundedPlaces:
    """The places of itineraries.

    Attributes
    ----------
    places
        A row a distinct place of an itinerary: ``itinerary``, ``place`` (its name as it stands
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
    itineraries: pl.DataFrame, plans: Plans, catalogue: Catalogue, cells: pl.DataFrame
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
    pairs, pair = np.unique(lookup[chosen] * _STOP + slot[chosen], return_inverse=True)
    of_pairs = index.find_names(in_catalogue[pairs // _STOP], named[pairs // _STOP], pairs % _STOP)
    return GroundedPlaces(
        places,
        found.records(index, lookup[firsts]),
        names.gather(name[chosen]),
        of_pairs.records(index, pair),
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
    def of(cls, names: pl.Series, catalogue: Catalogue, cells: pl.DataFrame) -> "_Index":
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
