"""Tool calls and lists of items in cells, against a plain reading of them one by one."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastscore_jit.arrow import text_rows
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.suites.guest_simulation.item_lists import (
    BARE_ITEM,
    FIELD,
    ITEM,
    MODIFIER,
    item_names,
    list_places,
)
from fastscore.suites.guest_simulation.tool_cells import read_tool_cells
from tests.oracles import guest_cells as plain

WORDS = (("order_tracking",), ("message_generation", "message_attributes"), ("get_name",))
ATTRIBUTES = (
    "is_ordering_complete=<IsOrderingComplete.NO: 'no'>",
    "'next_message_mood_tone': 'casual'",
    'next_message_mood_tone = "Casual"',
    "next_message_ordering_style=<OrderingStyle.ALL_AT_ONCE_AND_A_VERY_LONG_NAME_THAT_GOES_ON>",
    "next_message_menu_exploration_style : explores",
    "next_message_mood_tone=''",
)
TOKENS = (
    *"[]{}()'\"\\,:=", " ", "\n", "x", "_", "é", "tool_name", *plain.STATE_KEYS, *ATTRIBUTES,
    "'tool_name': 'update_order_tracking', ", "'tool_name': 'get_name_of_self', ",
    f'\\"tool_name\\": \\"{plain.ATTRIBUTES_TOOL}\\", ', "tool_name=x_message_attributes ",
    plain.MARKER, f"{plain.MARKER} : ", "current_items_in_order=[", "current_items_in_order=['a']",
    "target_items_to_order=", " target_items_to_order=[]", "current_items_in_order=None", "." * 70,
)  # fmt: skip
cells = st.lists(
    st.none() | st.lists(st.sampled_from(TOKENS), max_size=14).map("".join), max_size=8
)


def rows_of(texts):
    return text_rows("cells", pa.array(texts, pa.string_view()), nulls=True)


def cells_of(texts):
    return pl.Series("cells", texts, dtype=pl.String)


def plain_cell(cell):
    """Return the kinds of tools, the behaviour and the list of a cell, "broken" for a cut one."""
    names = plain.tool_names(cell)
    uses = [any(word in name for name in names for word in words) for words in WORDS]
    listed = []

    def noted(text, at):
        listed.append(text[at:])

    parse, plain.parse_items = plain.parse_items, noted
    try:
        plain.order_of_cell(cell)
    except plain.MalformedError:
        listed = ["broken"]
    finally:
        plain.parse_items = parse
    return uses, plain.behaviour_of_cell(cell), listed[0] if listed else None


def read_cell(texts):
    """Return the same of what the suite reads."""
    found = read_tool_cells(cells_of(texts), whole_cell=False)
    states, orders = found.states.rows(), found.orders
    read = []
    for row, text in enumerate(texts):
        parts = [part or "" for part in states[row]]
        start = int(orders.start[row])
        listed = (text or "").encode()[start:].decode() if start >= 0 else None
        assert not (orders.broken[row] and listed)
        if orders.broken[row]:
            listed = "broken"
        has_items = listed is not None and not listed[1:].lstrip(" \t\n\v\f\r").startswith("]")
        assert orders.has_items[row] == has_items
        read.append((found.uses[row].tolist(), plain.filled(parts), listed))
    return read


MOOD = f"next_message_mood_tone=sad {{}}'tool_name': '{plain.ATTRIBUTES_TOOL}', "
TRACKED = f"{plain.MARKER} : current_items_in_order=[1] target_items_to_order=[2] "


@given(cells)
@example([f"tool_name={plain.ATTRIBUTES_TOOL}", None, "", "'tool_name': 'update_order_tracking"])
@example(["tool_name=1 " * 100, None, "tool_name: 'x'"])  # more members than there is room for
@example([MOOD.format("is_ordering_complete=yes ") + "next_message_mood_tone=<Mood.CASUAL: 1>"])
@example([TRACKED, f"{TRACKED}{plain.MARKER} : current_items_in_order=[3] ", TRACKED * 2])
@example(["tool_name=order_tracking current_items_in_order=[ ] current_items_in_order=[4]"])
def test_cells_equal_the_oracle(texts):
    assert read_cell(texts) == [plain_cell(text or "") for text in texts]


@given(st.lists(st.none() | st.text(alphabet=' \t\n\v\r"[]x', max_size=8), max_size=8))
def test_lists_in_cells_equal_the_oracle(texts):
    begins, broken, has_items = list_places(rows_of(texts))
    for row, text in enumerate(texts):
        inner = (text or "").lstrip(" \t\n\v\f\r")
        if inner.startswith('"'):
            inner = inner[1:].lstrip(" \t\n\v\f\r")
        is_list = inner.startswith("[")
        assert begins[row] == (len(text) - len(inner) if is_list else -1)
        blank = not (text or "").strip() or not text.strip(' \t\r\n"')
        assert broken[row] == (not is_list and not blank)
        closed = inner[1:].lstrip(" \t\n\v\f\r").startswith("]")
        assert has_items[row] == ((is_list and not closed) or broken[row])


# --- lists of items in cells that no parser accepts


ITEM_TOKENS = (
    *"[]{}()'\"\\,:=", " ", "\n", "x", "5", "é", "null", "name", "item_name", "item", "modifiers",
    "modifier", "modifier_option_name", "Item(", "name='a'", "'name': 'b'", 'name="c"',
    "modifiers=[", "'modifiers': [{'name': 'q'}]", "\\'", "', ", "<Mood.CASUAL: 'casual'>",
    "tool_name",
)  # fmt: skip
HARD = [
    "]", "", "{'name': 'A'}", "{'name': 'A", "OrderItem(name=\"Nonna's\", quantity=1)]",
    "OrderItem(name='It's, well, good', quantity=1)]", "OrderItem(name=\\'Cola\\', quantity=1)]",
    "OrderItem(name=\\'Nonna\\\\\\'s\\', quantity=1)]", "{'name': 'Tea (hot)', 'price': 1}]",
    '{"name": "a \\"b\\", \\"c\\"", "n": 1}]', '{"name": "Caf\\u00e9"}]',
    "Item(name='A', modifiers=[Modifier(modifier_type_name='T', modifier_option_name='B')])]",
    "'A', {'name': 'B', 'modifiers': ['C', None]}]", "{'item': 'A', 'name': 'B'}]",
    "{'item': 'A', 'modifier': 'B', 'other': ['C'], 'more': {'name': 'D'}}]",
    "{'name': '', 'item': 'A'}]", "{'name': 'A'}] target=[{'name': 'B'}]",
]  # fmt: skip
item_cells = st.lists(st.lists(st.sampled_from(ITEM_TOKENS), max_size=30).map("".join), max_size=8)


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


@given(item_cells, st.booleans())
@example(["', 'x']", "name='Nonna's', q=1)]"], False)
@example(HARD, False)
@example(HARD, True)
def test_item_names_equal_the_oracle(texts, option_first):
    lists = [f"[{text}" for text in texts]
    expected = [plain_names(text, option_first=option_first) for text in lists]
    assert names_of(lists, option_first=option_first) == expected


def test_names_do_not_depend_on_neighbours():
    texts = [f"[Item(name='n{number}', modifiers=['m'])]" for number in range(9_000)]
    expected = [[(ITEM, f"n{number}"), (MODIFIER, "m")] for number in range(9_000)]
    assert names_of(texts) == expected


def test_bad_arguments_are_named():
    data, _ = flat(["[]"])
    with pytest.raises(ValueError, match=r"ranges within 0 and 2"):
        item_names(data, [0], [3])
