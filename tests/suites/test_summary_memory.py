"""The memory of a summary: fixed per dialogue, for tables of any length."""

import polars as pl
import pytest
from click.testing import CliRunner

from fastscore.api.examples import example_names, example_options, write_example
from fastscore.cli import cli
from fastscore.suites.registry import load_suite
from tests.conftest import often, python_process

pytestmark = pytest.mark.slow

PART_ROWS = 100_000
FEW, MANY = often(12, 20), often(20, 60)
"""Parts: of two million rows nearly as much is read ahead as of any more."""
BYTES_OF_A_DIALOGUE = {"score_dialogue": 300, "preference_shift": 300, "memory_finance": 300}
"""Of tables with several rows a dialogue the sums of one column at a time, which polars holds
about three times. Other suites keep nothing."""
SLACK = 384 << 20
"""What is read ahead of the larger one beyond that of the other: less than a KiB a dialogue."""

SUMMARISE = """
import sys
from pathlib import Path
import polars as pl
from fastscore.settings.options import build_options
from fastscore import open_run
from fastscore.suites.registry import load_suite
from fastscore.suites.summary import summarise

run, folder, parts = open_run(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
suite = load_suite(run.manifest.suite)
tables = {
    table.name: pl.scan_parquet(sorted((folder / table.name).iterdir())[:parts], glob=False)
    for table in suite.tables
}
assert summarise(suite, tables, build_options(suite.options, run.manifest.options)).height
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""


def write_parts(run, suite, folder):
    """Repeat a run's tables under other ids, two rows a dialogue at most; return its dialogues."""
    tables = load_suite(suite).tables
    frames = {table.name: pl.read_parquet(run / table.name / "*.parquet") for table in tables}
    n_dialogues = frames["dialogues"].height
    copies = -(-PART_ROWS // n_dialogues)
    for table in tables:
        (folder / table.name).mkdir(parents=True)
        frame = frames[table.name].group_by("dialogue", maintain_order=True).head(2)
        frame = frame.select(frames[table.name].columns)
        for part in range(MANY):
            numbers = pl.int_range(copies * part, copies * (part + 1), eager=True)
            repeated = numbers.to_frame("copy").join(frame, how="cross")
            named = pl.format("{}-{}", "copy", "dialogue").alias("dialogue")
            rows = repeated.with_columns(named).select(frame.columns)
            rows.write_parquet(folder / table.name / f"part-{part:05d}.parquet")
    return copies * n_dialogues


@pytest.mark.parametrize("suite", example_names())
def test_a_summary_keeps_little_of_a_dialogue(tmp_path, suite):
    write_example(suite, tmp_path / "example")
    run = tmp_path / "run"
    words = ["score", suite, str(tmp_path / "example" / "logs"), "-o", str(run), "-q"]
    words += example_options(suite, tmp_path / "example")
    assert CliRunner().invoke(cli, words).exit_code == 0
    n_dialogues = write_parts(run, suite, tmp_path / "parts")

    def peak(parts):
        done = python_process(SUMMARISE, run, tmp_path / "parts", parts, timeout=600, check=True)
        return int(done.stdout)

    few, many = peak(FEW), peak(MANY)
    more = (MANY - FEW) * n_dialogues
    print(f"{suite}: {few >> 20} -> {many >> 20} MiB, {(many - few) / more:.0f} bytes a dialogue")
    assert many - few < more * BYTES_OF_A_DIALOGUE.get(suite, 0) + SLACK
