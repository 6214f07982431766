"""The terms of the suite: levels, roles, columns of states, and where states come from."""

GROUPS = ("experiment_level",)
LEVELS = (1, 2, 3, 4, 5)

GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")
GUEST_NAMES = "guest"
"""How the names of guests begin, whatever their roles."""
OTHER_ROLES = ("assistant", "order_taking_llm", "system", "developer", "tool", "function")
STATE_COLUMNS = ("is_ordering_complete", "menu_exploration_style", "mood_tone", "ordering_style")
ORDER_COLUMN = "current_items_in_order"
DEFAULT_STATE = ("no", "does_not_explore_menu", "casual", "all_at_once")
TOOL_COLUMNS = ("uses_order_tracking", "uses_message_attributes", "uses_basic_tools")
MATCH_COLUMNS = ("completion_match", "exploration_match", "mood_match", "ordering_match")

STATE_SOURCES = ("columns", "tools", "heuristic")
ORDER_SOURCES = ("columns", "tools")
PAS_SOURCES = ("attributes", "fallback")
ORA_SOURCES = ("states", "text")
