"""Group_travel dialogues: real preferences and plans, templates for the system's turns.

Every five dialogues of a scenario are one group with equal wishes under the conditions C1 to C5.
Each dialogue has its expected numbers: numerator and denominator of M1 to M5, M4b, M9, M10b and
M16, counted while it is made.
"""

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.group_travel_itineraries import (
    HERE,
    SAME_WORDS,
    Catalogue,
    Itinerary,
    Preference,
    Sources,
    catalogue_of,
    key_of,
    make_itinerary,
    time_itinerary,
)

SLOTS = (
    *("traveler_type", "travel_purpose", "spending_preference"),
    *("cuisine", "attraction", "event", "lodging"),
)
ACTIONABLE = ("cuisine", "attraction", "event", "lodging")
LOGGED_AS = {"lodging": "room_type", "cuisine": "food", "event": "events"}
GROUPS = {
    "family": ("Parent 1", "Parent 2", "Teenager 1", "Child 1"),
    "elder_young": ("Grandparent 1", "Grandparent 2", "Young Adult 1", "Young Adult 2"),
    "spouses": ("Spouse 1", "Spouse 2", "Spouse 3", "Spouse 4"),
    "colleagues": ("Colleague 1", "Colleague 2", "Colleague 3", "Colleague 4"),
    "strangers": ("Traveler 1", "Traveler 2", "Traveler 3", "Traveler 4"),
}
FLAGS = {
    "C1": (False, False, False, False),
    "C2": (True, False, False, False),
    "C3": (True, True, False, False),
    "C4": (True, True, True, False),
    "C5": (True, True, True, True),
}
FLAG_NAMES = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")

STATED = {
    "traveler_type": (
        ("family", "We are a family with children."),
        ("seniors", "Retired grandparents mostly."),
        ("backpackers", "Backpackers who walk everywhere."),
        ("photographers", "I photograph birds."),
    ),
    "travel_purpose": (
        ("relaxation", "Pure relaxation."),
        ("sightseeing", "Sightseeing from dawn to dusk."),
        ("celebration", "My parents' golden wedding celebration."),
        ("business", "A conference, then colleagues meet."),
    ),
    "spending_preference": (
        ("moderate", "A moderate budget."),
        ("luxury", "Money is no issue, choose luxury."),
        ("thrifty", "As cheap as possible."),
        ("mixed", "Splurge on food but save elsewhere."),
    ),
}
ROOM_WISHES = (
    ("entire", "An entire home would suit us."),
    ("entire", "We don't want to share a room; an entire apartment is best."),
    ("entire", "I'd like a whole house with a garden."),
    ("private", "A private room is enough for me."),
    ("private", "Private room rather than a shared room, somewhere quiet."),
    ("private", "My own room, close to downtown."),
    ("shared", "A hostel is fine."),
    ("shared", "Happy with dorms or shared rooms."),
)
STRATEGIES = ("Include Both", "parent_veto", "Least Misery", "log_roll", "Family Friendly")
NO_STRATEGY = ("N/A", "none", "", None, "Not applicable", "No strategy")
NO_REASON = ("N/A", "", None, "none", "TBD")

PLAIN = (
    "For the {slot} I will look for {a}, as most of you asked.",
    "There is no conflict about the {slot}: {a} it is, then.",
    "Conflict: none. I will take {a} as the group's {slot}.",
)
NAMING = (
    "Your tastes differ on the {slot}: some want {a}, others want {b}.",
    "A compromise on the {slot} could be {a} on one day and {b} on another.",
    "I need to find a middle ground for the {slot} between {a} and {b}.",
)
REASONS = (
    "We chose {a} for the {slot} because most members asked for it, and {b} can be had nearby.",
    "{a} comes first since it suits everyone; {b} follows on the last day.",
    "As {b} is hard to find there, the {slot} will be {a}.",
)
LEAKS = (
    " Strategy: least_misery.",
    " Here parental authority counts.",
    " This is the approval vote.",
)
BARE = "Noted, thank you."

LISTS = json.loads((HERE / "group_travel_lexicon.json").read_text(encoding="utf-8"))
IGNORED = frozenset(f"{LISTS['STOP']} {LISTS['FILL']}".split())
ROOM_TYPE_WORDS = frozenset(
    word + s
    for word in (
        "entire",
        "whole",
        "own",
        "private",
        "separate",
        "shared",
        "hostel",
        "dorm",
        "share",
    )
    for s in ("", "s")
) | {"ourselves", "myself", "sharing"}


Row = dict[str, Any]
Expected = dict[str, Any]


def content_words(text: str, slot: str) -> set[str]:
    """Return at least the words of a preference that the definitions do not ignore."""
    generic = LISTS["SLOT_GENERIC"].get(slot, "").split()
    words = set(re.findall(r"\w+", text.lower().replace("'", "").replace("’", "")))
    return {word for word in words if not {word, word.removesuffix("s")} & (IGNORED | set(generic))}


def clearly_differ(first: Preference, second: Preference) -> bool:
    """Return whether two preferences both have words and share no word stem."""
    texts = (first.text, second.text)
    stems = [{word.rstrip("s")[:4] for word in content_words(t, first.slot)} for t in texts]
    wordy = all(any(len(w) >= 4 for w in content_words(t, first.slot)) for t in texts)
    rooms = [bool(ROOM_TYPE_WORDS & set(re.findall(r"\w+", t.lower()))) for t in texts]
    return wordy and not stems[0] & stems[1] and not (first.slot == "lodging" and all(rooms))


@dataclass(frozen=True, slots=True)
class Wishes:
    """The members' wishes about a slot, and whether they clearly disagree."""

    texts: tuple[Preference, ...]
    divergent: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group, its wishes, and its planned trip."""

    group_type: str
    members: tuple[str, ...]
    wishes: Mapping[str, Wishes]
    silent: bool
    trip: int


def make_scenario(sources: Sources, draw: random.Random, defects: float) -> Scenario:
    """Draw a group with its wishes. If the group disagrees, its first two members do."""
    group_type = draw.choice(list(GROUPS))
    members = GROUPS[group_type]
    wishes = {slot: _wishes(sources, slot, len(members), draw) for slot in SLOTS}
    silent = draw.random() < defects
    return Scenario(group_type, members, wishes, silent, draw.randrange(len(sources.trips)))


def _wishes(sources: Sources, slot: str, count: int, draw: random.Random) -> Wishes:
    if slot in STATED:
        pool = [Preference(slot, text, value) for value, text in STATED[slot]]
    elif slot == "lodging" and draw.random() < 0.4:
        pool = [Preference(slot, text, value) for value, text in ROOM_WISHES]
    else:
        pool = sources.preferences[slot]
    first = draw.choice(pool)
    if draw.random() < 0.7:
        for second in draw.choices(pool, k=30):
            rooms = pool[0].text == ROOM_WISHES[0][1]
            if second.value != first.value if rooms else clearly_differ(first, second):
                others = draw.choices(pool, k=count - 2)
                return Wishes((first, second, *others), True)
    return Wishes((first,) * count, False)


@dataclass
class Writer:
    """A dialogue in the making: its rows, and counts of planted cases."""

    id: str
    condition: str
    scenario: Scenario
    draw: random.Random
    defects: float
    rows: list[Row] = field(default_factory=list)
    state: dict[str, Row] = field(default_factory=dict)
    state_at_end: bool = False
    counts: dict[str, list[int]] = field(default_factory=dict)

    def say(self, speaker: str, intent: str, utterance: str, **cells: Any) -> None:
        """Add a turn."""
        self.rows.append({"speaker": speaker, "intent": intent, "utterance": utterance, **cells})

    def count(self, metric: str, hit: bool) -> None:
        """Count one more case of a metric."""
        found = self.counts.setdefault(metric, [0, 0])
        found[0] += hit
        found[1] += 1

    def happens(self, rate: float | None = None) -> bool:
        """Draw whether an event happens, by default a defect."""
        return self.draw.random() < (self.defects if rate is None else rate)

    @property
    def flags(self) -> dict[str, bool]:
        """The condition's flags, by name."""
        return dict(zip(FLAG_NAMES, FLAGS[self.condition], strict=True))

    # --- turns

    def provide(self, slot: str, intent_slot: str) -> None:
        """Add the members' wishes about a slot."""
        speakers = self.speakers()
        for member, wish in zip(
            self.scenario.members, self.scenario.wishes[slot].texts, strict=True
        ):
            if member in speakers:
                self.say(member, f"user_provide_{intent_slot}", wish.text)
                if self.happens(0.05):
                    self.say(member, f"user_provide_{intent_slot}", "Yes, that is what I want.")

    def speakers(self) -> tuple[str, ...]:
        """Return the speakers: one in C1, otherwise all except a silent member."""
        if not self.flags["multi_user"]:
            return self.scenario.members[:1]
        return self.scenario.members[:-1] if self.scenario.silent else self.scenario.members

    def synthesise(self, slot: str, intent_slot: str) -> None:
        """Add the system's synthesis of a slot, with planted omissions."""
        wishes = self.scenario.wishes[slot]
        skipped = self.happens(self.defects / 3)
        flagged = (wishes.divergent and self.happens(0.6)) or self.happens(0.05)
        bare = self.happens()
        naming = wishes.divergent and not bare and self.happens(0.5)
        if wishes.divergent:
            self.count("M2", not skipped and (flagged or naming))
        if skipped:
            return
        values = {"slot": slot.replace("_", " ")} | dict(
            zip("ab", (_value(wish) for wish in wishes.texts), strict=False)
        )
        utterance = BARE if bare else self.draw.choice(NAMING if naming else PLAIN).format(**values)
        explained = not bare and self.happens(0.8)
        self.count("M3", not bare)
        leaks = self.happens()
        utterance += self.draw.choice(LEAKS) if leaks and not bare else ""
        self.count("M4b", leaks and not bare)
        found: Row = {
            "has_conflict": self.draw.choice(
                (True, 1, "true", "yes") if flagged else (False, 0, "no")
            ),
            "conflict_description": f"{values['a']} or {values['b']}"
            if wishes.divergent
            else "N/A",
            "resolution_explanation": self.draw.choice(REASONS).format(**values)
            if explained
            else self.draw.choice(NO_REASON),
            **self._strategy(slot),
        }
        self.say("System", f"sys_synthesize_{intent_slot}", utterance, **self._placed(slot, found))
        if self.flags["use_social_theory"]:
            self.say("System", f"sys_request_vote_{intent_slot}", f"Who is for {values['a']}?")
            self.say(self.speakers()[0], f"user_vote_{intent_slot}", "Me, please.")
        if self.flags["enable_feedback"] and flagged:
            self._give_feedback(intent_slot)

    def _strategy(self, slot: str) -> Row:
        if not self.flags["use_social_theory"]:
            return {"resolution_strategy": self.draw.choice(NO_STRATEGY)}
        named = slot in ACTIONABLE and not self.happens(0.25)
        if slot in ACTIONABLE:
            self.count("M4", named)
        strategy = self.draw.choice(STRATEGIES if named else NO_STRATEGY)
        if named and self.happens(0.3):
            return {"resolution_strategy": "N/A", "strategy_id": strategy, "operator": "vote"}
        return {"resolution_strategy": strategy}

    def _placed(self, slot: str, found: Row) -> Row:
        """Put a synthesis into one of its possible cells."""
        self.state[slot] = found
        where = self.draw.random()
        if where < 0.6:
            return {"metadata": found}
        if where < 0.75:
            return {"metadata": {"synthesis": found}}
        if where > 0.95:
            self.state_at_end = True
            return {}
        key = self.draw.choice(("slot_decision_state", "synthesis", "slot_decisions"))
        return {"constraint_state": {key: dict(self.state)}}

    def _give_feedback(self, intent_slot: str) -> None:
        answered = not self.happens(0.2)
        self.count("M5", answered)
        if answered:
            self.say(self.speakers()[-1], f"user_feedback_{intent_slot}", "I could live with that.")
            self.say("System", f"sys_feedback_{intent_slot}", "Thank you, then it stays as it is.")
            self.count("M4b", False)

    def present(self, itinerary: Itinerary) -> tuple[Any, Any]:
        """Add the presentation of the plan; return numerator and denominator of M16 and M9."""
        plan = time_itinerary(itinerary, self.draw, self.defects)
        city = itinerary.days[0].fixed["current_city"].rpartition(" to ")[2]
        dinners = [stop.written for day in itinerary.days for stop in day.stops["dinner"]]
        text = f"Here is your plan for {city}.\nIt has {len(itinerary.days)} days."
        if dinners:
            text += f"\nDinner is at {dinners[0]}."
        leaks = self.happens(self.defects / 2)
        text += self.draw.choice(LEAKS) if leaks else ""
        self.count("M4b", leaks)
        records = {f"ref_info_{kind}": rows for kind, rows in itinerary.catalogue.records.items()}
        lost = self.happens(self.defects / 5)
        if self.happens(0.2):
            self.say(
                "System", "sys_status", "Working on it.", plan=[{"days": 1, "dinner": "Draft"}]
            )
        value = "Sorry, the planner ran out of time." if lost else plan.cell
        state = (
            {"constraint_state": {"slot_decision_state": self.state}} if self.state_at_end else {}
        )
        self.say("System", "sys_present_plan", text, plan=value, **records, **state)
        return (None, None) if lost else (list(plan.coherence), list(plan.grounding))

    def categories(self, itinerary: Itinerary) -> list[int]:
        """Count M10b: each member's wish by its words, against the chosen places."""
        found = [0, 0]
        for slot, chosen in itinerary.category_words.items():
            known = itinerary.catalogue.vocabulary[slot]
            for member, wish in zip(
                self.scenario.members, self.scenario.wishes[slot].texts, strict=True
            ):
                asked = {
                    SAME_WORDS.get(word, word) for word in _singular(wish.text) if word in known
                }
                if asked and member in self.speakers():
                    found[0] += bool(asked & chosen)
                    found[1] += 1
        return found

    def metadata(self, tells_flags: bool) -> Row:
        """Return the dialogue's metadata in its first row."""
        members = [
            {"user_id": f"u{number}", "name": name, "role": name.split()[0], "age": 20 + number}
            for number, name in enumerate(self.scenario.members)
        ]
        about: Row = {"dialogue_id": self.id, "group_type": self.scenario.group_type}
        about |= {"members": members} if self.happens(0.5) else {"member_count": len(members)}
        how = self.draw.choice(
            ("top", "nested", "condition") if not tells_flags else ("top", "none")
        )
        if how == "top":
            about |= self.flags
        elif how == "nested":
            about["condition_flags"] = self.flags
        elif how == "condition":
            about["condition"] = self.condition
        return about


def _value(wish: Preference) -> str:
    return wish.value if wish.slot != "lodging" else "a place to stay"


def _singular(text: str) -> set[str]:
    words = key_of(text).split()
    return {word for whole in words for word in (whole, whole.removesuffix("s"))}


@dataclass(frozen=True, slots=True)
class Made:
    """A logged dialogue, and its expected numbers by metric; None is no value."""

    id: str
    condition: str
    metadata: Row
    rows: list[Row]
    expected: Expected


def make_dialogues(
    sources: Sources, count: int, *, seed: int = 0, defects: float = 0.15, variants: int = 20
) -> Iterator[Made]:
    """Make dialogues, five of each scenario in a row.

    Parameters
    ----------
    sources
        Their real parts.
    count
        The number of dialogues.
    seed
        Seed of every choice. A dialogue depends on it, its number, and the other parameters.
    defects
        The probability of each defect.
    variants
        The number of itineraries made of each plan.
    """
    itineraries: dict[tuple[int, int], Itinerary] = {}
    catalogues: dict[int, Catalogue] = {}
    for number in range(count):
        of_scenario = random.Random(f"{seed}/scenario/{number // 5}")
        scenario = make_scenario(sources, of_scenario, defects)
        draw = random.Random(f"{seed}/dialogue/{number}")
        trip, variant = scenario.trip, draw.randrange(variants)
        if trip not in catalogues:
            named = random.Random(f"{seed}/trip/{trip}")
            catalogues[trip] = catalogue_of(sources.trips[trip], sources.events, named)
        if (trip, variant) not in itineraries:
            changed = random.Random(f"{seed}/itinerary/{trip}/{variant}")
            itineraries[trip, variant] = make_itinerary(
                sources, trip, catalogues[trip], changed, defects
            )
        condition = f"C{number % 5 + 1}"
        name = f"s{number // 5:05d}-{condition.lower()}"
        yield _make(Writer(name, condition, scenario, draw, defects), itineraries[trip, variant])


def _make(writer: Writer, itinerary: Itinerary) -> Made:
    for slot in SLOTS:
        intent_slot = LOGGED_AS.get(slot, slot) if writer.happens(0.1) else slot
        writer.provide(slot, intent_slot)
        if writer.flags["enable_synthesis"]:
            writer.synthesise(slot, intent_slot)
    coherence, grounding = writer.present(itinerary)
    for member in writer.speakers():
        if not writer.happens():
            writer.say(member, "user_accept_plan", "Sounds good to me.")
    expected = _expected(writer)
    expected["M9"], expected["M16"] = grounding, coherence
    expected["M10b"] = None if coherence is None else writer.categories(itinerary)
    if expected["M10b"] == [0, 0]:
        expected["M10b"] = None
    metadata = writer.metadata(_content_reveals_flags(writer))
    return Made(writer.id, writer.condition, metadata, writer.rows, expected)


def _expected(writer: Writer) -> Expected:
    """Return the expected numbers of cases planted in the dialogue itself."""
    flags, counts = writer.flags, writer.counts
    on = {"M2": "enable_synthesis", "M3": "enable_synthesis"}
    expected: Expected = {"M1": [len(writer.speakers()), len(writer.scenario.members)]}
    for metric in ("M2", "M3", "M4b"):
        applies = metric not in on or flags[on[metric]]
        expected[metric] = counts.get(metric) if applies else None
    expected["M4"] = counts.get("M4") if flags["use_social_theory"] else 0.0
    expected["M5"] = counts.get("M5") if flags["enable_feedback"] else 0.0
    return expected


def _content_reveals_flags(writer: Writer) -> bool:
    """Return whether the turns alone reveal the condition."""
    intents = {row["intent"].rsplit("_", 1)[0] for row in writer.rows}
    strategies: Sequence[int] = writer.counts.get("M4", [0, 0])
    shown = (
        len(writer.speakers()) > 1,
        any(row["intent"].startswith("sys_synthesize_") for row in writer.rows),
        strategies[0] > 0,
        any(intent.startswith(("user_feedback", "sys_feedback")) for intent in intents),
    )
    return shown == FLAGS[writer.condition]
