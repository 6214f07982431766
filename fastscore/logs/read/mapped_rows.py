"""Rows whose columns are in nested values or in documents of other formats.

Readers read top-level values by `stored_source`: renamed columns by their names in the log, nested
ones as the JSON of the whole value. `mapped_rows` then creates the declared columns. Without a map
into nested values nothing is changed. Other layouts are read document by document: each is
converted separately, and its rows have its file, line and byte offset.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.arrow import string_column
from fastscore_readers.json import tokens
from fastscore_readers.json.lines import Place, find_places
from fastscore_readers.json.walk import Shape

from fastscore.errors import InputError, listed
from fastscore.logs.inputs.chats import chat_rows, followed_by, plain_turns, spoken_keys
from fastscore.logs.inputs.column_map import EACH, LEFT_OUT, ORDER
from fastscore.logs.inputs.document_values import dump_json, json_of, load_json
from fastscore.logs.inputs.files import Format
from fastscore.logs.integrity.rejects import Reject
from fastscore.logs.read.columns import (
    Places,
    column_reject,
    convert,
    describe,
    json_texts,
    rows_where,
    spelled_cells,
    texts_of,
)
from fastscore.logs.read.lines import BOM, Lines
from fastscore.suites.chats import ASSISTANT_ROLE
from fastscore.suites.declarations import ROW_SCHEMA, Chat, Column, RejectReason, Source
from fastscore.suites.identity import IDENTITY

_STORED = "stored:"
"""Prefix of columns that contain other columns. No suite declares such a name."""
_STRINGS = (tokens.STRING, tokens.ESCAPED)
_CELLS = ("csv", "parquet")
"""Fields that keep a text unchanged, which JSON Lines quotes."""


@cache
def _derived_columns(source: Source) -> tuple[tuple[Column, str, tuple[str, ...]], ...]:
    """Return the columns that cannot be read directly, with their stored columns and the paths."""
    late: dict[str, tuple[Column, str, tuple[str, ...]]] = {}
    for column in source.columns:
        head, *path = _parts(column, source)
        if path or (source.rows and column.mapped.path.startswith(source.rows + EACH)):
            late[column.name] = column, head, tuple(path)
    # such a column may select the rows in which others are read, which must wait for it
    for column in source.columns:
        if column.only_where and column.only_where[0] in late and column.name not in late:
            late[column.name] = column, column.keys[0], ()
    return tuple(late[column.name] for column in source.columns if column.name in late)


def _parts(column: Column, source: Source) -> tuple[str, ...]:
    """Return the keys of a column's path; inside the rows' array, those within an element."""
    path = column.mapped.path
    if source.rows and path.startswith(source.rows + EACH):
        return ("", *path.removeprefix(source.rows + EACH).split("."))
    return tuple(path.split(".")) if path else (column.name,)


@cache
def stored_source(source: Source) -> Source:
    """Return the columns that readers read: top-level columns, and JSON that contains columns."""
    if source.document_chat is not None:
        return document_source(source)
    late = {column.name: (head, path) for column, head, path in _derived_columns(source)}
    columns = []
    heads: dict[str, Column] = {}
    for column in source.columns:
        if column.name not in late:
            columns.append(column)
            continue
        # the path may be a single key that contains dots
        at_key = replace(column.remapped(default=None), otherwise="null", only_where=None)
        head, path = late[column.name]
        columns.append(at_key if path else at_key.remapped(path=_STORED))
        if head:
            aliases = () if column.mapped.path else column.aliases
            heads.setdefault(head, Column(name=head, kind="json", aliases=aliases))
    array = source.rows.split(".")[0]
    for key in filter(None, (array, source.rows)):
        heads.setdefault(key, Column(name=key, kind="json"))
    stored = (
        replace(head, name=_STORED + head.name, aliases=(head.name, *head.aliases))
        for head in heads.values()
    )
    return replace(source, columns=(*columns, *stored), rows="")


def mapped_rows(
    frame: pl.DataFrame, source: Source, format: Format
) -> tuple[pl.DataFrame, list[Reject]]:
    """Create the declared columns of rows that were read by `stored_source`."""
    if not (_derived_columns(source) or source.rows or _rebuilt_columns(source)):
        return frame, []
    rejects: list[Reject] = []
    element: Places | None = None
    if source.rows:
        frame, element, rejects = _elements(frame, source)
    bad, culprit = np.zeros(frame.height, np.uint8), np.zeros(frame.height, np.int64)
    located: list[tuple[Places, Column]] = []
    for column, stored, path in _derived_columns(source):
        if not stored and element is not None:
            found_at, _ = _located(element.data, element.starts, element.ends, path)
        elif not path and format in _CELLS:
            found_at = _cells(frame[_STORED + stored], column)
        else:
            found_at, _ = _in_texts(frame[_STORED + stored], path)
        values, faults = convert(found_at, column, rows_where(column, frame.to_dict()))
        at_key = frame[column.name]
        frame = frame.with_columns(at_key.fill_null(values).alias(column.name))
        fresh = (bad == 0) & (faults > 0) & at_key.is_null().to_numpy()
        bad[fresh], culprit[fresh] = faults[fresh], len(located)
        located.append((found_at, column))
    for row in np.flatnonzero(bad).tolist():
        found_at, column = located[culprit[row]]
        rejects.append(_reject(frame, row, found_at, column, int(bad[row])))
    if bad.any():
        frame = frame.filter(pl.Series(bad == 0))
    rejects.sort(key=lambda reject: reject.line)
    for column in _rebuilt_columns(source):
        frame = frame.with_columns(rebuilt(frame[column.name], column, source.chat))
    return frame.select(*ROW_SCHEMA, *(column.name for column in source.columns)), rejects


def _rebuilt_columns(source: Source) -> tuple[Column, ...]:
    """Return the columns of arrays whose fields have other names or values."""
    return tuple(
        column
        for column in source.columns
        if any(item.mapped.path or item.mapped.words for item in column.items)
    )


def _reject(frame: pl.DataFrame, row: int, places: Places, column: Column, fault: int) -> Reject:
    place: tuple[str, int, int | None] = frame.select(*ROW_SCHEMA).row(row)
    return column_reject(column, fault, place, describe(places, row))


def _cells(texts: pl.Series, column: Column) -> Places:
    """Return the byte ranges of values in a column of cells."""
    held = string_column(texts.name, texts.fill_null(""))
    tags = np.where(texts.is_null().to_numpy(), tokens.ABSENT, tokens.STRING).astype(np.uint8)
    places = Places("csv", held.data, tags, held.offsets[:-1].copy(), held.offsets[1:].copy())
    return spelled_cells(places, column.kind)


def _in_texts(texts: pl.Series, path: Sequence[str], inner: Shape = None) -> tuple[Places, Place]:
    """Locate the values at a path in JSON texts, absent for all other texts.

    Line ends, which JSON has only between values, become spaces.
    """
    if texts.str.contains("[\r\n]").any():
        texts = texts.str.replace_all("[\r\n]", " ")
    held = string_column(texts.name, texts.fill_null(""))
    return _located(held.data, held.offsets[:-1], held.offsets[1:], path, inner)


def _located(
    data: UInt8Array, starts: Int64Array, ends: Int64Array, path: Sequence[str], inner: Shape = None
) -> tuple[Places, Place]:
    """Locate the values at a path, and those of a shape in them."""
    shape = inner
    for key in reversed(path):
        shape = {key: shape}
    place, _ = find_places(data, starts, ends, shape, is_utf8=True)
    return _values_at(data, place, path), _inside(place, path)


def _inside(place: Place, path: Sequence[str]) -> Place:
    for key in path:
        place = place.members[key]
    return place


def _values_at(data: UInt8Array, place: Place, path: Sequence[str] = ()) -> Places:
    found = _inside(place, path)
    return Places("jsonl", data, found.tags, found.start, found.end)


def _elements(frame: pl.DataFrame, source: Source) -> tuple[pl.DataFrame, Places, list[Reject]]:
    """Convert each element of the rows' array to a row, and list the rows without elements."""
    head, *path = source.rows.split(".")
    column = Column(name=source.rows, kind="json")
    texts = frame[_STORED + head]
    at_key = frame[_STORED + source.rows]
    # the path may be a single key that contains dots
    if path and at_key.null_count() < frame.height:
        texts, path = at_key.fill_null(json_texts(_in_texts(texts, path)[0])), []
    paths = () if source.chat is None else _own_paths(source.chat)
    arrays, below = _located_elements(texts, path, paths, source.chat)
    rejects = []
    for row in np.flatnonzero(arrays.tags != tokens.ARRAY).tolist():
        reason: RejectReason = "missing_field" if arrays.tags[row] <= tokens.NULL else "wrong_type"
        reject = _reject(frame, row, arrays, column, 1)
        rejects.append(replace(reject, reason=reason, expected="an array of rows"))
    rows, is_object = frame[below.owner], below.tags == tokens.OBJECT
    element = _values_at(arrays.data, below)
    what: dict[str, Any] = {"field": None, "reason": "not_an_object", "expected": "a JSON object"}
    rejects += [
        replace(_reject(rows, row, element, column, 1), **what)
        for row in np.flatnonzero(~is_object).tolist()
    ]
    return rows.filter(pl.Series(is_object)), element.at(np.flatnonzero(is_object)), rejects


def _located_elements(
    texts: pl.Series, path: Sequence[str], inside: Iterable[tuple[str, ...]], chat: Chat | None
) -> tuple[Places, Place]:
    """Locate arrays and their elements, with the values at some paths in each.

    Arrays of turns that are JSON texts, or in which a text is not a string, are rewritten first.
    """
    shape = [_joined_shape(inside)]
    arrays, place = _in_texts(texts, path, shape)
    assert place.elements is not None  # its shape has elements
    if chat is None:
        return arrays, place.elements
    speaker, text = (_inside(place.elements, own) for own in _own_paths(chat))
    # an empty text is missing
    is_plain = (place.elements.tags == tokens.OBJECT) & (text.end > text.start)
    for value in (speaker, text):
        is_plain &= np.isin(value.tags, _STRINGS)
    odd = np.isin(arrays.tags, (*_STRINGS, tokens.OBJECT))
    odd[place.elements.owner[~is_plain]] = True
    rows = np.flatnonzero(odd)
    if not rows.size:
        return arrays, place.elements
    at_path = json_texts(arrays) if path else texts.clone()
    plain = [plain_turns(text, chat) or text for text in at_path[rows].to_list()]
    return _located_elements(at_path.scatter(rows, plain), (), inside, None)


def _own_paths(chat: Chat) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the speaker and of the text in a turn of a plain layout."""
    return tuple(tuple(paths[0].split(".")) for paths in (chat.layout.speaker, chat.layout.text))


def rebuilt(texts: pl.Series, column: Column, chat: Chat | None = None) -> pl.Series:
    """Rewrite arrays with the suite's names and values."""
    keys = {path: name for item in column.items for path, name in _item_keys(item)}
    inside = [tuple(path.split(".")) for path in keys]
    arrays, elements = _located_elements(texts, (), inside, chat)
    words = {item.name: dict(item.mapped.words) for item in column.items if item.mapped.words}
    rows = chat.rows if chat is not None and chat.rows.user_begins else None
    fields, left_out, is_user = [], np.zeros(len(elements.tags), np.bool_), None
    for path, name in keys.items():
        found = _values_at(arrays.data, elements, path.split("."))
        raw = json_texts(found)
        if name in words:
            meant = _map_words(found, words[name])
            left_out |= (meant == _quoted(LEFT_OUT)).fill_null(False).to_numpy()
            raw = pl.select(pl.coalesce(meant, raw)).to_series()
        if rows is not None and name == rows.speaker:
            is_user = raw.ne_missing(_quoted(dict(rows.words)[ASSISTANT_ROLE]))
        fields.append(pl.concat_str(pl.lit(_quoted(name) + ":"), raw))
    whole = json_texts(_values_at(arrays.data, elements))
    objects = pl.select(
        owner=pl.Series(elements.owner),
        text=pl.when(pl.Series(elements.tags == tokens.OBJECT))
        .then(_enclose("{", pl.concat_str(fields, separator=",", ignore_nulls=True), "}"))
        .otherwise(whole.fill_null("null")),
        is_user=is_user,
    )
    objects = objects.filter(~left_out) if left_out.any() else objects
    if is_user is not None:
        # the assistant's turns before the user's first one are left out
        begun = pl.col("is_user").cast(pl.Int8).cum_max().over("owner") == 1
        objects = objects.filter(begun | ~pl.col("is_user").any().over("owner"))
    joined = objects.group_by("owner").agg(text=_enclose("[", pl.col("text").str.join(","), "]"))
    own = texts.clone().scatter(np.flatnonzero(arrays.tags == tokens.ARRAY), "[]")
    return own.scatter(joined["owner"], joined["text"])


def _enclose(begin: str, text: pl.Expr, end: str) -> pl.Expr:
    return pl.concat_str(pl.lit(begin), text, pl.lit(end))


def _item_keys(item: Column) -> list[tuple[str, str]]:
    path = item.mapped.path
    return [(path, item.name)] if path else [(key, key) for key in item.keys]


def _joined_shape(paths: Iterable[tuple[str, ...]]) -> Shape:
    shape: dict[str, Shape] = {}
    for path in paths:
        level = shape
        for key in path[:-1]:
            inner = level.get(key)
            level[key] = inner = dict(inner) if isinstance(inner, Mapping) else {}
            level = inner
        level.setdefault(path[-1], None)
    return shape


def _map_words(found: Places, words: Mapping[str, str]) -> pl.Series:
    """Return the JSON texts of the suite's values that replace some values, null for others."""
    known = {word: _quoted(meant) for word, meant in words.items()}
    strings = texts_of(found, np.isin(found.tags, _STRINGS))
    return strings.replace_strict(known, default=None, return_dtype=pl.String)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def key_source(source: Source) -> Source:
    """Return a source that reads only the columns that name dialogues."""
    columns = {column.name: column for column in source.columns}
    # an array is a row, too, without a key
    whole = tuple(column for column in source.columns if column.name == source.array_column)
    keys = tuple(columns[name] for name in source.dialogue_key)
    return replace(source, columns=(*keys, *whole), rows="")


_TEXTS: tuple[Format, ...] = ("json", "jsonl")
_PARTS = '[{"'
_HEAD = "document:"
"""Prefix of columns that contain parts of documents. No suite declares such a name."""


def line_source(source: Source, format: Format) -> Source:
    """Return the source for lines of a format after documents have become rows."""
    chat = source.document_chat
    return chat.native if chat is not None and format in _TEXTS else source


def chat_lines(
    lines: Iterator[Lines], source: Source, file: str, format: Format
) -> Iterator[Lines]:
    """Convert documents to rows, if a source reads them one by one."""
    chat = source.document_chat
    if chat is None or format not in _TEXTS:
        return lines
    return (_rewritten(each, chat, file) for each in lines)


def _rewritten(lines: Lines, chat: Chat, file: str) -> Lines:
    """Convert lines that are documents to rows. Invalid documents are left to the reader."""
    if not lines.data:
        return lines
    texts: list[bytes] = []
    places: list[tuple[int, int]] = []
    place, numbers = lines.offset, lines.numbers
    for at, line in enumerate(bytes(lines.data).splitlines(keepends=True)):
        number = lines.line + at if numbers is None else int(numbers[min(at, len(numbers) - 1), 1])
        name = f"{file}:{number}:{place}" if lines.in_document and place else f"{file}:{number}"
        text = line.rstrip(b"\r\n")
        try:
            document = load_json(text.removeprefix(BOM).strip())
        except ValueError:
            rows = [text]
        else:
            rows = [dump_json(row) for row in chat_rows(document, chat, name)]
        texts += rows
        places += [(number, place)] * len(rows)
        place += len(line)
    found = np.array(places, np.int64).reshape(-1, 2)
    return _with_rows(lines, texts, found[:, 0], np.ascontiguousarray(found[:, 1]))


def _with_rows(
    lines: Lines, texts: Sequence[bytes], numbers: Int64Array, offsets: Int64Array | None
) -> Lines:
    """Replace lines by the texts of rows, with the numbers and offsets of their documents."""
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    begins = np.concatenate(([0], ends[:-1]))[: len(texts)]
    data = b"".join([text + b"\n" for text in texts])
    return replace(lines, data=data, numbers=np.stack((begins, numbers), 1), offsets=offsets)


def document_source(source: Source) -> Source:
    """Return a source that reads parts of documents from the cells of a table."""
    chat = source.chat
    if chat is None:
        raise TypeError("the source reads no chats")
    layout, native = chat.layout, chat.native
    paths = [path for paths in (*layout.id, *layout.turns) for path in paths]
    paths += [*layout.model, *layout.condition, *(key for key, _ in layout.beside)]
    paths += [place.removesuffix("[]").removesuffix("*") for place in layout.dialogues]
    paths += [*layout.leaf, *([layout.sort_by] if layout.sort_by else [])]
    paths += spoken_keys(layout)
    if layout.is_row_per_turn:
        paths += [*layout.speaker, *layout.text]
    paths += [key for column in native.columns for key in column.keys]
    heads = dict.fromkeys(head for path in paths for head in _heads(path))
    columns = tuple(Column(name=_HEAD + head, kind="json", aliases=(head,)) for head in heads)
    return replace(source, columns=columns, chat=None, rows="")


def _heads(path: str) -> Iterator[str]:
    """Yield the columns at which a path may begin."""
    parts = path.replace(EACH, ".").split(".")
    for count in range(1, len(parts) + 1):
        head = ".".join(parts[:count])
        if head:
            yield head


def document_lines(frame: pl.DataFrame, chat: Chat, file: str) -> Lines:
    """Convert the rows of a table, read by `document_source`, to lines with the rows' numbers."""
    names = [name for name in frame.columns if name.startswith(_HEAD)]
    texts = (*chat.layout.text, *spoken_keys(chat.layout))
    text_heads = {head for path in texts for head in _heads(path)}
    written: list[bytes] = []
    numbers: list[int] = []
    for row in frame.select("line", *names).iter_rows(named=True):
        line = row.pop("line")
        document = {
            head: _message_parts(text) if head in text_heads else json_of(text)
            for name, text in row.items()
            if text is not None and (head := name.removeprefix(_HEAD))
        }
        rows = chat_rows(document, chat, f"{file}:{line}")
        written += map(dump_json, rows)
        numbers += [line] * len(rows)
    offsets = None
    if "byte_offset" in frame.columns and not frame["byte_offset"].null_count() and numbers:
        of_line = dict(frame.select("line", "byte_offset").iter_rows())
        offsets = np.array([of_line[line] for line in numbers], np.int64)
    return _with_rows(Lines(b"", 0, 1), written, np.array(numbers, np.int64), offsets)


def with_own_models(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Give each row that is a turn the model of its dialogue, which some rows may leave out.

    Dialogues of one id under several models stay apart if every row says its model.
    """
    rows = source.chat.rows if source.chat else source.chat_rows
    if rows is None or (rows.array and not source.joins_turns):
        return frame
    # documents have the model in their key
    if ("model", rows.model) not in source.variants or rows.model in source.dialogue_key:
        return frame
    id, model = rows.id, pl.col(rows.model)
    of_id = ("file", *source.dialogue_key)
    several = model.drop_nulls().n_unique().over(of_id) > 1
    odd = frame.filter(several & model.is_null())
    if odd.height:
        file, line, name = odd.select("file", "line", id).row(0)
        same = frame.filter(pl.col("file") == file, pl.col(id).eq_missing(pl.lit(name, pl.String)))
        models = same[rows.model].drop_nulls().unique(maintain_order=True)
        raise InputError(
            f"{file}:{line}: {rows.model}: none, and other rows of the dialogue {name!r} have "
            f"several: {listed(models.to_list(), 3)}.",
            "Write the model into every row, so that the dialogues can be told apart.",
        )
    return frame.with_columns(pl.when(several).then(model).otherwise(model.max().over(of_id)))


def joined_turns(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Collect the turns of each dialogue, in input order.

    A dialogue has the position of its first turn. Its other columns have the first non-null value.
    """
    chat = source.chat
    if chat is None:
        raise TypeError("the source reads no chats")
    rows = chat.rows
    items = source.column(rows.array).items
    texts = [item.name for item in items if item.kind != "json"]
    # an object without its closing brace, then a value that is JSON already
    written = pl.struct(texts).struct.json_encode().str.head(-1)
    parts = [
        pl.when(pl.col(item.name).is_not_null()).then(
            pl.concat_str(pl.lit(f',"{item.name}":'), pl.col(item.name))
        )
        for item in items
        if item.kind == "json"
    ]
    turn = pl.concat_str(written, *(part.fill_null("") for part in parts), pl.lit("}"))
    beside = [column.name for column in source.columns if column.name != rows.array]
    if rows.user_begins:  # what is said before the user is left out, as in documents
        is_other = pl.col(rows.speaker).eq(dict(rows.words)[ASSISTANT_ROLE]).fill_null(False)
        has_begun = (~is_other).cum_sum().over(IDENTITY) > 0
        frame = frame.filter(has_begun | is_other.all().over(IDENTITY))
    return (
        frame.with_columns(turn.alias(rows.array))
        .group_by(IDENTITY, maintain_order=True)
        .agg(
            pl.col("file", "line", "byte_offset").first(),
            pl.col(beside).drop_nulls().first(),
            pl.col(rows.array).str.join(","),
        )
        .with_columns(pl.format("[{}]", rows.array).alias(rows.array))
        .select(*ROW_SCHEMA, *(column.name for column in source.columns), IDENTITY)
    )


def sorted_turns(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Sort the rows of each dialogue by what says their order; dialogues stay where they begin."""
    if source.chat is None or ORDER not in frame.columns:
        return frame
    row, dialogue = pl.int_range(pl.len()), ("file", *source.dialogue_key)
    order = frame[ORDER].str.json_decode(pl.List(pl.Float64))
    return (
        frame.with_columns(order, first=row.first().over(dialogue))
        .sort("first", ORDER, maintain_order=True)
        .drop(ORDER, "first")
    )


def joined_documents(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Join the documents of each dialogue.

    One that begins with all turns before replaces them. If all are beginnings of the longest one,
    it is the dialogue, in whatever order they are.
    """
    chat = source.chat
    if chat is None or not chat.layout.joined_by or chat.layout.is_row_per_turn:
        return frame
    keys, rows = ["file", *source.dialogue_key], chat.rows
    frame = frame.with_row_index("row")
    kept: list[int] = []
    written: dict[int, str] = {}
    models = [name for name in (rows.model,) if name in frame.columns]
    # documents of one name under several models are several dialogues
    several = [pl.when(pl.col(m).n_unique().over(keys) > 1).then(m).alias("of") for m in models]
    for _, group in frame.group_by(*keys, *several, maintain_order=True):
        if rows.array:
            arrays = [load_json(text or "[]") for text in group[rows.array]]
            written[group["row"][0]] = dump_json(_joined(arrays, dump_json)).decode()
            continue
        lines = group.group_by("line", "byte_offset", maintain_order=True)
        said = [line.select("row", rows.speaker, rows.text).rows() for _, line in lines]
        kept += [row for row, *_ in _joined(said, itemgetter(1, 2))]
    frame = frame.filter(pl.col("row").is_in([*kept, *written]))
    if rows.array:
        whole = pl.col("row").replace_strict(written, return_dtype=pl.String)
        frame = frame.with_columns(whole.alias(rows.array))
    return frame.drop("row")


def _joined(documents: list[list[Any]], said: Callable[[Any], Any]) -> list[Any]:
    longest = [said(turn) for turn in max(documents, key=len)]
    if all([said(turn) for turn in each] == longest[: len(each)] for each in documents):
        return max(documents, key=len)
    turns: list[Any] = []
    for each in documents:
        turns = followed_by(turns, each, said)
    return turns


def _message_parts(text: str) -> Any:
    """Return the parts of a message if a text is their JSON, else the text."""
    found = json_of(text) if text.startswith(_PARTS) else text
    is_parts = isinstance(found, list) and all(
        isinstance(part, dict) and ("type" in part or "text" in part) for part in found
    )
    return found if is_parts else text
