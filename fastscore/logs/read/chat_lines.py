"""Documents of other formats as rows with a suite's columns.

Each document is converted separately. Its rows have its file, line and byte offset.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Int64Array

from fastscore.errors import InputError, listed
from fastscore.logs.inputs.chats import chat_rows, followed_by, spoken_keys
from fastscore.logs.inputs.column_map import EACH, ORDER
from fastscore.logs.inputs.document_values import dump_json, json_of, load_json
from fastscore.logs.inputs.files import Format
from fastscore.logs.read.lines import BOM, Lines
from fastscore.suites.chats import ASSISTANT_ROLE
from fastscore.suites.declarations import ROW_SCHEMA, Chat, Column, Source
from fastscore.suites.identity import IDENTITY

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
    if not lines.data:
        return lines
    texts: list[bytes] = []
    places: list[tuple[int, int]] = []
    for begin, number, text in _documents(lines):
        place = lines.offset + begin
        name = f"{file}:{number}:{place}" if lines.in_document and place else f"{file}:{number}"
        rows = _row_texts(text, chat, name)
        texts += rows
        places += [(number, place)] * len(rows)
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


def _documents(lines: Lines) -> Iterator[tuple[int, int, bytes]]:
    """Yield documents: position in the lines, line number, bytes."""
    data = bytes(lines.data)
    begin, number = 0, lines.line
    numbers = lines.numbers
    for place, line in enumerate(data.splitlines(keepends=True)):
        if numbers is not None and place < len(numbers):
            number = int(numbers[place, 1])
        yield begin, number, line.rstrip(b"\r\n")
        begin += len(line)
        number += 1


def _row_texts(text: bytes, chat: Chat, name: str) -> Sequence[bytes]:
    """Return the rows of a document as JSON. Invalid documents are left to the reader."""
    stripped = text.removeprefix(BOM).strip()
    if not stripped:
        return [text]
    try:
        document: Any = load_json(stripped)
    except ValueError:
        return [text]
    return [dump_json(row) for row in chat_rows(document, chat, name)]


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
