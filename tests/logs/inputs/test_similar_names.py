"""Which key is proposed for a column, and which never is."""

import itertools
import tomllib
from collections import Counter
from importlib.resources import files
from typing import Any

import pytest

from fastscore.logs.samples.profile import (
    MOST_KEYS,
    KeyProfile,
    keys_of_others,
    list_keys,
    nearest_key,
    profile_of,
)
from fastscore.suites.chats import ROLES
from fastscore.suites.declarations import Column
from fastscore.suites.registry import load_suite


def keys(**types: str) -> dict[str, KeyProfile]:
    return {
        name.replace("__", "."): KeyProfile(count=1, types=Counter([kind]))
        for name, kind in types.items()
    }


def text(name: str) -> Column:
    return Column(name=name, kind="text")


@pytest.mark.parametrize(
    "reference",
    ["gt_assistant_text", "assistant_text_gold", "refResponse", "label_text", "user_response"],
)
def test_a_reference_is_never_proposed_for_a_reply(reference):
    assert nearest_key(text("pred_assistant_text"), keys(**{reference: "string"})) is None
    inside = {f"{reference}__response": "string"}
    assert nearest_key(text("pred_assistant_text"), keys(**inside)) is None
    both = {reference: "string", "reply": "string"}
    assert nearest_key(text("pred_assistant_text"), keys(**both)) == "reply"


def test_a_reply_is_never_proposed_for_a_reference():
    found = keys(pred_text="string", predAnswer="string", model__answer="string")
    assert nearest_key(text("ground_truth"), found) is None
    assert nearest_key(text("ground_truth"), found | keys(gold="string")) == "gold"
    assert nearest_key(text("ground_truth"), keys(answer_text="string")) is None


def test_what_only_says_that_a_value_is_a_text_is_no_part_of_a_name():
    found = keys(pred_text="string", gt_text="string")
    assert nearest_key(text("prediction"), found) == "pred_text"
    assert nearest_key(text("ground_truth"), found) == "gt_text"


def test_values_that_the_column_cannot_take_are_not_proposed():
    assert nearest_key(text("utterance"), keys(utterances="integer")) is None
    assert nearest_key(text("utterance"), keys(turn="integer", message="string")) == "message"
    step = Column(name="step", kind="integer", accepts=("boolean",))
    assert nearest_key(step, keys(step_index="string")) is None
    assert nearest_key(step, keys(step_index="integer")) == "step_index"
    index = Column(name="utterance_index", kind="integer", accepts=("string",))
    assert nearest_key(index, keys(turn_index="string")) == "turn_index"


def test_names_that_only_share_letters_are_not_near():
    assert nearest_key(text("utterance"), keys(appearance="string")) is None
    assert nearest_key(text("utterance"), keys(utterence="string")) == "utterence"


def test_keys_of_other_columns_are_taken_aliases_too():
    source = load_suite("group_travel").source
    taken = keys_of_others(source.columns, "intent")
    assert {"utterance", "text", "speaker", "dialogue_id"} <= taken
    assert "intent" not in taken


def test_of_endlessly_many_keys_the_first_are_looked_at():
    class Endless(dict[str, KeyProfile]):
        def items(self) -> Any:
            return ((f"key {n}", next(iter(self.values()))) for n in itertools.count())

    assert nearest_key(text("utterance"), Endless(keys(a="string"))) is None
    found = profile_of([{f"key {n}": n for n in range(2 * MOST_KEYS)}])
    assert len(found.keys) == MOST_KEYS
    assert list_keys(found.keys).endswith("and at least 9,992 more")


def test_each_word_for_a_speaker_has_one_role_that_layouts_know():
    content = tomllib.loads(files("fastscore.logs.inputs").joinpath("names.toml").read_text())
    assert set(content["roles"]) == set(ROLES)
    words = [word for of_role in content["roles"].values() for word in of_role]
    assert len(words) == len(set(words))
    for group in content["synonyms"]:
        assert len(group) == len(set(group)) > 1
