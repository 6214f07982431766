"""``fastscore analyse``: tables, figures and a page of a run, by its suite's own analysis."""

from pathlib import Path

import click

from fastscore.terminal import write_line, write_note


@click.command("analyse", epilog="Example: fastscore analyse run --judge judge.jsonl")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for page, tables and figures. Not a run.  [default: RUN-analysis]",
)
@click.option(
    "--judge",
    type=click.Path(path_type=Path),
    help="A judge's scores: JSON, JSON Lines, CSV or Parquet, a row a dialogue.",
)
@click.option(
    "--judge-column",
    "judge_columns",
    multiple=True,
    help="Another column of that file that holds scores. May be repeated.",
)
@click.option(
    "--judge-range",
    type=(float, float),
    default=(1, 5),
    show_default=True,
    help="The smallest and largest possible score. Others are refused and listed.",
)
@click.option(
    "--cluster",
    default="dialogue",
    show_default=True,
    metavar="COLUMN",
    help="Unit of intervals and tests: a column of table dialogues, such as the user.",
)
def command(
    run: Path,
    output: Path | None,
    judge: Path | None,
    judge_columns: tuple[str, ...],
    judge_range: tuple[float, float],
    cluster: str,
) -> None:
    """Analyse RUN from its tables by its suite's own analysis: nothing is scored again."""
    from fastscore.results.analyse import analyse

    made = analyse(
        run,
        output,
        judge=judge,
        judge_columns=judge_columns,
        judge_scale=judge_range,
        cluster=cluster,
    )
    for note in made.notes:
        write_note(f"Note: {note}")
    write_line(made.page)
