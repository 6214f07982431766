"""Annotating logs by a chat model: what the scoring of a suite then reads from a file.

Nothing that scores asks a model. So a model's reading is a step of its own, which writes a file
that is an input like others, with its hash in the signature: concepts of texts for
`preference_shift --extract llm`, states of guests for `guest_simulation --states-from`.
"""

import csv
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson
import polars as pl

from fastscore.api.arguments import SuiteName
from fastscore.api.reading import scan
from fastscore.errors import InputError
from fastscore.llm.client import ChatClient, Structured, ask_each, ask_until_read
from fastscore.llm.requests import (
    OPENAI,
    SYSTEM,
    USER,
    Messages,
    ModelOptions,
    object_schema,
    read_prompts,
)
from fastscore.llm.spending import (
    MANIFEST,
    Spent,
    TooManyFailuresError,
    UnusableError,
    outcome_of,
    spending_recorded,
    too_many,
)
from fastscore.llm.transcripts import DATA, quoted
from fastscore.options import build_options
from fastscore.paths import ANNOTATIONS, check_output
from fastscore.run.commit import commit_bytes, commit_lines
from fastscore.run.progress import Reporter
from fastscore.suites.guest_simulation.options import (
    ORDER_COLUMN,
    STATE_COLUMNS,
    STATE_WORDS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.rows import Rows, by_conversation
from fastscore.suites.guest_simulation.state_files import message_indices
from fastscore.suites.preference_shift.events import read_events
from fastscore.suites.preference_shift.options import PreferenceShift

Read = TypeVar("Read")

PROMPTS, _ = read_prompts(__package__, "annotations.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotating:
    """What is annotated.

    Parameters
    ----------
    inputs
        Logs of the suite.
    model
        The model's name at its server, with or without ``openai:`` before it.
    output
        The file or folder to write.
    models
        How it is asked.
    seed
        Passed on.
    overwrite
        Whether another model's annotations in `output` are replaced.
    """

    inputs: tuple[str, ...]
    model: str
    output: Path
    models: ModelOptions = field(default_factory=ModelOptions)
    seed: int = 0
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of annotating.

    Parameters
    ----------
    read, failed, not_asked
        How many annotations were read, failed, or were not asked for after too many failures.
    spent
        What the command spent.
    refusal
        The error if more annotations failed than may. The output is written all the same.
    """

    read: int
    failed: int
    not_asked: int
    spent: Spent
    refusal: TooManyFailuresError | None


def annotate_concepts(
    asked: Annotating, catalogue: str, reporter: Reporter, *, merge_speakers: bool = False
) -> Annotated:
    """Write the concepts of all texts of logs of preference_shift, a line a distinct text.

    A line has ``text`` and ``concepts``, lists of values by field as the model wrote them. If no
    answer could be used, the lists are empty, and ``failure``, ``reason`` and ``answer`` are given.
    A text that was not asked about, after too many failures, has no line: scoring refuses the file.

    Raises
    ------
    InputError
        No conversation can be read.
    """
    given = {"catalogue": catalogue, "merge_speakers": merge_speakers}
    options = build_options(PreferenceShift, given)
    events = read_events(_rows(asked.inputs, "preference_shift", reporter), options)
    turns, gold = events.frames["turns"], events.frames["gold"]
    spoken = pl.concat([turns["user_text"], turns["system_text"], gold["text"]])
    texts = spoken.unique(maintain_order=True).to_list()
    if not texts:
        raise InputError(f"{', '.join(asked.inputs)}: no conversation has a turn.")
    fields = options.field_names
    prompt = PROMPTS["concepts"]
    schema = object_schema(
        {name: {"type": "array", "items": {"type": "string"}} for name in fields}
    )
    system = prompt["system"].format(fields=", ".join(fields)).strip()
    messages: list[Messages] = [
        ((SYSTEM, system), (USER, prompt["user"].format(text=text))) for text in texts
    ]
    manifest = asked.output.with_name(f"{asked.output.name}.{MANIFEST}")
    check_output(asked.output, "a file of concepts", begins='{"text":')

    def write(answers: Sequence[Structured[dict[str, list[str]]] | None]) -> None:
        lines = []
        for text, answer in zip(texts, answers, strict=True):
            if answer is None:
                continue
            line = {"text": text, "concepts": answer.value or {name: [] for name in fields}}
            if (failed := answer.failure) is not None:
                line |= {"failure": failed.kind, "reason": failed.reason, "answer": failed.answer}
            lines.append(line)
        commit_lines(asked.output, lines)

    return _annotate(
        asked,
        "concepts",
        manifest,
        messages,
        schema,
        lambda found: _concepts(found, fields),
        write,
        reporter,
    )


def _concepts(found: dict[str, Any], fields: Sequence[str]) -> dict[str, list[str]]:
    concepts = {}
    for name in fields:
        values = found.get(name, [])
        listed = [values] if isinstance(values, str) else values
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise UnusableError(f"{name} is no list of strings")
        concepts[name] = listed
    for name in found:
        if name not in fields:
            raise UnusableError(f"with {name!r:.40}, which nobody asked for")
    return concepts


def annotate_states(asked: Annotating, reporter: Reporter, *, level: int = 0) -> Annotated:
    """Write the states of guests, a file a conversation as published, below a folder.

    A message of which no answer could be used has no row.

    Raises
    ------
    InputError
        No guest says anything.
    """
    options = build_options(GuestSimulation, {"level": level})
    rows, labels = by_conversation(_rows(asked.inputs, "guest_simulation", reporter), options)
    asked_rows = [
        row
        for row in range(len(rows))
        if rows.is_guest[row] and not rows.is_exit[row] and not rows.is_case[row]
    ]
    if not asked_rows:
        raise InputError(f"{', '.join(asked.inputs)}: no guest says anything.")
    enums = {name: {"type": "string", "enum": list(words)} for name, words in STATE_WORDS.items()}
    item = object_schema(
        {"name": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}}
    )
    schema = object_schema({**enums, ORDER_COLUMN: {"type": "array", "items": item}})
    messages = _guest_messages(rows, asked_rows)
    own = ("exp*", MANIFEST, "manifest.spending.json")
    check_output(asked.output, ANNOTATIONS, own, alone=asked.overwrite)
    write = partial(_write_states, asked.output, rows, labels, asked_rows)
    manifest = asked.output / MANIFEST
    return _annotate(asked, "states", manifest, messages, schema, _state, write, reporter)


def _guest_messages(rows: Rows, asked_rows: Sequence[int]) -> list[Messages]:
    """Return the prompt for each message: the message, and the messages before."""
    prompt = PROMPTS["states"]
    length = prompt["characters"]
    speakers, contents = rows["role"].to_list(), rows["content"].to_list()
    messages: list[Messages] = []
    for row in asked_rows:
        before = [
            f"{speakers[at]}: {(contents[at] or '')[:length]}"
            for at in range(max(0, row - prompt["order_history"]), row)
            if rows.conversation[at] == rows.conversation[row] and not rows.is_case[at]
        ]
        user = prompt["user"].format(
            conversation=quoted("conversation", before) if before else "(nothing before)",
            message=quoted("message", [(contents[row] or "")[:length]]),
        )
        messages.append(((SYSTEM, prompt["system"].strip() + DATA), (USER, user.strip())))
    return messages


def _state(found: dict[str, Any]) -> dict[str, Any]:
    for name, words in STATE_WORDS.items():
        if found.get(name) not in words:
            raise UnusableError(f"{name} is {found.get(name)!r:.40}, none of {', '.join(words)}")
    items = found.get(ORDER_COLUMN)
    if not isinstance(items, list) or not all(map(_is_item, items)):
        raise UnusableError(f"{ORDER_COLUMN} is no list of items with name and quantity")
    return found


def _is_item(item: object) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        return False
    return type(item.get("quantity")) is int and item["quantity"] >= 1


def _write_states(
    folder: Path,
    rows: Rows,
    labels: pl.DataFrame,
    asked_rows: Sequence[int],
    answers: Sequence[Structured[dict[str, Any]] | None],
) -> None:
    index, ids = message_indices(rows), rows["message_id"].to_list()
    header = ("message_index", "message_id", *STATE_COLUMNS, ORDER_COLUMN)
    by_file: dict[Path, list[Any]] = {}
    for row, answer in zip(asked_rows, answers, strict=True):
        label = labels.row(int(rows.conversation[row]), named=True)
        name = f"exp{label['experiment_level'] or 0}/{label['dialogue']}_states.csv"
        written = by_file.setdefault(folder / name, [])
        if answer is not None and answer.value is not None:
            state = [answer.value[each] for each in STATE_COLUMNS]
            order = orjson.dumps(answer.value[ORDER_COLUMN]).decode()
            written.append((int(index[row]), ids[row], *state, order))
    for path, written in by_file.items():
        text = io.StringIO(newline="")
        csv.writer(text).writerows([header, *written])
        commit_bytes(path, text.getvalue().encode())


def _rows(inputs: Sequence[str], suite: SuiteName, reporter: Reporter) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rejects are counted below
        rows = scan(list(inputs), suite).collect()
    rejected = scan(list(inputs), suite, rejects=True).collect().height
    if rejected:
        reporter.note(f"{rejected:,} rows of the logs were rejected and are not annotated.")
    return rows


def _annotate(
    asked: Annotating,
    what: str,
    manifest: Path,
    messages: Sequence[Messages],
    schema: dict[str, Any],
    read: Callable[[dict[str, Any]], Read],
    write: Callable[[Sequence[Structured[Read] | None]], None],
    reporter: Reporter,
) -> Annotated:
    """Ask for every annotation, have the answers written, and record what that used up."""
    client = ChatClient(asked.models)
    described = {
        "annotations": what,
        "inputs": list(asked.inputs),
        "model": asked.model.removeprefix(OPENAI),
        "endpoint": client.options.endpoint,
        "temperature": client.options.temperature,
        "seed": asked.seed,
    }

    def ask(messages: Messages) -> Structured[Read]:
        request = client.options.request(asked.model, *messages, seed=asked.seed, schema=schema)
        return ask_until_read(
            client, request, read, lambda fault: PROMPTS["again"].format(fault=fault).strip()
        )

    if asked.overwrite:
        manifest.unlink(missing_ok=True)
        for path in asked.output.glob("exp*/*_states.csv"):
            path.unlink()
    with spending_recorded(manifest, described, client.meter) as outcome:
        answers = ask_each(client, messages, ask, reporter, stage="annotate", noun="annotations")
        write(answers)
        failures = [each.failure for each in answers if each is not None and each.failure]
        not_asked = sum(each is None for each in answers)
        outcome |= outcome_of([each.kind for each in failures], is_complete=not not_asked)
    refusal = too_many(
        failures[0] if failures else None,
        len(failures),
        len(answers),
        asked.models.failure_limit,
        noun="annotations",
        place=str(asked.output),
    )
    n_read = len(answers) - len(failures) - not_asked
    return Annotated(n_read, len(failures), not_asked, client.spent, refusal)
