"""``fastscore annotate``: a chat model's reading of logs, as a file that scoring takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastscore.cli.command_types import HeadedCommand, SuggestingGroup
from fastscore.cli.model_options import model_options, read_model_options
from fastscore.terminal import write_line, write_note

if TYPE_CHECKING:
    from fastscore.llm.annotate import Annotated
    from fastscore.llm.options import ModelOptions


@click.group("annotate", cls=SuggestingGroup)
def command() -> None:
    """Let a chat model read concepts or states from logs, into a file that scoring takes.

    Scoring itself asks no model: what it reads is an input, with its hash in the signature.
    """


@command.command(
    "concepts",
    cls=HeadedCommand,
    epilog="Example: fastscore annotate concepts logs --catalogue movies.json --model llama3 "
    "-o concepts.jsonl",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@click.option("--catalogue", required=True, help="The items that concepts come from.")
@click.option("--merge-speakers", is_flag=True, help="As for `score preference_shift`.")
@click.option(
    "--model",
    required=True,
    envvar="FASTSCORE_ANNOTATE_MODEL",
    show_envvar=True,
    help="The model's name at its server.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def concepts(
    inputs: tuple[str, ...],
    catalogue: str,
    merge_speakers: bool,
    model: str,
    seed: int,
    output: Path,
    quiet: bool,
    **models: Any,
) -> None:
    """Read the concepts of every text in LOGS of preference_shift.

    `fastscore score preference_shift LOGS --extract llm --annotations FILE` takes the file.
    """
    from fastscore.llm.annotate import Annotating, annotate_concepts
    from fastscore.run.progress import reporter

    asked = Annotating(
        inputs=inputs, model=model, output=output, seed=seed, models=read_model_options(models)
    )
    done = annotate_concepts(asked, catalogue, reporter(quiet=quiet), merge_speakers=merge_speakers)
    _report_annotations(done, output, asked.models, quiet=quiet)


@command.command(
    "states",
    cls=HeadedCommand,
    epilog="Example: fastscore annotate states logs --model llama3 -o states",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@click.option("--level", type=click.IntRange(min=0), default=0, help="As for `score`.")
@click.option(
    "--model",
    required=True,
    envvar="FASTSCORE_ANNOTATE_MODEL",
    show_envvar=True,
    help="The model's name at its server.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def states(
    inputs: tuple[str, ...],
    level: int,
    model: str,
    seed: int,
    output: Path,
    quiet: bool,
    **models: Any,
) -> None:
    """Read the state of every guest's message in LOGS of guest_simulation.

    `fastscore score guest_simulation LOGS --states llm --states-from FOLDER` takes the files.
    """
    from fastscore.llm.annotate import Annotating, annotate_states
    from fastscore.run.progress import reporter

    asked = Annotating(
        inputs=inputs, model=model, output=output, seed=seed, models=read_model_options(models)
    )
    done = annotate_states(asked, reporter(quiet=quiet), level=level)
    _report_annotations(done, output, asked.models, quiet=quiet)


def _report_annotations(
    done: "Annotated", output: Path, models: "ModelOptions", *, quiet: bool
) -> None:
    if not quiet:
        write_note(done.spent.line(models.prices))
        write_line(
            f"{output}: {done.read:,} annotations, {done.failed:,} failed, "
            f"{done.not_asked:,} not asked"
        )
    if done.refusal is not None:
        raise done.refusal
