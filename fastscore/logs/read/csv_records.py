"""CSV files as a stream of complete records, scanned while they are read.

The end of a record is known only from its beginning, so a file is scanned in order. A record that
the blocks cut is scanned again after the data read have doubled, so a long record is scanned at
most twice. A file with an invalid header is one reject.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_readers.csv_records import TOO_LONG, WRONG_CELL_COUNT, scan_csv
from fastscore_readers.fill import PLACES, LineScan
from fastscore_readers.json.lines import NOT_UTF8
from fastscore_readers.json.tokens import ESCAPED

from fastscore.files import Damage
from fastscore.logs.inputs.files import find_separator
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import FOUND_CHARACTERS, Reject, cut, damaged, decode
from fastscore.logs.read.columns import wanted_keys
from fastscore.logs.read.lines import (
    BOM,
    MOST_LINES,
    Block,
    BlockStream,
    Lines,
    read_blocks,
    skip_line,
    take_buffer,
)
from fastscore.suites.declarations import Column, RejectReason

_LONG_ENOUGH = 64
"""Record size above which its notes need little memory."""
_NO_CELLS = np.empty(0, np.int64)
_COMMA = ord(",")
_MOST_HEADER = 1 << 20


def read_records(
    blocks: Iterator[Block],
    file: str,
    columns: Sequence[Column],
    *,
    offset: int = 0,
    line: int = 1,
    header: bytes = b"",
    damage: Damage | None = None,
    fill: Mapping[bytes, int] | None = None,
) -> Iterator[Lines]:
    """Cut blocks at ends of records, and scan them."""
    stream = BlockStream(blocks, offset == 0, damage)
    pending: Block
    begin = 0
    if header:
        pending = stream.more()
        offset += stream.mark
    else:
        found, pending, begin, header = _first_record(stream)
        offset += stream.mark + begin
        refused = _refusal(found, header, pending[begin:], file, offset, columns)
        if stream.damage is not None and not header:
            refused = damaged(stream.damage, file, 1, offset, bytes(pending[begin:]))
        if refused is not None:
            while not stream.ended:  # the reader hashes the whole file
                stream.more()
            yield Lines(b"", offset, refused.line, refused=refused)
            return
        begin, offset, line = begin + found.stop, offset + found.stop, found.next_line
    keys = wanted_keys(columns)
    scanner = _Scanner(
        cell_slots(header, keys),
        [(fill or {}).get(key, PLACES) for key in keys],
        find_separator(header).character,
        header[find_separator(header).skipped :],
    )
    yield from _read(stream, (pending, begin), scanner, file, offset, line)


def read_cells(blocks: Iterator[Block]) -> Iterator[dict[str, str]]:
    """Yield the records of a file, each with the texts of its cells by the names of `header_names`.

    Faulty records are skipped. Of columns with one name the last counts.
    """
    stream = BlockStream(blocks, True, None)
    found, pending, begin, header = _first_record(stream)
    if not header:
        return
    begin += found.stop
    names, separator = header_names(header), find_separator(header)
    slots, kinds = np.arange(len(names)), [PLACES] * len(names)
    scanner = _Scanner(slots, kinds, separator.character, header[separator.skipped :])
    for lines in _read(stream, (pending, begin), scanner, "", 0, 1):
        for cells in _cell_texts(lines.records) if lines.records else ():
            yield dict(zip(names, cells, strict=True))


def _cell_texts(scan: LineScan) -> Iterator[list[str]]:
    places = scan.columns.words.transpose(1, 0, 2).tolist()
    for tags, row in zip(scan.tags.T.tolist(), places, strict=True):
        cells = [
            (tag, scan.data[start:end].tobytes())
            for tag, (start, end) in zip(tags, row, strict=True)
        ]
        yield [
            (cell.replace(b'""', b'"') if tag == ESCAPED else cell).decode() for tag, cell in cells
        ]


@dataclass(frozen=True, slots=True)
class _Scanner:
    """Scans records: the column of each cell, the kinds of columns, the separator, the header."""

    slots: Int64Array
    kinds: Sequence[int]
    separator: bytes = b","
    header: bytes = b""

    def scan(
        self, data: UInt8Array, *, line: int = 1, final: bool = True, records: int = 1 << 62
    ) -> LineScan:
        """Scan records. If the separator is not a comma, it is exchanged with commas."""
        scan = partial(scan_csv, line=line, final=final, limit=MAX_RECORD_BYTES, records=records)
        if self.separator == b",":
            return scan(data, self.slots, self.kinds, allocate=_kept_memory)
        swapped = np.arange(256, dtype=np.uint8)
        swapped[[self.separator[0], _COMMA]] = _COMMA, self.separator[0]
        # texts would be those of the swapped data
        return replace(scan(swapped[data], self.slots, [PLACES] * len(self.kinds)), data=data)


def _kept_memory(size: int) -> UInt8Array:
    """Return reusable memory for the texts of columns. New memory can take as long as reading."""
    return np.frombuffer(take_buffer(size), np.uint8)


def _read(
    stream: BlockStream,
    first: tuple[Block, int],
    scanner: _Scanner,
    file: str,
    offset: int,
    line: int,
) -> Iterator[Lines]:
    """Read the records after the header, from a byte of the first block on.

    Byte order marks at the beginning of records, and repeated headers, are skipped.
    """
    pending, begin = first
    while True:
        buffer = np.frombuffer(pending, np.uint8)[begin:]
        most = max(MOST_LINES, buffer.size // _LONG_ENOUGH)
        scan = scanner.scan(buffer, line=line, final=stream.final, records=most)
        mark, skipped = _first_skipped(buffer, scan, scanner.header)
        if mark >= 0:
            scan = scanner.scan(buffer[:mark], line=line)
        at, first_line, line = scan.stop, line, scan.next_line
        many = scan.n_lines - scan.n_blank >= most
        if at:
            # a view, so that blocks are not copied because of their cut last record
            whole = memoryview(pending)[begin : begin + at]
            yield Lines(whole, offset, first_line, records=scan, dense=many)
        begin, offset = begin + at, offset + at
        if mark >= 0:
            begin, offset = begin + skipped, offset + skipped
        elif scan.cut:
            pending, _, skipped = skip_line(stream, bytes(stream.more()))
            begin, offset = 0, offset + skipped
        elif not many:
            pending, begin = pending[begin:], 0
            if stream.ended:
                break
            wanted = min(len(pending), MAX_RECORD_BYTES + 1 - len(pending))
            pending = stream.more(wanted, pending)
    if stream.damage is not None:
        refused = damaged(stream.damage, file, line, offset, bytes(pending))
        yield Lines(b"", offset, line, refused=refused)


def _first_skipped(data: UInt8Array, scan: LineScan, header: bytes) -> tuple[int, int]:
    """Return the position and size of the first mark or header to skip; -1 without one.

    A line end after a header is a blank line.
    """
    starts = np.concatenate((scan.start, scan.faults["start"])) if scan.has_mark else scan.start[:0]
    marks = starts[data[starts] == BOM[0]].tolist()
    of_size = scan.start[scan.end - scan.start == len(header)]
    headers = of_size[data[of_size] == header[0]].tolist()
    found = [(start, len(BOM)) for start in marks if data[start : start + 3].tobytes() == BOM]
    found += [
        (start, len(header))
        for start in headers
        if data[start : start + len(header)].tobytes() == header
    ]
    return min(found, default=(-1, 0))


def _first_record(stream: BlockStream) -> tuple[LineScan, Block, int, bytes]:
    """Scan the first record, of unknown width, which is the fault of its scan.

    Return the scan, the data, where the record begins in them, and the header with a line before it
    that declares the separator; empty if the record is broken.
    """
    pending = stream.more()
    while True:
        separator = find_separator(bytes(pending[:_MOST_HEADER]))
        begin = separator.skipped
        buffer = np.frombuffer(pending, np.uint8)[begin:]
        scanner = _Scanner(_NO_CELLS, (), separator.character)
        scan = scanner.scan(buffer, line=1 + (begin > 0), final=stream.final, records=1)
        if scan.faults["line"].size or stream.ended:
            break
        pending = stream.more(len(pending), pending)
    header = b""
    if scan.faults["line"].size and scan.faults["status"][0] == WRONG_CELL_COUNT:
        record = pending[begin:][scan.faults["start"][0] : scan.faults["end"][0]]
        header = bytes(pending[:begin]) + bytes(record) if len(record) else b""
    return scan, pending, begin, header


def csv_header(path: str) -> bytes:
    """Return the header of an uncompressed file, empty if it is broken."""
    return _first_record(BlockStream(read_blocks(path, "none"), True, None))[3]


@lru_cache(64)
def header_names(header: bytes) -> tuple[str, ...]:
    """Return a header's column names for comparison: stripped, in lower case."""
    separator = find_separator(header)
    header = header[separator.skipped :]
    data = np.frombuffer(header, np.uint8)
    width = int(_Scanner(_NO_CELLS, (), separator.character).scan(data).faults["cells"][0])
    scan = _Scanner(np.arange(width), [PLACES] * width, separator.character).scan(data, records=1)
    (cells,) = _cell_texts(scan)
    return tuple(cell.strip().lower() for cell in cells)


@lru_cache(64)
def cell_slots(header: bytes, keys: tuple[bytes, ...]) -> Int64Array:
    """Return the index of each cell's name among ``keys``, -1 without one."""
    wanted = {key.decode().strip().lower(): index for index, key in reversed([*enumerate(keys)])}
    slots = [wanted.get(name, -1) for name in header_names(header)]
    return np.array(slots, np.int64)


def _refusal(
    found: LineScan, header: bytes, data: Block, file: str, offset: int, columns: Sequence[Column]
) -> Reject | None:
    """Return why the header makes all records of a file unreadable; None if it does not."""

    def reject(field: str | None, reason: RejectReason, what: str, expected: str) -> Reject:
        line, start = 1, 0
        if found.faults["line"].size:
            line, start = int(found.faults["line"][0]), int(found.faults["start"][0])
        raw = decode(bytes(data[start : start + 8 * FOUND_CHARACTERS]))
        return Reject(file, line, offset + start, field, reason, what, expected, raw)

    if not found.faults["line"].size:
        return reject(None, "no_header", "no line that is not empty", "a header row")
    if not header:
        broken: dict[int, tuple[RejectReason, str]] = {
            NOT_UTF8: ("not_utf8", "bytes that are not UTF-8"),
            TOO_LONG: ("line_too_long", f"more than {MAX_RECORD_BYTES} bytes"),
        }
        status = int(found.faults["status"][0])
        reason, what = broken.get(status, ("bad_quoting", "a broken quote"))
        return reject(None, reason, what, "a header row")
    names = header_names(header)
    times = Counter(names)
    listed = "the columns " + cut(", ".join(repr(name) for name in names), 2 * FOUND_CHARACTERS)
    for column in columns:
        own = dict.fromkeys(name.strip().lower() for name in column.keys)
        for name in own:
            if times[name] > 1:
                return reject(name, "duplicate_column", f"{times[name]} such columns", "one")
        if column.required and column.only_where is None and not any(times[name] for name in own):
            names_of = " or ".join(repr(name) for name in own)
            return reject(column.name, "missing_column", listed, f"a column {names_of}")
    return None
