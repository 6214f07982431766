"""What an answer says: reasoning blocks are passed over, and a JSON object is found in the rest."""

import json
import re
from typing import Any

_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think"
_BLOCK = re.compile(rf"<({_TAGS})>.*?</\1>|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE)
# many templates open the block in the prompt, so that an answer only closes it
_END = re.compile(rf".*(?:</(?:{_TAGS})>|\[/THINK\])", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(rf"(?:<(?:{_TAGS})>|\[THINK\]).*", re.DOTALL | re.IGNORECASE)
_CHANNEL = re.compile(r".*<\|channel\|>final<\|message\|>", re.DOTALL)
_CHANNELS_ONLY = re.compile(r"^\s*<\|channel\|>(?:analysis|commentary)\b.*", re.DOTALL)
_MARKS = re.compile(r"<\|(?:end|return|im_end|eot_id)\|>\s*$")

_REFUSAL = re.compile(
    r"(?:i['\u2019]?m (?:very |so )?sorry|sorry|i apologi[sz]e|unfortunately)?[,.;:! ]*(?:but )?"
    r"(?:i (?:cannot|can['\u2019]?t|can not|won['\u2019]?t|will not|am (?:not able|unable)"
    r"|must decline)|i['\u2019]?m (?:not able|unable)|as an ai\b)",
    re.IGNORECASE,
)


class NoObjectError(Exception):
    """A text without the one JSON object that was asked for; says why."""


def without_reasoning(text: str) -> str:
    """Return what an answer says beside its reasoning blocks, without blanks around it.

    A block that is never closed goes to the end of the answer.
    """
    if _CHANNEL.match(text):
        text = _CHANNEL.sub("", text)
    text = _CHANNELS_ONLY.sub("", text)
    text = _END.sub("", _BLOCK.sub("", text))
    return _MARKS.sub("", _OPEN.sub("", text)).strip()


def is_refusal(text: str) -> bool:
    """Tell whether an answer begins as models that decline do."""
    return _REFUSAL.match(without_reasoning(text)) is not None


def find_object(text: str) -> dict[str, Any]:
    """Find the JSON object in an answer; reasoning, code fences and text around it are passed over.

    Raises
    ------
    NoObjectError
        There is none, there are several that differ, or a member is given twice.
    """
    said = without_reasoning(text)
    if not said:
        raise NoObjectError("nothing beside reasoning" if text.strip() else "empty")
    found: list[dict[str, Any]] = []
    at = 0 if said.startswith(("{", "[")) else said.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(said, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and value not in found:
                found.append(value)
        at = said.find("{", end)
    if not found:
        raise NoObjectError("not a JSON object")
    if len(found) > 1:
        raise NoObjectError(f"{len(found)} JSON objects that differ")
    return found[0]


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name in members if sum(name == each for each, _ in pairs) > 1)
        raise NoObjectError(f"{twice!r:.40} twice")
    return members


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", "", 0)


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_constant)
