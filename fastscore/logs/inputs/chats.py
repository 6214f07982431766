"""The engine of layouts: other people's documents become the rows that a suite declares.

How to propose a layout for a file, try it and print it:

>>> source = map_source(suite.source, layout_map("openai", suite.name))  # doctest: +SKIP
>>> rows = [row for record in records(file) for row in chat_rows(record, source.chat, "file:1")]
...     # doctest: +SKIP

`suggestions.fitting_layout` finds the best layout that fits a file. A suite's own reader takes
records under a layout by `ScoreInput(rows=...)` with the mapped source. `layout.as_toml` writes a
layout, to be kept and edited.

Simple layouts (an array of turns, texts that are strings) are not read here but compiled to paths
(`column_map`). Only arrays that need more pass through `plain_turns`. All other documents pass
through `chat_rows`, one by one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastscore.logs.inputs.column_map import role_words
from fastscore.logs.inputs.document_values import (
    dump_json,
    first_at,
    json_of,
    load_json,
    text_of,
    value_at,
)
from fastscore.logs.inputs.found_keys import speaker_key
from fastscore.suites.chats import ANY_OTHER, ASSISTANT_ROLE, NOT_A_TURN, USER_ROLE, ChatLayout
from fastscore.suites.declarations import Chat, Column, Source

_ALL = "*"
BARE = ""
"""The key of an array that is a document by itself."""
_EACH = "[]"
_PAIR = 2
_ARRAYS = ("[{", "[[", "[(")
"""How a text begins that spells an array of turns, as JSON or in another way."""
_OTHER = {USER_ROLE: ASSISTANT_ROLE, ASSISTANT_ROLE: USER_ROLE}

Json = dict[str, Any]
_MOST_TABLES = 64
_TABLES: "dict[int, tuple[Chat, Mapping[str, str], KeptKeys]]" = {}
"""By the identity of a chat, which is kept so that no other has it."""


@dataclass(slots=True)
class Turn:
    """A turn of a dialogue.

    Parameters
    ----------
    role
        The word for the speaker, as found or a role; None if nothing says who speaks.
    text
        What is said; None without a text. A value that is no text stays what it is.
    found
        The turn as it was found, if that is an object.
    """

    role: Any
    text: Any
    found: Json


def chat_rows(document: Any, chat: Chat, name: str) -> list[Any]:
    """Return the rows of a document, in the suite's own columns.

    Parameters
    ----------
    document
        What a line, or an element of a JSON document, contains.
    chat
        How it is read.
    name
        What names a dialogue that has no name of its own, if it needs one.

    Returns
    -------
    list
        One row for each dialogue or turn. A document that is neither an object nor an array is
        returned as it is: readers reject it.
    """
    if not isinstance(document, dict | list):
        return [document]
    if chat.layout.is_row_per_turn:
        return _turn_rows(document, chat)
    if isinstance(document, list) and _are_dialogues(document, chat.layout):
        return [
            row
            for number, each in enumerate(document, 1)
            for row in chat_rows(each, chat, f"{name}:{number}")
        ]
    if isinstance(document, list) and not _are_turns(document, chat.layout):
        return _rows_of({}, None, chat) if document else []
    found = list(_dialogues(document, chat.layout))
    rows: list[Any] = []
    for number, (key, dialogue) in enumerate(found, 1):
        own = f"{name}:{number}" if len(found) > 1 else name
        # a dialogue of a row needs no name, unless several share the row
        fallback = own if chat.native.dialogue_key or len(found) > 1 else None
        beside = _beside(dialogue, document, key, chat, fallback)
        for suffix, turns in _threads(dialogue, chat.layout):
            named = dict(beside)
            if suffix and named.get(chat.rows.id) is not None:
                named[chat.rows.id] = f"{named[chat.rows.id]}:{suffix}"
            rows += _rows_of(named, turns, chat)
    return rows


def _rows_of(beside: Json, turns: list[Turn] | None, chat: Chat) -> list[Any]:
    """Write one dialogue as rows; without turns as one that is rejected."""
    array = chat.rows.array
    if turns is None:
        if array and chat.native.column(array).needed_by:
            return [beside]
        # readers reject a value that is not an object
        return [f"a document without turns at {' or '.join(map('/'.join, chat.layout.turns))}"]
    written = [row for turn in turns for row in _written(turn, chat)]
    if chat.rows.user_begins:
        written = _from_user(written, chat)
    if chat.rows.array:
        return [beside | {chat.rows.array: written}]
    return [beside | row if isinstance(row, dict) else row for row in written]


def _from_user(written: list[Any], chat: Chat) -> list[Any]:
    """Leave out what the other side says before the user."""
    rows = chat.rows
    other = dict(rows.words).get(ASSISTANT_ROLE)
    for place, turn in enumerate(written):
        if not isinstance(turn, dict) or turn.get(rows.speaker) != other:
            return written[place:]
    return written


def _turn_rows(document: Any, chat: Chat) -> list[Json]:
    """Return the row of a turn."""
    if isinstance(document, list):
        return [row for each in document for row in chat_rows(each, chat, "")]
    turn = _turn(document, chat.layout, None)
    beside = _beside(document, document, None, chat, None)
    return [beside | row if isinstance(row, dict) else row for row in _written(turn, chat)]


def plain_turns(text: str, chat: Chat) -> str | None:
    """Write an array of turns anew, in its own keys but with plain texts; None if it is none."""
    try:
        found = load_json(text)
    except ValueError:
        return None
    found = json_of(found)
    turns = None if isinstance(found, str) else _listed_turns(found, chat.layout, None)
    if turns is None:
        return None
    speaker, said = chat.layout.speaker[0], chat.layout.text[0]
    written = []
    for turn in _with_roles(turns, chat.layout):
        if _is_no_turn(turn, chat):
            continue
        row = dict(turn.found)
        _put(row, speaker, turn.role if turn.role is None else str(turn.role))
        _put(row, said, turn.text)
        written.append(row)
    return dump_json(written).decode()


def _put(row: Json, path: str, value: Any) -> None:
    """Set the value at a path, with the objects on the way copied or made."""
    head, dot, rest = path.partition(".")
    if path in row or not dot:
        row[path] = value
        return
    inside = row.get(head)
    row[head] = inside = dict(inside) if isinstance(inside, dict) else {}
    _put(inside, rest, value)


def _dialogues(document: Any, layout: ChatLayout) -> Iterator[tuple[str | None, Any]]:
    """Yield the dialogues of a document, each with the key that it has there."""
    for place in layout.dialogues:
        found = list(_dialogues_at(document, place, layout))
        if found:
            yield from found
            return
    yield None, document


def _dialogues_at(
    document: Any, place: str, layout: ChatLayout
) -> Iterator[tuple[str | None, Any]]:
    """Yield the dialogues at a place; in an array all elements, if one of them has turns."""
    found = list(_at_place(document, place))
    if not place.endswith(_ALL):
        has_turns = any(_has_turns(dialogue, layout) for _, dialogue in found)
        yield from found if has_turns else ()
        return
    # beside the dialogues there may be what is none; arrays are dialogues if there is nothing else
    are_arrays = len(found) > 1 and all(
        isinstance(dialogue, list) and _are_turns(dialogue, layout) for _, dialogue in found
    )
    for key, dialogue in found:
        if are_arrays or (isinstance(dialogue, dict) and _has_turns(dialogue, layout)):
            yield key, dialogue


def _at_place(document: Any, place: str) -> Iterator[tuple[str | None, Any]]:
    """Yield what is at a place of dialogues."""
    if place.endswith(_ALL):
        inside = value_at(document, place.removesuffix(_ALL).removesuffix("."))
        yield from inside.items() if isinstance(inside, dict) else ()
    elif place.endswith(_EACH):
        inside = value_at(document, place.removesuffix(_EACH))
        yield from ((None, each) for each in inside) if isinstance(inside, list) else ()
    else:
        inside = value_at(document, place)
        if isinstance(inside, dict | list):
            yield None, inside


def is_dialogue(document: Any, layout: ChatLayout) -> bool:
    """Tell whether a document is an object that contains dialogues, or an array of turns."""
    if isinstance(document, list):
        return is_array_of_turns(document)
    return isinstance(document, dict) and any(
        any(True for _ in _dialogues_at(document, place, layout)) for place in layout.dialogues
    )


def is_array_of_turns(document: Any) -> bool:
    """Tell whether a document is an array of objects or of arrays; one of texts may be a turn."""
    return isinstance(document, list) and any(isinstance(each, list | dict) for each in document)


def _are_dialogues(documents: Sequence[Any], layout: ChatLayout) -> bool:
    """Tell by its first element whether an array contains dialogues; one array may be wrapped."""
    if not documents or (isinstance(documents[0], list) and len(documents) == 1):
        return False
    return is_dialogue(documents[0], layout)


def array_holds_rows(source: Source) -> Callable[[Any], bool]:
    """Return what tells by its first element whether an array holds rows, or is one itself."""

    def holds_rows(element: Any) -> bool:
        chat = source.chat
        if chat is not None and chat.layout.is_row_per_turn:
            return True
        if chat is not None and (source.array_column is not None or not chat.is_plain):
            return is_dialogue(element, chat.layout)
        if source.array_column is None:
            return True
        keys = source.column(source.array_column).keys
        if isinstance(element, list):
            return is_array_of_turns(element)
        return isinstance(element, dict) and any(key in element for key in keys)

    return holds_rows


def array_name(source: Source) -> str | None:
    """Return the key of arrays that are rows by themselves; None if arrays are never rows."""
    return BARE if source.array_column is None and source.chat else source.array_column


def counted_rows(record: Json, source: Source) -> Iterator[Json]:
    """Yield the rows of a document in the columns of `counted_source`."""
    chat = source.chat
    if chat is None:
        raise TypeError("the source reads no chats")
    for row in chat_rows(_document_of(record, source), chat, ""):
        if not isinstance(row, dict):
            continue
        yield row | {chat.rows.array: [row]} if source.joins_turns else row


def _document_of(record: Json, source: Source) -> Any:
    """Return the document that is seen as a record: an array may be a row by itself."""
    name = array_name(source)
    return record[name] if name is not None and set(record) == {name} else record


def names_no_speaker(record: Json, source: Source) -> bool:
    """Tell whether a dialogue consists of objects none of which says who speaks."""
    chat = source.chat
    if chat is None or chat.layout.is_row_per_turn or chat.layout.replies:
        return False
    found = (
        _turns(each, chat.layout)
        for _, each in _dialogues(_document_of(record, source), chat.layout)
    )
    return any(turns and all(turn.role is None and turn.found for turn in turns) for turns in found)


def counted_source(source: Source) -> Source:
    """Return the source of the rows that documents become."""
    chat = source.chat
    if chat is None:
        return source
    if not source.joins_turns:
        return chat.native
    own = (chat.rows.id, chat.rows.array, chat.rows.speaker, chat.rows.text, chat.rows.model)
    return replace(source, columns=tuple(_at_name(column, own) for column in source.columns))


def _at_name(column: Column, names: Sequence[str]) -> Column:
    items = tuple(_at_name(item, names) for item in column.items)
    if column.name in names:
        return replace(column, mapped=replace(column.mapped, path=""), aliases=(), items=items)
    return replace(column, items=items)


def _has_turns(dialogue: Any, layout: ChatLayout) -> bool:
    if isinstance(dialogue, list):
        return True
    return isinstance(dialogue, dict) and any(
        first_at(dialogue, paths) is not None for paths in layout.turns
    )


def _threads(dialogue: Any, layout: ChatLayout) -> Iterator[tuple[str, list[Turn] | None]]:
    """Yield a dialogue's turns, or those of every path through its tree; None without any."""
    if layout.replies:
        root = first_at(dialogue, layout.turns[0])
        paths = list(_paths(root, layout.replies)) if isinstance(root, dict) else []
        for number, path in enumerate(paths, 1):
            turns = [_turn(each, layout, None) for each in path]
            yield str(number) if len(paths) > 1 else "", _with_roles(turns, layout)
        if not paths:
            yield "", None
        return
    found = _turns(dialogue, layout)
    yield "", None if found is None else _with_roles(found, layout)


def _paths(root: Json, replies: str) -> Iterator[list[Json]]:
    """Yield every path from a root to a leaf, in the order of the replies."""
    open_paths = [[root]]
    while open_paths:
        path = open_paths.pop()
        below = path[-1].get(replies)
        inner = [each for each in below if isinstance(each, dict)] if below else []
        if not inner:
            yield path
        open_paths += [[*path, each] for each in reversed(inner)]


def _turns(dialogue: Any, layout: ChatLayout) -> list[Turn] | None:
    """Return a dialogue's turns, None if nothing is where they should be."""
    if isinstance(dialogue, list):
        return _listed_turns(dialogue, layout, None)
    said_by = dict(layout.said_by)
    beside = {
        str(value): role
        for key, role in layout.beside
        if (value := value_at(dialogue, key)) is not None
    }
    found: list[Turn] | None = None
    for paths in layout.turns:
        for path in paths:
            value = value_at(dialogue, path)
            if value is None:
                continue
            turns = _listed_turns(value, layout, said_by.get(path))
            if turns is None:
                return None
            found = _followed_by(found or [], turns)
            break
    for turn in found or ():
        turn.role = beside.get(str(turn.role), turn.role)
    return found


def _followed_by(turns: list[Turn], more: list[Turn]) -> list[Turn]:
    """Add turns; some tools write the whole dialogue once more before its last reply."""
    known = [(turn.role, turn.text) for turn in turns]
    if known and [(turn.role, turn.text) for turn in more[: len(known)]] == known:
        return more
    return turns + more


def _listed_turns(value: Any, layout: ChatLayout, said_by: str | None) -> list[Turn] | None:
    """Return the turns that a value contains, None if it cannot contain any."""
    if isinstance(value, str):
        value = json_of(value)
        if not isinstance(value, list | dict):
            is_broken = said_by is None and value.lstrip().startswith(_ARRAYS)
            return None if is_broken else [Turn(said_by, value or None, {})]
    if isinstance(value, dict):
        return [_turn(value, layout, said_by)]
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):
        return _listed_turns(value[0], layout, said_by)
    if value and all(_is_pair(each) for each in value) and not _has_places(layout):
        roles = (USER_ROLE, ASSISTANT_ROLE)
        return [
            Turn(role, text or None, {})
            for pair in value
            for role, text in zip(roles, pair, strict=True)
        ]
    # several texts are of several speakers
    own = None if len(value) > 1 and all(isinstance(each, str) for each in value) else said_by
    return [_turn(each, layout, own) for each in value]


def _are_turns(values: Sequence[Any], layout: ChatLayout) -> bool:
    """Tell whether an array contains a turn: a text, a pair, or what has a speaker or a text."""
    paths = (*layout.speaker, *layout.text)
    return any(
        isinstance(value, str | list) or (isinstance(value, dict) and first_at(value, paths))
        for value in values
    )


def _is_pair(value: Any) -> bool:
    """Tell whether a value is what a user said and the reply, as Gradio writes them."""
    return (
        isinstance(value, list)
        and len(value) == _PAIR
        and all(each is None or isinstance(each, str) for each in value)
    )


def _has_places(layout: ChatLayout) -> bool:
    """Tell whether turns are arrays with speaker and text at fixed places."""
    return any(path.isdigit() for path in (*layout.speaker, *layout.text))


def _turn(value: Any, layout: ChatLayout, said_by: str | None) -> Turn:
    if isinstance(value, str):
        return Turn(said_by, value, {})
    if isinstance(value, list) and _has_places(layout):
        value = {str(place): each for place, each in enumerate(value)}
    if not isinstance(value, dict):
        # no turn: the suite names it
        return Turn(said_by, value, {})
    role = first_at(value, layout.speaker)
    if isinstance(role, dict | list):
        role = None
    if isinstance(role, bool):
        role = str(role).lower()
    return Turn(said_by if role is None else role, text_of(first_at(value, layout.text)), value)


def _with_roles(turns: list[Turn], layout: ChatLayout) -> list[Turn]:
    """Name the speakers of turns that take turns: no turn says who speaks, or only the last ones.

    The last one before a turn with a role is the other speaker's; without any the user begins. None
    is named if another key than the layout's probably says who speaks.
    """
    named = next((place for place, turn in enumerate(turns) if turn.role is not None), len(turns))
    if not named or any(turn.role is None for turn in turns[named:]):
        return turns
    unnamed = [turn.found for turn in turns[:named] if turn.found]
    if layout.speaker and unnamed and speaker_key(unnamed, layout.text) is not None:
        return turns
    begins = USER_ROLE
    if named < len(turns):
        before = _OTHER.get(turns[named].role, USER_ROLE)
        begins = before if named % 2 else _OTHER[before]
    for place in range(named):
        turns[place].role = begins if place % 2 == 0 else _OTHER[begins]
    return turns


def _is_no_turn(turn: Turn, chat: Chat) -> bool:
    """Tell whether a turn has no text, nor anything else that the suite reads of a turn."""
    if turn.text not in (None, ""):
        return False
    return not any(turn.found.get(key) for key in kept_keys(chat).json)


def _written(turn: Turn, chat: Chat) -> Iterator[Any]:
    """Write a turn in the suite's columns; nothing if it is left out."""
    if isinstance(turn.text, int | float | list) and not turn.found:
        yield turn.text
        return
    words = meanings(chat)
    meant = turn.role
    if meant is not None:
        meant = words.get(str(meant), words.get(ANY_OTHER, str(meant)))
    if meant == NOT_A_TURN or _is_no_turn(turn, chat):
        return
    kept = kept_keys(chat)
    row = {key: value for key, value in turn.found.items() if key in kept.turn}
    row[chat.rows.speaker] = meant
    row[chat.rows.text] = turn.text
    yield row


def meanings(chat: Chat) -> Mapping[str, str]:
    """Return the suite's words for the words that a layout knows."""
    return _tables(chat)[0]


def kept_keys(chat: Chat) -> "KeptKeys":
    """Return the keys of documents that the suite reads by their own names."""
    return _tables(chat)[1]


def _tables(chat: Chat) -> "tuple[Mapping[str, str], KeptKeys]":
    """Return what is looked up for each turn; made once for a chat, which is large to hash."""
    held = _TABLES.get(id(chat))
    if held is None or held[0] is not chat:
        if len(_TABLES) > _MOST_TABLES:
            _TABLES.clear()
        held = chat, role_words(chat.layout, chat.rows), _kept_keys(chat)
        _TABLES[id(chat)] = held
    return held[1], held[2]


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """The keys that are kept: of a dialogue, of a turn, and of those the ones that hold JSON."""

    beside: frozenset[str]
    turn: frozenset[str]
    json: tuple[str, ...]


def _kept_keys(chat: Chat) -> KeptKeys:
    native, rows = chat.native, chat.rows
    if chat.layout.is_row_per_turn:
        inside, outside = [each for each in native.columns if each.name != rows.id], []
    elif rows.array:
        inside = list(native.column(rows.array).items)
        outside = [each for each in native.columns if each.name != rows.array]
    else:
        inside = [each for each in native.columns if each.name in rows.of_turn]
        outside = [each for each in native.columns if each.name not in rows.of_turn]
    own = (rows.speaker, rows.text)
    outside = [each for each in outside if each.name not in own]
    inside = [each for each in inside if each.name not in own]
    of_json = [key for each in inside if each.kind == "json" for key in each.keys]
    return KeptKeys(_heads(outside), _heads(inside), tuple(of_json))


def _heads(columns: Sequence[Column]) -> frozenset[str]:
    """Return the keys of columns, and the first parts of those that are paths."""
    keys = {key for column in columns for key in column.keys}
    return frozenset(keys | {key.partition(".")[0] for key in keys})


def _spelled(value: Any) -> str:
    """Write a part of a name; 1.0 is the integer 1."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _beside(dialogue: Any, document: Any, key: str | None, chat: Chat, name: str | None) -> Json:
    """Return what is beside a dialogue's turns: its name, its labels, what else the suite reads."""
    layout, rows = chat.layout, chat.rows
    kept = kept_keys(chat).beside
    row = {
        each: value
        for holder in (document, dialogue)
        if isinstance(holder, dict)
        for each, value in holder.items()
        if each in kept
    }
    for column, paths in ((rows.model, layout.model), (rows.condition, layout.condition)):
        if column and paths:
            label = first_at(dialogue, paths)
            label = first_at(document, paths) if label is None else label
            if label is not None:
                row[column] = label
    parts = [
        _spelled(part) for paths in layout.id if (part := first_at(dialogue, paths)) is not None
    ]
    if parts or key is not None:
        row[rows.id] = ":".join(parts) or key
    elif name is not None and all(
        row.get(each) is None for each in chat.native.column(rows.id).keys
    ):
        row[rows.id] = name
    return row
