"""Work on batches by several threads."""

import subprocess
import sys
import threading

import pytest

from fastscore.logs.read.lines import MOST_LINES, read_lines
from fastscore.logs.read.rows import map_ordered


def test_what_is_in_flight_runs_to_its_end_when_an_item_fails():
    begun = [threading.Event() for _ in range(3)]
    ended = []

    def work(item: int) -> None:
        begun[item].set()
        if item == 0:
            begun[1].wait()
            raise ValueError("the first one")
        # waits for the last one, which is begun when the first one has failed
        assert begun[2].wait(60)
        ended.append(item)

    with pytest.raises(ValueError, match="the first one"):
        list(map_ordered(work, range(3), 2))
    assert sorted(ended) == [1, 2]


@pytest.mark.parametrize("length", [1, 2, 61, 64])
@pytest.mark.parametrize("head", [b"", b"{}\n"])
def test_lines_of_any_length_are_handed_on_a_bounded_number_at_once(length, head):
    """For any combination of line length and sampling distance."""
    data = head + (b"x" * (length - 1) + b"\n") * ((4 << 20) // length)
    parts = [bytes(lines.data) for lines in read_lines(iter([data]), "")]
    assert b"".join(parts) == data
    assert max(part.count(b"\n") for part in parts) <= 1.1 * MOST_LINES


def test_polars_has_numpy_before_threads_give_it_arrays():
    program = "import polars._dependencies as loaded, fastscore.logs.read.rows, numpy\n"
    program += "assert loaded.numpy is numpy"
    subprocess.run([sys.executable, "-c", program], check=True)
