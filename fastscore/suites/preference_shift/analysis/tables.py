"""What an analysis reads of a run, one number a conversation, and every table of its statistics.

Ablations are TAS and CAS without some of their parts, from the scores of turns. In construct
validity the paired unit is a conversation: scores are averaged over its shifts, or its segments,
first. Correlations with a judge are within models.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from polars import col as C

from fastscore.statistics import ALPHA
from fastscore.statistics.agreement import (
    MEASURES,
    Correlation,
    clustered_correlation,
    detectable_correlation,
)
from fastscore.statistics.clustered import LEVEL, Clusters, Ends, clustered_mean, hedges_g
from fastscore.statistics.curves import Curve, difference_curve
from fastscore.statistics.significance import Values, deviation, holm
from fastscore.suites.judged import MEAN, OVERALL, Judged
from fastscore.suites.preference_shift.metrics import DIALOGUE_METRICS
from fastscore.suites.preference_shift.options import PreferenceShift

MEAN_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("n", "n_units", "n_null"), pl.Int64()),
    **dict.fromkeys(("mean", "low", "high"), pl.Float64()),
}
"""A mean over ``n`` rows of ``n_units`` units with its 95 % interval; ``n_null`` rows have none."""

DIFFERENCE_SCHEMA: dict[str, pl.DataType] = {
    "n_pair_units": pl.Int64(),
    **dict.fromkeys(("difference", "difference_low", "difference_high", "effect_g"), pl.Float64()),
    **dict.fromkeys(("effect_low", "effect_high", "standard_error", "df", "p"), pl.Float64()),
    "family": pl.Int64(),
    "holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    "detectable": pl.Float64(),
    "reason": pl.String(),
}
"""A mean difference of pairs by the method of `difference_curve`; docs/analysis.md has the rest."""


def mean_intervals(
    frame: pl.DataFrame, columns: Sequence[str], bounds: Mapping[str, Ends]
) -> list[dict[str, Any]]:
    """Return the mean of every column over its rows that are not null, with a 95 % interval."""
    rows = []
    of_columns = zip(columns, *(of.T for of in cluster_sums(frame, columns)), strict=True)
    for column, sums, numbers in of_columns:
        mean = clustered_mean(sums, numbers, bounds[column])
        counts = {"n": frame[column].count(), "n_null": frame[column].null_count()}
        ends = {"low": mean.low, "high": mean.high, "reason": mean.reason}
        rows.append({**counts, "n_units": mean.n_units, "mean": mean.value, **ends})
    return rows


def paired_difference(frame: pl.DataFrame, first: str, second: str, bounds: Ends) -> dict[str, Any]:
    """Compare two columns of one range over the rows that have both, first minus second."""
    sums, counts = cluster_sums(frame.drop_nulls([first, second]), [first, second])
    of_first, of_second = map(Clusters, sums.T, counts.T)
    curve = difference_curve(of_second, of_first, shared=True, ends=bounds, test="t")
    low, high = curve.interval(LEVEL)
    effect, effect_low, effect_high = hedges_g(of_second, of_first, paired=True) or [None] * 3
    return {
        "n_pair_units": curve.n_units,
        "difference": curve.value,
        "difference_low": low,
        "difference_high": high,
        "effect_g": effect,
        "effect_low": effect_low,
        "effect_high": effect_high,
        "standard_error": curve.error,
        "df": curve.degrees,
        "p": curve.p_value(),
        "reason": curve.reason,
        "curve": curve,
    }


def with_corrected(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the tests of one group as a family, by Holm's procedure."""
    p_values = [row.get("p") for row in rows]
    family = sum(p is not None for p in p_values)
    found = []
    for row, corrected in zip(rows, holm(p_values), strict=True):
        members = None if corrected is None else family
        ends = row.get("difference_low"), row.get("difference_high")
        curve: Curve | None = row.get("curve")
        more = {
            "family": members,
            "holm_p": corrected,
            "is_significant": is_significant(corrected, *ends),
            "detectable": curve and curve.detectable(ALPHA / (members or 1)),
        }
        found.append({name: row[name] for name in row if name != "curve"} | more)
    return found


def is_significant(corrected: float | None, low: float | None, high: float | None) -> bool | None:
    """Tell whether a corrected p is below 0.05 and the interval excludes 0; None without a p."""
    if corrected is None:
        return None
    return corrected < ALPHA and low is not None and high is not None and not low <= 0.0 <= high


def cluster_sums(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[Values, Values]:
    """Return the sums and counts of clusters, each (clusters, columns).

    Values are added in ascending order within a cluster, so that no order of rows shows.
    """
    labels, codes = np.unique(frame["cluster"].to_numpy(), return_inverse=True)
    sums, counts = np.zeros((2, labels.size, len(columns)))
    for k, column in enumerate(columns):
        values = frame[column].cast(pl.Float64)
        numbers, of = values.drop_nulls().to_numpy(), codes[values.is_not_null().to_numpy()]
        order = np.lexsort((numbers, of))
        sums[:, k] = np.bincount(of[order], weights=numbers[order], minlength=labels.size)
        counts[:, k] = np.bincount(of, minlength=labels.size)
    return sums, counts


ALL = "all"
UNIT = "session_id"
MODEL = "model"
GROUP_SCHEMA: dict[str, pl.DataType] = {"group": pl.String(), "value": pl.String()}
"""As in a run's summary: ``all`` with no value, or ``model`` with its name."""

NAME = "identity"
_SCORES = {
    "tas": "context_adaptation_score",
    "cc": "cross_coherence",
    "cr": "context_retention",
    "i": "topic_interference",
    "recovery_rate": "topic_recovery_rate",
    "recovery_delay": "avg_recovery_delay",
    "cas": "cas",
    "cas_all": "cas_all",
    "i_around_shifts": "topic_interference_around_shifts",
}
_RANGES = {metric.id: metric.scale.ends for metric in DIALOGUE_METRICS}
SCORE_RANGES = {name: _RANGES[column] for name, column in _SCORES.items()}
"""The smallest and largest value of a score, None if it has none."""
SCORE_NAMES = {
    "tas": "TAS",
    "cas": "CAS",
    "cas_all": "CAS over all shifts",
    "cc": "CC",
    "cr": "CR",
    "i": "I (copying)",
    "i_around_shifts": "I around shifts",
    "recovery_rate": "recovery rate",
    "recovery_delay": "recovery delay",
}
"""How a conversation's scores are called in figures and tables."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a run."""

    # in input order: `conversation` (its number), `cluster` (its unit's number), `identity` (unique
    # in the run), file, line, `dialogue` (by which judges name it), model, n_turns, n_shifts, judge
    # and the scores by their short names
    conversations: pl.DataFrame
    turns: pl.DataFrame  # by conversation, cluster and model
    shifts: pl.DataFrame
    options: PreferenceShift  # the options that the run was scored with
    signature: str  # the run's signature
    unit: str = UNIT  # the column whose values are the units

    @property
    def models(self) -> list[str]:
        """The models' names, sorted; conversations without one belong to none."""
        return self.conversations["model"].drop_nulls().unique().sort().to_list()


def make_scored(
    tables: Mapping[str, pl.LazyFrame], options: PreferenceShift, signature: str, unit: str = UNIT
) -> Scored:
    """Make the frames of an analysis from the suite's tables."""
    label = C(unit).cast(pl.String).fill_null(C("dialogue"))
    conversations = (
        tables["dialogues"]
        .select(
            C("dialogue").alias(NAME),
            "file",
            "line",
            *("model", "n_turns", "n_shifts", "judge"),
            cluster=(label.rank("dense") - 1).cast(pl.Int64),
            dialogue="session_id",
            **{name: C(column).cast(pl.Float64) for name, column in _SCORES.items()},
        )
        .collect()
        .with_row_index("conversation")
    )
    labels = conversations.lazy().select("conversation", "cluster", "model", dialogue=NAME)
    turns, shifts = (
        tables[name]
        .select("dialogue", *columns)
        .join(labels, on="dialogue", how="inner")
        .drop("dialogue")
        .sort("conversation", "turn")
        .collect()
        for name, columns in (
            ("turns", ("turn", "segment", "both_empty", "cc", "cr", "i", "tas")),
            ("shifts", ("turn", "in_dialogue", "recovered", "delay")),
        )
    )
    return Scored(conversations, turns, shifts, options, signature, unit)


def by_group(frame: pl.DataFrame) -> Iterator[tuple[dict[str, str | None], pl.DataFrame]]:
    """Yield all rows, then each model's where there are several, with the group's two columns."""
    yield {"group": ALL, "value": None}, frame
    models = frame["model"].drop_nulls().unique().sort()
    if len(models) > 1:
        for model in models:
            yield {"group": MODEL, "value": model}, frame.filter(C("model") == model)


STEPS = 10
PARTS = ("cc", "cr", "i")

GRID_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("w_cc", "w_cr", "w_copying"), pl.Float64()),
    "n": pl.Int64(),
    **dict.fromkeys(("tas", "low", "high"), pl.Float64()),
    "rank": pl.Int64(),
}
"""TAS of a group under one choice of weights, w_cc CC + w_cr CR - w_copying I."""


def simplex(steps: int = STEPS) -> npt.NDArray[np.float64]:
    """Return all weights of CC, CR and copying that are multiples of 1/steps and sum to 1."""
    first, second = np.divmod(np.arange((steps + 1) ** 2), steps + 1)
    inside = first + second <= steps
    whole = np.stack([first, second, steps - first - second], axis=1)[inside]
    return whole / steps


def weight_grid(scored: Scored) -> pl.DataFrame:
    """Compute TAS for every choice of weights on a grid.

    As the weights sum to 1 no turn is ever clipped, so the mean over turns is the weighted sum of
    the mean parts, and nothing is scored again.
    """
    rows = []
    for group, frame in by_group(scored.conversations.drop_nulls(PARTS)):
        sums, counts = cluster_sums(frame, PARTS)
        for w_cc, w_cr, w_copying in simplex().tolist():
            of_units, ends = sums @ [w_cc, w_cr, -w_copying], (-w_copying, w_cc + w_cr)
            tas = clustered_mean(of_units, counts[:, 0], ends)
            of_group = (*group.values(), w_cc, w_cr, w_copying, frame.height)
            rows.append((*of_group, tas.value, tas.low, tas.high, None))
    table = pl.DataFrame(rows, schema=GRID_SCHEMA, orient="row")
    return table.with_columns(_rank("tas", "w_cc", "w_cr"))


def _rank(score: str, *within: str) -> pl.Expr:
    """Rank the models of a table by a score, 1 being the highest."""
    rank = C(score).rank("min", descending=True).over("group", *within)
    return pl.when(C("group") == MODEL).then(rank).cast(pl.Int64).alias("rank")


LONGEST = 10

SWEEP_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("window", "n_shifts", "n_units", "n_recovered"), pl.Int64()),
    **dict.fromkeys(("rate", "low", "high", "mean_delay"), pl.Float64()),
    "is_own": pl.Boolean(),
}
"""Recovery of a group's shifts (micro) in a window, by the run's own test."""


def window_sweep(scored: Scored) -> pl.DataFrame:
    """Compute recovery rate and delay for windows from 1 turn on."""
    own = max(1, scored.options.window)
    windows = range(1, max(LONGEST, own) + 1)
    names = [f"{window}" for window in windows]
    delays = first_recoveries(scored).with_columns(
        pl.when((C("delay") < window).fill_null(False))
        .then(True)
        .when((C("unknown_from") < window).fill_null(False))
        .then(None)
        .otherwise(False)
        .alias(f"{window}")
        for window in windows
    )
    rows: list[dict[str, Any]] = []
    for group, shifts in by_group(delays):
        rates = mean_intervals(shifts, names, dict.fromkeys(names, (0.0, 1.0)))
        rows += [
            {
                **group,
                **rate,
                "window": window,
                "n_shifts": rate["n"],
                "n_recovered": shifts[name].sum(),
                "rate": rate["mean"],
                "mean_delay": shifts.filter(C("delay") < window)["delay"].mean(),
                "is_own": window == own,
            }
            for window, name, rate in zip(windows, names, rates, strict=True)
        ]
    return pl.DataFrame(rows, schema=SWEEP_SCHEMA)


def first_recoveries(scored: Scored) -> pl.DataFrame:
    """Return how many turns after each shift a turn first meets the test, whatever the window."""
    options = scored.options
    met = C("cc") >= options.recovery_cc
    if options.recovery == "cc-or-cr":
        met |= C("cr") >= options.recovery_cr
    shifts = scored.shifts.select("conversation", "cluster", "model", "turn").sort("turn")
    for name, is_found in (("delay", met), ("unknown_from", C("cc").is_null())):
        turns = scored.turns.filter(is_found).select("conversation", "turn", C("turn").alias(name))
        shifts = shifts.join_asof(
            turns.sort("turn"),
            on="turn",
            by="conversation",
            strategy="forward",
            check_sortedness=False,
        ).with_columns(C(name) - C("turn"))
    return shifts.sort("conversation", "turn")


COMPONENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "score": pl.String(),
    **MEAN_SCHEMA,
    "sd": pl.Float64(),
    "median": pl.Float64(),
    "reason": pl.String(),
}
"""A score of a group; ``reason`` says why it has no interval."""


def components(scored: Scored) -> pl.DataFrame:
    """Describe every score of the conversations."""
    rows = []
    for group, frame in by_group(scored.conversations):
        means = mean_intervals(frame, list(SCORE_NAMES), SCORE_RANGES)
        for name, mean in zip(SCORE_NAMES, means, strict=True):
            values = frame[name].drop_nulls().sort()
            # the last bit of polars' deviation depends on the processor
            sd = deviation(values.to_numpy(), 1) if len(values) > 1 else None
            spread = {"score": name, "sd": sd, "median": values.median()}
            rows.append(group | mean | spread)
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
    **MEAN_SCHEMA,
    "rank": pl.Int64(),
    "n_pairs": pl.Int64(),
    **DIFFERENCE_SCHEMA,
}
"""A variant of a score in a group, and its mean difference from the unaltered score over the
``n_pairs`` conversations that have both."""


def ablations(scored: Scored) -> pl.DataFrame:
    """Compare TAS and CAS with variants that lack some of their parts."""
    ranges = {variant: SCORE_RANGES[reference] for variant, reference in VARIANTS.items()}
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(ablated_scores(scored)):
        compared = []
        means = mean_intervals(frame, list(VARIANTS), ranges)
        for (variant, reference), mean in zip(VARIANTS.items(), means, strict=True):
            row = group | mean | {"variant": variant, "reference": reference, "reason": None}
            if variant != reference:
                row["n_pairs"] = frame.drop_nulls([variant, reference]).height
                row |= paired_difference(frame, variant, reference, ranges[variant])
            compared.append(row)
        rows += with_corrected(compared)
    return pl.DataFrame(rows, schema=ABLATION_SCHEMA).with_columns(_rank("mean", "variant"))


def ablated_scores(scored: Scored) -> pl.DataFrame:
    """Return every variant for each conversation."""
    o, shares = scored.options, scored.options.cas_shares
    kept = {
        "tas_without_copying": o.alpha * C("cc") + o.beta * C("cr"),
        "cc_only": o.alpha * C("cc"),
        "cr_only": o.beta * C("cr"),
    }
    means = scored.turns.group_by("conversation", maintain_order=True).agg(
        score.clip(-1.0, 1.0).mean().alias(variant) for variant, score in kept.items()
    )
    parts = {
        "topic_interference": 1.0 - C("i").clip(0.0, 1.0),
        "cross_coherence": C("cc"),
        "context_retention": C("cr"),
    }
    total = sum(shares[name] for name in parts)
    weighted = [shares[name] / total * part for name, part in parts.items() if total]
    rest = pl.sum_horizontal(weighted or [pl.lit(None, pl.Float64)], ignore_nulls=False)
    return scored.conversations.join(
        means, on="conversation", how="left", maintain_order="left"
    ).select(
        *("conversation", "cluster", "model", "tas", "cas", "cas_all"),
        *(
            pl.when(C("n_turns") == 0).then("tas").otherwise(variant).alias(variant)
            for variant in kept
        ),
        cas_without_recovery=pl.when(C("n_turns") > 0).then(rest),
    )


OF_SHIFTS = (("at", "before"), ("after", "at"))
CONTRASTS = (*(("cc", *sides) for sides in OF_SHIFTS), ("cr", "within", "across"))
"""What controlled shifts should show: CC drops and recovers, and CR is higher within segments."""

CONSTRUCT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("score", "first", "second"), pl.String()),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    "mean_first": pl.Float64(),
    "mean_second": pl.Float64(),
    **DIFFERENCE_SCHEMA,
}
"""A score at two places of a conversation, over the ``n`` conversations that have both."""


def construct_validity(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Compare CC at, before and after shifts, and CR within and across segments."""
    pairs = _conversation_pairs(scored, segment_cosines)
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(pairs):
        of_group = [_row(frame, *contrast) for contrast in CONTRASTS]
        if segment_cosines is None:
            of_group[-1]["reason"] = "missing_input"
        rows += [group | row for row in with_corrected(of_group)]
    return pl.DataFrame(rows, schema=CONSTRUCT_SCHEMA)


def around_shifts(scored: Scored) -> pl.DataFrame:
    """Return the mean CC at every shift and in the turns on either side of it.

    Before are up to a window's turns of the segment that the shift ends, after up to a window's
    turns that follow it in the segment that it begins: no turn beyond another shift counts.
    """
    window = max(1, scored.options.window)
    turns = scored.turns.select("conversation", "segment", "turn", "cc")
    shifts = (
        scored.shifts.select("conversation", shift="turn")
        .join(
            turns.select("conversation", shift="turn", begun="segment"),
            on=["conversation", "shift"],
            how="inner",
            maintain_order="left",
        )
        .with_row_index("shift_row")
    )
    distance, is_begun = C("turn") - C("shift"), C("segment") == C("begun")
    phases = {
        "before": (C("segment") == C("begun") - 1) & distance.is_between(-window, -1),
        "at": is_begun & (distance == 0),
        "after": is_begun & distance.is_between(1, window),
    }
    return (
        shifts.join(turns, on="conversation", maintain_order="left_right")
        .group_by("shift_row", "conversation", "shift", maintain_order=True)
        .agg(C("cc").filter(is_in).mean().alias(phase) for phase, is_in in phases.items())
        .select("conversation", "shift", *phases)
    )


def segment_similarities(
    turns: pl.LazyFrame, idf: pl.DataFrame, conversations: pl.DataFrame
) -> pl.DataFrame:
    """Return how alike user and system are within segments, and across neighbouring ones."""
    labels = conversations.lazy().select("conversation", dialogue=NAME)
    rows = (
        turns.select("dialogue", "segment", "user_concepts", "system_concepts")
        .join(labels, on="dialogue", how="inner", maintain_order="left")
        .filter(C("segment").n_unique().over("conversation") > 1)
        .collect()
    )
    user, system = (_vectors(rows, f"{side}_concepts", idf) for side in ("user", "system"))
    segments = rows.select("conversation", "segment").unique()
    pair = ("conversation", "segment", "segment_system")
    cosines = (
        user.join(system, on=["conversation", "concept"], suffix="_system")
        .sort(*pair, "concept")
        .group_by(pair, maintain_order=True)
        .agg(
            cosine=(C("weight") * C("weight_system")).sum()
            / (C("norm").first() * C("norm_system").first())
        )
    )
    step = (C("segment_system") - C("segment")).abs()
    return (
        segments.join(segments, on="conversation", suffix="_system")
        .join(cosines, on=pair, how="left")
        .sort(pair)
        .with_columns(C("cosine").fill_null(0.0))
        .group_by("conversation", maintain_order=True)
        .agg(
            C("cosine").filter(step == distance).mean().alias(f"within-across:{name}")
            for name, distance in (("within", 0), ("across", 1))
        )
    )


def _vectors(rows: pl.DataFrame, side: str, idf: pl.DataFrame) -> pl.DataFrame:
    """Return the weight of every concept of one side in every segment, and the vector's norm."""
    segment = ("conversation", "segment")
    weights = (
        rows.select(*segment, concept=side)
        .explode("concept")
        .drop_nulls("concept")
        .group_by(*segment, "concept")
        .len("count")
        .join(idf, on="concept", how="inner")
        .select(*segment, "concept", weight=C("count") * C("idf"))
        .sort(*segment, "concept")
    )
    norms = weights.group_by(segment, maintain_order=True).agg(norm=(C("weight") ** 2).sum().sqrt())
    return weights.join(norms, on=segment)


def _conversation_pairs(scored: Scored, segment_cosines: pl.DataFrame | None) -> pl.DataFrame:
    """Return both means of every contrast for each conversation with a shift.

    Only shifts that have both sides of a contrast count in it.
    """
    means = (
        around_shifts(scored)
        .group_by("conversation", maintain_order=True)
        .agg(
            C(side).filter(C(other).is_not_null()).mean().alias(f"{first}-{second}:{side}")
            for first, second in OF_SHIFTS
            for side, other in ((first, second), (second, first))
        )
    )
    shifted = scored.conversations.filter(C("n_shifts") > 0).select(
        "conversation", "cluster", "model"
    )
    if segment_cosines is None:
        names = ("within-across:within", "within-across:across")
        schema = {"conversation": pl.get_index_type(), **dict.fromkeys(names, pl.Float64())}
        segment_cosines = pl.DataFrame(schema=schema)
    for of_conversation in (means, segment_cosines):
        shifted = shifted.join(
            of_conversation, on="conversation", how="left", maintain_order="left"
        )
    return shifted


def _row(frame: pl.DataFrame, score: str, first: str, second: str) -> dict[str, Any]:
    of_first, of_second = (f"{first}-{second}:{side}" for side in (first, second))
    both = frame.drop_nulls([of_first, of_second])
    return {
        "score": score,
        "first": first,
        "second": second,
        "n": both.height,
        "n_null": frame.height - both.height,
        "mean_first": both[of_first].sort().mean(),
        "mean_second": both[of_second].sort().mean(),
        **paired_difference(both, of_first, of_second, SCORE_RANGES[score]),
    }


SCORES = ("tas", "cas", "cas_all", "cc", "cr", "i", "recovery_rate")
HEADLINES = ("tas", "cas")
"""The published scores. CAS over all shifts is a variant of CAS, and the others are their parts."""

CONVERGENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    **dict.fromkeys(("score", "judge"), pl.String()),
    "is_headline": pl.Boolean(),
    **dict.fromkeys(("n", "n_units", "n_null_score", "n_null_judge"), pl.Int64()),
    **dict.fromkeys(("rho", "rho_low", "rho_high", "rho_p"), pl.Float64()),
    "p_method": pl.String(),
    "family": pl.Int64(),
    "rho_holm_p": pl.Float64(),
    "smallest_holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    **dict.fromkeys(("detectable_rho", "tau", "tau_low", "tau_high", "tau_p"), pl.Float64()),
    "tau_holm_p": pl.Float64(),
    "reason": pl.String(),
}
"""Spearman's rho and Kendall's tau-b of a score and a judge's score within models. Tau is a second
measure of rho's test, so ``tau_holm_p`` is its p-value times ``family`` (Bonferroni)."""


def convergent_validity(scored: Scored, judged: Judged) -> pl.DataFrame:
    """Correlate the suite's scores with a judge's."""
    # the judge's overall score, or else the mean of its scores, or its only score
    named = [name for name in (OVERALL, MEAN, *judged.names) if name in judged.names]
    headlines = [(score, judge) for score in HEADLINES for judge in named[:1]]
    pairs = [(score, judge) for score in SCORES for judge in judged.names]
    rows: list[dict[str, Any]] = []
    for group, frame in by_group(with_judge(scored, judged)):
        of_group = [_correlate(frame, *pair) | {"is_headline": pair in headlines} for pair in pairs]
        rows += [group | row for row in _with_corrected(of_group)]
    return pl.DataFrame(rows, schema=CONVERGENT_SCHEMA)


def untestable(table: pl.DataFrame) -> str:
    """Return a sentence if no headline correlation over all conversations can be significant."""
    headlines = table.filter(C("group") == ALL, C("is_headline"), C("rho").is_not_null())
    smallest = headlines["smallest_holm_p"].fill_null(1.0).min()
    if headlines.is_empty() or not isinstance(smallest, float) or smallest < ALPHA:
        return ""
    units = ", ".join(f"{n}" for n in headlines["n_units"].unique().sort())
    return (
        f"Too few units for a significant correlation: with {units} units and {headlines.height} "
        f"headline correlations the smallest possible corrected p is {smallest:.3f}."
    )


def with_judge(scored: Scored, judged: Judged) -> pl.DataFrame:
    """Return the conversations with a column ``judge:NAME`` for every score of the judge."""
    scores = judged.scores.pivot(
        "judge", on_columns=judged.names, index="conversation", values="score"
    ).select("conversation", pl.exclude("conversation").name.prefix("judge:"))
    return scored.conversations.drop("judge").join(
        scores, on="conversation", how="left", maintain_order="left"
    )


def _with_corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the headline correlations of one group as a family."""
    p_values = [row["rho_p"] if row["is_headline"] else None for row in rows]
    family = sum(p is not None for p in p_values)
    found = []
    for row, corrected in zip(rows, holm(p_values), strict=True):
        rho: Correlation = row["of_rho"]
        alpha = ALPHA if corrected is None else ALPHA / family
        more: dict[str, Any] = {"detectable_rho": detectable_correlation(rho, alpha=alpha)}
        if corrected is not None and rho.smallest_p is not None:
            more |= {
                "family": family,
                "rho_holm_p": corrected,
                "smallest_holm_p": min(1.0, rho.smallest_p * family),
                "is_significant": is_significant(corrected, rho.low, rho.high),
            }
            if row["tau_p"] is not None:
                more["tau_holm_p"] = min(1.0, row["tau_p"] * family)
        found.append(row | more)
    return found


def _correlate(frame: pl.DataFrame, score: str, judge: str) -> dict[str, Any]:
    """Correlate a score with a judge's, of conversations within models."""
    column = f"judge:{judge}"
    scored = frame.drop_nulls(score)
    both = scored.drop_nulls(column)
    labels = both["cluster"], both["model"].fill_null("")
    rho, tau = (
        clustered_correlation(measure, both[score], both[column], *labels) for measure in MEASURES
    )
    return {
        "score": score,
        "judge": judge,
        "n": both.height,
        "n_units": rho.clusters,
        "n_null_score": frame.height - scored.height,
        "n_null_judge": scored.height - both.height,
        "rho": rho.value,
        "rho_low": rho.low,
        "rho_high": rho.high,
        "rho_p": rho.p_value,
        "p_method": rho.method,
        "tau": tau.value,
        "tau_low": tau.low,
        "tau_high": tau.high,
        "tau_p": tau.p_value,
        "reason": rho.reason,
        "of_rho": rho,
    }
