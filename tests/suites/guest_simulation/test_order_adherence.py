"""Order restriction adherence (ORA), worked by hand."""

import json
from typing import Any

import pytest

from tests.suites.guest_simulation.guests import (
    ADA,
    case,
    dialogue,
    guest,
    items,
    restaurant,
    state,
)


def ora(current: Any, target: Any, **options: Any) -> Any:
    rows = (state(current_items_in_order=current), case(ADA, order={"order_items": target}))
    return dialogue(*rows, **options)["ORA"]


@pytest.mark.parametrize(
    ("current", "target", "value"),
    [
        (items("Cola"), items("cola"), 1.0),
        (items("Cola"), items("Soup"), 0.0),
        # c = t = 2, k = 1: F1 is 1/2; the seed's expanded formula would give 2/7
        (items("Cola", "Fries"), items("Cola", "Soup"), 0.5),
        # c = 1, t = 3, k = 1: 2/4
        (items("Cola"), items("Cola", "Soup", "Fries"), 0.5),
        (items("The Burger with  Cheese!"), items("burger -- CHEESE"), 1.0),
        (items("Nonna's Pasta"), items("nonna s pasta"), 1.0),
        (items("Café au lait"), items("Caf au lait"), 1.0),
        # duplicates collapse
        (items("Cola", "Cola", "Fries"), items("Cola", "Fries"), 1.0),
        # modifiers are members of the same set, whatever item they belong to
        (
            [{"name": "Burger", "modifiers": [{"modifier_option_name": "Cheese"}]}],
            [{"name": "Burger", "modifiers": ["Cheese", {"name": "Bacon"}]}],
            0.8,
        ),
        ([{"item_name": "Cola"}], [{"item": "Cola"}], 1.0),
        ([{"item": "Tea", "modifier": "Lemon"}], items("Tea", "Lemon"), 1.0),
        # a modifier's own name goes first in the order, its option first in the target
        (
            [{"name": "Tea", "modifiers": [{"name": "a1", "modifier_option_name": "b1"}]}],
            [{"name": "Tea", "modifiers": [{"name": "b1", "modifier_option_name": "a1"}]}],
            1.0,
        ),
        # bare texts are items of the order, and none of the target
        (["Cola"], items("Cola"), 1.0),
        (items("Cola"), ["Cola", {"name": "Soup"}], 0.0),
        (items("Cola"), [], 0.0),
    ],
)
def test_ora_is_the_f1_of_two_sets(current: Any, target: Any, value: float) -> None:
    assert ora(current, target) == pytest.approx(value, abs=1e-15)
    assert ora(repr(current), target) == pytest.approx(value, abs=1e-15)
    assert ora(json.dumps(current), target) == pytest.approx(value, abs=1e-15)


def test_ora_of_two_empty_sets() -> None:
    assert ora(items("the"), items("of the")) is None
    assert ora(items("the"), items("of the"), profile="published") == 0.0


def test_apostrophes_break_published_cells() -> None:
    cell = repr(items("Nonna's Pasta"))
    assert ora(cell, items("Nonna's Pasta")) == 1.0
    # the cell is no JSON once every ' is ": the order is empty, and so is the text's target
    found = dialogue(state(current_items_in_order=cell), case(ADA, "Nonna's Pasta"),
                     profile="published")  # fmt: skip
    assert (found["ORA"], found["ORA_source"]) == (0.0, "text")
    broken = "[{'name': 'Cola', 'is_required': True}]"
    assert ora(broken, items("Cola"), profile="published") == 0.0
    assert ora(broken, items("Cola")) == 1.0
    assert ora("[{'name': 'Cola'}]", items("Cola"), profile="published") == 1.0


@pytest.mark.parametrize("name", ["Caf\\u00e9", "Caf\\xe9", "Caf\\\\u00e9", "Caf\\\\xE9"])
def test_escapes_in_names_are_undone_however_often_they_were_made(name: str) -> None:
    assert ora(f"[{{'name': '{name}', 'is_required': True}}]", items("Café")) == 1.0
    latin = name.replace("Caf", "C").replace("e9", "6f") + "la"  # 6f is o
    latin = latin.replace("E9", "6F")
    assert ora(f"[{{'name': '{latin}', 'is_required': True}}]", items("Cola")) == 1.0


def test_the_final_order_is_the_last_that_is_not_empty() -> None:
    rows = [state(current_items_in_order=items("Cola")), state(current_items_in_order=[]),
            guest("exit", current_items_in_order=items("Soup"))]  # fmt: skip
    assert dialogue(*rows, case(ADA, "Soup"))["ORA"] == 1.0
    assert dialogue(*rows, case(ADA, "Soup"), profile="published")["ORA"] == 0.0
    assert dialogue(*rows, case(ADA, "Cola"), profile="published")["ORA"] == 1.0


@pytest.mark.parametrize("key", ["items", "target_order", "order_items"])
def test_the_target_list_stands_under_the_first_key_present(key: str) -> None:
    keys = ("items", "target_order", "order_items")
    order = {later: items("Soup") for later in keys[keys.index(key) + 1 :]} | {key: items("Cola")}
    rows = (state(current_items_in_order=items("Cola")), case(ADA, order=order))
    assert dialogue(*rows)["ORA"] == 1.0


@pytest.mark.parametrize(
    ("key", "profile", "value"),
    [
        # said: chicken, salad; the target's words: caesar, salad, bowl: 1/4
        ("items", "default", 0.25),
        ("items", "published", 0.25),
        ("order_items", "default", 0.25),
        # the published fallback does not read order_items
        ("order_items", "published", 0.0),
    ],
)
def test_ora_falls_back_to_food_words(key: str, profile: str, value: float) -> None:
    rows = (guest("A CHICKEN and"), restaurant("Pizza?"), guest("salads"),
            case(ADA, order={key: items("Caesar Salad bowl")}))  # fmt: skip
    found = dialogue(*rows, profile=profile)
    assert (found["ORA"], found["ORA_source"]) == (value, "text")


def test_ora_without_a_target_is_null() -> None:
    row = state(current_items_in_order=items("Cola"))
    for target in (None, {}, {"order_total_price": 3}):
        content = json.dumps({"guest_persona": ADA, "target_order": target})
        rows = (row, {"role": "system", "name": "test_case_info", "content": content})
        for profile in ("default", "published"):
            found = dialogue(*rows, profile=profile)
            assert (found["ORA"], found["null_reasons"]["ORA"]) == (None, "missing_input")
            assert found["PAS"] == 1.0
