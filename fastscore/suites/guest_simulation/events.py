"""From the rows of logs to conversations, guest messages, states and orders.

Roles of a test case, who the guest is to be and what it is to order, are in the log or in a file.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import number_hashes
from fastscore_readers.json.tokens import ARRAY, OBJECT

from fastscore.suites.base import Events
from fastscore.suites.columns import first_rows, gather_or_null
from fastscore.suites.grouping import factorize, first_of_group
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
    Names,
    ToolCells,
    compare_names,
    food_words,
    item_words,
    join_names,
    names_by_conversation,
    overlaps,
    read_lists,
    read_tool_cells,
    target_names,
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
    names: tuple[str | None, ...]  # their full names by code
    # what they let expect by code; None where nothing says
    attributes: tuple[Attributes | None, ...]
    kinds: tuple[str, ...]  # what their descriptions are of, by code (`personas.FALLBACKS`)
    bad: Mask  # conversations whose persona cannot be read, bool (conversations,)


@dataclass(frozen=True, slots=True)
class Targets:
    """The target orders of conversations."""

    names: Names  # the names in their lists
    # which of `TARGET_KEYS` holds each conversation's list, int64 (conversations,); 0 for a target
    # that is a list itself, -1 without a list
    key: Indices
    bad: Mask  # conversations whose target cannot be read, bool (conversations,)


def read_test_cases(
    rows: Rows, test_case: pl.Series, file: PersonaFile
) -> tuple[Personas, Targets, Problems]:
    """Read the test case of every conversation."""
    n_conversations = len(test_case)
    owner = np.zeros(len(rows), np.int64)
    owner[rows.place] = rows.conversation
    of_case, of_persona, of_target = Problems(), Problems(), Problems()
    cases = _read_cases(rows, of_case)
    ids, at = factorize(test_case)
    by_file = [file.test_cases.get(name) for name in at.to_list()] if file.test_cases else []

    def first_texts(key: str, problems: Problems) -> _Texts:
        known = [None if each is None else getattr(each, key) for each in by_file]
        parts = [_of_cases(cases, key, problems), _of_column(rows, key, problems)]
        if known:
            everyone = np.arange(n_conversations)
            values = pl.Series(known, dtype=pl.String)
            parts.append(_Texts(everyone, np.full(n_conversations, -1), ids, values))
        return _first_texts(parts, n_conversations)

    personas = _read_personas(first_texts("guest_persona", of_persona), file, of_persona)
    targets = _read_targets(first_texts("target_order", of_target), of_target)
    bad = [_bad(problems, owner, n_conversations) for problems in (of_case, of_persona, of_target)]
    noted = Problems(of_target.by_dialogue | of_persona.by_dialogue | of_case.by_dialogue)
    # a problem of a text from the file has no row
    noted.by_dialogue.pop(-1, None)
    return (replace(personas, bad=bad[0] | bad[1]), replace(targets, bad=bad[0] | bad[2]), noted)


def _bad(problems: Problems, owner: Indices, n_conversations: int) -> Mask:
    found = np.zeros(n_conversations, np.bool_)
    found[owner[[row for row in problems.by_dialogue if row >= 0]]] = True
    return found


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of conversations, each distinct one once."""

    owner: Indices  # the conversation of each text, int64 (n,)
    place: Indices  # its row of the log, int64 (n,); -1 for the file's
    code: Indices  # which of the values it is, int64 (n,)
    values: pl.Series  # objects and lists as JSON text, strings as they are, null without a value


@dataclass(frozen=True, slots=True)
class _Cases:
    """The rows that hold test cases, the first of each conversation."""

    # as of `_Texts`
    owner: Indices
    place: Indices
    code: Indices
    members: dict[str, JsonValues]  # persona and target order of each distinct test case


def _read_cases(rows: Rows, problems: Problems) -> _Cases:
    """Read the JSON of the rows that hold test cases.

    A test case runs at every level, so that each distinct text is read once.
    """
    at = np.flatnonzero(rows.is_case)
    at = at[first_of_group(rows.conversation[at]) == np.arange(len(at))]
    codes, contents = factorize(rows["content"][at])
    values = column_values(contents)
    of_text = Problems()
    for number in np.flatnonzero(values.tags != OBJECT).tolist():
        found = f"{contents[number] or '':.{LONGEST_EXCERPT}}"
        of_text.by_dialogue[number] = Problem("content", "wrong_type", repr(found), _CASE_EXPECTED)
    keys = ("guest_persona", "target_order")
    found_values = members(values.where(values.tags == OBJECT), keys, of_text)
    _note_for_all(of_text, codes, rows.place[at], problems)
    return _Cases(rows.conversation[at], rows.place[at], codes, found_values)


def _of_cases(cases: _Cases, key: str, problems: Problems) -> _Texts:
    """Return the values of a member of test cases."""
    of_text = Problems()
    values = _value_texts(cases.members[key], of_text)
    _note_for_all(of_text, cases.code, cases.place, problems)
    return _Texts(cases.owner, cases.place, cases.code, values)


def _of_column(rows: Rows, column: str, problems: Problems) -> _Texts:
    """Return the cells of a column."""
    given = np.flatnonzero(rows[column].is_not_null().to_numpy())
    of_text, code = Problems(), np.arange(len(given))
    values = _cell_texts(rows[column][given], of_text)
    _note_for_all(of_text, code, rows.place[given], problems)
    return _Texts(rows.conversation[given], rows.place[given], code, values)


def _note_for_all(of_text: Problems, codes: Indices, places: Indices, problems: Problems) -> None:
    """Note the problems of distinct texts at every place of each."""
    for number, problem in of_text.by_dialogue.items():
        for place in places[codes == number].tolist():
            problems.by_dialogue.setdefault(place, problem)


def _first_texts(parts: list[_Texts], n_conversations: int) -> _Texts:
    """Choose each conversation's first text that is not null, and number the distinct ones."""
    chosen = [part.values.is_not_null().to_numpy()[part.code] for part in parts]
    shifts = np.cumsum([0, *(len(part.values) for part in parts)])
    owner, place, code = (
        np.concatenate(
            [getattr(part, name)[rows] for part, rows in zip(parts, chosen, strict=True)]
        )
        for name in ("owner", "place", "code")
    )
    code += np.repeat(shifts[:-1], [np.count_nonzero(rows) for rows in chosen])
    first = first_rows(owner, np.arange(len(owner)), n_conversations)
    numbers, values = factorize(pl.concat([part.values for part in parts]))
    of_each = np.append(numbers[code], -1)[first]
    codes, firsts = number_hashes((of_each + 1).astype(np.uint64))
    return _Texts(
        np.arange(n_conversations),
        np.append(place, -1)[first],
        codes,
        gather_or_null(values, of_each[firsts]),
    )


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


def _read_personas(persona: _Texts, file: PersonaFile, problems: Problems) -> Personas:
    """Read each distinct persona once: they are few."""
    codes, described = persona.code, persona.values
    names: list[str | None] = []
    attributes: list[Attributes | None] = []
    kinds: list[str] = []
    missing = np.zeros(len(described), np.bool_)
    for code, text in enumerate(described.to_list()):
        name, expected, fault = _read_persona(text, file)
        if fault is not None:
            for row in persona.place[codes == code].tolist():
                problems.by_dialogue.setdefault(row, fault)
        missing[code] = text is None or fault is not None
        names.append(name)
        attributes.append(expected)
        kinds.append(fallback_kind(text or ""))
    known = np.where(missing[codes], -1, codes)
    none = np.zeros(len(codes), np.bool_)
    return Personas(known, tuple(names), tuple(attributes), tuple(kinds), none)


def _read_persona(
    text: str | None, file: PersonaFile
) -> tuple[str | None, Attributes | None, Problem | None]:
    """Return a persona's name, what it lets expect, and what is wrong with it."""
    if text is None:
        return None, None, None
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


def _read_targets(target: _Texts, problems: Problems) -> Targets:
    """Find the list of items in each distinct target order, and read its names."""
    of_text = Problems()
    names, key = _read_target_lists(target.values.alias("target_order"), of_text)
    _note_for_all(of_text, target.code, target.place, problems)
    none = np.zeros(len(target.code), np.bool_)
    return Targets(names.shared(target.code), key[target.code], none)


def _read_target_lists(target: pl.Series, problems: Problems) -> tuple[Names, Indices]:
    """Return the names in target orders, and which of `TARGET_KEYS` holds each one's list."""
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
    names = read_lists(data, start[listed], end[listed], listed, option_first=True)
    bare = np.flatnonzero(values.tags == ARRAY)
    key[bare] = 0
    bare_names = read_lists(
        values.data, values.start[bare], values.end[bare], bare, option_first=True
    )
    for at in bare_names.broken.tolist():
        problem = Problem("target_order", "not_json", "a list that breaks off", _TARGET_EXPECTED)
        problems.by_dialogue.setdefault(at, problem)
    return join_names([names, bare_names]), key


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
    frames = {
        "conversations": labels.hstack(
            [
                *_sources(personas, targets, behaviours, orders),
                *_unread_states(files, n_conversations),
                *compared,
            ]
        ),
        "messages": _message_frame(messages, tools, behaviours, orders),
        "states": behaviours.states,
        "personas": _persona_frame(personas),
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
    names = pl.Series(personas.names or [None], dtype=pl.String)
    return pl.DataFrame(
        {
            "persona": gather_or_null(names, personas.code),
            "persona_code": personas.code,
            "persona_bad": personas.bad,
            "target_bad": targets.bad,
            "has_target": targets.key >= 0,
            "order_broken": orders.broken,
            "state_source": _names(STATE_SOURCES, behaviours.source),
            "order_source": _names(ORDER_SOURCES, orders.source),
        }
    )


def _unread_states(files: StateFiles | None, n_conversations: int) -> pl.DataFrame:
    """Say of whose states nothing is known: their file is missing, or cannot be used."""
    none = np.zeros(n_conversations, np.bool_)
    return pl.DataFrame(
        {
            "states_missing": none if files is None else files.missing,
            "states_bad": none if files is None else files.bad,
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
            "state": behaviours.code,
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

    def of(names: Names, owners: Mask) -> Names:
        return names.where(owners[names.conversation])

    both = compare_names(
        pl.concat([names_by_conversation(of(orders.names, ~by_text)), food_words(spoken)]),
        pl.concat(
            [target_names(of(targets.names, ~by_text)), item_words(of(targets.names, readable))]
        ),
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


def _persona_frame(personas: Personas) -> pl.DataFrame:
    """Return what each persona lets expect; null where it says nothing, for moods also of none."""
    expected = personas.attributes
    values = {
        f"expected_{name}": [each and getattr(each, name) for each in expected]
        for name in ("complete", "exploration", "ordering")
    }
    moods = [(each and each.moods and list(each.moods)) or None for each in expected]
    return pl.DataFrame(
        {
            "full_name": personas.names,
            "kind": personas.kinds,
            "PAS_source": [PAS_SOURCES[each is None] for each in expected],
            **values,
            "expected_moods": moods,
        },
        schema={
            "full_name": pl.String,
            "kind": pl.String,
            "PAS_source": pl.Enum(PAS_SOURCES),
            **dict.fromkeys(values, pl.String),
            "expected_moods": pl.List(pl.String),
        },
    )


def _order_problem(messages: Rows, at: int, source: int, files: StateFiles | None) -> Problem:
    field = (ORDER_COLUMN, "tool_calls")[source]
    cell = messages[field][at]
    found = repr(f"...{cell[-57:]}" if len(cell) > 60 else cell)
    place = "" if files is None else f"{files.place[at]}: "
    return Problem(field, "wrong_type", f"{place}{found}", _ORDER_EXPECTED)
