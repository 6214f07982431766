"""M1: what each required memory key points at, and which recalled contexts hold it."""

import re

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask

from fastscore.suites.columns import list_column
from fastscore.suites.grouping import counts_of, group_offsets
from fastscore.suites.memory_finance.events import Frames
from fastscore.suites.memory_finance.joined_texts import joined_contain
from fastscore.suites.memory_finance.labels import of_labels
from fastscore.suites.memory_finance.lexicon import PROFILE_FIELDS
from fastscore.suites.memory_finance.metrics import MEMORY_SOURCES
from fastscore.suites.memory_finance.schema import (
    RESOLVED_KEY_DTYPE,
    RESOLVERS,
    SOURCE_HITS_DTYPE,
)

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
    """Resolve the required keys and look for their targets in what was recalled.

    Returns
    -------
    dict
        A row a turn: ``required_keys_raw``, ``resolved_keys``, ``key_hit_flags``,
        ``key_hit_sources`` and ``m1_source_hits`` as in the table ``turns``; ``n_keys`` counts
        resolvable keys, ``n_recalled`` those recalled, ``n_SOURCE`` those recalled from each.
    """
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
