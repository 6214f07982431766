"""The same logs give the same numbers, however they are cut, packed, shuffled or spoilt."""

import gzip
import itertools
import json
import random

import polars as pl
import pytest
import zstandard

from fastscore import open_run
from tests.conftest import fastscore_command, often, write_lines
from tests.run.logs import write_logs
from tests.run.running import run_lexical

SHARD_BYTES = (1, 700, 1_500, 10_000_000)
WORKERS = (1, 2, 4)
KEY = ("dialogue", "utterance_index", "step")


def write_parquet(path, data):
    schema = {
        "event": pl.String,
        "utterance_index": pl.Int64,
        "step": pl.Int64,
        "prediction": pl.String,
        "ground_truth": pl.String,
        "dialogue_uid": pl.String,
    }
    pl.read_ndjson(data, schema=schema).write_parquet(path)


FORMATS = {
    "jsonl": lambda path, data: path.write_bytes(data),
    "jsonl.gz": lambda path, data: path.write_bytes(gzip.compress(data)),
    "jsonl.zst": lambda path, data: path.write_bytes(zstandard.compress(data)),
    "parquet": write_parquet,
}
COMBINATIONS = list(itertools.product(SHARD_BYTES, WORKERS, FORMATS))


def numbers(run):
    """Return a run's tables without the places that its logs' form decides, and its summary."""
    opened = open_run(run)
    frames = {name: table.collect() for name, table in opened.lazy_tables.items()}
    frames = {name: frame.drop("file", "line", strict=False) for name, frame in frames.items()}
    return frames | {"summary": opened.summary}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        assert found[name].equals(frame), name


@pytest.mark.parametrize(
    ("shard_bytes", "workers", "format"), COMBINATIONS[:: often(7, 1)], ids=str
)
def test_shards_workers_and_formats_change_nothing(tmp_path, shard_bytes, workers, format):
    plain = write_logs(tmp_path / "plain")
    run_lexical(plain, tmp_path / "expected")
    (tmp_path / "logs").mkdir()
    logs = []
    for path in plain:
        logs.append(tmp_path / "logs" / f"{path.stem}.{format}")
        FORMATS[format](logs[-1], path.read_bytes())
    run_lexical(logs, tmp_path / "run", shard_bytes=shard_bytes, workers=workers)
    assert_equal(numbers(tmp_path / "run"), numbers(tmp_path / "expected"))


@pytest.mark.parametrize("seed", range(often(3, 50)))
def test_the_order_of_lines_and_of_files_changes_no_number(tmp_path, seed):
    logs = write_logs(tmp_path / "logs")
    run_lexical(logs, tmp_path / "expected")
    shuffle = random.Random(seed).shuffle
    for path in logs:
        lines = path.read_text().splitlines(keepends=True)
        shuffle(lines)
        path.write_text("".join(lines))
    shuffle(logs)
    run_lexical(logs, tmp_path / "run", shard_bytes=1_500)
    found, expected = numbers(tmp_path / "run"), numbers(tmp_path / "expected")
    for name, frame in expected.items():
        keys = [key for key in KEY if key in frame.columns]
        assert name == "summary" or keys[0] == "dialogue"
        assert found[name].sort(keys).equals(frame.sort(keys)), name


def spoilt(path, share, change):
    """Spoil a share of a log's predictions, evenly; returns how many, and how many lines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    places = [at for at, row in enumerate(rows) if row["event"] == "predicted"]
    count = round(share * len(rows))
    for at in places[:: max(1, len(places) // count)][:count]:
        rows[at] = change(rows[at])
    write_lines(path, rows)
    return count, len(rows)


@pytest.mark.parametrize(("share", "code"), [(0.0009, 0), (0.0011, 3)])
def test_rejects_within_the_budget_pass_and_beyond_it_do_not(tmp_path, share, code):
    (path,) = write_logs(tmp_path / "logs", files=1, dialogues=50)
    spoiled, lines = spoilt(path, share, lambda row: [row])
    done = fastscore_command(
        ["score", "score_dialogue", path, "-o", tmp_path / "run", "--lex-weight", "1"]
    )
    assert done.returncode == code, done.stderr
    run = open_run(tmp_path / "run")
    counts = run.manifest.counts
    assert run.rejects.height == counts["rejects"] == spoiled
    assert counts["lines"] == counts["rows"] + counts["rejects"] + counts["blank"] == lines


def test_rows_that_fail_never_move_a_mean_towards_one(tmp_path):
    (path,) = write_logs(tmp_path / "logs", files=1, dialogues=20)
    clean = run_lexical([path], tmp_path / "clean")
    before = {row["metric"]: row for row in open_run(tmp_path / "clean").summary.to_dicts()}
    spoiled, _ = spoilt(path, 0.05, lambda row: row | {"prediction": 5})
    run_lexical([path], tmp_path / "run", max_rejects=1.0)
    run = open_run(tmp_path / "run")
    after = {row["metric"]: row for row in run.summary.to_dicts()}
    assert run.manifest.counts["rejects"] == spoiled
    for metric, row in after.items():
        if row["mean"] is None or not metric.startswith("U"):
            continue
        assert row["mean"] <= before[metric]["mean"] + 1e-12, metric
        assert row["n"] + row["n_null"] <= before[metric]["n"] + before[metric]["n_null"], metric
    # where no step is said to be revealed, there are as many as predictions were read
    steps = (made.manifest.tables["steps"]["rows"] for made in (run, clean))
    assert next(steps) == next(steps) - spoiled
