"""Much work and long work: memory, descriptors and speed, each against itself in the same run."""

import json
import os
import random
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sized
from pathlib import Path

import polars as pl
import pytest

from fastscore.logs.plan.byte_ranges import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.score_dialogue import SUITE, ScoreDialogueOptions
from tests.conftest import NIGHTLY, often
from tests.oracles.score_dialogue import score_log
from tests.run.logs import write_varied_logs
from tests.suites.score_dialogue.comparing import score_frame

pytestmark = pytest.mark.slow

SOAK_SECONDS = float(os.environ.get("FASTSCORE_SOAK_SECONDS", often(30, 3_600)))
TURNS_OF_A_SHARD = often(10_000, 100_000)
BYTES_OF_A_DIALOGUE = 1024
FLOORS = tomllib.loads((Path(__file__).parent / "throughput.toml").read_text("utf-8"))

MEASURED = """
import json, resource, sys
from pathlib import Path
from tests.run.running import run_lexical
output, *logs = map(Path, sys.argv[1:])
largest = max(path.stat().st_size for path in logs)
outcome = run_lexical(logs, output / "run", shard_bytes=largest, workers=2)
assert outcome.manifest.tables["dialogues"]["rows"] > len(logs)
shards = len(list((output / "run" / "receipts").glob("score-*.json")))
assert len(logs) <= shards <= 2 * len(logs) + 2  # the last ones are smaller
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak_memory(logs: list[Path], output: Path) -> int:
    """Return the most memory that a process holds that scores each log as a shard."""
    words = [sys.executable, "-c", MEASURED, str(output), *map(str, logs)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=often(900, 5_400), check=True
    )
    return int(done.stdout)


def test_memory_grows_with_dialogues_by_a_kibibyte_at_most(tmp_path: Path) -> None:
    (log,) = write_varied_logs(tmp_path / "logs", files=1, dialogues=TURNS_OF_A_SHARD // 16)
    text = log.read_text()
    logs = [log.with_name(f"shard-{number:03d}.jsonl") for number in range(100)]
    for number, path in enumerate(logs):
        path.write_text(text.replace('"v0-', f'"v{number}-'))
    peaks = {n: peak_memory(logs[:n], tmp_path / str(n)) for n in (2, 10, 100)}
    print({n: f"{peak / 2**20:.0f} MiB" for n, peak in peaks.items()})
    # some 700 bytes a dialogue were measured, with dialogues of 16 turns
    dialogues = TURNS_OF_A_SHARD // 16
    assert peaks[100] < 1.05 * peaks[10] + 90 * dialogues * BYTES_OF_A_DIALOGUE
    assert peaks[10] < 1.25 * peaks[2] + 8 * dialogues * BYTES_OF_A_DIALOGUE


SOAK = """
import gc, os, resource, shutil, sys, time
from pathlib import Path
from fastscore.examples import example_names, example_options, write_example
from fastscore.cli import cli
from fastscore.results.runs import open_run

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
for suite in example_names():
    write_example(suite, folder / suite)

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def turn():
    for suite in example_names():
        run = folder / f"{suite}-run"
        words = ["score", suite, str(folder / suite / "logs"), "-o", str(run), "-q", "--overwrite"]
        try:
            cli.main([*words, *example_options(suite, folder / suite)], standalone_mode=False)
        except SystemExit as end:
            assert end.code == 0
        opened = open_run(run)
        assert sum(table.collect().height for table in opened.tables.values())

def held():
    return resident(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

end = time.monotonic() + seconds
turns = 0
warm_until = time.monotonic() + seconds / 4
while turns < 3 or time.monotonic() < warm_until:
    turn()
    turns += 1
before, warm = held(), turns
while turns < 2 * warm or time.monotonic() < end:
    turn()
    turns += 1
print(turns, *before, *held())
"""


def test_a_soak_leaves_memory_descriptors_and_threads_as_they_are(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SOAK, str(tmp_path), str(SOAK_SECONDS)]
    timeout = SOAK_SECONDS + 600
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    turns, *held = map(int, done.stdout.split())
    (memory, descriptors, threads), (memory_after, descriptors_after, threads_after) = (
        held[:3],
        held[3:],
    )
    print(
        f"{turns} turns of five suites: {memory / 2**20:.1f} -> {memory_after / 2**20:.1f} MiB,"
        f" {descriptors} -> {descriptors_after} descriptors, {threads} -> {threads_after} threads"
    )
    assert turns >= 6
    assert descriptors_after <= descriptors
    assert threads_after <= threads + 4  # pools start theirs when they are first needed
    # what an allocator keeps between turns is no growth
    assert memory_after < (1.02 if NIGHTLY else 1.1) * memory + 8 * 2**20


def test_throughput_is_no_less_than_its_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours against the plain scorer in the same process, turn by turn, by the processor's time."""
    monkeypatch.setenv("FASTSCORE_THREADS", "1")
    (log,) = write_varied_logs(tmp_path, files=1, dialogues=300)
    options = ScoreDialogueOptions(lex_weight=1.0)
    shard = whole_file(str(log))

    def ours() -> pl.DataFrame:
        return score_frame(read_shard(shard, SUITE.source).frame, options)[1]["dialogues"]

    def plain() -> list[object]:
        lines = log.read_text().splitlines()
        rows = [(str(log), number, json.loads(line)) for number, line in enumerate(lines, 1)]
        return list(score_log(rows, weight=1.0)[0])

    def seconds(work: Callable[[], Sized]) -> float:
        started = time.process_time()
        assert len(work())
        return time.process_time() - started

    ours()
    ratios = []
    for turn in range(5):
        both = [plain, ours]
        random.Random(turn).shuffle(both)
        taken = {work.__name__: seconds(work) for work in both}
        ratios.append(taken["plain"] / taken["ours"])
    ratio = statistics.median(ratios)
    print(f"{ratio:.0f} times the plain scorer; {FLOORS['score_dialogue']} committed")
    assert ratio > 0.7 * FLOORS["score_dialogue"]
