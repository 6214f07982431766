"""Every table of an analysis, by name.

Ablations are TAS and CAS without some of their parts, from the scores of turns. Top concepts
are those that answers miss, and bring in unasked, most often.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.statistics.samples import Values
from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.scored import (
    ALL,
    DIFFERENCE_SCHEMA,
    GROUP_SCHEMA,
    MODEL,
    SCORE_NAMES,
    SCORE_RANGES,
    Scored,
    by_group,
    cluster_sums,
    mean_intervals,
    paired_difference,
    with_corrected,
)
from fastscore.suites.preference_shift.analysis.validity import (
    construct_validity,
    convergent_validity,
)
from fastscore.suites.preference_shift.concepts import concept_idf
from fastscore.suites.preference_shift.options import PreferenceShift

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


LONGEST = 10

SWEEP_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "test": pl.String(),
    "window": pl.Int64(),
    "n_shifts": pl.Int64(),
    "n_units": pl.Int64(),
    "n_recovered": pl.Int64(),
    "rate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "mean_delay": pl.Float64(),
    "is_own": pl.Boolean(),
}
"""Recovery of a group's shifts in a window: the share of ``n_shifts`` shifts (micro; only those of
which it is known) that a turn of the window meets the test for, with a 95 % interval over
``n_units`` units, and the mean delay of those. ``test`` is ``run`` (the run's own) or ``cosine``
(only CR). ``is_own`` marks the run's own window."""


def window_sweep(scored: Scored) -> pl.DataFrame:
    """Compute recovery rate and delay for windows from 1 turn on.

    Parameters
    ----------
    scored
        The run's scores.

    Returns
    -------
    pl.DataFrame
        In `SWEEP_SCHEMA`, for windows up to ten turns, or the run's own if that is longer.
        Shifts beyond the last turn count as not recovered, as in the run; those of which texts
        that are missing in the window leave it unknown do not count.
    """
    options = scored.options
    own = max(1, options.window)
    windows = range(1, max(LONGEST, own) + 1)
    rows: list[dict[str, Any]] = []
    for test in ("run", "cosine"):
        delays = first_recoveries(scored, options, test)
        for group, frame in by_group(delays):
            rows += [
                {**group, "test": test, "is_own": row["window"] == own, **row}
                for row in _sweep(frame, windows)
            ]
    return pl.DataFrame(rows, schema=SWEEP_SCHEMA)


def first_recoveries(scored: Scored, options: PreferenceShift, test: str) -> pl.DataFrame:
    """Return how many turns after each shift a turn first meets the test, whatever the window.

    Returns
    -------
    pl.DataFrame
        conversation, cluster, model, turn, ``delay`` (0 is the shift's own turn; null where no
        later turn of the conversation meets the test) and ``unknown_from``, as many turns after
        the shift the first lacks a text; null where none does.
    """
    met = pl.col("cr") >= options.recovery_cr
    if test == "run":
        by_cc = pl.col("cc") >= options.recovery_cc
        met = by_cc | met if options.recovery == "cc-or-cr" else by_cc
    shifts = scored.shifts.select("conversation", "cluster", "model", "turn").sort("turn")
    for name, is_found in (("delay", met), ("unknown_from", pl.col("cc").is_null())):
        turns = scored.turns.filter(is_found).select(
            "conversation", "turn", pl.col("turn").alias(name)
        )
        shifts = shifts.join_asof(
            turns.sort("turn"),
            on="turn",
            by="conversation",
            strategy="forward",
            check_sortedness=False,
        ).with_columns(pl.col(name) - pl.col("turn"))
    return shifts.sort("conversation", "turn")


def _sweep(frame: pl.DataFrame, windows: range) -> list[dict[str, Any]]:
    is_met = {window: (pl.col("delay") < window).fill_null(False) for window in windows}
    is_unknown = {window: (pl.col("unknown_from") < window).fill_null(False) for window in windows}
    inside = {
        f"{window}": pl.when(is_met[window] | ~is_unknown[window])
        .then(is_met[window])
        .alias(f"{window}")
        for window in windows
    }
    frame = frame.with_columns(inside.values())
    rates = mean_intervals(frame, list(inside), dict.fromkeys(inside, (0.0, 1.0)))
    delays = frame.select(
        pl.col("delay").filter(pl.col("delay") < window).mean().alias(f"{window}")
        for window in windows
    )
    return [
        {
            "window": window,
            "n_shifts": frame[f"{window}"].count(),
            "n_units": rate.n_units,
            "n_recovered": int(frame[f"{window}"].sum()),
            "rate": rate.value,
            "low": rate.low,
            "high": rate.high,
            "mean_delay": delays[f"{window}"].item(),
        }
        for window, rate in zip(windows, rates, strict=True)
    ]


COMPONENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "score": pl.String(),
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "sd": pl.Float64(),
    "median": pl.Float64(),
    "reason": pl.String(),
}
"""A score in a group: its mean over the ``n`` conversations of ``n_units`` units that have it, the
mean's 95 % confidence interval, the sample standard deviation and the median. The score is null in
``n_null`` conversations. ``reason`` is why there is no interval."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an analysis."""

    components: pl.DataFrame
    ablations: pl.DataFrame
    weight_grid: pl.DataFrame
    window_sweep: pl.DataFrame
    convergent_validity: pl.DataFrame
    construct_validity: pl.DataFrame
    top_concepts: pl.DataFrame
    judge_rejects: pl.DataFrame

    def by_name(self) -> Mapping[str, pl.DataFrame]:
        """Return every table under its file's name."""
        return {name: getattr(self, name) for name in self.__slots__}


def make_tables(
    scored: Scored,
    judged: Judged,
    segment_cosines: pl.DataFrame | None,
    frequent: pl.DataFrame,
) -> Tables:
    """Compute every table.

    Parameters
    ----------
    scored, judged
        The run's scores and the judge's.
    segment_cosines
        As in `construct_validity`.
    frequent
        What `top_concepts` returns.
    """
    return Tables(
        components(scored),
        ablations(scored),
        weight_grid(scored),
        window_sweep(scored),
        convergent_validity(scored, judged),
        construct_validity(scored, segment_cosines),
        frequent,
        judged.rejects,
    )


def components(scored: Scored) -> pl.DataFrame:
    """Describe every score of the conversations.

    Returns
    -------
    pl.DataFrame
        In `COMPONENT_SCHEMA`.
    """
    names = list(SCORE_NAMES)
    names.remove("cc_of_concepts")
    rows = []
    for group, frame in by_group(scored.conversations):
        means = mean_intervals(frame, names, SCORE_RANGES)
        for name, mean in zip(names, means, strict=True):
            values = frame[name].drop_nulls().sort()
            row = {
                **group,
                "score": name,
                "n": values.len(),
                "n_units": mean.n_units,
                "n_null": frame.height - values.len(),
                "mean": mean.value,
                "low": mean.low,
                "high": mean.high,
                "sd": values.std(),
                "median": values.median(),
                "reason": mean.reason,
            }
            rows.append(row)
    return pl.DataFrame(rows, schema=COMPONENT_SCHEMA)


VARIANTS = {
    "tas": "tas",
    "tas_without_copying": "tas",
    "cc_only": "tas",
    "cr_only": "tas",
    "cas": "cas",
    "cas_all": "cas_all",
    "cas_without_recovery": "cas",
}
"""The variants, each with the score that it is an ablation of."""

ABLATION_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "variant": pl.String(),
    "reference": pl.String(),
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "rank": pl.Int64(),
    "n_pairs": pl.Int64(),
    **DIFFERENCE_SCHEMA,
}
"""A variant of a score in a group: its mean over ``n`` conversations of ``n_units`` units with a
95 % interval, the model's rank by it (1 is the highest), and its mean difference from the unaltered
score over the ``n_pairs`` conversations that have both, as in `DIFFERENCE_SCHEMA`. The four
variants of a group are one family."""


def ablations(scored: Scored) -> pl.DataFrame:
    """Compare TAS and CAS with variants that lack some of their parts.

    Parameters
    ----------
    scored
        The run's scores.

    Returns
    -------
    pl.DataFrame
        In `ABLATION_SCHEMA`.
    """
    variants = ablated_scores(scored)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(variants):
        rows += [group | row for row in with_corrected(_compare(frame))]
    ranked = pl.col("mean").rank("min", descending=True).over("group", "variant")
    unranked = {name: dtype for name, dtype in ABLATION_SCHEMA.items() if name != "rank"}
    return pl.DataFrame(rows, schema=unranked).select(
        pl.when(pl.col("group") == MODEL).then(ranked).cast(pl.Int64).alias("rank")
        if name == "rank"
        else pl.col(name)
        for name in ABLATION_SCHEMA
    )


def ablated_scores(scored: Scored) -> pl.DataFrame:
    """Return every variant for each conversation.

    Returns
    -------
    pl.DataFrame
        conversation, cluster, model and a column a variant. TAS variants are means over turns of
        the weighted parts that remain, clipped to [-1, 1] turn by turn; a conversation without
        turns has the value that the run gave its TAS. CAS without recovery weighs 1 - I, CC and CR
        only, their weights scaled to sum 1, and so also exists where nothing recovered.
    """
    o = scored.options
    kept = {
        "tas_without_copying": o.alpha * pl.col("cc") + o.beta * pl.col("cr"),
        "cc_only": o.alpha * pl.col("cc"),
        "cr_only": o.beta * pl.col("cr"),
    }
    means = scored.turns.group_by("conversation", maintain_order=True).agg(
        score.clip(-1.0, 1.0).mean().alias(variant) for variant, score in kept.items()
    )
    return scored.conversations.join(
        means, on="conversation", how="left", maintain_order="left"
    ).select(
        "conversation",
        "cluster",
        "model",
        "tas",
        *(
            pl.when(pl.col("n_turns") == 0).then("tas").otherwise(variant).alias(variant)
            for variant in kept
        ),
        "cas",
        "cas_all",
        _without_recovery(o).alias("cas_without_recovery"),
    )


def _without_recovery(options: PreferenceShift) -> pl.Expr:
    shares = options.cas_shares
    parts = {
        "topic_interference": 1.0 - pl.col("i").clip(0.0, 1.0),
        "cross_coherence": pl.col("cc"),
        "context_retention": pl.col("cr"),
    }
    total = sum(shares[name] for name in parts)
    if total == 0:
        return pl.lit(None, dtype=pl.Float64)
    weighted = [shares[name] / total * part for name, part in parts.items()]
    return pl.when(pl.col("n_turns") > 0).then(pl.sum_horizontal(weighted, ignore_nulls=False))


def _compare(frame: pl.DataFrame) -> list[dict[str, Any]]:
    ranges = {variant: SCORE_RANGES[reference] for variant, reference in VARIANTS.items()}
    means = mean_intervals(frame, list(VARIANTS), ranges)
    return [_row(frame, variant, mean) for variant, mean in zip(VARIANTS, means, strict=True)]


def _row(frame: pl.DataFrame, variant: str, mean: Estimate) -> dict[str, Any]:
    reference = VARIANTS[variant]
    n = frame[variant].count()
    row: dict[str, Any] = {
        "variant": variant,
        "reference": reference,
        "n": n,
        "n_units": mean.n_units,
        "n_null": frame.height - n,
        "mean": mean.value,
        "low": mean.low,
        "high": mean.high,
    }
    if variant == reference:
        return row
    return row | {
        "n_pairs": frame.drop_nulls([variant, reference]).height,
        **paired_difference(frame, variant, reference, SCORE_RANGES[reference]),
    }


def read_weights(scored: Scored) -> tuple[pl.DataFrame | None, str]:
    """Read the catalogue that the run names, if it is still there as it was.

    Returns
    -------
    tuple
        Every concept's weight (concept, idf) and an empty text, or None and what is missing.
    """
    path = Path(scored.options.catalogue)
    try:
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        return None, f"{path}: the run's catalogue cannot be read ({error.strerror})."
    if f"catalogue=blake2b:{digest}" not in scored.signature.split("|"):
        return None, f"{path}: not the catalogue that the run was scored with."
    return concept_idf(scored.options), ""


MOST_OVER_ALL, MOST_OF_A_MODEL = 200, 100
"""How many concepts of a field are listed, as the successor of the public evaluation lists them."""

KINDS = ("missing", "hallucinated")

TOP_CONCEPTS_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "kind": pl.String(),
    "field": pl.String(),
    "rank": pl.Int64(),
    "concept": pl.String(),
    "n_turns": pl.Int64(),
    "n_conversations": pl.Int64(),
    "share_of_turns": pl.Float64(),
}
"""A concept among the most frequent ones of its kind (``missing``: only of the user;
``hallucinated``: only of the system) and field in a group: in how many turns and conversations it
is that, and in which share of the group's turns; ``rank`` from 1 by turns, then by name."""


def top_concepts(turns: pl.LazyFrame) -> pl.DataFrame:
    """List the concepts that are missing or hallucinated most often, by field.

    Parameters
    ----------
    turns
        The run's table of turns: file, line, model, missing_concepts, hallucinated_concepts.

    Returns
    -------
    pl.DataFrame
        In `TOP_CONCEPTS_SCHEMA`, over all conversations and, where there are several, by model.
    """
    counted = pl.concat([_by_model(turns, kind) for kind in KINDS]).collect()
    n_turns = turns.group_by("model").agg(pl.len().alias("turns")).collect()
    over_all = (
        counted.group_by("kind", "concept")
        .agg(pl.col("n_turns", "n_conversations").sum())
        .with_columns(pl.lit(n_turns["turns"].sum()).alias("turns"))
    )
    parts = [_ranked(over_all, ALL, [], MOST_OVER_ALL)]
    if n_turns["model"].drop_nulls().len() > 1:
        of_models = counted.drop_nulls("model").join(n_turns, on="model")
        parts.append(_ranked(of_models, MODEL, ["model"], MOST_OF_A_MODEL))
    return pl.concat(parts)


def _by_model(turns: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """Count the turns and conversations of each model that have each concept."""
    return (
        turns.select("file", "line", "model", pl.col(f"{kind}_concepts").alias("concept"))
        .explode("concept")
        .drop_nulls("concept")
        .group_by("model", "concept")
        .agg(
            pl.lit(kind).alias("kind"),
            pl.len().cast(pl.Int64).alias("n_turns"),
            pl.struct("file", "line").n_unique().cast(pl.Int64).alias("n_conversations"),
        )
    )


def _ranked(counted: pl.DataFrame, group: str, by: list[str], most: int) -> pl.DataFrame:
    """Keep the most frequent concepts of each kind and field, ranked."""
    within = [*by, "kind", "field"]
    return (
        counted.with_columns(pl.col("concept").str.split_exact("=", 1).struct[0].alias("field"))
        .sort(
            *by,
            pl.col("kind").replace_strict(
                {k: n for n, k in enumerate(KINDS)}, return_dtype=pl.Int8
            ),
            "field",
            pl.col("n_turns").neg(),
            "concept",
        )
        .with_columns(
            pl.int_range(1, 1 + pl.len(), dtype=pl.Int64).over(within).alias("rank"),
            pl.lit(group).alias("group"),
            (pl.col(by[0]) if by else pl.lit(None, dtype=pl.String)).alias("value"),
            (pl.col("n_turns") / pl.col("turns")).alias("share_of_turns"),
        )
        .filter(pl.col("rank") <= most)
        .select(*TOP_CONCEPTS_SCHEMA)
    )
