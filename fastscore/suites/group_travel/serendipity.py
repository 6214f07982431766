"""M9 and M15: places of the plan that are real, that were asked for, and that please unasked."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import find_phrases
from fastscore_kernels.targets import Targets

from fastscore.suites.group_travel.evidence import TextCodes
from fastscore.suites.group_travel.normalise import as_ids
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, reaches
from fastscore.suites.grouping import group_rows, take

_SHORTEST_NAME = 3


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

    preferences = frames["pairs"]["dialogue_row"].to_numpy()
    explicit = _is_explicit(texts, place_row, dialogue_row, preferences, n_dialogues)
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
    preferences: Indices,
    n_dialogues: int,
) -> Mask:
    """Tell which places a preference of their dialogue names, word by word."""
    ids, offsets = texts.tokens.plain
    # a text of one token that nothing else has stands after each preference: no name crosses it
    end = len(texts.tokens.vocabulary)
    ids = np.append(ids, np.int32(end))
    offsets = np.append(offsets, offsets[-1] + 1)
    rows, bounds = group_rows(preferences, n_dialogues)
    parted = np.empty(2 * len(rows), np.int64)
    parted[0::2], parted[1::2] = texts.codes["pairs"][rows], len(offsets) - 2
    targets = Targets((ids, offsets), (parted, 2 * bounds))
    plain = (texts.tokens.plain[0].astype(np.int64), texts.tokens.plain[1])
    names = take(plain, texts.codes["places"][place_row])
    named: Mask = find_phrases(as_ids(names), dialogue_row, targets, threads=1)
    return named


def _is_too_short(places: pl.DataFrame) -> Mask:
    """Tell which names are one word of fewer than three letters."""
    key = pl.col("key")
    one_word = ~key.str.contains(" ", literal=True)
    short: Mask = (
        places.select(one_word & (key.str.len_chars() < _SHORTEST_NAME)).to_series().to_numpy()
    )
    return short
