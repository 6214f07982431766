"""Named layouts: TOML files that describe other people's logs, by name, file or entry point.

A layout file has a ``title``, may have an ``example`` (a document as JSON), and describes chats in
the table ``chat`` (`ChatLayout`, whose fields are its keys). The tables ``columns`` and ``values``
hold for any suite, ``SUITE.columns`` and ``SUITE.values`` for one. The entry points of the group
``fastscore.layouts`` name such paths.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError, did_you_mean
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map
from fastscore.logs.inputs.document_values import dump_json, first_at, load_json
from fastscore.settings.extras import entry_points, load_entry
from fastscore.settings.options import TEXT_BYTES, parse_toml, read_option_file
from fastscore.suites.chats import (
    ASSISTANT_ROLE,
    BEFORE_REPLY,
    ROLES,
    USER_ROLE,
    ChatLayout,
    Paths,
    Words,
)

GROUP = "fastscore.layouts"
SUFFIX = ".toml"
_TABLES = ("columns", "values")
_CHAT = "chat"
_BEGIN = (USER_ROLE, ASSISTANT_ROLE, BEFORE_REPLY)


@dataclass(frozen=True, slots=True)
class Layout:
    """A column map by name, or by the path of its file.

    ``maps`` has the map of each suite, by name; of all others under the empty name, where it has
    one. ``chat`` says where the parts of chats are, ``example`` is a document.
    """

    name: str
    title: str
    maps: Mapping[str, ColumnMap]
    chat: ChatLayout | None = None
    example: Any = None

    def of(self, suite: str) -> ColumnMap:
        """Return the map of a suite."""
        if suite not in self.maps and "" not in self.maps and self.chat is None:
            raise UsageError(
                f"The layout {self.name!r} says nothing of {suite}.",
                "It is one of "
                + ", ".join(sorted(self.maps))
                + "; or map columns: `--column NAME=PATH`.",
            )
        found = self.maps.get("", NO_MAP) | self.maps.get(suite, NO_MAP)
        return replace(found, chat=self.chat)


def layout_names() -> tuple[str, ...]:
    """Return the names of the bundled and installed layouts, sorted."""
    return tuple(sorted(_places()))


def load_layout(name: str) -> Layout:
    """Read a layout by its name, or the file of one."""
    if name.endswith(SUFFIX) or os.sep in name:
        return _read(name, Path(name))
    places = _places()
    if name not in places:
        raise UsageError(
            f"There is no layout {name!r}.",
            did_you_mean(name, places) + f" Or name a file that ends in {SUFFIX}.",
        )
    return _named(name)


_NEEDS = re.compile(rb"^needs *= *(.+)$", re.MULTILINE)


def first_keys(documents: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the keys of documents, of those with dots what comes before the first."""
    return {key.partition(".")[0] for key in {key for each in documents for key in each}}


def may_read(name: str, documents: Sequence[Mapping[str, Any]], keys: Collection[str]) -> bool:
    """Tell whether documents may be in a layout, by its needs: reading all of it costs more.

    ``keys`` are their `first_keys`.
    """
    try:
        text = _places()[name].read_bytes()
        found = _NEEDS.findall(text)
        if len(found) != 1 or b"\ndialogues" in text:
            return True  # the needs are not those of documents
        needs = [[each] if isinstance(each, str) else each for each in load_json(found[0])]
    except (OSError, ValueError):
        return True
    paths = [[path for path in each if path.partition(".")[0] in keys] for each in needs]
    return all(paths) and any(
        all(first_at(document, each) is not None for each in paths) for document in documents
    )


@cache
def _named(name: str) -> Layout:
    return _read(name, _places()[name])


def layout_map(name: str | None, suite: str) -> ColumnMap:
    """Return a layout's map of a suite, an empty one without a layout."""
    return load_layout(name).of(suite) if name else NO_MAP


@cache
def _places() -> Mapping[str, Traversable]:
    bundled = files(__package__).joinpath("layouts")
    found: dict[str, Traversable] = {
        entry.name.removesuffix(SUFFIX): entry
        for entry in bundled.iterdir()
        if entry.name.endswith(SUFFIX)
    }
    for entry in entry_points(group=GROUP):
        if entry.name in found:
            raise UsageError(
                f"Two layouts are called {entry.name!r}: {found[entry.name]} and {entry.value}.",
                "Uninstall one of the packages that declare them.",
            )
        place = load_entry(entry, "layout")
        found[entry.name] = Path(place) if isinstance(place, str) else place
    return found


def _read(name: str, place: Traversable) -> Layout:
    try:
        if isinstance(place, Path):
            read = read_option_file(place, TEXT_BYTES)
        else:
            read = place.read_bytes()
        content = parse_toml(read, str(place))
    except OSError as error:
        raise UsageError(f"The layout {place} cannot be read: {error.strerror}.") from error
    title = content.pop("title", "")
    example = content.pop("example", None)
    if example is not None:
        try:
            example = load_json(example)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{place}: the example is not JSON.") from error
    chat = _chat(place, content.pop(_CHAT)) if _CHAT in content else None
    own = {key: content.pop(key) for key in _TABLES if key in content}
    maps = {suite: _map(place, suite, tables) for suite, tables in content.items()}
    if own:
        maps[""] = _map(place, "", own)
    if not isinstance(title, str) or not (maps or chat):
        raise UsageError(f"{place}: a layout has a title and tables chat, columns or values.")
    return Layout(name, title, maps, chat, example)


def _chat(place: Traversable, table: Any) -> ChatLayout:
    if not isinstance(table, Mapping):
        raise UsageError(f"{place}: {_CHAT} is {table!r}, expected a table.")
    kinds = {field.name: field.type for field in fields(ChatLayout)}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in kinds:
            raise UsageError(f"{place}: unknown key {key!r} of chat.", did_you_mean(key, kinds))
        read, expected = _KINDS[kinds[key]]
        found[key] = read(value)
        if found[key] is None:
            raise UsageError(f"{place}: {key} of chat is {value!r}, expected {expected}.")
    if "[]" in found.get("dialogues", ()):
        raise UsageError(
            f"{place}: dialogues of chat is '[]', expected a path before the brackets.",
            "Leave it out: the elements of a top-level array are dialogues if they have turns.",
        )
    chat = ChatLayout(**found)
    if not chat.turns and not chat.is_row_per_turn:
        raise UsageError(f"{place}: chat has no turns, nor is_row_per_turn = true.")
    if chat.alternate not in ("", *_BEGIN):
        raise UsageError(
            f"{place}: alternate is {chat.alternate!r}.", did_you_mean(chat.alternate, _BEGIN)
        )
    for _, meant in (*chat.said_by, *chat.beside):
        if meant not in ROLES:
            raise UsageError(f"{place}: there is no role {meant!r}.", did_you_mean(meant, ROLES))
    return chat


def _steps(value: Any) -> tuple[Paths, ...] | None:
    """Return what a path, or a list of paths and of lists of them, names."""
    steps = [value] if isinstance(value, str) else value
    found = [_paths(step) for step in steps] if isinstance(steps, list) else [None]
    return None if None in found else tuple(each for each in found if each is not None)


def _paths(value: Any) -> Paths | None:
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return None
    return tuple(paths)


def _words(value: Any) -> Words | None:
    is_table = isinstance(value, Mapping) and all(isinstance(v, str) for v in value.values())
    return tuple(value.items()) if is_table else None


_KINDS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    bool: (lambda value: value if isinstance(value, bool) else None, "true or false"),
    str: (lambda value: value if isinstance(value, str) else None, "a key"),
    Paths: (_paths, "a path, or a list of paths"),
    tuple[Paths, ...]: (_steps, "a path, or a list of paths"),
    Words: (_words, "a table of words"),
}
"""By the type of a field of `ChatLayout` what reads it, and what it is called."""


def layout_text(names: Sequence[str], *, as_file: bool = False) -> str:
    """List layouts with an example each, or as their files; all without names."""
    if as_file:
        for name in names:
            load_layout(name)  # refuses what is none
        files = (_places().get(name, Path(name)) for name in names or layout_names())
        return "\n\n".join(file.read_text("utf-8").rstrip() for file in files)
    blocks = []
    for name in names or layout_names():
        layout = load_layout(name)
        example = [] if layout.example is None else [f"  {dump_json(layout.example).decode()}"]
        blocks.append("\n".join([f"{name}: {layout.title}", *example]))
    return "\n\n".join(blocks)


def as_toml(title: str, columns: ColumnMap, suite: str) -> str:
    """Write a map as the text of a layout file: a chat, and the columns and values of a suite."""
    lines = [f"title = {dump_json(title).decode()}"]
    if columns.chat is not None:
        lines += ["", f"[{_CHAT}]", *_chat_lines(columns.chat)]
    if columns.columns:
        lines += ["", f"[{suite}.columns]"]
        lines += [f"{_toml(name)} = {_toml(path)}" for name, path in columns.columns]
    words: dict[str, list[str]] = {}
    for name, found, meant in columns.values:
        words.setdefault(name, []).append(f"{_toml(found)} = {_toml(meant)}")
    for name, of_column in words.items():
        lines += ["", f"[{suite}.values.{_toml(name)}]", *of_column]
    return "\n".join(lines) + "\n"


def _chat_lines(chat: ChatLayout) -> Iterator[str]:
    """Write the table of chats, key by key; the tables of words follow."""
    given = [each for each in fields(chat) if getattr(chat, each.name) != each.default]
    for field in sorted(given, key=lambda each: each.type == Words):
        if field.type != Words:
            yield f"{field.name} = {_toml(getattr(chat, field.name))}"
            continue
        yield from ("", f"[{_CHAT}.{field.name}]")
        words = getattr(chat, field.name)
        yield from (f"{_toml(found)} = {_toml(meant)}" for found, meant in words)


def _toml(value: Any) -> str:
    """Write texts and lists of texts; TOML writes them as JSON does."""
    return dump_json(list(value) if isinstance(value, tuple) else value).decode()


def _map(place: Traversable, suite: str, tables: Any) -> ColumnMap:
    if not isinstance(tables, Mapping):
        raise UsageError(f"{place}: {suite!r} is {tables!r}, expected a table of a suite.")
    for key, table in tables.items():
        if key not in _TABLES:
            raise UsageError(
                f"{place}: unknown table {key!r} of {suite!r}.", did_you_mean(key, _TABLES)
            )
        if not isinstance(table, Mapping):
            raise UsageError(f"{place}: {key} is {table!r}, expected a table.")
    try:
        found = column_map(tables.get("columns"), tables.get("values"))
        return replace(found, optional=frozenset(dict(found.columns)))
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}", error.hint) from error
