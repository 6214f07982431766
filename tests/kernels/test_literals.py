"""Members and lists of items in cells that no parser takes, against a plain reading of them."""

import numpy as np
import pytest
from fastscore_kernels.literals import (
    BARE_ITEM,
    FIELD,
    ITEM,
    MODIFIER,
    find_members,
    item_names,
    preceded_by,
)
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks import plain_guest_cells as plain

KEYS = ("name", "item", "modifiers", "tool_name")
TOKENS = (
    *"[]{}()'\"\\,:=", " ", "\n", "x", "5", "é", "null", "name", "item_name", "item", "modifiers",
    "modifier", "modifier_option_name", "Item(", "name='a'", "'name': 'b'", 'name="c"',
    "modifiers=[", "'modifiers': [{'name': 'q'}]", "\\'", "', ", "<Mood.CASUAL: 'casual'>",
    "tool_name",
)  # fmt: skip
cells = st.lists(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join), max_size=8)


def flat(texts):
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)])
    return np.frombuffer(b"".join(data), np.uint8), offsets.astype(np.int64)


def plain_names(cell, *, option_first):
    """List (kind, name) of a list of items; None where it breaks off."""
    try:
        items = plain.parse_items(cell, 0)
    except plain.MalformedError:
        return None
    options = ("name", "modifier_option_name", "modifier")
    if option_first:
        options = ("modifier_option_name", "name", "modifier")
    found = []
    for item in items:
        if isinstance(item, str):
            found.append((BARE_ITEM, item))
            continue
        found.append((ITEM, plain.first_text(item, ("name", "item_name", "item"))))
        found += [(MODIFIER, name) for name in plain.modifier_names(item, options)]
        found.append((FIELD, plain.first_text(item, ("modifier",))))
    return sorted((kind, name) for kind, name in found if name)


def names_of(texts, *, option_first=False, threads=1):
    data, offsets = flat(texts)
    found = item_names(data, offsets[:-1], offsets[1:], option_first=option_first, threads=threads)
    names = [[] for _ in texts]
    columns = (found.row, found.kind, found.start, found.end)
    for row, kind, start, end in zip(*(column.tolist() for column in columns), strict=True):
        names[row].append((kind, plain.unescape(data[start:end].tobytes().decode())))
    return [sorted(each) if end >= 0 else None for each, end in zip(names, found.ends, strict=True)]


def simple_values(data, found):
    """List the simple value of each member."""
    bounds = zip(found.start, found.end, strict=True)
    values = [data[start:end].tobytes().decode() for start, end in bounds]
    assert len(set(values)) == len(values)
    return [values[number] for number in found.simple]


@given(cells, st.booleans())
@example(["', 'x']", "name='Nonna's', q=1)]"], False)
def test_item_names_equal_the_oracle(texts, option_first):
    lists = [f"[{text}" for text in texts]
    expected = [plain_names(text, option_first=option_first) for text in lists]
    assert names_of(lists, option_first=option_first) == expected


@given(cells)
def test_members_equal_the_oracle(texts):
    data, offsets = flat(texts)
    found = find_members(data, offsets, [key.encode() for key in KEYS], threads=1)
    expected = [
        (row, KEYS.index(key), *(int(offsets[row]) + len(text[:at].encode()) for at in places))
        for row, text in enumerate(texts)
        for key, *places in plain.members(text)
        if key in KEYS
    ]
    columns = (found.row, found.key, found.at, found.value)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert simple_values(data, found) == [
        plain.scalar(text, value)
        for text in texts
        for key, _, value in plain.members(text)
        if key in KEYS
    ]


@given(cells)
def test_simple_values_equal_the_oracle(texts):
    data, offsets = flat([f"name={text}" for text in texts])
    found = find_members(data, offsets, [b"name"], threads=1)
    first = np.searchsorted(found.row, np.arange(len(texts)))
    values = simple_values(data, found)
    behind = [text[len(text) - len(text.lstrip(" \n")) :] for text in texts]
    assert [values[at] for at in first] == [plain.scalar(text, 0) for text in behind]


@given(cells, st.integers(0, 12))
def test_markers_equal_the_oracle(texts, reach):
    data, offsets = flat(texts)
    rows = [(row, at) for row, text in enumerate(texts) for at in range(len(text.encode()) + 1)]
    lows = np.array([offsets[row] for row, _ in rows], np.int64)
    places = lows + np.array([at for _, at in rows], np.int64)
    found = preceded_by(data, places, lows, b"name", reach=reach)
    assert found.tolist() == [
        b"name" in texts[row].encode()[max(0, at - reach) : at] for row, at in rows
    ]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("[]", []),
        ("[OrderItem(name='Cola', quantity=1)]", [(ITEM, "Cola")]),
        ("[OrderItem(name=\"Nonna's\", quantity=1)]", [(ITEM, "Nonna's")]),
        # the backslash before a quote was lost
        ("[OrderItem(name='Nonna's', quantity=1)]", [(ITEM, "Nonna's")]),
        ("[OrderItem(name='It's, well, good', quantity=1)]", [(ITEM, "It's, well, good")]),
        ("[OrderItem(name=\\'Cola\\', quantity=1)]", [(ITEM, "Cola")]),
        ("[OrderItem(name=\\'Nonna\\\\\\'s\\', quantity=1)]", [(ITEM, "Nonna's")]),
        ("[{'name': 'Tea (hot)', 'price': 1}]", [(ITEM, "Tea (hot)")]),
        ('[{"name": "a \\"b\\", \\"c\\"", "n": 1}]', [(ITEM, 'a "b", "c"')]),
        ('[{"name": "Caf\\u00e9"}]', [(ITEM, "Café")]),
        ("[Item(name='A', modifiers=[Modifier(modifier_type_name='T', modifier_option_name='B')])]",
         [(ITEM, "A"), (MODIFIER, "B")]),
        ("['A', {'name': 'B', 'modifiers': ['C', None]}]",
         [(ITEM, "B"), (BARE_ITEM, "A"), (MODIFIER, "C")]),
        ("[{'item': 'A', 'modifier': 'B', 'other': ['C'], 'more': {'name': 'D'}}]",
         [(ITEM, "A"), (FIELD, "B")]),
        ("[{'item': 'A', 'name': 'B'}]", [(ITEM, "B")]),
        ("[{'name': '', 'item': 'A'}]", [(ITEM, "A")]),
        ("[{'name': 'A'}] target=[{'name': 'B'}]", [(ITEM, "A")]),
        ("[{'name': 'A'}", None),
        ("[{'name': 'A", None),
        ("[", None),
    ],
)  # fmt: skip
def test_item_names_by_hand(cell, expected):
    assert names_of([cell]) == [expected]
    assert plain_names(cell, option_first=False) == expected


def test_names_do_not_depend_on_threads_or_neighbours():
    texts = [f"[Item(name='n{number}', modifiers=['m'])]" for number in range(9_000)]
    expected = [[(ITEM, f"n{number}"), (MODIFIER, "m")] for number in range(9_000)]
    assert names_of(texts, threads=2) == expected
    data, offsets = flat(texts)
    one, two = (find_members(data, offsets, [b"name"], threads=threads) for threads in (1, 2))
    assert one.at.tolist() == two.at.tolist()
    assert one.row.tolist() == list(range(9_000))


def test_members_by_hand():
    text = "x={'tool_name': \"a\", \\\"name\\\" : 5} rename=1 name\n=\t<Mood.SAD: 'sad'>"
    data, offsets = flat([text])
    found = find_members(data, offsets, [b"name", b"tool_name"])
    assert [text[at:].split("'")[0].split("\\")[0][:4] for at in found.at] == [
        "tool",
        "name",
        "name",
    ]
    assert simple_values(data, found) == ["a", "5", "SAD"]


def test_bad_arguments_are_named():
    data, offsets = flat(["[]"])
    with pytest.raises(ValueError, match="ASCII identifiers"):
        find_members(data, offsets, [b"a-b"])
    with pytest.raises(ValueError, match="distinct"):
        find_members(data, offsets, [b"a", b"a"])
    with pytest.raises(ValueError, match=r"ranges within 0 and 2"):
        item_names(data, [0], [3])
