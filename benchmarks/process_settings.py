"""What the command line sets for its process, against the same run without: processor seconds.

A setting stays as long as it saves a twentieth of a whole lexical run, start-up included; the
library sets none of them in a process that imports it. Runs take turns, the best of each counts.
"""

import sys
import tempfile
from pathlib import Path

import click

from benchmarks.figures import Figure, publish
from benchmarks.host import describe_host
from benchmarks.miner_logs import generate
from benchmarks.processes import measure

LEAST_SAVED = 1.05
SETTINGS = {
    "memory that is freed is kept (mallopt)": (
        "import fastscore.allocation as place; place.keep_freed_memory = lambda: None"
    ),
    "garbage is collected seldom, not at exit": (
        "import contextlib, fastscore.cli as place; place.seldom_collected = contextlib.nullcontext"
    ),
}


def _command(change: str, logs: Path, run: Path) -> list[str]:
    program = f"import sys; {change or 'pass'}; from fastscore.cli import main; main()"
    words = ["score", "score_dialogue", str(logs), "--lex-weight", "1", "-q", "-o", str(run)]
    return [sys.executable, "-c", program, *words, "--overwrite"]


@click.command()
@click.option("--quick", is_flag=True, help="A twentieth of the rows, and three runs.")
@click.option("--dialogues", type=click.IntRange(min=1), default=4_000, show_default=True)
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
def main(quick: bool, dialogues: int, repetitions: int) -> None:
    """Measure runs with every setting, and with one of them left out."""
    dialogues, repetitions = (dialogues // 20, 3) if quick else (dialogues, repetitions)
    click.echo(describe_host())
    with tempfile.TemporaryDirectory() as folder:
        logs, run = Path(folder) / "logs", Path(folder) / "run"
        counts = generate(logs, dialogues=dialogues)
        changes = {"": "", **SETTINGS}
        seconds: dict[str, list[float]] = {name: [] for name in changes}
        for _ in range(repetitions):
            for name, change in changes.items():
                seconds[name].append(measure(_command(change, logs, run), cwd=Path(folder)).cpu)
    ours = min(seconds[""])
    figures = [
        Figure(
            what=name,
            rows=counts.predictions,
            unit="processor s",
            ours=ours,
            peer="without",
            theirs=min(seconds[name]),
            ratio=min(seconds[name]) / ours,
            aim=LEAST_SAVED,
        )
        for name in SETTINGS
    ]
    for figure in figures:
        click.echo(
            f"{figure.what}: {ours:.2f} s, without {figure.theirs:.2f} s: {figure.ratio:.2f}"
        )
    publish(figures)


if __name__ == "__main__":
    main()
