"""The sizes of row groups, beside pyarrow's reading of the same footers."""

import io
import random
import time
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.logs.read.parquet import group_sizes, parquet_rows

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
        (group.num_rows, sum(size_of(group.column(place)) for place in wanted)) for group in groups
    ]


def size_of(column: Any) -> int:
    """Return a column's unpacked bytes, at least 16 a value."""
    return max(column.total_uncompressed_size, 16 * column.num_values)


@pytest.mark.parametrize("columns", [None, ["text"], ["turns", "is_user"], []])
@pytest.mark.parametrize("writer", WRITERS)
def test_sizes_are_those_of_pyarrow(writer, columns, tmp_path):
    out = io.BytesIO()
    WRITERS[writer](out)
    expected = by_pyarrow(io.BytesIO(out.getvalue()), columns)
    assert group_sizes(io.BytesIO(out.getvalue()), columns) == expected
    path = tmp_path / "log.parquet"
    path.write_bytes(out.getvalue())
    assert group_sizes(str(path), columns) == expected


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    path = tmp_path / "log.parquet"
    for n_rows in (9, 8):
        FRAME[:n_rows].write_parquet(path)
        assert group_sizes(str(path)) == by_pyarrow(path, None)


def varint(number: int) -> bytes:
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + varint(number >> 7)


def zigzag(number: int) -> bytes:
    return varint(number << 1)


def with_footer(footer: bytes, body: bytes = b"PAR1") -> bytes:
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def nested(levels: int) -> bytes:
    """Return a file without rows, with one optional integer below so many groups."""
    group = b"\x35" + zigzag(1) + b"\x18\x01a" + b"\x15" + zigzag(1) + b"\0"
    leaf = b"\x15" + zigzag(1) + b"\x25" + zigzag(1) + b"\x18\x01a\0"
    schema = b"\x19\xfc" + varint(levels + 1) + group * levels + leaf
    return with_footer(b"\x15" + zigzag(1) + schema + b"\x16" + zigzag(0) + b"\x19\x0c\0")


def telling(rows: int) -> bytes:
    """Return a file of 1,656 rows whose footer tells another number."""
    out = io.BytesIO()
    pl.DataFrame({"number": range(1656)}).write_parquet(out, row_group_size=828)
    whole = out.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    body, footer = whole[: -8 - length], whole[-8 - length : -8]
    assert footer.count(b"\x16" + zigzag(1656) + b"\x19") == 1
    changed = footer.replace(b"\x16" + zigzag(1656) + b"\x19", b"\x16" + zigzag(rows) + b"\x19")
    return with_footer(changed, body)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (nested(20_000), "nested in more than 100 levels"),
        (with_footer(b"\x15\x02\x19\xfc" + varint(1 << 60) + bytes(10)), "footer is damaged"),
        (with_footer(b"\x15" + b"\x80" * 5_000_000 + b"\x01\0"), "footer is damaged"),
        (with_footer(b"\x15\x02\x5b" + varint(1 << 60) + b"\x88" + bytes(9)), "footer is damaged"),
        (
            with_footer(b"\x15\x02\x39\xfc" + varint(40_000) + bytes(40_001)),
            "has 40,000 row groups, more than 32,768",
        ),
        (telling(100), "tells 100 rows, its row groups 1,656"),
        (telling(2000), "tells 2,000 rows, its row groups 1,656"),
    ],
)
def test_a_footer_that_is_made_to_harm_is_refused(content, message, tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    started = time.perf_counter()
    with pytest.raises(InputError, match=message):
        parquet_rows(str(path), "log.parquet")
    with pytest.raises(fastscore.errors.FastscoreError, match=message):
        fastscore.scan(str(path), "score_dialogue").collect()
    assert not fastscore.inspect(str(path)).files
    assert time.perf_counter() - started < 20
    path.write_bytes(nested(99))
    assert parquet_rows(str(path), "log.parquet") == 0


def test_a_damaged_footer_is_an_error_or_a_number():
    out = io.BytesIO()
    FRAME[:150].write_parquet(out, row_group_size=50, statistics="full")
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
