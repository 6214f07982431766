"""``fastscore judge``: dialogues judged by a chat model and a rubric."""

from pathlib import Path
from typing import Any

import click

from fastscore.cli.headings import HeadedCommand
from fastscore.cli.model_options import model_options, read_model_options
from fastscore.terminal import write_note


@click.command(
    "judge",
    cls=HeadedCommand,
    epilog="Example: fastscore judge logs --model llama3 --base-url http://127.0.0.1:11434/v1 "
    "-o judgements",
)
@click.argument("inputs", nargs=-1, required=True, metavar="LOGS...")
@click.option("--suite", default="preference_shift", show_default=True, help="Whose logs they are.")
@click.option(
    "--rubric", default="pepper", show_default=True, help="A bundled rubric, or a TOML file."
)
@click.option("--model", required=True, help="The judge's name at its server.")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Per dialogue."
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def command(
    inputs: tuple[str, ...],
    suite: str,
    rubric: str,
    model: str,
    repeats: int,
    seed: int,
    output: Path,
    as_json: bool,
    quiet: bool,
    **models: Any,
) -> None:
    """Judge the dialogues of LOGS, of any suite, by a chat model.

    Writes judgements.jsonl, which `fastscore analyse` and `compare --judge` join to a run, every
    repeat, what was rejected with its answer, and a summary of agreement and bias. Every answer is
    kept: running the same command again asks only for what is missing.
    """
    from fastscore.llm.judging import Judging, run_judge
    from fastscore.llm.show import show_judgements
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
    summary, spent = run_judge(asked, reporter(quiet=quiet))
    if not quiet:
        write_note(spent.line())
    if as_json or not quiet:
        show_judgements(summary, output, as_json=as_json)
