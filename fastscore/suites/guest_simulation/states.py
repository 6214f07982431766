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
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import count_phrases, group_rows, keyword_groups, plain_words
from polars import col as C

from fastscore.errors import UsageError
from fastscore.settings.options import read_option_file
from fastscore.suites.columns import put_at
from fastscore.suites.declarations import RejectReason
from fastscore.suites.grouping import factorize
from fastscore.suites.guest_simulation.item_lists import ITEM
from fastscore.suites.guest_simulation.options import (
    DEFAULT_STATE,
    ORDER_COLUMN,
    ORDER_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.tool_cells import (
    OrderLists,
    normal_names,
    normalise,
    read_lists,
)
from fastscore.suites.json_values import Problem

FILES = "exp*/*_states.csv"
"""The files of a folder that are states."""

FIELD = "states_from"
_INDEX, _MESSAGE_ID, _PLACE = "message_index", "message_id", "state_place"
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
class FileFaults:
    """What is wrong with files, by conversation: those that are not there, and cannot be used."""

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


def with_state_files(
    messages: pl.DataFrame, folder: str, labels: pl.DataFrame
) -> tuple[pl.DataFrame, FileFaults]:
    """Put the cells of files into the state columns of guest messages.

    Added are ``state_place``, the ``file:line`` of a message's row, and ``is_unread``, of
    conversations of whose states nothing is known.
    """
    faults = FileFaults()
    rows = _read_files(find_state_files(folder), labels, messages["conversation"].unique(), faults)
    _note_strangers(rows, messages, faults)
    key = ["conversation", _INDEX]
    found = messages.drop(_CELLS).join(
        rows.filter(~C("conversation").is_in(list(faults.bad))),
        on=key,
        how="left",
        maintain_order="left",
    )
    unread = C("conversation").is_in([*faults.missing, *faults.bad])
    return found.with_columns(is_unread=unread), faults


def _read_files(
    files: Mapping[tuple[int, str], Path],
    labels: pl.DataFrame,
    needed: pl.Series,
    faults: FileFaults,
) -> pl.DataFrame:
    """Read the files of the conversations that have a message to be told of."""
    columns: dict[str, list[object]] = {name: [] for name in _SCHEMA}
    named = labels["conversation_id"].to_list(), labels["experiment_level"].to_list()
    for conversation in needed.sort().to_list():
        name, level = (values[conversation] for values in named)
        wanted = level or 0, name  # `annotate` writes those of chats without a level into exp0
        if wanted not in files:
            file = f"exp{wanted[0]}/{name}{_SUFFIX}"
            faults.missing[conversation] = Problem(
                FIELD, "missing_field", f"no file {file}", f"a file {file} for every conversation"
            )
            continue
        try:
            rows = _read_file(files[wanted])
        except _OddFileError as odd:
            faults.bad[conversation] = odd.problem
            continue
        columns["conversation"] += [conversation] * len(rows[_INDEX])
        for column, cells in rows.items():
            columns[column] += cells
    return pl.DataFrame(columns, schema=_SCHEMA)


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
    named = [dict(zip(header, record, strict=True)) for _, record in records]
    places = [f"{place}:{line}" for line, _ in records]
    return {
        **{name: [row[name] for row in named] for name in _CELLS},
        "given_id": [row.get(_MESSAGE_ID, "") for row in named],
        _PLACE: places,
        _INDEX: [_whole(row[_INDEX], at) for row, at in zip(named, places, strict=True)],
    }


def _whole(text: str, place: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        found = f"{_INDEX} {text!r}"
        raise _OddFileError("wrong_type", place, found, "a whole number from 0")
    return int(text)


def _note_strangers(rows: pl.DataFrame, messages: pl.DataFrame, faults: FileFaults) -> None:
    """Note files with a row that is of no guest message, of another one, or of one twice."""
    key = ["conversation", _INDEX]
    matched = rows.join(
        messages.select(*key, _MESSAGE_ID, is_guest=True), on=key, how="left", maintain_order="left"
    ).with_columns(
        repeated=~pl.struct(key).is_first_distinct(),
        other=(C("given_id") != "") & (C("given_id") != C(_MESSAGE_ID)),
    )
    odd = matched.filter(C("is_guest").is_null() | C("repeated") | C("other"))
    for row in odd.unique("conversation", keep="first", maintain_order=True).to_dicts():
        shown = f"{row[_PLACE]}: {_INDEX} {row[_INDEX]}"
        if row["is_guest"] is None:
            expected = "the place, from 0, of a message of the guest in the conversation"
        elif row["repeated"]:
            shown, expected = f"{shown} once more", "one row a message"
        else:
            shown = f"{shown} with {_MESSAGE_ID} {row['given_id']!r}"
            expected = f"{row[_MESSAGE_ID]!r}, the id of that message in the log"
        faults.bad[row["conversation"]] = Problem(FIELD, "out_of_range", shown, expected)


_SOURCES, _ORDER_SOURCES = pl.Enum([*STATE_SOURCES, "default"]), pl.Enum(ORDER_SOURCES)
_OF_LISTS = ("present", "broken", "has_items")


def column_states(messages: pl.DataFrame, *, published: bool) -> pl.DataFrame:
    """Read the states that columns give; blank cells give none."""
    bare = C(STATE_COLUMNS).str.strip_chars()
    read = C(STATE_COLUMNS) if published else bare.str.to_lowercase()
    return messages.select(pl.when(bare != "").then(read))


def has_part(states: pl.DataFrame) -> pl.Series:
    """Tell which messages have some part of a state."""
    return states.select(pl.any_horizontal(pl.all().is_not_null())).to_series()


def with_states(
    messages: pl.DataFrame,
    rows: pl.DataFrame,
    of_columns: pl.DataFrame,
    of_tools: pl.DataFrame,
    targets: pl.DataFrame,
    options: GuestSimulation,
) -> pl.DataFrame:
    """Put into `STATE_COLUMNS` the states that count, and say where each comes from.

    A conversation's states come from one source (``states_of``): the first that any of its messages
    has, or the one that the option forces. Of a state that has some part, the others are the
    default's. In the published profile a message without a state has the default, unless it has a
    state row: one without behaviour is passed over, and is enough for the states to come from
    columns.
    """
    messages = messages.with_columns(
        in_columns=C("has_state_row") if options.published else has_part(of_columns),
        in_tools=has_part(of_tools),
    )
    first = (
        pl.when(C("in_columns").any().over("conversation"))
        .then(pl.lit("columns"))
        .when(C("in_tools").any().over("conversation"))
        .then(pl.lit("tools"))
        .otherwise(pl.lit("heuristic"))
    )
    source = first if options.forced_source is None else pl.lit(options.forced_source)
    messages = messages.with_columns(states_of=source.cast(_SOURCES))
    by_words = messages["states_of"] == "heuristic"
    spoken = rows.filter(~C("is_case")).join(
        messages.filter(by_words), on="conversation", how="semi", maintain_order="left"
    )
    of_words = states_by_words(spoken, targets)
    given = messages.select(
        pl.when(C("states_of") == "columns")
        .then(of_columns[name])
        .when(C("states_of") == "tools")
        .then(of_tools[name])
        .otherwise(put_at(by_words.arg_true(), of_words[name], len(messages)))
        .alias(name)
        for name in STATE_COLUMNS
    )
    messages = messages.with_columns(given, has_part=has_part(given))
    counts = C("has_part") & ~C("is_exit")
    is_default = pl.lit(False)
    if options.published:
        # an exit, or a message without a state, has the default
        in_row = C("has_state_row") & (C("states_of") == "columns") & ~C("is_exit")
        is_default = ~counts & ~in_row
    state = pl.when(counts).then("states_of").when(is_default).then(pl.lit("default", _SOURCES))
    return messages.with_columns(state_source=state).with_columns(
        pl.when(C("state_source") == "default")
        .then(pl.lit(default))
        .when(C("state_source").is_not_null())
        .then(C(name).fill_null(default))
        .alias(name)
        for name, default in zip(STATE_COLUMNS, DEFAULT_STATE, strict=True)
    )


def with_orders(
    messages: pl.DataFrame, lists: Mapping[str, OrderLists], options: GuestSimulation
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Say where the order of each message comes from, and read the final orders.

    A conversation's orders come from one source (``orders_of``): the first that any of its messages
    has, or the one that the option forces; the heuristic reads none. Its final order is the last
    one that is not empty. In the published profile an exit has no order. Returned are also the
    conversations with a final order, by ``order_broken``, and the names in these orders.
    """
    allowed = [name for name in ORDER_SOURCES if options.forced_source in (None, name)]
    found = messages.with_row_index("row").with_columns(
        pl.Series(f"{name} {what}", getattr(lists[name], what))
        for name in ORDER_SOURCES
        for what in _OF_LISTS
    )
    given = (
        pl.when(C(f"{name} present").any().over("conversation")).then(pl.lit(name))
        for name in allowed
    )
    nothing = pl.lit(None, pl.String)
    found = found.with_columns(orders_of=pl.coalesce(*given, nothing).cast(_ORDER_SOURCES))
    counts = ~C("is_exit") if options.published else pl.lit(True)
    chosen = {
        what: pl.coalesce(
            *(pl.when(orders_of=name).then(C(f"{name} {what}")) for name in ORDER_SOURCES), False
        )
        for what in _OF_LISTS
    }
    found = found.with_columns((counts & holds).alias(what) for what, holds in chosen.items())
    finals = (
        found.filter("has_items")
        .group_by("conversation", maintain_order=True)
        .agg(C("row", "orders_of", "broken").last())
    )
    names, cut = [], []
    for source, of in lists.items():
        whole = finals.filter(~C("broken"), orders_of=source)
        texts = of.texts(whole["row"].to_numpy())
        owners = whole["conversation"].to_numpy()
        read, breaks_off = read_lists(
            texts.data, texts.offsets[:-1], texts.offsets[1:], owners, option_first=False
        )
        names.append(read)
        cut += breaks_off.tolist()
    finals = finals.with_columns(order_broken=C("broken") | C("conversation").is_in(cut))
    at_fault = C("broken") | C("row").is_in(finals.filter("order_broken")["row"].implode())
    found = found.with_columns(
        order_source=pl.when("present").then("orders_of"), order_fault=at_fault
    )
    return found, finals.select("conversation", "order_broken"), pl.concat(names)


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


def states_by_words(rows: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    """Read the states of guest messages from their words; an exit has none."""
    words = load_words()
    codes, found = factorize(rows["content"].fill_null(""))
    groups = (words.asks, words.menu_words, words.confirmations, *(each for _, each in words.moods))
    bits = keyword_groups(_spaced(pl.Series(plain_words(found))), groups)[:, 0]
    asks, menu, confirms, *of_moods = (
        bits >> np.uint64(n) & np.uint64(1) > 0 for n in range(len(groups))
    )
    # of several moods the first counts, without any the default
    moods = [*(name for name, _ in words.moods), DEFAULT_STATE[2]]
    said = pl.DataFrame(
        {
            "asks": asks,
            "has_menu_word": menu,
            "confirms": confirms,
            "is_question": found.str.contains("?", literal=True),
            "mood_tone": np.array(moods)[np.select(of_moods, range(len(of_moods)), len(of_moods))],
        }
    )[codes]
    ordering = _ordering(rows, codes, found, targets, words.items_at_once)
    spoken = pl.concat(
        [rows.select("conversation", "role", "is_guest", "is_exit"), said, ordering],
        how="horizontal",
    )
    of_restaurant = ~C("is_guest") & C("role").ne_missing("system")

    def latest(value: str, where: pl.Expr, start: bool) -> pl.Expr:
        carried = pl.when(where).then(C(value)).forward_fill()
        return carried.over("conversation").fill_null(start)

    states = (
        _either(latest("confirms", of_restaurant, False), "yes", "no"),
        _either(
            C("asks") | (C("has_menu_word") & C("is_question")),
            "explores_menu",
            "does_not_explore_menu",
        ),
        C("mood_tone"),
        _either(latest("at_once", C("names_items"), True), "all_at_once", "one_by_one"),
    )
    return spoken.select(
        "is_guest",
        *(
            pl.when(C("is_guest") & ~C("is_exit")).then(state).alias(name)
            for name, state in zip(STATE_COLUMNS, states, strict=True)
        ),
    ).filter("is_guest")


def _either(is_so: pl.Expr, word: str, other: str) -> pl.Expr:
    return pl.when(is_so).then(pl.lit(word)).otherwise(pl.lit(other))


def _ordering(
    rows: pl.DataFrame, codes: Indices, found: pl.Series, targets: pl.DataFrame, items_at_once: int
) -> pl.DataFrame:
    """Tell which messages name items of the target, and which of them order all at once."""
    named_items = normal_names(targets.filter(C("kind") == ITEM))
    items = named_items.filter(C("name") != "").unique(keep="first", maintain_order=True)
    item, names = factorize(items["name"])
    conversation, owners = rows["conversation"].to_numpy(), items["conversation"].to_numpy()
    order, offsets = group_rows(owners, 1 + int(np.append(conversation, owners).max(initial=-1)))
    speaks = rows.select(C("is_guest") & ~C("is_exit")).to_series().arg_true().to_numpy()
    counts, new, left = count_phrases(
        normalise(found), codes[speaks], names, (item[order], offsets), conversation[speaks]
    )
    named = counts > 0
    at_once = named & ((counts >= items_at_once) | ((left > 0) & (left == new)))
    told = np.zeros((2, len(rows)), np.bool_)
    told[:, speaks] = named, at_once
    return pl.DataFrame({"names_items": told[0], "at_once": told[1]})
