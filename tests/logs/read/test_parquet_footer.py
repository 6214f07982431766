"""The sizes of row groups, beside pyarrow's reading of the same footers."""

import io
import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from fastscore.logs.read.parquet import group_sizes

FRAME = pl.DataFrame(
    {
        "text": [f"text {number} " * 5 for number in range(2000)],
        "number": range(2000),
        "turns": [[{"who": "é", "at": number}] for number in range(2000)],
        "is_user": [number % 2 == 0 for number in range(2000)],
        "nothing": [None] * 2000,
    }
)
WRITERS: dict[str, Any] = {
    "polars": lambda out: FRAME.write_parquet(out),
    "groups": lambda out: FRAME.write_parquet(out, row_group_size=37, statistics="full"),
    "plain": lambda out: FRAME.write_parquet(out, compression="uncompressed"),
    "arrow": lambda out: pq.write_table(FRAME.to_arrow(), out),
    "first_version": lambda out: pq.write_table(FRAME.to_arrow(), out, version="1.0"),
    "index": lambda out: pq.write_table(
        FRAME.to_arrow().replace_schema_metadata({"key": "value" * 99}),
        out,
        row_group_size=50,
        write_page_index=True,
        use_dictionary=False,
    ),
}


def by_pyarrow(source: Any, columns: list[str] | None) -> list[tuple[int, int]]:
    footer = pq.read_metadata(source)
    names = [footer.schema.column(place).path for place in range(footer.num_columns)]
    wanted = [
        place
        for place, name in enumerate(names)
        if columns is None or name.split(".")[0] in columns
    ]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        (group.num_rows, sum(group.column(place).total_uncompressed_size for place in wanted))
        for group in groups
    ]


@pytest.mark.parametrize("columns", [None, ["text"], ["turns", "is_user"], []])
@pytest.mark.parametrize("writer", WRITERS)
def test_sizes_are_those_of_pyarrow(writer: str, columns: list[str] | None, tmp_path: Path) -> None:
    out = io.BytesIO()
    WRITERS[writer](out)
    expected = by_pyarrow(io.BytesIO(out.getvalue()), columns)
    assert group_sizes(io.BytesIO(out.getvalue()), columns) == expected
    path = tmp_path / "log.parquet"
    path.write_bytes(out.getvalue())
    assert group_sizes(str(path), columns) == expected


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    for n_rows in (9, 8):
        FRAME[:n_rows].write_parquet(path)
        assert group_sizes(str(path)) == by_pyarrow(path, None)


def test_a_damaged_footer_is_an_error_or_a_number() -> None:
    out = io.BytesIO()
    WRITERS["index"](out)
    whole = out.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    rng, refused = random.Random(1), 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[len(whole) - 8 - length + rng.randrange(length + 8)] ^= 1 << rng.randrange(8)
        try:
            group_sizes(io.BytesIO(changed))
        except OSError:
            refused += 1
    assert refused
    for cut in (whole[:5], whole[:-1], whole[-7:], b""):
        with pytest.raises(OSError, match="footer"):
            group_sizes(io.BytesIO(cut))
