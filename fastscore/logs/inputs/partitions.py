"""Hive partitions: folders named ``model=m1`` give the column ``model`` of the rows in them."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from urllib.parse import unquote

import polars as pl

from fastscore.errors import InputError
from fastscore.suites.declarations import Column, Source

_FOLDER = re.compile(r"([^=/%]+(?:%[0-9A-Fa-f]{2}[^=/%]*)*)=([^/]*)")
_NULL = "__HIVE_DEFAULT_PARTITION__"
_BOOLEANS = {"true": True, "false": False}

Partition = tuple[tuple[str, str], ...]
"""Names of columns and their values, from the outermost folder to the innermost."""


@lru_cache(1 << 12)
def _of_folder(folder: str) -> Partition:
    found: dict[str, str] = {}
    for part in folder.split("/"):
        named = _FOLDER.fullmatch(part)
        if named is not None and named[2] != _NULL:
            found[unquote(named[1])] = unquote(named[2])
    return tuple(found.items())


def partition_of(path: str) -> Partition:
    """Return what the folders of a path give; nothing for the name that stands for null."""
    folder, separator, _ = path.rpartition("/")
    return _of_folder(folder) if separator and "=" in folder else ()


def with_partition(source: Source, path: str) -> Source:
    """Return a source whose columns have what the folders of a path give, if rows do not.

    Raises
    ------
    InputError
        A value is none of its column's kind.
    """
    partition = dict(partition_of(path))
    if not partition:
        return source
    columns = tuple(_given(column, partition, path) for column in source.columns)
    chat = source.chat and replace(source.chat, native=with_partition(source.chat.native, path))
    return replace(source, columns=columns, chat=chat)


def _given(column: Column, partition: Mapping[str, str], path: str) -> Column:
    names = (column.name, *column.keys)
    text = next((partition[name] for name in names if name in partition), None)
    if text is None or column.kind == "json" or column.only_where is not None:
        return column
    given = replace(column, from_folder=text, required=False)
    if folder_value(given) is None:
        raise InputError(
            f"{path}: the folders give {column.name} the value {text!r}, expected one of the kind "
            f"{column.kind}.",
            "Rename the folder.",
        )
    return given


def folder_value(column: Column) -> str | int | float | bool | None:
    """Return a column's value from its file's folders, of the column's kind; None without one."""
    text = column.from_folder
    if text is None:
        return None
    if column.kind == "text":
        return dict(column.value_map).get(text, text)
    if column.kind == "boolean":
        return _BOOLEANS.get(text.lower())
    try:
        number = float(text)
        if column.kind == "number":
            return number
        return int(text) if text.lstrip("+-").isdigit() else _whole(number)
    except ValueError:
        return None


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) and number.is_integer() else None


def check_partition(rows: pl.DataFrame, source: Source) -> None:
    """Refuse rows that say otherwise than the folders of their file.

    Raises
    ------
    InputError
        A row does.
    """
    for column in source.columns:
        value = folder_value(column)
        if value is None or column.name not in rows.columns:
            continue
        other = rows.filter(pl.col(column.name) != value).head(1)
        for row in other.iter_rows(named=True):
            raise InputError(
                f"{row['file']}:{row['line']}: {column.name} is {row[column.name]!r}, but the "
                f"file's folder says {value!r}.",
                "Correct the rows or move the file to another folder.",
            )


def with_folders(row: dict[str, object], partition: Partition) -> dict[str, object]:
    """Return a row with what its file's folders give, if it has no value of its own."""
    more = {name: value for name, value in partition if row.get(name) is None}
    return {**row, **more} if more else row
