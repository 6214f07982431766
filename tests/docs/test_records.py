"""The records that pages show in full are scored without rejects, and recipes can be read."""

import json
import re

import pytest
from fastscore_models.recipe import parse_recipe

import fastscore
from tests.documented import ROOT

SHOWN = {
    "group_travel": ("M2", 1.0),
    "guest_simulation": ("ORA", 1.0),
    "memory_finance": ("key_coverage", 0.5),
    "preference_shift": ("cross_coherence", 0.25),
    "score_dialogue": ("average_U_best_early", 0.5),
}
"""A metric of the record on each suite's page, worked out by hand."""


def blocks_of(page, language):
    """Return the blocks of a page in a language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def records(text):
    """Return the JSON objects of a text, one after another."""
    found, at = [], 0
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


@pytest.mark.parametrize("suite", SHOWN)
def test_the_first_record_of_a_suites_page_is_scored(suite, tmp_path):
    catalogue = tmp_path / "catalogue.jsonl"
    catalogue.write_text(blocks_of("docs/catalogue.md", "json")[0], "utf-8")
    options = {
        "group_travel": fastscore.GroupTravel(),
        "guest_simulation": fastscore.GuestSimulation(),
        "memory_finance": fastscore.MemoryFinance(),
        "preference_shift": fastscore.PreferenceShift(
            catalogue=str(catalogue), segments="metadata"
        ),
        "score_dialogue": fastscore.ScoreDialogue(lex_weight=1.0),
    }[suite]
    log = records(blocks_of(f"docs/suites/{suite}.md", "json")[0])
    scores = fastscore.score(log, options, embedder="none")
    assert scores.rejects.height == 0
    metric, value = SHOWN[suite]
    assert scores.tables["dialogues"][metric].to_list() == [pytest.approx(value)]


@pytest.mark.parametrize("text", blocks_of("docs/own_model.md", "toml"))
def test_the_recipes_of_a_page_can_be_read(text):
    assert parse_recipe(text, "page").name == "my-model"


def test_the_personas_of_a_page_can_be_read(tmp_path):
    log, personas = blocks_of("docs/suites/guest_simulation.md", "json")
    path = tmp_path / "personas.json"
    path.write_text(personas, "utf-8")
    scores = fastscore.score(records(log), fastscore.GuestSimulation(personas=str(path)))
    # exploration, mood, ordering and completion are as expected in the only message
    assert scores.tables["dialogues"]["PAS"].to_list() == [1.0]
