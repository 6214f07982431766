"""The terms of the published reference: slots, catalogues, conditions, and what means nothing."""

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
