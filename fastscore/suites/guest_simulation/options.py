"""The suite's options, and its fixed names."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import UsageError, names_arguments
from fastscore.settings.options import FilePath, check_values, documented, option

GROUPS = ("experiment_level",)
LEVELS = (1, 2, 3, 4, 5)

GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")
GUEST_NAMES = "guest"
"""How the names of guests begin, whatever their roles."""
OTHER_ROLES = ("assistant", "order_taking_llm", "system", "developer", "tool", "function")
ORDER_COLUMN = "current_items_in_order"
STATE_WORDS: dict[str, tuple[str, ...]] = {
    "is_ordering_complete": ("yes", "no"),
    "menu_exploration_style": ("explores_menu", "does_not_explore_menu"),
    "mood_tone": ("casual", "frustrated", "confused", "enthusiastic"),
    "ordering_style": ("one_by_one", "all_at_once"),
}
"""The parts of a state, and the words of each."""
STATE_COLUMNS = tuple(STATE_WORDS)
DEFAULT_STATE = ("no", "does_not_explore_menu", "casual", "all_at_once")
TOOL_COLUMNS = ("uses_order_tracking", "uses_message_attributes", "uses_basic_tools")
MATCH_COLUMNS = ("completion_match", "exploration_match", "mood_match", "ordering_match")

STATE_SOURCES = ("columns", "tools", "heuristic")
ORDER_SOURCES = ("columns", "tools")
PAS_SOURCES = ("attributes", "fallback")
ORA_SOURCES = ("states", "text")


@names_arguments
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSimulation:
    """The options of `guest_simulation`.

    Examples
    --------
    >>> fastscore.GuestSimulation(profile="published", level=1)
    """

    suite: ClassVar[str] = "guest_simulation"

    profile: Literal["default", "published"] = option(
        "default",
        help="default: exits and messages without a state do not count as behaviour, unscored "
        "cases are null, and tools count by name. published: the rules of the public evaluation.",
    )
    states: Literal["auto", "columns", "tools", "heuristic", "llm"] = option(
        "auto",
        help="Source of a guest's states. auto: the first source that a conversation has. llm: "
        "files that a chat model wrote (--states-from).",
    )
    states_from: FilePath = option(
        "",
        help="A folder of published files of states, exp<k>/<conversation>_states.csv. They "
        "replace the log's state columns.",
        names_folder="exp*/*_states.csv",
    )
    personas: FilePath = option(
        "",
        help="A JSON file of persona attributes by full name, and of test cases, for logs without "
        "them.",
        names_file=True,
    )
    level: int = option(
        0,
        help="The experiment level of conversations without a level in a column or a folder "
        "exp<k>, 1 to 5. 0: no level.",
        minimum=0,
        maximum=5,
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.states == "llm" and not self.states_from:
            raise UsageError(
                "states is 'llm', but no files of states are named.",
                "`fastscore annotate states` writes them; name their folder in states_from.",
            )
        if self.states_from and self.states not in ("auto", "columns", "llm"):
            raise UsageError(
                f"states is {self.states!r}, but states_from names files of states.",
                "Leave one of them out.",
            )

    @property
    def forced_source(self) -> str | None:
        """The one source that states may come from, or None for the first that there is."""
        if self.states_from:
            return "columns"
        return None if self.states == "auto" else self.states

    @property
    def published(self) -> bool:
        """Whether the profile is the public evaluation's."""
        return self.profile == "published"
