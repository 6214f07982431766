"""M1 to M7: how the conversation went, without a look at the plan."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import least_jaccard_groups

from fastscore.suites.group_travel.evidence import Informative
from fastscore.suites.group_travel.lexicon import ROOM_TYPES, Lexicon
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.terms import ACTIONABLE, CATEGORY_SLOTS
from fastscore.suites.group_travel.turns import (
    ACCEPT_PLAN,
    APPROVE,
    PRESENT_PLAN,
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
    USER_FEEDBACK,
)
from fastscore.suites.group_travel.wording import names_conflict, quotes_theory
from fastscore.suites.grouping import Ragged, factorize, first_of_each, group_rows, offsets_of, take

DIVERGENT_BELOW = 0.5
_LEAST_TOKENS = 6
_FEEDBACK = (USER_FEEDBACK, SYS_FEEDBACK)
_OF_SLOT = ["dialogue_row", "slot"]


def count_conversation(
    frames: dict[str, pl.DataFrame],
    wishes: pl.DataFrame,
    informative: Informative,
    lexicon: Lexicon,
) -> pl.DataFrame:
    """Count what M1 to M7 are made of.

    Returns
    -------
    pl.DataFrame
        For each dialogue ``M1_num``, ``M1_den`` and so on, as counted: the conditions' flags are
        not looked at but in M1 and M6, whose definitions name them. ``M2_unknown`` and
        ``M3_unknown`` are the slots that an utterance which was not given could have counted.
    """
    dialogues = frames["dialogues"]
    parts = (
        _count_turns(frames["turns"], dialogues.height, lexicon),
        _count_syntheses(frames),
        _count_divergence(frames, wishes, informative, lexicon),
    )
    counts = dialogues.select("dialogue_row", "multi_user", "member_count", "listed_members")
    for part in parts:
        counts = counts.join(part, on="dialogue_row", how="left", maintain_order="left")
    counts = counts.with_columns(
        pl.col(name).fill_null(False if dtype == pl.Boolean else 0)
        for part in parts
        for name, dtype in part.schema.items()
        if name != "dialogue_row"
    )
    members = pl.coalesce("member_count", "listed_members", "speakers")
    stated = pl.when("multi_user").then("providers").otherwise(1)
    accepting = pl.when("everyone_accepts").then(pl.col("M6_den")).otherwise("accepting")
    return counts.with_columns(
        pl.min_horizontal(stated, members).alias("M1_num"),
        members.alias("M1_den"),
        pl.max_horizontal(stated, 1).alias("M6_den"),
    ).with_columns(pl.min_horizontal(accepting, "M6_den").alias("M6_num"))


def _count_turns(turns: pl.DataFrame, n_dialogues: int, lexicon: Lexicon) -> pl.DataFrame:
    kind = pl.col("kind")
    flags = turns.select(
        is_member=~pl.col("is_system") & (pl.col("member") != ""),
        provides=kind == PROVIDE,
        accepts=kind.is_in([ACCEPT_PLAN, APPROVE]),
        feedback=kind.is_in(_FEEDBACK),
        candidate=kind.is_in([SYNTHESIZE, SYS_FEEDBACK, PRESENT_PLAN]),
        is_counted="is_counted",
        is_everyone="is_everyone",
    ).fill_null(False)
    is_member, provides, accepts, feedback, candidate, is_counted, is_everyone = (
        flag.to_numpy() for flag in flags
    )
    accepts = accepts & is_member
    row, member = turns["dialogue_row"].to_numpy(), turns["member_row"].to_numpy()

    def count(chosen: Mask) -> Indices:
        return np.bincount(row[chosen], minlength=n_dialogues)

    def count_distinct(keys: Indices, chosen: Mask) -> Indices:
        rows = np.flatnonzero(chosen)
        return np.bincount(row[rows[first_of_each(keys[rows])]], minlength=n_dialogues)

    slots, names = factorize(turns["slot"])
    codes, texts = factorize(turns["utterance"].filter(pl.Series(candidate)))
    quotes = candidate.copy()
    quotes[candidate] = quotes_theory(texts, lexicon).to_numpy()[codes]
    return pl.DataFrame(
        {
            "dialogue_row": np.arange(n_dialogues),
            "providers": count_distinct(member, provides & is_member),
            "speakers": count_distinct(member, is_member & ~is_everyone),
            "accepting": count_distinct(member, accepts & ~is_everyone),
            "everyone_accepts": count(accepts & is_everyone) > 0,
            "anyone_accepts": count(accepts) > 0,
            "M7_total_turns": count(is_counted),
            "provided_slots": count_distinct(row * len(names) + slots, provides),
            "M7_feedback_turn_overhead": count(feedback),
            "M4b_num": count(quotes),
            "M4b_den": count(candidate),
        }
    )


def _count_syntheses(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Count the slots that are synthesised, explained, in conflict and given feedback."""
    codes, texts = factorize(frames["synthesis"]["utterance"])
    normal = normalise(texts)
    n_tokens = pl.select(
        pl.when(normal != "").then(normal.str.count_matches(" ", literal=True) + 1).otherwise(0)
    ).to_series()
    slots = (
        frames["synthesis"]
        .with_columns(n_tokens.gather(codes).alias("n_tokens"))
        .group_by(_OF_SLOT)
        .agg(
            (pl.col("explanation").is_not_null() | (pl.col("n_tokens") >= _LEAST_TOKENS))
            .any()
            .alias("explained"),
            pl.col("has_utterance").all(),
            pl.col("has_strategy").any(),
            pl.col("has_conflict").fill_null(False).any(),
        )
    )
    with_feedback = (
        frames["turns"]
        .filter(pl.col("kind").is_in(_FEEDBACK))
        .select(_OF_SLOT)
        .unique()
        .with_columns(pl.lit(True).alias("has_feedback"))
    )
    actionable = pl.col("slot").is_in(ACTIONABLE)
    conflict = pl.col("has_conflict")
    return (
        slots.join(with_feedback, on=_OF_SLOT, how="left")
        .group_by("dialogue_row")
        .agg(
            pl.col("explained").sum().alias("M3_num"),
            pl.len().alias("M3_den"),
            (~pl.col("explained") & ~pl.col("has_utterance")).sum().alias("M3_unknown"),
            (actionable & pl.col("has_strategy")).sum().alias("M4_num"),
            actionable.sum().alias("M4_den"),
            (conflict & pl.col("has_feedback").fill_null(False)).sum().alias("M5_num"),
            conflict.sum().alias("M5_den"),
        )
        .with_columns(pl.col(pl.UInt32).cast(pl.Int64))
    )


def _count_divergence(
    frames: dict[str, pl.DataFrame],
    wishes: pl.DataFrame,
    informative: Informative,
    lexicon: Lexicon,
) -> pl.DataFrame:
    """Count the slots on which members diverge, and those whose synthesis names a conflict."""
    pairs = frames["pairs"]
    slot_row = pairs["slot_row"].to_numpy()
    n_slots = int(slot_row.max(initial=-1)) + 1
    values, offsets = _wish_sets(pairs, wishes, informative, n_slots)
    rows, group_offsets = group_rows(slot_row, n_slots)
    taken, taken_offsets = take((values, offsets), rows)
    least = least_jaccard_groups((taken.astype(np.int32), taken_offsets), group_offsets)
    divergent = pairs.unique("slot_row", keep="first", maintain_order=True).select(*_OF_SLOT)
    divergent = divergent.filter(pl.Series(least < DIVERGENT_BELOW))
    detected = pl.col("detected").fill_null(False)
    silent = ~pl.col("has_utterance").fill_null(True)
    return (
        divergent.join(_detected(frames["synthesis"], lexicon), on=_OF_SLOT, how="left")
        .group_by("dialogue_row")
        .agg(
            detected.sum().cast(pl.Int64).alias("M2_num"),
            pl.len().cast(pl.Int64).alias("M2_den"),
            (~detected & silent).sum().cast(pl.Int64).alias("M2_unknown"),
        )
    )


def _wish_sets(
    pairs: pl.DataFrame, wishes: pl.DataFrame, informative: Informative, n_slots: int
) -> Ragged:
    """Return what each pair wants as a set.

    Room types for lodging and categories for the other actionable slots, where every member of
    the slot names some; else informative tokens.
    """
    slot_row = pairs["slot_row"].to_numpy()
    tokens, offsets = _flat(wishes["category_tokens"])
    codes, _ = factorize(tokens)
    order = np.lexsort((codes, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))
    named_rooms, room_offsets = _flat(wishes["wanted_rooms"])
    # these are ascending: they stand in the order of room types
    rooms = named_rooms.cast(pl.Enum(ROOM_TYPES)).to_physical().to_numpy().astype(np.int64)
    named = (
        (rooms, room_offsets),
        (codes[order], offsets),
        take(informative.every, informative.row),
    )

    slot = pairs["slot"]
    is_lodging = (slot == "lodging").to_numpy()
    has_categories = slot.is_in(CATEGORY_SLOTS).to_numpy()
    kind = np.full(len(slot), 2)
    for number, applies in ((0, is_lodging), (1, has_categories)):
        lacking = np.bincount(slot_row, weights=np.diff(named[number][1]) == 0, minlength=n_slots)
        kind = np.where(applies & (lacking[slot_row] == 0), number, kind)
    stacked = (
        np.concatenate([values for values, _ in named]),
        np.concatenate(
            [
                named[0][1][:-1],
                named[1][1][:-1] + named[0][1][-1],
                named[2][1] + named[0][1][-1] + named[1][1][-1],
            ]
        ),
    )
    return take(stacked, kind * len(slot) + np.arange(len(slot)))


def _flat(lists: pl.Series) -> tuple[pl.Series, Indices]:
    """Return the items of lists, and the offsets at which those of each begin."""
    return lists.explode(empty_as_null=False), offsets_of(lists.list.len().to_numpy())


def _detected(synthesis: pl.DataFrame, lexicon: Lexicon) -> pl.DataFrame:
    """Tell for each slot whether its synthesis flags a conflict or names one, and is all there."""
    rows = synthesis.select(*_OF_SLOT, "has_conflict", "utterance", "has_utterance", "description")
    texts = pl.concat([rows["utterance"], rows["description"].fill_null("").rename("utterance")])
    codes, found = factorize(texts)
    names = names_conflict(found, lexicon).gather(codes)
    named = names.head(rows.height) | names.tail(rows.height)
    flagged = pl.col("has_conflict").fill_null(False) | pl.col("is_named")
    return (
        rows.with_columns(named.alias("is_named"))
        .group_by(_OF_SLOT)
        .agg(flagged.any().alias("detected"), pl.col("has_utterance").all())
    )
