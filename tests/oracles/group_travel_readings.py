"""Readings of a group_travel dialogue: preferences, texts, places and words of the plan."""

from functools import cached_property

from tests.oracles.group_travel_logs import ACTIONABLE, Dialogue
from tests.oracles.group_travel_plans import candidate_keys
from tests.oracles.group_travel_scores import KINDS, Options, Pair, Place, categories
from tests.oracles.group_travel_vectors import Vectors
from tests.oracles.group_travel_words import (
    BUILT_IN,
    Informative,
    all_components,
    category_tokens,
    folded,
)

LINES_AT_MOST = 400


class Reading:
    """One dialogue as its metrics ask for it."""

    def __init__(self, dialogue: Dialogue, vectors: Vectors, options: Options) -> None:
        self.dialogue = dialogue
        self.vectors = vectors
        self.options = options
        self.flags = dialogue.flags
        self.plan = dialogue.plan
        self.pairs = [
            Pair(member, slot, text, Informative(text, slot))
            for (member, slot), text in dialogue.preferences.items()
        ]
        self.actionable = [pair for pair in self.pairs if pair.slot in ACTIONABLE]
        self.spoken = [turn.utterance for turn in dialogue.of("sys_present_plan") if turn.utterance]

    def texts(self) -> list[str]:
        """Return every text that some metric compares."""
        found = [pair.text for pair in self.pairs] + self.plan_segments
        for slot in {pair.slot for pair in self.pairs}:
            found += self.synthesis_texts(slot)
        if self.plan.days:
            for slot in {pair.slot for pair in self.actionable}:
                found += self.semantic_parts(slot)
                found += [text for place in self.slot_places(slot) for text in place.texts]
            found += [text for place in self.grounded.values() for text in place.texts]
        return found

    def synthesis_texts(self, slot: str) -> list[str]:
        """Return the system's texts in the synthesis of a slot, explanations last."""
        if not self.flags["enable_synthesis"]:
            return []
        turns = self.dialogue.of("sys_synthesize_", slot=slot)
        texts = [turn.utterance for turn in turns if turn.utterance]
        return texts + self.dialogue.explanations(slot)

    @cached_property
    def plan_texts(self) -> list[str]:
        """The plan's texts: the presentation and the planner's own text."""
        return self.spoken + ([self.plan.raw_output] if self.plan.raw_output.strip() else [])

    @cached_property
    def plan_segments(self) -> list[str]:
        """The lines of those texts."""
        lines = (line.strip() for text in self.plan_texts for line in text.splitlines())
        return [line for line in lines if line][:LINES_AT_MOST]

    def semantic_target(self, slot: str) -> str:
        """Return the text with which M12 compares the preferences of a slot."""
        text = self.plan.slot_text(slot)
        return text if self.options.m12_target == "slot" else f"{text}\n{self.plan.raw_output}"

    def semantic_parts(self, slot: str) -> list[str]:
        """Return the texts of which M12's target is made: one, or each part read by itself."""
        if self.options.m12_long == "cut":
            return [self.semantic_target(slot)]
        parts = [self.plan.slot_text(slot)]
        if self.options.m12_target != "slot":
            parts.append(self.plan.raw_output)
        return [part for part in parts if part.strip()]

    @cached_property
    def has_catalogue(self) -> bool:
        """Whether any record names a place."""
        return any(self.dialogue.catalogue.values())

    def find(self, name: str, kind: str | None = None) -> Place:
        """Look a place up: its candidates in a kind, then in all."""
        catalogue = self.dialogue.catalogue
        keys = candidate_keys(name)
        for kinds in ([kind] if kind else []), list(catalogue):
            for key in keys:
                found = [(k, record) for k in kinds for record in catalogue[k].get(key, [])]
                if found:
                    return Place(name, key, tuple(found))
        return Place(name, keys[-1] if keys else "", ())

    def slot_places(self, slot: str) -> list[Place]:
        """Return the places that a plan chose for a slot."""
        return self._slot_places[slot]

    @cached_property
    def _slot_places(self) -> dict[str, list[Place]]:
        return {
            slot: [self.find(name, kind) for name in self.plan.slot_names(slot)]
            for slot, kind in KINDS.items()
        }

    @cached_property
    def plan_places(self) -> dict[str, Place]:
        """The distinct places of the whole plan, by their keys."""
        found: dict[str, Place] = {}
        for name in self.plan.all_names():
            place = self.find(name)
            found.setdefault(place.key, place)
        return found

    @cached_property
    def grounded(self) -> dict[str, Place]:
        """The places that are in the catalogue."""
        return {key: place for key, place in self.plan_places.items() if place.records}

    def category_tokens(self, pair: Pair) -> frozenset[str]:
        """Return the words of a preference that are words of categories of its slot."""
        skip = self.options.negation == "all"
        return category_tokens(pair.text, self._vocabularies[pair.slot], skip_negated=skip)

    @cached_property
    def _vocabularies(self) -> dict[str, frozenset[str]]:
        return {
            slot: BUILT_IN.get(slot, frozenset())
            | all_components(
                category
                for records in self.dialogue.catalogue[kind].values()
                for record in records
                for category in categories(record, kind)
            )
            for slot, kind in KINDS.items()
        }

    @cached_property
    def _slot_components(self) -> dict[str, frozenset[str]]:
        return {
            slot: all_components(
                category
                for place in self.slot_places(slot)
                for kind, record in place.records
                for category in categories(record, kind)
            )
            for slot in KINDS
        }

    @cached_property
    def _slot_words(self) -> dict[str, frozenset[str]]:
        raw = folded(self.plan.raw_output)
        return {
            slot: frozenset(raw).union(
                *(folded(place.name) for place in self.slot_places(slot)),
                *(folded(text) for place in self.slot_places(slot) for text in place.texts),
            )
            for slot in KINDS
        }
