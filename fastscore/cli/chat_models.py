"""Verbs that ask chat models: ``simulate``, ``judge``, ``annotate`` and ``experiment``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastscore.cli.parameters import PATH, HeadedCommand, SuggestingGroup, option, quiet_option
from fastscore.cli.score import Command, settings_options, typed_map
from fastscore.llm.requests import AskingAboutLogs, Judging, ModelOptions
from fastscore.settings.options import available_processors, settings_of
from fastscore.simulation.scenario import Simulation
from fastscore.terminal import write_line, write_note

if TYPE_CHECKING:
    from fastscore.llm.annotate import Annotated


Request = TypeVar("Request", AskingAboutLogs, Judging, Simulation)

_price = click.FloatRange(min=0)
model_options = settings_options(
    ModelOptions,
    prices={"type": (_price, _price), "default": None},
    answers={"type": click.Path(path_type=Path, dir_okay=False)},
)
"""Gives a command the options of how models are asked."""


def request_from(kind: type[Request], given: dict[str, Any]) -> Request:
    """Make a request of what flags give."""
    models = {each.name: given.pop(each.name) for each in settings_of(ModelOptions)}
    mapped = typed_map(given) if "values" in given else {}
    return kind(**given | mapped | {"models": ModelOptions(**models)})


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
@settings_options(
    Simulation,
    sessions={"default": 100, "required": False},
    turns={"default": 50, "required": False},
    workers={"show_default": False},
)
@quiet_option
@model_options
def simulate_preference_shift(quiet: bool, **given: Any) -> None:
    """Users whose preferences shift talk with a recommender.

    Writes shards of JSON Lines that `fastscore score preference_shift` reads as they are. Running
    the same command again finishes an interrupted simulation. More --sessions add to it. Only
    openai:MODEL uses the network. Its answers are stored and never asked for again.
    """
    from fastscore.run.progress import reporter
    from fastscore.simulation.simulate import simulate

    asked = request_from(Simulation, given)
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
    "--against",
    multiple=True,
    metavar="LOGS",
    help="Compare with these logs, or this run, in pairs of one dialogue id. Repeatable.",
)
@settings_options(
    Judging,
    model={"envvar": "FASTSCORE_JUDGE_MODEL", "help": "The judge's name at its server."},
    overwrite={"help": "Replace the files of another judge in -o."},
    rubric={"type": str},
)
@option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@quiet_option
@model_options
def judge_command(as_json: bool, quiet: bool, **given: Any) -> None:
    """Judge the dialogues of LOGS by a chat model: chats of any kind, logs of a suite, or one run.

    Writes judgements.jsonl, which `fastscore analyse` and `compare --judge` join to a run, every
    repeat, every failure with its answer, a summary of agreement and bias, and what was spent.
    Every answer is kept: the same command asks only for what is missing.

    With --against, LOGS are side A and the others side B. Each pair is judged in both orders, and a
    side wins if the judge prefers it in both. Writes pairs.jsonl in place of judgements.jsonl.
    """
    from fastscore.llm.judgements import show_judgements
    from fastscore.llm.pairwise import run_judging
    from fastscore.run.progress import reporter

    asked = request_from(Judging, given)
    judged = run_judging(asked, reporter(quiet=quiet))
    if judged.expected is not None:
        write_line("\n".join(judged.expected.lines()))
        return
    if not quiet:
        write_note(judged.spent.line(asked.models.prices))
    if as_json or not quiet:
        show_judgements(judged.summary, asked.output, as_json=as_json)
    if judged.refusal is not None:
        raise judged.refusal


def _annotating(written: str) -> Callable[[Command], Command]:
    """Return what gives a command the options of annotations."""
    options = settings_options(
        AskingAboutLogs,
        model={"envvar": "FASTSCORE_ANNOTATE_MODEL"},
        output={"help": written},
    )
    return lambda command: options(quiet_option(model_options(command)))


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
@option("--fields", metavar="NAMES", help="As for `score preference_shift`.")
@option("--merge-speakers", is_flag=True, help="As for `score preference_shift`.")
@_annotating("The file.")
def annotate_concepts_command(
    catalogue: str, fields: str | None, merge_speakers: bool, quiet: bool, **given: Any
) -> None:
    """Read the concepts of every text.

    LOGS are of preference_shift. `fastscore score preference_shift LOGS --extract llm --annotations
    FILE` takes the file.
    """
    from fastscore.llm.annotate import annotate_concepts
    from fastscore.run.progress import reporter

    asked = request_from(AskingAboutLogs, given)
    shown = reporter(quiet=quiet)
    done = annotate_concepts(asked, catalogue, shown, fields=fields, merge_speakers=merge_speakers)
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
    from fastscore.run.progress import reporter

    asked = request_from(AskingAboutLogs, given)
    done = annotate_states(asked, reporter(quiet=quiet), level=level)
    _report_annotations(done, asked, quiet=quiet)


def _report_annotations(done: "Annotated", asked: "AskingAboutLogs", *, quiet: bool) -> None:
    if done.expected is not None:
        write_line("\n".join(done.expected.lines()))
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
            write_line("\n".join(expectation_lines(experiment, expectation)))
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
