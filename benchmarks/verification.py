"""What it costs to verify a run's tables by their hashes before they are read.

Two cases, each with and without the verification: every table of a run is opened and read whole;
and a complete run is resumed, which compares every committed file. A large run is `--scale 1`, of
about a gigabyte of tables.

Usage: python -m benchmarks.verification [--scale 0.1]
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

import fastscore
from benchmarks.harness import Case, main
from fastscore.run import receipts
from fastscore.run.config import RunConfig
from fastscore.run.drive import execute
from fastscore.run.progress import SilentReporter

_ROWS = 20_000_000


def _lines(start: int, stop: int) -> Iterator[bytes]:
    """Make rows of dialogues of some hundred rows, half of them predictions."""
    for row in range(start, stop):
        turn = {"dialogue_uid": f"d{row // 200}", "utterance_index": row // 2 % 100}
        text = f"a table for {row % 97} at {row % 89} o'clock near place {row}"
        if row % 2:
            turn |= {"event": "utterance_complete", "ground_truth": text}
        else:
            turn |= {"event": "predicted", "step": 0, "prediction": text[: 10 + row % 40]}
        yield orjson.dumps(turn, option=orjson.OPT_APPEND_NEWLINE)


def _opened(run: Path, *, verify: bool) -> int:
    """Read every table of a run."""
    opened = fastscore.open_run(run, verify=verify)
    return sum(table.collect().height for table in opened.tables.values())


def _resumed(config: RunConfig) -> str:
    return execute(config, SilentReporter()).manifest.status


def _unverified(config: RunConfig) -> str:
    """Resume a run as if every file were as it was committed."""
    found: Callable[..., bool] = receipts.is_intact
    receipts.is_intact = lambda run, output: True
    try:
        return _resumed(config)
    finally:
        receipts.is_intact = found


def _same(outputs: dict[str, Any]) -> None:
    assert len(set(outputs.values())) == 1


def cases(scale: float) -> Iterator[Case]:
    """Compare verified and unverified reading of one run."""
    rows = max(10_000, int(_ROWS * scale))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with log.open("wb") as out:
            for start in range(0, rows, 10_000):
                out.writelines(_lines(start, min(rows, start + 10_000)))
        config = RunConfig(
            suite="score_dialogue",
            inputs=(str(log),),
            output=Path(folder) / "run",
            options={"lex_weight": 1.0},
        )
        execute(config, SilentReporter())
        size = sum(part.stat().st_size for part in config.output.rglob("*.parquet"))
        yield Case(
            f"opening and reading {size / 2**20:,.0f} MiB of tables",
            rows,
            {
                "verified": partial(_opened, config.output, verify=True),
                "not verified": partial(_opened, config.output, verify=False),
            },
            ("not verified", 0.95),
            _same,
        )
        yield Case(
            f"resuming a complete run with {size / 2**20:,.0f} MiB of tables",
            rows,
            {
                "verified": partial(_resumed, config),
                "not verified": partial(_unverified, config),
            },
            ("not verified", 0.97),
            _same,
        )


if __name__ == "__main__":
    main(cases)
