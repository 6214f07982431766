"""Judging dialogues by a chat model and a rubric.

An answer is one JSON object of whole numbers inside the scale, or it is none: it is asked for
again, the model told why, and in the end rejected with what was answered. Nothing is clamped or
filled. Repeats show the dimensions in rotated order, so that an effect of their position can be
told from noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from fastscore.llm.client import ChatClient
from fastscore.llm.options import ModelOptions
from fastscore.llm.requests import SYSTEM, USER, ChatRequest
from fastscore.llm.rubrics import Rubric
from fastscore.llm.structured import UnusableError, ask_until_read
from fastscore.llm.threads import SpendingProgress, as_done, asking_threads
from fastscore.llm.transcripts import Transcript
from fastscore.run.progress import Reporter

_STAGE = "judge"

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

REJECT_SCHEMA: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "repeat": pl.Int64(),
    "reason": pl.String(),
    "expected": pl.String(),
    "answer": pl.String(),
    "attempts": pl.Int64(),
}
"""A repeat without scores: why, what was expected, and the last answer as it came."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """What a judge said: `SCORE_SCHEMA` and `REJECT_SCHEMA`, in the order of the dialogues."""

    scores: pl.DataFrame
    rejects: pl.DataFrame


def judge(
    transcripts: Sequence[Transcript],
    rubric: Rubric,
    model: str,
    client: ChatClient,
    reporter: Reporter,
    *,
    repeats: int = 1,
    seed: int = 0,
) -> Judgements:
    """Judge dialogues.

    Parameters
    ----------
    transcripts, rubric
        What is judged, by what.
    model, client
        Who judges, and how it is asked.
    reporter
        Shows the progress.
    repeats, seed
        How often each dialogue is judged, each time with another seed.
    """
    scores: dict[tuple[int, int], list[Any]] = {}
    rejects: dict[tuple[int, int], list[Any]] = {}
    with (
        reporter.stage(_STAGE, len(transcripts) * repeats) as progress,
        asking_threads(client) as pool,
    ):
        shown = SpendingProgress(progress, client)
        futures = {
            pool.submit(_judge, transcript, rubric, model, client, repeat, seed): (row, repeat)
            for row, transcript in enumerate(transcripts)
            for repeat in range(repeats)
        }
        for future in as_done(futures):
            place = futures[future]
            found, refused = future.result()
            scores[place], rejects[place] = found, refused
            shown.advance(dialogues=1)
    return Judgements(_frame(scores, SCORE_SCHEMA), _frame(rejects, REJECT_SCHEMA))


def _frame(found: dict[tuple[int, int], list[Any]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    rows = [
        (row, repeat + 1, *values)
        for (row, repeat) in sorted(found)
        for values in found[row, repeat]
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _judge(
    transcript: Transcript, rubric: Rubric, model: str, client: ChatClient, repeat: int, seed: int
) -> tuple[list[Any], list[Any]]:
    """Return the rows of one repeat: scores, or one reject."""
    dimensions = rotated(tuple(rubric.questions), repeat)

    def again(fault: str) -> str:
        words = {"fault": fault, **_slots(rubric, dimensions)}
        return rubric.prompts["again"].format(**words).strip()

    request = judge_request(transcript, rubric, model, client.options, repeat, seed)
    found = ask_until_read(client, request, lambda read: checked_scores(read, rubric), again)
    if found.value is None:
        expected = f"an object of whole numbers from {rubric.low} to {rubric.high}"
        return [], [(found.fault, expected, found.answer.text, found.attempts)]
    scores, places = found.value, {name: place for place, name in enumerate(dimensions, 1)}
    return [(name, places[name], scores[name], found.attempts) for name in rubric.questions], []


def rotated(dimensions: tuple[str, ...], repeat: int) -> tuple[str, ...]:
    """Return the order in which a repeat (from 0) asks for the dimensions."""
    first = repeat % len(dimensions)
    return dimensions[first:] + dimensions[:first]


def judge_request(
    transcript: Transcript, rubric: Rubric, model: str, asked: ModelOptions, repeat: int, seed: int
) -> ChatRequest:
    """Return what is asked of a judge about a dialogue."""
    dimensions = rotated(tuple(rubric.questions), repeat)
    said = transcript.said[-rubric.last_turns :] if rubric.last_turns else transcript.said
    lines = [f"{speaker}: {text[: rubric.characters]}" for speaker, text in said]
    highlights = [
        text[: rubric.characters]
        for speaker, text in said
        if speaker in rubric.speakers and rubric.highlights.search(text)
    ]
    slots = _slots(rubric, dimensions)
    user = rubric.prompts["user"].format(
        dimensions="\n".join(f"- {name}: {rubric.questions[name]}" for name in dimensions),
        highlights="\n".join(f"- {text}" for text in highlights) or "(nothing of the kind)",
        conversation="\n".join(lines),
        **slots,
    )
    return ChatRequest(
        model=model,
        messages=((SYSTEM, rubric.prompts["system"].format(**slots).strip()), (USER, user.strip())),
        temperature=asked.temperature,
        seed=(seed * 1_000_003 + repeat * 1_009) % 2**31,
        max_tokens=asked.answer_tokens,
        schema=rubric.schema,
        structured=asked.structured,
    )


def _slots(rubric: Rubric, dimensions: Sequence[str]) -> dict[str, Any]:
    return {
        "low": rubric.low,
        "high": rubric.high,
        "middle": (rubric.low + rubric.high) // 2,
        "members": ", ".join(f'"{name}"' for name in dimensions),
    }


def checked_scores(found: dict[str, Any], rubric: Rubric) -> dict[str, int]:
    """Return an answer's scores.

    Raises
    ------
    UnusableError
        It has not exactly the rubric's members, each a whole number inside the scale.
    """
    for name in rubric.questions:
        if name not in found:
            raise UnusableError(f"without {name!r}")
        if type(found[name]) is not int:
            said = orjson.dumps(found[name]).decode()
            raise UnusableError(f"{name} is {said:.40}, no whole number")
        if not rubric.low <= found[name] <= rubric.high:
            raise UnusableError(f"{name} is {found[name]}, out of range")
    for name in found:
        if name not in rubric.questions:
            raise UnusableError(f"with {name!r:.40}, which nobody asked for")
    return found
