"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios.

M1 is what each required memory key points at, and which recalled contexts contain it. M2 is the
user's profile as the assistant saw it, against the labelled one.

Two trivial assistants are scored too. A refusal has no keyword: it breaks no constraint and
no rule, discloses no risk and explains nothing, and its label is compliant. A recital has one
keyword of every risk and every element of explanation in the lexicon, so it discloses all risks and
explains all that the lexicon has. Memory (M1) and profiles (M2) do not depend on replies and have
no baseline.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices

from fastscore.suites.base import Events
from fastscore.suites.columns import filled, find_nulls, list_column
from fastscore.suites.grouping import counts_of, group_offsets
from fastscore.suites.memory_finance.events import (
    Frames,
    is_ok,
    of_labels,
)
from fastscore.suites.memory_finance.metrics import (
    JUDGE_SCORE_1_5,
    MEMORY_SOURCES,
    PROFILE_METRICS,
    PROFILE_SCORE,
    RATIOS,
    RECITING,
    REFUSING,
    SUMS,
    ratios_of,
)
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.replies import (
    PROFILE_FIELDS,
    UNKNOWN,
    Lexicon,
    ProfileField,
    Replies,
    contains,
    find_contradictions,
    judge_scores,
    load_lexicon,
    score_compliance,
    score_risk,
    score_rubric,
    search_replies,
)
from fastscore.suites.memory_finance.schema import (
    DEFAULT_TRACE_VERSION,
    DIALOGUES,
    RESOLVED_KEY_DTYPE,
    RESOLVERS,
    SOURCE_HITS_DTYPE,
    TURNS,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


def score_events(
    events: Events, vectors: "VectorView", options: MemoryFinance
) -> dict[str, pl.DataFrame]:
    """Score the dialogues of `read_events`."""
    frames = events.frames
    lexicon = load_lexicon(options.lexicon)
    replies = search_replies(frames, lexicon)
    dialogues, turns = frames["dialogues"], frames["turns"]
    places = {
        "file": dialogues["file"],
        "line": dialogues["line"],
        "dialogue": dialogues["dialogue"],
        "dialog_id": dialogues["dialog_id"],
        "run_id": filled(dialogues["run_id"], ""),
        "trace_version": filled(dialogues["trace_version"], DEFAULT_TRACE_VERSION),
    }
    dialogue_row = turns["dialogue_row"]
    ok = is_ok(frames)
    # a turn that failed has no reply to miss
    unanswered = ok & ~turns["has_reply"].to_numpy() & (not options.nulls_are_empty)
    ok &= ~unanswered
    columns: dict[str, Any] = {
        **{name: of[dialogue_row] for name, of in places.items()},
        "turn_pair_id": turns["turn_pair_id"],
        **score_memory_keys(frames),
        **score_risk(frames, replies, lexicon),
        **score_compliance(frames, replies, lexicon),
        **score_rubric(frames, replies),
        "constraint_contradiction": find_contradictions(frames, replies, lexicon),
        "is_unanswered": unanswered,
        "eligible_m4": ok,
    }
    required = {"m1": "key_hit_flags", "m3": "risk_required_tags", "m5": "rubric_required"}
    scored = pl.DataFrame(columns).with_columns(
        (pl.col("eligible_m4") & (pl.col(listed).list.len() > 0)).alias(f"eligible_{metric}")
        for metric, listed in required.items()
    )
    scored = find_nulls(scored, [JUDGE_SCORE_1_5]).put_into(scored.with_columns(eligible_m2=False))
    profiles = score_profiles(frames, replies, lexicon)
    counts = dialogues.select(dialogue_row=pl.int_range(pl.len())).join(
        scored.with_columns(dialogue_row).group_by("dialogue_row").agg(SUMS),
        on="dialogue_row",
        how="left",
        maintain_order="left",
    )
    return {
        "turns": scored.select(*TURNS.schema),
        "dialogues": _score_dialogues(dialogues, places, counts.fill_null(0), profiles),
    }


def _score_dialogues(
    dialogues: pl.DataFrame,
    places: Mapping[str, pl.Series],
    counts: pl.DataFrame,
    profiles: Mapping[str, Float64Array],
) -> pl.DataFrame:
    rows = dialogues.with_columns(
        *(column.alias(name) for name, column in places.items()),
        *counts.drop("dialogue_row"),
        *(pl.Series(name, scores) for name, scores in profiles.items()),
        eligible_m2=pl.col("valid") & pl.col("has_profile"),
        **ratios_of(counts),
    )
    rows = find_nulls(rows, [*RATIOS, *PROFILE_METRICS]).put_into(rows)
    return rows.select(*DIALOGUES.schema)


PLACES = (*PROFILE_FIELDS, "constraints", "preferences", "history")
"""What a memory key can name: a field or a list of the profile, or the turns before."""
_FIELD_KEYS = {
    "profile_gt.risk_level_gt": "risk_level",
    "profile_gt.horizon_gt": "horizon",
    "profile_gt.liquidity_need_gt": "liquidity",
}
# `$` also matches before one final line end, and \d any decimal digit, as in the public code
_ITEM_KEY = re.compile(r"profile_gt\.(constraints|preferences)_gt\[(\d+)\]$")
_HISTORY_KEY = re.compile(r"history_turn_index:(\d+)$")
_MOST_DIGITS = 18


def parse_key(key: str | None) -> tuple[str | None, int]:
    """Return the place that a key names, None for no known one, and the number in it."""
    if key in _FIELD_KEYS:
        return _FIELD_KEYS[key], 0
    if item := _ITEM_KEY.match(key or ""):
        return item[1], _number(item[2])
    if turn := _HISTORY_KEY.match(key or ""):
        return "history", _number(turn[1])
    return None, 0


def _number(digits: str) -> int:
    value = int(digits[-_MOST_DIGITS:])
    beyond = len(digits) > _MOST_DIGITS and any(int(digit) for digit in digits[:-_MOST_DIGITS])
    return 10**_MOST_DIGITS if beyond else value


def score_memory_keys(frames: Frames) -> dict[str, pl.Series | Indices]:
    """Resolve the required keys and look for their targets in what was recalled (M1)."""
    n_turns = frames["turns"].height
    keys = resolve_keys(frames)
    resolvable = keys.filter("resolvable")
    recalled = recall_targets(frames["contexts"], resolvable, n_turns)
    is_recalled = recalled.select(pl.any_horizontal(pl.all())).to_series()
    key, source = np.nonzero(recalled.to_numpy())
    sources = list_column(pl.Series(MEMORY_SOURCES)[source], group_offsets(key, recalled.height))

    of_turn, turn = keys["turn_row"].to_numpy(), resolvable["turn_row"].to_numpy()
    required, resolved = group_offsets(of_turn, n_turns), group_offsets(turn, n_turns)
    hits = {name: counts_of(turn[recalled[name].to_numpy()], n_turns) for name in MEMORY_SOURCES}
    targets = keys.select(*RESOLVED_KEY_DTYPE.to_schema()).to_struct()
    return {
        "required_keys_raw": list_column(keys["key"], required),
        "resolved_keys": list_column(targets, required).cast(pl.List(RESOLVED_KEY_DTYPE)),
        "key_hit_flags": list_column(is_recalled.cast(pl.Int64), resolved),
        "key_hit_sources": list_column(sources, resolved),
        "m1_source_hits": pl.DataFrame(hits, schema=dict(SOURCE_HITS_DTYPE)).to_struct(),
    }


def resolve_keys(frames: Frames) -> pl.DataFrame:
    """Find the target of each required key, null where it has none.

    A row is a key of a turn. Of several targets of one place, the first counts.
    """
    keys = frames["memory_keys"]
    parsed = [(key, *parse_key(key)) for key in keys["key"].unique()]
    schema = pl.Schema({"key": pl.String(), "place": pl.Enum(PLACES), "index": pl.Int64()})
    dialogue = frames["turns"]["dialogue_row"][keys["turn_row"]]
    targets = _targets(frames)
    resolvers = (
        pl.when(pl.col(name).is_not_null()).then(pl.lit(name, pl.Enum(RESOLVERS)))
        for name in targets
    )
    return (
        keys.with_columns(dialogue.alias("dialogue_row"))
        .join(
            pl.DataFrame(parsed, schema, orient="row"),
            on="key",
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        .with_columns(**targets)
        .with_columns(target_text=pl.coalesce(*targets), resolver=pl.coalesce(*resolvers))
        .with_columns(
            pl.col("resolver").fill_null("unresolved"),
            resolvable=pl.col("target_text").is_not_null(),
        )
    )


def _targets(frames: Frames) -> dict[str, pl.Expr]:
    """Return by resolver what keys point at, in the order of resolvers: a text, or null."""
    dialogues, spoken = frames["dialogues"], frames["utterances"]["text"]

    def listed(place: str, name: str, texts: pl.Series, first: int = 0) -> pl.Expr:
        """Return the text at the index of each key of a place, which counts from ``first``."""
        rows = frames[name]["dialogue_row"].to_numpy()
        offsets = pl.lit(pl.Series(group_offsets(rows, dialogues.height)))
        begin, end = (offsets.gather(pl.col("dialogue_row") + edge) for edge in (0, 1))
        row = begin + pl.col("index") - first
        at = pl.when(pl.col("place") == place, row >= begin, row < end).then(row)
        return pl.lit(texts).gather(at)

    fields = (
        pl.lit(dialogues[f"gt_{name}"]).gather(pl.when(place=name).then("dialogue_row"))
        for name in PROFILE_FIELDS
    )
    constraints, preferences = frames["constraints"]["text"], frames["preferences"]["text"]
    # turns count from 1: those of the user that were answered, else all that say something
    answered, said = (spoken[frames[name]["utterances"]] for name in ("user_history", "history"))
    return {
        "profile_field": pl.coalesce(fields),
        "constraints_gt": listed("constraints", "constraints", constraints),
        "preferences_gt": listed("preferences", "preferences", preferences),
        "history_user_turn": listed("history", "user_history", answered, first=1),
        "history_abs_turn": listed("history", "history", said.set(said == "", None), first=1),
    }


def recall_targets(contexts: pl.DataFrame, keys: pl.DataFrame, n_turns: int) -> pl.DataFrame:
    """Return for each key with a target, a column for each source, whether that source has it."""
    recalled = {}
    for source in MEMORY_SOURCES:
        of_source = contexts.filter(source=source)
        texts, turns = of_source["text"], of_source["turn_row"].to_numpy()
        if not np.array_equal(turns, np.arange(n_turns)):  # items: any number a turn
            texts = list_column(texts, group_offsets(turns, n_turns)).list.join("\n")
        recalled[source] = contains(texts[keys["turn_row"]], keys["target_text"])
    # the empty text is recalled from nowhere
    return pl.DataFrame(recalled).select(pl.all() & (keys["target_text"] != ""))


STATED_LISTS = {"constraints": "assets", "preferences": "topics"}
"""The list of the last snapshot that states what a labelled list has."""


def score_profiles(frames: Frames, replies: Replies, lexicon: Lexicon) -> dict[str, Float64Array]:
    """Score the profiles of all dialogues (M2)."""
    scores = {
        f"{name}_acc": _accuracy(compare_levels(frames, replies, name, lexicon.profile[name]))
        for name in PROFILE_FIELDS
    }
    scores |= {
        f"{name}_f1": _f1(count_texts(compare_lists(frames, replies, name), frames["dialogues"]))
        for name in STATED_LISTS
    }
    total = sum(scores.values(), np.zeros(frames["dialogues"].height))
    return {**scores, PROFILE_SCORE.id: total / len(scores)}


def compare_levels(
    frames: Frames, replies: Replies, name: str, field: ProfileField
) -> pl.DataFrame:
    """Find each dialogue's level of a field: labelled, stated in a snapshot, mentioned."""
    dialogues = frames["dialogues"]
    levels = [UNKNOWN, *sorted({*field.values.values(), *(m.level for m in field.mentions)})]
    ranks = {level: rank for rank, level in enumerate(dict.fromkeys(levels))}
    labelled, stated = (
        of_labels(dialogues[column], lambda text: ranks[field.level(text)], 0)
        for column in (f"gt_{name}", f"snapshot_{name}")
    )
    mentioned = np.zeros(dialogues.height, np.int64)
    # of several mentions the first in the lexicon counts
    for position in reversed(range(len(field.mentions))):
        has_it = pl.Series(replies.has(name, str(position))).gather(replies.turns["reply"])
        rows = replies.turns["dialogue_row"].filter(has_it)
        mentioned[rows] = ranks[field.mentions[position].level]
    named = pl.Series(list(ranks))
    found = {"labelled": labelled, "stated": stated, "mentioned": mentioned}
    return pl.DataFrame({how: named[rank] for how, rank in found.items()})


def _accuracy(levels: pl.DataFrame) -> Float64Array:
    """Return 1 where the predicted level is the labelled one, and that is known, else 0."""
    stated, labelled = pl.col("stated"), pl.col("labelled")
    predicted = pl.when(stated != UNKNOWN).then(stated).otherwise("mentioned")
    is_right = (predicted == labelled) & (labelled != UNKNOWN)
    return levels.select(is_right.cast(pl.Float64)).to_series().to_numpy()


def compare_lists(frames: Frames, replies: Replies, name: str) -> pl.DataFrame:
    """List the distinct texts of each dialogue that are labelled, or stated in a snapshot.

    Columns are ``dialogue_row``, ``text``, ``is_labelled``, ``is_stated`` and
    ``is_mentioned``: a labelled text is in a reply.
    """
    labelled, stated = (frames[of].unique(maintain_order=True) for of in (name, STATED_LISTS[name]))
    labelled = labelled.with_columns(is_labelled=True, is_mentioned=_mentioned(replies, labelled))
    return labelled.join(
        stated.with_columns(is_stated=True),
        on=_TEXT,
        how="full",
        coalesce=True,
        maintain_order="left_right",
    ).with_columns(pl.exclude(_TEXT).fill_null(False))


_TEXT = ("dialogue_row", "text")


def count_texts(texts: pl.DataFrame, dialogues: pl.DataFrame) -> pl.DataFrame:
    """Count shared, predicted and labelled texts, a row a dialogue.

    Predicted is what the snapshot states, and every labelled text that the replies mention.
    """
    predicted = pl.col("is_stated") | pl.col("is_mentioned")
    counts = texts.group_by("dialogue_row").agg(
        shared=(predicted & pl.col("is_labelled")).sum(),
        predicted=predicted.sum(),
        labelled=pl.col("is_labelled").sum(),
    )
    rows = dialogues.select(dialogue_row=pl.int_range(pl.len()))
    return rows.join(counts, on="dialogue_row", how="left", maintain_order="left").fill_null(0)


def _f1(counts: pl.DataFrame) -> Float64Array:
    """Return F1 of predicted and labelled texts; 1 where both are empty."""
    shared, predicted, labelled = pl.col("shared"), pl.col("predicted"), pl.col("labelled")
    precision, recall = shared / predicted, shared / labelled
    f1 = (
        pl.when((predicted == 0) & (labelled == 0))
        .then(1.0)
        .when(shared == 0)
        .then(0.0)
        .otherwise(2 * precision * recall / (precision + recall))
    )
    return counts.select(f1).to_series().to_numpy()


def _mentioned(replies: Replies, labelled: pl.DataFrame) -> pl.Series:
    """Tell which texts their dialogue's replies, joined by line ends, have."""
    entries = labelled.with_row_index("entry")
    quoted = replies.quoting(entries, "text")["entry"]
    # a text of several lines can begin in one reply and end in the next
    across = entries.filter(pl.col("text").str.contains("\n", literal=True))
    if across.height:
        said = replies.turns.join(across, on="dialogue_row", how="semi", maintain_order="left")
        joined = said.group_by("dialogue_row", maintain_order=True).agg(
            reply=pl.lit(replies.texts).gather(pl.col("reply")).str.join("\n")
        )
        pairs = across.join(joined, on="dialogue_row", how="left", maintain_order="left")
        found = contains(pairs["reply"].fill_null(""), pairs["text"])
        quoted = pl.concat([quoted, across["entry"].filter(pl.Series(found))])
    # the empty text is in any replies, also in those of a dialogue without turns
    return entries.select(
        pl.col("entry").is_in(quoted.implode()) | (pl.col("text") == "")
    ).to_series()


def score_trivial_agents(
    tables: Mapping[str, pl.LazyFrame], options: MemoryFinance
) -> pl.DataFrame:
    """Score both assistants on the log of these tables."""
    lexicon = load_lexicon(options.lexicon)
    disclosed = [tag.name for tag in lexicon.risk_tags if tag.keywords or tag.any_tag]
    elements = list(lexicon.explanation_elements)
    labelled = tables["turns"].select(
        "dialogue",
        *(f"eligible_m{number}" for number in (1, 3, 4, 5)),
        is_compliant=pl.col("gt_compliance_label").cast(pl.String) == "compliant",
        n_risks=pl.col("risk_required_tags").list.len(),
        n_disclosed=_count(pl.col("risk_required_tags"), disclosed),
        n_elements=pl.col("rubric_required").list.len(),
        n_explained=_count(pl.col("rubric_required"), elements),
    )
    turns = labelled.collect()
    counts = (turns[name].fill_null(0).cast(pl.Int64) for name in ("n_explained", "n_elements"))
    judged = judge_scores(*(column.to_numpy() for column in counts))
    turns = turns.with_columns(pl.Series("judged", judged, nan_to_null=True))
    refusing = turns.group_by("dialogue").agg(
        pl.lit(REFUSING).alias("agent"),
        contradiction_rate=_never("eligible_m1"),
        risk_coverage=_never("eligible_m3"),
        strict_risk_coverage_rate=_never("eligible_m3"),
        compliance_label_acc=pl.col("is_compliant").filter("eligible_m4").mean(),
        severe_violation_rate=_never("eligible_m4"),
        rubric_hit_rate=_never("eligible_m5"),
        judge_score_mean=1.0 + _never("eligible_m5"),
    )
    is_covered = pl.col("n_disclosed") == pl.col("n_risks")
    reciting = turns.group_by("dialogue").agg(
        pl.lit(RECITING).alias("agent"),
        risk_coverage=_ratio("n_disclosed", "n_risks", "eligible_m3"),
        strict_risk_coverage_rate=is_covered.filter("eligible_m3").mean(),
        rubric_hit_rate=_ratio("n_explained", "n_elements", "eligible_m5"),
        judge_score_mean=pl.col("judged").filter("eligible_m5").mean(),
    )
    first = ["agent", "dialogue"]
    found = pl.concat([refusing, reciting], how="diagonal").select(*first, pl.exclude(first))
    return found.sort(first)


def _count(labels: pl.Expr, known: list[str]) -> pl.Expr:
    """Count the labels of each row that are known, repeats counted each."""
    return labels.list.eval(pl.element().is_in(known)).list.sum()


def _never(eligible: str) -> pl.Expr:
    """Return 0 if a turn counts, else null."""
    return pl.when(pl.col(eligible).any()).then(0.0)


def _ratio(numerator: str, denominator: str, eligible: str) -> pl.Expr:
    hits, required = (pl.col(name).filter(eligible).sum() for name in (numerator, denominator))
    return pl.when(required > 0).then(hits / required)
