"""The scores of pairs, places and dialogues."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.stopping import raise_if_stopped

from fastscore.suites.base import Events
from fastscore.suites.columns import find_nulls
from fastscore.suites.group_travel import schema
from fastscore.suites.group_travel.evidence import Informative, TextCodes, find_informative
from fastscore.suites.group_travel.lexicon import load_lexicon
from fastscore.suites.group_travel.metrics import METRICS
from fastscore.suites.group_travel.metrics.conversation import count_turns
from fastscore.suites.group_travel.metrics.meaning import (
    address_pairs,
    compare_slots,
    count_meaning,
    measure_fairness,
)
from fastscore.suites.group_travel.metrics.places import count_places, score_places
from fastscore.suites.group_travel.metrics.satisfaction import (
    CHANNELS,
    count_satisfaction,
    measure_welfare,
    satisfy_members,
    satisfy_pairs,
    state_wishes,
)
from fastscore.suites.group_travel.metrics.sources import find_missing
from fastscore.suites.group_travel.metrics.synthesis import count_syntheses
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Frames = dict[str, pl.DataFrame]

_TOKENISED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "plan_texts": "text",
    "choice_texts": "text",
    "places": "key",
}
_PLACE = ("file", "line", "dialogue")
_RATIOS = tuple(metric for metric in METRICS if metric.numerator and metric.denominator)


def score_dialogues(events: Events, vectors: "VectorView", options: GroupTravel) -> Frames:
    """Score the dialogues of `read_dialogues`.

    Parameters
    ----------
    events
        Whole dialogues.
    vectors
        A vector for each text of the frame ``compared``; none turns all that is compared by
        meaning off.
    options
        Thresholds and targets.

    Returns
    -------
    dict of pl.DataFrame
        ``pairs``, ``places`` and ``dialogues`` in the schema of the suite's tables.
    """
    frames = dict(events.frames)
    lexicon = load_lexicon(options.lexicon)
    similarity = Similarity.of(events, vectors)
    texts = TextCodes.of({name: frames[name][column] for name, column in _TOKENISED.items()})
    informative = find_informative(texts, "pairs", frames["pairs"]["slot"], lexicon)
    raise_if_stopped()
    wishes = state_wishes(frames, lexicon, options)
    words = informative.words(texts.tokens).gather(informative.row)
    pairs = pl.concat(
        [
            frames["pairs"].with_columns(words.alias("informative_tokens")),
            wishes,
            address_pairs(frames, texts, informative, similarity, options),
            satisfy_pairs(frames, wishes, texts, informative, similarity, options),
            compare_slots(frames, similarity),
        ],
        how="horizontal",
    )
    raise_if_stopped()
    places = score_places(frames, texts, similarity, options)
    raise_if_stopped()
    counted = _count(frames, pairs, places, wishes, informative)
    scored = _score(counted, similarity.is_on).with_columns(lexicon_version=pl.lit(lexicon.version))
    return {
        "pairs": _placed(frames["dialogues"], pairs).select(*schema.PAIRS.schema),
        "places": _placed(frames["dialogues"], places).select(*schema.PLACES.schema),
        "dialogues": scored.select(*schema.DIALOGUES.schema),
    }


def _placed(dialogues: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Put the place of their dialogue before rows."""
    of_dialogue = dialogues.select(_PLACE)[rows["dialogue_row"]]
    return pl.concat([of_dialogue, rows], how="horizontal")


def _count(
    frames: Frames,
    pairs: pl.DataFrame,
    places: pl.DataFrame,
    wishes: pl.DataFrame,
    informative: Informative,
) -> pl.DataFrame:
    """Put beside dialogues what their metrics and the rules of nulls are made of."""
    dialogues = frames["dialogues"]
    n_dialogues = dialogues.height
    members = satisfy_members(pairs)
    means, fairness = measure_fairness(pairs, members, n_dialogues)
    counts = [
        dialogues,
        count_turns(dialogues, frames["turns"]),
        count_syntheses(frames, wishes, informative),
        count_meaning(pairs, n_dialogues),
        count_satisfaction(pairs, n_dialogues),
        measure_welfare(members, n_dialogues),
        fairness.to_frame(),
        _members_column(members.with_columns(means), n_dialogues).to_frame(),
        count_places(places, n_dialogues),
        _of_itinerary(frames, dialogues["itinerary"].to_numpy()),
        find_missing(frames),
    ]
    return pl.concat(counts, how="horizontal")


def _members_column(members: pl.DataFrame, n_dialogues: int) -> pl.Series:
    fields = ("member", "pairs", "satisfied", "satisfaction", "semantic_mean")
    lists = members.group_by("dialogue_row", maintain_order=True).agg(
        pl.struct(*fields).alias("members")
    )
    rows = pl.DataFrame({"dialogue_row": np.arange(n_dialogues)})
    found = rows.join(lists, on="dialogue_row", how="left", maintain_order="left")
    return found["members"].fill_null([])


def _of_itinerary(frames: Frames, itinerary: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Return the checks of each dialogue's plan, and whether it has a catalogue."""
    rows = pl.Series(itinerary).set(pl.Series(itinerary < 0), None)
    return frames["itineraries"].select(
        pl.col("passed").gather(rows).fill_null(0).alias("M16_num"),
        pl.col("checks").gather(rows).fill_null(0).alias("M16_den"),
        pl.col("has_catalogue").gather(rows).fill_null(False),
    )


def _score(counted: pl.DataFrame, has_vectors: bool) -> pl.DataFrame:
    """Compute ratios and nulls; what is null counts nothing, and a ratio of nothing is 0."""
    nulls = find_nulls(counted, METRICS, {"has_vectors": has_vectors})
    present = {metric.id: pl.lit(~nulls.is_null(metric.id)) for metric in METRICS}
    counted = counted.with_columns(
        pl.when(present[metric.id]).then(column).otherwise(0).alias(column)
        for metric in _RATIOS
        for column in (metric.numerator, metric.denominator)
        if column is not None
    )
    return counted.with_columns(
        *(
            pl.when(present[metric.id] & (pl.col(str(metric.denominator)) == 0))
            .then(0.0)
            .when(present[metric.id])
            .then(pl.col(str(metric.numerator)) / pl.col(str(metric.denominator)))
            .alias(metric.id)
            for metric in _RATIOS
        ),
        *(pl.when(present[name]).then(name).alias(name) for name in ("W2", "W3", "M13")),
        *(
            pl.when(present["M10"])
            .then(f"n_{name}_channel")
            .otherwise(0)
            .alias(f"n_{name}_channel")
            for name in CHANNELS
        ),
        pl.col("warnings").fill_null([]),
        nulls.column.alias("null_reasons"),
    )
