"""Structured answers: read strictly, asked for again where they cannot be used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from fastscore.llm.client import ChatClient
from fastscore.llm.requests import ASSISTANT, LENGTH, USER, Answer, ChatRequest

MOST_AGAIN = 2
"""How often an answer that cannot be used is asked for again."""

Read = TypeVar("Read")


class UnusableError(Exception):
    """An answer that is not what was asked for; says why."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[Read]):
    """What became of a request.

    Parameters
    ----------
    value
        What was read; None where no answer could be used.
    fault
        What was wrong with the last answer; empty where nothing was.
    answer
        The last answer.
    attempts
        How many there were.
    """

    value: Read | None
    fault: str
    answer: Answer
    attempts: int


def ask_until_read(
    client: ChatClient,
    request: ChatRequest,
    read: Callable[[dict[str, Any]], Read],
    again: Callable[[str], str],
) -> Structured[Read]:
    """Ask for a JSON object until one can be used, at most `MOST_AGAIN` times more.

    Parameters
    ----------
    client, request
        Who asks what.
    read
        Reads the object; raises `UnusableError`.
    again
        What a model is told after an answer with this fault.
    """
    for attempt in range(1, MOST_AGAIN + 2):
        answer = client.ask(request)
        try:
            return Structured(read(read_object(answer)), "", answer, attempt)
        except UnusableError as error:
            fault = str(error)
        said = (ASSISTANT, answer.text or "(nothing)")
        request = request.again(said, (USER, again(fault)))
    return Structured(None, fault, answer, MOST_AGAIN + 1)


def read_object(answer: Answer) -> dict[str, Any]:
    """Read an answer that is one JSON object; a code fence around it is no fault.

    Raises
    ------
    UnusableError
        It is none.
    """
    if answer.refused:
        raise UnusableError("refused")
    if answer.finish_reason == LENGTH:
        raise UnusableError("cut off before its end")
    try:
        found = orjson.loads(_unfenced(answer.text))
    except orjson.JSONDecodeError:
        raise UnusableError("not a JSON object" if answer.text.strip() else "empty") from None
    if not isinstance(found, dict):
        raise UnusableError("not a JSON object")
    return found


def _unfenced(text: str) -> str:
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and len(stripped) > 6:
        return stripped[3:-3].removeprefix("json").strip()
    return stripped
