"""Other people's columns: where a suite's columns stand in their logs, and what their words mean.

A map changes nothing but the declarations of a `Source`: readers follow `Column.path` and
`Column.words`, whatever format the log has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from fastscore.errors import UsageError, nearest
from fastscore.suites.declarations import Column, Source

EACH = "[]."
"""Stands in a path between an array and what is found in each of its elements."""

LEFT_OUT = ""
"""What a word means that leaves out the object of an array in which it stands."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Where columns stand, and what their values mean.

    Parameters
    ----------
    columns
        Names of declared columns (``text``, or ``conversation[].text`` where it must be told from
        another) and the paths of their values: ``content``, ``meta.text``, ``turns[].content``.
    values
        Names of text columns, words as they are found, and words as the suite knows them; or
        `LEFT_OUT`.
    optional
        Names of columns that stand there only in some logs: others were asked for.
    """

    columns: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str, str], ...] = ()
    optional: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything stands elsewhere or is called otherwise."""
        return bool(self.columns or self.values)

    def __or__(self, other: "ColumnMap") -> "ColumnMap":
        """Return both maps; where they name the same, the other one's counts."""
        columns = dict(self.columns) | dict(other.columns)
        values = {(column, found): meant for column, found, meant in (*self.values, *other.values)}
        return ColumnMap(
            tuple(columns.items()),
            tuple((*key, to) for key, to in values.items()),
            (self.optional - dict(other.columns).keys()) | other.optional,
        )

    @property
    def signed(self) -> tuple[str, ...]:
        """What stands in a signature: nothing, where there is nothing."""
        columns = ",".join(f"{_plain(name)}={_plain(path)}" for name, path in self.columns)
        values = ",".join(":".join(map(_plain, value)) for value in self.values)
        named = {"columns": columns, "values": values}
        return tuple(f"{name}={text}" for name, text in named.items() if text)


NO_MAP = ColumnMap()
"""Every column stands where its suite declares it."""


def _plain(text: str) -> str:
    """Write a name so that it cannot be taken for what parts a signature."""
    return quote(text, safe="[]. ")


def column_map(
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
) -> ColumnMap:
    """Make a map of mappings, as they stand in Python and in TOML.

    Raises
    ------
    UsageError
        A path or a word that is no text.
    """
    for name, path in (columns or {}).items():
        if not isinstance(path, str):
            raise UsageError(f"The column {name!r} is mapped to {path!r}, expected a path.")
    words = []
    for name, meant in (values or {}).items():
        if not isinstance(meant, Mapping):
            raise UsageError(f"The values of {name!r} are {meant!r}, expected a table of words.")
        for found, word in meant.items():
            if not isinstance(word, str) or not isinstance(found, str):
                raise UsageError(f"The value {found!r} of {name!r} is {word!r}, expected a word.")
            words.append((name, found, word))
    return ColumnMap(tuple((columns or {}).items()), tuple(words))


def parse_map(columns: Sequence[str], values: Sequence[str]) -> ColumnMap:
    """Read ``NAME=PATH`` and ``COLUMN:FROM=TO``.

    Raises
    ------
    UsageError
        A text of another form.
    """
    paths = [_split_flag(text, "--column", "NAME=PATH, as in text=content") for text in columns]
    words = []
    for text in values:
        expected = "COLUMN:FROM=TO, as in speaker:user=USER"
        # a word may hold a colon or an equals sign, a column's name neither
        name, colon, rest = text.partition(":")
        found, equals, meant = rest.partition("=")
        if not (name and colon and equals):
            raise UsageError(f"--value is {text!r}, expected {expected}.")
        words.append((name, found, meant))
    return ColumnMap(tuple(paths), tuple(words))


def _split_flag(text: str, flag: str, expected: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise UsageError(f"{flag} is {text!r}, expected {expected}.")
    return name, path


def map_source(source: Source, columns: ColumnMap) -> Source:
    """Return a source whose columns are read where a map says.

    Raises
    ------
    UsageError
        A name that the source does not declare, or a path that cannot lead to the column.
    """
    for name, path in columns.columns:
        source = _read_from_path(source, name, path, is_asked_for=name not in columns.optional)
    for name, found, meant in columns.values:
        source = _map_word(source, name, found, meant)
    return source


def _short_names(source: Source) -> list[str]:
    """Return the names of columns and items."""
    items = (item.name for column in source.columns for item in column.items)
    return list(dict.fromkeys((*(column.name for column in source.columns), *items)))


def _targets(source: Source, name: str) -> Iterator[tuple[Column | None, Column]]:
    """Yield the columns of a name, each item with the column of its array."""
    array, each, item = name.partition(EACH)
    for column in source.columns:
        if not each and column.name == name:
            yield None, column
        for inner in column.items:
            if inner.name == (item or name) and (not each or column.name == array):
                yield column, inner


def _known_targets(source: Source, name: str) -> list[tuple[Column | None, Column]]:
    targets = list(_targets(source, name))
    if not targets:
        raise UsageError(
            f"There is no column {name!r} to map.", nearest(name, _short_names(source))
        )
    return targets


def _read_from_path(source: Source, name: str, path: str, *, is_asked_for: bool) -> Source:
    """Read the columns of a name from a path."""
    array, each, inner = path.partition(EACH)
    if not path or "[" in array or (each and (not array or not inner or "[" in inner)):
        raise UsageError(
            f"The column {name!r} is mapped to the path {path!r}.",
            "A path is a key, keys parted by dots, or one array and what each of its objects "
            "holds: content, meta.text, turns[].content.",
        )
    targets = _known_targets(source, name)
    if each and any(holder is not None for holder, _ in targets):
        # the elements of an array are those of the suite's own
        targets = [(holder, column) for holder, column in targets if holder is not None]
    for holder, column in targets:
        if holder is None:
            if each and name in source.dialogue_key:
                raise UsageError(
                    f"The column {name!r} names a whole dialogue, not each element of {array!r}.",
                    "Map it to a key beside the array.",
                )
            source = _with_column(source, replace(column, path=path, is_asked_for=is_asked_for))
            source = _of_rows(source, name, array) if each else source
        else:
            item = replace(column, path=inner if each else path, is_asked_for=is_asked_for)
            items = tuple(item if each_.name == item.name else each_ for each_ in holder.items)
            found = next(each_ for each_ in source.columns if each_.name == holder.name)
            moved = replace(found, items=items, path=array if each else found.path)
            source = _with_column(source, moved)
    return source


def _of_rows(source: Source, name: str, array: str) -> Source:
    """Take the elements of an array for rows."""
    if any(column.items for column in source.columns):
        lists = next(column.name for column in source.columns if column.items)
        raise UsageError(
            f"The column {name!r} is one of a whole line, not of each element of {array!r}.",
            f"The suite's own array is {lists!r}: --column {lists}={array}.",
        )
    if source.rows not in ("", array):
        raise UsageError(
            f"The column {name!r} is mapped into the array {array!r}, others into "
            f"{source.rows!r}; the rows of a log are the elements of one array."
        )
    return replace(source, rows=array, row_dialogues=source.formats)


def _map_word(source: Source, name: str, found: str, meant: str) -> Source:
    """Take a word of a column for another."""
    for holder, column in _known_targets(source, name):
        if column.kind != "text":
            raise UsageError(
                f"The column {name!r} holds no words: its kind is {column.kind}.",
                "Only words of text columns can be mapped.",
            )
        if meant == LEFT_OUT and holder is None:
            if name in {item.name for each in source.columns for item in each.items}:
                continue
            raise UsageError(
                f"The word {found!r} of {name!r} means nothing.",
                "Objects of an array can be left out, rows cannot.",
            )
        if meant != LEFT_OUT and not column.is_known(meant):
            raise UsageError(
                f"The word {found!r} of {name!r} means {meant!r}, which is none.",
                nearest(meant, filter(None, column.knows)),
            )
        words = (*((a, b) for a, b in column.words if a != found), (found, meant))
        column = replace(column, words=words)
        if holder is None:
            source = _with_column(source, column)
        else:
            items = tuple(column if each.name == column.name else each for each in holder.items)
            current = next(each for each in source.columns if each.name == holder.name)
            source = _with_column(source, replace(current, items=items))
    return source


def _with_column(source: Source, changed: Column) -> Source:
    columns = tuple(changed if each.name == changed.name else each for each in source.columns)
    return replace(source, columns=columns)
