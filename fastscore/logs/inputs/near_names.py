"""What keys, words and speakers are called in logs, and which names mean the same.

Every proposal looks for near names here. Names that are known are in ``names.toml``.
"""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from itertools import dropwhile
from typing import Any

from fastscore.logs.inputs.column_map import LEFT_OUT, Flag, value_flag
from fastscore.suites.chats import ASSISTANT_ROLE, SYSTEM_ROLE, USER_ROLE, ChatRows
from fastscore.suites.declarations import Column

_LEAST_SIMILARITY = 0.8
_OF_TEXT = re.compile(r"(?<=\w)[ _-](text|str|string|value)$|(?<=[a-z])(Text|Str|Value)$")
"""What names of texts end in that says nothing more: ``pred_text``."""
_OF_NAMES = {"name", "id", "version", "key", "label", "slug"}
_NUMBER = re.compile(r"\d+")
_TWO_WORDS = re.compile(r"[^\W\d_]+[ _-]([^\W\d_]{2,})")
_OTHER_SIDE = {USER_ROLE: ASSISTANT_ROLE, ASSISTANT_ROLE: USER_ROLE}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@cache
def _names() -> Mapping[str, Any]:
    content = tomllib.loads(files(__package__).joinpath("names.toml").read_text("utf-8"))
    roles = {word: role for role, words in content["roles"].items() for word in words}
    synonyms = [[*map(_plain, group)] for group in content["synonyms"]]
    return {**content, **content["roles_by_others"], "roles": roles, "synonyms": synonyms}


@cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(_names()["keys"][kind], re.IGNORECASE)


def is_called(kind: str, key: str) -> bool:
    """Tell whether a key is called as those of a kind are: ``time``, ``step``, ``session``."""
    return _pattern(kind).fullmatch(key) is not None


@cache
def _words(kind: str) -> tuple[frozenset[str], tuple[str, ...]]:
    words = _names()["words"][kind].split()
    return frozenset(words), tuple(word[:-1] for word in words if word.endswith("*"))


def _has_word(kind: str, path: str) -> bool:
    """Tell whether a word in a path is of a kind."""
    whole, begins = _words(kind)
    words = [word.casefold() for word in _WORDS.findall(path)]
    return not whole.isdisjoint(words) or any(word.startswith(begins) for word in words if begins)


_SIGNS = re.compile(r"[\W_]+")


@lru_cache(1 << 14)
def _plain(name: str) -> str:
    """Write a name without case and without what parts its words."""
    return _SIGNS.sub("", name.casefold())


@lru_cache(1 << 14)
def _similarity(name: str, other: str) -> float:
    """Return how near two names are: 1 where only case and signs differ, 0 where nothing is."""
    if _plain(name) == _plain(other):
        return 1.0
    places = (
        group.index(_plain(other)) / len(group)
        for group in _names()["synonyms"]
        if _plain(name) in group and _plain(other) in group
    )
    together: float | None = min(places, default=None)
    if together is not None:
        return 0.95 - 0.1 * together
    ratio = difflib.SequenceMatcher(None, _plain(name), _plain(other)).ratio()
    return 0.8 * ratio if ratio >= _LEAST_SIMILARITY else 0.0


def nearest(names: Iterable[str], others: Iterable[str]) -> str | None:
    """Return the one of other names, or of paths that end in them, that is nearest; None if none.

    Of equally near paths the one with the fewest objects around it counts, then the first.
    """
    names = tuple(names)
    best, best_score = None, 0.0
    for other in others:
        last = other.rpartition("]")[2].rpartition(".")[2] or other
        forms = {last: 1.0, _OF_TEXT.sub("", last): 0.95}
        near = max(_similarity(n, form) * part for n in names for form, part in forms.items())
        score = near * 0.99 ** other.count(".")
        if score > best_score:
            best, best_score = other, score
    return best


def side_of(path: str) -> int:
    """Return 1 where a name is of a reference, -1 where it is of what a model wrote, else 0."""
    if _has_word("reference", path):
        return 1
    return -1 if _has_word("prediction", path) else 0


def is_of_reply(path: str) -> bool:
    """Tell whether a key, or one above it, is called as what a model wrote."""
    return _has_word("reply", path)


def may_be_unsaid(key: str) -> bool:
    """Tell whether a key may mark messages that were not said to the other side."""
    return is_called("unsaid", key) or is_called("audience", key)


def is_unsaid(key: str, value: str) -> bool:
    """Tell whether a key marks a message as one that was not said to the other side."""
    marks = {"true": "unsaid", "false": "chosen"}
    if value in marks:
        return is_called(marks[value], key)
    return is_called("audience", key) and _has_word("unsaid", value)


def is_of_model(path: str) -> bool:
    """Tell whether a key is called as what names a model or a system is: ``llm``, ``model_id``."""
    words = [word.casefold() for word in _WORDS.findall(path.rpartition(".")[2])]
    return bool(words) and words[0] in _names()["models"] and {*words[1:]} <= _OF_NAMES


def is_of_one_model(path: str) -> bool:
    """Tell whether a key is called as a reply of one model is: ``gpt-4o``, ``response_b``."""
    return is_called("numbered", path) or _has_word("family", path)


def is_of_user(key: str) -> bool:
    """Tell whether a key is called as the id of a user is: ``user_id``, ``customerId``."""
    words = [word.casefold() for word in _WORDS.findall(key.rpartition(".")[2])]
    return words[1:] == ["id"] and role_meanings(words[:1]).get(words[0]) == USER_ROLE


def role_meanings(words: Collection[str]) -> dict[str, str]:
    """Return the roles of words; a word that nothing is known of has none.

    ``agent`` beside a user replies, as a colleague of the assistant may; ``system`` replies, except
    beside another word that does, or two unknown ones: then it is a prompt or a notice. Of two
    words the last one counts: ``end-user``.
    """
    names = _names()
    plain = {word: word.strip().casefold() for word in words}
    pairs = {word: _TWO_WORDS.fullmatch(name) for word, name in plain.items()}
    plain |= {
        word: pair[1] for word, pair in pairs.items() if pair and plain[word] not in names["roles"]
    }
    found, letters = (
        {word: meanings[name] for word, name in plain.items() if name in meanings}
        for meanings in (names["roles"], names["letters"])
    )
    if {USER_ROLE, ASSISTANT_ROLE} <= set(letters.values()):
        found |= letters
    agents = [word for word, name in plain.items() if name in names["agents"]]
    if USER_ROLE in found.values():
        found |= dict.fromkeys(agents, ASSISTANT_ROLE)
    systems = [word for word, name in plain.items() if name in names["systems"]]
    unknown = plain.keys() - found.keys() - {*systems}
    replies = ASSISTANT_ROLE in found.values() or (not found and len(unknown) > 1)
    return found | dict.fromkeys(systems, SYSTEM_ROLE if replies else ASSISTANT_ROLE)


def roles_of_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return who says what keys hold, also before words for texts: ``bot_response``."""
    texts, _ = _words("text")
    heads: dict[str, str] = {}
    for key in keys:
        words = [word.casefold() for word in _WORDS.findall(key.rpartition(".")[2])]
        head = list(dropwhile(texts.__contains__, reversed(words)))[::-1]
        # a message of the system is a prompt
        if head and head != words and not {*head} & {*_names()["systems"]}:
            heads[key] = " ".join(head)
        else:
            heads[key] = key
    meanings = role_meanings({*heads.values()})
    return {key: meanings[head] for key, head in heads.items() if head in meanings}


def replies_beside_user(word: str) -> bool:
    """Tell whether a word says nothing by itself, and replies beside a user: ``agent``."""
    beside = role_meanings([word, USER_ROLE])
    return not role_meanings([word]) and beside.get(word) == ASSISTANT_ROLE


def roles_of_two(words: Collection[str]) -> dict[str, str]:
    """Return the roles of words; of two speakers one of whom is known also the other's."""
    found = role_meanings(words)
    unknown = [word for word in words if word not in found]
    if len(words) == 2 and len(unknown) == 1:
        other = _OTHER_SIDE.get(*found.values())
        found |= {unknown[0]: other} if other else {}
    return found


def meanings_of_truth(key: str) -> dict[str, str]:
    """Return who speaks where a key such as ``is_bot`` is true, and where it is false."""
    said = {*role_meanings([word.casefold() for word in _WORDS.findall(key)]).values()}
    true = next(iter(said)) if len(said) == 1 else ""
    other = _OTHER_SIDE.get(true)
    return {"true": true, "false": other} if other else {}


def word_flags(
    column: Column,
    words: Collection[str],
    stands: Collection[str],
    known: Collection[str],
    rows: ChatRows | None,
) -> list[Flag]:
    """Return the flags to type for words of a column: of speakers by their roles, else by names.

    ``stands`` are words of the suite that the column has as well, ``known`` those that a word can
    mean.
    """
    own = dict(rows.words) if rows is not None and column.name == rows.speaker else {}
    roles = {word: role for role, word in own.items()}
    # a word of the suite has the suite's meaning, whatever it means elsewhere
    meanings = role_meanings([*words, *(roles.get(word, word) for word in stands)]) if own else {}
    if own and {*words} == {"true", "false"}:
        meanings = meanings_of_truth(column.keys[0])
    # of speakers that only a number tells apart, no two are one
    numbered = Counter(_NUMBER.sub("", word) for word in words if own)
    flags = []
    for word in words:
        is_unlike = word not in meanings and numbered[_NUMBER.sub("", word)] < 2
        near = nearest([word], known) if is_unlike else None
        means = own.get(meanings[word], LEFT_OUT) if word in meanings else near
        # only objects of an array can be left out, and a beginning is no word
        is_word = means or (near is None and rows is not None and rows.array)
        if means is not None and is_word and means != word and not means.endswith("*"):
            flags.append(value_flag(column.name, word, means))
    return flags
