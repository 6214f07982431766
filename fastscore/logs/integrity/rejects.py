"""Rejects: lines and rows that cannot be scored, each with its place and one reason.

The first rejects of a file are listed, others are counted by field and reason. So memory does not
grow with a log of many faulty lines.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import polars as pl

from fastscore.files import Damage
from fastscore.suites.declarations import REJECTS_TABLE, RejectReason

UNREADABLE_PARQUET = (
    OSError,
    OverflowError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
"""polars panics if a footer points beyond the file's end."""


def reason_of(error: BaseException) -> str:
    """Return a short reason why a file cannot be read."""
    if isinstance(error, pl.exceptions.PanicException | OverflowError):
        return "its footer does not fit its content"
    message = getattr(error, "strerror", None) or str(error)
    return message.splitlines()[0] if message else type(error).__name__


LISTED_REJECTS = 1000
"""Maximum number of listed rejects of a file, in each shard with a part of it."""

RAW_CHARACTERS = 200
FOUND_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Reject:
    """A line or row that is skipped, or several of one kind; fields as in `REJECTS_TABLE`.

    ``last_line`` is None for a single line.
    """

    file: str
    line: int
    byte_offset: int | None
    field: str | None
    reason: RejectReason
    found: str
    expected: str
    raw: str
    count: int = 1
    last_line: int | None = None


def damaged(damage: Damage, file: str, line: int, offset: int, rest: bytes = b"") -> Reject:
    """Return the reject of the data that a damaged file lacks, after its last complete line."""
    whole = "a whole compressed file"
    return Reject(file, line, offset, None, damage.reason, damage.found, whole, decode(rest))


def describe_reject(reject: Mapping[str, Any]) -> str:
    """Describe the first reject, a row of `REJECT_SCHEMA`."""
    field = f", field {reject['field']}" if reject["field"] else ""
    return (
        f"The first: {reject['file']}:{reject['line']}{field}: {reject['reason']} (found "
        f"{reject['found']}, expected {reject['expected']})"
    )


def cut(text: str, characters: int) -> str:
    """Return ``text``, or its beginning and an ellipsis within ``characters``."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def decode(raw: bytes, characters: int = RAW_CHARACTERS) -> str:
    """Decode the beginning of raw bytes for display, replacing invalid UTF-8."""
    return cut(raw[: 4 * characters + 4].decode("utf-8", errors="replace"), characters)


_NONE = pl.DataFrame(schema=REJECTS_TABLE)


def reject_frame(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Make a frame of rejects in `REJECTS_TABLE`."""
    if not rejects:
        return _NONE
    frame = pl.DataFrame([astuple(reject) for reject in rejects], REJECTS_TABLE, orient="row")
    return frame.with_columns(pl.col("last_line").fill_null(pl.col("line")))


class FileRejects:
    """The listed rejects of each file, and the number of others."""

    def __init__(self) -> None:
        self._listed: Counter[str] = Counter()
        self._more: dict[tuple[str, str | None, str], Reject] = {}

    def take(self, rejects: Iterable[Reject]) -> list[Reject]:
        """Return the next rejects to list; count the others."""
        listed = []
        for reject in rejects:
            if reject.count == 1 and self._listed[reject.file] < LISTED_REJECTS:
                self._listed[reject.file] += 1
                listed.append(reject)
            else:
                self._count(reject)
        return listed

    def _count(self, reject: Reject) -> None:
        kind = reject.file, reject.field, reject.reason
        first = self._more.get(kind)
        last = max(reject.line, reject.last_line or 0, (first and first.last_line) or 0)
        count = reject.count if first is None else first.count + reject.count
        self._more[kind] = replace(first or reject, count=count, last_line=last)

    def more(self) -> list[Reject]:
        """Return the others, one reject for each field and reason of a file."""
        return list(self._more.values())


def cap_rejects(rejects: Iterable[Reject]) -> list[Reject]:
    """Return the kept rejects of whole files, or of parts of them."""
    of_files = FileRejects()
    return [*of_files.take(rejects), *of_files.more()]


def listed_rejects(rejects: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of rejects, in `REJECTS_TABLE`, without those above the limit of a file."""
    if rejects.is_empty():
        return rejects
    # in polars, not by `cap_rejects`: a shard may have millions of rejects
    place = pl.int_range(pl.len()).over("file", order_by=("count", "line"))
    is_listed = (place < LISTED_REJECTS) & (pl.col("count") == 1)
    kept = rejects.with_columns(is_listed=is_listed)
    if kept["is_listed"].all():
        return rejects
    kind = ("file", "field", "reason")
    more = kept.filter(~pl.col("is_listed")).sort("line", maintain_order=True)
    counted = more.group_by(kind, maintain_order=True).agg(
        pl.col("line", "byte_offset", "found", "expected", "raw").first(),
        pl.col("count").sum(),
        pl.col("last_line").max(),
    )
    return pl.concat(
        [kept.filter("is_listed").select(*REJECTS_TABLE), counted.select(*REJECTS_TABLE)]
    )
