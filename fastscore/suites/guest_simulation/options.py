"""The options of the suite."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import UsageError
from fastscore.options import check_values, option


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSimulation:
    """The options of `guest_simulation`."""

    suite: ClassVar[str] = "guest_simulation"

    profile: Literal["default", "published"] = option(
        "default",
        help="default: exits and messages without a state are no behaviour, nothing to score is "
        "null, tools count by name; published: as the public evaluation does it.",
    )
    states: Literal["auto", "columns", "tools", "heuristic", "llm"] = option(
        "auto",
        help="Where a guest's states come from; auto takes the first that a conversation has, llm "
        "is what a chat model read into files (--states-from).",
    )
    states_from: str = option(
        "",
        help="A folder of the published files of states, exp<k>/<conversation>_states.csv, which "
        "count instead of the log's state columns.",
        names_folder="exp*/*_states.csv",
    )
    personas: str = option(
        "",
        help="A JSON file of persona attributes by full name, and of test cases, for logs that "
        "do not hold them.",
        names_file=True,
    )
    level: int = option(
        0,
        help="The experiment level of conversations that neither a column nor a folder exp<k> "
        "gives one; 0 for none.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.states == "llm" and not self.states_from:
            raise UsageError(
                "--states is 'llm', but no files of states are named.",
                "`fastscore annotate states` writes them; name their folder by --states-from.",
            )
        if self.states_from and self.states not in ("auto", "columns", "llm"):
            raise UsageError(
                f"--states is {self.states!r}, but --states-from names files of states.",
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
