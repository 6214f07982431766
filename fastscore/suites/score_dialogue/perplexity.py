"""The perplexity penalty: an extension of fastscore's own, off by default.

The published README mentions such a penalty, its code never had one. Here it compares the
pseudo-perplexity of a prediction with that of what was said.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array

from fastscore.suites.base import Events

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


@dataclass(frozen=True, slots=True)
class StepPerplexities:
    """Pseudo-perplexities by step; NaN for a text without tokens.

    Attributes
    ----------
    prediction, ground_truth : float64 (n,)
        At least 1.
    penalty : float64 (n,)
        Above 0, at most 1; NaN where either text has no tokens.
    """

    prediction: Float64Array
    ground_truth: Float64Array
    penalty: Float64Array

    @property
    def factor(self) -> Float64Array:
        """What U_step is multiplied by: the penalty, 1 where there is none."""
        return np.where(np.isnan(self.penalty), 1.0, self.penalty)


def judged_texts(events: Events, options: object) -> pl.Series:
    """Return the distinct predictions and ground truths of all steps."""
    steps, utterances = events.frames["steps"], events.frames["utterances"]
    stepped = utterances["ground_truth"].gather(steps["utterance_row"].unique(maintain_order=True))
    return pl.concat([steps["prediction"], stepped]).unique(maintain_order=True).rename("text")


def step_perplexities(
    prediction: pl.Series, ground_truth: pl.Series, judged: "VectorView", weight: float
) -> StepPerplexities:
    """Compare each step's prediction with its ground truth.

    ``penalty = exp(-weight * max(0, ln PPPL(prediction) - ln PPPL(ground truth)))``

    Parameters
    ----------
    prediction, ground_truth
        As many texts each, without nulls.
    judged
        Of width 1: the natural logarithm of each text's pseudo-perplexity.
    weight
        At least 0.
    """
    logs = judged.matrix[:, 0].astype(np.float64)
    of_prediction, of_ground_truth = (
        logs[judged.codes(prediction)],
        logs[judged.codes(ground_truth)],
    )
    return StepPerplexities(
        np.exp(of_prediction),
        np.exp(of_ground_truth),
        np.exp(-weight * np.maximum(0.0, of_prediction - of_ground_truth)),
    )
