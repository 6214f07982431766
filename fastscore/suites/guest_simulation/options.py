"""The options of the suite."""

from dataclasses import dataclass

from fastscore.suites.base import option


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSimulationOptions:
    """The options of `guest_simulation`."""

    profile: str = option(
        "default",
        help="default: exits and messages without a state are no behaviour, nothing to score is "
        "null, tools count by name; published: as the public evaluation does it.",
        choices=("default", "published"),
    )
    states: str = option(
        "auto",
        help="Where a guest's states come from; auto takes the first that a conversation has.",
        choices=("auto", "columns", "tools", "heuristic"),
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

    @property
    def published(self) -> bool:
        """Whether the profile is the public evaluation's."""
        return self.profile == "published"
