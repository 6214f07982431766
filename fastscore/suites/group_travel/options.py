"""The options of the suite."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import names_arguments
from fastscore.settings.options import FilePath, check_values, documented, option


@names_arguments
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTravel:
    """The options of `group_travel`.

    Examples
    --------
    >>> fastscore.GroupTravel(negation="all", m12_target="slot")
    """

    suite: ClassVar[str] = "group_travel"
    runs_without_embedder: ClassVar[bool] = True

    address_sim: float = option(
        0.45,
        help="Minimum similarity of a text that addresses a preference (M8).",
        minimum=0.0,
        maximum=1.0,
    )
    satisfy_sim: float = option(
        0.42,
        help="Minimum similarity of a place that satisfies a preference (M10).",
        minimum=0.0,
        maximum=1.0,
    )
    serendipity_sim: float = option(
        0.30,
        help="Minimum similarity of a serendipitous place, which no preference names (M15).",
        minimum=0.0,
        maximum=1.0,
    )
    m12_target: Literal["plan", "slot"] = option(
        "plan",
        help="What M12 compares a preference with: the plan's entries for the slot and the "
        "planner's raw output, or the entries alone.",
    )
    m12_long: Literal["windows", "cut"] = option(
        "windows",
        help="Texts beyond the model's limit in M12: windows, whose vectors are averaged by "
        "tokens, or cut at the limit like in the published method.",
    )
    negation: Literal["rooms", "all"] = option(
        "rooms",
        help="Where negations count: in wishes for rooms, or also in wishes for categories. A "
        "category after a negator in its clause is then not a wish.",
    )
    strict_overnight: bool = option(
        False, help="Do not let the last stop of a day end after midnight (M16)."
    )
    lexicon: FilePath = option(
        "",
        help="A TOML file of words that replaces the whole built-in lexicon.",
        names_file=True,
        built_in="lexicon.toml",
    )
    by_group_type: bool = option(
        False, help="Also summarise by group type, and by condition within each.", signed=False
    )

    def __post_init__(self) -> None:
        check_values(self)
