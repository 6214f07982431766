"""The state of every guest message: from columns, files, tool calls or the heuristic.

The published files are ``exp<k>/<conversation>_states.csv``, with a row a guest message, exits left
out. ``message_index`` is the message's place, from 0, among those of the conversation. Files are
small and many, so each is read by Python's ``csv``, which counts lines and takes no row of another
width. A file that is missing or odd leaves its conversation without metrics that need states.

The heuristic reads a guest's behaviour from the words of its messages, in logs without states and
tool calls. It reads no order.
"""

import csv
import io
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import count_phrases, keyword_groups, plain_words

from fastscore.errors import UsageError
from fastscore.settings.options import read_option_file
from fastscore.suites.columns import gather_or_null, last_rows, put_at
from fastscore.suites.declarations import RejectReason
from fastscore.suites.grouping import factorize, first_of_group, group_rows
from fastscore.suites.guest_simulation.item_lists import ITEM
from fastscore.suites.guest_simulation.options import (
    DEFAULT_STATE,
    ORDER_COLUMN,
    ORDER_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.rows import Rows
from fastscore.suites.guest_simulation.tool_cells import (
    OrderLists,
    ToolCells,
    column_lists,
    normal_names,
    normalise,
    read_lists,
)
from fastscore.suites.json_values import Problem

FILES = "exp*/*_states.csv"
"""The files of a folder that are states."""

FIELD = "states_from"
_INDEX, _MESSAGE_ID, _PLACE = "message_index", "message_id", "place"
_CELLS = (*STATE_COLUMNS, ORDER_COLUMN)
_SCHEMA = {
    "conversation": pl.Int64(),
    _INDEX: pl.Int64(),
    "given_id": pl.String(),
    **dict.fromkeys(_CELLS, pl.String()),
    _PLACE: pl.String(),
}
_LEVEL = re.compile(r"exp([0-9]{1,9})")
_SUFFIX = "_states.csv"
_LONGEST_CELL = 1 << 30


@dataclass(frozen=True, slots=True)
class StateFiles:
    """What files say of the states of messages."""

    # the guest messages, with the files' cells in their state columns; null without a row
    messages: Rows
    has_row: Mask  # which of them have a row in their file, bool (messages,)
    place: pl.Series  # its place, `file:line` (messages,); null without one
    # conversations that have no file, and whose file cannot be used, bool (conversations,)
    missing: Mask
    bad: Mask
    problems: Mapping[int, Problem]  # what is wrong with these, by conversation

    @property
    def unread(self) -> Mask:
        """Conversations of whose states nothing is known, bool (conversations,)."""
        unread: Mask = self.missing | self.bad
        return unread


@dataclass(slots=True)
class _Found:
    """Rows of files, a column each, and what is wrong with files, by conversation."""

    columns: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in _SCHEMA})
    missing: dict[int, Problem] = field(default_factory=dict)
    bad: dict[int, Problem] = field(default_factory=dict)


class _OddFileError(Exception):
    """A file that cannot be used, and what is wrong with it."""

    def __init__(self, reason: RejectReason, place: str, found: str, expected: str) -> None:
        self.problem = Problem(FIELD, reason, f"{place}: {found}", expected)


def check_files(options: GuestSimulation) -> None:
    """Refuse a folder of states that is none."""
    if options.states_from:
        find_state_files(options.states_from)


def find_state_files(folder: str) -> dict[tuple[int, str], Path]:
    """Return the files of states below a folder by level and conversation."""
    root = Path(folder)
    if not root.is_dir():
        there = "is a file" if root.exists() else "is not there"
        raise UsageError(
            f"states_from {folder}: {there}, expected a folder of {FILES}.",
            "Name the folder that holds exp1, exp2 and so on.",
        )
    found = {}
    for path in sorted(root.glob(FILES)):
        level = _LEVEL.fullmatch(path.parent.name)
        if level:
            found[int(level[1]), path.name.removesuffix(_SUFFIX)] = path
    if not found:
        inside = ", ".join(sorted(entry.name for entry in root.iterdir())[:5]) or "nothing"
        raise UsageError(
            f"states_from {folder}: holds {inside}, expected files {FILES}.",
            "Name the folder that holds exp1, exp2 and so on.",
        )
    return found


def read_state_files(
    folder: str, labels: pl.DataFrame, messages: Rows, index: Indices
) -> StateFiles:
    """Read the states of guest messages from files instead of the log's columns."""
    found = _read_files(find_state_files(folder), labels, np.unique(messages.conversation))
    rows = pl.DataFrame(found.columns, schema=_SCHEMA)
    keys = pl.DataFrame({"conversation": messages.conversation, _INDEX: index})
    ids = messages[_MESSAGE_ID].rename(_MESSAGE_ID)
    _note_strangers(rows, keys.hstack([ids]), found)
    rows = rows.filter(~pl.col("conversation").is_in(list(found.bad)))
    joined = keys.join(rows, on=keys.columns, how="left", maintain_order="left")
    cells = messages.columns.with_columns(joined.select(_CELLS))
    n_conversations = labels.height
    return StateFiles(
        messages=replace(messages, columns=cells),
        has_row=joined[_PLACE].is_not_null().to_numpy(),
        place=joined[_PLACE],
        missing=np.isin(np.arange(n_conversations), list(found.missing)),
        bad=np.isin(np.arange(n_conversations), list(found.bad)),
        problems=found.missing | found.bad,
    )


def message_indices(rows: Rows) -> Indices:
    """Return the place of each row among the messages of its conversation, from 0.

    The row of the test case is not a message. Its values are ignored.
    """
    before: Indices = np.cumsum(~rows.is_case) - ~rows.is_case
    indices: Indices = before - before[first_of_group(rows.conversation)]
    return indices


def _read_files(
    files: Mapping[tuple[int, str], Path], labels: pl.DataFrame, needed: Indices
) -> _Found:
    """Read the files of the conversations that have a message to be told of."""
    found = _Found()
    named = labels["conversation_id"].to_list(), labels["experiment_level"].to_list()
    for conversation in needed.tolist():
        name, level = (values[conversation] for values in named)
        level = level or 0  # `annotate` writes those of chats without a level into exp0
        path = files.get((level, name))
        if path is None:
            wanted = f"exp{level}/{name}{_SUFFIX}"
            found.missing[conversation] = Problem(
                FIELD,
                "missing_field",
                f"no file {wanted}",
                f"a file {wanted} for every conversation",
            )
            continue
        try:
            rows = _read_file(path)
        except _OddFileError as odd:
            found.bad[conversation] = odd.problem
            continue
        found.columns["conversation"] += [conversation] * len(rows[_INDEX])
        for column, cells in rows.items():
            found.columns[column] += cells
    return found


def _read_file(path: Path) -> dict[str, Sequence[object]]:
    """Return the rows of a file by column: those of `_SCHEMA` but the conversation."""
    place = str(path)
    csv.field_size_limit(_LONGEST_CELL)
    try:
        lines = io.StringIO(read_option_file(path).decode("utf-8-sig"), newline="")
        reader = csv.reader(lines, strict=True)
        header = next(reader, [])
        records = [(reader.line_num, record) for record in reader if record]
    except csv.Error as error:
        last = f"{place}:{reader.line_num}"
        raise _OddFileError(
            "bad_quoting",
            last,
            str(error),
            f"a CSV record whose cells have at most {_LONGEST_CELL:,} characters",
        ) from error
    except UnicodeDecodeError as error:
        raise _OddFileError("not_utf8", place, str(error), "UTF-8") from error
    except OSError as error:
        found = f"cannot be read ({error.strerror})"
        raise _OddFileError("missing_field", place, found, "a file of states") from error
    lacking = [name for name in (_INDEX, *_CELLS) if header.count(name) != 1]
    if lacking:
        shown = f"columns {', '.join(header) or 'none'}"
        wanted = f"one column each of {', '.join(lacking)}"
        raise _OddFileError("missing_column", f"{place}:1", shown, wanted)
    for line, record in records:
        if len(record) != len(header):
            shown, wanted = f"{len(record)} cells", f"{len(header)}, as in the header"
            raise _OddFileError("wrong_cell_count", f"{place}:{line}", shown, wanted)
    columns = dict(zip(header, zip(*(record for _, record in records), strict=True), strict=True))
    no_cells = ("",) * len(records)
    rows: dict[str, Sequence[object]] = {name: columns.get(name, no_cells) for name in _CELLS}
    rows["given_id"] = columns.get(_MESSAGE_ID, no_cells)
    rows[_PLACE] = [f"{place}:{line}" for line, _ in records]
    rows[_INDEX] = [_whole(record[header.index(_INDEX)], f"{place}:{line}")
                    for line, record in records]  # fmt: skip
    return rows


def _whole(text: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        found = f"{_INDEX} {text!r}"
        raise _OddFileError("wrong_type", place, found, "a whole number from 0")
    return int(text)


def _note_strangers(rows: pl.DataFrame, messages: pl.DataFrame, found: _Found) -> None:
    """Note files with a row that is of no guest message, of another one, or of one twice."""
    matched = rows.join(
        messages.with_columns(is_guest=True),
        on=["conversation", _INDEX],
        how="left",
        maintain_order="left",
    ).with_columns(
        repeated=~pl.struct("conversation", _INDEX).is_first_distinct(),
        other=(pl.col("given_id") != "") & (pl.col("given_id") != pl.col(_MESSAGE_ID)),
    )
    odd = matched.filter(pl.col("is_guest").is_null() | pl.col("repeated") | pl.col("other"))
    for row in odd.unique("conversation", keep="first", maintain_order=True).to_dicts():
        shown = f"{row[_PLACE]}: {_INDEX} {row[_INDEX]}"
        if row["is_guest"] is None:
            expected = "the place, from 0, of a message of the guest in the conversation"
        elif row["repeated"]:
            shown, expected = f"{shown} once more", "one row a message"
        else:
            shown = f"{shown} with {_MESSAGE_ID} {row['given_id']!r}"
            expected = f"{row[_MESSAGE_ID]!r}, the id of that message in the log"
        found.bad[row["conversation"]] = Problem(FIELD, "out_of_range", shown, expected)


COLUMNS, TOOLS, HEURISTIC = range(len(STATE_SOURCES))
_NONE = -1
_SOURCES = pl.Enum([*STATE_SOURCES, "default"])


@dataclass(frozen=True, slots=True)
class StateRows:
    """What the state columns of messages give, those of the log or of files."""

    # the four parts of behaviour: `STATE_COLUMNS`, null where nothing gives that part
    states: pl.DataFrame
    orders: OrderLists  # the orders so far
    # which messages have a state row: one in a file, or a cell that is not empty in any of the five
    # columns, bool (messages,)
    present: Mask


@dataclass(frozen=True, slots=True)
class Behaviours:
    """States that count, and where they come from."""

    states: pl.DataFrame  # a row a message: `STATE_COLUMNS`, null without a state
    state_source: pl.Series  # where each comes from
    # the source of each conversation, index in `STATE_SOURCES`, int64 (conversations,)
    source: Indices


@dataclass(frozen=True, slots=True)
class FinalOrders:
    """The order that each conversation ended with."""

    names: pl.DataFrame  # the names in them (`read_lists`)
    has_items: Mask  # which messages have a tracked order that is not empty, bool (messages,)
    # where each message's order comes from, index in `ORDER_SOURCES`, int64 (messages,); -1 without
    # one
    order_source: Indices
    source: Indices  # the source of each conversation, likewise, int64 (conversations,)
    # conversations that have a final order, and whose order cannot be read, bool
    present: Mask
    broken: Mask
    faults: Indices  # messages with an order that cannot be read, int64


def read_state_rows(messages: Rows, files: StateFiles | None, *, published: bool) -> StateRows:
    """Read the state columns of guest messages."""
    states = _column_states(messages, published=published)
    orders = column_lists(messages[ORDER_COLUMN], published=published)
    if files is None:
        return StateRows(states, orders, has_part(states) | orders.present)
    # of a conversation whose file cannot be read, no message is taken for the default
    return StateRows(states, orders, files.has_row | files.unread[messages.conversation])


def read_behaviours(
    messages: Rows,
    rows: Rows,
    columns: StateRows,
    tools: ToolCells,
    targets: pl.DataFrame,
    n_conversations: int,
    options: GuestSimulation,
) -> Behaviours:
    """Read the behaviour of every guest message.

    A conversation's states come from one source: the first that any of its messages has, or the
    one that the option forces. Of a state that has some part, the others are the default's. In
    the published profile a message without a state has the default, unless it has a state row:
    one without behaviour is passed over, and is enough for the states to come from columns.
    """
    source = _state_sources(messages.conversation, columns, tools, n_conversations, options)
    of_message = source[messages.conversation]
    is_spoken = (source[rows.conversation] == HEURISTIC) & ~rows.is_case
    words = states_by_words(rows.where(is_spoken, ("role", "content")), targets)
    by_words = np.flatnonzero(of_message == HEURISTIC)
    given = pl.DataFrame({"source": of_message}).select(
        pl.when(pl.col("source") == COLUMNS)
        .then(columns.states[name])
        .when(pl.col("source") == TOOLS)
        .then(tools.states[name])
        .otherwise(put_at(by_words, words[name], len(messages)))
        .alias(name)
        for name in STATE_COLUMNS
    )
    counts = has_part(given) & ~messages.is_exit
    stateless = ~counts
    if options.published:
        stateless = columns.present & (of_message == COLUMNS) & ~counts & ~messages.is_exit
    # an exit, or a message without a state, has the default
    states = given.select(
        pl.when(pl.Series(~stateless)).then(
            pl.when(pl.Series(counts)).then(pl.col(name)).fill_null(default)
        )
        for name, default in zip(STATE_COLUMNS, DEFAULT_STATE, strict=True)
    )
    sources = pl.Series([*STATE_SOURCES, "default"], dtype=_SOURCES)
    number = np.where(stateless, -1, np.where(counts, of_message, len(STATE_SOURCES)))
    return Behaviours(states, gather_or_null(sources, number), source)


def has_part(states: pl.DataFrame) -> Mask:
    """Tell which messages have some part of a state."""
    found: Mask = states.select(pl.any_horizontal(pl.all().is_not_null())).to_series().to_numpy()
    return found


def _state_sources(
    conversation: Indices,
    columns: StateRows,
    tools: ToolCells,
    n_conversations: int,
    options: GuestSimulation,
) -> Indices:
    """Return where each conversation's states come from."""
    if options.forced_source is not None:
        return np.full(n_conversations, STATE_SOURCES.index(options.forced_source))
    source = np.full(n_conversations, HEURISTIC)
    in_columns = columns.present if options.published else has_part(columns.states)
    for number, found in ((TOOLS, has_part(tools.states)), (COLUMNS, in_columns)):
        source[conversation[found]] = number
    return source


def _column_states(messages: Rows, *, published: bool) -> pl.DataFrame:
    """Read the states that columns give; blank cells give none."""
    bare = pl.col(STATE_COLUMNS).str.strip_chars()
    read = pl.col(STATE_COLUMNS) if published else bare.str.to_lowercase()
    return messages.columns.select(pl.when(bare != "").then(read))


def read_final_orders(
    messages: Rows,
    columns: StateRows,
    tools: ToolCells,
    n_conversations: int,
    options: GuestSimulation,
) -> FinalOrders:
    """Read the last tracked order of each conversation that is not empty.

    Its orders come from one source: the first that any of its messages has, or the one that the
    option forces; the heuristic reads none. In the published profile an exit has no order.
    """
    conversation = messages.conversation
    lists = (columns.orders, tools.orders)
    allowed = [options.forced_source in (None, name) for name in ORDER_SOURCES]
    source = np.full(n_conversations, _NONE)
    for number in (TOOLS, COLUMNS):
        if allowed[number]:
            source[conversation[lists[number].present]] = number
    counts = np.ones(len(messages), np.bool_)
    if options.published:
        counts = ~messages.is_exit
    order_source = np.full(len(messages), _NONE)
    has_items = np.zeros(len(messages), np.bool_)
    for number, each in enumerate(lists):
        of_source = (source[conversation] == number) & counts
        order_source[of_source & each.present] = number
        has_items |= of_source & each.has_items
    final = last_rows(conversation, np.flatnonzero(has_items), n_conversations)
    return _read_finals(lists, source, final, order_source, has_items)


def _read_finals(
    lists: tuple[OrderLists, ...],
    source: Indices,
    final: Indices,
    order_source: Indices,
    has_items: Mask,
) -> FinalOrders:
    parts = []
    broken = np.zeros(len(final), np.bool_)
    faults = [np.flatnonzero((order_source == n) & each.broken) for n, each in enumerate(lists)]
    for number, each in enumerate(lists):
        owners = np.flatnonzero((final >= 0) & (source == number))
        at = final[owners]
        broken[owners] |= each.broken[at]
        owners, at = owners[~each.broken[at]], at[~each.broken[at]]
        texts = each.texts(at)
        begins, ends = texts.offsets[:-1], texts.offsets[1:]
        names, cut = read_lists(texts.data, begins, ends, owners, option_first=False)
        broken[cut] = True
        faults.append(final[cut])
        parts.append(names)
    return FinalOrders(
        pl.concat(parts),
        has_items,
        order_source,
        source,
        final >= 0,
        broken,
        np.unique(np.concatenate(faults)),
    )


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the heuristic, as `plain_words` writes texts, between spaces."""

    # what a message that explores the menu has: one of the former, or one of the latter and a
    # question mark
    asks: tuple[str, ...]
    menu_words: tuple[str, ...]
    items_at_once: int  # how many items of the target make an order all at once
    # moods with their phrases; the first that fits counts
    moods: tuple[tuple[str, tuple[str, ...]], ...]
    confirmations: tuple[str, ...]  # what the restaurant says once the order is complete


@cache
def load_words() -> Words:
    """Read the built-in lexicon."""
    table = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8"))
    return Words(
        asks=_phrases(table["exploration"]["asks"]),
        menu_words=_phrases(table["exploration"]["menu_words"]),
        items_at_once=table["ordering"]["items_at_once"],
        moods=tuple((mood["name"], _phrases(mood["phrases"])) for mood in table["moods"]),
        confirmations=_phrases(table["completion"]["confirmations"]),
    )


def _phrases(phrases: list[str]) -> tuple[str, ...]:
    return tuple(_spaced(pl.Series(plain_words(phrases))).to_list())


def _spaced(words: pl.Series) -> pl.Series:
    """Put spaces around texts, so that only complete words match."""
    return " " + words + " "


def states_by_words(rows: Rows, targets: pl.DataFrame) -> pl.DataFrame:
    """Read the states of guest messages from their words."""
    words = load_words()
    codes, found = factorize(rows["content"].fill_null(""))
    groups = (words.asks, words.menu_words, words.confirmations, *(each for _, each in words.moods))
    bits = keyword_groups(_spaced(pl.Series(plain_words(found))), groups)[:, 0]
    asks, menu, confirms, *of_moods = (
        bits >> np.uint64(n) & np.uint64(1) > 0 for n in range(len(groups))
    )
    explores = asks | (menu & found.str.contains("?", literal=True).to_numpy())
    # of several moods the first counts, without any the default
    mood = np.select(of_moods, range(len(of_moods)), len(of_moods))
    restaurant = ~rows.is_guest & rows["role"].ne_missing("system").to_numpy()
    complete = _carried(rows.conversation, restaurant, confirms[codes], start=False)
    named, at_once = _ordering(rows, codes, found, targets, words.items_at_once)
    ordering = _carried(rows.conversation, named, at_once, start=True)
    moods = pl.Series([*(name for name, _ in words.moods), DEFAULT_STATE[2]])
    spoken = pl.DataFrame(
        {
            "is_said": rows.is_guest & ~rows.is_exit,
            "complete": complete,
            "explores": explores[codes],
            "mood_tone": moods[mood[codes]],
            "at_once": ordering,
        }
    )
    return (
        spoken.select(
            is_ordering_complete=_either("complete", "yes", "no"),
            menu_exploration_style=_either("explores", "explores_menu", "does_not_explore_menu"),
            mood_tone="mood_tone",
            ordering_style=_either("at_once", "all_at_once", "one_by_one"),
        )
        .select(pl.when(spoken["is_said"]).then(pl.all()))
        .filter(pl.Series(rows.is_guest))
    )


def _either(column: str, word: str, other: str) -> pl.Expr:
    return pl.when(column).then(pl.lit(word)).otherwise(pl.lit(other))


def _carried(conversation: Indices, where: Mask, value: Mask, *, start: bool) -> Mask:
    """Carry the latest value, of those ``where``, on through each conversation."""
    last = np.where(where, np.arange(len(where)), -1)
    last = np.maximum.accumulate(last) if len(last) else last
    known = (last >= 0) & (conversation[last] == conversation)
    carried: Mask = np.where(known, value[last], start)
    return carried


def _ordering(
    rows: Rows, codes: Indices, found: pl.Series, targets: pl.DataFrame, items_at_once: int
) -> tuple[Mask, Mask]:
    """Tell which messages name items of the target, and which of them order all at once."""
    named_items = normal_names(targets.filter(pl.col("kind") == ITEM))
    items = named_items.filter(pl.col("name") != "").unique(keep="first", maintain_order=True)
    item, names = factorize(items["name"])
    conversation = rows.conversation
    owners = items["conversation"].to_numpy()
    n_owners = 1 + int(max(conversation.max(initial=-1), owners.max(initial=-1)))
    order, offsets = group_rows(owners, n_owners)
    speaks = np.flatnonzero(rows.is_guest & ~rows.is_exit)
    counts, new, left = count_phrases(
        normalise(found), codes[speaks], names, (item[order], offsets), conversation[speaks]
    )
    named, at_once = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    named[speaks] = counts > 0
    all_left = (left > 0) & (left == new)
    at_once[speaks] = named[speaks] & ((counts >= items_at_once) | all_left)
    return named, at_once
