"""The options of the suite: a profile, and a switch for everything that a profile decides."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fastscore.errors import UsageError, names_arguments
from fastscore.settings.options import FilePath, check_values, documented, option

ATTRIBUTES = ("genre", "actor", "director", "writer", "language", "year")
PLOT = "plot"
USUAL_FIELDS = (*ATTRIBUTES, "name")
_NAMED = ",".join(USUAL_FIELDS)
_OF_PROFILES = ("match", "fields", "plot_keywords", "recovery")
PROFILES: dict[str, dict[str, Any]] = {
    name: dict(zip(_OF_PROFILES, values, strict=True))
    for name, *values in (
        ("default", "word", _NAMED, False, "cc"),
        ("published", "substring", _NAMED, True, "cc"),
        ("structured", "substring", ",".join(ATTRIBUTES), False, "cc-or-cr"),
        ("legacy", "substring", _NAMED, True, "cc"),
    )
}
"""What each profile decides; an option that is given wins."""

RECOVERY_CC = {"cc": 0.65, "cc-or-cr": 0.35}
"""The least CC at which a turn counts as recovered, by recovery test."""

CONCEPTS = "How concepts are found: changes the score"
"""The heading of options that say what a concept is."""

RECOVERIES = "How recoveries are found: changes the score"
"""The heading of options that say when a turn has recovered from a shift."""

CAS_PARTS = (
    "topic_recovery_rate",
    "avg_recovery_delay",
    "topic_interference",
    "cross_coherence",
    "context_retention",
)


@names_arguments
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceShift:
    """The options of `preference_shift`.

    An option whose default is None has the value that the profile gives it from the moment the
    object is made, so that the signature names every switch with its value.

    Examples
    --------
    >>> options = fastscore.PreferenceShift(
    ...     catalogue="shifts/catalogue.jsonl", segments="metadata", window=3
    ... )
    >>> fastscore.score("shifts/logs", options, embedder=None)
    """

    suite: ClassVar[str] = "preference_shift"

    profile: Literal["default", "published", "structured", "legacy"] = option(
        "default",
        help="published: the public evaluation (V4). structured: its successor. legacy: its "
        "predecessor, with topics instead of concepts. default: the published formulas, with "
        "values matched as whole words and without plot keywords.",
    )
    catalogue: FilePath = option(
        "",
        help="The items that concepts come from: JSON, JSON Lines, CSV or Parquet, plain, .gz or "
        ".zst. Required.",
        names_file=True,
        required=True,
        heading=CONCEPTS,
    )
    extract: Literal["lexical", "embed", "ngrams", "llm"] = option(
        "lexical",
        help="How concepts are found. lexical: values in the text. embed: values with the most "
        "similar vectors. ngrams: values with the most similar character n-grams. llm: values in a "
        "file that a chat model wrote.",
        heading=CONCEPTS,
    )
    annotations: FilePath = option(
        "",
        help="With --extract llm: the file of `fastscore annotate concepts`.",
        names_file=True,
        heading=CONCEPTS,
    )
    match: Literal["word", "substring"] | None = option(
        None,
        help="Values match as whole words or as any substring.  [default: by the profile]",
        heading=CONCEPTS,
    )
    aliases: FilePath = option(
        "",
        help="A CSV table of other spellings of the catalogue's values, with the columns spelling, "
        "value and optionally field.",
        names_file=True,
        heading=CONCEPTS,
    )
    fields: str | None = option(
        None,
        help="The catalogue's fields whose values are concepts, separated by commas.  "
        "[default: by the profile]",
        heading=CONCEPTS,
    )
    plot_keywords: bool | None = option(
        None,
        help="Use keywords of the plots as concepts too.  [default: by the profile]",
        heading=CONCEPTS,
    )
    embed_threshold: float = option(
        0.35,
        help="With --extract embed or ngrams: minimum cosine of a text and a value.",
        minimum=-1.0,
        maximum=1.0,
        heading=CONCEPTS,
    )
    embed_top: int = option(
        3,
        help="With --extract embed or ngrams: maximum number of values of one field.",
        minimum=1,
        maximum=1000,
        heading=CONCEPTS,
    )
    alpha: float = option(1.0, help="Weight of CC in TAS.")
    beta: float = option(1.0, help="Weight of CR in TAS.")
    gamma: float = option(1.0, help="Weight of copying (I) in TAS, subtracted.")
    copy_orders: str = option(
        "3,4", help="Orders of the n-grams of copying, separated by commas.", unit="words"
    )
    recovery: Literal["cc", "cc-or-cr"] | None = option(
        None,
        help="The recovery test of a turn: CC, or CC or CR, reaches its threshold.  "
        "[default: by the profile]",
        heading=RECOVERIES,
    )
    recovery_cc: float | None = option(
        None,
        help="The threshold of CC.  [default: 0.65 for cc, 0.35 for cc-or-cr]",
        minimum=0.0,
        maximum=1.0,
        heading=RECOVERIES,
    )
    recovery_cr: float = option(
        0.65,
        help="The threshold of CR, also for recovery by CR alone.",
        minimum=0.0,
        maximum=1.0,
        heading=RECOVERIES,
    )
    window: int = option(
        3,
        help="Turns in which a shift can be recovered, from the turn of the shift on. Values below "
        "1 count as 1.",
        unit="turns",
        heading=RECOVERIES,
    )
    cas_weights: str = option(
        "0.01,0.02,0.02,0.30,0.15",
        help="Weights of recovery rate, delay, copying, CC and CR in CAS, scaled to a sum of 1.",
    )
    segments: Literal["embedding", "heuristic", "metadata"] = option(
        "embedding",
        help="How a conversation without shift metadata is cut: where the user's texts change in "
        "vectors and concepts (embedding) or in topic words (heuristic), or not at all (metadata).",
    )
    merge_speakers: bool = option(
        False,
        help="Join consecutive turns of one speaker first. A system turn at the start is skipped.",
    )
    legacy_files: bool = option(
        False,
        help="Also write results.jsonl and the summary CSVs with the published field names.",
        signed=False,
    )

    def __post_init__(self) -> None:
        """Put the profile's values where none was given, and check what goes together."""
        check_values(self)
        if not self.catalogue:
            raise UsageError(
                "No catalogue is named: concepts are values of its items.",
                'Set catalogue to a file with a line for each item, such as {"name": "Heat", '
                '"genre": ["crime"], "actor": ["Al Pacino"]}.',
            )
        if (self.extract == "llm") != bool(self.annotations):
            raise UsageError(
                f"extract is {self.extract} and annotations {self.annotations or 'not given'}.",
                "Concepts of a model are in a file, which `fastscore annotate concepts` writes: "
                "set extract to llm and annotations to the file.",
            )
        self._take_profile()
        self._check_concepts()
        for name in ("alpha", "beta", "gamma"):
            if not math.isfinite(weight := getattr(self, name)):
                raise UsageError(f"{name} is {weight}, expected a finite number.")
        _numbers("copy_orders", self.copy_orders, int, 1)
        if sum(self._weights) == 0:
            raise UsageError(f"cas_weights is {self.cas_weights!r}, expected one above 0.")
        if self.is_legacy and self.cas_shares["avg_recovery_delay"] == 1:
            raise UsageError(
                f"cas_weights is {self.cas_weights!r}, expected another weight than that of the "
                "delay in profile legacy: without a recovery there is no delay."
            )

    def _take_profile(self) -> None:
        if self.is_legacy:
            if self.segments == "metadata":
                raise UsageError(
                    "profile legacy cuts segments by the user's texts; segments is metadata.",
                    "Leave segments out.",
                )
            object.__setattr__(self, "segments", "heuristic")
        resolved = dict(PROFILES[self.profile])
        resolved["recovery_cc"] = RECOVERY_CC[self.recovery or resolved["recovery"]]
        for name, value in resolved.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def _check_concepts(self) -> None:
        if self.aliases and self.extract != "lexical":
            raise UsageError(
                f"aliases {self.aliases}: texts are not searched for spellings with "
                f"extract {self.extract}.",
                "Leave out one of the two.",
            )
        if self.extract == "ngrams" and self.embed_threshold <= 0:
            raise UsageError(
                f"embed_threshold is {self.embed_threshold}, expected one above 0 with extract "
                "ngrams: a text and a value without a common n-gram have 0."
            )

        names = self.field_names
        if PLOT in names:
            raise UsageError(f"fields names {PLOT!r}.", "Plots give keywords: set plot_keywords.")
        if not names and not self.plot_keywords:
            raise UsageError(f"fields is {self.fields!r}, expected names of fields.")
        if len(set(names)) < len(names):
            raise UsageError(f"fields is {self.fields!r}, expected each name once.")

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields whose values are concepts, without the plot."""
        return tuple(name.strip() for name in (self.fields or "").split(",") if name.strip())

    @property
    def plot_prefix(self) -> str:
        """The text before the ``=`` of a plot concept."""
        return "plot_kw" if self.profile == "structured" else PLOT

    @property
    def orders(self) -> tuple[int, ...]:
        """Numbers of words of the n-grams of copying."""
        return tuple(_numbers("copy_orders", self.copy_orders, int, 1))

    @property
    def _weights(self) -> list[float]:
        return _numbers("cas_weights", self.cas_weights, float, 0, len(CAS_PARTS))

    @property
    def cas_shares(self) -> dict[str, float]:
        """The weights of CAS by part, summing to 1."""
        total = sum(self._weights)
        return {part: w / total for part, w in zip(CAS_PARTS, self._weights, strict=True)}

    @property
    def is_legacy(self) -> bool:
        """Whether recovery is that of topics, by the evaluator before concepts were grounded."""
        return self.profile == "legacy"

    @property
    def zero_without_turns(self) -> bool:
        """Whether a mean over no turn and a rate over no shift are 0, as published."""
        return self.profile != "default"

    @property
    def gold_is_user(self) -> bool:
        """Whether the DST scores hold the system to the user's concepts without constraints."""
        return self.profile == "structured"

    @property
    def needs_vectors(self) -> bool:
        """Whether texts are compared by their vectors."""
        return self.extract == "embed" or self.segments != "metadata"


def _numbers(flag: str, text: str, kind: type[Any], minimum: float, count: int = 0) -> list[Any]:
    """Read numbers with commas between: so many of them, or any."""
    expected = f"{count or 'one or more'} numbers of at least {minimum} with commas between"
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    is_complete = len(numbers) == count if count else bool(numbers)
    if not is_complete or not all(minimum <= number < math.inf for number in numbers):
        raise UsageError(f"{flag} is {text!r}, expected {expected}.")
    return numbers
