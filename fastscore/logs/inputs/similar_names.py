"""Which of the keys that were found a declared column probably is: for messages, never to read."""

import difflib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from fastscore.logs.inputs.column_map import Flag, value_flag
from fastscore.logs.inputs.found_keys import ANY_KEY, FoundKey
from fastscore.suites.declarations import Column

_LEAST_SIMILARITY = 0.8
_MOST_COMPARED = 2_000
_SYNONYMS = (
    "text content utterance message value body sentence said transcript",
    "speaker role from author sender actor who name participant member agent user party side "
    "sender_type author_type sender_role author_role speaker_role speaker_id",
    "conversation messages turns dialogue dialog conversations utterances history chat exchanges",
    "prediction pred predicted hypothesis guess output response generated completion text",
    "ground_truth reference target gold label truth expected answer text",
    "pred_assistant_text response reply assistant_text assistant_response answer output prediction",
    "plan itinerary trip schedule final_plan",
    "intent act dialogue_act action type",
    "event type kind",
    "utterance_index utterance turn turn_index index",
    "step step_index position",
    "dialogue_id dialog_id dialogue_uid session_id conversation_id id",
    "experiment_level level experiment exp",
    "guest_persona persona profile character",
    "target_order order target items",
    "shift_events shifts shift_points",
    "user_meta meta metadata annotations",
    "gt_turn_tags tags labels turn_tags",
    "profile_gt profile gold_profile user_profile",
    "tool_calls tools calls function_call",
    "user human client customer guest",
    "system assistant bot gpt agent model chatgpt",
    "predicted prediction predict pred",
    "utterance_complete complete completed final",
    "turn_status status state outcome result",
    "valid_dialog valid is_valid valid_dialogue",
    "ok okay success succeeded successful done completed complete",
)
_GROUPS = tuple(tuple(_group.split()) for _group in _SYNONYMS)
KINDS = {
    "text": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "booleans",
    "json": "objects or arrays",
}
"""What messages call the values of a column, by its kind."""
_REFERENCE = re.compile(
    r"gt|ref|refs|(ground)?truth|human|expected|(gold|reference|label|user|target)\w*"
)
_PREDICTION = re.compile(
    r"hyp|output|completion|reply|answer|assistant|system|model|bot|"
    r"(pred|hypothes|response|generat)\w*"
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _plain(name: str) -> str:
    """Write a name without case and without what parts its words."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


@lru_cache(1 << 14)
def name_similarity(name: str, other: str) -> float:
    """Return how near two names are: 1 where only case and signs differ, 0 where nothing is."""
    if _plain(name) == _plain(other):
        return 1.0
    places = (
        group.index(other.casefold()) / len(group)
        for group in _GROUPS
        if name.casefold() in group and other.casefold() in group
    )
    together = min(places, default=None)
    if together is not None:
        return 0.95 - 0.1 * together
    ratio = difflib.SequenceMatcher(None, _plain(name), _plain(other)).ratio()
    return 0.8 * ratio if ratio >= _LEAST_SIMILARITY else 0.0


def keys_of_others(columns: Iterable[Column], but: str) -> set[str]:
    """Return the keys that columns are read by, all but those of one name."""
    return {key for column in columns if column.name != but for key in column.keys}


def nearest_key(
    column: Column, keys: Mapping[str, FoundKey], taken: Collection[str] = ()
) -> str | None:
    """Return the path of the key that a column probably is, None where none is near.

    A key whose values the column could not take is not near, nor is a reference of what a model
    wrote, nor what a model wrote of a reference. Of very many keys the first are looked at.

    Parameters
    ----------
    column
        The declared column.
    keys
        The keys that were found, by path.
    taken
        Paths that are another column's.
    """
    types, side = json_types(column), _side(column.name)
    best, best_score = None, 0.0
    for path, found in itertools.islice(keys.items(), _MOST_COMPARED):
        if (
            path in taken
            or ANY_KEY in path
            or types.isdisjoint(found.types)
            or _side(path) == -side != 0
        ):
            continue
        last = path.rpartition("]")[2].rpartition(".")[2]
        score = max(name_similarity(name, last) for name in (column.name, *column.aliases))
        score *= 0.99 ** path.count(".")
        if score > best_score:
            best, best_score = path, score
    return best


def json_types(column: Column) -> set[str]:
    """Return the JSON types of which a column is probably made."""
    if column.items:
        return {"array"}
    if column.kind == "json":
        return {"object", "array", "string", "boolean"}
    if column.kind in ("integer", "number"):
        # what else it accepts are ways of writing a number
        return {"integer", column.kind, *({"number", "string"} & set(column.accepts))}
    if column.kind != "text":
        return {column.kind}
    # words of a closed list, such as roles, may be written as numbers
    return {"string", "integer"} if column.expects or column.expects_any else {"string"}


def _side(path: str) -> int:
    """Return 1 where a name is of a reference, -1 where it is of what a model wrote, else 0."""
    words = [word.casefold() for word in _WORDS.findall(path)]
    if any(map(_REFERENCE.fullmatch, words)):
        return 1
    return -1 if any(map(_PREDICTION.fullmatch, words)) else 0


def nearest_words(name: str, words: Iterable[str], known: Collection[str]) -> list[Flag]:
    """Return the flags to type for words of a column that probably stand for known ones."""
    flags = []
    for word in words:
        score, best = max(
            ((name_similarity(each, word), each) for each in known), default=(0.0, "")
        )
        if score > 0.0 and best and not best.endswith("*"):
            flags.append(value_flag(name, word, best))
    return flags
