"""What is wrong with a line that no row can be made of, in words: rejects of whole lines."""

from collections.abc import Sequence
from dataclasses import replace

from fastscore_readers.csv_records import (
    TEXT_AFTER_QUOTE,
    TOO_LONG,
    UNTERMINATED_QUOTE,
    WRONG_CELL_COUNT,
)
from fastscore_readers.json.documents import LINE_END_IN_STRING
from fastscore_readers.json.faults import NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP
from fastscore_readers.json.tokens import MAX_DEPTH
from fastscore_readers.line_scan import LineScan

from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import (
    FOUND_CHARACTERS,
    RAW_CHARACTERS,
    Reject,
    cut,
    decode,
)
from fastscore.logs.read.batches import Batch
from fastscore.logs.read.lines import Lines
from fastscore.suites.declarations import RejectReason
from fastscore.unpacked import Damage

FAULTS: dict[int, tuple[RejectReason, str]] = {
    NOT_JSON: ("not_json", "one JSON object a line"),
    NOT_OBJECT: ("not_an_object", "one JSON object a line"),
    NOT_UTF8: ("not_utf8", "UTF-8"),
    TOO_DEEP: ("nested_too_deeply", f"at most {MAX_DEPTH} levels"),
    WRONG_CELL_COUNT: ("wrong_cell_count", "as many cells as the header has"),
    UNTERMINATED_QUOTE: ("bad_quoting", "a closing quote"),
    TEXT_AFTER_QUOTE: ("bad_quoting", "a separator or a line end after a closing quote"),
    TOO_LONG: ("line_too_long", f"at most {MAX_RECORD_BYTES} bytes a record"),
}
"""The reason of each of the scanners' faults, and what was expected."""


def line_fault(scan: LineScan, batch: Batch, files: Sequence[str], index: int) -> Reject:
    """Name what is wrong with a faulty line."""
    start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
    status = int(scan.fault_status[index])
    parts, offsets = batch.places(scan.fault_start[index : index + 1])
    reason, expected = FAULTS[status]
    if status == WRONG_CELL_COUNT:
        expected = f"{int(scan.fault_width[index])} cells, as the header has"
    elif scan.syntax == "json" and status in (NOT_JSON, NOT_OBJECT):
        expected = "a JSON object"
    return Reject(
        files[parts[0]],
        int(scan.fault_line[index]),
        int(offsets[0]),
        None,
        reason,
        _found(scan, index),
        expected,
        raw_line(scan, start, end),
    )


def raw_line(scan: LineScan, start: int, end: int) -> str:
    """Decode the beginning of a line; of an element without the space after it."""
    raw = scan.data[start : min(end, start + 8 * RAW_CHARACTERS)].tobytes()
    return decode(raw.rstrip(b" ") if scan.syntax == "json" else raw)


def _found(scan: LineScan, index: int) -> str:
    """Say what stands at the byte at which a line is wrong."""
    start, end = int(scan.fault_start[index]), int(scan.fault_end[index])
    position = int(scan.fault_position[index])
    status = int(scan.fault_status[index])
    if status == NOT_OBJECT:
        return cut(raw_line(scan, position, end).rstrip(), FOUND_CHARACTERS)
    if status == TOO_DEEP:
        return f"more than {MAX_DEPTH} levels"
    if status == TOO_LONG:
        return f"more than {MAX_RECORD_BYTES} bytes"
    if status == WRONG_CELL_COUNT:
        cells = int(scan.fault_cells[index])
        return "1 cell" if cells == 1 else f"{cells} cells"
    where = f"at byte {position - start + 1} of the"
    if status == UNTERMINATED_QUOTE:
        return f"a quote {where} line that is not closed"
    if status == TEXT_AFTER_QUOTE:
        # it may stand on a later line, which is not at hand
        return f"text {where} record after a closing quote"
    if position >= end:
        return "the end of the line"
    byte = int(scan.data[position])
    if byte == LINE_END_IN_STRING:
        what = "a line end within a string"
    elif status == NOT_UTF8 or byte < 0x20:
        what = f"byte 0x{byte:02x}"
    else:
        what = repr(scan.data[position : position + 4].tobytes().decode("utf-8", "replace")[:1])
    return f"{what} {where} line"


def long_line(file: str, lines: Lines) -> Reject:
    """Name a line that was skipped for its length."""
    return Reject(
        file,
        lines.line,
        lines.offset,
        None,
        "line_too_long",
        f"{lines.long_line} bytes",
        f"at most {MAX_RECORD_BYTES} bytes",
        decode(bytes(lines.data)),
    )


def note_damage(
    damage: Damage,
    rejects: list[tuple[int, Reject]],
    scan: LineScan,
    batch: Batch,
    files: Sequence[str],
) -> int:
    """Name damage after a batch: 1 when it counts as a line of its own, else 0.

    An unfinished last line is the damage's reject, in place of its own.
    """
    last = batch.segments[-1]
    file = files[int(batch.parts[-1])]
    reason, found = damage.reason, damage.found
    expected = "a whole compressed file"
    size = scan.data.size
    unfinished = scan.fault_end.size > 0 and int(scan.fault_end[-1]) == size
    if unfinished and last.data and last.data[-1:] not in (b"\n", b"\r"):
        start, reject = rejects.pop(
            next(i for i, (start, _) in enumerate(rejects) if start == int(scan.fault_start[-1]))
        )
        rejects.append((start, replace(reject, reason=reason, found=found, expected=expected)))
        return 0
    line = scan.next_line if last.data else last.line
    offset = last.offset + len(last.data)
    rejects.append((size, Reject(file, line, offset, None, reason, found, expected, "")))
    return 1
