"""How TAS and the order of models by it depend on the weights of CC, CR and copying."""

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.statistics.clustered import clustered_mean
from fastscore.statistics.samples import Values
from fastscore.suites.preference_shift.analysis.intervals import cluster_sums
from fastscore.suites.preference_shift.analysis.scored import GROUP_SCHEMA, MODEL, Scored, by_group

STEPS = 10
PARTS = ("cc", "cr", "i")

GRID_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "w_cc": pl.Float64(),
    "w_cr": pl.Float64(),
    "w_copying": pl.Float64(),
    "n": pl.Int64(),
    "tas": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "rank": pl.Int64(),
}
"""TAS of a group under one choice of weights: w_cc CC + w_cr CR - w_copying I, the mean over ``n``
conversations with a 95 % interval, and the model's rank by it (1 is the highest)."""


def simplex(steps: int = STEPS) -> npt.NDArray[np.float64]:
    """Return all weights of CC, CR and copying that are multiples of 1/steps and sum to 1.

    Returns
    -------
    ndarray
        Shape (points, 3), by w_cc and then w_cr; 66 points for ten steps.
    """
    first, second = np.divmod(np.arange((steps + 1) ** 2), steps + 1)
    inside = first + second <= steps
    whole = np.stack([first, second, steps - first - second], axis=1)[inside]
    return whole / steps


def weight_grid(scored: Scored) -> pl.DataFrame:
    """Compute TAS for every choice of weights on a grid.

    As the weights sum to 1 no turn is ever clipped, so the mean over turns is the weighted sum of
    the mean parts, and nothing is scored again.

    Parameters
    ----------
    scored
        The run's scores.

    Returns
    -------
    pl.DataFrame
        In `GRID_SCHEMA`; null where a group has no conversation with scores.
    """
    weights = simplex()
    with_parts = scored.conversations.drop_nulls(PARTS)
    parts = [_grid_of(group, frame, weights) for group, frame in by_group(with_parts)]
    ranked = pl.col("tas").rank("min", descending=True).over("group", "w_cc", "w_cr")
    return (
        pl.concat(parts)
        .with_columns(pl.when(pl.col("group") == MODEL).then(ranked).cast(pl.Int64).alias("rank"))
        .select(*GRID_SCHEMA)
    )


def _grid_of(group: dict[str, str | None], frame: pl.DataFrame, weights: Values) -> pl.DataFrame:
    _, sums, counts = cluster_sums(frame, PARTS)
    found = [
        clustered_mean(
            sums @ [w_cc, w_cr, -w_copying],
            counts[:, 0],
            minimum=-w_copying,
            maximum=w_cc + w_cr,
        )
        for w_cc, w_cr, w_copying in weights
    ]
    columns = {
        "w_cc": weights[:, 0],
        "w_cr": weights[:, 1],
        "w_copying": weights[:, 2],
        "tas": [estimate.value for estimate in found],
        "low": [estimate.low for estimate in found],
        "high": [estimate.high for estimate in found],
    }
    return pl.DataFrame(columns, schema_overrides=GRID_SCHEMA).with_columns(
        pl.lit(frame.height, dtype=pl.Int64).alias("n"),
        *(pl.lit(value, dtype=pl.String).alias(name) for name, value in group.items()),
    )
