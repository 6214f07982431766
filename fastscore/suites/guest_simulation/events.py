"""From the rows of logs to conversations, guest messages, states and orders.

Roles of a test case, who the guest is to be and what it is to order, are in the log or in a file.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_readers.json.tokens import ARRAY, OBJECT
from polars import col as C

from fastscore.errors import InputError, UsageError, listed
from fastscore.settings.options import read_option_file
from fastscore.suites.base import Events
from fastscore.suites.grouping import factorize
from fastscore.suites.guest_simulation.item_lists import ITEM, MODIFIER
from fastscore.suites.guest_simulation.options import (
    GUEST_NAMES,
    GUEST_ROLES,
    ORA_SOURCES,
    ORDER_COLUMN,
    PAS_SOURCES,
    STATE_COLUMNS,
    STATE_SOURCES,
    STATE_WORDS,
    TOOL_COLUMNS,
    GuestSimulation,
)
from fastscore.suites.guest_simulation.schema import SOURCE
from fastscore.suites.guest_simulation.states import (
    FileFaults,
    column_states,
    has_part,
    with_orders,
    with_state_files,
    with_states,
)
from fastscore.suites.guest_simulation.tool_cells import (
    column_lists,
    compare_names,
    food_words,
    item_words,
    normal_names,
    overlaps,
    read_lists,
    read_tool_cells,
)
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.json_values import (
    LONGEST_EXCERPT,
    WHOLE_TEXT,
    JsonValues,
    Problem,
    Problems,
    column_values,
    either,
    members,
    texts,
    texts_between,
)

EXITS = tuple(map("".join, product("eE", "xX", "iI", "tT")))

_FOLDER_LEVEL = r"(?i)^(?:.*[/\\])?exp([0-9]{1,9})[/\\]"
_SUFFIXES = r"(?i)\.(?:csv|json|jsonl|ndjson|parquet)(?:\.(?:gz|zst))?$"
_TEST_CASE = r"_log_(.+_test_case_number_[0-9]+)$"

_HAS_GUEST_ROLE = C("role").is_in(GUEST_ROLES)
_SPEAKERS = {
    "has_guest_role": _HAS_GUEST_ROLE,
    "is_guest": _HAS_GUEST_ROLE.fill_null(False) | C("name").str.starts_with(GUEST_NAMES),
    "is_exit": C("content").is_in(EXITS),
    "is_case": (C("role") == "system") & (C("name") == "test_case_info"),
}
"""Whose row it is, and whether it is the word that ends a conversation, or a test case."""

MESSAGE_INDEX = (C("is_case").not_().cast(pl.Int64).cum_sum() - C("is_case").not_()).over(
    "conversation"
)
"""The place, from 0, of a message in its conversation. The row of a test case is none."""


def by_conversation(
    raw: pl.DataFrame, options: GuestSimulation
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give conversations, the rows of one file, id and level, numbers by their first rows.

    Returned are the log's rows, those of a conversation together, each with its ``place`` in the
    log, its ``conversation`` and `_SPEAKERS`; and a row a conversation with its labels.
    """
    begins = C(IDENTITY).ne_missing(C(IDENTITY).shift())
    rows = identify(raw, SOURCE).with_columns(
        *(is_so.fill_null(False).alias(name) for name, is_so in _SPEAKERS.items()),
        place=pl.int_range(pl.len()),
        begins=begins,
        run=begins.cum_sum(),
    )
    runs = rows.filter("begins")
    heads = runs.group_by(IDENTITY, maintain_order=True).agg(
        C("file", "line", "conversation_id", "experiment_level").first(),
        C("test_case", "model").first(ignore_nulls=True),
        "run",
    )
    refuse_blank_ids(heads, "conversation_id")
    numbers = heads.select("run", conversation=pl.int_range(pl.len())).explode("run")
    rows = rows.join(numbers, on="run", maintain_order="left").drop("begins", "run")
    if len(runs) != len(heads):
        rows = rows.sort("conversation", maintain_order=True)
    _refuse_several_models(rows)
    return rows, _labels(heads, options)


def _refuse_several_models(rows: pl.DataFrame) -> None:
    """Refuse a conversation in which one side has several models: these are several."""
    if rows["model"].drop_nulls().n_unique() < 2:
        return
    # the guest and those who answer may each have a model of their own
    side = ["conversation", "is_guest"]
    several = rows.drop_nulls("model").filter(C("model").n_unique().over(side) > 1)
    if several.is_empty():
        return
    of_side = several.join(several.head(1), on=side, how="semi", maintain_order="left")
    file, line, name = (
        of_side.filter(C("model") != C("model").first())
        .select("file", "line", "conversation_id")
        .row(0)
    )
    raise InputError(
        f"{file}:{line}: model: several in the conversation{f' {name}' if name else ''}: "
        f"{listed(of_side['model'].unique(maintain_order=True).to_list(), 3)}.",
        "Name the key of the model (`--column model=KEY`) if each is a conversation of its own, or "
        "leave the key out.",
    )


def _labels(heads: pl.DataFrame, options: GuestSimulation) -> pl.DataFrame:
    """Give conversations their names, levels and test cases."""
    files = heads.select(C("file").unique()).with_columns(
        stem=C("file").str.extract(r"([^/\\]*)$").str.replace(_SUFFIXES, ""),
        folder=C("file").str.extract(_FOLDER_LEVEL).cast(pl.Int64),
    )
    # several of a file without an id are named by their places
    several = pl.len().over("file", "conversation_id", "experiment_level") > 1
    return (
        heads.join(files, on="file", maintain_order="left")
        .with_columns(
            conversation_id=pl.coalesce("conversation_id", pl.when(several).then(IDENTITY), "stem"),
            experiment_level=pl.coalesce(
                "experiment_level", "folder", pl.lit(options.level or None, pl.Int64)
            ),
        )
        .select(
            "file",
            "line",
            C(IDENTITY).alias("dialogue"),
            "conversation_id",
            "experiment_level",
            pl.coalesce(
                "test_case", C("conversation_id").str.extract(_TEST_CASE), "conversation_id"
            ),
            "model",
        )
    )


VOCABULARIES = {
    "is_ordering_complete": STATE_WORDS["is_ordering_complete"],
    "next_message_menu_exploration_style": STATE_WORDS["menu_exploration_style"],
    "next_message_ordering_style": STATE_WORDS["ordering_style"],
}
MOODS = STATE_WORDS["mood_tone"]
_MOOD_KEYS = ("next_message_mood_tones", "next_message_mood_tone")
TARGET_KEYS = ("items", "target_order", "order_items")
"""Where a target order has its list of items; the first that is present counts."""

FALLBACKS = (
    ("busy", ("busy professional", "efficient")),
    ("curious", ("curious", "explorer", "adventurous")),
    ("indecisive", ("indecisive", "uncertain")),
    ("group", ("family", "group")),
)
"""Kinds of personas by what their description contains; the first that fits counts."""


CASE_PARTS = ("guest_persona", "target_order")
"""The parts of a test case."""


class Attributes(NamedTuple):
    """The states that a persona lets expect; None where it says nothing, or expects any mood."""

    complete: str
    exploration: str | None
    ordering: str | None
    moods: list[str] | None


@dataclass(frozen=True, slots=True)
class PersonaFile:
    """Attributes by full name; and each ``test_case``, its `CASE_PARTS` as JSON texts."""

    attributes: Mapping[str, Attributes]
    test_cases: pl.DataFrame


def load_personas(path: str) -> PersonaFile:
    """Read a file of personas."""
    if not path:
        return PersonaFile({}, _case_frame({}))
    try:
        content = read_option_file(path)
    except OSError as error:
        raise UsageError(f"personas {path}: cannot be read: {error.strerror}.") from error
    return _parse(path, content)


@cache
def _parse(path: str, content: bytes) -> PersonaFile:
    try:
        table = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}.") from error
    if not isinstance(table, dict) or not table.keys() & {"persona_attributes", "test_cases"}:
        raise UsageError(
            f"{path}: the file is {_shown(table)}, expected an object with persona_attributes or "
            "test_cases."
        )
    attributes: dict[str, Attributes] = {}
    for place, entry in _entries(path, table, "persona_attributes"):
        name = _text(path, entry, place, "full_name")
        if name in attributes:
            raise _error(path, f"{place}.full_name", name, "a name of its own")
        described = entry.get("message_generation_attributes")
        try:
            attributes[name] = read_attributes(described)
        except AttributeFault as fault:
            raise UsageError(
                f"{path}: {place}.message_generation_attributes{fault.path} is {fault.found}, "
                f"expected {fault.expected}."
            ) from fault
    cases: dict[str, tuple[str | None, ...]] = {}
    for place, entry in _entries(path, table, "test_cases"):
        name = _text(path, entry, place, "test_case")
        if name in cases:
            raise _error(path, f"{place}.test_case", name, "an id of its own")
        for part in CASE_PARTS:
            if not isinstance(entry.get(part), dict | None):
                raise _error(path, f"{place}.{part}", entry[part], "an object")
        target = entry.get("target_order") or {}
        for key in TARGET_KEYS:
            if not isinstance(target.get(key), list | None):
                raise _error(path, f"{place}.target_order.{key}", target[key], "a list")
        cases[name] = tuple(_json(path, f"{place}.{part}", entry.get(part)) for part in CASE_PARTS)
    return PersonaFile(attributes, _case_frame(cases))


def _case_frame(cases: Mapping[str, tuple[str | None, ...]]) -> pl.DataFrame:
    schema = dict.fromkeys(("test_case", *CASE_PARTS), pl.String)
    return pl.DataFrame([(name, *parts) for name, parts in cases.items()], schema, orient="row")


class AttributeFault(Exception):
    """A value of a persona's attributes that is outside its vocabulary.

    The path of its key is after a full stop, and empty for the attributes themselves.
    """

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path, self.found, self.expected = path, found, expected


def read_attributes(described: Any) -> Attributes:
    """Read a persona's ``message_generation_attributes``."""
    if not isinstance(described, dict):
        raise AttributeFault("", _shown(described), "an object")
    values = {
        key: _of(described.get(key), key, vocabulary) for key, vocabulary in VOCABULARIES.items()
    }
    mood_key = next((key for key in _MOOD_KEYS if described.get(key) is not None), _MOOD_KEYS[0])
    moods = described.get(mood_key) or []
    known = [_of(mood, mood_key, MOODS) for mood in (moods if isinstance(moods, list) else [moods])]
    return Attributes(
        complete=values["is_ordering_complete"] or "no",
        exploration=values["next_message_menu_exploration_style"],
        ordering=values["next_message_ordering_style"],
        moods=[mood for mood in known if mood] or None,
    )


def fallback_kind(description: str) -> str:
    """Name the kind of persona that a description is of; ``other`` where nothing fits."""
    text = description.lower()
    return next((kind for kind, words in FALLBACKS if any(word in text for word in words)), "other")


def _of(value: Any, key: str, vocabulary: tuple[str, ...]) -> str | None:
    if value is None or value == "":
        return None
    known = value.strip().lower() if isinstance(value, str) else value
    if known not in vocabulary:
        raise AttributeFault(f".{key}", _shown(value), " or ".join(vocabulary))
    return str(known)


def _entries(path: str, table: Mapping[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    entries = table.get(key, [])
    if not isinstance(entries, list):
        raise _error(path, key, entries, "a list of objects")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise _error(path, f"{key}[{number}]", entry, "an object")
    return [(f"{key}[{number}]", entry) for number, entry in enumerate(entries)]


def _text(path: str, entry: Mapping[str, Any], place: str, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise _error(path, f"{place}.{key}", value, "a text that is not empty")
    if not is_whole(value):
        raise _error(path, f"{place}.{key}", value, WHOLE_TEXT)
    return value


def is_whole(text: str) -> bool:
    """Tell whether a text can be written: it has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json(path: str, key: str, value: Any) -> str | None:
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False)
    if not is_whole(text):
        raise _error(path, key, value, WHOLE_TEXT)
    return text


def _shown(value: Any) -> str:
    return f"{value!r:.80}"


def _error(path: str, key: str, found: Any, expected: str) -> UsageError:
    return UsageError(f"{path}: {key} is {_shown(found)}, expected {expected}.")


_ABSENT = ("", "null", "none", "nan")
_LONGEST_ABSENT = max(map(len, _ABSENT))
_CASE_EXPECTED = "a JSON object with guest_persona and target_order"
_PERSONA_EXPECTED = "a JSON object that describes the persona, or its full name"
_TARGET_EXPECTED = "a JSON object that holds a list of items"


def read_test_cases(
    rows: pl.DataFrame, labels: pl.DataFrame, file: PersonaFile
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, Problems]:
    """Read the test case of every conversation: its own row's, else a column's, else the file's.

    Returned are what is known of each conversation's persona and target, the personas, the names in
    targets (`read_lists`), and problems.
    """
    of_case, of_part = Problems(), {part: Problems() for part in CASE_PARTS}
    cases = _read_cases(rows, of_case, of_part)
    # those of the file have no place in the log
    filed = (
        labels.select("test_case", conversation=pl.int_range(pl.len()), place=-1)
        .join(file.test_cases, on="test_case", maintain_order="left")
        .cast({"place": pl.Int64})
    )
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
        for part in CASE_PARTS
    }
    persona, personas = _read_personas(texts["guest_persona"], file, of_part["guest_persona"])
    names, targets = _read_targets(texts["target_order"], of_part["target_order"])
    problems = Problems({})
    for of in (of_case, *of_part.values()):
        for place, problem in of.by_dialogue.items():
            # a problem of a text from the file has no row
            if place >= 0:
                problems.by_dialogue.setdefault(place, problem)
    bad = {
        part: C("conversation").is_in(
            rows.filter(C("place").is_in([*of_case.by_dialogue, *of.by_dialogue]))["conversation"]
            .unique()
            .implode()
        )
        for part, of in of_part.items()
    }
    known = (
        labels.select(conversation=pl.int_range(pl.len()))
        .join(persona, on="conversation", how="left", maintain_order="left")
        .join(
            personas.select("persona_code", persona="full_name"),
            on="persona_code",
            how="left",
            maintain_order="left",
        )
        .join(targets, on="conversation", how="left", maintain_order="left")
        .with_columns(
            C("persona_code").fill_null(-1),
            has_target=C("target_key").is_not_null(),
            persona_bad=bad["guest_persona"],
            target_bad=bad["target_order"],
        )
    )
    return known, personas, names, problems


def _read_cases(
    rows: pl.DataFrame, of_case: Problems, of_part: dict[str, Problems]
) -> pl.DataFrame:
    """Read the JSON of the rows that hold test cases, the first of each conversation.

    A test case runs at every level, so that each distinct text is read once.
    """
    cases = (
        rows.filter("is_case")
        .unique("conversation", keep="first", maintain_order=True)
        .select("conversation", "place", "content")
    )
    places = cases["place"].to_numpy()
    codes, contents = factorize(cases["content"])
    values = column_values(contents)
    of_text = Problems()
    for number in np.flatnonzero(values.tags != OBJECT).tolist():
        found = f"{contents[number] or '':.{LONGEST_EXCERPT}}"
        of_text.by_dialogue[number] = Problem("content", "wrong_type", repr(found), _CASE_EXPECTED)
    found_values = members(values.where(values.tags == OBJECT), CASE_PARTS, of_text)
    _note_for_all(of_text, codes, places, of_case)
    columns = {}
    for part, of_texts in found_values.items():
        of_text = Problems()
        columns[part] = _value_texts(of_texts, of_text)[codes]
        _note_for_all(of_text, codes, places, of_part[part])
    return cases.with_columns(**columns)


def _read_cells(rows: pl.DataFrame, column: str, problems: Problems) -> pl.DataFrame:
    """Return the cells of a column that are not null."""
    given = rows.drop_nulls(column).select("conversation", "place", text=column)
    of_text = Problems()
    text = _cell_texts(given["text"].rename(column), of_text)
    _note_for_all(of_text, np.arange(len(given)), given["place"].to_numpy(), problems)
    return given.with_columns(text=text)


def _note_for_all(of_text: Problems, codes: Indices, places: Indices, problems: Problems) -> None:
    """Note the problems of distinct texts at every place of each."""
    rows = np.flatnonzero(np.isin(codes, list(of_text.by_dialogue)))
    for code, place in zip(codes[rows].tolist(), places[rows].tolist(), strict=True):
        problems.by_dialogue.setdefault(place, of_text.by_dialogue[code])


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
    start = found.str.strip_chars().str.head(_LONGEST_ABSENT + 1)
    absent = start.str.to_lowercase().is_in(_ABSENT)
    return found.set(absent, None)


def _read_personas(
    texts: pl.DataFrame, file: PersonaFile, problems: Problems
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read each distinct persona once: they are few. Those that cannot be read are nobody's."""
    codes, described = factorize(texts["text"])
    read = [_read_persona(text, file) for text in described]
    faults = Problems({code: fault for code, (_, _, fault) in enumerate(read) if fault is not None})
    _note_for_all(faults, codes, texts["place"].to_numpy(), problems)
    of_conversation = texts.select("conversation", persona_code=pl.Series(codes))
    rows = [
        (
            code,
            name,
            fallback_kind(text),
            PAS_SOURCES[expected is None],
            *(expected or (None,) * len(Attributes._fields)),
        )
        for code, (text, (name, expected, _)) in enumerate(zip(described, read, strict=True))
    ]
    return (
        of_conversation.filter(~C("persona_code").is_in(list(faults.by_dialogue))),
        pl.DataFrame(rows, _OF_PERSONAS, orient="row"),
    )


_OF_PERSONAS: dict[str, Any] = {
    "persona_code": pl.Int64,
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


def _read_targets(texts: pl.DataFrame, problems: Problems) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Find the list of items in each distinct target order, and read its names.

    ``target_key`` says which of `TARGET_KEYS` has a conversation's list, the first for a target
    that is a list itself.
    """
    codes, orders = factorize(texts["text"].alias("target_order"))
    of_text = Problems()
    names, key = _read_target_lists(orders, of_text)
    _note_for_all(of_text, codes, texts["place"].to_numpy(), problems)
    owners = texts.select("conversation", text=pl.Series(codes)).sort("conversation")
    shared = owners.join(names, on="text", maintain_order="left_right")
    found = texts.select("conversation", target_key=pl.Series(key[codes]))
    return shared.drop("text"), found.filter(C("target_key") >= 0)


def _read_target_lists(target: pl.Series, problems: Problems) -> tuple[pl.DataFrame, Indices]:
    """Return the names in each target order (`text`), and which of `TARGET_KEYS` has its list."""
    values = column_values(target)
    other = (values.tags != OBJECT) & (values.tags != ARRAY) & ~values.is_missing
    for at in np.flatnonzero(other).tolist():
        excerpt = f"{target[at]:.{LONGEST_EXCERPT}}"
        problem = Problem("target_order", "wrong_type", repr(excerpt), _TARGET_EXPECTED)
        problems.by_dialogue.setdefault(at, problem)
    # a target is a list itself, or has one under the first of the keys that is present
    of_keys = members(values.where(values.tags == OBJECT), TARGET_KEYS, problems)
    key, lists = np.zeros(len(target), np.int64), values.where(values.tags == ARRAY)
    for number, of_key in enumerate(of_keys.values()):
        key = np.where(lists.is_missing, number, key)
        lists = either(lists, of_key, ~lists.is_missing)
    is_list = lists.tags == ARRAY
    problems.note(lists, np.flatnonzero(~is_list & ~lists.is_missing), "an array of items")
    listed = np.flatnonzero(is_list)
    names, broken = read_lists(
        lists.data, lists.start[listed], lists.end[listed], listed, option_first=True
    )
    for at in broken[values.tags[broken] == ARRAY].tolist():
        problem = Problem("target_order", "not_json", "a list that breaks off", _TARGET_EXPECTED)
        problems.by_dialogue.setdefault(at, problem)
    return names.rename({"conversation": "text"}), np.where(is_list, key, -1)


_MESSAGE_COLUMNS = (
    *("conversation", "place", "line", "message_id", "has_guest_role", "is_exit", "content"),
    *("tool_calls", *STATE_COLUMNS, ORDER_COLUMN),
)
_ORDER_EXPECTED = "a whole list of items; of a tracking result both of its lists"


def read_events(raw: pl.DataFrame, options: GuestSimulation) -> Events:
    """Read messages."""
    published = options.published
    rows, labels = by_conversation(raw, options)
    known, personas, targets, problems = read_test_cases(
        rows, labels, load_personas(options.personas)
    )
    is_message = C("is_guest") & ~C("is_case")
    faults = FileFaults()
    if options.states_from:
        messages = rows.with_columns(message_index=MESSAGE_INDEX).filter(is_message)
        messages = messages.select(*_MESSAGE_COLUMNS, "message_index")
        messages, faults = with_state_files(messages, options.states_from, labels)
        _note_file_faults(messages, faults, problems)
    else:
        messages = rows.filter(is_message).select(_MESSAGE_COLUMNS)
    tools = read_tool_cells(messages["tool_calls"], whole_cell=published)
    of_columns = column_states(messages, published=published)
    column_orders = column_lists(messages[ORDER_COLUMN], published=published)
    # of a conversation whose file cannot be read, no message is taken for the default
    has_row = C("state_place").is_not_null() | C("is_unread")
    if not options.states_from:
        has_row = pl.lit(has_part(of_columns) | pl.Series(column_orders.present))
    messages = messages.with_columns(
        has_state_row=has_row,
        **{name: tools.uses[:, kind] for kind, name in enumerate(TOOL_COLUMNS)},
    )
    messages = with_states(messages, rows, of_columns, tools.states, targets, options)
    lists = {"columns": column_orders, "tools": tools.orders}
    messages, finals, ordered = with_orders(messages, lists, options)
    for row in messages.filter("order_fault").to_dicts():
        problems.by_dialogue.setdefault(row["place"], _order_problem(row))
    sources = messages.group_by("conversation").agg(
        state_source=C("states_of").first(), order_source=C("orders_of").first()
    )
    known = (
        known.join(finals, on="conversation", how="left", maintain_order="left")
        .join(sources, on="conversation", how="left", maintain_order="left")
        .with_columns(
            C("state_source")
            .fill_null(options.forced_source or "heuristic")
            .cast(pl.Enum(STATE_SOURCES)),
            C("order_broken").fill_null(False),
            by_text=C("order_broken").is_null() & C("has_target"),
            states_missing=C("conversation").is_in(list(faults.missing)),
            states_bad=C("conversation").is_in(list(faults.bad)),
        )
    )
    names, compared = _compare(messages, known, targets, ordered, options)
    frames = {
        "conversations": labels.hstack(compared),
        "messages": messages,
        "personas": personas,
        "names": names,
    }
    return Events(
        frames,
        problems.rejects(raw),
        {"conversations": len(labels), "messages": len(messages)},
        nulls_are_empty=published,
        n_units=len(messages),
    )


def _note_file_faults(messages: pl.DataFrame, faults: FileFaults, problems: Problems) -> None:
    """Note what is wrong with a conversation's file at its first guest message that has no fault.

    A row holds one fault, and the log may have one of its own there.
    """
    found = faults.missing | faults.bad
    faulty = messages.filter(C("conversation").is_in(list(found)))
    places_of = faulty.group_by("conversation", maintain_order=True).agg("place")
    for conversation, places in places_of.iter_rows():
        problem = found[conversation]
        free = (place for place in places if place not in problems.by_dialogue)
        problems.by_dialogue[next(free, places[0])] = problem


def _order_problem(message: dict[str, Any]) -> Problem:
    field = ORDER_COLUMN if message["order_source"] == "columns" else "tool_calls"
    cell, place = message[field], message.get("state_place")
    found = repr(f"...{cell[-57:]}" if len(cell) > 60 else cell)
    shown = f"{place}: {found}" if "state_place" in message else found
    return Problem(field, "wrong_type", shown, _ORDER_EXPECTED)


def _compare(
    messages: pl.DataFrame,
    known: pl.DataFrame,
    targets: pl.DataFrame,
    ordered: pl.DataFrame,
    options: GuestSimulation,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare what was ordered with the target: the final orders, or else the guest's words.

    Returned are the names, and what they say of each conversation.
    """
    by_text = known.filter("by_text").select("conversation")
    readable = by_text
    if options.published:
        order_items = TARGET_KEYS.index("order_items")
        readable = known.filter(C("by_text") & (C("target_key") != order_items))
    guest = messages.filter("has_guest_role").select("conversation", "content")
    spoken = guest.join(by_text, on="conversation", how="semi", maintain_order="left")
    items = targets.filter(C("kind").is_in([ITEM, MODIFIER]))  # no bare texts

    def by_lists(names: pl.DataFrame) -> pl.DataFrame:
        lists = names.join(by_text, on="conversation", how="anti", maintain_order="left")
        return normal_names(lists)

    words = item_words(items.join(readable, on="conversation", how="semi", maintain_order="left"))
    both = compare_names(
        pl.concat([by_lists(ordered), food_words(spoken)]), pl.concat([by_lists(items), words])
    )
    said = guest.group_by("conversation").agg(has_content=C("content").is_not_null().any())
    n_names = C("n_final_names") + C("n_target_names")
    by_words = C("by_text") & C("has_content").is_not_null()
    return both, (
        known.join(said, on="conversation", how="left", maintain_order="left")
        .join(overlaps(both), on="conversation", how="left", maintain_order="left")
        .with_columns(C("^n_.*$").fill_null(0))
        .with_columns(
            ORA_source=pl.when(C("by_text"))
            .then(pl.lit("text"))
            .when("has_target")
            .then(pl.lit("states"))
            .cast(pl.Enum(ORA_SOURCES)),
            # a missing message is unknown, but in the profile published it is empty
            words_missing=by_words & ~C("has_content") & (not options.published),
            nothing_to_order=(C("by_text") & C("has_content").is_null()) | (n_names == 0),
        )
    )
