"""Scanning takes the memory of a few blocks, however long the log is."""

import json
import subprocess
import sys

import pytest

ROWS = 20_000
SCRIPT = """
import resource, sys
import polars as pl
import fastscore

turns = fastscore.scan(sys.argv[1], "score_dialogue", workers=2)
turns.head(1).collect()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
few = turns.filter(pl.col("line") % 9_000 == 1).select("prediction").collect(engine="streaming")
mean = turns.select(pl.col("prediction").str.len_bytes().mean()).collect(engine="streaming")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(few.height, mean.item(), (peak - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 12])
def test_memory_does_not_grow_with_the_log(tmp_path, times):
    text = "a word " * 250
    lines = "".join(
        json.dumps({"event": "predicted", "utterance_index": n, "step": 0, "prediction": text})
        + "\n"
        for n in range(ROWS)
    )
    with (tmp_path / "log.jsonl").open("w") as log:
        for _ in range(times):
            log.write(lines)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "log.jsonl")],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    n_few, mean, mebibytes = map(float, done.stdout.split())
    assert n_few == -(-ROWS * times // 9_000)
    assert mean == len(text)
    assert mebibytes < 120  # of 420 MB, the longer time
