"""The options of the suite."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import UsageError, names_arguments
from fastscore.settings.options import FilePath, check_values, documented, option


@names_arguments
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFinance:
    """The options of `memory_finance`.

    Examples
    --------
    >>> options = fastscore.MemoryFinance(profile="published")
    >>> fastscore.score("traces/logs", options)
    """

    suite: ClassVar[str] = "memory_finance"

    profile: Literal["default", "published"] = option(
        "default",
        help="How a null reply in a turn of status ok counts. default: as missing, so the turn "
        "counts for no metric. published: as empty, so the turn complies.",
    )
    ignore_memory_keys: bool = option(
        False,
        help="Ignore the required memory keys of every turn, as for a baseline without memory. No "
        "turn counts for M1 then.",
    )
    lexicon: FilePath = option(
        "",
        help="A TOML file of words that replaces the whole built-in lexicon.",
        names_file=True,
        built_in="lexicon.toml",
    )
    legacy_files: bool = option(
        False,
        help="Also write metrics_summary.json, turn_eval.jsonl and report.md as the published "
        "evaluation does, byte for byte.",
        signed=False,
    )
    legacy_dataset_path: str = option(
        "",
        help="The dataset path in the legacy files, which logs do not contain.  [default: the "
        "input as given]",
        signed=False,
    )

    @property
    def nulls_are_empty(self) -> bool:
        """Whether a reply that is null counts as an empty one, as published."""
        return self.profile == "published"

    def __post_init__(self) -> None:
        check_values(self)
        if self.legacy_dataset_path and not self.legacy_files:
            raise UsageError(
                f"legacy_dataset_path is {self.legacy_dataset_path!r}, but no "
                "legacy files are asked for.",
                "Set legacy_files, or leave the path out.",
            )
