"""Every benchmark in turn, each in a separate process, and one table of all figures.

``python -m benchmarks [--quick] [--only NAME] [--json FILE]``, ``python -m benchmarks compare
BEFORE.json AFTER.json`` for two such files, and ``python -m benchmarks page`` for the page of
figures in docs/.

The record is one JSON file. A benchmark that is repeated replaces its own entry, with date, commit,
arguments and host. A test compares the page with the record.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import FILE_VARIABLE, HEADER, Figure, describe_host, read_figures, table
from benchmarks.scale import model, rates, scheduled

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "benchmarks" / "figures.json"
PAGE = ROOT / "docs" / "benchmarks_figures.md"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The command of a benchmark.

    Parameters
    ----------
    command
        Module and subcommand, after ``python -m benchmarks.``.
    quick
        Arguments for a small size.
    environment
        Variables of its process.
    """

    command: str
    quick: str = "--quick"
    environment: Mapping[str, str] = field(default_factory=dict)


_ONE_THREAD = {"POLARS_MAX_THREADS": "1"}

BENCHMARKS: Mapping[str, Benchmark] = {
    "kernels_text": Benchmark("kernels texts", "--scale 0.1 --repetitions 3", _ONE_THREAD),
    "kernels_groups": Benchmark("kernels groups", "--scale 0.1 --repetitions 3", _ONE_THREAD),
    "read_logs": Benchmark("read_logs", "--scale 0.2 --repetitions 3"),
    "growth": Benchmark("kernel_costs growth", "--most 100000"),
    "instructions": Benchmark("kernel_costs instructions", "--rows 200"),
    "embedding": Benchmark("embedding"),
    "embedding_growth": Benchmark("embedding_scaling growth"),
    "embedding_cores": Benchmark("embedding_scaling cores"),
    "vector_store": Benchmark("vector_store"),
    "end_to_end": Benchmark("end_to_end"),
    "group_travel": Benchmark("group_travel compare"),
    "preference_shift": Benchmark("preference_shift compare"),
    "ngram_extraction": Benchmark("preference_shift ngrams"),
    "guest_simulation": Benchmark("guest_simulation"),
    "memory_finance": Benchmark("memory_finance compare"),
    "simulation": Benchmark("preference_shift simulation"),
    "engines": Benchmark("engines", "--quick --engine dask"),
    "compile_kernels": Benchmark("kernel_costs compile"),
    "screening": Benchmark("run_overheads screening"),
    "verification": Benchmark("run_overheads verification", "--scale 0.02"),
    "report_page": Benchmark("run_overheads report_page"),
    "coverage": Benchmark("coverage"),
    "scorer": Benchmark("run_overheads scorer"),
    "install_size": Benchmark("install_size", "--extra core"),
    "object_store": Benchmark("object_store"),
}
"""Every benchmark, by its name in the record."""

_INTRODUCTION = """\
# Figures

Written by `python -m benchmarks page` from the [record](benchmarks/figures.json) of the benchmarks.
Ratios are from one run, with ours and the peer's interleaved. Aims are judged only at full size.
`python -m benchmarks --only NAME --json docs/benchmarks/figures.json` measures one benchmark again,
`--with` with other arguments. Each entry has its date, commit and host, which may differ.
"""
_UNMEASURED = "Not in the record yet: `python -m benchmarks --only {name}` measures it.\n"
_SCALE = """\
## scale

Not measured: a model of [several machines](scale.md), by `python -m benchmarks.scale`, from the
rates on that page. Rates of a core for `score_dialogue`:
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one run of a benchmark.

    Parameters
    ----------
    arguments
        Its arguments; none at full size.
    date
        The day, in UTC.
    commit
        Of the repository, with ``-dirty`` if files other than docs have changed since.
    host
        From `describe_host`.
    figures
        The published figures.
    """

    arguments: tuple[str, ...]
    date: str
    commit: str
    host: Mapping[str, str]
    figures: tuple[Figure, ...]


def measured(arguments: list[str], figures: list[Figure]) -> Measured:
    """Add date, commit and host to new figures."""
    return Measured(
        arguments=tuple(arguments),
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        host=describe_host(),
        figures=tuple(figures),
    )


def read_record(path: Path) -> dict[str, Measured]:
    """Read a record by benchmark; a missing file is an empty record."""
    if not path.exists():
        return {}
    return {
        name: _entry(found) for name, found in json.loads(path.read_text(encoding="utf-8")).items()
    }


def save_record(path: Path, record: Mapping[str, Measured]) -> None:
    """Write a record. A benchmark with other arguments is a separate entry."""
    content = {name: asdict(record[name]) for name in sorted(record)}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def page(record: Mapping[str, Measured], names: Iterable[str]) -> str:
    """Return the page of a record, which may lack some of these benchmarks."""
    lines = [_INTRODUCTION]
    for name in sorted({*names, *map(_benchmark, record)}):
        lines.append(f"## {name}\n")
        entries = [record[key] for key in sorted(record) if _benchmark(key) == name]
        lines += [line for entry in entries for line in _part(name, entry)]
        if not entries:
            lines.append(_UNMEASURED.format(name=name))
    lines += [_SCALE, *rates(), "\nHours and cost:\n", *model()]
    lines += ["\nThe scheduler, simulated with 100,000 shards:\n", *scheduled(), ""]
    return "\n".join(lines)


def compare(before: Path, after: Path) -> Iterator[str]:
    """Return the table of two records side by side, with ratios."""
    sides = [
        {
            (name, figure.what, figure.peer): figure.ratio
            for name, found in read_record(path).items()
            for figure in found.figures
        }
        for path in (before, after)
    ]
    yield "| benchmark | what | peer | ratio before | ratio after | after / before |"
    yield "|---|---|---|--:|--:|--:|"
    for key in dict.fromkeys((*sides[0], *sides[1])):
        old, new = (side.get(key) for side in sides)
        shown = ["-" if ratio is None else f"{ratio:,.2f}x" for ratio in (old, new)]
        change = f"{new / old:.2f}" if old and new else "-"
        yield f"| {' | '.join(key)} | {shown[0]} | {shown[1]} | {change} |"


def _benchmark(key: str) -> str:
    return key.split()[0]


def _part(name: str, found: Measured) -> Iterator[str]:
    host = found.host
    versions = ", ".join(
        f"{package} {version}"
        for package, version in host.items()
        if package not in ("processor", "system", "load") and version != "not installed"
    )
    how = BENCHMARKS.get(name, Benchmark(name))
    variables = [f"{variable}={value}" for variable, value in how.environment.items()]
    command = " ".join(
        [*variables, f"python -m benchmarks.{how.command}", *map(shlex.quote, found.arguments)]
    )
    yield (
        f"`{command}` on {found.date}, commit {found.commit}: {host['processor']}, "
        f"{host['system']}, load {host['load']}; {versions}.\n"
    )
    yield HEADER
    yield from table(name, found.figures, judged=not found.arguments)
    yield ""


def _entry(found: dict[str, Any]) -> Measured:
    figures = tuple(Figure(**figure) for figure in found.pop("figures"))
    return Measured(**{**found, "arguments": tuple(found["arguments"]), "figures": figures})


def _commit() -> str:
    def git_output(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, check=False, capture_output=True, text=True
        )
        return done.stdout.strip()

    # the record itself changes with each benchmark
    is_changed = git_output("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    commit = git_output("describe", "--always", "--abbrev=7")
    return f"{commit}{'-dirty' if is_changed else ''}" if commit else "unknown"


@click.group(invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Small sizes: minutes, not hours.")
@click.option("--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="May be repeated.")
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
    """Run every benchmark. Aims are for full size."""
    if context.invoked_subcommand is not None:
        return
    if given is not None and (quick or len(only) != 1):
        raise click.UsageError("--with is for one benchmark, named by --only, without --quick.")
    chosen = only or tuple(BENCHMARKS)
    found: dict[str, Measured] = {}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(chosen, 1):
            benchmark = BENCHMARKS[name]
            click.echo(f"\n== {number} of {len(chosen)}: benchmarks.{benchmark.command} ==")
            path = Path(folder) / name
            arguments = shlex.split(benchmark.quick if quick else given or "")
            module, *subcommand = benchmark.command.split()
            words = [sys.executable, "-m", f"benchmarks.{module}", *subcommand, *arguments]
            started = time.monotonic()
            environment = {**os.environ, **benchmark.environment, FILE_VARIABLE: str(path)}
            if subprocess.run(words, check=False, env=environment).returncode:
                failed.append(name)
            click.echo(f"({time.monotonic() - started:.0f} s)")
            found[name] = measured(arguments, read_figures(path))
    click.echo(f"\n{HEADER}")
    for name, run in found.items():
        click.echo("\n".join(table(name, run.figures, judged=not run.arguments)))
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
    """Print the ratios of two files written by --json."""
    click.echo("\n".join(compare(before, after)))


@main.command("page")
def page_command() -> None:
    """Write the page of figures from the record in docs/."""
    PAGE.write_text(page(read_record(RECORD), BENCHMARKS), encoding="utf-8")


if __name__ == "__main__":
    main()
