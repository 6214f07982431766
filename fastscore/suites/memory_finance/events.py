"""From trace lines to dialogues, turns and what their labels require.

Nested fields are read as columns, level by level, each value with its exact JSON type. What the
published evaluation cannot digest, it dies of; here the line becomes a reject that names the
place. To find such lines costs nothing while there are none: only then are the others read again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from fastscore_kernels.json_paths import Shape
from fastscore_kernels.jsonl import ARRAY, OBJECT

from fastscore.suites.base import REJECT_SCHEMA, ROW_SCHEMA, Events, empty_rejects
from fastscore.suites.columns import counts_of
from fastscore.suites.distinct import distinct
from fastscore.suites.json_values import (
    JsonPlaces,
    JsonValues,
    Mask,
    Problem,
    Problems,
    elements,
    expect,
    line_values,
    places,
    python_texts,
    texts,
    truths,
    whole_numbers,
    written_texts,
)
from fastscore.suites.memory_finance.options import MemoryFinanceOptions
from fastscore.suites.memory_finance.schema import LABELS, MEMORY_SOURCES

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
    "recall": {
        "short_term_context": None,
        "profile_context": None,
        "items": [{"content": None}],
    },
    "compliance": {"violations": [{"type": None, "severity": None}]},
    "profile_snapshot": None,
    "user_text": None,
    "role": None,
    "text": None,
}
_SPOKEN: Shape = {"role": None, "text": None}
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
_LABEL_COLUMNS = {
    "turns": ("compliance_label",),
    "memory_keys": ("key",),
    "risk_labels": ("label",),
    "rubric": ("item",),
    "violations": ("type", "severity"),
    "forbidden": ("phrase",),
    "constraints": ("text",),
    "preferences": ("text",),
    "topics": ("text",),
    "assets": ("text",),
    "dialogues": tuple(
        f"{side}_{name}" for side in ("gt", "snapshot") for name in _PROFILE_TEXTS.values()
    ),
}


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
        ``preferences``, ``topics``, ``assets``, ``user_history``, ``history``). Texts of labels
        and profiles (`_LABEL_COLUMNS`) stand there as row numbers of ``labels``, each text of
        which is distinct. ``contexts`` are the texts that were recalled, as they are written in
        JSON: those of source s (of `MEMORY_SOURCES`) in turn t have the ``context`` s * turns + t.
        Rejected are lines with a value that the definitions cannot use.
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
    valid = truths(line_values(raw["valid_dialog"]))
    turn_lists = line_values(raw["turns"])
    _, uncounted = elements(turn_lists.where(~valid))
    turn_lists = expect(turn_lists.where(valid), ARRAY, "an array of turns", problems)
    turn = places(turn_lists, [_TURN], problems).each
    n_turns = counts_of(turn.owner, raw.height) + counts_of(uncounted, raw.height)
    _expect_objects(turn.values, "an object that holds a turn", problems)

    frames = _read_turns(turn, options, problems)
    profile, eligible = _read_profile(raw["profile_gt"], valid, problems)
    snapshots = turn["profile_snapshot"].values
    snapshot = _read_snapshot(snapshots.where(eligible[snapshots.dialogue]), raw.height, problems)
    blueprint = expect(
        line_values(raw["blueprint"]).where(valid), OBJECT, "an object or null", problems
    )
    forbidden = places(blueprint, {"forbidden_list": [None]}, problems)["forbidden_list"]
    raw_turns = line_values(raw["raw_turns"]).where(valid)
    frames |= profile.lists | snapshot.lists
    frames |= _read_history(raw_turns, turn, problems)
    frames["forbidden"] = _read_list(forbidden, "dialogue_row", "phrase", problems, drop_falsy=True)
    frames["dialogues"] = pl.DataFrame(
        {
            **{name: raw[name] for name in ("file", "line", *LABELS, "trace_version")},
            "dialogue": raw["dialog_id"],
            "valid": valid,
            "has_profile": eligible,
            "n_turns": n_turns,
            **{f"gt_{name}": texts for name, texts in profile.texts.items()},
            **{f"snapshot_{name}": texts for name, texts in snapshot.texts.items()},
        }
    )
    frames["labels"] = _number_labels(frames)
    return frames, problems


def _number_labels(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Put numbers in the place of labels; return their texts."""
    columns = [(frames[frame], name) for frame, names in _LABEL_COLUMNS.items() for name in names]
    texts = [frame[name].alias("text") for frame, name in columns]
    numbers, labels = distinct(pl.concat(texts, rechunk=True))
    ends = np.cumsum([len(text) for text in texts])
    for (frame, name), part in zip(columns, np.split(numbers, ends[:-1]), strict=True):
        frame.replace_column(frame.get_column_index(name), pl.Series(name, part))
    return labels.to_frame()


@dataclass(frozen=True, slots=True)
class _Profile:
    """A profile's fields, one text a dialogue, and its lists."""

    texts: dict[str, pl.Series]
    lists: dict[str, pl.DataFrame]


def _read_turns(
    turn: JsonPlaces, options: MemoryFinanceOptions, problems: Problems
) -> dict[str, pl.DataFrame]:
    for key in ("gt_turn_tags", "recall", "compliance"):
        expect(turn[key].values, OBJECT, "an object or null", problems)
    tags, recall = turn["gt_turn_tags"], turn["recall"]
    number = turn["turn_pair_id"].values
    turns = pl.DataFrame(
        {
            "dialogue_row": number.dialogue,
            "turn_pair_id": whole_numbers(number, problems),
            "ok": texts(turn["turn_status"].values, problems).eq_missing("ok"),
            "reply": python_texts(
                turn["pred_assistant_text"].values, problems, falsy_is_empty=True
            ),
            "compliance_label": python_texts(
                tags["compliance_label_gt"].values, problems, falsy_is_empty=True
            ),
        }
    )
    contexts = _read_contexts(recall, problems)
    keys = tags["memory_required_keys_gt"]
    risks, rubric = tags["risk_disclosure_required_gt"], tags["explainability_rubric_gt"]
    return {
        "turns": turns,
        "contexts": contexts,
        "memory_keys": pl.DataFrame(schema={"turn_row": pl.Int64, "key": pl.String})
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
) -> pl.DataFrame:
    """Read arrays of strings: a row an element, with the row of its array."""
    expect(lists.values, ARRAY, "an array of strings or null", problems)
    found, owner = lists.each.values, lists.each.owner
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


def _read_contexts(recall: JsonPlaces, problems: Problems) -> pl.DataFrame:
    """Read what was recalled from each source in each turn: one text, of items one each."""
    n_turns, items = len(recall.values), recall["items"]
    turns = np.arange(n_turns)
    expect(items.values, ARRAY, "an array of items or null", problems)
    _expect_objects(items.each.values, "an object that holds an item", problems)
    found = {
        "short_term": (recall["short_term_context"].values, turns),
        "long_term": (items.each["content"].values, items.each.owner),
        "profile": (recall["profile_context"].values, turns),
    }
    sources = [found[source] for source in MEMORY_SOURCES]
    written = [written_texts(values, problems) for values, _ in sources]
    return pl.DataFrame(
        {
            "context": np.concatenate([s * n_turns + turn for s, (_, turn) in enumerate(sources)]),
            "written": pl.concat([texts for texts, _ in written], rechunk=True),
            "escapes": np.concatenate([escapes for _, escapes in written]),
        }
    )


def _read_violations(lists: JsonPlaces, problems: Problems) -> pl.DataFrame:
    expect(lists.values, ARRAY, "an array of violations or null", problems)
    _expect_objects(lists.each.values, "an object that holds a violation", problems)
    return pl.DataFrame(
        {
            "turn_row": lists.each.owner,
            **{
                name: python_texts(lists.each[name].values, problems, falsy_is_empty=False)
                for name in ("type", "severity")
            },
        }
    )


def _read_profile(column: pl.Series, valid: Mask, problems: Problems) -> tuple[_Profile, Mask]:
    """Read the labelled profiles, and which of them are objects with any member."""
    values = expect(line_values(column).where(valid), OBJECT, "an object or null", problems)
    wanted = {**dict.fromkeys(_PROFILE_TEXTS), "constraints_gt": [None], "preferences_gt": [None]}
    found = places(values, wanted, problems)
    profile = _Profile(
        {
            name: python_texts(found[key].values, problems, falsy_is_empty=False)
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
    found: Mask = (values.tags == OBJECT) & (values.end > values.start)
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
    wanted = {**dict.fromkeys(_SNAPSHOT_TEXTS), **{key: [None] for key in _SNAPSHOT_LISTS}}
    found = places(values.take(last[dialogues]), wanted, problems)
    at = np.full(n_dialogues, -1, np.int64)
    at[dialogues] = np.arange(len(dialogues))
    gather = pl.Series(at).set(pl.Series(at < 0), None)
    lists = {}
    for key in _SNAPSHOT_LISTS:
        frame = _read_list(found[key], "row", "text", problems)
        of_dialogue = dialogues[frame["row"].to_numpy()]
        lists[key] = pl.DataFrame({"dialogue_row": of_dialogue, "text": frame["text"]})
    return _Profile(
        {
            name: python_texts(found[key].values, problems, falsy_is_empty=False).gather(gather)
            for key, name in _SNAPSHOT_TEXTS.items()
        },
        {"topics": lists["preferred_topics"], "assets": lists["forbidden_assets"]},
    )


def _read_history(
    column: JsonValues, turn: JsonPlaces, problems: Problems
) -> dict[str, pl.DataFrame]:
    """Read the turns that a memory key can point at.

    They are the dataset's own turns; in their absence the trace's user texts or, where the first
    turn of the trace has none, the trace's turns taken as the dataset's.
    """
    lists = expect(column, ARRAY, "an array of turns or null", problems)
    spoken = places(lists, [_SPOKEN], problems).each
    expect(spoken.values, OBJECT, "an object that holds a turn", problems)
    dialogue = turn.values.dialogue
    has_raw = np.isin(dialogue, np.unique(spoken.values.dialogue))
    first = np.append(True, dialogue[1:] != dialogue[:-1]) if len(dialogue) else np.zeros(0, bool)
    says_user_text = (turn["user_text"].values.tags[first] != 0)[np.cumsum(first) - 1]

    history = _spoken_frame(spoken["role"].values, spoken["text"].values, problems)
    as_raw = np.flatnonzero(~has_raw & ~says_user_text)
    if len(as_raw):
        role, text = (turn[key].values.take(as_raw) for key in ("role", "text"))
        history = _in_order(history, _spoken_frame(role, text, problems))
    users = _paired_users(history)
    told = np.flatnonzero(~has_raw & says_user_text)
    if len(told):
        said = turn["user_text"].values.take(told)
        texts = python_texts(said, problems, falsy_is_empty=True)
        told_users = pl.DataFrame({"dialogue_row": said.dialogue, "text": texts})
        users = _in_order(users, told_users)
    return {"history": history.drop("role"), "user_history": users}


def _in_order(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([one, other]).sort("dialogue_row", maintain_order=True)


def _spoken_frame(role: JsonValues, text: JsonValues, problems: Problems) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "dialogue_row": role.dialogue,
            "role": texts(role, problems),
            "text": python_texts(text, problems, falsy_is_empty=True),
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
