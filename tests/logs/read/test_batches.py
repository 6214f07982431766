"""Work on batches by several threads."""

import threading

import pytest

from fastscore.logs.read.batches import map_ordered


def test_what_is_in_flight_runs_to_its_end_when_an_item_fails() -> None:
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
