"""Which key of turns says who speaks, if it has a name that no layout knows: told by its values."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from fastscore.logs.inputs.column_map import EACH
from fastscore.logs.inputs.document_values import json_of_text, value_at
from fastscore.logs.inputs.found_keys import FoundKeys
from fastscore.logs.inputs.roles import role_meanings
from fastscore.logs.inputs.similar_names import name_similarity
from fastscore.suites.chats import ASSISTANT_ROLE, USER_ROLE

_MOST_SPEAKERS = 8
_FEWEST_TURNS = 4
"""From how many turns on two values that alternate are speakers."""
_SPEAKERS = 2
_RECORDS = 20


def speaker_key(turns: Sequence[Mapping[str, Any]], read: Collection[str] = ()) -> str | None:
    """Return the path of the value that says who speaks in the turns of one dialogue.

    Its values are few: known words for roles, or two that alternate, or those of a key that is
    called as speakers are. None if there is none.

    Parameters
    ----------
    turns
        The turns as they were found.
    read
        Paths that have another meaning.
    """
    found: dict[str, list[str]] = {}
    for turn in turns:
        for path, value in _scalars(turn):
            if path not in read:
                found.setdefault(path, []).append(str(value))
    by_rank: dict[int, str] = {}
    for path, words in found.items():
        if 2 * len(words) >= len(turns):
            by_rank.setdefault(_rank(path, words), path)
    by_rank.pop(0, None)
    return by_rank[max(by_rank)] if by_rank else None


def _scalars(turn: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the texts, integers and truth values of a turn and of the objects in it."""
    for key, value in turn.items():
        if isinstance(value, str | int):
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}.{k}", v) for k, v in value.items() if isinstance(v, str | int))


def _rank(path: str, words: Sequence[str]) -> int:
    """Return how surely the values of a path are speakers; 0 if they are none."""
    distinct = set(words)
    if len(distinct) > _MOST_SPEAKERS:
        return 0
    meanings = set(role_meanings(distinct).values())
    if USER_ROLE in meanings or (ASSISTANT_ROLE in meanings and len(distinct) > 1):
        return 3
    if not _SPEAKERS <= len(distinct) <= max(_SPEAKERS, len(words) // 2):
        return 0
    if name_similarity("speaker", path.rpartition(".")[2]):
        return 2
    alternate = len(distinct) == _SPEAKERS and all(a != b for a, b in pairwise(words))
    return int(alternate and len(words) >= _FEWEST_TURNS)


def mark_speakers(found: FoundKeys, rows: Iterable[Mapping[str, Any]]) -> None:
    """Mark the keys of arrays whose values are speakers in some of the first rows."""
    arrays = [array for array in found.arrays if EACH not in array]
    for row in islice(rows, _RECORDS):
        for array in arrays:
            value = value_at(row, array)
            value = json_of_text(value) if isinstance(value, str) else value
            turns = [each for each in value if isinstance(each, dict)] if value else []
            path = speaker_key(turns) if isinstance(value, list) else None
            key = found.keys.get(f"{array}{EACH}{path}") if path else None
            if key is not None:
                key.names_speakers = True
