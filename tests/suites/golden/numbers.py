"""The published numbers of each suite's example, bound to the suite's version.

Beside this file stands a file a suite: its version, and every mean of its example's summary. Where
a definition changes, its suite's version is raised and the numbers are written anew; numbers that
differ under the version that stands there are refused.

Usage: python -m tests.suites.golden.numbers
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from fastscore import open_run
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.suites.registry import load_suite
from tests.conftest import fastscore_command, fastscore_process

FOLDER = Path(__file__).parent
SHOWN = ("mean", "n", "n_null", "micro")


def score_example(suite: str, folder: Path, **environment: str) -> Path:
    """Write a suite's example into a folder, score it by the command, return the run."""
    write_example(suite, folder)
    words = ["score", suite, folder / "logs", "-o", folder / "run"]
    command = fastscore_process if environment else fastscore_command
    done = command([*words, *example_options(suite, folder)], **environment)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def numbers(run: Path) -> dict[str, dict[str, float | None]]:
    """Return the numbers of a run's summary over all rows, by metric."""
    summary = open_run(run).summary
    whole = summary.filter(pl.col("group") == "all")
    # over all rows, also those whose value a definition fixes: what the suite's version pins
    whole = whole.with_columns(mean="mean_all_rows", n=pl.col("n") + pl.col("n_fixed"))
    return {
        row["metric"]: {name: row[name] for name in SHOWN} for row in whole.iter_rows(named=True)
    }


def standing(suite: str) -> dict[str, Any]:
    """Return the version and numbers in a suite's file."""
    path = FOLDER / f"{suite}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"version": 0}
    return found


def differing(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Return the metrics whose numbers are not the expected ones, to twelve digits."""

    def same(one: float | None, other: float | None) -> bool:
        if one is None or other is None:
            return one is other
        return abs(one - other) <= 1e-12 * max(abs(one), abs(other))

    return [
        name
        for name in sorted({*found, *expected})
        if name not in found
        or name not in expected
        or not all(same(found[name][each], expected[name][each]) for each in SHOWN)
    ]


def main() -> None:
    """Write the numbers of every suite whose version was raised."""
    for suite in example_names():
        version, before = load_suite(suite).version, standing(suite)
        with tempfile.TemporaryDirectory() as folder:
            found = numbers(score_example(suite, Path(folder) / suite))
        if before["version"] == version:
            changed = differing(found, before["numbers"])
            if changed:
                sys.exit(f"{suite}: version {version} stands, but {changed} changed: raise it")
            continue
        text = json.dumps({"version": version, "numbers": found}, indent=1)
        (FOLDER / f"{suite}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
