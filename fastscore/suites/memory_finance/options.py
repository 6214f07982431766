"""The options of the suite."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import UsageError
from fastscore.options import check_values, option


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFinance:
    """The options of `memory_finance`."""

    suite: ClassVar[str] = "memory_finance"

    profile: Literal["default", "published"] = option(
        "default",
        help="What a reply that is null counts as in a turn of status ok: missing, so that the "
        "turn counts for no metric (default), or empty, so that it complies (published).",
    )
    ignore_memory_keys: bool = option(
        False,
        help="Empty every turn's required memory keys first, as for a baseline without memory: "
        "then no turn counts for M1.",
    )
    lexicon: str = option(
        "",
        help="A TOML file of words that replaces the built-in lexicon as a whole.",
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
        help="The dataset that the legacy files name, which no log knows.  [default: the input as "
        "given]",
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
                f"--legacy-dataset-path is {self.legacy_dataset_path!r}, but no legacy files are "
                "asked for.",
                "Add --legacy-files, or leave the path out.",
            )
