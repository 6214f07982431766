"""From trace lines to dialogues, turns and what their labels require.

Nested fields are read as columns, level by level, each value with its exact JSON type. The
published evaluation ends with an exception at a value that it cannot use. Here the line becomes a
reject that names the place. Lines are read again only if there is a faulty value.

The meaning of a label is found once for each distinct label.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Mask
from fastscore_readers.json.tokens import ABSENT, ARRAY, OBJECT
from fastscore_readers.json.walk import Shape

from fastscore.suites.base import Events, Nulls
from fastscore.suites.columns import gather_or_null, last_rows, unknown_words
from fastscore.suites.declarations import FLAGS_AS_TEXT
from fastscore.suites.grouping import counts_of, factorize
from fastscore.suites.identity import IDENTITY, identify
from fastscore.suites.json_values import (
    JsonPlaces,
    JsonValues,
    Problems,
    booleans,
    checked_values,
    elements,
    expect,
    expect_texts,
    line_values,
    places,
    python_texts,
    python_values,
    read_sound,
    texts,
    whole_numbers,
)
from fastscore.suites.memory_finance.metrics import MEMORY_SOURCES
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.schema import COMPLIANCE_LABEL, LABELS, SOURCE, TURN_STATUS

Meaning = TypeVar("Meaning")
_FALSE_WORDS = ("false", "no", "n", "0", "none", "null")
"""Texts that mean the opposite of what the definition takes them for."""


def of_labels(
    labels: pl.Series, meaning: Callable[[Any], Meaning], otherwise: Meaning
) -> npt.NDArray[Any]:
    """Return what labels mean: of equal ones it is found once. `otherwise` gives the type."""
    codes, distinct = factorize(labels)
    return np.array([*map(meaning, distinct), otherwise])[codes]


Frames = Mapping[str, pl.DataFrame]
"""The frames that are made of rows, by name."""

_TURN: Shape = {
    "turn_pair_id": None,
    "turn_status": None,
    "pred_assistant_text": None,
    "gt_turn_tags": {
        "memory_required_keys_gt": [None],
        "risk_disclosure_required_gt": [None],
        "explainability_rubric_gt": [None],
        "compliance_label_gt": None,
    },
    "recall": {"short_term_context": None, "profile_context": None, "items": [{"content": None}]},
    "compliance": {"violations": [{"type": None, "severity": None}]},
    "profile_snapshot": None,
    "user_text": None,
    "role": None,
    "text": None,
}
_PROFILE_TEXTS = {
    "risk_level_gt": "risk_level",
    "horizon_gt": "horizon",
    "liquidity_need_gt": "liquidity",
}
_PROFILE_LISTS = {"constraints_gt": "constraints", "preferences_gt": "preferences"}
_SNAPSHOT_TEXTS = {
    "risk_level": "risk_level",
    "investment_horizon": "horizon",
    "liquidity_need": "liquidity",
}
_SNAPSHOT_LISTS = {"preferred_topics": "topics", "forbidden_assets": "assets"}
_PROFILE: Shape = {**dict.fromkeys(_PROFILE_TEXTS), **{key: [None] for key in _PROFILE_LISTS}}
_SNAPSHOT: Shape = {**dict.fromkeys(_SNAPSHOT_TEXTS), **{key: [None] for key in _SNAPSHOT_LISTS}}
_NO_KEYS = {"turn_row": np.zeros(0, np.int64), "key": pl.Series([], dtype=pl.String)}

Columns = dict[str, Any]
"""Columns of one table: arrays and series."""


def read_events(raw: pl.DataFrame, options: MemoryFinance) -> Events:
    """Read trace lines."""
    frames, rejects = read_sound(raw, lambda rows: _read(rows, options))
    as_empty = options.nulls_are_empty
    return Events(
        frames,
        rejects,
        _counts(frames, raw),
        _nulls(frames),
        nulls_are_empty=as_empty,
        n_units=frames["turns"].height,
    )


def _nulls(frames: Frames) -> dict[str, Nulls]:
    """Count what turns lack; replies are asked of those that succeeded."""
    turns = frames["turns"]
    ok, status = is_ok(frames), turns["status"]
    unreplied = int((ok & ~turns["has_reply"].to_numpy()).sum())
    unlabelled = int((~turns["has_labels"]).sum())
    label = unknown_words(turns["compliance_label"], COMPLIANCE_LABEL.vocabulary)
    return {
        "turns[].pred_assistant_text": Nulls(unreplied, int(ok.sum())),
        "turns[].turn_status": Nulls(
            status.null_count(), turns.height, unknown_words(status, TURN_STATUS.vocabulary)
        ),
        "turns[].gt_turn_tags": Nulls(unlabelled, turns.height),
        "turns[].gt_turn_tags.compliance_label_gt": Nulls(0, turns.height, label),
    }


def is_ok(frames: Frames) -> Mask:
    """Tell which turns have the status ok."""
    ok: Mask = (frames["turns"]["status"] == "ok").fill_null(False).to_numpy()
    return ok


def _counts(frames: dict[str, pl.DataFrame], raw: pl.DataFrame) -> dict[str, int]:
    counts = {"dialogues": frames["dialogues"].height, "turns": frames["turns"].height}
    spelled = raw["valid_dialog"].str.strip_chars(' "').str.to_lowercase()
    is_text = raw["valid_dialog"].str.starts_with('"')
    n_as_text = int((is_text & spelled.is_in(_FALSE_WORDS)).sum())
    return counts | ({FLAGS_AS_TEXT: n_as_text} if n_as_text else {})


def _read(raw: pl.DataFrame, options: MemoryFinance) -> tuple[dict[str, pl.DataFrame], Problems]:
    problems = Problems()
    columns = _read_columns(raw, problems)
    valid = booleans(columns["valid_dialog"], problems)
    turn_lists = columns["turns"]
    _, uncounted = elements(turn_lists.where(~valid))
    turn_lists = expect(turn_lists.where(valid), ARRAY, "an array of turns", problems)
    turn = places(turn_lists, [_TURN], problems).each
    n_turns = counts_of(turn.owner, raw.height) + counts_of(uncounted, raw.height)
    _expect_objects(turn.values, "an object that holds a turn", problems)

    tables = _read_turns(turn, options, problems)
    profile, eligible = _read_profile(columns["profile_gt"].where(valid), problems)
    snapshots = turn["profile_snapshot"].values
    snapshot = _read_snapshot(snapshots.where(eligible[snapshots.dialogue]), raw.height, problems)
    blueprint = columns["blueprint"].where(valid)
    blueprint = expect(blueprint, OBJECT, "an object or null", problems)
    forbidden = places(blueprint, {"forbidden_list": [None]}, problems)["forbidden_list"]
    tables |= profile.lists | snapshot.lists
    tables["utterances"] = read_utterances(columns["raw_turns"].where(valid), turn, problems)
    tables["forbidden"] = _read_list(forbidden, "dialogue_row", "phrase", problems, drop_falsy=True)
    tables["dialogues"] = {
        **{name: raw[name] for name in ("file", "line", *LABELS, "trace_version")},
        "dialogue": identify(raw, SOURCE)[IDENTITY],
        "dialog_id": raw["dialog_id"],
        "valid": valid,
        "has_profile": eligible,
        "n_turns": n_turns,
        **{f"gt_{name}": texts for name, texts in profile.texts.items()},
        **{f"snapshot_{name}": texts for name, texts in snapshot.texts.items()},
    }
    frames = {table: pl.DataFrame(columns) for table, columns in tables.items()}
    return frames | order_history(frames["utterances"]), problems


def _read_columns(raw: pl.DataFrame, problems: Problems) -> dict[str, JsonValues]:
    """Read the columns of JSON: those of lines are valid, those of a frame may hold anything."""
    columns = {column.name: raw[column.name] for column in SOURCE.columns if column.kind == "json"}
    if raw["byte_offset"].has_nulls():
        return {name: checked_values(texts, problems) for name, texts in columns.items()}
    # empty arrays mean the same as null, and texts of a few bytes cannot stay in place
    return {name: line_values(texts.set(texts == "[]", None)) for name, texts in columns.items()}


@dataclass(frozen=True, slots=True)
class _Profile:
    """A profile's fields, one text a dialogue, and its lists."""

    texts: dict[str, pl.Series]
    lists: dict[str, Columns]


def _read_turns(turn: JsonPlaces, options: MemoryFinance, problems: Problems) -> dict[str, Columns]:
    for key in ("gt_turn_tags", "recall", "compliance"):
        expect(turn[key].values, OBJECT, "an object or null", problems)
    tags, recall = turn["gt_turn_tags"], turn["recall"]
    number, label = turn["turn_pair_id"].values, tags["compliance_label_gt"].values
    reply = turn["pred_assistant_text"].values
    keys = tags["memory_required_keys_gt"]
    risks, rubric = tags["risk_disclosure_required_gt"], tags["explainability_rubric_gt"]
    return {
        "turns": {
            "dialogue_row": number.dialogue,
            "turn_pair_id": whole_numbers(number, problems),
            "status": texts(turn["turn_status"].values, problems),
            "has_reply": ~reply.is_missing,
            "has_labels": ~tags.values.is_missing,
            "reply": python_texts(reply, problems, falsy_is_empty=True),
            "compliance_label": python_texts(label, problems, falsy_is_empty=True),
        },
        "contexts": _read_contexts(recall, problems),
        "memory_keys": _NO_KEYS
        if options.ignore_memory_keys
        else _read_list(keys, "turn_row", "key", problems, null_is_text=True),
        "risk_labels": _read_list(risks, "turn_row", "label", problems, drop_null=True),
        "rubric": _read_list(rubric, "turn_row", "item", problems),
        "violations": _read_violations(turn["compliance"]["violations"], problems),
    }


def _expect_objects(values: JsonValues, expected: str, problems: Problems) -> None:
    problems.note(values, np.flatnonzero(values.tags != OBJECT), expected)


def _read_list(
    lists: JsonPlaces,
    row_name: str,
    name: str,
    problems: Problems,
    *,
    null_is_text: bool = False,
    drop_null: bool = False,
    drop_falsy: bool = False,
) -> Columns:
    """Read arrays of strings: a row an element, with the row of its array."""
    expect(lists.values, ARRAY, "an array of strings or null", problems)
    found, owner = lists.each.values, lists.each.owner
    is_text = found.is_text
    if not is_text.all() or drop_falsy:
        keep: Mask = np.ones(len(found), np.bool_)
        if drop_null:
            keep = ~found.is_missing
        if drop_falsy:
            keep = booleans_of_items(found, problems)
        rows = np.flatnonzero(keep)
        found, owner = found.take(rows), owner[rows]
        usable = found.is_text | found.is_missing if null_is_text else found.is_text
        problems.note(found, np.flatnonzero(~usable), "a string")
    return {row_name: owner, name: texts(found, problems)}


def booleans_of_items(items: JsonValues, problems: Problems) -> Mask:
    """Return which array elements Python counts as true; most of them are strings."""
    keep: Mask = items.is_text & (items.end > items.start)
    others = np.flatnonzero(~items.is_text)
    keep[others] = booleans(items.take(others), problems)
    return keep


def _read_contexts(recall: JsonPlaces, problems: Problems) -> Columns:
    """Read what was recalled from each source in each turn: one text, of items one each."""
    items, turns = recall["items"], np.arange(len(recall.values))
    expect(items.values, ARRAY, "an array of items or null", problems)
    _expect_objects(items.each.values, "an object that holds an item", problems)
    found = {
        "short_term": (recall["short_term_context"].values, turns),
        "long_term": (items.each["content"].values, items.each.owner),
        "profile": (recall["profile_context"].values, turns),
    }
    frames = [
        pl.DataFrame(
            {"turn_row": turn, "text": expect_texts(values, problems, or_empty=True)}
        ).with_columns(source=pl.lit(source, pl.Enum(MEMORY_SOURCES)))
        for source, (values, turn) in found.items()
    ]
    return pl.concat(frames).to_dict()


def _read_violations(lists: JsonPlaces, problems: Problems) -> Columns:
    expect(lists.values, ARRAY, "an array of violations or null", problems)
    _expect_objects(lists.each.values, "an object that holds a violation", problems)
    texts = {
        name: python_texts(lists.each[name].values, problems, falsy_is_empty=False)
        for name in ("type", "severity")
    }
    return {"turn_row": lists.each.owner, **texts}


def _read_profile(values: JsonValues, problems: Problems) -> tuple[_Profile, Mask]:
    """Read the labelled profiles, and which of them are objects with any member."""
    values = expect(values, OBJECT, "an object or null", problems)
    found = places(values, _PROFILE, problems)
    texts = {
        name: python_texts(found[key].values, problems, falsy_is_empty=False)
        for key, name in _PROFILE_TEXTS.items()
    }
    lists = {
        name: _read_list(found[key], "dialogue_row", "text", problems)
        for key, name in _PROFILE_LISTS.items()
    }
    return _Profile(texts, lists), _has_members(values, problems)


def _has_members(values: JsonValues, problems: Problems) -> Mask:
    """Return which values are objects that are not empty."""
    found: Mask = (values.tags == OBJECT) & (values.end > values.start)
    rows = np.flatnonzero(found)
    # a member begins with the quote of its key, mostly without a space before it
    others = rows[values.data[values.start[rows] + 1] != ord('"')]
    found[others] = [bool(value) for value in python_values(values, others, problems)]
    return found


def _read_snapshot(values: JsonValues, n_dialogues: int, problems: Problems) -> _Profile:
    """Read the last profile snapshot of each dialogue that is an object."""
    rows = np.flatnonzero(values.tags == OBJECT)
    last = last_rows(values.dialogue, rows, n_dialogues)
    dialogues = np.flatnonzero(last >= 0)
    found = places(values.take(last[dialogues]), _SNAPSHOT, problems)
    lists = {}
    for key, name in _SNAPSHOT_LISTS.items():
        columns = _read_list(found[key], "row", "text", problems)
        lists[name] = {"dialogue_row": dialogues[columns["row"]], "text": columns["text"]}
    at = np.full(n_dialogues, -1, np.int64)
    at[dialogues] = np.arange(len(dialogues))
    texts = {
        name: gather_or_null(python_texts(found[key].values, problems, falsy_is_empty=False), at)
        for key, name in _SNAPSHOT_TEXTS.items()
    }
    return _Profile(texts, lists)


_SPOKEN: Shape = {"role": None, "text": None}


def read_utterances(column: JsonValues, turn: JsonPlaces, problems: Problems) -> dict[str, Any]:
    """Read the turns that a memory key can point at.

    They are the dataset's own turns; in their absence the trace's user texts or, where the first
    turn of the trace has none, the trace's turns taken as the dataset's.
    """
    lists = expect(column, ARRAY, "an array of turns or null", problems)
    spoken = places(lists, [_SPOKEN], problems).each
    expect(spoken.values, OBJECT, "an object that holds a turn", problems)
    dialogue = turn.values.dialogue
    is_spoken = np.zeros(len(column), np.bool_)
    is_spoken[spoken.values.dialogue] = True
    first = np.append(True, dialogue[1:] != dialogue[:-1]) if len(dialogue) else np.zeros(0, bool)
    is_told = (turn["user_text"].values.tags[first] != ABSENT)[np.cumsum(first) - 1]
    is_told &= ~is_spoken[dialogue]
    taken = np.flatnonzero(~is_told & ~is_spoken[dialogue])
    told = turn["user_text"].values.take(np.flatnonzero(is_told))

    without = told.where(np.zeros(len(told), np.bool_))
    roles = spoken["role"].values, turn["role"].values.take(taken), without
    utterances = spoken["text"].values, turn["text"].values.take(taken), told
    spoken_by = [texts(part, problems) for part in roles]
    said = [python_texts(part, problems, falsy_is_empty=True) for part in utterances]
    return {
        "dialogue_row": np.concatenate([part.dialogue for part in utterances]),
        "text": pl.concat(said),
        "role": pl.concat(spoken_by),
        "told": np.repeat([False, False, True], [len(part) for part in utterances]),
    }


def order_history(utterances: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return what history keys count, as rows of `read_utterances`, by dialogue."""
    rows = utterances.select("dialogue_row", "role", "told", utterances=pl.int_range(pl.len()))
    history = rows.filter(~pl.col("told")).sort("dialogue_row", maintain_order=True)
    # the user turns that an assistant answers: the first ones since the last answer
    n_answers = (pl.col("role") == "assistant").fill_null(False).cum_sum().over("dialogue_row")
    answered = (
        history.with_columns(exchange=n_answers)
        .filter(pl.col("exchange") < pl.col("exchange").max().over("dialogue_row"), role="user")
        .unique(["dialogue_row", "exchange"], keep="first", maintain_order=True)
        .select(rows.columns)
    )
    users = pl.concat([answered, rows.filter("told")]).sort("dialogue_row", maintain_order=True)
    return {"history": history, "user_history": users}
