"""Logs that must be written anew before an option reads them, and the command that does it."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from fastscore.logs.inputs.column_map import (
    Flag,
    UnmappedLogError,
    column_flag,
    layout_flag,
    typed,
    value_flag,
)
from fastscore.logs.inputs.document_values import first_at, value_at
from fastscore.logs.inputs.layout import load_layout
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import NESTED
from fastscore.logs.samples.profile import (
    KeyedArrays,
    Record,
    keyed_arrays,
    of_jq,
    profile_of,
)
from fastscore.suites.declarations import Source

_DEEPEST = 3
_SHOWN_CHARACTERS = 40
_OF_PYTHON = re.compile(r"\s*(\[\s*)?[\[{(]\s*'")


@dataclass(frozen=True, slots=True)
class Export:
    """What another tool writes that no layout reads as it stands; see ``exports.toml``."""

    title: str
    needs: Sequence[str | Sequence[str]]
    without: Sequence[str] = ()
    text: str = ""
    jq: str = ""
    slurp: str | None = None
    layout: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""

    @property
    def flags(self) -> list[Flag]:
        """The options that read it, or what jq makes of it."""
        return [
            *([layout_flag(self.layout)] if self.layout else []),
            *(column_flag(*item) for item in self.columns.items()),
            *(value_flag("speaker", *item) for item in self.values.items()),
        ]

    def refused(self, file: str) -> UnmappedLogError:
        """Make the error that says what reads a file of it."""
        unless = self.advice.replace("FILE", file)
        if self.jq:
            program = ["jq", "-c" if self.slurp is None else "-cs", self.jq]
            command = shlex.join([*program, *filter(None, [self.slurp]), file])
            how = f" with {typed(self.flags)}" if self.flags else ""
            unless = f"Type {command} > chats.jsonl, and read it{how}."
        return UnmappedLogError(
            f"{file}: {self.title}.", [] if unless else self.flags, unless=unless
        )


@cache
def _exports() -> tuple[tuple[list[list[str]], str], ...]:
    """Return what rows of each export have, and its table, which is parsed if they have it."""
    text = files(__package__).joinpath("exports.toml").read_text("utf-8")
    needs = (json.loads(line.removeprefix("needs = ")) for line in _NEEDS.findall(text))
    paths = ([[each] if isinstance(each, str) else each for each in need] for need in needs)
    return tuple(zip(paths, text.split("[[exports]]")[1:], strict=True))


_NEEDS = re.compile(r"^needs = .*$", re.MULTILINE)


def export_of(row: Record) -> Export | None:
    """Return the export that a row is of."""
    for needs, table in _exports():
        if all(any(_leads(row, path.split(".")) for path in paths) for paths in needs):
            export = Export(**tomllib.loads(table))
            first = first_at(row, needs[0]) if export.text else ""
            if export.text in str(first) and not any(
                _leads(row, path.split(".")) for path in export.without
            ):
                return export
    return None


def _leads(value: Any, path: Sequence[str]) -> bool:
    """Tell whether a path leads to a value other than null."""
    for place, part in enumerate(path):
        if part == "*":
            inside = value.values() if isinstance(value, dict) else ()
            return bool(inside) and all(_leads(each, path[place + 1 :]) for each in inside)
        if part.startswith("{"):
            part = part.strip("{}") if isinstance(value, dict) else ""
        value = value_at(value, part) if part else None
    return value is not None


def foreign_rows(file: str, source: Source, records: Iterable[Record]) -> UnmappedLogError | None:
    """Return the error of rows that must be converted first, None of others."""
    # cells that a suite reads by itself may be as Python prints them
    own = {key for column in source.columns if not column.items for key in column.keys}
    shapes: set[frozenset[str]] = set()
    for record in records:
        shape = frozenset(key for key, value in record.items() if value is not None)
        names = [*record]
        # the other way round it is an index
        if names[1:] == [""]:
            return UnmappedLogError(
                f"{file}: line 1 names one column, {names[0]!r}: it is a title above the table.",
                [],
                unless=f"Type {shlex.join(['tail', '-n', '+2', file])} > table.csv.",
            )
        for key, value in record.items():
            if isinstance(value, str) and key not in own and _OF_PYTHON.match(value):
                return UnmappedLogError(
                    f"{file}: {key} is a list or a dict as Python prints it, with single quotes, "
                    f"not JSON: {cut(value, _SHOWN_CHARACTERS)}",
                    [],
                    unless="Write the log by to_json(orient='records', lines=True), or by "
                    "to_parquet.",
                )
        if len(names) == 1 and names[0].count("|") > 1:
            command = f"{shlex.join(['tr', '|', chr(92) + 't'])} < {shlex.quote(file)} > table.tsv"
            return UnmappedLogError(
                f"{file}: line 1 is {cut(names[0], _SHOWN_CHARACTERS)!r}: columns are parted by |, "
                "expected commas, semicolons or tabs.",
                [],
                unless=f"Type {command}.",
            )
        nested = _nested_dialogues(record) if source.chat_rows is not None else None
        if nested is not None:
            command = shlex.join(["jq", "-c", nested, file])
            return UnmappedLogError(
                f"{file}: its dialogues are {nested}.",
                [],
                unless=f"Write one on each line: `{command} > chats.jsonl`.",
            )
        # an array by itself is a row of one value
        first = [each[0] for each in record.values() if isinstance(each, list) and each]
        places = [record, *(first if len(record) == 1 else ())]
        if shape not in shapes:
            export = next(filter(None, map(export_of, places)), None)
            # what no option reads is no chat
            if export is not None and (source.chat_rows is not None or not export.flags):
                return export.refused(file)
        shapes.add(shape)
    return None


def _nested_dialogues(record: Record) -> str | None:
    """Return jq's path to dialogues in arrays of arrays, or in one further inside an object."""
    nested = load_layout(NESTED).chat
    for outer, groups in _arrays_of_objects(record):
        is_inside = len(outer) > 1 and nested and f"{'.'.join(outer)}[]" not in nested.dialogues
        for inner, dialogues in _arrays_of_objects(groups[0]):
            if is_inside and _are_turns(dialogues):
                return _elements_in_jq(outer)
            if any(_are_turns(turns) for _, turns in _arrays_of_objects(dialogues[0])):
                return _elements_in_jq(outer) + _elements_in_jq(inner)
    return None


def _elements_in_jq(path: Sequence[str]) -> str:
    return "".join(f".{of_jq(key)}" for key in path) + "[]"


def keyed_dialogues(record: Record) -> KeyedArrays | None:
    """Return dialogues that are values of an object by their ids, outside of other arrays."""
    for keyed in keyed_arrays(record):
        turns = value_at(next(iter(keyed.objects.values())), ".".join(keyed.place))
        found = profile_of(turn for turn in turns or () if isinstance(turn, dict)).keys.values()
        if any(key.names_speakers or key.takes_turns for key in found):
            return keyed
    return None


def _are_turns(objects: Sequence[Any]) -> bool:
    """Tell whether objects say who speaks, by words or by what is true or false in turn."""
    found = profile_of(each for each in objects if isinstance(each, dict)).keys.values()
    return any(key.names_speakers or (key.takes_turns and key.types["boolean"]) for key in found)


def _arrays_of_objects(
    value: Record, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the arrays of objects in an object, by the keys that lead to them."""
    for key, inside in value.items():
        if isinstance(inside, dict) and len(before) < _DEEPEST:
            yield from _arrays_of_objects(inside, (*before, key))
        elif isinstance(inside, list) and inside and isinstance(inside[0], dict):
            yield (*before, key), inside
