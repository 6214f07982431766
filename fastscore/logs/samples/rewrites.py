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
    EACH,
    Flag,
    UnmappedLogError,
    column_flag,
    layout_flag,
    typed,
    value_flag,
)
from fastscore.logs.inputs.document_values import first_at, value_at
from fastscore.logs.inputs.layout import load_layout
from fastscore.logs.inputs.near_names import role_meanings, side_of
from fastscore.logs.integrity.rejects import cut
from fastscore.logs.samples.chat_samples import NESTED, OPENAI
from fastscore.logs.samples.profile import (
    ROWS_SAMPLED,
    KeyedArrays,
    Profile,
    Record,
    RequiredColumn,
    keyed_arrays,
    nearest_key,
    of_jq,
    profile_of,
    quoted,
)
from fastscore.suites.chats import ASSISTANT_ROLE, USER_ROLE
from fastscore.suites.declarations import ALL_METRICS, Source

_NUMBERED = re.compile(r"(.*[^\d_ -])[_ -]?\d+")
"""A key that ends in a number."""
_MOST_NUMBERED = 20
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


@dataclass(frozen=True, slots=True)
class Lack:
    """A log that lacks what a suite needs: its first rows, and what they have at each key."""

    file: str
    source: Source
    lacking: Sequence[RequiredColumn]
    rows: Sequence[Record]
    found: Profile


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a log is, the program that makes jq write it anew, and the options that read that.

    Without a program ``advice`` says what to do.
    """

    said: str
    program: str = ""
    read: Sequence[Flag] = ()
    slurps: bool = False
    writes: str = "Write one on each line"
    into: str = "chats.jsonl"
    advice: str = ""

    def refused(self, file: str) -> UnmappedLogError:
        """Make the error that says what to type."""
        command = shlex.join(["jq", "-cs" if self.slurps else "-c", self.program, file])
        how = f" Read it with {typed(self.read)}." if self.read else ""
        unless = f"{self.writes}: `{command} > {self.into}`.{how}" if self.program else self.advice
        return UnmappedLogError(f"{file}: {self.said}.", [], unless=unless)


def rewritten(lack: Lack) -> UnmappedLogError | None:
    """Return the error of a log that no option reads, but one that jq writes of it."""
    rules = _REWRITES if lack.source.chat_rows is None else _REWRITES_OF_CHATS
    found = next(filter(None, (rule(lack) for rule in rules)), None)
    return None if found is None else found.refused(lack.file)


def _dialogues_by_ids(lack: Lack) -> Rewrite | None:
    """Find dialogues that are values of an object inside the document, by their ids."""
    keyed = next(filter(None, map(keyed_dialogues, lack.rows[:ROWS_SAMPLED])), None)
    if keyed is None or not keyed.holder:
        return None
    where = ".".join(keyed.holder)
    return Rewrite(f"its dialogues are in {where}, by their ids: {quoted(keyed.objects)}", keyed.jq)


def _dialogues_in_array(lack: Lack) -> Rewrite | None:
    """Find one array whose elements have arrays of their own, and are no turns."""
    outer = {path.partition(EACH)[0] for path in lack.found.arrays if EACH in path}
    array = "".join(outer) if len(outer) == 1 else ""
    keys = lack.found.below(array).values()
    are_ids = any(each and not each.holder for each in map(keyed_dialogues, lack.rows[:1]))
    if not array or are_ids or any(key.takes_turns or key.are_texts for key in keys):
        return None
    said = f"the elements of {array} have arrays of their own, as dialogues do"
    return Rewrite(said, _elements_in_jq(array.split(".")))


def _numbered_keys(lack: Lack) -> Rewrite | None:
    """Find the turns of a dialogue under numbered keys: ``user_1``, ``bot_1``, ``user_2``."""
    stems: dict[str, dict[str, list[str]]] = {}
    rows = lack.source.chat_rows
    of_turns = (rows.array, rows.speaker, rows.text) if rows else ()
    if not all(need.name in of_turns for need in lack.lacking):
        return None
    for path, key in lack.found.below("").items():
        holder, _, name = path.rpartition(".")
        numbered = _NUMBERED.fullmatch(name)
        if numbered and key.types.keys() == {"string"}:
            stems.setdefault(holder, {}).setdefault(numbered[1], []).append(name)
    for holder, of_holder in stems.items():
        said_by = {stem: names for stem, names in of_holder.items() if len(names) > 1}
        roles = role_meanings(said_by)
        if {*roles.values()} < {USER_ROLE, ASSISTANT_ROLE}:
            continue
        keys = [name for names in said_by.values() for name in names]
        pattern = f"^({'|'.join(map(re.escape, said_by))})[_ -]?[0-9]+$"
        where = "".join(f".{of_jq(key)} | " for key in holder.split(".") if key)
        beside = f"with_entries(select(.key | test({json.dumps(pattern)}) | not))"
        program = (
            f"{beside} + {{messages: [{where}to_entries[] "
            f"| select(.value and (.key | test({json.dumps(pattern)})))] "
            '| sort_by(.key | match("[0-9]+$").string | tonumber) '
            '| map({role: (.key | sub("[_ -]?[0-9]+$"; "")), content: .value})}'
        )
        openai = load_layout(OPENAI).chat
        known = dict(openai.roles) if openai else {}
        words = [(word, role) for word, role in roles.items() if known.get(word) != role]
        read = [layout_flag(OPENAI), *(value_flag("speaker", *each) for each in words)]
        return Rewrite(f"its turns are under numbered keys: {quoted(keys)}", program, read)
    return None


def _predictions_beside_truth(lack: Lack) -> Rewrite | None:
    """Find rows that have at once what a suite reads of rows of several words."""
    need = lack.lacking[0]
    words = need.column.vocabulary.needed
    columns = {
        word: [each for each in lack.source.columns if each.only_where == (need.name, word)]
        for word in words
    }
    keys = lack.found.below("")
    if len(words) < 2 or not all(columns.values()) or nearest_key(need.column, keys):
        return None
    read: list[Flag] = []
    places: dict[str, str | None] = {}
    for column in (each for word in words for each in columns[word]):
        side = side_of(column.name)
        texts = [path for path, key in keys.items() if key.are_texts and side_of(path) == side]
        named = next((key for key in column.keys if key in keys), None)
        only = texts[0] if len(texts) == 1 else None
        place = places[column.name] = named or nearest_key(column, keys) or only
        read += [column_flag(column.name, place)] if place and place != named else []
    paths = [*filter(None, places.values())]
    if 0 < len(paths) < len(places) and not read:
        absent = next(name for name, place in places.items() if place is None)
        word = next(word for word in words if any(c.name == absent for c in columns[word]))
        return Rewrite(
            f"no row has {need.name} or {absent}, beside {quoted(paths)}",
            advice=f"Nothing is scored without {absent}: log it in rows of {need.name} {word!r}.",
        )
    are_beside = (all(value_at(row, path) is not None for path in paths) for row in lack.rows)
    if not 0 < len(paths) == len({*paths}) or not any(are_beside):
        return None
    defaults = []
    for column in lack.source.columns:
        is_needed = column.needed.by == ALL_METRICS and column.kind == "integer"
        if is_needed and not any(key in keys for key in column.keys):
            near = nearest_key(column, keys)
            is_first = column.needed.where is not None
            defaults += [f"{column.name}: {0 if is_first else '.key'}"] if near is None else []
            read += [column_flag(column.name, near)] if near is not None else []
    rows = ", ".join(f"(. + {{{need.name}: {json.dumps(word)}}})" for word in words)
    program = f"flatten(1) | to_entries[] | {{{', '.join(defaults)}}} + .value | {rows}"
    said = f"{' and '.join(paths)} are in the same rows, and no row has {need.name}"
    return Rewrite(said, program, read, slurps=True, writes="Write both", into="rows.jsonl")


def _words_for_numbers(lack: Lack) -> Rewrite | None:
    """Find words in the place of numbers, such as ``first`` and ``second``."""
    for need in (each for each in lack.lacking if each.column.kind == "integer"):
        path = next((key for key in need.column.keys if key in lack.found.keys), None)
        words = [*lack.found.keys[path].words] if path else []
        are_words = 0 < len(words) <= _MOST_NUMBERED and not any(map(str.isdecimal, words))
        if need.holder is None and path and "." not in path and are_words:
            numbers = json.dumps({word: number for number, word in enumerate(words)})
            program = f".{of_jq(path)} |= ({numbers}[tostring] // .)"
            said = f"{path} is {quoted(words)}, expected integers from 0"
            return Rewrite(said, program, writes="Write numbers", into="rows.jsonl")
    return None


_REWRITES = (_predictions_beside_truth, _words_for_numbers)
_REWRITES_OF_CHATS = (_dialogues_by_ids, _dialogues_in_array, _numbered_keys)
"""What is looked for in logs that lack what a suite needs, in this order."""
