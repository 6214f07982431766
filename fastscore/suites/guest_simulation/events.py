"""From the rows of logs to conversations, guest messages, states and orders.

Roles of a test case, who the guest is to be and what it is to order, are in the log or in a file.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, OBJECT

from fastscore.suites.base import Events
from fastscore.suites.columns import gather_or_null
from fastscore.suites.grouping import factorize, first_of_group
from fastscore.suites.guest_simulation.item_lists import ITEM, MODIFIER
from fastscore.suites.guest_simulation.options import (
    ORA_SOURCES,
    ORDER_COLUMN,
    ORDER_SOURCES,
    PAS_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    TOOL_COLUMNS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.rows import (
    TARGET_KEYS,
    AttributeFault,
    Attributes,
    PersonaFile,
    Rows,
    by_conversation,
    fallback_kind,
    is_whole,
    load_personas,
    read_attributes,
)
from fastscore.suites.guest_simulation.states import (
    Behaviours,
    FinalOrders,
    StateFiles,
    message_indices,
    read_behaviours,
    read_final_orders,
    read_state_files,
    read_state_rows,
)
from fastscore.suites.guest_simulation.tool_cells import (
    ToolCells,
    compare_names,
    food_words,
    item_words,
    normal_names,
    overlaps,
    read_lists,
    read_tool_cells,
)
from fastscore.suites.json_values import (
    LONGEST_EXCERPT,
    WHOLE_TEXT,
    JsonValues,
    Problem,
    Problems,
    column_values,
    members,
    texts,
    texts_between,
)

_ABSENT = ("", "null", "none", "nan")
_LONGEST_ABSENT = max(map(len, _ABSENT))
_CASE_EXPECTED = "a JSON object with guest_persona and target_order"
_PERSONA_EXPECTED = "a JSON object that describes the persona, or its full name"
_TARGET_EXPECTED = "a JSON object that holds a list of items"


@dataclass(frozen=True, slots=True)
class Personas:
    """The personas of conversations."""

    code: Indices  # the persona of each conversation, int64 (conversations,); -1 without one
    # a row a distinct persona: `full_name`, `kind` (of `FALLBACKS`), `PAS_source`, and what it lets
    # expect, null where it says nothing
    frame: pl.DataFrame
    bad: Mask  # conversations whose persona cannot be read, bool (conversations,)


@dataclass(frozen=True, slots=True)
class Targets:
    """The target orders of conversations."""

    names: pl.DataFrame  # the names in their lists (`read_lists`)
    # which of `TARGET_KEYS` holds each conversation's list, int64 (conversations,); 0 for a target
    # that is a list itself, -1 without a list
    key: Indices
    bad: Mask  # conversations whose target cannot be read, bool (conversations,)


_PARTS = ("guest_persona", "target_order")


def read_test_cases(
    rows: Rows, test_case: pl.Series, file: PersonaFile
) -> tuple[Personas, Targets, Problems]:
    """Read the test case of every conversation: its own row's, else a column's, else the file's."""
    of_case, of_part = Problems(), {part: Problems() for part in _PARTS}
    cases = _read_cases(rows, of_case, of_part)
    filed = _filed_cases(test_case, file)
    texts = {
        part: pl.concat(
            [
                cases.select("conversation", "place", text=part),
                _read_cells(rows, part, of_part[part]),
                filed.select("conversation", "place", text=part),
            ]
        )
        .drop_nulls("text")
        .unique("conversation", keep="first", maintain_order=True)
        for part in _PARTS
    }
    of_persona, of_target = of_part.values()
    persona, frame = _read_personas(texts["guest_persona"], file, len(test_case), of_persona)
    names, key = _read_targets(texts["target_order"], len(test_case), of_target)
    noted = Problems(of_target.by_dialogue | of_persona.by_dialogue | of_case.by_dialogue)
    # a problem of a text from the file has no row
    noted.by_dialogue.pop(-1, None)
    owner = np.zeros(len(rows), np.int64)
    owner[rows.place] = rows.conversation
    bad = {}
    for part, problems in of_part.items():
        places = [place for of in (of_case, problems) for place in of.by_dialogue if place >= 0]
        bad[part] = np.isin(np.arange(len(test_case)), owner[places])
    return (
        Personas(persona, frame, bad["guest_persona"]),
        Targets(names, key, bad["target_order"]),
        noted,
    )


def _filed_cases(test_case: pl.Series, file: PersonaFile) -> pl.DataFrame:
    """Return the file's test cases by conversation; they have no place in the log."""
    known = [(id, case.guest_persona, case.target_order) for id, case in file.test_cases.items()]
    schema = dict.fromkeys(("test_case", *_PARTS), pl.String)
    asked = pl.DataFrame({"conversation": np.arange(len(test_case)), "test_case": test_case})
    return asked.join(
        pl.DataFrame(known, schema, orient="row"), on="test_case", maintain_order="left"
    ).with_columns(place=pl.lit(-1, pl.Int64))


def _read_cases(rows: Rows, of_case: Problems, of_part: dict[str, Problems]) -> pl.DataFrame:
    """Read the JSON of the rows that hold test cases, the first of each conversation.

    A test case runs at every level, so that each distinct text is read once.
    """
    at = np.flatnonzero(rows.is_case)
    at = at[first_of_group(rows.conversation[at]) == np.arange(len(at))]
    places = rows.place[at]
    codes, contents = factorize(rows["content"][at])
    values = column_values(contents)
    of_text = Problems()
    for number in np.flatnonzero(values.tags != OBJECT).tolist():
        found = f"{contents[number] or '':.{LONGEST_EXCERPT}}"
        of_text.by_dialogue[number] = Problem("content", "wrong_type", repr(found), _CASE_EXPECTED)
    found_values = members(values.where(values.tags == OBJECT), _PARTS, of_text)
    _note_for_all(of_text, codes, places, of_case)
    columns = {}
    for part, of_texts in found_values.items():
        of_text = Problems()
        columns[part] = _value_texts(of_texts, of_text)[codes]
        _note_for_all(of_text, codes, places, of_part[part])
    return pl.DataFrame({"conversation": rows.conversation[at], "place": places, **columns})


def _read_cells(rows: Rows, column: str, problems: Problems) -> pl.DataFrame:
    """Return the cells of a column that are not null."""
    given = np.flatnonzero(rows[column].is_not_null().to_numpy())
    of_text, places = Problems(), rows.place[given]
    text = _cell_texts(rows[column][given], of_text)
    _note_for_all(of_text, np.arange(len(given)), places, problems)
    columns = {"conversation": rows.conversation[given], "place": places, "text": text}
    return pl.DataFrame(columns)


def _note_for_all(of_text: Problems, codes: Indices, places: Indices, problems: Problems) -> None:
    """Note the problems of distinct texts at every place of each."""
    for number, problem in of_text.by_dialogue.items():
        for place in places[codes == number].tolist():
            problems.by_dialogue.setdefault(place, problem)


def _value_texts(values: JsonValues, problems: Problems) -> pl.Series:
    """Return objects and arrays as JSON, strings as they are; null for null."""
    nested = (values.tags == OBJECT) | (values.tags == ARRAY)
    raw = texts_between(
        values.data, np.where(nested, values.start, 0), np.where(nested, values.end, 0)
    )
    found = pl.select(pl.when(pl.Series(nested)).then(raw)).to_series()
    strings = values.where(values.is_text)
    other = np.flatnonzero(~nested & ~values.is_text & ~values.is_missing)
    problems.note(values, other, "an object")
    if not values.is_text.any():
        return found
    return found.fill_null(_present(texts(strings, problems)))


def _cell_texts(cells: pl.Series, problems: Problems) -> pl.Series:
    """Return cells of a column: JSON strings without their quotes, everything else as it is.

    Blank cells, and those that say so, hold nothing.
    """
    if cells.is_empty():
        return cells
    values = column_values(cells)
    found = cells.str.strip_chars()
    if values.is_text.any():
        strings = texts(values.where(values.is_text), problems)
        is_text = pl.Series(values.is_text)
        found = pl.select(pl.when(is_text).then(strings).otherwise(found)).to_series()
    return _present(found)


def _present(found: pl.Series) -> pl.Series:
    """Make null what is blank, or one of the words by which tables say that nothing is there."""
    start = found.str.strip_chars_start().str.head(_LONGEST_ABSENT + 1)
    absent = start.str.strip_chars_end().str.to_lowercase().is_in(_ABSENT)
    return found.set(absent, None)


def _read_personas(
    texts: pl.DataFrame, file: PersonaFile, n_conversations: int, problems: Problems
) -> tuple[Indices, pl.DataFrame]:
    """Read each distinct persona once: they are few. Those that cannot be read are nobody's."""
    codes, described = factorize(texts["text"])
    read = [_read_persona(text, file) for text in described]
    faults = Problems({code: fault for code, (_, _, fault) in enumerate(read) if fault is not None})
    _note_for_all(faults, codes, texts["place"].to_numpy(), problems)
    usable = ~np.isin(codes, list(faults.by_dialogue))
    code = np.full(n_conversations, -1)
    code[texts["conversation"].to_numpy()[usable]] = codes[usable]
    rows = [
        (
            name,
            fallback_kind(text),
            PAS_SOURCES[expected is None],
            expected and expected.complete,
            expected and expected.exploration,
            expected and expected.ordering,
            (expected and list(expected.moods)) or None,
        )
        for text, (name, expected, _) in zip(described, read, strict=True)
    ]
    return code, pl.DataFrame(rows, _OF_PERSONAS, orient="row")


_OF_PERSONAS: dict[str, Any] = {
    "full_name": pl.String,
    "kind": pl.String,
    "PAS_source": pl.Enum(PAS_SOURCES),
    **{f"expected_{part}": pl.String for part in ("complete", "exploration", "ordering")},
    "expected_moods": pl.List(pl.String),
}
"""What is known of a persona; of moods, null also where any is expected."""


def _read_persona(
    text: str, file: PersonaFile
) -> tuple[str | None, Attributes | None, Problem | None]:
    """Return a persona's name, what it lets expect, and what is wrong with it."""
    try:
        persona: Any = json.loads(text)
    except ValueError:
        persona = None if text.startswith(("{", "[")) else text
    if isinstance(persona, str):
        persona = {"full_name": text}
    if not isinstance(persona, dict):
        found = f"{text:.{LONGEST_EXCERPT}}"
        return None, None, Problem("guest_persona", "wrong_type", found, _PERSONA_EXPECTED)
    inner = persona.get("guest_persona")
    name = persona.get("full_name") or (inner.get("full_name") if isinstance(inner, dict) else None)
    if name is not None and not isinstance(name, str):
        problem = Problem("guest_persona.full_name", "wrong_type", f"{name!r:.60}", "a string")
        return None, None, problem
    if name is not None and not is_whole(name):
        problem = Problem("guest_persona.full_name", "lone_surrogate", f"{name!r:.60}", WHOLE_TEXT)
        return None, None, problem
    if name in file.attributes:
        return name, file.attributes[name or ""], None
    described = persona.get("message_generation_attributes")
    if described is None:
        return name, None, None
    try:
        return name, read_attributes(described), None
    except AttributeFault as fault:
        field = f"guest_persona.message_generation_attributes{fault.path}"
        return name, None, Problem(field, "wrong_type", fault.found, fault.expected)


def _read_targets(
    texts: pl.DataFrame, n_conversations: int, problems: Problems
) -> tuple[pl.DataFrame, Indices]:
    """Find the list of items in each distinct target order, and read its names."""
    codes, orders = factorize(texts["text"].alias("target_order"))
    of_text = Problems()
    names, key = _read_target_lists(orders, of_text)
    _note_for_all(of_text, codes, texts["place"].to_numpy(), problems)
    key_of = np.full(n_conversations, -1)
    key_of[texts["conversation"].to_numpy()] = key[codes]
    owners = texts.select("conversation", text=pl.Series(codes)).sort("conversation")
    shared = owners.join(names, on="text", maintain_order="left_right")
    return shared.drop("text"), key_of


def _read_target_lists(target: pl.Series, problems: Problems) -> tuple[pl.DataFrame, Indices]:
    """Return the names in each target order (`text`), and which of `TARGET_KEYS` has its list."""
    values = column_values(target)
    other = (values.tags != OBJECT) & (values.tags != ARRAY) & ~values.is_missing
    for at in np.flatnonzero(other).tolist():
        excerpt = f"{target[at]:.{LONGEST_EXCERPT}}"
        problem = Problem("target_order", "wrong_type", repr(excerpt), _TARGET_EXPECTED)
        problems.by_dialogue.setdefault(at, problem)
    found = members(values.where(values.tags == OBJECT), TARGET_KEYS, problems)
    key = np.full(len(target), -1, np.int64)
    data = found[TARGET_KEYS[0]].data
    start, end = np.zeros(len(target), np.int64), np.zeros(len(target), np.int64)
    for place, name in reversed(list(enumerate(TARGET_KEYS))):
        lists = found[name]
        present = ~lists.is_missing
        key[present], start[present], end[present] = place, lists.start[present], lists.end[present]
        key[present & (lists.tags != ARRAY)] = -2
    for name in TARGET_KEYS:
        wrong = np.flatnonzero((key == -2) & ~found[name].is_missing & (found[name].tags != ARRAY))
        problems.note(found[name], wrong, "an array of items")
    key[key == -2] = -1
    listed = np.flatnonzero(key >= 0)
    names, _ = read_lists(data, start[listed], end[listed], listed, option_first=True)
    bare = np.flatnonzero(values.tags == ARRAY)
    key[bare] = 0
    bare_names, broken = read_lists(
        values.data, values.start[bare], values.end[bare], bare, option_first=True
    )
    for at in broken.tolist():
        problem = Problem("target_order", "not_json", "a list that breaks off", _TARGET_EXPECTED)
        problems.by_dialogue.setdefault(at, problem)
    return pl.concat([names, bare_names]).rename({"conversation": "text"}), key


_MESSAGE_COLUMNS = ("line", "message_id", "content", "tool_calls", *STATE_COLUMNS, ORDER_COLUMN)
_ORDER_EXPECTED = "a whole list of items; of a tracking result both of its lists"


def read_events(raw: pl.DataFrame, options: GuestSimulation) -> Events:
    """Read messages."""
    file = load_personas(options.personas)
    rows, labels = by_conversation(raw, options)
    n_conversations = labels.height
    personas, targets, problems = read_test_cases(rows, labels["test_case"], file)
    of_guest = rows.is_guest & ~rows.is_case
    messages = rows.where(of_guest, _MESSAGE_COLUMNS)
    files = None
    if options.states_from:
        index = message_indices(rows)[of_guest]
        files = read_state_files(options.states_from, labels, messages, index)
        messages = files.messages
        _note_file_problems(files, problems)
    columns = read_state_rows(messages, files, published=options.published)
    tools = read_tool_cells(messages["tool_calls"], whole_cell=options.published)
    behaviours = read_behaviours(
        messages, rows, columns, tools, targets.names, n_conversations, options
    )
    orders = read_final_orders(messages, columns, tools, n_conversations, options)
    for at in orders.faults.tolist():
        problem = _order_problem(messages, at, int(orders.order_source[at]), files)
        problems.by_dialogue.setdefault(int(messages.place[at]), problem)
    names, compared = _compare(messages, targets, orders, n_conversations, options)
    none = np.zeros(n_conversations, np.bool_)
    frames = {
        "conversations": labels.hstack(
            [
                *_sources(personas, targets, behaviours, orders),
                pl.Series("states_missing", none if files is None else files.missing),
                pl.Series("states_bad", none if files is None else files.bad),
                *compared,
            ]
        ),
        "messages": _message_frame(messages, tools, behaviours, orders),
        "personas": personas.frame,
        "names": names,
    }
    counts = {"conversations": n_conversations, "messages": len(messages)}
    as_empty = options.published
    return Events(
        frames,
        problems.rejects(raw),
        counts,
        nulls_are_empty=as_empty,
        n_units=frames["messages"].height,
    )


def _sources(
    personas: Personas, targets: Targets, behaviours: Behaviours, orders: FinalOrders
) -> pl.DataFrame:
    """Say what is known of each conversation, and where it comes from."""
    return pl.DataFrame(
        {
            "persona": gather_or_null(personas.frame["full_name"], personas.code),
            "persona_code": personas.code,
            "persona_bad": personas.bad,
            "target_bad": targets.bad,
            "has_target": targets.key >= 0,
            "order_broken": orders.broken,
            "state_source": _names(STATE_SOURCES, behaviours.source),
            "order_source": _names(ORDER_SOURCES, orders.source),
        }
    )


def _note_file_problems(files: StateFiles, problems: Problems) -> None:
    """Note what is wrong with a conversation's file at its first guest message that has no fault.

    A row holds one fault, and the log may have one of its own there.
    """
    messages = files.messages
    for conversation, problem in files.problems.items():
        start, stop = np.searchsorted(messages.conversation, [conversation, conversation + 1])
        places = messages.place[start:stop].tolist()
        free = (place for place in places if place not in problems.by_dialogue)
        problems.by_dialogue[next(free, places[0])] = problem


def _message_frame(
    messages: Rows, tools: ToolCells, behaviours: Behaviours, orders: FinalOrders
) -> pl.DataFrame:
    """Say what is known of each message."""
    return pl.DataFrame(
        {
            "conversation": messages.conversation,
            "line": messages["line"],
            "message_id": messages["message_id"],
            "is_exit": messages.is_exit,
            "has_guest_role": messages.has_guest_role,
            **{name: tools.uses[:, kind] for kind, name in enumerate(TOOL_COLUMNS)},
            **behaviours.states.to_dict(),
            "state_source": behaviours.state_source,
            "order_source": _names(ORDER_SOURCES, orders.order_source),
            "has_items": orders.has_items,
        }
    )


def _names(names: tuple[str, ...], codes: Indices) -> pl.Series:
    return gather_or_null(pl.Series(names, dtype=pl.Enum(names)), codes)


def _compare(
    messages: Rows,
    targets: Targets,
    orders: FinalOrders,
    n_conversations: int,
    options: GuestSimulation,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare what was ordered with the target: the final orders, or else the guest's words.

    Returned are the names, and what they say of each conversation.
    """
    conversation = messages.conversation
    speaks = np.zeros(n_conversations, np.bool_)
    speaks[conversation[messages.has_guest_role]] = True
    by_text: Mask = ~orders.present & (targets.key >= 0)
    spoken = pl.DataFrame({"conversation": conversation, "content": messages["content"]}).filter(
        messages.has_guest_role & by_text[conversation]
    )
    # a missing message is unknown, but in the profile published it is empty
    unspoken = by_text & speaks & (not options.published)
    unspoken[spoken.drop_nulls()["conversation"].to_numpy()] = False
    readable = by_text.copy()
    if options.published:
        readable &= targets.key != TARGET_KEYS.index("order_items")

    def of(names: pl.DataFrame, owners: Mask) -> pl.DataFrame:
        return names.filter(pl.Series(owners)[names["conversation"]])

    items = targets.names.filter(pl.col("kind").is_in([ITEM, MODIFIER]))  # no bare texts
    both = compare_names(
        pl.concat([normal_names(of(orders.names, ~by_text)), food_words(spoken)]),
        pl.concat([normal_names(of(items, ~by_text)), item_words(of(items, readable))]),
    )
    compared = pl.DataFrame(
        {
            "conversation": np.arange(n_conversations),
            "ORA_source": _names(ORA_SOURCES, np.where(targets.key >= 0, by_text, -1)),
            "words_missing": unspoken,
            "is_silent": by_text & ~speaks,
        }
    ).join(overlaps(both), on="conversation", how="left", maintain_order="left")
    n_names = pl.col("n_final_names") + pl.col("n_target_names")
    counted = (
        compared.drop("conversation")
        .with_columns(pl.col("^n_.*$").fill_null(0))
        .with_columns(nothing_to_order=pl.col("is_silent") | (n_names == 0))
    )
    return both, counted


def _order_problem(messages: Rows, at: int, source: int, files: StateFiles | None) -> Problem:
    field = (ORDER_COLUMN, "tool_calls")[source]
    cell = messages[field][at]
    found = repr(f"...{cell[-57:]}" if len(cell) > 60 else cell)
    place = "" if files is None else f"{files.place[at]}: "
    return Problem(field, "wrong_type", f"{place}{found}", _ORDER_EXPECTED)
