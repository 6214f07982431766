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
from fastscore.llm.requests import ASSISTANT, LENGTH, SYSTEM, USER, Answer, ChatRequest
from fastscore.llm.rubrics import Rubric
from fastscore.llm.threads import SpendingProgress, as_done, asking_threads
from fastscore.llm.transcripts import Transcript
from fastscore.run.progress import Reporter

MOST_AGAIN = 2
"""How often an answer that cannot be used is asked for again."""

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


class _UnusableError(Exception):
    """An answer that holds no scores; says why."""


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
    request = judge_request(transcript, rubric, model, client, repeat, seed)
    for attempt in range(1, MOST_AGAIN + 2):
        answer = client.ask(request)
        try:
            scores = read_scores(answer, rubric)
        except _UnusableError as error:
            fault = str(error)
            words = {"fault": fault, **_slots(rubric, dimensions)}
            again = rubric.prompts["again"].format(**words).strip()
            request = request.again((ASSISTANT, answer.text or "(nothing)"), (USER, again))
            continue
        places = {name: place for place, name in enumerate(dimensions, 1)}
        return [(name, places[name], scores[name], attempt) for name in rubric.questions], []
    expected = f"an object of whole numbers from {rubric.low} to {rubric.high}"
    return [], [(fault, expected, answer.text, MOST_AGAIN + 1)]


def rotated(dimensions: tuple[str, ...], repeat: int) -> tuple[str, ...]:
    """Return the order in which a repeat (from 0) asks for the dimensions."""
    first = repeat % len(dimensions)
    return dimensions[first:] + dimensions[:first]


def judge_request(
    transcript: Transcript, rubric: Rubric, model: str, client: ChatClient, repeat: int, seed: int
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
    asked = client.options
    return ChatRequest(
        model=model,
        messages=((SYSTEM, rubric.prompts["system"].format(**slots).strip()), (USER, user.strip())),
        temperature=asked.temperature,
        seed=(seed * 1_000_003 + repeat * 1_009) % 2**31,
        max_tokens=asked.answer_tokens,
        schema=rubric.schema,
    )


def _slots(rubric: Rubric, dimensions: Sequence[str]) -> dict[str, Any]:
    return {
        "low": rubric.low,
        "high": rubric.high,
        "middle": (rubric.low + rubric.high) // 2,
        "members": ", ".join(f'"{name}"' for name in dimensions),
    }


def read_scores(answer: Answer, rubric: Rubric) -> dict[str, int]:
    """Read an answer strictly.

    Raises
    ------
    _UnusableError
        It is no object with exactly the rubric's members, each a whole number inside the scale; a
        fence around it is no fault.
    """
    if answer.refused:
        raise _UnusableError("refused to judge")
    if answer.finish_reason == LENGTH:
        raise _UnusableError("cut off before its end")
    try:
        found = orjson.loads(_unfenced(answer.text))
    except orjson.JSONDecodeError:
        raise _UnusableError("not a JSON object" if answer.text.strip() else "empty") from None
    if not isinstance(found, dict):
        raise _UnusableError("not a JSON object")
    for name in rubric.questions:
        if name not in found:
            raise _UnusableError(f"without {name!r}")
        if type(found[name]) is not int:
            raise _UnusableError(
                f"{name} is {orjson.dumps(found[name]).decode():.40}, no whole number"
            )
        if not rubric.low <= found[name] <= rubric.high:
            raise _UnusableError(f"{name} is {found[name]}, out of range")
    for name in found:
        if name not in rubric.questions:
            raise _UnusableError(f"with {name!r:.40}, which nobody asked for")
    return found


def _unfenced(text: str) -> str:
    """Return what stands inside one fence of a code block, or the text itself."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and len(stripped) > 6:
        return stripped[3:-3].removeprefix("json").strip()
    return stripped
