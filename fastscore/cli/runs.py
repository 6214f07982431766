"""``fastscore runs``: the runs in a folder."""

from pathlib import Path

import click

from fastscore.terminal import result_console, write_line


@click.command("runs", epilog="Example: fastscore runs . -o runs.html")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an HTML page with a link to a report of each run. The reports are written beside "
    "the page, in PAGE-reports.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the runs as JSON.")
def command(folder: Path, output: Path | None, as_json: bool) -> None:
    """List the runs in FOLDER and below, the latest first. Default: the working directory.

    A line for each run: suite, dialogues, age, means of the headline metrics, and the options that
    are not defaults.
    """
    from fastscore.results.run_list import list_runs, runs_grid, write_index
    from fastscore.run.commit import as_json as write_json
    from fastscore.terminal.grids import print_grid

    found = list_runs(folder)
    if output is not None:
        write_line(write_index(found, folder, output))
    elif as_json:
        write_line(write_json(found.to_dicts()).rstrip())
    elif found.is_empty():
        write_line(f"No run in {folder}.")
    else:
        print_grid(result_console(), runs_grid(found, folder))
