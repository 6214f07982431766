"""What it costs to compare a run's tables with their hashes before they are read.

The run is one of real dialogues, scored by letters. Two cases, each with and without the
comparison: every table of a run is opened and each of its columns read, where the run's shards
stand there as often as it takes to fill a gigabyte; and the complete run is resumed, which compares
every committed file.

Usage: python -m benchmarks.verification [--scale 1] [--repetitions 3]
"""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import fastscore
from benchmarks.harness import Case, main
from benchmarks.miner_logs import generate
from fastscore.run import commit
from fastscore.run.commit import RECEIPTS, load_receipt, part_name, receipt_path, save_receipt
from fastscore.run.config import RunConfig
from fastscore.run.drive import execute
from fastscore.run.manifest import read_manifest
from fastscore.run.progress import SilentReporter

_DIALOGUES = 2000
_TABLE_BYTES = 1 << 30


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


def _resumed(config: RunConfig) -> list[Any]:
    return [execute(config, SilentReporter()).manifest.status]


def _unverified(config: RunConfig) -> list[Any]:
    """Resume a run as if every file were as it was committed."""
    found: Callable[..., bool] = commit.is_intact
    commit.is_intact = lambda run, output: True
    try:
        return _resumed(config)
    finally:
        commit.is_intact = found


def _same(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    assert all(other == first for other in others)


def _size(run: Path) -> int:
    return sum(part.stat().st_size for part in run.rglob("*.parquet"))


def _repeated(run: Path, target: Path, times: int) -> Path:
    """Make a run in which every shard of another stands several times, each in files of its own."""
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
            path = f"{Path(output.path).parent}/{part_name(index)}"
            (target / path).write_bytes((run / output.path).read_bytes())
            outputs.append(dataclasses.replace(output, path=path))
        repeated.append(dataclasses.replace(receipt, index=index, outputs=tuple(outputs)))
        save_receipt(target / RECEIPTS, repeated[-1])
    manifest.shards *= times
    manifest.parts_hash = commit.hash_of_outputs(repeated)
    manifest.save(target)
    return target


def cases(scale: float) -> Iterator[Case]:
    """Compare verified and unverified reading."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dialogues = max(200, int(_DIALOGUES * min(scale, 1.0)))
        written = generate(folder / "logs", dialogues=dialogues, miners=2)
        config = RunConfig(
            suite="score_dialogue",
            inputs=(str(folder / "logs"),),
            output=folder / "run",
            options={"lex_weight": 1.0},
        )
        execute(config, SilentReporter())
        rows = written.utterances + written.predictions
        yield Case(
            f"resuming a complete run of {rows:,} rows",
            rows,
            {"verified": partial(_resumed, config), "not verified": partial(_unverified, config)},
            ("not verified", 0.97),
            _same,
            times=5,
        )
        often = max(1, round(_TABLE_BYTES * scale / _size(config.output)))
        large = _repeated(config.output, folder / "large", often)
        yield Case(
            f"opening and reading {_size(large) / 2**20:,.0f} MiB of tables",
            rows * often,
            {
                "verified": partial(_opened, large, verify=True),
                "not verified": partial(_opened, large, verify=False),
            },
            ("not verified", 0.95),
            _same,
        )


if __name__ == "__main__":
    main(cases)
