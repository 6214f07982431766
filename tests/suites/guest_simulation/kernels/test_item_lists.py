"""Lists of items in cells that no parser accepts, against a plain reading of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.suites.guest_simulation.item_lists import (
    BARE_ITEM,
    FIELD,
    ITEM,
    MODIFIER,
    item_names,
)
from tests.oracles import guest_cells as plain

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


def names_of(texts, *, option_first=False):
    data, offsets = flat(texts)
    found = item_names(data, offsets[:-1], offsets[1:], option_first=option_first)
    names = [[] for _ in texts]
    columns = (found.row, found.kind, found.start, found.end)
    for row, kind, start, end in zip(*(column.tolist() for column in columns), strict=True):
        names[row].append((kind, plain.unescape(data[start:end].tobytes().decode())))
    return [sorted(each) if end >= 0 else None for each, end in zip(names, found.ends, strict=True)]


@given(cells, st.booleans())
@example(["', 'x']", "name='Nonna's', q=1)]"], False)
def test_item_names_equal_the_oracle(texts, option_first):
    lists = [f"[{text}" for text in texts]
    expected = [plain_names(text, option_first=option_first) for text in lists]
    assert names_of(lists, option_first=option_first) == expected


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


def test_names_do_not_depend_on_neighbours():
    texts = [f"[Item(name='n{number}', modifiers=['m'])]" for number in range(9_000)]
    expected = [[(ITEM, f"n{number}"), (MODIFIER, "m")] for number in range(9_000)]
    assert names_of(texts) == expected


def test_bad_arguments_are_named():
    data, _ = flat(["[]"])
    with pytest.raises(ValueError, match=r"ranges within 0 and 2"):
        item_names(data, [0], [3])
