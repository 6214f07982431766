"""``fastscore judge``: dialogues judged by a chat model and a rubric."""

from pathlib import Path
from typing import Any

import click

from fastscore.cli.command_types import HeadedCommand
from fastscore.cli.model_options import model_options, read_model_options
from fastscore.terminal import write_note


@click.command(
    "judge",
    cls=HeadedCommand,
    epilog="Example: fastscore judge logs --model llama3 --base-url http://127.0.0.1:11434/v1 "
    "-o judgements",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@click.option(
    "--suite", help="Whose logs they are.  [default: the run's, or the only suite that reads them]"
)
@click.option(
    "--against",
    multiple=True,
    metavar="LOGS",
    help="Compare with these logs, or this run, in pairs of one dialogue id. Repeatable.",
)
@click.option(
    "--rubric", default="pepper", show_default=True, help="A bundled rubric, or a TOML file."
)
@click.option(
    "--model",
    required=True,
    envvar="FASTSCORE_JUDGE_MODEL",
    show_envvar=True,
    help="The judge's name at its server.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Judgements of each dialogue: 1, or a multiple of the number of dimensions.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Seed of the requests.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def command(
    inputs: tuple[str, ...],
    suite: str | None,
    against: tuple[str, ...],
    rubric: str,
    model: str,
    repeats: int,
    seed: int,
    output: Path,
    as_json: bool,
    quiet: bool,
    **models: Any,
) -> None:
    """Judge the dialogues of LOGS by a chat model: files and folders of any suite, or one run.

    Writes judgements.jsonl, which `fastscore analyse` and `compare --judge` join to a run, every
    repeat, every failure with its answer, a summary of agreement and bias, and what was spent.
    Every answer is kept: the same command asks only for what is missing.

    With --against, LOGS are side A and the others side B. Each pair is judged in both orders, and a
    side wins if the judge prefers it in both. Writes pairs.jsonl in place of judgements.jsonl.
    """
    from fastscore.llm.judging import Judging, run_judge
    from fastscore.llm.pairwise import run_pairwise
    from fastscore.llm.show import show_judgements, show_pairs
    from fastscore.run.progress import reporter

    asked = Judging(
        inputs=inputs,
        suite=suite,
        rubric=rubric,
        model=model,
        repeats=repeats,
        seed=seed,
        output=output,
        models=read_model_options(models),
    )
    shown = reporter(quiet=quiet)
    judged = run_pairwise(asked, against, shown) if against else run_judge(asked, shown)
    if not quiet:
        write_note(judged.spent.line(asked.models.prices))
    if as_json or not quiet:
        show = show_pairs if against else show_judgements
        show(judged.summary, output, as_json=as_json)
    if judged.refusal is not None:
        raise judged.refusal
