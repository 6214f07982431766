"""Judging dialogues by a chat model and a rubric.

An answer is one JSON object of whole numbers inside the scale. Any other answer is asked for again,
the model told why, and in the end listed as a failure with its text. Nothing is clamped or filled.
Repeats show the dimensions in rotated order, each order equally often, so that the position of a
dimension neither biases its mean nor is taken for noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from fastscore.errors import UsageError
from fastscore.llm.client import ChatClient, Structured, ask_each, ask_until_read
from fastscore.llm.requests import SYSTEM, USER, ChatRequest, ModelOptions, check_members
from fastscore.llm.rubrics import Rubric
from fastscore.llm.spending import Failure, UnusableError
from fastscore.llm.transcripts import DATA, Transcript, quoted
from fastscore.run.progress import Reporter

SCORE_SCHEMA: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "repeat": pl.Int64(),
    "dimension": pl.String(),
    "position": pl.Int64(),
    "score": pl.Int64(),
    "attempts": pl.Int64(),
}
"""A judge's score: of which dialogue (its number from 0), repeat (from 1) and dimension, at which
position of the rubric it was asked (from 1), and after how many answers it came."""

FAILURE_SCHEMA: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "repeat": pl.Int64(),
    "kind": pl.String(),
    "reason": pl.String(),
    "expected": pl.String(),
    "answer": pl.String(),
    "attempts": pl.Int64(),
}
"""A repeat without scores: why, what was expected, and the last answer as it came."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """The scores of a judge, in `SCORE_SCHEMA` and `FAILURE_SCHEMA`, in the order of the dialogues.

    `not_asked` are numbers of dialogues that were not asked about, wholly or in part, because too
    many others had failed.
    """

    scores: pl.DataFrame
    failures: pl.DataFrame
    not_asked: frozenset[int]
    first_failure: Failure | None

    @property
    def failed(self) -> frozenset[int]:
        """The numbers of dialogues of which a repeat failed."""
        return frozenset(self.failures["row"])


def check_repeats(rubric: Rubric, repeats: int) -> None:
    """Refuse repeats that show some orders of the dimensions more often than others."""
    orders = len(rubric.questions)
    if repeats == 1 or repeats % orders == 0:
        return
    below = repeats - repeats % orders
    balanced = " or ".join(str(each) for each in dict.fromkeys((below or 1, below + orders)))
    raise UsageError(
        f"repeats={repeats} is not balanced: the {orders} dimensions of rubric {rubric.name} are "
        f"shown in {orders} orders, each of which must come equally often.",
        f"Use repeats={balanced}, or any other multiple of {orders}.",
    )


def judge_dialogues(
    transcripts: Sequence[Transcript],
    rubric: Rubric,
    model: str,
    client: ChatClient,
    reporter: Reporter,
    *,
    repeats: int = 1,
    seed: int = 0,
) -> Judgements:
    """Judge dialogues, each repeat with another seed, until more of them failed than may."""
    places = [(row, repeat) for row in range(len(transcripts)) for repeat in range(repeats)]

    def ask(place: tuple[int, int]) -> Structured[dict[str, int]]:
        row, repeat = place
        slots = _slots(rubric, rotated(tuple(rubric.questions), repeat))
        return ask_until_read(
            client,
            judge_request(transcripts[row], rubric, model, client.options, repeat, seed),
            lambda read: checked_scores(read, rubric),
            lambda fault: rubric.prompts["again"].format(fault=fault, **slots).strip(),
        )

    answers = ask_each(
        client,
        places,
        ask,
        reporter,
        stage="judge",
        noun="judgements",
        sample_of=lambda number: places[number][0],
    )
    expected = f"an object of whole numbers from {rubric.low} to {rubric.high}"
    scores: list[tuple[Any, ...]] = []
    failures: list[tuple[Any, ...]] = []
    first: Failure | None = None
    for (row, repeat), answer in zip(places, answers, strict=True):
        if answer is None:
            continue
        if (failure := answer.failure) is not None:
            why = (failure.kind, failure.reason, expected, failure.answer, failure.attempts)
            failures.append((row, repeat + 1, *why))
            first = first or failure
        elif answer.value is not None:
            order = rotated(tuple(rubric.questions), repeat)
            scores += [
                (row, repeat + 1, name, order.index(name) + 1, answer.value[name], answer.attempts)
                for name in rubric.questions
            ]
    return Judgements(
        pl.DataFrame(scores, schema=SCORE_SCHEMA, orient="row"),
        pl.DataFrame(failures, schema=FAILURE_SCHEMA, orient="row"),
        frozenset(row for (row, _), each in zip(places, answers, strict=True) if each is None),
        first,
    )


def rotated(dimensions: tuple[str, ...], repeat: int) -> tuple[str, ...]:
    """Return the order in which a repeat (from 0) asks for the dimensions."""
    first = repeat % len(dimensions)
    return dimensions[first:] + dimensions[:first]


def judge_request(
    transcript: Transcript, rubric: Rubric, model: str, asked: ModelOptions, repeat: int, seed: int
) -> ChatRequest:
    """Return what is asked of a judge about a dialogue."""
    dimensions = rotated(tuple(rubric.questions), repeat)
    turns = transcript.turns[-rubric.last_turns :] if rubric.last_turns else transcript.turns
    highlights = [
        text[: rubric.characters]
        for speaker, text in turns
        if speaker in rubric.speakers and rubric.highlights.search(text)
    ]
    slots = _slots(rubric, dimensions)
    user = rubric.prompts["user"].format(
        dimensions="\n".join(f"- {name}: {rubric.questions[name]}" for name in dimensions),
        highlights=quoted("wishes", highlights) if highlights else "(nothing of the kind)",
        conversation=shown_conversation(transcript, rubric),
        **slots,
    )
    return asked.request(
        model,
        (SYSTEM, rubric.prompts["system"].format(**slots).strip() + DATA),
        (USER, user.strip()),
        seed=(seed * 1_000_003 + repeat * 1_009) % 2**31,
        schema=rubric.schema,
    )


def shown_conversation(transcript: Transcript, rubric: Rubric) -> str:
    """Return a dialogue's turns as a judge is shown them."""
    turns = transcript.turns[-rubric.last_turns :] if rubric.last_turns else transcript.turns
    lines = (f"{speaker}: {text[: rubric.characters]}" for speaker, text in turns)
    return quoted("conversation", lines)


def _slots(rubric: Rubric, dimensions: Sequence[str]) -> dict[str, Any]:
    return {
        "low": rubric.low,
        "high": rubric.high,
        "middle": (rubric.low + rubric.high) // 2,
        "members": ", ".join(f'"{name}"' for name in dimensions),
    }


def checked_scores(found: dict[str, Any], rubric: Rubric) -> dict[str, int]:
    """Return an answer's scores."""
    check_members(found, rubric.questions)
    for name in rubric.questions:
        if type(found[name]) is not int:
            value = orjson.dumps(found[name]).decode()
            raise UnusableError(f"{name} is {value:.40}, no whole number")
        if not rubric.low <= found[name] <= rubric.high:
            raise UnusableError(f"{name} is {found[name]}, out of range")
    return found
