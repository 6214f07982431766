"""The engine of layouts: other people's documents become the rows that a suite declares.

Simple layouts (an array of turns, texts that are strings) are not read here but compiled to paths
(`column_map`). Only arrays that need more pass through `plain_turns`. All other documents pass
through `chat_rows`, one by one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from fastscore.logs.inputs.column_map import ORDER
from fastscore.logs.inputs.document_values import (
    dump_json,
    first_at,
    json_of,
    load_json,
    order_of,
    text_of,
    value_at,
)
from fastscore.suites.chats import (
    ANY_OTHER,
    ASSISTANT_ROLE,
    BEFORE_REPLY,
    NOT_A_TURN,
    SYSTEM_ROLE,
    TOOL_ROLE,
    USER_ROLE,
    ChatLayout,
)
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
T = TypeVar("T")


@dataclass(slots=True)
class Turn:
    """A turn: the word for its speaker, or a role, its text, and the turn as it was found.

    Without a speaker or a text these are None. A text that is none stays what it is.
    """

    role: Any
    text: Any
    found: Json


def chat_rows(document: Any, chat: Chat, name: str) -> list[Any]:
    """Return the rows of a document, in the suite's own columns."""
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
    found = list(dialogues_of(document, chat.layout))
    rows: list[Any] = []
    for number, (key, dialogue) in enumerate(found, 1):
        own = f"{name}:{number}" if len(found) > 1 else name
        each = list(threads(dialogue, chat.layout))
        # a dialogue of a row needs no name, unless several share the row
        is_named = chat.native.dialogue_key or len(found) > 1 or len(each) > 1
        beside = _beside(dialogue, document, key, chat, own if is_named else None)
        keys = (chat.rows.id, *chat.native.column(chat.rows.id).keys)
        for suffix, turns in each:
            named = dict(beside)
            key = next((key for key in keys if named.get(key) is not None), None)
            if suffix and key is not None:
                named[key] = f"{_spelled(named[key])}:{suffix}"
            rows += _rows_of(named, turns, chat)
    return rows


def _rows_of(beside: Json, turns: list[Turn] | None, chat: Chat) -> list[Any]:
    """Write one dialogue as rows; without turns as one that is rejected."""
    array = chat.rows.array
    if turns is None:
        if array and chat.native.column(array).needed.by:
            return [beside]
        # readers reject a value that is not an object
        return [f"a document without turns at {' or '.join(map('/'.join, chat.layout.turns))}"]
    written = _written(turns, chat)
    if chat.rows.user_begins:
        assistant = dict(chat.rows.words).get(ASSISTANT_ROLE)
        has_begun = (
            not isinstance(turn, dict) or turn.get(chat.rows.speaker) != assistant
            for turn in written
        )
        written = written[next((at for at, begun in enumerate(has_begun) if begun), 0) :]
    if chat.rows.array:
        return [beside | {chat.rows.array: written}]
    return [beside | row if isinstance(row, dict) else row for row in written]


def _turn_rows(document: Any, chat: Chat) -> list[Json]:
    if isinstance(document, list):
        return [row for each in document for row in chat_rows(each, chat, "")]
    beside = _beside(document, document, None, chat, None)
    written = _written([turn_of(document, chat.layout)], chat)
    return [beside | row if isinstance(row, dict) else row for row in written]


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
    for turn in turns:
        if is_no_turn(turn, chat):
            continue
        if not turn.found and not isinstance(turn.text, str):
            written.append(turn.text)  # no turn: the reader names it
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


def all_dialogues(document: Any, layout: ChatLayout) -> Iterator[Any]:
    """Yield the dialogues of a document, also those of an array of documents."""
    if isinstance(document, list) and _are_dialogues(document, layout):
        for each in document:
            yield from all_dialogues(each, layout)
    elif isinstance(document, dict | list):
        yield from (dialogue for _, dialogue in dialogues_of(document, layout))


def dialogues_of(document: Any, layout: ChatLayout) -> Iterator[tuple[str | None, Any]]:
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


def holds_dialogues(document: Any, layout: ChatLayout) -> bool:
    """Tell whether dialogues stand where a layout has them, also in one of an array's documents."""
    if isinstance(document, list) and _are_dialogues(document, layout):
        return any(holds_dialogues(each, layout) for each in document)
    return isinstance(document, dict) and is_dialogue(document, layout)


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
        if chat is not None and (source.array_column is not None or source.document_chat):
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
    for row in chat_rows(document_of(record, source), chat, ""):
        if not isinstance(row, dict):
            row = {}  # a document without turns has nothing of what is needed
        yield row | {chat.rows.array: [row]} if source.joins_turns else row


def document_of(record: Json, source: Source) -> Any:
    """Return the document that is seen as a record: an array may be a row by itself."""
    name = array_name(source)
    if name is None or set(record) != {name} or isinstance(record[name], dict):
        return record
    return record[name]


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
        return replace(column.remapped(path=""), aliases=(), items=items)
    return replace(column, items=items)


def _has_turns(dialogue: Any, layout: ChatLayout) -> bool:
    """Tell whether a dialogue has turns; a pair by itself is one only with a name of its own."""
    if not isinstance(dialogue, dict):
        return isinstance(dialogue, list)
    if any(values_at(dialogue, path) for paths in layout.turns for path in paths if path):
        return True
    is_named = any(first_at(dialogue, paths) is not None for paths in layout.id)
    return is_named and first_at(dialogue, spoken_keys(layout)) is not None


def threads(dialogue: Any, layout: ChatLayout) -> Iterator[tuple[str, list[Turn] | None]]:
    """Yield a dialogue's turns, None without any; of trees and candidates each with its number."""
    if layout.replies or layout.parent:
        root = first_at(dialogue, layout.turns[0])
        found = []
        if isinstance(root, dict):
            paths = _branch(root, dialogue, layout) if layout.parent else _paths(root, layout)
            found = [[turn_of(each, layout) for each in path] for path in paths]
    else:
        join = partial(followed_by, said=attrgetter("role", "text"))
        found = [reduce(join, parts, []) for parts in product(*_steps(dialogue, layout))]
        if len(found) > 1:  # each has roles of its own
            found = [[replace(turn) for turn in turns] for turns in found]
    for number, turns in enumerate(found, 1):
        yield str(number) if len(found) > 1 else "", _in_order(turns, dialogue, layout)
    if not found:
        yield "", None


def _paths(root: Json, layout: ChatLayout) -> Iterator[list[Json]]:
    """Yield every path from a root to a leaf, in the order of the replies."""
    open_paths = [[root]]
    while open_paths:
        path = open_paths.pop()
        below = path[-1].get(layout.replies)
        inner = [each for each in below if isinstance(each, dict)] if below else []
        if not inner:
            yield path
        open_paths += [[*path, each] for each in reversed(inner)]


def _branch(nodes: Json, dialogue: Any, layout: ChatLayout) -> Iterator[list[Json]]:
    """Yield the path to the last node of a dialogue: the one that it names, or that comes last."""
    path: list[Json] = []
    at = first_at(dialogue, layout.leaf)
    at = next(reversed(nodes), None) if at not in nodes else at
    while at in nodes and isinstance(nodes[at], dict) and len(path) < len(nodes):
        path.append(nodes[at])
        at = nodes[at].get(layout.parent)
    yield path[::-1]


def _steps(dialogue: Any, layout: ChatLayout) -> Iterator[list[list[Turn]]]:
    """Yield for each place of turns what stands there, of candidates each that has turns."""
    if isinstance(dialogue, list):
        listed = _listed_turns(dialogue, layout, None)
        yield [] if listed is None else [listed]
        return
    said_by = dict(layout.said_by)
    is_found = False
    for paths in layout.turns:
        for path in paths:
            values = values_at(dialogue, path)
            if layout.is_keyed_by_speaker:  # a text or a number names the dialogue of a pair
                values = [each for each in values if isinstance(json_of(each), list | dict)]
            if values:
                is_found = True
                each = (_listed_turns(value, layout, said_by.get(path)) for value in values)
                yield [turns for turns in each if turns is not None]
                break
    if not is_found:
        yield []


def values_at(dialogue: Any, path: str) -> list[Any]:
    """Return the value at a path; of the elements of an array each, by their index."""
    array, each, inner = path.partition(_EACH)
    if not each:
        value = value_at(dialogue, path)
        return [] if value is None else [value]
    elements = json_of(value_at(dialogue, array))
    listed = elements if isinstance(elements, list) else []
    if all(isinstance(each, dict) and isinstance(each.get("index"), int) for each in listed):
        listed = sorted(listed, key=itemgetter("index"))
    found = (value_at(element, inner.removeprefix(".")) for element in listed)
    return [value for value in found if value is not None]


def _in_order(turns: list[Turn], dialogue: Any, layout: ChatLayout) -> list[Turn]:
    """Sort turns and name their speakers, as far as a layout says how."""
    if layout.sort_by:
        turns.sort(key=lambda turn: order_of(value_at(turn.found, layout.sort_by)))
    beside = {
        str(value): role
        for key, role in layout.beside
        if (value := value_at(dialogue, key)) is not None
    }
    for turn in turns:
        turn.role = beside.get(str(turn.role), turn.role)
    return _alternating(turns, layout)


def followed_by(turns: list[T], more: list[T], said: Callable[[T], Any]) -> list[T]:
    """Add turns; what begins with all turns before is the whole dialogue once more."""
    known = [said(turn) for turn in turns]
    if known and [said(turn) for turn in more[: len(known)]] == known:
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
        objects = _rows_of_lists(value, layout) or [value]
        return _turns_in(objects, layout, said_by)
    if not isinstance(value, list):
        return None
    if not layout.speaker and _is_pair(value):
        value = [value]
    if len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):
        return _listed_turns(value[0], layout, said_by)
    if value and all(_is_pair(each) for each in value) and not _has_places(layout):
        roles = (USER_ROLE, ASSISTANT_ROLE)
        return [
            Turn(role, text if isinstance(text, str) and text else None, {})
            for pair in value
            for role, text in zip(roles, pair, strict=True)
        ]
    # several texts are of several speakers
    own = None if len(value) > 1 and all(isinstance(each, str) for each in value) else said_by
    return _turns_in(value, layout, own)


def _turns_in(values: Sequence[Any], layout: ChatLayout, said_by: str | None) -> list[Turn] | None:
    """Return the turns of an array's elements; None if each must name speakers and none does."""
    if not layout.is_keyed_by_speaker:
        return [turn_of(each, layout, said_by) for each in values]
    turns = [turn for each in values if isinstance(each, dict) for turn in _said_in(each, layout)]
    return turns or (None if values else [])


def _said_in(value: Json, layout: ChatLayout) -> list[Turn]:
    """Return what the speakers who are keys of an object say, in the order in which they speak."""
    begins = layout.alternate or USER_ROLE
    order = [SYSTEM_ROLE, begins, TOOL_ROLE, _OTHER[begins]]
    roles = {
        key: role
        for key, role in layout.roles
        # a side may be further inside: request.prompt
        if role in order and (key in value or ("." in key and value_at(value, key)))
    }
    keys = sorted(roles, key=lambda key: order.index(roles[key]))
    return [Turn(key, _text_at(value, (key,), layout), value) for key in keys]


def _are_turns(values: Sequence[Any], layout: ChatLayout) -> bool:
    """Tell whether an array contains a turn: a text, a pair, or what has a speaker or a text."""
    paths = (*layout.speaker, *layout.text, *spoken_keys(layout))
    return any(
        isinstance(value, str | list) or (isinstance(value, dict) and first_at(value, paths))
        for value in values
    )


def _rows_of_lists(value: Json, layout: ChatLayout) -> list[Json]:
    """Return the turns that an object contains as lists of equal length; none of any other."""
    lists = {key: each for key, each in value.items() if isinstance(each, list)}
    keys = {next((k for k in paths if k in lists), "") for paths in (layout.speaker, layout.text)}
    if "" in keys or len({len(lists[key]) for key in keys}) != 1:
        return []
    n_turns = len(lists[next(iter(keys))])
    whole = {key: each for key, each in lists.items() if len(each) == n_turns}
    return [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]


def _is_pair(value: Any) -> bool:
    """Tell whether a value is what a user said and the reply, as Gradio writes them.

    An upload is an array or an object in the place of a text.
    """
    if not (isinstance(value, list) and len(value) == _PAIR):
        return False
    n_texts = sum(each is None or isinstance(each, str) for each in value)
    uploads = [each for each in value if isinstance(each, list | dict)]
    return n_texts > 0 and n_texts + len(uploads) == _PAIR and all(map(_is_upload, uploads))


def _is_upload(value: Any) -> bool:
    """Tell whether a value is a file that was uploaded: a path and a label, or an object of it."""
    if isinstance(value, dict):
        return any(key in value for key in ("path", "file", "url"))
    return bool(value) and isinstance(value[0], str) and len(value) <= _PAIR


def _has_places(layout: ChatLayout) -> bool:
    return any(path.isdigit() for path in (*layout.speaker, *layout.text))


def turn_of(value: Any, layout: ChatLayout, said_by: str | None = None) -> Turn:
    """Return the turn that an element of an array, or a row, is; the suite names what is none."""
    if isinstance(value, list) and _has_places(layout):
        value = {str(place): each for place, each in enumerate(value)}
    if not isinstance(value, dict):
        return Turn(said_by, value, {})
    role = first_at(value, layout.speaker)
    if isinstance(role, dict | list):
        role = None
    if isinstance(role, bool):
        role = str(role).lower()
    return Turn(said_by if role is None else role, _text_at(value, layout.text, layout), value)


def spoken_keys(layout: ChatLayout) -> tuple[str, ...]:
    """Return the keys of turns that are speakers."""
    return tuple(word for word, _ in layout.roles) if layout.is_keyed_by_speaker else ()


def _text_at(turn: Json, paths: Sequence[str], layout: ChatLayout) -> Any:
    """Return the text of a turn without what tags enclose; one may lack its beginning or end."""
    text = text_of(first_at(turn, paths))
    if not text and len(paths) > 1:  # an empty one may have its text at the next path
        found = (value for path in paths if (value := value_at(turn, path)) not in (None, "", []))
        text = next((said for value in found if (said := text_of(value)) != ""), text)
    for tag in layout.without if isinstance(text, str) else ():
        name = re.escape(tag)
        text = re.sub(rf"(?is)<{name}>.*?(</{name}>\s*|\Z)", "", text)
        text = re.sub(rf"(?is)\A.*?</{name}>\s*", "", text)
    return text


def _alternating(turns: list[Turn], layout: ChatLayout) -> list[Turn]:
    """Name the speakers of turns that take turns, if a layout says so."""
    named = next((place for place, turn in enumerate(turns) if turn.role is not None), len(turns))
    if not layout.alternate or any(turn.role is None for turn in turns[named:]):
        return turns
    begins = layout.alternate
    if begins == BEFORE_REPLY:
        if named == len(turns) > 0:
            return turns
        before = _OTHER.get(turns[named].role, USER_ROLE) if turns else USER_ROLE
        begins = before if named % 2 else _OTHER[before]
    for place in range(named):
        turns[place].role = begins if place % 2 == 0 else _OTHER[begins]
    return turns


def is_no_turn(turn: Turn, chat: Chat) -> bool:
    """Tell whether a turn has no text, nor anything else that the suite reads of a turn."""
    has_text = turn.text not in (None, "") and turn.text == turn.text  # NaN is missing
    return not has_text and not any(map(turn.found.get, chat.json_of_turn))


def _written(turns: Sequence[Turn], chat: Chat) -> list[Any]:
    """Write turns in the suite's columns, without those that are left out."""
    words, kept, rows = chat.words, chat.kept_of_turn, chat.rows
    written: list[Any] = []
    for turn in turns:
        if isinstance(turn.text, int | float | list) and not turn.found:
            written.append(turn.text)
            continue
        meant = turn.role
        if meant is not None:
            meant = words.get(str(meant), words.get(ANY_OTHER, str(meant)))
        if meant != NOT_A_TURN and not is_no_turn(turn, chat):
            row = {key: value for key, value in turn.found.items() if key in kept}
            written.append(row | {rows.speaker: meant, rows.text: turn.text})
    return written


def _spelled(value: Any) -> str:
    """Write a part of a name; 1.0 is the integer 1."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _beside(dialogue: Any, document: Any, key: str | None, chat: Chat, name: str | None) -> Json:
    """Return what is beside a dialogue's turns: its name, its labels, what else the suite reads."""
    layout, rows = chat.layout, chat.rows
    row = {
        each: value
        for holder in (document, dialogue)
        if isinstance(holder, dict)
        for each, value in holder.items()
        if each in chat.kept_beside
    }
    holders = dialogue, document
    for column, paths in ((rows.model, layout.model), (rows.condition, layout.condition)):
        found = (first_at(holder, paths) for holder in holders)
        label = next((each for each in found if each is not None), None)
        if column and label is not None:
            row[column] = label
    if layout.sort_by and (layout.is_row_per_turn or layout.joined_by):
        found = (value_at(holder, layout.sort_by) for holder in holders)
        row[ORDER] = order_of(next((each for each in found if each is not None), None))
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
