"""Logs that are made to take memory: each is scored or refused within a stated budget."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import polars as pl
import pyarrow.parquet as pq
import pytest

from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from tests.conftest import often
from tests.simulation.worlds import SAMPLE

MIB = 1 << 20
BUDGET = 768
"""MiB that the process may have at its largest, of which its libraries take some 250."""

SCRIPT = """
import sys
from fastscore.cli import main

try:
    main()
finally:
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(f"peak {int(peak) // 1024}", file=sys.stderr)
"""


def turn(dialogue: str) -> list[dict[str, object]]:
    base = {"dialogue_uid": dialogue, "utterance_index": 0}
    return [
        {**base, "event": "predicted", "step": 0, "prediction": "a table for two"},
        {**base, "event": "utterance_complete", "ground_truth": "a table for three"},
    ]


HEAD = "".join(json.dumps(row) + "\n" for row in turn("first")).encode()


def repeated(part: bytes, mebibytes: int) -> Iterator[bytes]:
    yield HEAD
    for _ in range(mebibytes):
        yield part * (MIB // len(part))


def packed(path: Path, parts: Iterator[bytes]) -> Path:
    with gzip.open(path, "wb", 4) as out:
        out.writelines(parts)
    return path


def plain(path: Path, parts: Iterator[bytes]) -> Path:
    with path.open("wb") as out:
        out.writelines(parts)
    return path


def score(log: Path, *options: str, suite: str = "score_dialogue") -> tuple[int, int, str]:
    """Return the exit code, the peak of memory in MiB and the output."""
    words = ["score", suite, str(log), "-o", str(log.parent / "run"), "-q", "--max-memory", "600"]
    if suite == "score_dialogue":
        words += ["--lex-weight", "1"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words, *options],
        capture_output=True,
        text=True,
        timeout=often(280, 3_600),
        check=False,
    )
    message, _, peak = done.stderr.rpartition("peak ")
    n_bytes = log.stat().st_size
    print(f"{log.name} of {n_bytes:,} bytes: exit {done.returncode}, peak {peak.strip()} MiB")
    return done.returncode, int(peak), message


def counts(log: Path) -> dict[str, int]:
    found: dict[str, int] = orjson.loads((log.parent / "run" / "manifest.json").read_bytes())[
        "counts"
    ]
    return found


def rejects(log: Path) -> pl.DataFrame:
    return pl.read_parquet(log.parent / "run" / "rejects" / "*.parquet")


BOMBS: dict[str, Callable[[Path], Path]] = {
    "line ends": lambda folder: plain(folder / "log.jsonl", repeated(b"\n", often(16, 1024))),
    "bad lines": lambda folder: packed(folder / "log.jsonl.gz", repeated(b"x\n", often(2, 100))),
    "empty objects": lambda folder: packed(folder / "log.jsonl.gz", repeated(b"{}\n", 4)),
}


@pytest.mark.parametrize(
    "bomb", ["line ends", pytest.param("bad lines", marks=pytest.mark.slow), "empty objects"]
)
def test_the_budget_is_kept(tmp_path, bomb):
    log = BOMBS[bomb](tmp_path)
    code, peak, message = score(log, "--max-rejects", "1", "--max-ratio", "5000")
    assert (code, peak < BUDGET) == (0, True), (code, peak, message)
    found = counts(log)
    left = found.get("rejects", 0)
    assert found["lines"] == found["blank"] + found["rows"] + left + found.get("left_out", 0)
    table = rejects(log)
    assert table.height <= 1100
    assert table["count"].sum() == left


def test_rejects_beyond_the_first_are_counted(tmp_path):
    log = plain(
        tmp_path / "log.jsonl", iter([HEAD, b"x\n[]\n" * 3000, HEAD.replace(b"first", b"b")])
    )
    code, _, message = score(log)
    assert code == 3
    assert "6,000 of 6,004 lines are rejects" in message
    table = rejects(log)
    listed, counted = table.filter(pl.col("count") == 1), table.filter(pl.col("count") > 1)
    assert listed["line"].to_list() == list(range(3, 1003))
    assert counted.select("reason", "line", "count", "last_line").sort("reason").rows() == [
        ("not_an_object", 1004, 2500, 6002),
        ("not_json", 1003, 2500, 6001),
    ]
    assert counts(log)["rejects"] == 6000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "more than 250 times as much"),
        (("--max-ratio", "5000", "--max-unpacked", "70"), "more than 70 MiB"),
    ],
)
def test_what_unpacks_to_too_much_is_refused(tmp_path, options, told):
    log = packed(tmp_path / "log.jsonl.gz", repeated(b"\0", 300))
    code, peak, message = score(log, *options)
    assert (code, peak < BUDGET) == (3, True), (code, peak, message)
    assert str(log) in message
    assert told in message
    assert ("max_unpacked" if options else "max_ratio") in message


def test_a_budget_that_is_too_small_is_an_error(tmp_path):
    row = {"event": "predicted", "utterance_index": 0, "prediction": "b" * (40 * MIB)}
    opened = json.dumps(row).encode().removesuffix(b"}")
    lines = (opened + b', "step": %d}\n' % step for step in range(5))
    log = plain(tmp_path / "log.jsonl", (part for part in (HEAD, *lines)))
    code, peak, message = score(log, "--max-memory", "256", "--shard-size", "2000")
    assert (code, peak < BUDGET) == (4, True), (code, peak, message)
    assert "max_memory" in message
    # between two lines that are read, or while one is
    assert str(log) in message or "stage 'plan'" in message or "stage 'score'" in message


READ = """
import sys
from pathlib import Path
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.limits import Limits
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source

source = Source(
    columns=(
        Column(name="id", kind="text", otherwise="required"),
        Column(name="text", kind="text"),
    ),
    dialogue_key=("id",),
    formats=("csv", "json", "parquet"),
)
files = resolve_inputs(sys.argv[1:], source.formats)
limits = Limits(600, ratio=5000)
folder = Path(sys.argv[1]).parent / "scratch"
plan = plan_shards(files, source, shard_bytes=16 << 20, scratch=folder, limits=limits, threads=2)
rows = rejects = 0
reasons = set()
for shard in plan.shards:
    read = read_shard(shard, source)
    rows, rejects = rows + read.counts["rows"], rejects + read.counts["rejects"]
    reasons |= set(read.rejects["reason"])
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
print(len(plan.shards), rows, rejects, ",".join(sorted(reasons)) or "none", peak)
"""


def read(log: Path) -> tuple[int, int, int, str]:
    """Plan and read a log: its shards, rows, rejects and their reasons; the budget is kept."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(log)],
        capture_output=True,
        text=True,
        timeout=often(280, 3_600),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shards, rows, rejects, reasons, peak = done.stdout.split()
    print(f"{log.name} of {log.stat().st_size:,} bytes: {rows} rows, peak {peak} MiB")
    assert int(peak) < BUDGET, done.stdout
    return int(shards), int(rows), int(rejects), reasons


def test_a_document_is_read_element_by_element(tmp_path):
    n_rows, text = often(45_000, 600_000), "a text of some length " * 60

    def parts() -> Iterator[bytes]:
        yield b"["
        for row in range(n_rows):
            element = json.dumps({"id": f"d{row // 8}", "text": text}).encode()
            yield element + (b",\n" if row < n_rows - 1 else b"]")

    shards, rows, rejects, _ = read(packed(tmp_path / "log.json.gz", parts()))
    assert (rows, rejects) == (n_rows, 0)
    assert shards > 3


def test_a_long_element_leaves_the_others(tmp_path):
    def parts() -> Iterator[bytes]:
        yield b'[{"id":"a","text":"b"},{"id":"long","text":"'
        for _ in range(often(100, 1024)):
            yield b"a" * MIB
        yield b'"},{"id":"c","text":"d"}]'

    assert read(plain(tmp_path / "log.json", parts()))[1:] == (2, 1, "line_too_long")


def test_elements_that_are_no_rows_are_counted(tmp_path):
    times = often(4, 100)
    log = packed(tmp_path / "log.json.gz", iter([b"[1", *([b",{}" * (MIB // 3)] * times), b"]"]))
    assert read(log)[1:] == (0, times * (MIB // 3) + 1, "missing_field,not_an_object")


def test_an_open_quote_takes_one_record(tmp_path):
    def parts() -> Iterator[bytes]:
        yield b'id,text\na,b\nc,"'
        for _ in range(often(100, 1024)):
            yield b"".join([b"a" * 1023 + b"\n"] * 1024)

    _, rows, rejects, reasons = read(plain(tmp_path / "log.csv", parts()))
    # what is given up ends with its first line; each further line is a record of one cell
    assert rows == 1
    assert rejects >= often(100, 1024) * 1000
    assert reasons == "line_too_long,wrong_cell_count"


def test_a_parquet_row_has_the_same_limit(tmp_path):
    log = tmp_path / "log.parquet"
    texts = ["short", "a" * (MAX_RECORD_BYTES + 1), "last"]
    pl.DataFrame({"id": ["a", "b", "c"], "text": texts}).write_parquet(log)
    assert read(log)[1:] == (2, 1, "line_too_long")


@pytest.fixture(scope="module")
def shared_text(tmp_path_factory):
    """Write a few kilobytes that hold conversations of 460 MiB: a text that all rows share."""
    text, log = "word " * 1_200, tmp_path_factory.mktemp("shared") / "log.parquet"
    turns = [{"speaker": who, "text": text, "turn": 1} for who in ("USER", "SYSTEM")] * 4
    rows = pl.DataFrame({"session_id": ["s"], "conversation": [turns]})
    pq.write_table(pl.concat([rows] * 10_000).to_arrow(), log)
    return log


@pytest.mark.parametrize("command", ["score", "inspect"])
def test_values_that_parquet_stores_once_are_read_in_bounded_parts(tmp_path, shared_text, command):
    log = shared_text
    assert log.stat().st_size < 64 << 10
    words = ["inspect", str(log)]
    if command == "score":
        words = ["score", "preference_shift", str(log), "-o", str(tmp_path / "run"), "-q"]
        words += ["--catalogue", str(SAMPLE), "--embedder", "none"]
        words += ["--segments", "metadata", "--max-memory", "400"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=False
    )
    message, _, peak = done.stderr.rpartition("peak ")
    assert int(peak) < 640
    if command == "score":
        assert done.returncode == 4
        assert "takes" in message
        assert "more than max_memory allows (400 MiB)" in message
    else:
        assert done.returncode == 0, message
