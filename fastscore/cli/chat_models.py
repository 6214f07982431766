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
    """Simulate dialogues that a suite scores: preference_shift only.

    Simulated users talk with your recommender, a chat model or the bundled one.
    """


@simulate_command.command(
    "preference_shift",
    cls=HeadedCommand,
    epilog="Examples: fastscore simulate preference_shift --catalogue movies.json --agent offline "
    "--sessions 600 --turns 50 -o logs; fastscore simulate preference_shift --catalogue "
    "movies.json --agent openai:llama3 --base-url http://127.0.0.1:11434/v1 --sessions 20 -o logs",
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

    Writes sessions-*.jsonl of 50 sessions each, which `fastscore score preference_shift` reads as
    they are. The same command finishes an interrupted simulation, and more --sessions add to it.
    Other changes need --overwrite or another -o.

    --agent python:mine.Bot calls class or function Bot of mine.py in this folder with the list of
    turns so far (`speaker` and `text`). It returns a text, or a dict with `text`, `constraints` and
    `rec_titles`. openai:MODEL is any server with OpenAI's protocol. It alone uses the network, with
    sessions × turns requests. Its answers are kept and never asked for again.

    Exit codes: 0 done, 2 wrong option or folder, 4 incomplete: the same command continues.
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
        "--segments metadata -o RUN"
    )


@click.command(
    "judge",
    cls=HeadedCommand,
    epilog="Examples: fastscore judge chats.jsonl --model llama3 "
    "--base-url http://127.0.0.1:11434/v1 -o judgements; "
    "fastscore judge chats.jsonl --model llama3 --prices 0.15 0.60 --dry-run -o judgements; "
    "fastscore judge a.jsonl --against b.jsonl --model llama3 -o pairs",
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

    There is one request for each dialogue and repeat, to any server with OpenAI's protocol: Ollama,
    vLLM, llama.cpp, OpenAI. --dry-run estimates the costs. Texts go to no other server.

    -o is a run that `report`, `compare`, `check` and `summary` take. It has judgements.jsonl (a
    line a dialogue, for `compare --judge`, `analyse --judge` and `agreement`), repeats.parquet
    (every score), failures.jsonl (with the answers), summary.json (means, intervals, agreement and
    bias) and manifest.json (what was spent). A dialogue without a usable answer is in no mean.
    Every answer is kept: the same command asks only for what is missing.

    A rubric of your own is a TOML file with a title and tables [[dimension]] of name and question.
    Optional: [scale] with low and high (1 and 5), [shown] and [prompt].

    With --against, LOGS are side A and the others side B. Each pair is judged in both orders, and a
    side wins if the judge prefers it in both. Writes pairs.jsonl in place of judgements.jsonl.

    Exit codes: 0 done, 2 wrong option or folder, 3 logs refused, 4 too many failures, a spent
    budget or no server, 130 Ctrl-C. After 4 and 130 the same command continues.
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
        AskingAboutLogs, model={"envvar": "FASTSCORE_ANNOTATE_MODEL"}, output={"help": written}
    )
    return lambda command: options(quiet_option(model_options(command)))


@click.group("annotate", cls=SuggestingGroup)
def annotate_command() -> None:
    """Let a chat model read concepts or states from logs, into a file that scoring takes.

    Scoring itself asks no model: what it reads is an input, with its hash in the signature. Both
    suites work without such files, too. For scores by a rubric use `fastscore judge`. To rate
    dialogues yourself, write a CSV file and see `fastscore agreement --help`.
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
    FILE` takes the file. There is one request for each distinct text, and --dry-run estimates the
    costs. A line of FILE has `text` and `concepts`, lists of values by field, which a person can
    write, too. A failed text has empty lists and the reason. The same command asks for it again.
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
    FOLDER` takes the files. There is one request for each message, and --dry-run estimates the
    costs. failures.jsonl lists messages without a state. The same command asks for them again.
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
    "experiment",
    epilog="Examples: fastscore experiment recommenders.toml -o experiment --dry-run; "
    "fastscore experiment recommenders.toml -o experiment",
)
@click.argument("file", type=PATH)
@option("-o", "--output", type=PATH, help="The experiment's folder.")
@option(
    "--dry-run", is_flag=True, help="Estimate requests, tokens and cost. Ask and write nothing."
)
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
    file: Path, output: Path | None, dry_run: bool, as_json: bool, quiet: bool, **how: Any
) -> None:
    """Run the experiment of FILE, a TOML file: agents × sessions of preference_shift.

    Every agent meets the same users. Its dialogues are judged, scored, compared and analysed. The
    same command finishes an interrupted experiment, and asks no model anything twice.

    \b
    FILE, with paths from its folder:
      catalogue = "movies.jsonl"
      agents = ["offline", "openai:llama3", "python:mine.Bot"]
      sessions = 100                    # of each agent
      turns = 50
      # seed = 0, or seeds = [0, 1, 2]; user, policy, off_catalogue, refusals
      [models]                          # options of chat models
      base_url = "http://127.0.0.1:11434/v1"
      [judge]                           # optional, or several [[judge]]
      model = "llama3"                  # and rubric, repeats, pairs = true
      [people]                          # optional: scores = "people.csv", pairs
      [score]                           # optional: options of preference_shift

    -o has report.html, analysis/, comparison/, scores/ (the run), logs/, judgements/ and
    manifest.json (what was spent). Exit code 4: too many requests failed, or the budget is spent.
    The same command continues. Other settings need another folder.
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
    summary = run_experiment(experiment, output, reporter(quiet=quiet), **how)
    if as_json:
        write_line(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    elif not quiet:
        write_line(f"report     {summary['report']}")
        write_line(f"analysis   {summary['analysis']}")
