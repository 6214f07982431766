"""Named layouts: column maps as TOML that anybody can add, by a file or an entry point.

A layout file has a ``title`` and the tables ``columns`` and ``values``, for any suite, or
``SUITE.columns`` and ``SUITE.values`` for one. A word that means the empty one leaves out the
object of an array that it stands in, as a system's message is no turn. The entry points of the
group ``fastscore.layouts`` are paths of such files.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError, nearest
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map
from fastscore.plugins import entry_points
from fastscore.toml_files import parse_toml

GROUP = "fastscore.layouts"
SUFFIX = ".toml"
_TABLES = ("columns", "values")


@dataclass(frozen=True, slots=True)
class Layout:
    """A named column map.

    Parameters
    ----------
    name
        Its name, or the path of its file.
    title
        What logs of that layout are, one line.
    maps
        The map of each suite, by name; of all others under the empty name, where it has one.
    """

    name: str
    title: str
    maps: Mapping[str, ColumnMap]

    def of(self, suite: str) -> ColumnMap:
        """Return the map of a suite.

        Raises
        ------
        UsageError
            The layout says nothing of this suite.
        """
        if suite not in self.maps and "" not in self.maps:
            raise UsageError(
                f"The layout {self.name!r} says nothing of {suite}.",
                "It is one of " + ", ".join(sorted(self.maps)) + "; map columns by --column.",
            )
        return self.maps.get("", NO_MAP) | self.maps.get(suite, NO_MAP)


def layout_names() -> tuple[str, ...]:
    """Return the names of the bundled and installed layouts, sorted."""
    return tuple(sorted(_places()))


def load_layout(name: str) -> Layout:
    """Read a layout by its name, or the file of one.

    Raises
    ------
    UsageError
        There is no such layout, or its file is none.
    """
    if name.endswith(SUFFIX) or os.sep in name:
        return _read(name, Path(name))
    places = _places()
    if name not in places:
        raise UsageError(
            f"There is no layout {name!r}.",
            nearest(name, places) + f" Or name a file that ends in {SUFFIX}.",
        )
    return _read(name, places[name])


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
        place = entry.load()
        found[entry.name] = Path(place) if isinstance(place, str) else place
    return found


def _read(name: str, place: Traversable) -> Layout:
    try:
        content = parse_toml(place.read_bytes(), str(place))
    except OSError as error:
        raise UsageError(f"The layout {place} cannot be read: {error.strerror}.") from error
    title = content.pop("title", "")
    own = {key: content.pop(key) for key in _TABLES if key in content}
    maps = {suite: _map(place, suite, tables) for suite, tables in content.items()}
    if own:
        maps[""] = _map(place, "", own)
    if not isinstance(title, str) or not maps:
        raise UsageError(f"{place}: a layout has a title and tables of columns or values.")
    return Layout(name, title, maps)


def _map(place: Traversable, suite: str, tables: Any) -> ColumnMap:
    if not isinstance(tables, Mapping):
        raise UsageError(f"{place}: {suite!r} is {tables!r}, expected a table of a suite.")
    for key, table in tables.items():
        if key not in _TABLES:
            raise UsageError(f"{place}: unknown table {key!r} of {suite!r}.", nearest(key, _TABLES))
        if not isinstance(table, Mapping):
            raise UsageError(f"{place}: {key} is {table!r}, expected a table.")
    try:
        found = column_map(tables.get("columns"), tables.get("values"))
        return replace(found, optional=frozenset(dict(found.columns)))
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}", error.hint) from error
