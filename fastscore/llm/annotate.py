"""Annotating logs by a chat model: what the scoring of a suite then reads from a file.

Nothing that scores asks a model. So a model's reading is a step of its own, which writes a file
that is an input like others, with its hash in the signature: concepts of texts for
`preference_shift --extract llm`, states of guests for `guest_simulation --states-from`.
"""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson
import polars as pl

from fastscore.api.advice import fitting_suite_named
from fastscore.api.arguments import SuiteName
from fastscore.errors import InputError, UsageError, names_arguments
from fastscore.files import ANNOTATIONS, check_output
from fastscore.llm.client import (
    ChatClient,
    Expectation,
    Question,
    Structured,
    ask_each,
    ask_until_read,
    describe_asking,
    expect_requests,
)
from fastscore.llm.requests import (
    AskingAboutLogs,
    Messages,
    StrPath,
    check_members,
    object_schema,
    read_prompts,
    request_of,
)
from fastscore.llm.spending import FAILURES, MANIFEST, Spent, TooManyFailuresError, UnusableError
from fastscore.llm.transcripts import DATA, check_rejects, quoted, screened
from fastscore.logs.inputs.column_map import map_source
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.read.rows import join_parts
from fastscore.logs.score_input import ScoreInput
from fastscore.run.commit import commit_bytes, commit_lines
from fastscore.run.progress import Reporter, SilentReporter
from fastscore.run.request import Request
from fastscore.settings.options import build_options
from fastscore.suites.guest_simulation.events import MESSAGE_INDEX, by_conversation
from fastscore.suites.guest_simulation.options import (
    ORDER_COLUMN,
    STATE_COLUMNS,
    STATE_WORDS,
    GuestSimulation,
)
from fastscore.suites.identity import identify
from fastscore.suites.preference_shift.catalogue import check_fields, load_catalogue
from fastscore.suites.preference_shift.events import read_events
from fastscore.suites.preference_shift.options import USUAL_FIELDS, PreferenceShift
from fastscore.suites.registry import load_suite

Read = TypeVar("Read")

PROMPTS, _ = read_prompts(__package__, "annotations.toml")


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of annotating: the output, numbers of annotations, and what the call spent.

    With ``dry_run`` there is only what would be asked, under `expected`.
    """

    output: Path
    read: int = 0
    failed: int = 0
    not_asked: int = 0
    spent: Spent = field(default_factory=Spent)
    expected: Expectation | None = None
    refusal: TooManyFailuresError | None = field(default=None, repr=False)


def annotate_concepts(
    asked: AskingAboutLogs,
    catalogue: str,
    reporter: Reporter,
    *,
    fields: str | None = None,
    merge_speakers: bool = False,
) -> Annotated:
    """Write the concepts of all texts of logs of preference_shift, a line a distinct text.

    A line has ``text`` and ``concepts``, lists of values by field as the model wrote them. If no
    answer could be used, the lists are empty, and ``failure``, ``reason`` and ``answer`` are given.
    A text that was not asked about, after too many failures, has no line: scoring refuses the file.
    """
    given = {"catalogue": catalogue, "fields": fields, "merge_speakers": merge_speakers}
    options = build_options(PreferenceShift, given)
    names = options.field_names
    check_fields(load_catalogue(catalogue), names, USUAL_FIELDS)
    events = read_events(_rows(asked, "preference_shift", reporter), options)
    turns, gold = events.frames["turns"], events.frames["gold"]
    spoken = pl.concat([turns["user_text"], turns["system_text"], gold["text"]])
    texts = spoken.unique(maintain_order=True).to_list()
    if not texts:
        raise InputError(f"{', '.join(asked.inputs)}: no conversation has a turn.")
    prompt = PROMPTS["concepts"]
    schema = object_schema({name: {"type": "array", "items": {"type": "string"}} for name in names})
    system = prompt["system"].format(fields=", ".join(names)).strip()
    messages: list[Messages] = [
        (("system", system), ("user", prompt["user"].format(text=text))) for text in texts
    ]
    check_output(asked.output, "a file of concepts", begins='{"text":')

    def write(answers: Sequence[Structured[dict[str, list[str]]] | None]) -> None:
        lines = []
        for text, answer in zip(texts, answers, strict=True):
            if answer is None:
                continue
            line = {"text": text, "concepts": answer.value or {name: [] for name in names}}
            if (failed := answer.failure) is not None:
                line |= {"failure": failed.kind, "reason": failed.reason, "answer": failed.answer}
            lines.append(line)
        commit_lines(asked.output, lines)

    files = asked.output.with_name(f"{asked.output.name}.{MANIFEST}"), asked.output
    read = partial(_concepts, fields=names)
    return _annotate(asked, "concepts", files, messages, schema, read, write, reporter)


def _concepts(found: dict[str, Any], fields: Sequence[str]) -> dict[str, list[str]]:
    concepts = {}
    for name in fields:
        values = found.get(name, [])
        listed = [values] if isinstance(values, str) else values
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            raise UnusableError(f"{name} is no list of strings")
        concepts[name] = listed
    check_members(found | concepts, fields)  # a field that is left out is empty
    return concepts


def annotate_states(asked: AskingAboutLogs, reporter: Reporter, *, level: int = 0) -> Annotated:
    """Write the states of guests, a file a conversation as published, below a folder.

    A message of which no answer could be used has no row there, but a line in `FAILURES`.
    """
    options = build_options(GuestSimulation, {"level": level})
    rows, labels = by_conversation(_rows(asked, "guest_simulation", reporter), options)
    names = labels.select(pl.col("experiment_level").fill_null(0), "conversation_id")
    shared = names.filter(names.is_duplicated())
    if not shared.is_empty():
        raise InputError(
            f"{', '.join(asked.inputs)}: several conversations have the id "
            f"{shared['conversation_id'][0]!r}, which names their file of states.",
            "Annotate and score the logs of each model by themselves.",
        )
    apart = names.filter(pl.col("conversation_id").str.contains(r"[/\\]"))
    if not apart.is_empty():
        raise InputError(
            f"{', '.join(asked.inputs)}: the id {apart['conversation_id'][0]!r} cannot name the "
            "file of its states.",
            "Give the conversation an id without slashes.",
        )
    by_guest = pl.col("is_guest") & ~pl.col("is_exit") & ~pl.col("is_case")
    asked_rows = rows.select(by_guest.arg_true()).to_series().to_list()
    if not asked_rows:
        raise InputError(f"{', '.join(asked.inputs)}: no guest says anything.")
    enums = {name: {"type": "string", "enum": list(words)} for name, words in STATE_WORDS.items()}
    quantity = {"type": "integer", "minimum": 1}
    item = object_schema({"name": {"type": "string"}, "quantity": quantity})
    schema = object_schema({**enums, ORDER_COLUMN: {"type": "array", "items": item}})
    messages = _guest_messages(rows, asked_rows)
    own = ("exp*", FAILURES, MANIFEST, "manifest.spending.json")
    check_output(asked.output, ANNOTATIONS, own, alone=asked.overwrite)
    write = partial(_write_states, asked.output, rows, labels, asked_rows)
    files = asked.output / MANIFEST, asked.output / FAILURES
    return _annotate(asked, "states", files, messages, schema, _state, write, reporter)


def _guest_messages(rows: pl.DataFrame, asked_rows: Sequence[int]) -> list[Messages]:
    """Return the prompt for each message: the message, and the messages before."""
    prompt = PROMPTS["states"]
    length = prompt["characters"]
    names = ("role", "content", "conversation", "is_case")
    speakers, contents, conversations, is_case = (rows[name].to_list() for name in names)
    messages: list[Messages] = []
    for row in asked_rows:
        before = [
            f"{speakers[at]}: {(contents[at] or '')[:length]}"
            for at in range(max(0, row - prompt["order_history"]), row)
            if conversations[at] == conversations[row] and not is_case[at]
        ]
        user = prompt["user"].format(
            conversation=quoted("conversation", before) if before else "(nothing before)",
            message=quoted("message", [(contents[row] or "")[:length]]),
        )
        messages.append((("system", prompt["system"].strip() + DATA), ("user", user.strip())))
    return messages


def _state(found: dict[str, Any]) -> dict[str, Any]:
    for name, words in STATE_WORDS.items():
        if found.get(name) not in words:
            raise UnusableError(f"{name} is {found.get(name)!r:.40}, none of {', '.join(words)}")
    items = found.get(ORDER_COLUMN)
    is_order = isinstance(items, list) and all(
        isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and type(item.get("quantity")) is int
        and item["quantity"] >= 1
        for item in items
    )
    if not is_order:
        raise UnusableError(f"{ORDER_COLUMN} is no list of items with name and quantity")
    return found


def _write_states(
    folder: Path,
    rows: pl.DataFrame,
    labels: pl.DataFrame,
    asked_rows: Sequence[int],
    answers: Sequence[Structured[dict[str, Any]] | None],
) -> None:
    rows = rows.select("conversation", "message_id", index=MESSAGE_INDEX)
    header = ("message_index", "message_id", *STATE_COLUMNS, ORDER_COLUMN)
    by_file: dict[str, list[Any]] = {}
    failures = []
    for row, answer in zip(asked_rows, answers, strict=True):
        conversation, id, index = rows.row(row)
        label = labels.row(conversation, named=True)
        name = f"exp{label['experiment_level'] or 0}/{label['conversation_id']}_states.csv"
        written = by_file.setdefault(name, [])
        if answer is not None and answer.value is not None:
            state = [answer.value[each] for each in STATE_COLUMNS]
            order = orjson.dumps(answer.value[ORDER_COLUMN]).decode()
            written.append((index, id, *state, order))
        elif answer is not None and (failed := answer.failure) is not None:
            place = {"file": name, "message_index": index, "message_id": id}
            why = {"kind": failed.kind, "reason": failed.reason, "answer": failed.answer}
            failures.append({**place, **why, "attempts": failed.attempts})
    for name, written in by_file.items():
        text = io.StringIO(newline="")
        csv.writer(text).writerows([header, *written])
        commit_bytes(folder / name, text.getvalue().encode())
    commit_lines(folder / FAILURES, failures)


def _rows(asked: AskingAboutLogs, suite: SuiteName, reporter: Reporter) -> pl.DataFrame:
    columns = layout_map(asked.layout, suite) | asked.column_map
    source = map_source(load_suite(suite).source, columns)
    request = Request(suite=suite, inputs=asked.inputs, options=None)
    is_mapped = bool(asked.layout or asked.column_map)
    with nullcontext() if is_mapped else fitting_suite_named(request):
        given = screened(ScoreInput.of(list(asked.inputs)), source, suite)
    read = join_parts(given.read(source), source)
    check_rejects(read, asked, reporter)
    return identify(read.frame, source)  # by the layout, which the suite does not know


def _annotate(
    asked: AskingAboutLogs,
    what: str,
    files: tuple[Path, Path],
    messages: Sequence[Messages],
    schema: dict[str, Any],
    read: Callable[[dict[str, Any]], Read],
    write: Callable[[Sequence[Structured[Read] | None]], None],
    reporter: Reporter,
) -> Annotated:
    """Ask for every annotation, have the answers written, and record what that used up.

    The files are the manifest, and that which lists failures.
    """
    manifest, failures = files

    def question(messages: Messages) -> Question[Read]:
        request = asked.models.request(asked.model, *messages, seed=asked.seed, schema=schema)
        return Question(request, read, lambda fault: PROMPTS["again"].format(fault=fault).strip())

    if asked.dry_run:
        requests = (question(each).request for each in messages)
        expected = expect_requests(requests, asked.models, _TYPICAL_ANSWER)
        return Annotated(asked.output, expected=expected)
    client = ChatClient(asked.models)
    described = {
        "annotations": what,
        "inputs": list(asked.inputs),
        **describe_asking(asked, client),
    }

    if asked.overwrite:
        manifest.unlink(missing_ok=True)
        for name in (FAILURES, "exp*/*_states.csv"):
            for path in asked.output.glob(name):
                path.unlink()

    def written(answers: Sequence[Structured[Read] | None], _: object) -> tuple[int, int, int]:
        write(answers)
        failed = sum(one is not None and one.failure is not None for one in answers)
        not_asked = answers.count(None)
        return len(answers) - failed - not_asked, failed, not_asked

    counts, refusal = ask_each(
        client,
        messages,
        lambda each: ask_until_read(client, question(each)),
        written,
        reporter,
        stage="annotate",
        noun="annotations",
        described=described,
        manifest=manifest,
        failures=failures,
        counts={"annotations": 1},
        samples=range(len(messages)),
        n_samples=len(messages),
    )
    return Annotated(asked.output, *counts, client.spent, refusal=refusal)


_TYPICAL_ANSWER = "x" * 200


@names_arguments
def annotate(
    logs: StrPath | Sequence[StrPath],
    what: Literal["concepts", "states"],
    model: str,
    *,
    output: StrPath,
    catalogue: StrPath | None = None,
    fields: str | None = None,
    merge_speakers: bool = False,
    level: int = 0,
    layout: str | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    alternate: Literal["user", "assistant"] | None = None,
    sort_by: str | None = None,
    dialogue: str | None = None,
    without: str | None = None,
    max_rejects: float = 0.001,
    seed: int = 0,
    overwrite: bool = False,
    dry_run: bool = False,
    **models: Any,
) -> Annotated:
    """Let a chat model read concepts or states from logs, into files that `score` takes.

    Parameters
    ----------
    logs
        Files and folders of logs.
    what
        ``concepts`` of texts of preference_shift, or ``states`` of guests of guest_simulation.
    model
        The model's name at its server.
    output
        The file of concepts, or the folder of states.
    catalogue, fields, merge_speakers
        With ``concepts``: options of preference_shift.
    level
        With ``states``: the option of guest_simulation.
    layout, columns, values, alternate, sort_by, dialogue, without
        Where chats are in the logs, as `score` takes them.
    max_rejects
        The share of rejected lines above which nothing is asked.
    seed
        Seed of the requests.
    overwrite
        Replace another model's annotations in `output`.
    dry_run
        Estimate requests and tokens. Nothing is asked or written.
    **models
        How the model is asked, by the names of the command's options, such as ``base_url``.

    Returns
    -------
    Annotated
        The output, numbers of annotations, and what was spent.

    Raises
    ------
    UsageError
        An argument cannot be used, or no server is named.
    InputError
        There is nothing to annotate, or there are more rejects than `max_rejects`.
    RunConflictError
        `output` holds something else.
    TooManyFailuresError
        More annotations failed than `max_failures`. The output is written.

    Examples
    --------
    >>> fastscore.annotate(
    ...     "shifts/logs",
    ...     "concepts",
    ...     "llama3",
    ...     output="concepts.jsonl",
    ...     catalogue="shifts/catalogue.jsonl",
    ...     dry_run=True,
    ... ).expected
    """
    asked = request_of(AskingAboutLogs, annotate, locals())
    reporter = SilentReporter()
    of_concepts = {"catalogue": catalogue, "fields": fields, "merge_speakers": merge_speakers}
    others = of_concepts if what == "states" else {"level": level}
    if given := [name for name, value in others.items() if value]:
        raise UsageError(f"{given[0]} does not apply to {what}.", "Leave it out.")
    if what == "states":
        done = annotate_states(asked, reporter, level=level)
    elif catalogue is None:
        raise UsageError("catalogue is missing: concepts are values of its items.")
    else:
        how: dict[str, Any] = {"fields": fields, "merge_speakers": merge_speakers}
        done = annotate_concepts(asked, os.fspath(catalogue), reporter, **how)
    if done.refusal is not None:
        raise done.refusal
    return done
