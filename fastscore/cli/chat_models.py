"""Verbs that ask chat models: ``simulate``, ``judge``, ``annotate`` and ``experiment``."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastscore.cli.parameters import (
    PATH,
    HeadedCommand,
    SuggestingGroup,
    option,
    quiet_option,
    ranged,
)
from fastscore.cli.score import declared_setting
from fastscore.logs.inputs.column_map import CHAT_OPTIONS, parse_map
from fastscore.run.request import chat_options
from fastscore.settings.options import available_processors, flag_name
from fastscore.terminal import write_line, write_note

if TYPE_CHECKING:
    from fastscore.llm.annotate import Annotated
    from fastscore.llm.client import Expectation
    from fastscore.llm.transcripts import AskingAboutLogs


Command = TypeVar("Command", bound=Callable[..., Any])

MODEL_HEADING = "How models are asked"

_asked = partial(option, heading=MODEL_HEADING)


def _bounded(name: str, help: str, *, kind: type[float] = int, default: Any = None) -> Any:
    """Declare a number that keeps to the bounds of the argument of its name."""
    return _asked(flag_name(name), type=ranged(name, kind), default=default, help=help)


_MODEL_OPTIONS = (
    _asked(
        "--base-url",
        help="The models' server, such as http://127.0.0.1:11434/v1.  [default: "
        "FASTSCORE_BASE_URL or OPENAI_BASE_URL]. The key comes from FASTSCORE_API_KEY or "
        "OPENAI_API_KEY.",
    ),
    _asked("--temperature", type=float, help="Passed on.  [default: the server's]"),
    _bounded("answer_tokens", "The most tokens of an answer.", default=512),
    _asked(
        "--structured",
        type=click.Choice(["json-schema", "json-object", "none"]),
        default="json-schema",
        help="How to request JSON: json-object is for llama.cpp's Python server, none "
        "uses the prompt only.",
    ),
    _bounded("concurrency", "The most requests at once.", default=8),
    _bounded("timeout", "Seconds of a request.", kind=float, default=120.0),
    _bounded("retries", "Retries of a request after a failure that may pass.", default=6),
    _asked(
        "--max-failures",
        default="5%",
        help="Maximum of failed samples: a count or a share such as 5%. Above it exit 4.",
    ),
    _bounded("max_requests", "Maximum number of requests. Later the command can continue."),
    _bounded("max_tokens", "The most tokens, sent and received."),
    _bounded("max_cost", "The most that tokens may cost, by --prices.", kind=float),
    _asked(
        "--prices",
        type=(click.FloatRange(min=0), click.FloatRange(min=0)),
        metavar="SENT RECEIVED",
        help="Prices of a million tokens sent and of a million received, in USD.",
    ),
    _asked(
        "--answers",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The SQLite file that keeps every answer.  [default: in the cache]",
    ),
    _asked("--replay", is_flag=True, help="Use stored answers only and open no connection."),
)


def model_options(command: Command) -> Command:
    """Give a command the options; they arrive as keyword arguments for `with_model_options`."""
    for add in reversed(_MODEL_OPTIONS):
        command = add(command)
    return command


def with_model_options(given: dict[str, Any]) -> dict[str, Any]:
    """Put options of a command into one value each: ``models``, and ``columns`` of a map."""
    from fastscore.llm.requests import ModelOptions, model_options

    taken = {field.name: given.pop(field.name) for field in fields(ModelOptions)}
    if "values" in given:
        columns = parse_map(given["columns"], given.pop("values"))
        of_chats = chat_options(**{name: given.pop(name) for name in CHAT_OPTIONS})
        given["columns"] = columns | of_chats
    return {**given, "models": model_options(taken)}


_MAP_SETTINGS = ("layout", "columns", "values", *CHAT_OPTIONS)
"""Options of where chats are, as `score` declares them."""
_seed = option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, help="Seed of the requests.")
_DRY_RUN = option(
    "--dry-run", is_flag=True, help="Estimate requests and tokens. Ask and write nothing."
)


def map_options(command: Command) -> Command:
    """Give a command the options of where chats are."""
    command = _DRY_RUN(command)
    for name in reversed(_MAP_SETTINGS):
        flags, declared = declared_setting(name)
        command = option(*flags, **(declared | {"heading": "Where chats are"}))(command)
    return command


@click.group(
    "simulate",
    cls=SuggestingGroup,
    epilog="`fastscore simulate preference_shift --help` lists the options.",
)
def simulate_command() -> None:
    """Simulate dialogues that a suite scores."""


@simulate_command.command(
    "preference_shift",
    cls=HeadedCommand,
    epilog="Example: fastscore simulate preference_shift --catalogue movies.json --agent offline "
    "--sessions 600 --turns 50 -o logs",
)
@option("--catalogue", required=True, help="The items: JSON, JSON Lines, CSV or Parquet.")
@option(
    "--agent",
    default="offline",
    help="Who recommends: offline, openai:MODEL, python:module.object, or an installed agent.",
)
@option(
    "--user",
    default="template",
    help="Who says the user's words: template, or openai:MODEL, which rewords the template.",
)
@option(
    "--off-catalogue",
    type=click.Choice(["mark", "ask-again", "ignore"]),
    default="mark",
    help="What is done about a model's titles that the catalogue lacks.",
)
@option(
    "--refusals",
    type=click.Choice(["mark", "leave-out"]),
    default="mark",
    help="What is done about a recommender's refusals: mark them, or leave out their text, so that "
    "their metrics are null.",
)
@option("--sessions", type=click.IntRange(min=1), default=100)
@option("--turns", type=click.IntRange(min=1), default=50)
@option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    help="Seed of the users. Equal seeds give equal users for every agent.",
)
@option(
    "--policy",
    type=PATH,
    help="The user's rates and phrases, a TOML file.  [default: the built-in one]",
)
@option(
    "--workers",
    type=click.IntRange(min=1),
    default=available_processors(),
    show_default=False,
    help="Number of shards simulated at once. Default: the number of processors.",
)
@option("-o", "--output", type=PATH, required=True, help="The folder of logs.")
@option("--overwrite", is_flag=True, help="Replace an existing simulation in -o.")
@quiet_option
@model_options
def simulate_preference_shift(quiet: bool, **given: Any) -> None:
    """Users whose preferences shift talk with a recommender.

    Writes shards of JSON Lines that `fastscore score preference_shift` reads as they are. Running
    the same command again finishes an interrupted simulation. More --sessions add to it. Only
    openai:MODEL uses the network. Its answers are stored and never asked for again.
    """
    from fastscore.run.progress import reporter
    from fastscore.simulation.simulate import Simulation, simulate

    asked = Simulation(**with_model_options(given))
    done = simulate(asked, reporter(quiet=quiet))
    if done.spent is not None and not quiet:
        write_note(done.spent.line(asked.models.prices))
    if done.refusal is not None:
        raise done.refusal
    if quiet:
        return
    if done.failed:
        write_note(
            f"{done.failed:,} sessions failed and are missing from the logs; the same command "
            "asks for them again"
        )
    if done.refused:
        write_note(f"{done.refused:,} turns were refused by a model and are marked in the logs")
    write_note(
        f"next: fastscore score preference_shift {asked.output} --catalogue {asked.catalogue} "
        "--segments metadata --embedder none -o RUN"
    )


@click.command(
    "judge",
    cls=HeadedCommand,
    epilog="Example: fastscore judge logs --model llama3 --base-url http://127.0.0.1:11434/v1 "
    "-o judgements",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@option(
    "--suite",
    help="Whose logs they are. Chats of any kind need none.  [default: the run's, or the only "
    "suite that reads them]",
)
@option(
    "--against",
    multiple=True,
    metavar="LOGS",
    help="Compare with these logs, or this run, in pairs of one dialogue id. Repeatable.",
)
@map_options
@option(
    "--rubric",
    default="",
    show_default=False,
    help="A bundled rubric (assistant, finance, pepper) or a TOML file.  [default: pepper for "
    "preference_shift, finance for memory_finance, otherwise assistant]",
)
@option(
    "--model", required=True, envvar="FASTSCORE_JUDGE_MODEL", help="The judge's name at its server."
)
@option(
    "--repeats",
    type=ranged("repeats", int),
    default=1,
    help="Judgements of each dialogue: 1, or a multiple of the number of dimensions.",
)
@_seed
@option("-o", "--output", type=PATH, required=True, help="The folder to write.")
@option("--overwrite", is_flag=True, help="Replace the files of another judge in -o.")
@option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@quiet_option
@model_options
def judge_command(against: tuple[str, ...], as_json: bool, quiet: bool, **given: Any) -> None:
    """Judge the dialogues of LOGS by a chat model: chats of any kind, logs of a suite, or one run.

    Writes judgements.jsonl, which `fastscore analyse` and `compare --judge` join to a run, every
    repeat, every failure with its answer, a summary of agreement and bias, and what was spent.
    Every answer is kept: the same command asks only for what is missing.

    With --against, LOGS are side A and the others side B. Each pair is judged in both orders, and a
    side wins if the judge prefers it in both. Writes pairs.jsonl in place of judgements.jsonl.
    """
    from fastscore.llm.judgements import run_judge, show_judgements
    from fastscore.llm.pairwise import run_pairwise
    from fastscore.llm.transcripts import Judging
    from fastscore.run.progress import reporter

    asked = Judging(**with_model_options(given))
    shown = reporter(quiet=quiet)
    judged = run_pairwise(asked, against, shown) if against else run_judge(asked, shown)
    if judged.expected is not None:
        _show_expectation(judged.expected)
        return
    if not quiet:
        write_note(judged.spent.line(asked.models.prices))
    if as_json or not quiet:
        show_judgements(judged.summary, asked.output, as_json=as_json)
    if judged.refusal is not None:
        raise judged.refusal


def _annotating(written: str) -> Callable[[Command], Command]:
    """Return what gives a command the options of annotations."""

    def decorate(command: Command) -> Command:
        output = option("-o", "--output", type=PATH, required=True, help=written)
        model = option(
            "--model",
            required=True,
            envvar="FASTSCORE_ANNOTATE_MODEL",
            help="The model's name at its server.",
        )
        overwrite = option("--overwrite", is_flag=True, help="Replace other annotations in -o.")
        last = quiet_option(model_options(command))
        return map_options(model(_seed(output(overwrite(last)))))

    return decorate


@click.group("annotate", cls=SuggestingGroup)
def annotate_command() -> None:
    """Let a chat model read concepts or states from logs, into a file that scoring takes.

    Scoring itself asks no model: what it reads is an input, with its hash in the signature.
    """


@annotate_command.command(
    "concepts",
    cls=HeadedCommand,
    epilog="Example: fastscore annotate concepts logs --catalogue movies.json --model llama3 "
    "-o concepts.jsonl",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@option("--catalogue", required=True, help="The items that concepts come from.")
@option("--merge-speakers", is_flag=True, help="As for `score preference_shift`.")
@_annotating("The file.")
def annotate_concepts_command(
    catalogue: str, merge_speakers: bool, quiet: bool, **given: Any
) -> None:
    """Read the concepts of every text.

    LOGS are of preference_shift. `fastscore score preference_shift LOGS --extract llm --annotations
    FILE` takes the file.
    """
    from fastscore.llm.annotate import annotate_concepts
    from fastscore.llm.transcripts import AskingAboutLogs
    from fastscore.run.progress import reporter

    asked = AskingAboutLogs(**with_model_options(given))
    done = annotate_concepts(asked, catalogue, reporter(quiet=quiet), merge_speakers=merge_speakers)
    _report_annotations(done, asked, quiet=quiet)


@annotate_command.command(
    "states",
    cls=HeadedCommand,
    epilog="Example: fastscore annotate states logs --model llama3 -o states",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@option("--level", type=click.IntRange(min=0), default=0, help="As for `score`.")
@_annotating("The folder.")
def annotate_states_command(level: int, quiet: bool, **given: Any) -> None:
    """Read the state of every guest's message.

    LOGS are of guest_simulation. `fastscore score guest_simulation LOGS --states llm --states-from
    FOLDER` takes the files.
    """
    from fastscore.llm.annotate import annotate_states
    from fastscore.llm.transcripts import AskingAboutLogs
    from fastscore.run.progress import reporter

    asked = AskingAboutLogs(**with_model_options(given))
    done = annotate_states(asked, reporter(quiet=quiet), level=level)
    _report_annotations(done, asked, quiet=quiet)


def _show_expectation(expected: "Expectation") -> None:
    for line in expected.lines():
        write_line(line)


def _report_annotations(done: "Annotated", asked: "AskingAboutLogs", *, quiet: bool) -> None:
    if done.expected is not None:
        _show_expectation(done.expected)
        return
    if not quiet:
        write_note(done.spent.line(asked.models.prices))
        write_line(
            f"{asked.output}: {done.read:,} annotations, {done.failed:,} failed, "
            f"{done.not_asked:,} not asked"
        )
    if done.refusal is not None:
        raise done.refusal


@click.command(
    "experiment", epilog="Example: fastscore experiment recommenders.toml -o experiment --dry-run"
)
@click.argument("file", type=PATH)
@option("-o", "--output", type=PATH, help="The experiment's folder.")
@option("--dry-run", is_flag=True, help="Say what would be asked. Ask and write nothing.")
@option("--replay", is_flag=True, help="Use stored answers only.")
@option(
    "--workers",
    type=click.IntRange(min=1),
    default=available_processors(),
    show_default=False,
    help="Number of processes for work without a model. Default: the number of processors.",
)
@option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@quiet_option
def experiment_command(
    file: Path,
    output: Path | None,
    dry_run: bool,
    replay: bool,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the experiment of FILE, a TOML file: agents × sessions of preference_shift.

    Every agent meets the same users. What it says is judged, scored and analysed. Running the same
    command again finishes an interrupted experiment, and asks no model anything twice.
    """
    import dataclasses

    import orjson

    from fastscore.errors import UsageError
    from fastscore.run.progress import reporter
    from fastscore.simulation.experiment import (
        expect,
        expectation_lines,
        read_experiment,
        run_experiment,
    )

    experiment = read_experiment(file)
    if dry_run:
        expectation = expect(experiment)
        if as_json:
            write_line(orjson.dumps(dataclasses.asdict(expectation)).decode())
        else:
            for line in expectation_lines(experiment, expectation):
                write_line(line)
        return
    if output is None:
        raise UsageError("No folder is named.", "Name one with -o EXPERIMENT.")
    summary = run_experiment(
        experiment, output, reporter(quiet=quiet), workers=workers, replay=replay
    )
    if as_json:
        write_line(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    elif not quiet:
        write_line(f"report     {summary['report']}")
        write_line(f"analysis   {summary['analysis']}")
