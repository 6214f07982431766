"""Unrealistic dialogues: strategies of odd words, cells, plans and turns."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SPEAKERS = ("Ann", " ann", "BOB", "Zoë", "System", "planner", " Mediator ", "Everyone", "group")
SLOT_NAMES = (
    *("cuisine", "food", "event", "events", "attraction", "lodging", "Room_Type", "hotel"),
    *("traveler_type", "house_rule", "spending"),
)
PHRASES = (
    *("Italian food", "BBQ or barbecues", "a café, cafes even", "fast food & pizza", "movies"),
    *("Not a museum but parks", "museums, Museums; MUSEUM", "live music", "theater and sports"),
    *("a private room", "no hostels", "anything but a shared room", "share a room", "entire home"),
    *("rather than a dorm", "we don't want, ever, to share a room", "own room; however a dorm"),
    *("I would like something", "Sushi", "12 seats", "東京 寿司", "Straße ŒUVRE ﬁne", "हिन्दी संगीत"),
    *("O'Neill's “Pub”", "spas", "glass bus tennis", "", "   ", "n/a", "-", "İstanbul", "x_y_z"),
    *("no conflict here", "Conflict: none", "a compromise", "tastes differ", "any trade-offs"),
    *("without a real balance", "parental authority", "least_misery", "include both rule", "nash"),
    *("sub-groups", "the elders, senior veto", "Roma is great", "the Wok house", "Museum of Art"),
)
NAMES = (
    *("Roma", "Wok", "Museum of Art", "Fort Park", "Loft, the (west)", "Café Zoë", "Nowhere"),
    *("Roma (old)", "Jazz Night", "Go", "12"),
)
ENDS = ("", ", Salem", ", Salem (Oregon)", "; Cost: 14", ".", " ;", "; -")
TIMES = ("09:00", "9:30 AM", "12:15 p.m.", "13:00 pm", "23:30", "24:00", "25:00", "8:75", "00:10")
STOPS = (
    *("A from 11 PM till 1 AM", "B 9:00–10:00", "A, check-in from 11:30 p.m. until 12:30 a.m."),
    *("A 13:00 pm - 14:00 pm", "A 0:30 am - 1:00 am", "A 10:75 - 11:00", "A 23:00 - 25:00"),
    *("A 22:00 - 24:00", "A (9:00-10:00)", "B 8:00-9:00", "A, visit from 09:00 to 09:00", "-"),
)
EMPTY_CELLS = ("", "nan", "{}", "-", "None", None)
ROOM_TYPES = ("Entire home/apt", "Private room", "shared_room", "Whole villa", "boat", None)
CATEGORIES = (
    "Italian, Tea",
    ["Fast Food", "BBQ"],
    "['Museums', 'Nature & Parks']",
    "Jazz|Movies",
    "",
)
TRUTHS = (True, False, "true", "no", "1", 0, None)


def phrases(most: int = 3) -> st.SearchStrategy[str]:
    # U+001C to U+001F are white space for Python alone
    odd = st.text(st.characters(exclude_characters="\x1c\x1d\x1e\x1f", codec="utf-8"), max_size=8)
    parts = st.one_of(*[st.sampled_from(PHRASES)] * 9, odd)
    return st.lists(parts, min_size=1, max_size=most).map(" ".join)


def written(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Write a cell as it is, as JSON, as a Python literal, or not at all."""
    forms: tuple[Callable[[Any], Any], ...] = (lambda value: value, json.dumps, str)
    shaped = st.tuples(values, st.sampled_from(forms)).map(
        lambda pair: pair[0] if isinstance(pair[0], str) else pair[1](pair[0])
    )
    return st.one_of(shaped, shaped, st.sampled_from(EMPTY_CELLS))


def some_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


place_texts = st.tuples(st.sampled_from(NAMES), st.sampled_from(ENDS)).map("".join)
places = st.one_of(
    place_texts,
    st.sampled_from(("-", "", "N/A", "none", None)),
    st.lists(place_texts, max_size=3),
    st.lists(place_texts, max_size=3).map("; ".join),
    st.sampled_from(NAMES).map(lambda name: {"name": name}),
)
spans = st.tuples(st.sampled_from(TIMES), st.sampled_from(TIMES))
entries = st.one_of(
    st.tuples(st.sampled_from(NAMES[:4]), spans).map(
        lambda e: f"{e[0]}, visit from {e[1][0]} to {e[1][1]}, nearest transit: Elm St, 5m away"
    ),
    st.tuples(st.sampled_from(NAMES[:4]), spans).map(lambda e: f"{e[1][0]} - {e[1][1]}: {e[0]}"),
    st.sampled_from(NAMES),
    st.sampled_from(STOPS),
)
points = st.one_of(
    st.lists(entries, max_size=4).map(";".join),
    st.lists(entries, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(NAMES), spans).map(
            lambda e: {"place": e[0], "start": e[1][0], "end_time": e[1][1]}
        ),
        max_size=3,
    ),
    st.just(
        [{"poi": "A", "time": "9:00 - 10:00"}, {"name": "B", "start": None, "end_time": "9:00"}]
    ),
)
days = some_of(
    days=st.integers(1, 7),
    breakfast=places,
    Lunch=places,
    dinner=places,
    accommodation=places,
    Attractions=places,
    event=places,
    point_of_interest_list=points,
)
plans = st.one_of(
    st.lists(days, max_size=3),
    some_of(days=st.lists(days, max_size=3), raw_output=phrases(6)),
    some_of(days=st.integers(1, 3), itinerary=st.lists(days, max_size=2)),
    phrases(),
)
synthesis = some_of(
    has_conflict=st.sampled_from(TRUTHS),
    conflict_description=phrases(),
    resolution_strategy=st.sampled_from(("N/A", "Include Both", None, "no strategy")),
    strategy_id=st.sampled_from(("", "log_roll", None)),
    resolution_explanation=st.one_of(phrases(), st.sampled_from(("N/A", None, "tbd"))),
)
synthesis_cells = st.one_of(synthesis, synthesis.map(lambda found: {"synthesis": found}))
states = st.dictionaries(
    st.sampled_from(("slot_decision_state", "synthesis", "slot_decisions")),
    st.dictionaries(st.sampled_from(("cuisine", "lodging", "event")), synthesis, max_size=2),
    max_size=2,
)


def records(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    found = st.lists(some_of(**fields), max_size=4)
    return st.one_of(found, found.map(lambda rows: {"in Salem": rows, "note": "x"}))


catalogues = some_of(
    ref_info_restaurants=written(
        records(Name=st.sampled_from(NAMES), Cuisines=st.sampled_from(CATEGORIES))
    ),
    ref_info_accommodations=written(
        records(
            **{
                "NAME": st.sampled_from(NAMES),
                "room type": st.sampled_from(ROOM_TYPES),
                "house_rules": st.sampled_from(("No pets", "")),
            }
        )
    ),
    ref_info_attractions=written(
        records(
            name=st.sampled_from(NAMES),
            subcategories=st.sampled_from(CATEGORIES),
            description=phrases(),
        )
    ),
    ref_info_events=written(
        records(eventName=st.sampled_from(NAMES), segmentName=st.sampled_from(CATEGORIES))
    ),
)
prefixes = st.sampled_from(
    ("user_provide_", "USER_PROVIDE_", "sys_synthesize_", "sys_synthesize_", "user_feedback_")
)
slot_turns = st.fixed_dictionaries(
    {
        "speaker": st.sampled_from(SPEAKERS),
        "intent": st.tuples(prefixes, st.sampled_from(SLOT_NAMES)).map("".join),
        "utterance": phrases(),
    },
    optional={"metadata": written(synthesis_cells), "constraint_state": written(states)},
)
other_turns = st.tuples(
    st.fixed_dictionaries(
        {
            "speaker": st.sampled_from(SPEAKERS),
            "intent": st.sampled_from(("sys_present_plan", "user_accept_plan", "chat", "")),
            "utterance": phrases(),
        },
        optional={"plan": written(plans)},
    ),
    catalogues,
).map(lambda parts: {**parts[0], **parts[1]})
metadata = st.fixed_dictionaries(
    {},
    optional={
        **{flag: st.booleans() for flag in ("multi_user", "enable_synthesis", "enable_feedback")},
        "condition": st.sampled_from(("C1", "c3", "C4", "C5", "C9")),
        "flags": st.fixed_dictionaries({}, optional={"use_social_theory": st.booleans()}),
        "member_count": st.integers(0, 5) | st.sampled_from(("2", "3")),
        "members": st.lists(st.just({"name": "x"}), max_size=4),
        "group_type": st.sampled_from(("family", "strangers")),
    },
)
dialogues = st.tuples(
    metadata, st.lists(st.one_of(slot_turns, slot_turns, other_turns), min_size=1, max_size=14)
)
