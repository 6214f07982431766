"""Logs whose dialogues are named by another key than the suite's."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

from fastscore.logs.inputs.column_map import UnmappedLogError, column_flag
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.records import Record, first_row
from fastscore.logs.inputs.sampling import FileSample, occurs_in
from fastscore.suites.declarations import Source

_ROWS = 200
_TABLE_ROWS = 20_000
_DIALOGUE_ID = re.compile(
    r"(dialog(ue)?|conv(ersation)?|session|chat|thread|episode|call)[ _-]?(id|uid|uuid|key|name|no|"
    r"num(ber)?)?",
    re.IGNORECASE,
)


def check_ids(suite: str, source: Source, seen: FileSample) -> None:
    """Refuse a file that would be one dialogue although a key of its rows names several.

    Raises
    ------
    UnmappedLogError
        No row has the suite's own key, and another one varies within the file as ids do.
    """
    if not seen.other_ids:
        return
    key = source.column(source.dialogue_key[0])
    records = list(islice(seen.read(), _ROWS))
    found = _named_ids(records, seen) or _repeated_ids(records, seen.other_ids)
    if found is None:
        return
    raise UnmappedLogError(
        f"{seen.file.path}: no row has {key.name}, by which {suite} tells dialogues apart, so the "
        f"file would be one dialogue. {found!r} varies within the file as names of dialogues do.",
        [column_flag(key.name, found)],
        more=f" If the file is one dialogue, type --column {key.name}=.",
    )


def _named_ids(records: Sequence[Record], seen: FileSample) -> str | None:
    """Return a key that is called as names of dialogues are, if it has several values."""
    for name in filter(_DIALOGUE_ID.fullmatch, seen.other_ids):
        values = _values(records, name)
        others = ((first_row(file) or {}).get(name) for file in seen.alike)
        if len(set(values)) > 1 or (values and _has_other(seen, seen.file, name, values[0])):
            return name
        if any(
            _has_other(seen, file, name, value)
            for file, value in zip(seen.alike, others, strict=True)
            if isinstance(value, str | int)
        ):
            return name
    return None


def _has_other(seen: FileSample, file: InputFile, name: str, value: str | int) -> bool:
    """Tell whether a key has another value than one in a file, of tables in their first rows."""
    if not file.size:
        return False
    if file.format not in ("json", "jsonl"):
        rows = islice(seen.read(), _TABLE_ROWS)
        return any(record.get(name) not in (None, "", value) for record in rows)
    spelled = re.escape(f'"{value}"' if isinstance(value, str) else str(value)).encode()
    pattern = rb'"%s"\s*:\s*(?!%s|null\b)["\d]' % (re.escape(name).encode(), spelled)
    return occurs_in(file, pattern)


def _repeated_ids(records: Sequence[Record], names: Iterable[str]) -> str | None:
    """Return a key that is called an id and has the same value in neighbouring rows only."""
    for name in names:
        values = _values(records, name)
        changes = sum(a != b for a, b in pairwise(values))
        if 1 < len(set(values)) == changes + 1 < len(records) == len(values):
            return name
    return None


def _values(records: Sequence[Record], name: str) -> list[Any]:
    found = (record.get(name) for record in records)
    return [value for value in found if isinstance(value, str | int) and value != ""]
