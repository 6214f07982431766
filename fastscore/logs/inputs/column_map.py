"""Other people's columns: where a suite's columns stand in their logs, and what their words mean.

A map changes nothing but the declarations of a `Source`: readers follow `Column.mapped`,
whatever format the log has.
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from fastscore.errors import InputError, UsageError, did_you_mean
from fastscore.suites.chats import (
    ANY_OTHER,
    ASSISTANT_ROLE,
    NOT_A_TURN,
    ROLES,
    USER_ROLE,
    ChatLayout,
    ChatRows,
)
from fastscore.suites.declarations import Chat, Column, Source

EACH = "[]."
"""In a path, between an array and what is found in each of its elements."""

LEFT_OUT = NOT_A_TURN
"""The meaning of a word that leaves out the object of an array in which it is found."""
_TEXT_KEYS = ("content", "parts")
"""Where the texts of turns are, if neither the suite's names nor a map leads to one."""
_CSV = "csv"
TURNS = "turns"
"""In a map, the array of turns; of a suite whose rows are turns, too."""
REPLY = "reply"
"""In a map, the place of the assistant's last turn, if the other turns are elsewhere."""
_READ_BY_PATHS = ("id", "model", "condition", "turns", "speaker", "text", "roles")
"""What columns at paths read of a `ChatLayout`."""
_NOT_READ = ("needs", "ignored")
"""What only tells whether a log is in a layout."""
CHAT_OPTIONS = ("alternate", "sort_by", "dialogue", "without")
"""Options of any chats: who begins, what sorts turns, what names dialogues, tags left out."""
ORDER = "order:"
"""The column of what sorts rows of one dialogue. No suite declares such a name."""
NOWHERE = "\0"
"""The path of a dialogue's name that is in no row: the file is the dialogue."""


class Flag(NamedTuple):
    """An option that maps something: its name and its words.

    These are a layout; a column and its path; a column, a word of it and what that means; or the
    value of an option.
    """

    option: Literal["layout", "column", "value", "alternate", "sort_by", "dialogue", "without"]
    words: tuple[str, ...]

    @property
    def typed(self) -> tuple[str, str]:
        """The option of the command line and its value."""
        *columns, last = self.words
        value = "=".join((":".join(columns), last)) if columns else last
        return f"--{self.option.replace('_', '-')}", value


def layout_flag(name: str) -> Flag:
    """Return the option that names a layout."""
    return Flag("layout", (name,))


def column_flag(name: str, path: str) -> Flag:
    """Return the option that maps a column to a path."""
    return Flag("column", (name, path))


def value_flag(name: str, found: str, meant: str) -> Flag:
    """Return the option that maps a value of a column."""
    return Flag("value", (name, found, meant))


def typed(flags: Iterable[Flag]) -> str:
    """Write options as they are typed in a shell."""
    return " ".join(shlex.join(flag.typed) for flag in flags)


EXAMPLE = "EXAMPLE"
"""In a question, the options that read a log if it is as the question supposes."""
WHO_IS_WHO = f"Say who is who, in this way or the other way round, for example {EXAMPLE}."


class UnmappedLogError(InputError):
    """A log that a suite may read if its columns or values are mapped.

    The hint says to type the flags, which probably map it in part or in full, and ``more``. Without
    flags it is ``unless``, a question with an ``example`` of what may be typed. ``keys`` are those
    of the first rows of each file that was looked at.
    """

    keys: Sequence[frozenset[str]] = ()

    def __init__(
        self,
        message: str,
        flags: Sequence[Flag],
        *,
        unless: str = "",
        example: Sequence[Flag] = (),
        more: str = "",
    ) -> None:
        question = unless.replace(EXAMPLE, typed(example))
        super().__init__(message, f"Type {typed(flags)}.{more}" if flags else question)
        self.flags, self.example = tuple(flags), tuple(example)
        self.unless, self.more = unless, more


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Where columns stand, and what their values mean.

    ``columns`` are names of declared columns (``text``, or ``conversation[].text`` where it must be
    told from another) and paths of their values: ``content``, ``turns[].content``. ``values`` are
    names of text columns, words as they are found and as the suite knows them; or `LEFT_OUT`.
    ``optional`` columns are there only in some logs, others were asked for. ``chat`` says where the
    parts of chats are, which columns, values and ``chat_options`` edit: its fields by name.
    """

    columns: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str, str], ...] = ()
    optional: frozenset[str] = frozenset()
    chat: ChatLayout | None = None
    chat_options: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Whether anything stands elsewhere or is called otherwise."""
        return bool(self.columns or self.values or self.chat or self.chat_options)

    def __or__(self, other: "ColumnMap") -> "ColumnMap":
        """Return both maps; where they name the same, the other one's counts."""
        columns = dict(self.columns) | dict(other.columns)
        values = {(column, found): meant for column, found, meant in (*self.values, *other.values)}
        return ColumnMap(
            tuple(columns.items()),
            tuple((*key, to) for key, to in values.items()),
            (self.optional - dict(other.columns).keys()) | other.optional,
            other.chat or self.chat,
            tuple((dict(self.chat_options) | dict(other.chat_options)).items()),
        )

    @property
    def signed(self) -> tuple[str, ...]:
        """The parts of a signature, in an order of their own: that of options changes no number."""
        columns = ",".join(f"{_plain(name)}={_plain(path)}" for name, path in sorted(self.columns))
        values = ",".join(":".join(map(_plain, value)) for value in sorted(self.values))
        options = ",".join(f"{name}={_plain(value)}" for name, value in sorted(self.chat_options))
        named = {"layout": _digest(self.chat), "columns": columns, "values": values}
        named |= {"chat": options}
        return tuple(f"{name}={text}" for name, text in named.items() if text)


NO_MAP = ColumnMap()
"""Every column stands where its suite declares it."""


def _digest(chat: ChatLayout | None) -> str:
    if chat is None:
        return ""
    read = {key: each for key, each in asdict(chat).items() if key not in _NOT_READ}
    content = json.dumps(read, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def stored_map(columns: ColumnMap) -> dict[str, Any]:
    """Return a map as JSON can be made of it."""
    return asdict(columns) | {"optional": sorted(columns.optional)}


def map_from(stored: Mapping[str, Any]) -> ColumnMap:
    """Return the map that JSON was made of."""
    parts = {name: _as_tuples(value) for name, value in stored.items()}
    chat = stored["chat"] and {name: _as_tuples(value) for name, value in stored["chat"].items()}
    parts |= {"optional": frozenset(stored["optional"]), "chat": chat and ChatLayout(**chat)}
    return ColumnMap(**parts)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


def _plain(text: str) -> str:
    """Write a name so that it cannot be taken for what parts a signature."""
    return quote(text, safe="[]. ")


def column_map(
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
) -> ColumnMap:
    """Make a map of mappings, as given in Python and in TOML."""
    for name in (*(columns or {}), *(values or {})):
        if not isinstance(name, str):
            raise UsageError(f"The name of a column is {name!r}, expected text.")
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


def requested_map(request: Any) -> ColumnMap:
    """Return the map that a request's columns, values and options of chats make."""
    given = ((name, getattr(request, name)) for name in CHAT_OPTIONS)
    options = tuple((name, value) for name, value in given if value is not None)
    return replace(column_map(request.columns, request.values), chat_options=options)


def parse_map(columns: Sequence[str], values: Sequence[str]) -> ColumnMap:
    """Read ``NAME=PATH`` and ``COLUMN:FROM=TO``."""
    paths, words = [], []
    for text in columns:
        name, equals, path = text.partition("=")
        if not (name and equals):
            raise UsageError(f"columns is {text!r}, expected NAME=PATH, as in text=content.")
        paths.append((name, path))
    for text in values:
        # a word may hold a colon or an equals sign, a column's name neither
        name, colon, rest = text.partition(":")
        found, equals, meant = rest.partition("=")
        if not (name and colon and equals):
            expected = "COLUMN:FROM=TO, as in speaker:user=USER"
            raise UsageError(f"values is {text!r}, expected {expected}.")
        words.append((name, found, meant))
    return ColumnMap(tuple(paths), tuple(words))


def map_of(flags: Sequence[Flag]) -> ColumnMap:
    """Return the map of columns and values that options make."""
    columns = [flag.words for flag in flags if flag.option == "column"]
    values = [flag.words for flag in flags if flag.option == "value"]
    options = {flag.option: flag.words[0] for flag in flags if flag.option in CHAT_OPTIONS}
    return ColumnMap(
        tuple((name, path) for name, path in columns),
        tuple((name, found, meant) for name, found, meant in values),
        chat_options=tuple(options.items()),
    )


_DIALOGUE_KEYS = ("session_id", "conversation_id", "dialogue_id", "dialog_id", "id")
"""What names the dialogue of a document, whatever its suite calls it, unless a layout says so."""


def _parts_of_chats(source: Source) -> dict[str, str]:
    """Return the suite's columns for the parts of chats, by the names that all suites share."""
    rows = source.chat_rows
    if rows is None:
        return {"id": source.dialogue_key[0]} if source.dialogue_key else {}
    names = {"id": rows.id, TURNS: rows.array or TURNS, "speaker": rows.speaker, "text": rows.text}
    names |= {"model": rows.model, "condition": rows.condition}
    return {name: own for name, own in names.items() if own}


def _in_own_words(columns: ColumnMap, source: Source) -> ColumnMap:
    """Return a map with the suite's names for parts of chats, and its words for roles."""
    own, parts = _short_names(source), _parts_of_chats(source)
    names = {name: column for name, column in parts.items() if name not in own}

    def renamed(name: str) -> str:
        array, each, item = name.rpartition(EACH)
        return f"{names.get(array, array)}{each}{names.get(item, item)}"

    values = [(renamed(name), found, meant) for name, found, meant in columns.values]
    rows = source.chat_rows
    if rows is not None:
        words = dict(rows.words)
        if rows.array:
            words = dict.fromkeys(ROLES, LEFT_OUT) | words
        values = [
            (name, found, words.get(meant, meant) if name == rows.speaker else meant)
            for name, found, meant in values
        ]
    return replace(
        columns,
        columns=tuple((renamed(name), path) for name, path in columns.columns),
        values=tuple(values),
        optional=frozenset(map(renamed, columns.optional)),
    )


def in_shared_words(flags: Iterable[Flag], source: Source) -> tuple[Flag, ...]:
    """Return options in the names and roles that all suites share, as far as they map chats."""
    rows = source.chat_rows
    if rows is None:
        return tuple(flags)
    names = {own: name for name, own in _parts_of_chats(source).items()}
    roles = {word: role for role, word in rows.words}
    shared: dict[Flag, None] = {}
    for flag in flags:
        name, *words = flag.words
        array, each, inner = words[-1].rpartition(EACH) if words else ("", "", "")
        if flag.option == "value" and name == rows.speaker:
            words[-1] = roles.get(words[-1], words[-1])
        elif flag.option == "column" and name in (rows.speaker, rows.text) and each:
            shared[column_flag(TURNS, array)] = None
            words[-1] = inner
        is_named = flag.option in ("column", "value")
        shared[flag._replace(words=(names.get(name, name) if is_named else name, *words))] = None
    return tuple(shared)


def map_source(source: Source, columns: ColumnMap) -> Source:
    """Return a source whose columns are read where a map says."""
    columns = _in_own_words(columns, source)
    options = dict(columns.chat_options)
    if options.keys() == {"dialogue"} and source.chat_rows is None:
        if not source.dialogue_key:
            raise UsageError(
                f"dialogue is {options['dialogue']!r}, and each row of this suite is a dialogue.",
                "Leave it out.",
            )
        columns |= ColumnMap(((source.dialogue_key[0], options.pop("dialogue")),))
    chat = columns.chat or _moved_layout(source, columns)
    asked = {name for name, path in columns.columns if path and name not in columns.optional}
    source = replace(source, asked_for=frozenset(asked))
    rows = source.chat_rows
    if chat is None:
        mapped = _map_columns(source, columns)
        if rows is None or rows.model not in asked:
            return mapped
        return _of_models(mapped, rows, is_turn=True)
    if rows is None:
        raise UsageError(
            "The layout describes chats, and the suite does not score chats.",
            "`fastscore inspect` names suites that do. For other keys of its own rows: "
            "`--column NAME=PATH`.",
        )
    chat, others = _edited(_with_options(chat, options), rows, columns)
    if chat.alternate and chat.is_row_per_turn:
        raise UsageError(
            f"alternate is {chat.alternate!r}, but each row is a turn: only turns in an array "
            "alternate.",
            "Name the key of the speaker (`--column speaker=KEY`), or add it to the rows.",
        )
    if not chat.id and not chat.is_row_per_turn:
        names = tuple(name for name in _DIALOGUE_KEYS if name != rows.id)
        source = _with_column(source, replace(source.column(rows.id), aliases=names))
        chat = chat if _is_plain(chat, rows) else replace(chat, id=((rows.id, *names),))
    native = _map_columns(source, _inside(others, rows))
    if chat.is_row_per_turn and rows.can_be_turns:
        beside = tuple(each for each in native.columns if each.name != rows.array)
        native = replace(
            native,
            columns=(*beside, *native.column(rows.array).items),
            dialogue_key=(rows.id,),
            row_dialogues=(),
            array_column=None,
            chat_rows=None,
        )
    elif chat.joined_by:
        native = _of_several(native, rows)
    if chat.sort_by and (chat.is_row_per_turn or chat.joined_by):
        native = replace(native, columns=(*native.columns, Column(name=ORDER, kind="json")))
    is_plain = _is_plain(chat, rows)
    source = replace(source, formats=tuple(dict.fromkeys((*source.formats, _CSV))))
    if is_plain:
        mapped = _map_columns(source, _compiled(chat, rows) | others)
    else:
        mapped = _shown(source, chat, rows, others)
    mapped = _of_models(mapped, rows, is_turn=chat.is_row_per_turn)
    return replace(mapped, chat=_chat(chat, rows, native, is_plain=is_plain))


def _chat(layout: ChatLayout, rows: ChatRows, native: Source, *, is_plain: bool) -> Chat:
    """Return how chats are read, with what is looked up for each turn."""
    if layout.is_row_per_turn:
        inside, outside = [each for each in native.columns if each.name != rows.id], []
    else:
        of_turn = (rows.array,) if rows.array else rows.of_turn
        inside = [each for each in native.columns if each.name in of_turn]
        outside = [each for each in native.columns if each.name not in of_turn]
        inside = list(inside[0].items) if rows.array else inside
    own = (rows.speaker, rows.text)
    inside, outside = ([c for c in columns if c.name not in own] for columns in (inside, outside))
    return Chat(
        layout=layout,
        rows=rows,
        native=native,
        is_plain=is_plain,
        words=role_words(layout, rows),
        kept_beside=_heads(outside),
        kept_of_turn=_heads(inside),
        json_of_turn=tuple(key for c in inside if c.kind == "json" for key in c.keys),
    )


def _heads(columns: Sequence[Column]) -> frozenset[str]:
    """Return the keys of columns, and the first parts of those that are paths."""
    keys = {key for column in columns for key in column.keys}
    return frozenset(keys | {key.partition(".")[0] for key in keys})


def _of_models(source: Source, rows: ChatRows, *, is_turn: bool) -> Source:
    """Return a source whose rows are of one dialogue only if they are of one model, too."""
    if rows.array or not rows.model:
        return source
    # a row that is a turn may leave its model out, so that the key cannot have it
    key = () if is_turn else (rows.model,)
    return replace(
        source,
        dialogue_key=(*source.dialogue_key, *key),
        variants=(*source.variants, ("model", rows.model)),
    )


def edited_layout(columns: ColumnMap, rows: ChatRows) -> ChatLayout:
    """Return the layout of a map that has one, edited by the map's columns and options."""
    chat = _with_options(columns.chat or ChatLayout(), dict(columns.chat_options))
    return _edited(chat, rows, columns)[0]


def _with_options(chat: ChatLayout, options: Mapping[str, str]) -> ChatLayout:
    changed: dict[str, Any] = dict(options)
    if "dialogue" in options:
        name = changed.pop("dialogue")
        changed |= {"id": ((name,),), "joined_by": (name,)}
    if "without" in options:
        changed["without"] = (*chat.without, *options["without"].split(","))
    return replace(chat, **changed)


def _of_several(source: Source, rows: ChatRows) -> Source:
    key = (rows.id, *(name for name in source.dialogue_key if name != rows.id))
    return replace(source, dialogue_key=key, row_dialogues=())


def _map_columns(source: Source, columns: ColumnMap) -> Source:
    for name, path in columns.columns:
        source = _read_from_path(source, name, path)
    for name, found, meant in columns.values:
        source = _map_word(source, name, found, meant)
    return source


def _short_names(source: Source) -> list[str]:
    items = [item for column in source.columns for item in column.items]
    return list(dict.fromkeys(column.name for column in (*source.columns, *items)))


def _known_targets(source: Source, name: str) -> list[tuple[Column | None, Column]]:
    """Return the columns of a name, each item with the column of its array."""
    array, each, item = name.partition(EACH)
    targets: list[tuple[Column | None, Column]] = []
    for column in source.columns:
        if not each and column.name == name:
            targets.append((None, column))
        if not each or column.name == array:
            found = (inner for inner in column.items if inner.name == (item or name))
            targets += [(column, inner) for inner in found]
    if not targets:
        known = [*_short_names(source), *([] if source.chat_rows is None else [REPLY])]
        raise UsageError(f"There is no column {name!r} to map.", did_you_mean(name, known))
    return targets


def _read_from_path(source: Source, name: str, path: str) -> Source:
    of_chats = () if source.chat_rows is None else (source.chat_rows.id,)
    if not path and name in (*source.dialogue_key[:1], *of_chats):
        return _with_column(source, _moved(source.column(name), NOWHERE))
    array, each, inner = _checked_path(name, path)
    targets = _known_targets(source, name)
    if each and any(holder is not None for holder, _ in targets):
        # the elements of an array are those of the suite's own
        targets = [(holder, column) for holder, column in targets if holder is not None]
    for holder, column in targets:
        if holder is None:
            if each and name in source.dialogue_key:
                raise _beside_array(name, array, "")
            source = _with_column(source, _moved(column, path))
            source = _of_rows(source, name, array) if each else source
        else:
            source = _with_column(source, _moved(column, inner if each else path), holder)
            if each:
                source = _with_column(source, _moved(source.column(holder.name), array))
    return source


def _moved(column: Column, path: str, *others: str) -> Column:
    return replace(column.remapped(path=path), aliases=others)


def _checked_path(name: str, path: str) -> tuple[str, str, str]:
    """Return the array of a path, what separates it from the rest, and the rest."""
    array, each, inner = path.partition(EACH)
    if not path or "[" in array or (each and (not array or not inner or "[" in inner)):
        raise UsageError(
            f"The column {name!r} is mapped to the path {path!r}.",
            "A path is a key, keys joined by dots, or one array and a key of its objects: "
            "content, meta.text, turns[].content.",
        )
    return array, each, inner


def _of_rows(source: Source, name: str, array: str) -> Source:
    if any(column.items for column in source.columns):
        own = next(column.name for column in source.columns if column.items)
        raise _beside_array(name, array, own)
    if source.rows not in ("", array):
        raise _of_two_arrays(name, array, source.rows)
    return replace(source, rows=array, row_dialogues=source.formats)


def _beside_array(name: str, array: str, own: str) -> UsageError:
    if not own:
        return UsageError(
            f"The column {name!r} names a whole dialogue, not each element of {array!r}.",
            "Map it to a key beside the array.",
        )
    return UsageError(
        f"The column {name!r} is one of a whole line, not of each element of {array!r}.",
        f"The suite's own array is {own!r}: {typed([column_flag(own, array)])}.",
    )


def _of_two_arrays(name: str, array: str, other: str) -> UsageError:
    return UsageError(
        f"The column {name!r} is mapped into the array {array!r}, others into {other!r}; the rows "
        "of a log are the elements of one array."
    )


def _map_word(source: Source, name: str, found: str, meant: str) -> Source:
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
        if meant != LEFT_OUT and not column.vocabulary.includes(meant):
            raise UsageError(
                f"The word {found!r} of {name!r} means {meant!r}, which is none.",
                did_you_mean(meant, filter(None, column.vocabulary.known)),
            )
        words = (*((a, b) for a, b in column.mapped.words if a != found), (found, meant))
        source = _with_column(source, column.remapped(words=words), holder)
    return source


def _with_column(source: Source, changed: Column, holder: Column | None = None) -> Source:
    if holder is not None:
        array = source.column(holder.name)
        items = tuple(changed if each.name == changed.name else each for each in array.items)
        changed = replace(array, items=items)
    columns = tuple(changed if each.name == changed.name else each for each in source.columns)
    return replace(source, columns=columns)


def own_layout(source: Source, *, in_array: bool = False) -> ChatLayout | None:
    """Return the layout of a suite's own chats; None of a suite that does not score chats."""
    rows = source.chat_rows
    if rows is None:
        return None
    items = source.column(rows.array).items if rows.array else source.columns
    speaker, text = (
        next(item for item in items if item.name == name) for name in (rows.speaker, rows.text)
    )
    is_told = ("model", rows.model) in source.variants
    # a suite knows its own words; without any, these are the roles themselves
    words = () if speaker.vocabulary.known else rows.words
    roles = [(word, role) for role, own in words for word in (role, own)]
    return ChatLayout(
        turns=((rows.array,),) if rows.array else (),
        is_row_per_turn=not rows.array and not in_array,
        id=() if in_array else (source.column(rows.id).keys,),
        model=() if rows.array or not is_told else source.column(rows.model).keys,
        speaker=speaker.keys,
        roles=(*roles, *speaker.mapped.words),
        text=(*text.keys, *(key for key in _TEXT_KEYS if key not in text.keys)),
    )


def _moved_layout(source: Source, columns: ColumnMap) -> ChatLayout | None:
    """Return the layout of a suite's own chats, if a map moves their turns or parts of them."""
    rows = source.chat_rows
    if rows is None:
        return None
    paths = dict(columns.columns)
    moved = {rows.array, rows.speaker, rows.text} if rows.can_be_turns else {rows.array}
    moved |= {REPLY}
    in_array = TURNS in paths or any(EACH in path for path in paths.values())
    is_moved = in_array or {name.rpartition(EACH)[2] for name in paths} & (moved - {""})
    if not (is_moved or columns.chat_options):
        return None
    own = own_layout(source, in_array=in_array)
    return own and (replace(own, id=()) if rows.array else own)


def _edited(chat: ChatLayout, rows: ChatRows, columns: ColumnMap) -> tuple[ChatLayout, ColumnMap]:
    """Edit a layout by a map; return it with the columns and values that are no parts of chats."""
    steps = {rows.array or TURNS: "turns", rows.id: "id"}
    parts = {rows.speaker: "speaker", rows.text: "text"}
    labels = {rows.model: "model", rows.condition: "condition"}
    others = []
    turns = reply = ""
    moved: dict[str, Any] = {}
    for full_name, full_path in columns.columns:
        if full_name == REPLY:
            reply = full_path
            continue
        if full_name == rows.id and not full_path:
            moved["id"] = ((NOWHERE,),)
            continue
        array, each, path = _checked_path(full_name, full_path)
        name = full_name.rpartition(EACH)[2]
        if each and (name == rows.id or name in labels):
            raise _beside_array(name, array, rows.array)
        if each and turns not in ("", array):
            raise _of_two_arrays(name, array, turns)
        if each:
            turns = array
            moved |= {"turns": ((array,),), "is_row_per_turn": False}
        path = path if each else full_path
        if name in steps:
            moved[steps[name]] = ((path,),)
        elif name in parts | labels:
            moved[(parts | labels)[name]] = (path,)
        else:
            others.append((full_name, full_path))
    own = {meant: role for role, meant in rows.words}
    if "speaker" in moved:
        moved["is_keyed_by_speaker"] = False
    words = {
        found: own.get(meant, meant)
        for name, found, meant in columns.values
        if name == rows.speaker
    }
    turned = moved.get("turns", ((reply,),) if reply else ())
    if turned and moved.get("is_row_per_turn", chat.is_row_per_turn):
        raise UsageError(
            f"Each row is a turn by the layout, and turns are mapped to {turned[0][0]!r}.",
            "Leave out the layout, or the column.",
        )
    chat = replace(chat, **moved, roles=tuple((dict(chat.roles) | words).items()))
    if reply:
        said_by = (*chat.said_by, (reply, ASSISTANT_ROLE))
        chat = replace(chat, turns=(*chat.turns, (reply,)), said_by=said_by)
    values = tuple(value for value in columns.values if value[0] != rows.speaker)
    return chat, replace(columns, columns=tuple(others), values=values, chat=None)


def _inside(columns: ColumnMap, rows: ChatRows) -> ColumnMap:
    """Return a map whose paths begin at a turn, if each turn is a row."""
    if rows.array:
        return columns
    inner = tuple((name, path.rpartition(EACH)[2]) for name, path in columns.columns)
    return replace(columns, columns=inner)


def _is_plain(chat: ChatLayout, rows: ChatRows) -> bool:
    """Tell whether columns at paths read all of a layout, if all texts are strings."""
    compiled = {name: getattr(chat, name) for name in (*_READ_BY_PATHS, *_NOT_READ)}
    words = dict(chat.roles)
    return (
        chat == ChatLayout(**compiled)
        and [len(paths) for paths in chat.turns] == [1]
        and len(chat.id) <= 1
        and all(len(paths) <= 1 for paths in (*chat.id, chat.model, chat.condition))
        and bool(chat.speaker and chat.text)
        and all(map(_is_short, (*chat.turns[0], *chat.speaker, *chat.text)))
        and ANY_OTHER not in words
        and (bool(rows.array) or NOT_A_TURN not in words.values())
    )


def _is_short(path: str) -> bool:
    """Tell whether a path is a key, or a key in an object: a longer one may have keys with dots."""
    parts = path.split(".")
    return bool(path) and len(parts) <= 2 and not any(part.isdigit() for part in parts)


def _compiled(chat: ChatLayout, rows: ChatRows) -> ColumnMap:
    """Write a plain layout as columns at paths, and words."""
    array = chat.turns[0][0]
    inner = {rows.speaker: chat.speaker[0], rows.text: chat.text[0]}
    if rows.array:
        paths = {rows.array: array} | {f"{rows.array}{EACH}{k}": v for k, v in inner.items()}
    else:
        inner |= {name: name for name in rows.of_turn}
        paths = {name: f"{array}{EACH}{path}" for name, path in inner.items()}
    labels = ((rows.id, chat.id[0] if chat.id else ()), (rows.model, chat.model))
    for name, where in (*labels, (rows.condition, chat.condition)):
        if name and where:
            paths[name] = where[0]
    words = role_words(chat, rows)
    return ColumnMap(
        tuple(paths.items()),
        tuple((rows.speaker, found, meant) for found, meant in words.items()),
    )


def role_words(chat: ChatLayout, rows: ChatRows) -> dict[str, str]:
    """Return the suite's words for the words of speakers that a layout knows."""
    known = dict.fromkeys(ROLES, NOT_A_TURN) | dict(rows.words)
    own = {role: role for role in (USER_ROLE, ASSISTANT_ROLE)}
    return {word: known.get(meant, meant) for word, meant in (own | dict(chat.roles)).items()}


def _shown(source: Source, chat: ChatLayout, rows: ChatRows, others: ColumnMap) -> Source:
    """Return the source that messages describe: its columns have the paths of the layout."""
    paths = {rows.speaker: chat.speaker, rows.text: chat.text, rows.model: chat.model}
    paths |= {rows.condition: chat.condition}
    if chat.turns:
        paths |= {rows.array: tuple(filter(None, chat.turns[0]))}
    if len(chat.id) == 1:
        paths |= {rows.id: chat.id[0]}
    source = _map_columns(source, _inside(others, rows))
    columns = tuple(_at_paths(column, paths) for column in source.columns)
    source = replace(source, columns=columns)
    if not rows.array and not chat.is_row_per_turn and not chat.joined_by:
        source = replace(source, row_dialogues=source.formats)
    if chat.joined_by and not chat.is_row_per_turn:
        source = _of_several(source, rows)
    if not (chat.is_row_per_turn and rows.can_be_turns):
        return source
    return replace(source, dialogue_key=(rows.id,), row_dialogues=())


def _at_paths(column: Column, paths: Mapping[str, tuple[str, ...]]) -> Column:
    items = tuple(_at_paths(item, paths) for item in column.items)
    column = replace(column, items=items)
    found = paths.get(column.name)
    return _moved(column, *found) if found else column
