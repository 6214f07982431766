"""The scores of pairs, places and dialogues, and their summary.

Two trivial planners are scored beside it. The first has the run's plan, but quotes every wish word
by word when it presents the plan and in the raw output. A preference with one informative token is
then addressed (M8), and one with two is satisfied by the lexical channel (M10), whatever the places
are. The second synthesises every slot and names a conflict, a reason and a strategy each time,
whatever members want.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as selectors
from fastscore_jit.threads import raise_if_stopped

from fastscore.errors import counted
from fastscore.suites.base import Events, Summarised
from fastscore.suites.columns import find_nulls
from fastscore.suites.group_travel import schema
from fastscore.suites.group_travel.lexicon import CONDITIONS, load_lexicon
from fastscore.suites.group_travel.metrics import METRICS, SUMMARISED
from fastscore.suites.group_travel.metrics.dialogue import count_syntheses, count_turns
from fastscore.suites.group_travel.metrics.meaning import (
    address_pairs,
    compare_slots,
    count_meaning,
    measure_fairness,
)
from fastscore.suites.group_travel.metrics.plan import (
    CHANNELS,
    FIRINGS,
    LEAST_HITS,
    count_places,
    count_satisfaction,
    measure_welfare,
    satisfy_members,
    satisfy_pairs,
    score_places,
    state_wishes,
)
from fastscore.suites.group_travel.metrics.sources import PHRASING, QUOTING, find_missing
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import (
    Informative,
    Similarity,
    TextCodes,
    find_informative,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


Frames = dict[str, pl.DataFrame]

_TOKENISED = {
    "pairs": "preference",
    "synthesis_texts": "text",
    "plan_texts": "text",
    "choice_texts": "text",
}
_PLACE = ("file", "line", "dialogue")
_RATIOS = {metric.id: metric.micro for metric in METRICS if metric.micro}
_OTHERS = tuple(metric.id for metric in METRICS if metric.id not in _RATIOS)


def score_events(events: Events, vectors: "VectorView", options: GroupTravel) -> Frames:
    """Score the dialogues of `read_events`."""
    frames = dict(events.frames)
    lexicon = load_lexicon(options.lexicon)
    similarity = Similarity.of(events, vectors)
    texts = TextCodes.of({name: frames[name][column] for name, column in _TOKENISED.items()})
    informative = find_informative(texts, frames["pairs"]["slot"], lexicon)
    raise_if_stopped()
    wishes = state_wishes(frames, lexicon, options)
    words = informative.words(texts.tokens)[informative.row]
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
    places = score_places(frames, similarity, options)
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
    members = satisfy_members(pairs)
    listed = pl.struct("member", "pairs", "satisfied", "satisfaction", "semantic_mean")
    counts = (
        frames["dialogues"]
        .select("dialogue_row", "itinerary")
        .join(frames["itineraries"], on="itinerary", how="left", maintain_order="left")
        .drop("itinerary")
    )
    for part in (
        count_turns(frames["dialogues"], frames["turns"]),
        count_syntheses(frames, wishes, informative),
        count_meaning(pairs),
        count_satisfaction(pairs),
        measure_welfare(members),
        measure_fairness(members),
        count_places(places),
        find_missing(frames),
        members.group_by("dialogue_row", maintain_order=True).agg(members=listed),
    ):
        counts = counts.join(part, on="dialogue_row", how="left", maintain_order="left")
    counts = counts.with_columns(
        selectors.numeric().fill_null(0),
        selectors.boolean().fill_null(False),
        pl.col("members").fill_null([]),
    ).with_columns(selectors.unsigned_integer().cast(pl.Int64))
    return frames["dialogues"].hstack(counts.drop("dialogue_row"))


def _score(counted: pl.DataFrame, has_vectors: bool) -> pl.DataFrame:
    """Compute ratios and nulls; what is null counts nothing, and a ratio of nothing is 0."""
    nulls = find_nulls(counted, METRICS, {"has_vectors": has_vectors})
    present = {metric.id: pl.lit(~nulls.is_null(metric.id)) for metric in METRICS}
    counted = counted.with_columns(
        pl.when(present[id]).then(column).otherwise(0).alias(column)
        for id, columns in _RATIOS.items()
        for column in columns
    )
    return counted.with_columns(
        *(
            pl.when(present[id] & (pl.col(denominator) == 0))
            .then(0.0)
            .when(present[id])
            .then(pl.col(numerator) / pl.col(denominator))
            .alias(id)
            for id, (numerator, denominator) in _RATIOS.items()
        ),
        *(pl.when(present[id]).then(id).alias(id) for id in _OTHERS),
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


CONDITION, GROUP_TYPE, BOTH = "condition", "group_type", "group_type_and_condition"
DELTA = "condition_delta"
_MEANS = ("mean", "mean_all_rows")


def summarised(options: GroupTravel, columns: Sequence[str]) -> list[Summarised]:
    """Summarise by condition; by group type and by condition within each where that is asked for.

    Beside M10 is shown how often each of its channels fires, the sum in ``micro_numerator``. The
    group ``condition_delta`` has in ``mean`` and ``mean_all_rows`` what a condition's is above the
    one before it (``C2-C1`` to ``C5-C4``), and nothing else.
    """
    groups = (CONDITION, GROUP_TYPE, BOTH) if options.by_group_type else (CONDITION,)
    return [Summarised(metrics=SUMMARISED, dialogues=_with_firings, groups=groups, more=_deltas)]


def _with_firings(dialogues: pl.LazyFrame) -> pl.LazyFrame:
    return dialogues.with_columns(
        pl.format("{}/{}", GROUP_TYPE, CONDITION).alias(BOTH),
        *(pl.col(one.id).alias(one.micro[0]) for one in FIRINGS if one.micro),
    )


def _deltas(summary: pl.DataFrame) -> pl.DataFrame:
    """Return the difference of each condition's means and those of the one before."""
    names = list(CONDITIONS)
    pairs = pl.DataFrame(
        {
            "value": [f"{after}-{before}" for before, after in pairwise(names)],
            "before": names[:-1],
            "after": names[1:],
        }
    )
    means = summary.filter(pl.col("group") == CONDITION).select("value", "metric", *_MEANS)
    return (
        pairs.join(means.rename({"value": "after"}), on="after", maintain_order="left_right")
        .join(
            means.rename({"value": "before"}),
            on=["before", "metric"],
            maintain_order="left",
            suffix=":before",
        )
        .select(
            pl.lit(DELTA).alias("group"),
            "value",
            "metric",
            *(pl.col(mean) - pl.col(f"{mean}:before") for mean in _MEANS),
        )
        .pipe(lambda deltas: pl.concat([summary.clear(), deltas], how="diagonal"))
    )


_PHRASED, _FROM_PAIRS = (
    tuple(metric.id for metric in METRICS if agent in metric.baselines)
    for agent in (PHRASING, QUOTING)
)


def notes_on_run(dialogues: pl.LazyFrame, options: GroupTravel) -> list[str]:
    """Tell how many dialogues have cells that could not be read: column ``warnings`` says which."""
    warned = dialogues.filter(pl.col("warnings").list.len() > 0)
    n, first = warned.select(pl.len(), pl.col("warnings").list.first().first()).collect().row(0)
    if not n:
        return []
    dialogues_have = counted(n, "dialogues") + (" has" if n == 1 else " have")
    return [
        f"{dialogues_have} cells that could not be read, the first: {first}. Column `warnings` of "
        "table dialogues has all of them"
    ]


def score_trivial_agents(tables: Mapping[str, pl.LazyFrame], options: GroupTravel) -> pl.DataFrame:
    """Score both planners on the log of these tables."""
    dialogues = tables["dialogues"].select("dialogue", *_PHRASED, *_FROM_PAIRS)
    quoted = dialogues.select("dialogue", *(pl.col(_FROM_PAIRS).name.prefix("run:"),)).join(
        _quote(tables["pairs"]), on="dialogue", how="left", nulls_equal=True
    )
    quoting = quoted.select(
        pl.lit(QUOTING).alias("agent"),
        "dialogue",
        *(pl.when(pl.col(f"run:{id}").is_not_null()).then(id).alias(id) for id in _FROM_PAIRS),
    )
    phrasing = dialogues.select(
        pl.lit(PHRASING).alias("agent"),
        "dialogue",
        *(pl.when(pl.col(id).is_not_null()).then(1.0).alias(id) for id in _PHRASED),
    )
    found = pl.concat([quoting, phrasing], how="diagonal")
    return found.sort("agent", "dialogue").collect()


def _quote(pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Score each dialogue as if all wishes stood in the presentation and in the raw output."""
    n_tokens = pl.col("informative_tokens").list.len()
    is_equal = pl.col("plan_similarity").is_not_null()  # with vectors a quotation is equal
    judged = pairs.with_columns(
        addressed=_or("addressed", (n_tokens > 0) | is_equal),
        satisfied=_or("satisfied", n_tokens >= LEAST_HITS),
    )
    share = pl.col("satisfied").mean()
    members = (
        judged.drop_nulls("satisfied").group_by("dialogue", "member").agg(share.alias("share"))
    )
    logs = pl.col("share").log().mean().exp()
    welfare = members.group_by("dialogue").agg(
        W1=pl.col("share").mean(),
        W2=pl.col("share").min(),
        W3=pl.when(pl.col("share").min() > 0).then(logs).otherwise(0.0),
        M11=(pl.col("share") == 1.0).mean(),
    )
    addressed = judged.group_by("dialogue").agg(M8=pl.col("addressed").mean())
    return addressed.join(welfare, on="dialogue", how="left", nulls_equal=True)


def _or(judged: str, quoted: pl.Expr) -> pl.Expr:
    """Return whether a preference is met by the run or by quotation; null where it is not asked."""
    return pl.when(pl.col(judged).is_not_null()).then(pl.col(judged) | quoted)
