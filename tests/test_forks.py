"""Processes that are forked from one that has computed: they compute, or say what to do."""

import multiprocessing
import os
import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, sys, fastscore
from fastscore.compat.score_dialogue import score_jsonl

def count(_):
    if sys.argv[3] == "drop-in":
        return len(score_jsonl("log.jsonl", lex_weight=1.0)["utterances"])
    return fastscore.scan("log.jsonl", "score_dialogue").collect().height

if __name__ == "__main__":
    if sys.argv[2] == "after":
        count(0)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map_async(count, range(2)).get(timeout=100))
"""
LOG = """\
{"dialogue_uid":"d","utterance_index":0,"event":"predicted","step":0,"prediction":"a"}
{"dialogue_uid":"d","utterance_index":0,"event":"utterance_complete","ground_truth":"a"}
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize(
    ("method", "when", "what", "expected"),
    [
        ("fork", "after", "scan", "forked after polars had started its threads"),
        ("fork", "after", "drop-in", "forked after polars had started its threads"),
        ("fork", "before", "scan", "[2, 2]"),
        ("fork", "before", "drop-in", "[1, 1]"),
        ("spawn", "after", "scan", "[2, 2]"),
    ],
)
def test_a_fork_computes_or_is_refused(tmp_path, method, when, what, expected):
    assert method in multiprocessing.get_all_start_methods()
    (tmp_path / "log.jsonl").write_text(LOG)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py", method, when, what],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert expected in done.stdout + done.stderr
    if "forked" in expected:
        assert "get_context('spawn')" in done.stderr
