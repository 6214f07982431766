"""Rejects: lines and rows that cannot be scored, each with its place and one reason."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import polars as pl

from fastscore.suites.base import REJECT_SCHEMA, RejectReason, empty_rejects

RAW_CHARACTERS = 200
FOUND_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Reject:
    """A line or row that is left aside; fields as in `REJECT_SCHEMA`."""

    file: str
    line: int
    byte_offset: int | None
    field: str | None
    reason: RejectReason
    found: str
    expected: str
    raw: str


def cut(text: str, characters: int) -> str:
    """Return ``text``, or its beginning and an ellipsis within ``characters``."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def decode(raw: bytes, characters: int = RAW_CHARACTERS) -> str:
    """Decode the beginning of raw bytes for a reader, replacing what is not UTF-8."""
    return cut(raw[: 4 * characters + 4].decode("utf-8", errors="replace"), characters)


def reject_frame(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Make a frame of rejects in `REJECT_SCHEMA`."""
    if not rejects:
        return empty_rejects()
    return pl.DataFrame([astuple(reject) for reject in rejects], REJECT_SCHEMA, orient="row")
