"""M1: what each required memory key points at, and which recalled contexts hold it."""

import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from fastscore.suites.columns import list_column
from fastscore.suites.distinct import distinct
from fastscore.suites.json_values import Indices, Mask
from fastscore.suites.memory_finance.lexicon import PROFILE_FIELDS
from fastscore.suites.memory_finance.matching import contains
from fastscore.suites.memory_finance.schema import (
    MEMORY_SOURCES,
    RESOLVED_KEY_DTYPE,
    RESOLVERS,
    SOURCE_HITS_DTYPE,
)

Frames = Mapping[str, pl.DataFrame]

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


def score_memory_keys(frames: Frames) -> pl.DataFrame:
    """Resolve the required keys and look for their targets in what was recalled.

    Returns
    -------
    pl.DataFrame
        A row a turn: ``required_keys_raw``, ``resolved_keys``, ``key_hit_flags``,
        ``key_hit_sources`` and ``m1_source_hits`` as in the table ``turns``; ``n_keys`` and
        ``n_key_hits`` count resolvable keys and those that were recalled.
    """
    keys, turns = frames["memory_keys"], frames["turns"]
    turn_row = keys["turn_row"].to_numpy()
    target, resolver = _resolve(keys, turns["dialogue_row"].to_numpy()[turn_row], frames)
    resolvable = np.flatnonzero(target.is_not_null().to_numpy())
    turn_of_key = turn_row[resolvable]
    found = _recall(turns, turn_of_key, target.gather(resolvable))
    hit = found.any(axis=1)

    offsets = _offsets(turn_row, turns.height)
    offsets_of_resolvable = _offsets(turn_of_key, turns.height)
    resolved = pl.DataFrame(
        {
            "key": keys["key"],
            "resolvable": target.is_not_null(),
            "target_text": target,
            "resolver": pl.Series(RESOLVERS).gather(resolver),
        }
    ).to_struct("")
    hits_of_source = [
        _count(turn_of_key[found[:, source]], turns.height) for source in range(len(MEMORY_SOURCES))
    ]
    sources = pl.Series(_SOURCE_SETS, dtype=pl.List(pl.String)).gather(found @ (1, 2, 4))
    return pl.DataFrame(
        {
            "required_keys_raw": list_column(keys["key"], offsets),
            "resolved_keys": list_column(resolved, offsets).cast(pl.List(RESOLVED_KEY_DTYPE)),
            "key_hit_flags": list_column(pl.Series(hit.astype(np.int64)), offsets_of_resolvable),
            "key_hit_sources": list_column(sources, offsets_of_resolvable),
            "m1_source_hits": pl.DataFrame(
                hits_of_source, schema=dict(SOURCE_HITS_DTYPE)
            ).to_struct(),
            "n_keys": _count(turn_of_key, turns.height),
            "n_key_hits": _count(turn_of_key[hit], turns.height),
        }
    )


_SOURCE_SETS = [
    [source for bit, source in enumerate(MEMORY_SOURCES) if number >> bit & 1]
    for number in range(1 << len(MEMORY_SOURCES))
]


def _resolve(keys: pl.DataFrame, dialogue: Indices, frames: Frames) -> tuple[pl.Series, Indices]:
    """Return each key's target, null where it has none, and its resolver."""
    codes, texts = distinct(keys["key"])
    parsed = np.array([parse_key(text) for text in texts], np.int64).reshape(-1, 2)[codes]
    kind, number = parsed[:, 0], parsed[:, 1]
    n_dialogues = frames["dialogues"].height
    pool = [frames["dialogues"][f"gt_{name}"] for name in PROFILE_FIELDS]
    place = np.where(kind < _CONSTRAINT, kind * n_dialogues + dialogue, -1)
    resolver = np.where(kind < _CONSTRAINT, _FIELD, _UNRESOLVED)

    def point(frame: pl.DataFrame, rows: Mask, index: Indices, with_resolver: int) -> None:
        """Point the rows whose index lies in their dialogue's list at that element."""
        offsets = _offsets(frame["dialogue_row"].to_numpy(), n_dialogues)
        start, length = offsets[dialogue], np.diff(offsets)[dialogue]
        inside = rows & (index >= 0) & (index < length) & (resolver == _UNRESOLVED)
        base = sum(len(series) for series in pool)
        place[inside] = base + start[inside] + index[inside]
        resolver[inside] = with_resolver
        pool.append(frame["text"])

    point(frames["constraints"], kind == _CONSTRAINT, number, _CONSTRAINTS)
    point(frames["preferences"], kind == _PREFERENCE, number, _PREFERENCES)
    point(frames["user_history"], kind == _HISTORY, number - 1, _USER_TURN)
    point(frames["history"], kind == _HISTORY, number - 1, _ABS_TURN)
    target = pl.concat([series.alias("") for series in pool]).gather(
        pl.Series(np.maximum(place, 0)).set(pl.Series(place < 0), None)
    )
    blank_turn = pl.Series(resolver == _ABS_TURN) & target.eq("")
    target = target.set(blank_turn, None)
    return target, np.where(target.is_null().to_numpy(), _UNRESOLVED, resolver)


def _recall(turns: pl.DataFrame, turn_of_key: Indices, target: pl.Series) -> Mask:
    """Return for each key and source whether the source holds the key's target."""
    found = np.zeros((len(target), len(MEMORY_SOURCES)), np.bool_)
    searched = np.flatnonzero((target != "").to_numpy())
    needles, rows = target.gather(searched), turn_of_key[searched]
    for position, column in enumerate(("short_term", "long_term", "profile_context")):
        found[searched, position] = contains(turns[column].gather(rows), needles)
    return found


def _offsets(rows: Indices, size: int) -> Indices:
    """Return the offsets of ascending row numbers."""
    return np.searchsorted(rows, np.arange(size + 1))


def _count(rows: Indices, size: int) -> Indices:
    return np.bincount(rows, minlength=size).astype(np.int64)
