"""The scores of pairs, places and dialogues."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.stopping import raise_if_stopped

from fastscore.suites.base import Events
from fastscore.suites.columns import reasons_of_kinds
from fastscore.suites.declarations import NullReason
from fastscore.suites.group_travel import schema
from fastscore.suites.group_travel.addressing import address_pairs
from fastscore.suites.group_travel.conversation import count_conversation
from fastscore.suites.group_travel.evidence import Informative, TextCodes, find_informative
from fastscore.suites.group_travel.lexicon import Lexicon, load_lexicon
from fastscore.suites.group_travel.metrics import CHANNELS, METRICS, RATIOS
from fastscore.suites.group_travel.missing import find_missing, not_given
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.satisfaction import compare_slots, satisfy_pairs, state_wishes
from fastscore.suites.group_travel.serendipity import score_places
from fastscore.suites.group_travel.similarity import Similarity
from fastscore.suites.group_travel.welfare import count_pairs, measure_members
from fastscore.suites.grouping import factorize_rows

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

Frames = dict[str, pl.DataFrame]
Reasons = npt.NDArray[np.int8]

_TOKENISED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "plan_texts": "text",
    "choice_texts": "text",
    "places": "key",
}
_PLACE = ("file", "line", "dialogue")


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
    scored = _score(frames, pairs, places, wishes, informative, lexicon, similarity.is_on)
    return {
        "pairs": _placed(frames["dialogues"], pairs).select(*schema.PAIRS.schema),
        "places": _placed(frames["dialogues"], places).select(*schema.PLACES.schema),
        "dialogues": scored.select(*schema.DIALOGUES.schema),
    }


def _placed(dialogues: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Put the place of their dialogue before rows."""
    of_dialogue = dialogues.select(_PLACE)[rows["dialogue_row"]]
    return pl.concat([of_dialogue, rows], how="horizontal")


def _score(
    frames: Frames,
    pairs: pl.DataFrame,
    places: pl.DataFrame,
    wishes: pl.DataFrame,
    informative: Informative,
    lexicon: Lexicon,
    has_vectors: bool,
) -> pl.DataFrame:
    counted = _count(
        frames, pairs, places, count_conversation(frames, wishes, informative, lexicon)
    )
    reasons = _null_reasons(counted, has_vectors)
    present = {metric.id: pl.Series(reasons[metric.id] < 0) for metric in METRICS}
    return _ratios(counted, present).with_columns(
        *(pl.when(pl.lit(present[name])).then(name).alias(name) for name in ("W2", "W3", "M13")),
        *(
            pl.when(pl.lit(present["M10"])).then(channel.id).otherwise(0).alias(channel.id)
            for channel in CHANNELS
        ),
        pl.lit(lexicon.version).alias("lexicon_version"),
        pl.col("warnings").fill_null([]),
        _reasons_column(reasons).alias("null_reasons"),
    )


def _count(
    frames: Frames, pairs: pl.DataFrame, places: pl.DataFrame, conversation: pl.DataFrame
) -> pl.DataFrame:
    """Put beside dialogues what ratios are made of."""
    dialogues = frames["dialogues"]
    n_dialogues = dialogues.height
    counts = [
        dialogues,
        conversation.drop("dialogue_row", "multi_user", "member_count", "listed_members"),
        count_pairs(pairs, n_dialogues),
        measure_members(pairs, n_dialogues),
        _count_places(places, n_dialogues),
        find_missing(frames),
        _of_itinerary(frames, dialogues["itinerary"].to_numpy()),
    ]
    return pl.concat(counts, how="horizontal").with_columns(
        pl.col("M7_total_turns").alias("M7_turns_per_slot_num"),
        pl.col("provided_slots").alias("M7_turns_per_slot_den"),
        pl.col("n_pairs").alias("M8_den"),
        pl.col("n_pairs").alias("M8a_den"),
        pl.col("W1_den").alias("M11_den"),
    )


def _ratios(counted: pl.DataFrame, present: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Add each ratio; where it is null, and where it is 0 by its setting, it counts nothing."""
    constant = {"M4": ~pl.col("use_social_theory"), "M5": ~pl.col("enable_feedback")}
    counted = counted.with_columns(
        pl.when(pl.lit(present[metric.id]) & ~constant.get(metric.id, pl.lit(False)))
        .then(column)
        .otherwise(0)
        .alias(column)
        for metric in RATIOS
        for column in (metric.numerator, metric.denominator)
        if column is not None
    )
    return counted.with_columns(
        pl.when(pl.lit(present[metric.id]))
        .then(
            pl.when(constant.get(metric.id, pl.lit(False)))
            .then(0.0)
            .otherwise(pl.col(f"{metric.id}_num") / pl.col(f"{metric.id}_den"))
        )
        .alias(metric.id)
        for metric in RATIOS
    )


def _count_places(places: pl.DataFrame, n_dialogues: int) -> pl.DataFrame:
    row = places["dialogue_row"].to_numpy()

    def count(rows: pl.Series) -> npt.NDArray[np.int64]:
        return np.bincount(row[rows.fill_null(False).to_numpy()], minlength=n_dialogues)

    return pl.DataFrame(
        {
            "M9_num": count(places["grounded"]),
            "M9_den": np.bincount(row, minlength=n_dialogues),
            "M15_num": count(places["serendipitous"]),
            "M15_den": count(places["grounded"]),
        }
    )


def _of_itinerary(frames: Frames, itinerary: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Return the checks of each dialogue's plan, and whether it has a catalogue."""
    rows = pl.Series(itinerary).set(pl.Series(itinerary < 0), None)
    return frames["itineraries"].select(
        pl.col("passed").gather(rows).fill_null(0).alias("M16_num"),
        pl.col("checks").gather(rows).fill_null(0).alias("M16_den"),
        pl.col("has_catalogue").gather(rows).fill_null(False),
    )


_REASONS: tuple[NullReason, ...] = ("not_applicable", "missing_input", "no_vector")
_NOT_APPLICABLE, _MISSING, _NO_VECTOR = range(3)


def _null_reasons(counted: pl.DataFrame, has_vectors: bool) -> dict[str, Reasons]:
    """Return for each metric why it is null in each dialogue: a place in `_REASONS`, or -1."""
    no_plan = pl.col("itinerary") < 0
    no_synthesis = ~pl.col("enable_synthesis")
    no_pairs = pl.col("n_pairs") == 0
    of_pairs = [(no_plan, _MISSING), (pl.col("M10_den") == 0, _NOT_APPLICABLE)]
    nothing_said = (pl.col("n_compared") == 0, _NOT_APPLICABLE)
    no_vectors = (pl.lit(not has_vectors), _NO_VECTOR)
    compared = [*of_pairs, nothing_said, no_vectors]

    def empty(metric: str) -> pl.Expr:
        return pl.col(f"{metric}_den").fill_null(0) == 0

    rules: dict[str, list[tuple[pl.Expr, int]]] = {
        **dict.fromkeys(("W1", "W2", "W3", "M10", "M11"), of_pairs),
        "M1": [(empty("M1"), _MISSING)],
        "M2": [(no_synthesis | empty("M2"), _NOT_APPLICABLE)],
        "M3": [(no_synthesis | empty("M3"), _NOT_APPLICABLE)],
        "M4": [(pl.col("use_social_theory") & empty("M4"), _NOT_APPLICABLE)],
        "M4b": [(empty("M4b"), _NOT_APPLICABLE)],
        "M5": [(pl.col("enable_feedback") & empty("M5"), _NOT_APPLICABLE)],
        "M6": [(~pl.col("anyone_accepts"), _NOT_APPLICABLE)],
        "M7_turns_per_slot": [(empty("M7_turns_per_slot"), _NOT_APPLICABLE)],
        "M8": [(no_pairs | (no_synthesis & empty("M8b")), _MISSING)],
        "M8a": [(no_synthesis, _NOT_APPLICABLE), (no_pairs, _MISSING)],
        "M8b": [(empty("M8b"), _MISSING)],
        "M9": [(no_plan | ~pl.col("has_catalogue") | empty("M9"), _MISSING)],
        "M10b": [(no_plan, _MISSING), (empty("M10b"), _NOT_APPLICABLE)],
        **dict.fromkeys(("M12", "M13"), compared),
        "M14": [(no_synthesis | (pl.col("n_resolved") == 0), _NOT_APPLICABLE), no_vectors],
        "M15": [(no_plan | empty("M15") | no_pairs, _MISSING), no_vectors],
        "M16": [(no_plan, _MISSING)],
    }
    for metric, unknown in not_given().items():
        rules[metric] = [(unknown, _MISSING), *rules[metric]]
    reasons = counted.select(
        _first_reason(rules.get(metric.id, [])).alias(metric.id) for metric in METRICS
    )
    return {column.name: column.to_numpy() for column in reasons}


def _first_reason(rules: list[tuple[pl.Expr, int]]) -> pl.Expr:
    """Return the reason of the first rule that applies to a row, -1 for none."""
    reason = pl.lit(-1, dtype=pl.Int8)
    for applies, found in reversed(rules):
        reason = pl.when(applies).then(pl.lit(found, dtype=pl.Int8)).otherwise(reason)
    return pl.repeat(0, pl.len(), dtype=pl.Int8) + reason


def _reasons_column(reasons: dict[str, Reasons]) -> pl.Series:
    """Return ``null_reasons``: the metrics that are null in each row, and why."""
    kind, firsts = factorize_rows([found.astype(np.int64) + 1 for found in reasons.values()])
    kinds = [
        {metric: _REASONS[found[row]] for metric, found in reasons.items() if found[row] >= 0}
        for row in firsts.tolist()
    ]
    return reasons_of_kinds(kinds, kind)
