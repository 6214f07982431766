"""What group_travel dialogues are made of: slots, groups, conditions, sentences to choose from."""

import json

from benchmarks.group_travel_sources import HERE

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
