"""Words and cells: normal forms, tokens, rooms, conflicts, theory, and the values of cells."""

import ast
import hashlib
import json
import warnings

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.run.signature import signature
from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.group_travel.catalogue import (
    as_flag,
    as_text,
    parse_cell,
    parse_cells,
)
from fastscore.suites.group_travel.lexicon import (
    load_lexicon,
    names_conflict,
    normalise,
    quotes_theory,
    wanted_rooms,
)
from tests.oracles import group_travel_logs as oracle
from tests.oracles import group_travel_words as plain
from tests.suites.group_travel.odd_dialogues import phrases
from tests.suites.group_travel.travelling import dialogue, turn
from tests.suites.reading import changed_lexicon, lexicon_of

WORDS = load_lexicon()


# each text with what the definitions say of it
SAID = [
    # normal forms
    "Alexander’s Tavern", "Café d'Orsay & Bar, Paris", "  STRASSE\tStraße ", "ﬁne № 5",
    "हिन्दी खाना", "各种菜", "--", "",
    # rooms that are wanted
    "private room rather than a shared room", "not a shared room", "Anything but hostels",
    "We don't want to share a room; an entire home is best", "close to downtown",
    "entire apartments, or separate rooms", "a place to ourselves or our own room",
    "no private room or shared room", "no entire home, no private room and no dorm",
    "we share room and board", "not too far, but a private bedroom",
    "instead of any old hostel, whole villas",
    # conflicts that are named
    "We differ on food", "There is a CONFLICT here", "no conflict here", "Conflict : none",
    "Conflict: no conflict among you", "no conflict: but we differ", "indifferent",
    "There is not any real difference", "not for one second is it balanced", "no_conflict",
    "without a doubt, opinions diverge", "don't worry, conflicting wishes", "We_differ",
    "No conflict or disagreement", "a trade-off", "a tradeoff and the middle ground",
    "anything but a compromise",
    # theory that is quoted
    "We can include both cuisines", "include-both rule", "self select principle", "½ u_s!",
    "Self-Selection rule", "log-rolling across days", "Strategy: least_misery.", "½u_s", "u_s½",
    "parental  authority", "parent budget hc", "the parents decide", "apparent authority",
    "sub-groups split up", "intergenerational fairness", "generational wealth", "nash", "gnash",
    "Higher pref with compensation principle", "a snake_case word", "Borda counts",
]  # fmt: skip


@example(SAID)
@given(st.lists(st.none() | st.text(max_size=20), max_size=5))
def test_normal_texts(texts):
    expected = [None if text is None else plain.norm(text) for text in texts]
    assert normalise(pl.Series(texts, dtype=pl.String)).to_list() == expected


@example(SAID)
@given(st.lists(phrases(), max_size=5))
def test_texts_are_read_as_the_definitions_say(texts):
    column = pl.Series(texts, dtype=pl.String)
    assert wanted_rooms(column, WORDS).to_list() == [sorted(plain.wanted_rooms(t)) for t in texts]
    assert names_conflict(column, WORDS).to_list() == [*map(plain.speaks_of_conflict, texts)]
    quoted = [plain.THEORY.search(text) is not None for text in texts]
    assert quotes_theory(column, WORDS).to_list() == quoted


def test_a_lexicon_of_ones_own(tmp_path):
    path = changed_lexicon(
        "group_travel", tmp_path, "'least misery',", "'least misery', 'seafood',"
    )
    turns = [turn("System", "sys_present_plan", "Seafood!")]
    assert dialogue(*turns)["M4b"] == 0.0
    row = dialogue(*turns, options=GroupTravel(lexicon=path))
    assert (row["M4b"], row["lexicon_version"]) == (1.0, "1")


def test_the_signature_has_the_hash_of_the_words(tmp_path):
    def signed(path):
        return signature(SUITE, GroupTravel(lexicon=path), None)

    # the built-in file by its content, as any other
    digest = hashlib.blake2b(lexicon_of("group_travel").read_bytes(), digest_size=8).hexdigest()
    assert f"|lexicon=blake2b:{digest}|" in signed("")
    assert signed("") == signed(str(lexicon_of("group_travel")))
    assert signed("") != signed(changed_lexicon("group_travel", tmp_path, "'least misery',", ""))


# --- cells


TEXTS = st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab") | TEXTS | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
STRANGE = [
    *("", " ", "nan", '"nan"', "None", "{}", "[]", "-", "()", "{1, 2}", "text", "'text'", "1"),
    *('"[1]"', '{"a": 1, "a": [2]}', "{'a': 1, 'a': {}}", "[1, {2}]", "[1", "{'a': b'x'}", "NaN"),
    *('{"a": ' + " " * 80 + "}", " " * 80 + "[]", " " * 80 + '"', '["\\u00e9"]', "['\\u00e9']"),
    "\ufeff[1]",
]
CELLS = st.sampled_from(STRANGE) | VALUES.flatmap(
    lambda value: st.sampled_from(
        [repr(value), json.dumps(value), json.dumps(json.dumps(value)), json.dumps(value, indent=1)]
    )
)


def json_value(value):
    """Return a value in the types of JSON; what JSON has no type for is an empty object."""
    if isinstance(value, dict):
        return {plain_key(key): json_value(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(below) for below in value]
    return value if value is None or isinstance(value, bool | int | float | str) else {}


def plain_key(key):
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: "null"}[key]
    return key if isinstance(key, str) else repr(key)


@given(CELLS)
def test_a_cell_is_what_the_oracle_reads(cell):
    expected = oracle.parse_cell(cell)
    # a cell in quotes is a cell again, once
    if isinstance(expected, str) and expected != cell:
        inner = oracle.parse_cell(expected)
        expected = expected if isinstance(inner, str) and inner == expected.strip() else inner
    if isinstance(expected, str) and expected == cell.strip():
        expected = cell
    assert repr(parse_cell(cell)) == repr(json_value(expected))


NEARLY_JSON = [
    *(r"""['it', "it's"]""", r"""['a"b', 'c']""", "['a' 'b']", "['''a''']", "['a', u'b', r'\n']"),
    *(r"['\n\t\\']", r"['\'']", r"['\/', '\x41', '\u0041']", r"""['a', "\""]""", "['a\tb']"),
    *("['a', None, True, False]", "['None, ', None]", "['x: None', None]", "['a', None 'b', 1]"),
    *("['a', true]", "['a', null]", "['true', 1]", "['a', 1_0]", "['a', 01]", "['a', .5, 1.]"),
    *("['a', 1e400]", "['a', -0, -0.0]", "['a', 18446744073709551617]", "['a', (1, 2)]"),
    *("['a', {1}]", "['a', {1: 2}]", "{'a': 1, 'a': 2}", "['a', 1,]", "['a' # b\n]", "['a']]"),
    *("['a', " + "[" * depth + "]" * depth + "]" for depth in (80, 150, 250, 2000)),
    *('[["a", ' + "1" * 30 + "]]", r'["\ud800"]', r'["\ud83d\ude00"]', r"['\ud83d\ude00']"),
    *("'[1]'", "\"['a']\"", "''", "['']", "[{}]", "[[], '']", "[NaN, 'a']", "['a', nan]"),
]


@example(NEARLY_JSON)
@given(st.lists(CELLS | st.text("'\"\\,:[]{}() \n1en", max_size=12).map("['".__add__)))
def test_cells_are_read_together_as_one_by_one(cells):
    read = parse_cells(pl.Series(cells, dtype=pl.String))
    assert repr(list(read)) == repr([parse_cell(cell) for cell in cells])


def test_a_lone_surrogate_and_numbers_without_end():
    assert parse_cell('{"a\\ud800": "x\\ud800", "b": "\\ud83d\\ude00"}') == {
        "a\ufffd": "x\ufffd",
        "b": "😀",
    }
    assert parse_cell("['x\\ud800']") == ["x\ufffd"]
    many = "1" * 5000
    read = parse_cell(f'{{"a": {many}, "b": 5}}')
    assert (as_text(read["a"]), read["b"]) == (many, 5)
    assert as_flag(read["a"]) is False


ESCAPING = st.text("\\/'\"rbN{}u04719x#\n d", max_size=9)


@given(st.lists(ESCAPING, min_size=1), st.sampled_from(("", "r", "b", "u", "Rb")))
def test_literals_with_any_escapes_are_what_python_evaluates(texts, prefix):
    literal = "[" + ", ".join(f"{prefix}'{text}'" for text in texts) + "]"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = json_value(ast.literal_eval(literal))
        except (SyntaxError, ValueError):
            expected = literal
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_cell(literal) == expected


def test_keys_of_literals_are_those_of_json():
    cell = "{1: 'a', True: 'b', None: (1, {2}), (3,): 'c', 2.5: b'x'}"
    assert parse_cell(cell) == {"1": "b", "null": [1, {}], "2.5": {}}
