"""The CSV scanner against Python's csv module, record by record."""

import csv
import io

import numpy as np
import pytest
from fastscore_readers.csv_records import (
    TEXT_AFTER_QUOTE,
    TOO_LONG,
    UNTERMINATED_QUOTE,
    WRONG_CELL_COUNT,
    scan_csv,
)
from fastscore_readers.fill import CELLS, FULL_CELLS, PLACES
from fastscore_readers.json.lines import NOT_UTF8
from fastscore_readers.json.tokens import ESCAPED, NULL, STRING
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracles.csv import NaiveRecord, naive_records

STATUS = {
    WRONG_CELL_COUNT: "wrong_cell_count",
    UNTERMINATED_QUOTE: "bad_quoting",
    TEXT_AFTER_QUOTE: "bad_quoting",
    NOT_UTF8: "not_utf8",
}
PIECES = st.sampled_from(
    [
        *(b'"', b'"', b'""', b",", b",", b"\n", b"\r", b"\r\n", b"a", b" ", b"\\", b"'", b"\x00"),
        *(b'"a, b"', b'"two\nlines"', b'"say ""hi"""', b"plain text of some length", b"\xff"),
        *("é😀中".encode(), b"\xe4\xb8", b'"' + b"long " * 20 + b'"', b"\xef\xbb\xbf", b"\x0b\x85"),
    ]
)
CELL_TEXTS = st.text(st.sampled_from('ab",\n\r é😀\x0b\x1c;\\'), max_size=30)


def texts_of(scan, slot):
    """Read a filled column's views."""
    texts = []
    valid_rows = (scan.tags[slot] > NULL).tolist()
    for (low, high), valid in zip(scan.columns.words[slot].tolist(), valid_rows, strict=True):
        view = low.to_bytes(8, "little") + high.to_bytes(8, "little")
        length = int.from_bytes(view[:4], "little")
        text = view[4 : 4 + length]
        if length > 12:
            start = int.from_bytes(view[12:], "little")
            text = scan.columns.texts[start : start + length].tobytes()
            assert view[4:8] == text[:4]
        texts.append(text.decode() if valid else None)
    return texts


def scanned(data, width, records=1 << 14):
    """Scan with every cell wanted, a few records at a time: records, and blank lines."""
    buffer = np.frombuffer(data, np.uint8)
    found = []
    at, line, blank = 0, 1, 0
    while at < buffer.size:
        kinds = [CELLS if slot % 2 else FULL_CELLS for slot in range(width)]
        scan = scan_csv(buffer[at:], np.arange(width), kinds, line=line, records=records)
        assert scan.stop > 0
        places = scan_csv(
            buffer[at:], np.arange(width), [PLACES] * width, line=line, records=records
        )
        columns = [texts_of(scan, slot) for slot in range(width)]
        for row in range(scan.line.size):
            cells = []
            for slot in range(width):
                start, end = places.columns.words[slot, row].tolist()
                text = data[at + start : at + end].decode()
                if places.tags[slot, row] == ESCAPED:
                    text = text.replace('""', '"')
                else:
                    assert places.tags[slot, row] == STRING
                cells.append(text)
                assert columns[slot][row] == (text if text or slot % 2 else None)
            place = (int(scan.line[row]), at + int(scan.start[row]), at + int(scan.end[row]))
            found.append(NaiveRecord(*place, "row", cells))
        for row, status in enumerate(scan.faults["status"].tolist()):
            begin, end = at + int(scan.faults["start"][row]), at + int(scan.faults["end"][row])
            found.append(NaiveRecord(int(scan.faults["line"][row]), begin, end, STATUS[status]))
            if status == NOT_UTF8:
                position = int(scan.faults["position"][row] - scan.faults["start"][row])
                with pytest.raises(UnicodeDecodeError) as error:
                    data[begin:end].decode()
                assert error.value.start == position
        assert np.all(np.diff(scan.faults["start"]) > 0)
        assert scan.n_lines - scan.n_blank == scan.line.size + scan.faults["line"].size
        at, line, blank = at + scan.stop, scan.next_line, blank + scan.n_blank
    return sorted(found, key=lambda record: record.start), blank


def check(data, width, records=1 << 14):
    expected = naive_records(data, width)
    found, blank = scanned(data, width, records)
    assert blank == sum(record.status == "blank" for record in expected)
    wanted = [record for record in expected if record.status != "blank"]
    for record in wanted:
        if record.status != "row":
            record.cells = []
    assert found == wanted


@given(st.lists(PIECES, max_size=40).map(b"".join), st.integers(1, 4), st.integers(1, 3))
@example(b'1,"he said "hi"",2\n3,4,5\n', 3, 3)
@example(b'1,"never\n2,"closed"\n3,x\n', 2, 3)
@example(b'a,b\r\r\n"\r\n",c\r', 2, 1)
def test_oracle_any_bytes(data, width, records):
    check(data, width, records)


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(CELL_TEXTS, min_size=width, max_size=width), max_size=8)
    ),
    # before Python 3.13 a writer quotes only the line ends that it writes itself
    st.sampled_from(["\n", "\r\n", "\r"]).flatmap(
        lambda end: st.tuples(st.just(end), st.booleans() if end == "\r\n" else st.just(True))
    ),
)
def test_oracle_what_python_writes_is_read_back(rows, written):
    line_end, all_quoted = written
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(out, lineterminator=line_end, quoting=quoting).writerows(rows)
    data = out.getvalue().encode()
    width = len(rows[0]) if rows else 1
    found, _ = scanned(data, width)
    assert [record.cells for record in found] == rows
    assert {record.status for record in found} <= {"row"}


def test_a_record_that_the_buffer_cuts_is_left():
    whole = np.frombuffer(b'a,b\r\nc,"d\r\ne"\r\nf,', np.uint8)
    for size in range(whole.size + 1):
        scan = scan_csv(whole[:size], np.arange(2), [PLACES] * 2, final=False)
        # a return may be half of a line end
        assert scan.stop == (0 if size < 5 else 5 if size < 15 else 15), size
        assert scan.line.tolist() == [1, 2][: (size >= 5) + (size >= 15)]
        assert scan.faults["line"].size == 0


def test_a_record_that_is_too_long_is_given_up_at_its_first_line():
    data = np.frombuffer(b'a,"b\nc,d\ne,f\ng,h', np.uint8)
    scan = scan_csv(data, np.arange(2), [PLACES] * 2, final=False, limit=8)
    assert scan.faults["status"].tolist() == [TOO_LONG]
    assert (scan.faults["start"][0], scan.faults["end"][0]) == (0, 4)
    assert scan.line.tolist() == [2, 3]
    assert not scan.cut
    scan = scan_csv(
        np.frombuffer(b"x" * 20, np.uint8), np.arange(2), [PLACES] * 2, final=False, limit=8
    )
    assert scan.cut
    assert scan.stop == 20


def test_bad_arguments():
    data = np.zeros(4, np.uint8)
    with pytest.raises(TypeError, match="`data` has dtype float64; expected uint8"):
        scan_csv(data.astype(float), np.arange(1), [PLACES])
    with pytest.raises(ValueError, match="slot_of names column 1; there are 1"):
        scan_csv(data, np.array([1]), [PLACES])
