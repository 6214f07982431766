"""From trace lines to dialogues, turns and what their labels require.

Nested fields are read as columns, level by level, each value with its exact JSON type. What the
published evaluation cannot digest, it dies of; here the line becomes a reject that names the
place. To find such lines costs nothing while there are none: only then are the others read again.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from fastscore_kernels.jsonl import ARRAY, OBJECT

from fastscore.suites.base import REJECT_SCHEMA, ROW_SCHEMA, Events, empty_rejects
from fastscore.suites.columns import list_column
from fastscore.suites.json_values import (
    JsonValues,
    Mask,
    Problem,
    Problems,
    column_values,
    elements,
    expect,
    expect_texts,
    members,
    python_texts,
    texts,
    truths,
    whole_numbers,
)
from fastscore.suites.memory_finance.options import MemoryFinanceOptions
from fastscore.suites.memory_finance.schema import LABELS

_TURN_KEYS = (
    "turn_pair_id",
    "turn_status",
    "pred_assistant_text",
    "gt_turn_tags",
    "recall",
    "compliance",
    "profile_snapshot",
    "user_text",
    "role",
    "text",
)
_TAG_KEYS = (
    "memory_required_keys_gt",
    "risk_disclosure_required_gt",
    "explainability_rubric_gt",
    "compliance_label_gt",
)
_PROFILE_TEXTS = {
    "risk_level_gt": "risk_level",
    "horizon_gt": "horizon",
    "liquidity_need_gt": "liquidity",
}
_SNAPSHOT_TEXTS = {
    "risk_level": "risk_level",
    "investment_horizon": "horizon",
    "liquidity_need": "liquidity",
}
_SNAPSHOT_LISTS = ("preferred_topics", "forbidden_assets")


def read_traces(raw: pl.DataFrame, options: MemoryFinanceOptions) -> Events:
    """Read trace lines.

    Parameters
    ----------
    raw
        One dialogue a row: `ROW_SCHEMA`, then the columns of the suite's source.
    options
        Whether memory keys are ignored.

    Returns
    -------
    Events
        ``dialogues`` (one a row) and ``turns`` (those of valid dialogues, with ``dialogue_row``);
        lists at their own grain, each with ``turn_row`` (``memory_keys``, ``risk_labels``,
        ``rubric``, ``violations``) or ``dialogue_row`` (``forbidden``, ``constraints``,
        ``preferences``, ``topics``, ``assets``, ``user_history``, ``history``). Rejected are
        lines with a value that the definitions cannot use.
    """
    frames, problems = _read(raw, options)
    if not problems.by_dialogue:
        return Events(frames, empty_rejects(), _counts(frames))
    rejects = _rejects(raw, problems)
    sound = np.setdiff1d(np.arange(raw.height), list(problems.by_dialogue))
    frames, _ = _read(raw[sound], options)
    return Events(frames, rejects, _counts(frames))


def _counts(frames: dict[str, pl.DataFrame]) -> dict[str, int]:
    return {"dialogues": frames["dialogues"].height, "turns": frames["turns"].height}


def _rejects(raw: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    rows = sorted(problems.by_dialogue)
    noted: list[Problem] = [problems.by_dialogue[row] for row in rows]
    columns: dict[str, Any] = {
        name: [getattr(problem, name) for problem in noted]
        for name in ("field", "reason", "found", "expected")
    }
    return (
        raw[rows]
        .select(*ROW_SCHEMA)
        .hstack(pl.DataFrame(columns))
        .with_columns(pl.lit(None, dtype=pl.String).alias("raw"))
        .select(*REJECT_SCHEMA)
    )


def _read(
    raw: pl.DataFrame, options: MemoryFinanceOptions
) -> tuple[dict[str, pl.DataFrame], Problems]:
    problems = Problems()
    valid = truths(column_values(raw["valid_dialog"]))
    turn_lists = expect(column_values(raw["turns"]), ARRAY, "an array of turns", problems)
    all_turns, owner = elements(turn_lists)
    n_turns = np.bincount(owner, minlength=raw.height)
    of_valid = np.flatnonzero(valid[owner])
    turn_values = all_turns.take(of_valid)
    problems.note(
        turn_values, np.flatnonzero(turn_values.tags != OBJECT), "an object that holds a turn"
    )
    turn = members(turn_values, _TURN_KEYS, problems)

    frames = _read_turns(turn, options, problems)
    profile, eligible = _read_profile(raw["profile_gt"], valid, problems)
    snapshots = turn["profile_snapshot"]
    snapshot = _read_snapshot(snapshots.where(eligible[snapshots.dialogue]), raw.height, problems)
    blueprint = expect(
        column_values(raw["blueprint"]).where(valid), OBJECT, "an object or null", problems
    )
    forbidden = members(blueprint, ("forbidden_list",), problems)["forbidden_list"]
    raw_turns = column_values(raw["raw_turns"]).where(valid)
    frames |= profile.lists | snapshot.lists
    frames |= _read_history(raw_turns, turn, problems)
    frames["forbidden"] = _read_list(forbidden, "dialogue_row", "phrase", problems, drop_falsy=True)
    frames["dialogues"] = raw.select(
        "file",
        "line",
        pl.col("dialog_id").alias("dialogue"),
        *LABELS,
        "trace_version",
        pl.Series("valid", valid),
        pl.Series("has_profile", eligible),
        pl.Series("n_turns", n_turns),
        *(series.alias(f"gt_{name}") for name, series in profile.texts.items()),
        *(series.alias(f"snapshot_{name}") for name, series in snapshot.texts.items()),
    )
    return frames, problems


@dataclass(frozen=True, slots=True)
class _Profile:
    """A profile's fields, one text a dialogue, and its lists."""

    texts: dict[str, pl.Series]
    lists: dict[str, pl.DataFrame]


def _read_turns(
    turn: dict[str, JsonValues], options: MemoryFinanceOptions, problems: Problems
) -> dict[str, pl.DataFrame]:
    tags = members(
        expect(turn["gt_turn_tags"], OBJECT, "an object or null", problems), _TAG_KEYS, problems
    )
    keys = tags["memory_required_keys_gt"]
    if options.ignore_memory_keys:
        keys = keys.where(np.zeros(len(keys), np.bool_))
    recall = members(
        expect(turn["recall"], OBJECT, "an object or null", problems),
        ("short_term_context", "profile_context", "items"),
        problems,
    )
    compliance = members(
        expect(turn["compliance"], OBJECT, "an object or null", problems),
        ("violations",),
        problems,
    )
    turns = pl.DataFrame(
        {
            "dialogue_row": turn["turn_pair_id"].dialogue,
            "turn_pair_id": whole_numbers(turn["turn_pair_id"], problems),
            "ok": texts(turn["turn_status"], problems).eq_missing("ok"),
            "reply": python_texts(turn["pred_assistant_text"], problems, falsy_is_empty=True),
            "short_term": expect_texts(recall["short_term_context"], problems, null=""),
            "long_term": _join_items(recall["items"], problems),
            "profile_context": expect_texts(recall["profile_context"], problems, null=""),
            "compliance_label": python_texts(
                tags["compliance_label_gt"], problems, falsy_is_empty=True
            ),
        }
    )
    return {
        "turns": turns,
        "memory_keys": _read_list(keys, "turn_row", "key", problems, null_is_text=True),
        "risk_labels": _read_list(
            tags["risk_disclosure_required_gt"], "turn_row", "label", problems, drop_null=True
        ),
        "rubric": _read_list(tags["explainability_rubric_gt"], "turn_row", "item", problems),
        "violations": _read_violations(compliance["violations"], problems),
    }


def _read_list(
    lists: JsonValues,
    row_name: str,
    name: str,
    problems: Problems,
    *,
    null_is_text: bool = False,
    drop_null: bool = False,
    drop_falsy: bool = False,
) -> pl.DataFrame:
    """Read arrays of strings: a row an element, with the row of its array."""
    found, owner = elements(expect(lists, ARRAY, "an array of strings or null", problems))
    keep: Mask = np.ones(len(found), np.bool_)
    if drop_null:
        keep = ~found.is_missing
    if drop_falsy:
        keep = truths_of_items(found)
    if not keep.all():
        rows = np.flatnonzero(keep)
        found, owner = found.take(rows), owner[rows]
    usable = found.is_text | found.is_missing if null_is_text else found.is_text
    problems.note(found, np.flatnonzero(~usable), "a string")
    return pl.DataFrame({row_name: owner, name: texts(found, problems)})


def truths_of_items(items: JsonValues) -> Mask:
    """Return which array elements Python counts as true; most of them are strings."""
    keep: Mask = items.is_text & (items.end > items.start)
    others = np.flatnonzero(~items.is_text)
    keep[others] = truths(items.take(others))
    return keep


def _join_items(lists: JsonValues, problems: Problems) -> pl.Series:
    """Join the contents of each turn's recalled items by line ends."""
    items, owner = elements(expect(lists, ARRAY, "an array of items or null", problems))
    problems.note(items, np.flatnonzero(items.tags != OBJECT), "an object that holds an item")
    content = expect_texts(members(items, ("content",), problems)["content"], problems, null="")
    offsets = np.searchsorted(owner, np.arange(len(lists) + 1))
    return list_column(content, offsets).list.join("\n")


def _read_violations(lists: JsonValues, problems: Problems) -> pl.DataFrame:
    found, owner = elements(expect(lists, ARRAY, "an array of violations or null", problems))
    problems.note(found, np.flatnonzero(found.tags != OBJECT), "an object that holds a violation")
    named = members(found, ("type", "severity"), problems)
    return pl.DataFrame(
        {
            "turn_row": owner,
            **{
                name: python_texts(values, problems, falsy_is_empty=False)
                for name, values in named.items()
            },
        }
    )


def _read_profile(column: pl.Series, valid: Mask, problems: Problems) -> tuple[_Profile, Mask]:
    """Read the labelled profiles, and which of them are objects with any member."""
    values = expect(column_values(column).where(valid), OBJECT, "an object or null", problems)
    found = members(values, (*_PROFILE_TEXTS, "constraints_gt", "preferences_gt"), problems)
    profile = _Profile(
        {
            name: python_texts(found[key], problems, falsy_is_empty=False)
            for key, name in _PROFILE_TEXTS.items()
        },
        {
            name: _read_list(found[f"{name}_gt"], "dialogue_row", "text", problems)
            for name in ("constraints", "preferences")
        },
    )
    return profile, _has_members(values)


def _has_members(values: JsonValues) -> Mask:
    """Return which values are objects that are not empty."""
    found: Mask = values.tags == OBJECT
    rows = np.flatnonzero(found)
    # a member begins with the quote of its key, mostly without a space before it
    others = rows[values.data[values.start[rows] + 1] != ord('"')]
    found[others] = [bool(values.python(row)) for row in others.tolist()]
    return found


def _read_snapshot(values: JsonValues, n_dialogues: int, problems: Problems) -> _Profile:
    """Read the last profile snapshot of each dialogue that is an object."""
    rows = np.flatnonzero(values.tags == OBJECT)
    last = np.full(n_dialogues, -1, np.int64)
    # numpy assigns in order, so the last turn's row stays
    last[values.dialogue[rows]] = rows
    dialogues = np.flatnonzero(last >= 0)
    found = members(values.take(last[dialogues]), (*_SNAPSHOT_TEXTS, *_SNAPSHOT_LISTS), problems)
    at = np.full(n_dialogues, -1, np.int64)
    at[dialogues] = np.arange(len(dialogues))
    gather = pl.Series(at).set(pl.Series(at < 0), None)
    lists = {}
    for key in _SNAPSHOT_LISTS:
        frame = _read_list(found[key], "row", "text", problems)
        lists[key] = frame.select(
            pl.Series("dialogue_row", dialogues[frame["row"].to_numpy()]), "text"
        )
    return _Profile(
        {
            name: python_texts(found[key], problems, falsy_is_empty=False).gather(gather)
            for key, name in _SNAPSHOT_TEXTS.items()
        },
        {"topics": lists["preferred_topics"], "assets": lists["forbidden_assets"]},
    )


def _read_history(
    column: JsonValues, turn: dict[str, JsonValues], problems: Problems
) -> dict[str, pl.DataFrame]:
    """Read the turns that a memory key can point at.

    They are the dataset's own turns; in their absence the trace's user texts or, where the first
    turn of the trace has none, the trace's turns taken as the dataset's.
    """
    found, _ = elements(expect(column, ARRAY, "an array of turns or null", problems))
    found = expect(found, OBJECT, "an object that holds a turn", problems)
    spoken = members(found, ("role", "text"), problems)
    has_raw = np.isin(turn["text"].dialogue, np.unique(found.dialogue))
    dialogue = turn["text"].dialogue
    first = np.append(True, dialogue[1:] != dialogue[:-1]) if len(dialogue) else np.zeros(0, bool)
    says_user_text = (turn["user_text"].tags[first] != 0)[np.cumsum(first) - 1]

    as_raw = np.flatnonzero(~has_raw & ~says_user_text)
    history = pl.concat(
        [
            _spoken_frame(spoken, problems),
            _spoken_frame({key: turn[key].take(as_raw) for key in ("role", "text")}, problems),
        ]
    ).sort("dialogue_row", maintain_order=True)
    told = turn["user_text"].take(np.flatnonzero(~has_raw & says_user_text))
    users = pl.concat(
        [
            _paired_users(history),
            pl.DataFrame(
                {
                    "dialogue_row": told.dialogue,
                    "text": python_texts(told, problems, falsy_is_empty=True),
                }
            ),
        ]
    ).sort("dialogue_row", maintain_order=True)
    return {"history": history.drop("role"), "user_history": users}


def _spoken_frame(values: dict[str, JsonValues], problems: Problems) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "dialogue_row": values["role"].dialogue,
            "role": texts(values["role"], problems),
            "text": python_texts(values["text"], problems, falsy_is_empty=True),
        }
    )


def _paired_users(history: pl.DataFrame) -> pl.DataFrame:
    """Return the user turns that an assistant answers: the first ones since the last answer."""
    dialogue = history["dialogue_row"].to_numpy()
    answers = history["role"].eq_missing("assistant").to_numpy()
    users = np.flatnonzero(history["role"].eq_missing("user").to_numpy())
    answered = np.cumsum(answers)
    exchange = answered[users]
    first = np.ones(len(users), np.bool_)
    first[1:] = (exchange[1:] != exchange[:-1]) | (dialogue[users[1:]] != dialogue[users[:-1]])
    until = answered[np.searchsorted(dialogue, dialogue[users], side="right") - 1]
    return history[users[first & (until > exchange)]].drop("role")
