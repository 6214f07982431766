"""The suite's fixed words, and its lexicon."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fastscore.suites.declarations import Vocabulary
from fastscore.suites.lexicon_tables import lexicon_content, parse_lexicon

SLOTS = (
    "traveler_type",
    "travel_purpose",
    "spending_preference",
    "cuisine",
    "attraction",
    "event",
    "lodging",
)
SLOT_ALIASES = {
    "room_type": "lodging",
    "accommodation": "lodging",
    "hotel": "lodging",
    "spending": "spending_preference",
    "restaurant": "cuisine",
    "food": "cuisine",
    "events": "event",
    "attractions": "attraction",
}
ACTIONABLE = ("lodging", "cuisine", "event", "attraction")
CATEGORY_SLOTS = ("cuisine", "event", "attraction")
KIND_OF_SLOT = {
    "lodging": "accommodations",
    "cuisine": "restaurants",
    "event": "events",
    "attraction": "attractions",
}
ROOM_TYPES = ("entire", "private", "shared")
MEALS = ("breakfast", "lunch", "dinner")
STOP = "stop"
PLAN_KINDS = (*MEALS, "accommodation", "attraction", "event", STOP)
"""The kinds of places in a plan."""
SLOT_OF_KIND = {
    **dict.fromkeys(MEALS, "cuisine"),
    "accommodation": "lodging",
    "attraction": "attraction",
    "event": "event",
}
CATALOGUES = ("accommodations", "restaurants", "attractions", "events")
CATALOGUE_COLUMNS = tuple(f"ref_info_{kind}" for kind in CATALOGUES)
FLAGS = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")
CONDITIONS = {
    "C1": (False, False, False, False),
    "C2": (True, False, False, False),
    "C3": (True, True, False, False),
    "C4": (True, True, True, False),
    "C5": (True, True, True, True),
}
CUSTOM = "custom"
INTENTS_OF_SLOTS = (
    "user_provide",
    "sys_synthesize",
    "user_respond",
    "sys_request_vote",
    "user_vote",
    "user_feedback",
    "sys_feedback",
)
PLAIN_INTENTS = ("sys_present_plan", "user_accept_plan", "user_approve_approach")
INTENTS = Vocabulary(
    known=("", *(f"{intent}_*" for intent in INTENTS_OF_SLOTS), *PLAIN_INTENTS), in_any_case=True
)
PROVIDE, SYNTHESIZE, RESPOND, REQUEST_VOTE, VOTE, USER_FEEDBACK, SYS_FEEDBACK = INTENTS_OF_SLOTS
PRESENT_PLAN, ACCEPT_PLAN, APPROVE = PLAIN_INTENTS
FEEDBACK = (USER_FEEDBACK, SYS_FEEDBACK)
SYSTEM_SPEAKERS = ("system", "sys", "assistant", "agent", "planner", "mediator")
EVERYONE = ("all", "everyone", "group")

NULLS = (
    *("", "-", "n/a", "na", "none", "null", "nil", "nan", "unknown", "not applicable"),
    *("no strategy", "no conflict", "tbd"),
)
"""Placeholders for no strategy and no explanation, stripped and casefolded."""
UNFILLED = ("", "na", "n a", "none", "null", "nan", "nil", "tbd")
"""Placeholders for no place in a plan, normalised."""


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All words that the suite looks for."""

    version: str  # the file's own version; written in every output
    uninformative: frozenset[str]  # words that carry no information in any preference
    # words that carry none in the preferences of a slot
    slot_generic: Mapping[str, tuple[str, ...]]
    category_drop: frozenset[str]  # folded parts of category names that mean nothing
    category_alias: Mapping[str, str]  # other names of folded parts
    categories: Mapping[str, tuple[str, ...]]  # by slot the categories that count in any catalogue
    inverted: tuple[str, ...]  # phrases that are read as "not"
    # words that turn the mention after them round
    room_negators: tuple[str, ...]
    conflict_negators: tuple[str, ...]
    rooms: Mapping[str, tuple[str, ...]]  # by room type the patterns of its mention
    # by room type what a catalogue's normalised room type contains
    room_names: Mapping[str, tuple[str, ...]]
    # patterns that name a conflict; that give away a theory
    conflict: tuple[str, ...]
    theory: tuple[str, ...]


def load_lexicon(path: str = "") -> Lexicon:
    """Read a lexicon."""
    return _parse(path, lexicon_content(path, __package__))


_TOP = ("version", "stop", "filler", "slot_generic", "category", "rooms", "conflict", "theory")
_ROOMS = ("inverted", "negators", "catalogue", *ROOM_TYPES)


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    top = parse_lexicon(path, content, _TOP)
    category = top.table("category", ("drop", "alias", "known"))
    rooms = top.table("rooms", _ROOMS)
    room_names = rooms.table("catalogue", ROOM_TYPES)
    conflict = top.table("conflict", ("negators", "patterns"))
    theory = top.table("theory", ("patterns",))
    return Lexicon(
        version=top.word("version"),
        uninformative=frozenset((*top.words("stop"), *top.words("filler"))),
        slot_generic=top.words_by_name("slot_generic", SLOTS),
        category_drop=frozenset(category.words("drop")),
        category_alias=category.word_by_name("alias"),
        categories=category.words_by_name("known", CATEGORY_SLOTS),
        inverted=rooms.words("inverted"),
        room_negators=rooms.words("negators"),
        conflict_negators=conflict.words("negators"),
        rooms={name: rooms.patterns(name) for name in ROOM_TYPES},
        room_names={name: room_names.words(name) for name in ROOM_TYPES},
        conflict=conflict.patterns("patterns"),
        theory=theory.patterns("patterns"),
    )
