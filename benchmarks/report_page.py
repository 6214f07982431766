"""How long a report of a large lexical run takes, and how large its page is.

Logs are made, scored without an embedder and reported as a user would, each by a process of its
own; the report is measured. Most of a page is the dialogues that it shows, which do not grow.

Usage: python -m benchmarks.report_page [--dialogues 116000] [--quick]
"""

import sys
import tempfile
from pathlib import Path

import click

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.miner_logs import generate
from benchmarks.processes import measure

MOST_SECONDS = 20.0
MOST_BYTES = 5_000_000


@click.command()
@click.option("--dialogues", default=116_000, show_default=True, help="10 million steps.")
@click.option("--quick", is_flag=True, help="A hundredth of the dialogues.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    show_default="the system's",
    help="Where to keep logs (3.3 GB) and the run while measuring.",
)
def main(dialogues: int, quick: bool, scratch: Path | None) -> None:
    """Measure the report of a run."""
    click.echo(describe_host())
    command = (sys.executable, "-m", "fastscore")
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        work = Path(place)
        counts = generate(
            work / "logs", dialogues=dialogues // 100 if quick else dialogues, layout="shards"
        )
        score = (*command, "score", "score_dialogue", "logs", "-o", "run", "--lex-weight", "1")
        scored = measure(score, cwd=work)
        page = measure((*command, "report", "run", "-o", "page.html"), cwd=work)
        size = (work / "page.html").stat().st_size
    click.echo(
        f"{counts.predictions:,} steps of {counts.dialogues:,} dialogues: scored in "
        f"{scored.wall:.1f} s, page in {page.wall:.1f} s "
        f"({page.cpu:.1f} s of processor, {page.peak_mb:,.0f} MB), "
        f"{size / 1e6:.2f} MB"
    )
    publish(
        [
            Figure(
                what="seconds of a page",
                rows=counts.predictions,
                unit="s",
                ours=page.wall,
                peer="what a page may take",
                theirs=MOST_SECONDS,
                ratio=MOST_SECONDS / page.wall,
                aim=1.0,
            ),
            Figure(
                what="bytes of a page",
                rows=counts.predictions,
                unit="MB",
                ours=size / 1e6,
                peer="what a page may take",
                theirs=MOST_BYTES / 1e6,
                ratio=MOST_BYTES / size,
                aim=1.0,
            ),
        ]
    )


if __name__ == "__main__":
    main()
