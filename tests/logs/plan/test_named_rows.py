"""Where the keys of JSON lines change, as planning finds it."""

import numpy as np
from fastscore_jit.arrays import Mask
from fastscore_readers.json.lines import scan_jsonl
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.logs.plan.shards import changes
from fastscore.logs.read.columns import fills, places
from fastscore.suites.declarations import Column

TEXTS = (
    *('"a"', '"ab"', '"b"', "null", None, '"\\u0061"', '"1"', '""'),
    *('"many letters, a"', '"many letters, b"', '"many letter\\u0073, a"'),
)


def changed(lines: list[str], key: str, *, filled: bool) -> Mask:
    """Scan lines as a plan does, or by places alone; mark where the key changes."""
    column = Column(name=key, kind="text")
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    scan = scan_jsonl(data, (key.encode(),), fill=fills([column]) if filled else None)
    # planning asks only of blocks that have rows
    return changes(places(scan, (key.encode(),), column)) if scan.line.size else np.zeros(0, bool)


# a value that is no text leaves none of the column to be filled
@given(
    st.lists(st.sampled_from(TEXTS), max_size=40)
    | st.lists(st.sampled_from((*TEXTS, "1", "[1]")), max_size=40),
    st.booleans(),
)
@example(list(TEXTS), True)
def test_changes_are_where_a_value_is_written_otherwise(
    values: list[str | None], filled: bool
) -> None:
    lines = ["{}" if value is None else f'{{"k": {value}}}' for value in values]
    expected = [row == 0 or value != values[row - 1] for row, value in enumerate(values)]
    assert changed(lines, "k", filled=filled)[1:].tolist() == expected[1:]


def test_runs_of_many_blocks() -> None:
    lines = [f'{{"uid":"{row // 3000}","text":"{"x" * (row % 90)}"}}' for row in range(20_000)]
    for filled in (False, True):
        # equal texts may differ across blocks
        assert set(range(0, 20_000, 3000)) <= set(
            np.flatnonzero(changed(lines, "uid", filled=filled))
        )
        assert changed(lines, "uid", filled=filled).sum() < 20
