"""The options of the suite: how much the letters count, and what the meaning is compared by."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fastscore.errors import UsageError, names_arguments
from fastscore.settings.options import check_values, documented, option

MAXIMUM_TEXT = 1_000_000
"""Default of `max_text`, in characters."""


@names_arguments
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDialogue:
    """The options of `score_dialogue`. Each of them changes numbers.

    Examples
    --------
    >>> options = fastscore.ScoreDialogue(lex_weight=1.0)
    >>> fastscore.score("logs", options)
    """

    suite: ClassVar[str] = "score_dialogue"

    lex_weight: float = option(
        0.5,
        help="Weight of the lexical part. The semantic part has the rest. The published command "
        "has 0.5, the function score_jsonl 0. A part without weight is not computed, and at 1 no "
        "embedder is needed.",
        minimum=0.0,
        maximum=1.0,
    )
    semantic: Literal["calibrated", "cosine", "jaccard"] = option(
        "calibrated",
        help="Semantic similarity: the cosine calibrated by the dialogue's baseline, the plain "
        "cosine, or the Jaccard index of the words (no embedder).",
    )
    baseline_pairs: int = option(
        20_000,
        help="Random pairs of ground truths whose mean cosine is a dialogue's baseline. Values "
        "below 1 count as 1.",
        maximum=10_000_000,
        unit="pairs",
    )
    baseline_seed: int = option(
        0,
        help="Seed of the random pairs, for Python's random.Random.",
        minimum=-(2**63),
        maximum=2**63 - 1,
    )

    max_text: int = option(
        MAXIMUM_TEXT,
        help="Maximum length of a prediction or a ground truth. A longer one is a reject. Edit "
        "distances of longer texts take minutes.",
        minimum=1,
        unit="characters",
    )
    pppl_model: str = option(
        "",
        help="A masked language model (`fastscore models export FOLDER --task fill-mask`), for "
        "the pseudo-perplexity of predictions and ground truths.",
        names_masked_model=True,
    )
    pppl_weight: float = option(
        0.0,
        help="Penalty for predictions with a higher perplexity than the ground truth. U_step is "
        "multiplied by (PPPL of the ground truth / PPPL of the prediction) to this power, at most "
        "1. Not part of the published scorer.",
        minimum=0.0,
        maximum=1000.0,
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.pppl_weight > 0 and not self.pppl_model:
            raise UsageError(
                f"pppl_weight is {self.pppl_weight:g}, but no pppl_model is named.",
                "Name a masked language model, or leave the weight out.",
            )

    @property
    def scores_lexical(self) -> bool:
        """Whether the lexical part has any weight."""
        return self.lex_weight > 0.0

    @property
    def scores_semantic(self) -> bool:
        """Whether the semantic part has any weight."""
        return self.lex_weight < 1.0

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The ranges of metrics that only a plain cosine makes negative."""
        if self.scores_semantic and self.semantic == "cosine":
            return {}
        metrics = ("semantic_similarity", "U_step", "U_best", "average_U_best_early")
        return dict.fromkeys(metrics, (0.0, 1.0))

    @property
    def needs_vectors(self) -> bool:
        """Whether the semantic part compares vectors."""
        return self.scores_semantic and self.semantic != "jaccard"

    @property
    def calibrates(self) -> bool:
        """Whether cosines are read against the dialogue's baseline."""
        return self.scores_semantic and self.semantic == "calibrated"
