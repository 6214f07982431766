"""Sequences of rows of one dialogue, as planning finds them by the keys of JSON lines."""

import itertools
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.file_state import FileState
from fastscore.logs.plan.shards import find_spans
from fastscore.suites.declarations import Column, Source

SOURCE = Source(columns=(Column(name="k", kind="text"),), dialogue_key=("k",))
TEXTS = (
    *('"a"', '"ab"', '"b"', "null", None, '"\\u0061"', '"1"', '""', "1", "[1]"),
    *('"many letters, a"', '"many letters, b"', '"many letter\\u0073, a"'),
)


def spans(folder: Path, lines: list[str]) -> pl.DataFrame:
    """Find sequences of rows in a file of some lines."""
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    (file,) = resolve_inputs([folder / "log.jsonl"])
    return pl.concat(find_spans([FileState.of(file)], SOURCE, 1 << 20, folder, 1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=40))
@example(list(TEXTS))
def test_rows_of_one_key_are_one_dialogue(tmp_path, values):
    lines = ["{}" if value is None else f'{{"k": {value}}}' for value in values]
    found = spans(tmp_path, lines)
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    expected: dict[str | None, list[int]] = {}
    for place, value in enumerate(values):
        key = json.loads(value or "null")
        if key is None or isinstance(key, str):  # others are rejects
            expected.setdefault(key or None, []).append(place)
    assert sorted(found.select("first", "last", "line").rows()) == sorted(
        (starts[rows[0]], starts[rows[-1]], rows[0] + 1) for rows in expected.values()
    )


@pytest.mark.parametrize("longer", [False, True])
def test_sequences_of_many_blocks(tmp_path, longer):
    more = " of a name that no view holds" if longer else ""
    lines = [f'{{"k":"{row // 3000}{more}","text":"{"x" * (row % 90)}"}}' for row in range(20_000)]
    assert spans(tmp_path, lines)["line"].to_list() == [*range(1, 20_001, 3000)]
