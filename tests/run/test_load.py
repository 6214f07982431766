"""Much work and long work: memory, descriptors and speed, each against itself in the same run."""

import json
import os
import random
import statistics
import time
import tomllib
from pathlib import Path

import pytest

from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from tests.conftest import often, python_process
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


def peak_memory(logs, output):
    """Return the most memory that a process holds that scores each log as a shard."""
    done = python_process(MEASURED, output, *logs, timeout=often(900, 5_400), check=True)
    return int(done.stdout)


def test_memory_grows_with_dialogues_by_a_kibibyte_at_most(tmp_path):
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
import ctypes, gc, os, resource, sys, time
from pathlib import Path
import pyarrow
from fastscore_jit.system import give_back_freed_memory
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.cli import cli
from fastscore import open_run

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
for suite in example_names():
    write_example(suite, folder / suite)

class Allocated(ctypes.Structure):
    NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]

def allocated():
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return 0
    library.mallinfo2.restype = Allocated
    of_the_c_library = library.mallinfo2()
    return of_the_c_library.uordblks + of_the_c_library.hblkhd + pyarrow.total_allocated_bytes()

def resident():
    give_back_freed_memory()
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
        assert sum(table.collect().height for table in opened.lazy_tables.values())

def held():
    gc.collect()
    files, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return resident(), allocated(), sys.getallocatedblocks(), files, threads

started = time.monotonic()
turns = 0
while turns < 8 or time.monotonic() < started + seconds:
    turn()
    turns += 1
    print(turns, *held(), flush=True)
"""
GIVEN_BACK = {
    "MALLOC_TRIM_THRESHOLD_": "0",
    "MIMALLOC_PURGE_DELAY": "0",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
}
"""What has the allocators of C, Arrow and polars keep nothing that was freed."""
GROWTH = {
    # once in an hour some 2 MiB are taken at once, as by a table that doubles
    "bytes resident": 4 << 20,
    "bytes allocated": 4 << 20,
    "blocks of Python": 1_000,
    "descriptors": 0,
    "threads": 8,  # those of pools come and go: 17 to 22 were seen in an hour
}
"""What the last quarter of the turns may hold more than the second one, of what each turn says."""


def test_a_soak_leaves_memory_descriptors_and_threads_as_they_are(tmp_path):
    """The least that the turns of a quarter hold is compared.

    Allocators are told to give back what is freed: left alone they keep some of it for each of
    their threads, which takes hundreds of turns to be all that it can be, and hides a leak.
    """
    done = python_process(
        SOAK, tmp_path, SOAK_SECONDS, env={**os.environ, **GIVEN_BACK}, timeout=SOAK_SECONDS + 600
    )
    assert done.returncode == 0, done.stderr
    turns = [list(map(float, line.split()[1:])) for line in done.stdout.splitlines()]
    half = len(turns) // 2
    before, after = (
        list(map(min, zip(*turns[some], strict=True)))
        for some in (slice(half // 2, half), slice(half + half // 2, None))
    )
    grown = {
        what: later - earlier for what, earlier, later in zip(GROWTH, before, after, strict=True)
    }
    print(f"{len(turns)} turns of five suites: {before} and {grown} more")
    assert all(grown[what] <= most for what, most in GROWTH.items()), grown


def test_throughput_is_no_less_than_its_floor(tmp_path, monkeypatch):
    """Ours against the plain scorer in the same process, turn by turn, by the processor's time."""
    monkeypatch.setenv("FASTSCORE_THREADS", "1")
    (log,) = write_varied_logs(tmp_path, files=1, dialogues=300)
    options = ScoreDialogue(lex_weight=1.0)
    shard = whole_file(str(log))

    def ours():
        return score_frame(read_shard(shard, SUITE.source).frame, options)[1]["dialogues"]

    def plain():
        lines = log.read_text().splitlines()
        rows = [(str(log), number, json.loads(line)) for number, line in enumerate(lines, 1)]
        return list(score_log(rows, weight=1.0)[0])

    def seconds(work):
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
