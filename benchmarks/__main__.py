"""Every benchmark in turn, each in a process of its own, and one table of what they found.

``python -m benchmarks [--quick] [--only NAME] [--json FILE]``,
``python -m benchmarks compare BEFORE.json AFTER.json`` for two such files, and
``python -m benchmarks page`` for the page of figures in docs/.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.figures import FILE_VARIABLE, HEADER, read_figures, table
from benchmarks.record import (
    ENVIRONMENT,
    PAGE,
    RECORD,
    Measured,
    compare,
    measured,
    page,
    read_record,
    save_record,
)

QUICK = {
    "kernels_text": ["--scale", "0.1", "--repetitions", "3"],
    "kernels_groups": ["--scale", "0.1", "--repetitions", "3"],
    "read_logs": ["--scale", "0.2", "--repetitions", "3"],
    "growth": ["--most", "100000"],
    "embedding": ["--quick"],
    "embedding_growth": ["--quick"],
    "embedding_cores": ["--quick"],
    "vector_store": ["--quick"],
    "end_to_end": ["--quick"],
    "group_travel": ["--quick"],
    "preference_shift": ["--quick"],
    "ngram_extraction": ["--quick"],
    "guest_simulation": ["--quick"],
    "memory_finance": ["--quick"],
    "simulation": ["--quick"],
    "engines": ["--quick", "--engine", "dask"],
    "process_settings": ["--quick"],
    "compile_kernels": ["--quick"],
    "screening": ["--quick"],
    "verification": ["--scale", "0.02"],
    "report_page": ["--quick"],
    "coverage": ["--quick"],
}


@click.group(invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Small sizes: minutes, not hours.")
@click.option("--only", multiple=True, type=click.Choice(list(QUICK)), help="May be repeated.")
@click.option("--with", "given", help="Arguments of the one benchmark that --only names.")
@click.option(
    "--json",
    "output",
    type=click.Path(path_type=Path),
    help="A record of figures: what is measured replaces what it held of that.",
)
@click.pass_context
def main(
    context: click.Context,
    quick: bool,
    only: tuple[str, ...],
    given: str | None,
    output: Path | None,
) -> None:
    """Run every benchmark; aims are set for full size."""
    if context.invoked_subcommand is not None:
        return
    if given is not None and (quick or len(only) != 1):
        raise click.UsageError("--with is for one benchmark, named by --only, without --quick.")
    chosen = only or tuple(QUICK)
    found: dict[str, Measured] = {}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for number, module in enumerate(chosen, 1):
            click.echo(f"\n== {number} of {len(chosen)}: benchmarks.{module} ==")
            path = Path(folder) / module
            arguments = QUICK[module] if quick else shlex.split(given or "")
            words = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
            started = time.monotonic()
            own = ENVIRONMENT.get(module, {})
            environment = {**os.environ, **own, FILE_VARIABLE: str(path)}
            if subprocess.run(words, check=False, env=environment).returncode:
                failed.append(module)
            click.echo(f"({time.monotonic() - started:.0f} s)")
            found[module] = measured(arguments, read_figures(path))
    click.echo(f"\n{HEADER}")
    for module, run in found.items():
        click.echo("\n".join(table(module, run.figures, judged=not run.arguments)))
    if output is not None:
        kept = {
            " ".join([name, *shlex.split(given or "")]): run
            for name, run in found.items()
            if name not in failed
        }
        save_record(output, read_record(output) | kept)
    if failed:
        click.echo(f"failed: {', '.join(failed)}", err=True)
        context.exit(1)


@main.command("compare")
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
def compare_command(before: Path, after: Path) -> None:
    """Show the ratios of two files that --json wrote side by side."""
    click.echo("\n".join(compare(before, after)))


@main.command("page")
def page_command() -> None:
    """Write the page of figures from the record in docs/."""
    PAGE.write_text(page(read_record(RECORD), QUICK), encoding="utf-8")


if __name__ == "__main__":
    main()
