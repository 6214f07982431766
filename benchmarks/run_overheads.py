"""Costs of a run besides scoring: checks, verified hashes, its page, calls of a Scorer.

``screening``: files are screened before planning, and nulls and unknown words are counted while
rows are scored. Both are timed inside runs, by the processor time of the process with one worker.
Runs with and without them alternate. There are two shapes: a few large files, and one file per
dialogue.

``verification``: a run's tables are compared with their hashes before they are read. There are two
cases, each with and without the comparison. In one, every table of a run is opened and all columns
are read, with the run's shards repeated up to a gigabyte. In the other, the complete run is
resumed, which compares every committed file.

``report_page``: logs are made, scored without an embedder and reported, each in a separate process,
and the report is measured. Most of a page is its example dialogues, whose number is fixed.

``scorer``: processor time of whole calls of `fastscore.Scorer`, lexically, beside `fastscore.score`
of the same frame. A call of one dialogue and a call of all give the cost of a row and the fixed
cost.

Usage: python -m benchmarks.run_overheads screening|verification|report_page|scorer [--quick]
"""

import dataclasses
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import click
import polars as pl

import fastscore
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.harness import Case, command
from benchmarks.miner_logs import Layout, generate
from benchmarks.processes import measure
from fastscore.logs.samples.screening import Screened
from fastscore.run import commit
from fastscore.run.commit import (
    RECEIPTS,
    UNKNOWN_SCHEMA,
    load_receipt,
    part_name,
    receipt_path,
    save_receipt,
)
from fastscore.run.drive import execute
from fastscore.run.manifest import read_manifest
from fastscore.run.notes import RowCounts
from fastscore.run.progress import SilentReporter
from fastscore.run.request import Request

MOST_SCREENING_SHARE = 0.01
CHECKS = ("fastscore.run.inputs.screen", "fastscore.run.scoring.count_missing")
LAYOUTS: tuple[tuple[str, Layout, int], ...] = (
    ("few large files", "shards", 4_000),
    ("a file a dialogue", "dialogue", 2_000),
)


@contextmanager
def _timed(spent: list[float]) -> Iterator[None]:
    """Add up the time of the checks."""

    def timed(check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started = time.process_time()
            try:
                return check(*arguments)
            finally:
                spent.append(time.process_time() - started)

        return run

    with ExitStack() as stack:
        for name in CHECKS:
            module, _, function = name.rpartition(".")
            check = getattr(__import__(module, fromlist=[function]), function)
            stack.enter_context(mock.patch(name, timed(check)))
        yield


@contextmanager
def _score_unscreened() -> Iterator[None]:
    """Score the named files without screening and counting."""
    with (
        mock.patch(CHECKS[0], lambda files, source, suite: Screened(tuple(files), (), ())),
        mock.patch(CHECKS[1], return_value=RowCounts({}, pl.DataFrame(schema=UNKNOWN_SCHEMA))),
    ):
        yield


def _run_seconds(logs: Path, folder: Path) -> float:
    """Return the processor seconds of a lexical run."""
    request = Request(
        suite="score_dialogue",
        inputs=(str(logs),),
        output=folder / "run",
        options={"lex_weight": 1.0},
        embedder=None,
    )
    started = time.process_time()
    execute(request, SilentReporter())
    spent = time.process_time() - started
    shutil.rmtree(request.folder)  # the next run starts from the beginning
    return spent


@click.command("screening")
@click.option("--quick", is_flag=True, help="A tenth of the dialogues, and three runs.")
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
def screening(quick: bool, repetitions: int) -> None:
    """Measure runs with the checks and without."""
    repetitions = 3 if quick else repetitions
    click.echo(describe_host())
    for what, layout, dialogues in LAYOUTS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            dialogues = dialogues // 10 if quick else dialogues
            counts = generate(folder / "logs", dialogues=dialogues, layout=layout)
            rows = counts.predictions + counts.utterances
            _run_seconds(folder / "logs", folder)  # compiles kernels, and fills the disk cache
            checks, checked, unchecked = [], [], []
            for _ in range(repetitions):
                spent: list[float] = []
                with _timed(spent):
                    checked.append(_run_seconds(folder / "logs", folder))
                checks.append(sum(spent))
                with _score_unscreened():
                    unchecked.append(_run_seconds(folder / "logs", folder))
        ours, run, without = map(statistics.median, (checks, checked, unchecked))
        click.echo(
            f"{what} ({counts.files:,} files, {rows:,} rows): checks {ours * 1e3:.2f} ms "
            f"({min(checks) * 1e3:.2f} to {max(checks) * 1e3:.2f}) of {run * 1e3:.0f} ms, "
            f"{ours / run:.2%}; whole runs without them {without * 1e3:.0f} ms "
            f"({min(unchecked) * 1e3:.0f} to {max(unchecked) * 1e3:.0f})"
        )
        publish(
            [
                Figure(
                    what=f"checks of columns, {what}",
                    rows=rows,
                    unit="CPU ms",
                    ours=ours * 1e3,
                    peer="the run that they are part of",
                    theirs=run * 1e3,
                    ratio=run / ours,
                    aim=1 / MOST_SCREENING_SHARE,
                )
            ]
        )


VERIFIED_DIALOGUES = 2000
VERIFIED_BYTES = 1 << 30


def _opened(run: Path, *, verify: bool) -> list[Any]:
    """Read every column of every table of a run."""
    opened = fastscore.open_run(run, verify=verify)
    # a mean is as cheap as anything that needs a column's values
    return [
        table.select(pl.all().drop_nulls().len(), pl.selectors.float().mean().name.suffix("_mean"))
        .collect(engine="streaming")
        .row(0)
        for table in opened.lazy_tables.values()
    ]


def _resumed(request: Request) -> list[Any]:
    return [execute(request, SilentReporter()).manifest.status]


def _unverified(request: Request) -> list[Any]:
    """Resume a run without verifying its files."""
    found: Callable[..., bool] = commit.is_intact
    commit.is_intact = lambda run, output: True
    try:
        return _resumed(request)
    finally:
        commit.is_intact = found


def _same(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    assert all(other == first for other in others)


def _parquet_bytes(run: Path) -> int:
    return sum(part.stat().st_size for part in run.rglob("*.parquet"))


def _repeated(run: Path, target: Path, times: int) -> Path:
    """Make a run with every shard of another repeated, each time in separate files."""
    manifest = read_manifest(run)
    assert manifest is not None
    folders = [*manifest.tables, "rejects"]
    for folder in folders:
        (target / folder).mkdir(parents=True)
    (target / RECEIPTS).mkdir()
    repeated = []
    for index in range(manifest.shards * times):
        receipt = load_receipt(receipt_path(run / RECEIPTS, "score", index % manifest.shards))
        assert receipt is not None
        outputs = []
        for output in receipt.outputs:
            path = f"{Path(output.path).parts[0]}/{part_name(index)}"
            (target / path).parent.mkdir(exist_ok=True)
            (target / path).write_bytes((run / output.path).read_bytes())
            outputs.append(dataclasses.replace(output, path=path))
        repeated.append(dataclasses.replace(receipt, index=index, outputs=tuple(outputs)))
        save_receipt(target / RECEIPTS, repeated[-1])
    manifest.shards *= times
    manifest.parts_hash = commit.hash_of_outputs(repeated)
    manifest.save(target)
    return target


def verification_cases(scale: float) -> Iterator[Case]:
    """Compare verified and unverified reading."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dialogues = max(200, int(VERIFIED_DIALOGUES * min(scale, 1.0)))
        written = generate(folder / "logs", dialogues=dialogues, miners=2)
        request = Request(
            suite="score_dialogue",
            inputs=(str(folder / "logs"),),
            output=folder / "run",
            options={"lex_weight": 1.0},
        )
        execute(request, SilentReporter())
        rows = written.utterances + written.predictions
        yield Case(
            f"resuming a complete run of {rows:,} rows",
            rows,
            {"verified": partial(_resumed, request), "not verified": partial(_unverified, request)},
            ("not verified", 0.97),
            _same,
            times=5,
        )
        often = max(1, round(VERIFIED_BYTES * scale / _parquet_bytes(request.folder)))
        large = _repeated(request.folder, folder / "large", often)
        yield Case(
            f"opening and reading {_parquet_bytes(large) / 2**20:,.0f} MiB of tables",
            rows * often,
            {
                "verified": partial(_opened, large, verify=True),
                "not verified": partial(_opened, large, verify=False),
            },
            ("not verified", 0.95),
            _same,
        )


MOST_PAGE_SECONDS = 20.0
MOST_PAGE_BYTES = 5_000_000


@click.command("report_page")
@click.option("--dialogues", default=116_000, show_default=True, help="10 million steps.")
@click.option("--quick", is_flag=True, help="A hundredth of the dialogues.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    show_default="the system's",
    help="Where to keep logs (3.3 GB) and the run while measuring.",
)
def report_page(dialogues: int, quick: bool, scratch: Path | None) -> None:
    """Measure the report of a run."""
    click.echo(describe_host())
    program = (sys.executable, "-m", "fastscore")
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        work = Path(place)
        counts = generate(
            work / "logs", dialogues=dialogues // 100 if quick else dialogues, layout="shards"
        )
        score = (
            *program,
            "score",
            "score_dialogue",
            "logs",
            "-o",
            "run",
            "--lex-weight",
            "1",
        )
        scored = measure(score, cwd=work)
        page = measure((*program, "report", "run", "-o", "page.html"), cwd=work)
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
                theirs=MOST_PAGE_SECONDS,
                ratio=MOST_PAGE_SECONDS / page.wall,
                aim=1.0,
            ),
            Figure(
                what="bytes of a page",
                rows=counts.predictions,
                unit="MB",
                ours=size / 1e6,
                peer="what a page may take",
                theirs=MOST_PAGE_BYTES / 1e6,
                ratio=MOST_PAGE_BYTES / size,
                aim=1.0,
            ),
        ]
    )


MOST_MS_A_CALL = 10.0
MOST_US_A_ROW = 0.8
STREAMED_ROWS = 10_000
"""The batch size of Spark."""


def _measured(call: Callable[[], Any], repetitions: int) -> list[float]:
    """Return the processor seconds of calls, after one that warms up."""
    call()
    spent = []
    for _ in range(repetitions):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return spent


def _limited(what: str, rows: int, unit: str, ours: float, most: float) -> Figure:
    return Figure(
        what=what,
        rows=rows,
        unit=unit,
        ours=ours,
        peer="the most that it may",
        theirs=most,
        ratio=most / ours,
        aim=1.0,
    )


@click.command("scorer")
@click.option("--quick", is_flag=True, help="A tenth of the repetitions.")
@click.option("--dialogues", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--repetitions", type=click.IntRange(min=10), default=100, show_default=True)
def scorer_calls(quick: bool, dialogues: int, repetitions: int) -> None:
    """Measure calls of one dialogue and of many, a stream of batches, and `fastscore.score`."""
    repetitions = 10 if quick else repetitions
    click.echo(describe_host())
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder) / "logs", dialogues=dialogues, layout="shards")
        rows = fastscore.scan(f"{folder}/logs", "score_dialogue").collect()
    scorer = fastscore.Scorer(fastscore.ScoreDialogue(lex_weight=1.0), "steps")
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    one = table[: rows["dialogue_uid"].rle_id().eq(0).sum()]
    batches = table.combine_chunks().to_batches(max_chunksize=STREAMED_ROWS)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    calls: dict[str, Callable[[], Any]] = {
        "one dialogue": lambda: scorer(one),
        "all dialogues": lambda: scorer(table),
        "a stream": lambda: list(scorer.map_batches(batches)),
        "fastscore.score": lambda: fastscore.score(rows, options),
    }
    spent = {what: _measured(call, repetitions) for what, call in calls.items()}
    for what, seconds in spent.items():
        click.echo(
            f"{what}: {statistics.median(seconds) * 1e3:.1f} CPU ms "
            f"({min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f})"
        )
    least, most, streamed, whole = (statistics.median(seconds) for seconds in spent.values())
    a_row = (most - least) / (table.num_rows - one.num_rows)
    fixed = (least - a_row * one.num_rows) * 1e3
    of_all = f"{dialogues:,} dialogues"
    n_rows = table.num_rows
    publish(
        [
            _limited("a call beyond its rows", 1, "CPU ms", fixed, MOST_MS_A_CALL),
            _limited(f"a row of {of_all}", n_rows, "CPU us", most / n_rows * 1e6, MOST_US_A_ROW),
            Figure(
                what=f"{of_all} in batches of {STREAMED_ROWS:,} rows",
                rows=n_rows,
                unit="CPU us/row",
                ours=streamed / n_rows * 1e6,
                peer="fastscore.score of one frame",
                theirs=whole / n_rows * 1e6,
                ratio=whole / streamed,
            ),
        ]
    )


main = click.Group(
    "run_overheads",
    commands=[screening, command(verification_cases, "verification"), report_page, scorer_calls],
)


if __name__ == "__main__":
    main()
