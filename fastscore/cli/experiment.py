"""``fastscore experiment``: simulate, judge, score and analyse in one resumable folder."""

from pathlib import Path

import click

from fastscore.processors import available_processors
from fastscore.terminal import write_line


@click.command(
    "experiment",
    epilog="Example: fastscore experiment recommenders.toml -o experiment --dry-run",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The experiment's folder.")
@click.option("--dry-run", is_flag=True, help="Say what would be asked. Ask and write nothing.")
@click.option("--replay", is_flag=True, help="Use stored answers only.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=available_processors(),
    help="Number of processes for work without a model. Default: the number of processors.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
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
