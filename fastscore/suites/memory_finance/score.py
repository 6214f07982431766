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
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.columns import filled, find_nulls, keep_where, list_column
from fastscore.suites.grouping import counts_of, first_of_each, group_offsets, number_keys
from fastscore.suites.memory_finance.events import Frames, of_labels, turns_of_status
from fastscore.suites.memory_finance.joined_texts import joined_contain
from fastscore.suites.memory_finance.metrics import (
    JUDGE_SCORE_1_5,
    MEMORY_SOURCES,
    PROFILE_METRICS,
    PROFILE_SCORE,
    RATIOS,
    RECITING,
    REFUSING,
    count_turns,
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
    expand,
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


_COUNTED = ("m1_turns", "m3_turns", "m4_turns", "m5_turns")


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
    ok = turns_of_status(frames, "ok")
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
        "eligible_m2": np.zeros(turns.height, np.bool_),
        "eligible_m4": ok,
    }
    for metric, required in (("m1", "n_keys"), ("m3", "n_risks"), ("m5", "n_elements")):
        columns[f"eligible_{metric}"] = ok & (columns[required] > 0)
    columns["judge_score_1_5"] = columns["judge_score_1_5"].set(pl.Series(unanswered), None)
    facts = pl.DataFrame({"n_elements": columns["n_elements"], "is_unanswered": unanswered})
    columns["null_reasons"] = find_nulls(facts, [JUDGE_SCORE_1_5]).column
    scored = pl.DataFrame({name: columns[name] for name in TURNS.schema})
    profiles = score_profiles(frames, replies, lexicon)
    counts = count_turns(columns, dialogue_row.to_numpy(), dialogues.height)
    return {"turns": scored, "dialogues": _score_dialogues(dialogues, places, counts, profiles)}


def _score_dialogues(
    dialogues: pl.DataFrame,
    places: Mapping[str, pl.Series],
    counts: Mapping[str, Indices | Float64Array],
    profiles: Mapping[str, Float64Array],
) -> pl.DataFrame:
    ratios, valid = ratios_of(counts), dialogues["valid"].to_numpy()
    eligible = valid & dialogues["has_profile"].to_numpy()
    rows = dialogues.select("valid", "has_profile").with_columns(
        pl.Series(rule, counts[rule]) for rule in _COUNTED
    )
    columns: dict[str, Any] = {
        **dialogues.to_dict(),
        **places,
        "eligible_m2": eligible,
        **counts,
        **ratios,
        **{name: keep_where(eligible, scores) for name, scores in profiles.items()},
        "null_reasons": find_nulls(rows, [*RATIOS, *PROFILE_METRICS]).column,
    }
    return pl.DataFrame({name: columns[name] for name in DIALOGUES.schema})


_FIELD_KEYS = {
    "profile_gt.risk_level_gt": 0,
    "profile_gt.horizon_gt": 1,
    "profile_gt.liquidity_need_gt": 2,
}
_CONSTRAINT, _PREFERENCE, _HISTORY, _OTHER = range(3, 7)
# `$` also matches before one final line end, and \d any decimal digit, as in the public code
_ITEM_KEY = re.compile(r"profile_gt\.(constraints|preferences)_gt\[(\d+)\]$")
_HISTORY_KEY = re.compile(r"history_turn_index:(\d+)$")
_MOST_DIGITS = 18
_FIELD, _CONSTRAINTS, _PREFERENCES, _USER_TURN, _ABS_TURN, _UNRESOLVED = range(len(RESOLVERS))


def parse_key(key: str | None) -> tuple[int, int]:
    """Return what kind of place a key names, and the number in it (0 without one)."""
    if key is None:
        return _OTHER, 0
    if key in _FIELD_KEYS:
        return _FIELD_KEYS[key], 0
    item, history = _ITEM_KEY.match(key), _HISTORY_KEY.match(key)
    if item:
        kind = _CONSTRAINT if item[1] == "constraints" else _PREFERENCE
        return kind, _number(item[2])
    if history:
        return _HISTORY, _number(history[1])
    return _OTHER, 0


def _number(digits: str) -> int:
    value = int(digits[-_MOST_DIGITS:])
    beyond = len(digits) > _MOST_DIGITS and any(int(digit) for digit in digits[:-_MOST_DIGITS])
    return 10**_MOST_DIGITS if beyond else value


def score_memory_keys(frames: Frames) -> dict[str, pl.Series | Indices]:
    """Resolve the required keys and look for their targets in what was recalled."""
    keys, n_turns = frames["memory_keys"], frames["turns"].height
    turn_row = keys["turn_row"].to_numpy()
    target, resolver = _resolve(keys["key"].to_numpy(), turn_row, frames)
    resolvable = np.flatnonzero(resolver != _UNRESOLVED)
    turn_of_key = turn_row[resolvable]
    found = _recall(frames["contexts"], n_turns, turn_of_key, target[resolvable])

    key, offsets = frames["labels"]["text"][keys["key"]], group_offsets(turn_row, n_turns)
    resolved = pl.DataFrame(
        {
            "key": key,
            "resolvable": resolver != _UNRESOLVED,
            "target_text": target,
            "resolver": _RESOLVER_NAMES[resolver],
        }
    ).to_struct("")
    recalled, of_resolvable = found.any(axis=1), group_offsets(turn_of_key, n_turns)
    of_source = {
        source: counts_of(turn_of_key[hit], n_turns)
        for source, hit in zip(MEMORY_SOURCES, found.T, strict=True)
    }
    return {
        "required_keys_raw": list_column(key, offsets),
        "resolved_keys": list_column(resolved, offsets).cast(pl.List(RESOLVED_KEY_DTYPE)),
        "key_hit_flags": list_column(pl.Series(recalled.astype(np.int64)), of_resolvable),
        "key_hit_sources": list_column(_SOURCE_SETS[found @ (1, 2, 4)], of_resolvable),
        "m1_source_hits": pl.DataFrame(of_source, schema=dict(SOURCE_HITS_DTYPE)).to_struct(),
        "n_keys": np.diff(of_resolvable),
        "n_recalled": counts_of(turn_of_key[recalled], n_turns),
        **{f"n_{source}": hits for source, hits in of_source.items()},
    }


_SOURCE_SETS = pl.Series(
    [
        [source for bit, source in enumerate(MEMORY_SOURCES) if number >> bit & 1]
        for number in range(1 << len(MEMORY_SOURCES))
    ],
    dtype=pl.List(pl.String),
)
_RESOLVER_NAMES = pl.Series(RESOLVERS)


def _resolve(keys: Indices, turn_row: Indices, frames: Frames) -> tuple[pl.Series, Indices]:
    """Return each key's target, null where it has none, and its resolver."""
    dialogues, labels = frames["dialogues"], frames["labels"]["text"]
    dialogue = frames["turns"]["dialogue_row"].to_numpy()[turn_row]
    parsed = of_labels(keys, labels, parse_key, (_OTHER, 0))
    kind, number = parsed[:, 0], parsed[:, 1]
    # targets are rows of this: all labels, then what was said, then none
    utterances = frames["utterances"]["text"]
    pool = pl.concat([labels, utterances, pl.Series("text", [None], dtype=pl.String)], rechunk=True)
    place = np.full(len(keys), len(pool) - 1)
    resolver = np.full(len(keys), _UNRESOLVED)
    for field, name in enumerate(PROFILE_FIELDS):
        rows = kind == field
        place[rows] = dialogues[f"gt_{name}"].to_numpy()[dialogue[rows]]
        resolver[rows] = _FIELD

    def point(
        name: str, wanted: Mask, index: Indices, with_resolver: int, column: str, base: int
    ) -> None:
        """Point the rows whose index lies in their dialogue's list at what that element holds."""
        rows = np.flatnonzero(wanted & (index >= 0) & (resolver == _UNRESOLVED))
        if not len(rows):
            return
        offsets = group_offsets(frames[name]["dialogue_row"].to_numpy(), dialogues.height)
        element = offsets[dialogue[rows]] + index[rows]
        inside = element < offsets[dialogue[rows] + 1]
        rows, element = rows[inside], element[inside]
        place[rows] = base + frames[name][column].to_numpy()[element]
        resolver[rows] = with_resolver

    point("constraints", kind == _CONSTRAINT, number, _CONSTRAINTS, "text", 0)
    point("preferences", kind == _PREFERENCE, number, _PREFERENCES, "text", 0)
    point("user_history", kind == _HISTORY, number - 1, _USER_TURN, "utterances", len(labels))
    point("history", kind == _HISTORY, number - 1, _ABS_TURN, "utterances", len(labels))
    of_turns = np.flatnonzero(resolver == _ABS_TURN)
    blank = (pool[place[of_turns]] == "").to_numpy()
    place[of_turns[blank]] = len(pool) - 1
    target = pool[place]
    return target, np.where(target.is_null().to_numpy(), _UNRESOLVED, resolver)


def _recall(contexts: pl.DataFrame, n_turns: int, turn_of_key: Indices, target: pl.Series) -> Mask:
    """Return for each key and source whether the source holds the key's target."""
    n_sources = len(MEMORY_SOURCES)
    found = np.zeros((n_sources, len(target)), np.bool_)
    searched = np.flatnonzero((target != "").to_numpy())
    needles = target[searched]
    offsets = group_offsets(contexts["context"].to_numpy(), n_sources * n_turns)
    held = joined_contain(
        contexts["written"],
        contexts["escapes"].to_numpy(),
        offsets,
        np.concatenate([source * n_turns + turn_of_key[searched] for source in range(n_sources)]),
        pl.concat([needles] * n_sources, rechunk=True),
    )
    found[:, searched] = held.reshape(n_sources, -1)
    return found.T


def score_profiles(frames: Frames, replies: Replies, lexicon: Lexicon) -> dict[str, Float64Array]:
    """Score the profiles of all dialogues."""
    scores = {
        f"{name}_acc": _accuracy(*compare_levels(frames, replies, name, lexicon.profile[name])[1:])
        for name in PROFILE_FIELDS
    }
    scores |= {f"{name}_f1": _f1(*count_lists(frames, replies, name)) for name in STATED_LISTS}
    total = sum(scores.values(), np.zeros(frames["dialogues"].height))
    return {**scores, PROFILE_SCORE.id: total / len(scores)}


def compare_levels(
    frames: Frames, replies: Replies, name: str, field: ProfileField
) -> tuple[list[str], Indices, Indices, Indices]:
    """Find the levels of a field of the profile."""
    dialogues = frames["dialogues"]
    levels = [UNKNOWN, *sorted({*field.values.values(), *(m.level for m in field.mentions)})]
    ranks = {level: rank for rank, level in enumerate(dict.fromkeys(levels))}
    labels = frames["labels"]["text"]
    labelled, stated = (
        of_labels(column.to_numpy(), labels, lambda text: ranks[field.level(text)], 0)
        for column in (dialogues[f"gt_{name}"], dialogues[f"snapshot_{name}"])
    )
    inferred = np.zeros(dialogues.height, np.int64)
    dialogue_row = frames["turns"]["dialogue_row"].to_numpy()
    for position in reversed(range(len(field.mentions))):
        of_reply = replies.has(name, str(position))
        mentioned = dialogue_row[of_reply[replies.of_turn]]
        inferred[mentioned] = ranks[field.mentions[position].level]
    return list(ranks), labelled, stated, inferred


def _accuracy(labelled: Indices, stated: Indices, mentioned: Indices) -> Float64Array:
    """Return 1 where the predicted level is the labelled one, and that is known, else 0."""
    predicted = np.where(stated == 0, mentioned, stated)
    correct: Mask = (predicted == labelled) & (labelled != 0)
    return correct.astype(np.float64)


STATED_LISTS = {"constraints": "assets", "preferences": "topics"}
"""The list of the last snapshot that states what a labelled list has."""


def compare_lists(
    frames: Frames, replies: Replies, name: str
) -> tuple[Indices, Indices, Mask, Mask]:
    """Find a labelled set of texts in snapshots and replies."""
    n_labels = frames["labels"].height
    labelled, stated = (
        _distinct(frames[of]["dialogue_row"].to_numpy() * n_labels + frames[of]["text"].to_numpy())
        for of in (name, STATED_LISTS[name])
    )
    numbers = number_keys(np.concatenate([stated, labelled]))
    is_stated = numbers[len(stated) :] < len(stated)
    is_mentioned = _mentioned(frames, replies, *np.divmod(labelled, n_labels))
    return labelled, stated, is_stated, is_mentioned


def count_lists(frames: Frames, replies: Replies, name: str) -> tuple[Indices, Indices, Indices]:
    """Count shared, predicted and labelled texts by dialogue.

    Predicted is what the snapshot states, and every labelled text that the replies mention.
    """
    n_dialogues, n_labels = frames["dialogues"].height, frames["labels"].height
    labelled, stated, is_stated, is_mentioned = compare_lists(frames, replies, name)
    dialogue = labelled // n_labels
    n_shared = counts_of(dialogue[is_stated | is_mentioned], n_dialogues)
    # what is stated and not labelled, besides what is shared
    n_stated = counts_of(stated // n_labels, n_dialogues)
    n_predicted = n_stated - counts_of(dialogue[is_stated], n_dialogues) + n_shared
    return n_shared, n_predicted, counts_of(dialogue, n_dialogues)


def _distinct(keys: Indices) -> Indices:
    return keys[first_of_each(keys)]


def _f1(shared: Indices, predicted: Indices, labelled: Indices) -> Float64Array:
    precision = shared / np.maximum(predicted, 1)
    recall = shared / np.maximum(labelled, 1)
    total = precision + recall
    f1 = 2 * precision * recall / np.where(total > 0, total, 1.0)
    both_empty = (predicted == 0) & (labelled == 0)
    scores: Float64Array = np.where(both_empty, 1.0, f1)
    return scores


def _mentioned(frames: Frames, replies: Replies, dialogue: Indices, label: Indices) -> Mask:
    """Return for each label whether its dialogue's replies, joined by line ends, have it."""
    turns, labels = frames["turns"], frames["labels"]["text"]
    turn_row, entry = expand(turns["dialogue_row"].to_numpy(), dialogue)
    hit = replies.have_labels(replies.of_turn[turn_row], label[entry], labels)
    # the empty text is in any replies, also in those of a dialogue without turns
    found = of_labels(label, labels, lambda text: text == "", False)
    found[entry[hit]] = True
    across = np.flatnonzero(of_labels(label, labels, lambda text: "\n" in text, False))
    if len(across):
        wanted = pl.DataFrame({"dialogue_row": dialogue[across], "text": labels[label[across]]})
        found[across] = _mentioned_across(turns, wanted)
    return found


def _mentioned_across(turns: pl.DataFrame, wanted: pl.DataFrame) -> Mask:
    """Search texts of several lines, which can begin in one reply and end in the next."""
    joined = (
        turns.filter(pl.col("dialogue_row").is_in(wanted["dialogue_row"].implode()))
        .group_by("dialogue_row", maintain_order=True)
        .agg(pl.col("reply").str.join("\n"))
    )
    pairs = wanted.join(joined, on="dialogue_row", how="left", maintain_order="left")
    return contains(pairs["reply"].fill_null(""), pairs["text"])


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
