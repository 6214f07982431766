"""Plain-Python definition of a CSV scan's result, by Python's own csv module."""

import csv
import re
from dataclasses import dataclass, field

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


@dataclass
class NaiveRecord:
    line: int
    start: int
    end: int
    status: str
    cells: list[str] = field(default_factory=list)


def naive_records(data: bytes, width: int | None) -> list[NaiveRecord]:
    """Read records one by one; a broken one is given up by its first line.

    Without a width the first record that is not blank sets it.
    """
    csv.field_size_limit(1 << 40)
    lines = [match.span() for match in LINE.finditer(data)]
    texts = [data[start:end].decode("utf-8", "surrogateescape") for start, end in lines]
    records = []
    index = 0
    while index < len(lines):
        reader = csv.reader(iter(texts[index:]), strict=True)
        try:
            cells, used, status = next(reader), reader.line_num, "row"
        except csv.Error:
            cells, used, status = [], 1, "bad_quoting"
        start, end = lines[index][0], lines[index + used - 1][1]
        record = data[start:end]
        for mark in (b"\r\n", b"\n", b"\r"):
            if record.endswith(mark):
                record = record[: -len(mark)]
                break
        if status == "row" and not cells:
            status = "blank"
        elif status == "row" and record.decode("utf-8", "ignore").encode() != record:
            status = "not_utf8"
        elif status == "row":
            width = len(cells) if width is None else width
            status = "row" if len(cells) == width else "wrong_cell_count"
        records.append(NaiveRecord(index + 1, start, start + len(record), status, cells))
        index += used
    return records
