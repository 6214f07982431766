"""The metrics of the plain group_travel scorer, one dialogue at a time, from the definitions.

See `tests.oracles.group_travel`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from tests.oracles.group_travel_logs import ABSENT, ACTIONABLE, EVERYONE, Dialogue, is_null
from tests.oracles.group_travel_plans import (
    Interval,
    Row,
    candidate_keys,
    names_of,
    record_name,
    visits,
)
from tests.oracles.group_travel_vectors import Vectors
from tests.oracles.group_travel_words import (
    BUILT_IN,
    THEORY,
    Informative,
    all_components,
    category_tokens,
    contains_run,
    folded,
    norm,
    room_type,
    speaks_of_conflict,
    tokens,
    wanted_rooms,
)
from tests.oracles.kernels import gini

KINDS = {
    "lodging": "accommodations",
    "cuisine": "restaurants",
    "event": "events",
    "attraction": "attractions",
}
CATEGORY_KEYS = {
    "accommodations": (),
    "restaurants": ("cuisines", "cuisine"),
    "attractions": ("subcategories", "subcategory", "categories", "category", "type"),
    "events": ("segmentname", "segment", "genre", "category", "classification"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Thresholds and the definitions' own variants."""

    address_sim: float = 0.45
    satisfy_sim: float = 0.42
    serendipity_threshold: float = 0.30
    m12_target: str = "default"
    m12_long: str = "cut"
    negation: str = "rooms"
    strict_overnight: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value with its numerator and denominator, where it has them."""

    value: float | None
    num: float | None = None
    den: float | None = None


NOTHING = Score(None)


def ratio(num: float, den: float) -> Score:
    """Return a ratio; no value of nothing."""
    return Score(num / den if den else None, num, den)


def mean(values: Sequence[float]) -> Score:
    """Return a mean; no value of nothing."""
    return ratio(math.fsum(values), len(values))


def categories(record: Row, kind: str) -> list[str]:
    value = next((record[key] for key in CATEGORY_KEYS[kind] if record.get(key)), "")
    items = value if isinstance(value, list) else _cut(str(value))
    return [text for item in items if (text := str(item).strip())]


def _cut(text: str) -> list[str]:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    for mark in ";|":
        text = text.replace(mark, ",")
    return [part.strip().strip("'\"") for part in text.split(",")]


def record_text(record: Row, kind: str) -> str:
    """Return a record's text about its place, without numbers and addresses."""
    about = [str(record.get(key) or "") for key in ("roomtype", "houserules", "description")]
    # what says nothing in a cell says nothing in a record
    *rooms, description = [None if text.strip().casefold() in ABSENT else text for text in about]
    stay = [room for room in rooms if room is not None]
    text = f"{record_name(record)}. {', '.join(categories(record, kind) or stay)}"
    return text if description is None else f"{text}. {description}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the plan: its name there, its key, and its records in the catalogue."""

    name: str
    key: str
    records: tuple[tuple[str, Row], ...]

    @property
    def texts(self) -> list[str]:
        """What its records say; its name where it has none."""
        return [record_text(record, kind) for kind, record in self.records] or [self.name]


@dataclass(slots=True)
class Pair:
    """A member's wish about a slot, and the result of each method."""

    member: str
    slot: str
    text: str
    words: Informative
    in_synthesis: bool | None = None
    in_plan: bool | None = None
    addressed: bool | None = None
    rooms: bool | None = None
    category: bool | None = None
    lexical: bool | None = None
    semantic: bool | None = None
    similarity: float | None = None

    @property
    def satisfied(self) -> bool:
        """Whether any channel finds the preference met."""
        return any((self.rooms, self.category, self.lexical, self.semantic))


@dataclass(slots=True)
class PlaceScore:
    """A place of the plan as M9 and M15 see it."""

    key: str
    grounded: bool
    explicit: bool | None = None
    similarity: float | None = None
    serendipitous: bool | None = None


@dataclass
class Scores:
    """Everything that is found in a dialogue."""

    dialogue: str
    path: str
    condition: str
    group_type: str | None
    metrics: dict[str, Score]
    members: dict[str, float] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    places: list[PlaceScore] = field(default_factory=list)


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


EXPLAINING_TOKENS = 6
SIMILAR_VALUES = 0.5
DAY_MINUTES = 1440


class Scorer(Reading):
    """The metrics of one dialogue, group by group."""

    def score(self) -> Scores:
        self.vectors.prepare(self.texts())
        metrics = {**self.dialogue_metrics(), **self.addressing(), "M14": self.concession()}
        places: list[PlaceScore] = []
        rates: dict[str, float] = {}
        if self.plan.days:
            places = self.places()
            satisfaction, rates = self.satisfaction()
            metrics |= satisfaction | self.semantic_satisfaction()
            grounded = [place for place in places if place.grounded]
            metrics["M9"] = ratio(len(grounded), len(places)) if self.has_catalogue else NOTHING
            found = sum(bool(place.serendipitous) for place in grounded)
            judged = self.vectors and self.pairs
            metrics["M15"] = ratio(found, len(grounded)) if judged else NOTHING
            metrics["M16"] = self.coherence()
        names = ("M9", "M10", "M10b", "M11", "M12", "M13", "M15", "M16", "W1", "W2", "W3")
        for name in names:
            metrics.setdefault(name, NOTHING)
        group = self.dialogue.metadata.get("group_type")
        return Scores(
            self.dialogue.id,
            self.dialogue.path,
            self.dialogue.condition,
            None if group is None else str(group),
            metrics,
            rates,
            self.pairs,
            places,
        )

    # --- the dialogue alone

    def dialogue_metrics(self) -> dict[str, Score]:
        """Return M1 to M7."""
        dialogue = self.dialogue
        people = {turn.speaker for turn in dialogue.turns if turn.speaker and not turn.is_system}
        providers = {turn.speaker for turn in dialogue.of("user_provide_") if not turn.is_system}
        voices = len(providers) if self.flags["multi_user"] else 1
        members = self.member_count(people - EVERYONE)
        m1 = ratio(voices, members)
        if m1.value is not None and m1.value > 1:
            m1 = Score(1.0, members, members)

        feedback = dialogue.of("user_feedback_", "sys_feedback_")
        total = sum(bool(turn.intent or turn.utterance) for turn in dialogue.turns)
        slots = {turn.slot for turn in dialogue.of("user_provide_")}
        system = dialogue.of("sys_synthesize_", "sys_feedback_", "sys_present_plan")
        leaks = sum(THEORY.search(turn.utterance) is not None for turn in system)
        return {
            "M1": m1,
            **self.synthesis_metrics(),
            "M4b": ratio(leaks, len(system)),
            "M5": self.feedback_activation({turn.slot for turn in feedback}),
            "M6": self.acceptance(max(1, voices)),
            "M7_total_turns": Score(total),
            "M7_turns_per_slot": ratio(total, len(slots)),
            "M7_feedback_turn_overhead": Score(len(feedback)),
        }

    def member_count(self, people: set[str]) -> int:
        """Return how many members the group has."""
        stated = self.dialogue.metadata.get("member_count")
        if stated is not None:
            return int(stated)
        listed = self.dialogue.metadata.get("members")
        return len(listed) if isinstance(listed, list) and listed else len(people)

    def synthesis_metrics(self) -> dict[str, Score]:
        """Return M2, M3 and M4."""
        slots = list(self.dialogue.syntheses)
        named = [self.dialogue.strategy(slot) is not None for slot in slots if slot in ACTIONABLE]
        m4 = ratio(sum(named), len(named)) if self.flags["use_social_theory"] else Score(0.0)
        if not self.flags["enable_synthesis"]:
            return {"M2": NOTHING, "M3": NOTHING, "M4": m4}
        divergent = [
            slot for slot in dict.fromkeys(p.slot for p in self.pairs) if self.diverges(slot)
        ]
        return {
            "M2": ratio(sum(map(self.detects, divergent)), len(divergent)),
            "M3": ratio(sum(map(self.explains, slots)), len(slots)),
            "M4": m4,
        }

    def diverges(self, slot: str) -> bool:
        """Whether two members want different things of a slot."""
        pairs = [pair for pair in self.pairs if pair.slot == slot]
        values: list[frozenset[str]] = []
        if slot == "lodging":
            values = [wanted_rooms(pair.text) for pair in pairs]
        elif slot in ACTIONABLE:
            values = [self.category_tokens(pair) for pair in pairs]
        if not values or not all(values):
            values = [pair.words.all for pair in pairs]
        return any(
            a and b and len(a & b) / len(a | b) < SIMILAR_VALUES
            for number, a in enumerate(values)
            for b in values[:number]
        )

    def detects(self, slot: str) -> bool:
        """Whether the synthesis of a slot sees a conflict."""
        texts = [turn.utterance for turn in self.dialogue.of("sys_synthesize_", slot=slot)]
        objects = self.dialogue.syntheses.get(slot, [])
        texts += [str(item.get("conflict_description") or "") for item in objects]
        return self.dialogue.has_conflict(slot) or any(map(speaks_of_conflict, texts))

    def explains(self, slot: str) -> bool:
        """Whether the synthesis of a slot gives reasons."""
        turns = self.dialogue.of("sys_synthesize_", slot=slot)
        wordy = any(len(tokens(turn.utterance)) >= EXPLAINING_TOKENS for turn in turns)
        return wordy or bool(self.dialogue.explanations(slot))

    def feedback_activation(self, answered: set[str]) -> Score:
        """Return M5."""
        if not self.flags["enable_feedback"]:
            return Score(0.0)
        conflicts = [slot for slot in self.dialogue.syntheses if self.dialogue.has_conflict(slot)]
        return ratio(sum(slot in answered for slot in conflicts), len(conflicts))

    def acceptance(self, voices: int) -> Score:
        """Return M6."""
        turns = self.dialogue.of("user_accept_plan", "user_approve_approach")
        accepting = {turn.speaker for turn in turns if not turn.is_system}
        if not accepting:
            return NOTHING
        return ratio(voices if accepting & EVERYONE else min(len(accepting), voices), voices)

    # --- what the system says of the preferences

    def addressing(self) -> dict[str, Score]:
        """Return M8, M8a and M8b."""
        synthesis, plan = self.flags["enable_synthesis"], bool(self.plan_texts)
        plan_words = [word for text in self.plan_texts for word in folded(text)]
        limit = self.options.address_sim
        in_plan = self.vectors.nearest([p.text for p in self.pairs], self.plan_segments)
        for pair, near_plan in zip(self.pairs, in_plan, strict=True):
            texts = self.synthesis_texts(pair.slot)
            words = [word for text in texts for word in folded(text)]
            if synthesis:
                [near] = self.vectors.nearest([pair.text], texts)
                pair.in_synthesis = pair.words.addressed(words) or _reaches(near, limit)
            if plan:
                pair.in_plan = pair.words.addressed(plan_words) or _reaches(near_plan, limit)
            if synthesis or plan:
                together = pair.words.addressed(words + plan_words)
                pair.addressed = together or bool(pair.in_synthesis) or bool(pair.in_plan)
        n = len(self.pairs)
        return {
            "M8": ratio(sum(bool(p.addressed) for p in self.pairs), n)
            if synthesis or plan
            else NOTHING,
            "M8a": ratio(sum(bool(p.in_synthesis) for p in self.pairs), n)
            if synthesis
            else NOTHING,
            "M8b": ratio(sum(bool(p.in_plan) for p in self.pairs), n) if plan else NOTHING,
        }

    def concession(self) -> Score:
        """Return M14."""
        if not self.flags["enable_synthesis"] or not self.vectors:
            return NOTHING
        found = []
        for pair in self.actionable:
            explanations = self.dialogue.explanations(pair.slot)
            [near] = self.vectors.nearest([pair.text], explanations[-1:])
            if near is not None:
                found.append(near)
        return mean(found)

    # --- the plan

    def satisfaction(self) -> tuple[dict[str, Score], dict[str, float]]:
        """Return M10, M10b, M11 and the welfares, and each member's share."""
        for pair in self.actionable:
            self.satisfy(pair)
        by_member: dict[str, list[bool]] = {}
        for pair in self.actionable:
            by_member.setdefault(pair.member, []).append(pair.satisfied)
        shares = {member: sum(met) / len(met) for member, met in by_member.items()}
        values = list(shares.values())
        applicable = [pair.category for pair in self.actionable if pair.category is not None]
        nash = 0.0
        if values and min(values) > 0:
            nash = math.exp(math.fsum(map(math.log, values)) / len(values))
        return {
            "M10": ratio(sum(pair.satisfied for pair in self.actionable), len(self.actionable)),
            "M10b": ratio(sum(applicable), len(applicable)),
            "M11": ratio(sum(value == 1 for value in values), len(values)),
            "W1": mean(values),
            "W2": Score(min(values)) if values else NOTHING,
            "W3": Score(nash) if values else NOTHING,
        }, shares

    def satisfy(self, pair: Pair) -> None:
        """Ask each channel whether the plan meets a preference."""
        places = self.slot_places(pair.slot)
        if pair.slot == "lodging":
            wanted = wanted_rooms(pair.text)
            offered = {
                room_type(record.get("roomtype"))
                for place in places
                for kind, record in place.records
                if kind == "accommodations"
            }
            pair.rooms = bool(wanted & offered) if wanted else None
        else:
            asked = self.category_tokens(pair)
            pair.category = bool(asked & self._slot_components[pair.slot]) if asked else None
        pair.lexical = pair.words.hits(self._slot_words[pair.slot]) >= 2
        texts = [text for place in places for text in place.texts]
        [near] = self.vectors.nearest([pair.text], texts)
        pair.semantic = _reaches(near, self.options.satisfy_sim)

    def semantic_satisfaction(self) -> dict[str, Score]:
        """Return M12 and M13."""
        if not self.vectors:
            return {"M12": NOTHING, "M13": NOTHING}
        by_member: dict[str, list[float]] = {}
        for pair in self.actionable:
            if is_null(pair.text):
                continue
            parts = self.semantic_parts(pair.slot)
            if self.options.m12_long == "cut":
                [near] = self.vectors.nearest([pair.text], parts)
            else:
                near = self.vectors.along_mean(pair.text, parts)
            pair.similarity = near or 0.0
            by_member.setdefault(pair.member, []).append(pair.similarity)
        member_means = [math.fsum(values) / len(values) for values in by_member.values()]
        return {
            "M12": mean([value for values in by_member.values() for value in values]),
            "M13": Score(gini(member_means) if member_means else None),
        }

    def places(self) -> list[PlaceScore]:
        """Return the plan's places as M9 and M15 see them."""
        spoken = [tokens(pair.text) for pair in self.pairs]
        preferences = list(dict.fromkeys(pair.text for pair in self.pairs))
        scores = []
        for key, place in self.plan_places.items():
            score = PlaceScore(key, bool(place.records))
            scores.append(score)
            if not score.grounded:
                continue
            name = key.split()
            score.explicit = (len(name) > 1 or len(key) >= 3) and any(
                contains_run(words, name) for words in spoken
            )
            near = self.vectors.nearest(place.texts, preferences)
            score.similarity = max((value for value in near if value is not None), default=None)
            if score.similarity is not None:
                reaches = _reaches(score.similarity, self.options.serendipity_threshold)
                score.serendipitous = not score.explicit and reaches
        return scores

    def coherence(self) -> Score:
        """Return M16."""
        passed = total = 0
        for day in self.plan.days:
            meals = {meal: names_of(day[meal]) for meal in ("breakfast", "lunch", "dinner")}
            lunch, dinner = (norm("; ".join(meals[meal])) for meal in ("lunch", "dinner"))
            passed += sum(map(bool, meals.values())) + (lunch != dinner)
            total += 4
            intervals = [found for name, found in visits(day["poi_list"]) if found]
            if intervals:
                passed += in_order(intervals, self.options.strict_overnight)
                total += 1
        return ratio(passed, total)


def _reaches(value: float | None, limit: float) -> bool:
    return value is not None and bool(np.float32(value) >= np.float32(limit))


def in_order(intervals: Sequence[Interval], strict_overnight: bool) -> bool:
    """Whether visits start one after the other, and each ends after it starts."""
    *earlier, (start, end) = intervals
    if end < start and not strict_overnight:
        end += DAY_MINUTES
    starts = [begin for begin, _ in intervals]
    rising = all(a < b for a, b in pairwise(starts))
    return rising and all(a < b for a, b in [*earlier, (start, end)])


def score_dialogue(dialogue: Dialogue, vectors: Vectors, options: Options | None = None) -> Scores:
    return Scorer(dialogue, vectors, options or Options()).score()
