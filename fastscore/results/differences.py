"""Differences of sides, with their tests, a family and a ranking: all numbers of every verdict.

A mean is that over a metric's rows, as the summary has it. The difference, its interval, p-values
and effect size are all of that mean, in one design: what a pair is, and what the unit is.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product, zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import UsageError, counted
from fastscore.results.comparison import SCHEMAS, Comparison, lacking_text
from fastscore.results.repeats import describe_passes, describe_repeats
from fastscore.run.progress import Reporter
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import Clusters, hedges_g, repeated_difference
from fastscore.statistics.curves import (
    CONSTANT,
    GRID,
    Curve,
    Test,
    difference_curve,
    sign_test,
    wild_omnibus,
)
from fastscore.statistics.significance import Values, holm, published_statistics
from fastscore.suites.base import families
from fastscore.suites.declarations import NULL_REASONS, Design, Metric
from fastscore.suites.sums import BETWEEN, Sums, estimate, joint_estimate, shown_name, sum_values

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

DIALOGUE = "dialogue"
LEAST_SYSTEMS = 3
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """How sides are compared: the suite's design with a user's changes to it, levels and tests.

    What is not said here is said of `compare`.
    """

    design: Design
    pattern: str | None = None  # finds the pair in the dialogue id
    by: str | None = None
    levels: tuple[str, ...] = ()
    paired: bool = True
    complete: bool = False
    clustered: bool = False  # whether units were asked for
    test: Test = "auto"
    alpha: float = ALPHA
    margin: float | None = None
    plan: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)  # how much worse b may be
    margins: Mapping[str, float] = field(default_factory=dict)  # in the place of `margin`
    contrasts: Literal["all", "first"] = "all"  # of all pairs of sides, or with the first
    omnibus: bool = False  # whether all sides are tested together, too
    published: bool = False  # whether the public code's statistics are added

    @classmethod
    def of(
        cls,
        design: Design,
        by: str | None = None,
        levels: Sequence[str] = (),
        pair_by: str | None = None,
        cluster: str | None = None,
        repeats: str | None = None,
        unpaired: bool = False,
        **how: Any,
    ) -> "Inference":
        """Change a suite's design as it is asked for."""
        if levels and by is None:
            raise UsageError("Levels are values of a column.", "Name the column with by.")
        if unpaired and pair_by is not None:
            raise UsageError(
                f"pair_by names {pair_by!r}, and unpaired makes no pairs.",
                "Leave out one of them. cluster names units of independent samples.",
            )
        pattern = pair_by if pair_by is not None and "(" in pair_by else None
        if pattern is not None:
            _check_pattern(pattern)
            pair: tuple[str, ...] = (DIALOGUE,)
        else:
            pair = design.pair if pair_by is None else tuple(map(str.strip, pair_by.split(",")))
        design = replace(design, pair=pair, unit=() if design.unit == design.pair else design.unit)
        if pair_by is not None and repeats in pair:
            raise UsageError(
                f"pair_by names {repeats!r}, which tells repeats apart.",
                "Name with pair_by what repeats of a dialogue have in common.",
            )
        if repeats is not None:
            design = design.repeated_by(repeats)
        design = design.clustered_by(cluster)
        return cls(
            design=design,
            pattern=pattern,
            by=by,
            levels=tuple(dict.fromkeys(levels)),
            paired=not unpaired,
            clustered=cluster is not None,
            **how,
        )

    @property
    def pair(self) -> str:
        """What pairs have in common, in words."""
        return (
            BETWEEN.join(self.design.pair)
            if self.pattern is None
            else f"{DIALOGUE} ~ {self.pattern}"
        )

    @property
    def unit(self) -> str:
        """The units, in words."""
        return self.pair if self.design.unit == self.design.pair else BETWEEN.join(self.design.unit)

    @property
    def shares_units(self) -> bool:
        """Whether a unit that both sides have has one error for both."""
        return self.paired or self.clustered or self.design.unit != self.design.pair


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side of a comparison by one table: a group that it belongs to, its name, its sums."""

    group: str | None
    name: str
    sums: Sums


Rows = list[dict[str, Any]]
Found = Mapping[str, Rows]
"""The rows of a comparison's tables, by name; a difference has its ``curve`` beside it."""


def concluded(
    found: Found,
    metrics: Sequence[Metric],
    how: Inference,
    suite: str,
    notes: Sequence[str],
    differing: Sequence[str],
) -> Comparison:
    """Correct the p-values of a family, decide, rank."""
    differences = found["differences"]
    _decide(differences, metrics, how)
    ranking, more = _ranked(differences, metrics)
    corrected = holm([row["p"] for row in found["omnibus"]])
    for row, p in zip(found["omnibus"], corrected, strict=True):
        row["p_holm"] = p
    drops = _drops(differences, metrics, how)
    rows = {**found, "drops": drops, "ranking": ranking}
    tables = {name: pl.DataFrame(rows.get(name, []), schema) for name, schema in SCHEMAS.items()}
    return Comparison(
        suite=suite,
        notes=tuple(dict.fromkeys([*notes, *_too_small(differences, how), *more])),
        differing=tuple(differing),
        unit=how.unit,
        alpha=how.alpha,
        metrics=tuple(metrics),
        **tables,
    )


def add_sides(
    found: Found,
    sides: Sequence[Side],
    metrics: Sequence[Metric],
    how: Inference,
    notes: list[str],
    reporter: Reporter,
) -> None:
    """Compare the sides of one group with each other."""
    if not how.shares_units:
        sides = [_independent(side, place) for place, side in enumerate(sides)]
    independent: list[str] = []
    numbered = _numbered(sides)
    pairs = list(combinations(numbered, 2))
    if how.contrasts == "first":
        pairs = [(numbered[0], other) for other in numbered[1:]]
    rows: Rows = []
    with reporter.stage("compare", len(pairs) * len(metrics), brief=True) as stage:
        for a, b in pairs:
            missing, more = _choose_design(a, b, how)
            (notes if missing else independent).extend(more)
            for metric in metrics:
                rows.append(_difference(a, b, metric, how, numbered, missing))
                stage.advance({})
            if how.published:
                found["published"].extend(_published(a, b, metric) for metric in metrics)
    if independent:
        n_others = len(independent) - 1
        verb = "is" if n_others == 1 else "are"
        others = f". So {verb} {counted(n_others, 'more pairs')}" if n_others else ""
        notes.append(independent[0] + others)
    group = sides[0].group
    found["differences"].extend(rows)
    found["sides"].extend(_described(side, metric) for metric in metrics for side in sides)
    if how.design.repeat:
        values = {side.name: side.sums.frame for side in sides}
        for name, frame in values.items():
            found["repeats"].extend(describe_repeats(group, name, frame, metrics))
        passes, more = describe_passes(group, values, metrics)
        found["pass_k"].extend(passes)
        notes.extend(more)
    for metric in metrics if how.omnibus else ():
        curves = [row["curve"] for row in rows if row["metric"] == metric.id]
        p = _omnibus(curves, numbered, metric, how)
        found["omnibus"].append({"group": group, "metric": metric.id, "p": p})


@dataclass(frozen=True, slots=True, eq=False)
class _Numbered(Side):
    """A side whose pairs, units, repeats and dialogues are numbers that all sides share."""

    example: str  # the name of a pair
    n_units: int
    n_dialogues: Codes  # by pair
    n_several: int  # pairs with several dialogues, or several of a repeat

    def of(self, name: str) -> npt.NDArray[Any]:
        """Return a column of the sums."""
        return self.sums.frame[name].to_numpy()

    def by_pair(self, values: npt.NDArray[Any]) -> Values:
        """Add up what the rows have."""
        return np.bincount(self.of("pair"), values, self.n_dialogues.size).astype(np.float64)


def _numbered(sides: Sequence[Side]) -> list[_Numbered]:
    """Give names numbers in their order."""
    names = ("pair", "unit", "repeat", "id")
    both = pl.concat([side.sums.frame.select(names) for side in sides])
    codes = both.select(pl.col(names).rank("dense").cast(pl.Int64).fill_null(0) - 1)
    n_pairs, n_units = (codes[name].n_unique() for name in ("pair", "unit"))
    found = []
    for side in sides:
        frame = side.sums.frame
        own, codes = codes.head(frame.height), codes.slice(frame.height)
        dialogues = own.unique(["pair", "id"])
        is_several = dialogues.select(pl.struct("pair", "repeat").is_duplicated()).to_series()
        sums = replace(side.sums, frame=frame.with_columns(own))
        n_dialogues = np.bincount(dialogues["pair"].to_numpy(), minlength=n_pairs)
        example = repr(shown_name(str(frame["pair"].min())))
        n_several = dialogues["pair"].filter(is_several).n_unique()
        named = side.group, side.name, sums, example
        found.append(_Numbered(*named, n_units, n_dialogues, n_several))
    return found


def _has_value(side: _Numbered, metric: Metric) -> Flags:
    """Return which pairs have a value."""
    return np.asarray(side.by_pair(side.of(f"{metric.id}:n")) > 0)


def _open_rows(side: _Numbered, metric: Metric) -> npt.NDArray[Any]:
    """Return how many rows are not null, by rows of the sums: fixed ones count."""
    return np.asarray(side.of(f"{metric.id}:n") + side.of(f"{metric.id}:fixed"))


def _null_pairs(side: _Numbered, metric: Metric) -> Flags:
    """Return which pairs have null rows only."""
    return np.asarray((side.by_pair(_open_rows(side, metric)) == 0) & (side.n_dialogues > 0))


def _choose_design(
    a: _Numbered, b: _Numbered, how: Inference
) -> tuple[tuple[int, int] | None, list[str]]:
    """Return how many dialogues of pairs each side lacks, None without pairs, and notes."""
    if not how.paired:
        return None, []
    n_a, n_b = a.n_dialogues, b.n_dialogues
    n_paired = int((n_a * n_b > 0).sum())
    are_levels = how.by is not None and a.group is None
    least = int(min((n_a > 0).sum(), (n_b > 0).sum()))
    if are_levels and 2 * n_paired < least:
        return None, [
            f"{a.name} and {b.name} are independent samples: {n_paired:,} of "
            f"{counted(least, 'values')} of {how.pair} have a partner ({a.name} has "
            f"{a.example}, {b.name} {b.example}). pair_by names columns that they share"
        ]
    if least and not n_paired:
        raise _no_pair(how, a.name, b.name, a.example, b.example)
    notes = []
    for side in (a, b):
        if side.n_several:
            where = f"{how.by} {side.name}" if are_levels else side.name
            group = "" if side.group is None else f" with {how.by} {side.group}"
            notes.append(
                f"{counted(side.n_several, 'values')} of {how.pair} in {where}{group} with several "
                "dialogues each, whose rows are pooled"
            )
    return (int((n_b - n_a).clip(0).sum()), int((n_a - n_b).clip(0).sum())), notes


def count_pairs(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Count the dialogues of each pair on two sides, ``a`` and ``b``, the pairs ascending."""
    a, b = (
        frame.unique(["id", "pair"]).group_by("pair").agg(pl.len().cast(pl.Int64).alias(name))
        for name, frame in zip("ab", frames, strict=True)
    )
    return a.join(b, on="pair", how="full", coalesce=True).fill_null(0).sort("pair")


def missing_dialogues(pairs: pl.DataFrame, there: str, here: str) -> int:
    """Count the dialogues of pairs that one side has more of than the other."""
    return int((pairs[there] - pairs[here]).clip(0).sum())


def require_pairs(pairs: pl.DataFrame, how: Inference, a: str, b: str) -> None:
    """Refuse two sides that both have pairs, but none in common, with an example of each."""
    of_a, of_b = (pairs.filter(pl.col(side) > 0)["pair"] for side in "ab")
    if of_a.len() and of_b.len() and not of_a.is_in(of_b.implode()).any():
        raise _no_pair(how, a, b, *(repr(shown_name(side[0])) for side in (of_a, of_b)))


def _no_pair(how: Inference, a: str, b: str, one: str, other: str) -> UsageError:
    return UsageError(
        f"No {how.pair} of {a} (such as {one}) is in {b} (such as {other}).",
        "Name columns that both share with pair_by, or set unpaired to compare independent "
        "samples.",
    )


def _independent(side: Side, place: int) -> Side:
    """Return a side whose units are no other side's, whatever they are called."""
    own = pl.format("{}/{}", pl.lit(place), pl.col("unit"))
    return replace(side, sums=replace(side.sums, frame=side.sums.frame.with_columns(unit=own)))


def _difference(
    a: _Numbered,
    b: _Numbered,
    metric: Metric,
    how: Inference,
    sides: Sequence[_Numbered],
    missing: tuple[int, int] | None,
) -> dict[str, Any]:
    """Compare two sides in one metric: the sample, the curve, and what a verdict needs beside."""
    both, paired = (a, b), missing is not None
    rows = [side.of(f"{metric.id}:n") > 0 for side in both]
    parts = partial = None
    if paired:
        has = [_has_value(side, metric) for side in both]
        # a pair counts if both sides, or all sides, have a value
        kept = np.all([_has_value(side, metric) for side in sides] if how.complete else has, axis=0)
        lost = [int((_null_pairs(x, metric) & y).sum()) for x, y in ((a, has[1]), (b, has[0]))]
        rows = [own & kept[side.of("pair")] for side, own in zip(both, rows, strict=True)]
        n, n_base = [int(kept.sum())] * 2, int(has[0].sum())
        parts, partial = _missing_parts(a, b, kept, metric)
    else:
        n = [_n_distinct(side, own, "id") for side, own in zip(both, rows, strict=True)]
        n_base, lost = n[0], []
        for side in both:
            of_ids = np.bincount(side.of("id"), _open_rows(side, metric))
            lost.append(_n_distinct(side, of_ids[side.of("id")] == 0, "id"))
    (x, y), shared = _aligned(both, rows, metric, may_share=how.shares_units)
    repeated = None
    if how.design.repeat:
        cells = [_cells(side, own, metric) for side, own in zip(both, rows, strict=True)]
        repeated = repeated_difference(*cells) if all(own.any() for own in rows) else None
    ends, test = metric.scale.ends, how.test
    curve = difference_curve(x, y, shared=shared, ends=ends, test=test, repeated=repeated)
    scales = [_scales(side, own, metric) for side, own in zip(both, rows, strict=True)]
    is_defined = all(scales) and scales[0] != scales[1]
    higher, lower, uneven = _pair_signs(x, y, curve) if paired and shared else (None, None, 0.0)
    effect = None if curve.method == "none" else hedges_g(x, y, paired=shared and paired)
    of_sides: dict[str, Sequence[float | None] | None] = {
        "n": n,
        "null": lost,
        "parts": parts,
        "partial": partial,
        "missing": missing,
        "mean": [side.mean if side.counts.sum() else None for side in (x, y)],
    }
    return {
        "curve": curve,
        "group": a.group,
        "a": a.name,
        "b": b.name,
        "metric": metric.id,
        "design": "paired" if paired else "independent",
        "pair": how.pair if paired else None,
        "unit": how.unit,
        **{f"{name}_a": values and values[0] for name, values in of_sides.items()},
        **{f"{name}_b": values and values[1] for name, values in of_sides.items()},
        "n_units": curve.n_units,
        "n_base": n_base,
        "difference": curve.value,
        "standard_error": curve.error,
        "degrees_of_freedom": curve.degrees,
        "method": curve.method,
        "test": None if is_defined else curve.test,
        "p": None if is_defined else curve.p_value(),
        "p_skewed": None if is_defined else curve.p_skewed(),
        "higher": higher,
        "lower": lower,
        "p_sign": None if higher is None or lower is None else sign_test(higher, lower),
        "uneven": uneven,
        **dict(zip(("effect", "effect_low", "effect_high"), effect or (None,) * 3, strict=True)),
        "n_repeats": min(
            _n_distinct(side, own, "repeat") for side, own in zip(both, rows, strict=True)
        )
        if how.design.repeat
        else None,
        "reason": "by_definition" if is_defined else curve.reason,
    }


def _pair_signs(x: Clusters, y: Clusters, curve: Curve) -> tuple[int, int, float]:
    """Count the units that are higher and lower, and the part of the difference that is uneven.

    That is gone if each unit's difference has one weight, its rows on both sides.
    """
    both = x.is_present & y.is_present
    if not both.any() or curve.value is None:
        return 0, 0, 0.0
    gaps = y.sums[both] / y.counts[both] - x.sums[both] / x.counts[both]
    weights = (x.counts + y.counts)[both]
    largest = max(float(np.abs(x.sums).max()), float(np.abs(y.sums).max()), 1e-300)
    higher, lower = int((gaps > GRID * largest).sum()), int((gaps < -GRID * largest).sum())
    uneven = curve.value - float((gaps * weights).sum() / weights.sum())
    return higher, lower, 0.0 if abs(uneven) < 1e-9 * largest else uneven


def _n_distinct(side: _Numbered, rows: Flags, name: str) -> int:
    return int(np.unique(side.of(name)[rows]).size)


def _missing_parts(
    a: _Numbered, b: _Numbered, kept: Flags, metric: Metric
) -> tuple[list[int], list[int]]:
    """Count what has a value on one side of the compared pairs only, and the pairs of each side.

    That is what a dialogue asks for (`Design.asked`), else rows that are null. Where a side has
    fewer dialogues of a pair, these are told instead.
    """
    lacks = []
    for side in (a, b):
        n, left_out, parts = (f"{metric.id}:{name}" for name in ("n", "left_out", "parts"))
        nulls = pl.col("rows") - pl.col(n) - pl.col(left_out)
        lacking = -pl.col(parts) if parts in side.sums.frame.columns else nulls
        lacks.append(side.by_pair(side.sums.frame.select(lacking).to_series().to_numpy()))
    gap = (lacks[1] - lacks[0])[kept & (a.n_dialogues == b.n_dialogues)]
    sides = [gap.clip(0) for gap in (-gap, gap)]
    return [int(side.sum()) for side in sides], [int((side > 0).sum()) for side in sides]


def _scales(side: _Numbered, rows: Flags, metric: Metric) -> set[Any]:
    return set(side.of(f"scale:{metric.scale.by}")[rows]) if metric.scale.by else set()


def _by_unit(
    sides: Sequence[_Numbered], rows: Sequence[Flags], metric: Metric
) -> tuple[Values, Values]:
    """Return sums and counts of values, a row a side, unit by unit of all sides in their order."""
    sums, counts = np.zeros((2, len(sides), sides[0].n_units))
    for place, (side, own) in enumerate(zip(sides, rows, strict=True)):
        for found, name in ((sums, "sum"), (counts, "n")):
            np.add.at(found[place], side.of("unit")[own], side.of(f"{metric.id}:{name}")[own])
    has_values = counts.any(axis=0)
    return sums[:, has_values], counts[:, has_values]


def _aligned(
    sides: Sequence[_Numbered], rows: Sequence[Flags], metric: Metric, *, may_share: bool
) -> tuple[Sequence[Clusters], bool]:
    """Return both sides by unit, and whether they share units, position by position then."""
    x, y = map(Clusters, *_by_unit(sides, rows, metric))
    if may_share and (x.is_present & y.is_present).any():
        return (x, y), True
    return [Clusters(one.sums[one.is_present], one.counts[one.is_present]) for one in (x, y)], False


def _cells(side: _Numbered, rows: Flags, metric: Metric) -> Mapping[str, Any]:
    """Return sums and counts by unit and repeat."""
    frame = side.sums.frame.filter(pl.Series(rows) & (pl.col("repeat") >= 0))
    cells = sum_values(frame, metric, "unit", "repeat")
    names = {"sums": "sum", "counts": "n", "clusters": "unit", "repeats": "repeat"}
    return {name: cells[column].to_numpy() for name, column in names.items()}


def _omnibus(
    curves: Sequence[Curve], sides: Sequence[_Numbered], metric: Metric, how: Inference
) -> float | None:
    """Return the p of "all sides have one mean": the smallest p of the pairs times their number.

    The wild bootstrap keeps its level for many groups of unequal size: the larger p counts.
    """
    rows = [side.of(f"{metric.id}:n") > 0 for side in sides]
    of_sides = zip(sides, rows, strict=True)
    scales = {frozenset(_scales(side, own, metric)) for side, own in of_sides}
    if len(scales - {frozenset()}) > 1:
        return None
    p_values = [p for curve in curves if (p := curve.p_value()) is not None]
    if not p_values:
        return None
    smallest = min(1.0, min(p_values) * len(p_values))
    if len(sides) == 2 or smallest >= how.alpha:
        return smallest
    sums, counts = _by_unit(sides, rows, metric)
    return max(smallest, wild_omnibus(sums.T, counts.T) or 0.0)


def _decide(found: Rows, metrics: Sequence[Metric], how: Inference) -> None:
    """Correct the p-values, and conclude which differences have a verdict.

    A family's tests are those of its distinct metrics in all groups and pairs of sides.
    """
    better = {metric.id: metric.scale.better for metric in metrics}
    tests = families(metrics)
    for row in found:
        margin, good = how.margins.get(row["metric"], how.margin), better[row["metric"]]
        row |= {"p_holm": row["p"], "p_equal": None, "p_no_worse": None, "margin": margin}
        if margin is not None and row["reason"] != "by_definition":
            row["p_equal"] = row["curve"].p_equal(margin)
            if good != "neither":
                row["p_no_worse"] = _benefit(row["curve"], good).p_above(-margin)
    sizes = _correct(found, tests, "p_holm")
    for name in ("p_equal", "p_no_worse"):
        _correct(found, tests, name)
    for row in found:
        family, _ = tests[row["metric"]]
        curve, size = row["curve"], sizes[family]
        value, p = row["difference"], row["p_holm"]
        low, high = curve.interval(1 - how.alpha)
        excludes = curve.method in CONSTANT if low is None or high is None else low > 0 or high < 0
        significant = None if p is None else p < how.alpha and excludes
        # more rows of some units on one side are no change of what the units have
        is_even = value is not None and abs(row["uneven"]) <= abs(value - row["uneven"])
        verdict = ""
        if significant and value and is_even:
            direction, good = "higher" if value > 0 else "lower", better[row["metric"]]
            verdict = direction if good == "neither" else "better" if good == direction else "worse"
        level = how.alpha / max(size, 1)
        row |= {
            "low": low,
            "high": high,
            "family": family,
            "family_size": size,
            "alpha": how.alpha,
            "significant": significant,
            "verdict": verdict,
            "lacking": lacking_text(row, row["a"], row["b"]),
            "detectable": curve.detectable(level),
            "plan": how.plan,
            "units_needed": None if how.plan is None else curve.units_needed(how.plan, level),
            "repeats_needed": None
            if how.plan is None or not row["n_repeats"]
            else curve.repeats_needed(how.plan, level, row["n_repeats"]),
        }


def _benefit(curve: Curve, better: str) -> Curve:
    """Return the curve of how much better the second side is."""
    return curve.opposite() if better == "lower" else curve


def _correct(found: Rows, tests: Mapping[str, tuple[str, str]], name: str) -> dict[str, int]:
    """Correct p-values by Holm's procedure in each family, and return how many each has.

    A copy of another metric is no test of the family and has the p of that one. If its own p
    differs, it is multiplied by the family's size.
    """
    sizes = {}
    for family in dict.fromkeys(family for family, _ in tests.values()):
        own = [row for row in found if tests[row["metric"]] == (family, row["metric"])]
        sizes[family] = sum(row[name] is not None for row in own)
        corrected = holm([row[name] for row in own])
        originals = {
            (row["group"], row["a"], row["b"], row["metric"]): (row[name], p)
            for row, p in zip(own, corrected, strict=True)
        }
        for row in found:
            p, (of, original) = row[name], tests[row["metric"]]
            if of == family and p is not None:
                sides = row["group"], row["a"], row["b"]
                first, p_original = originals.get((*sides, original), (None, None))
                is_same = first is not None and abs(p - first) <= _SAME
                row[name] = p_original if is_same else min(1.0, p * max(sizes[family], 1))
    return sizes


def _drops(found: Rows, metrics: Sequence[Metric], how: Inference) -> Rows:
    """Test how much worse the second side is against limits, as one family of one-sided tests."""
    better = {metric.id: metric.scale.better for metric in metrics}
    rows = []
    for row in found:
        limit = how.limits.get(row["metric"])
        if limit is None:
            continue
        worse = _benefit(row["curve"], better[row["metric"]]).opposite()
        low, high = worse.interval(1 - how.alpha)
        kept = ("metric", "a", "b", "n_a", "n_units", "mean_a", "mean_b", "null_b")
        rows.append(
            {name: row[name] for name in kept}
            | {"drop": worse.value, "low": low, "high": high, "limit": limit}
            | {"p": worse.p_above_skewed(limit)}
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        end = row["drop"] if row["high"] is None else row["high"]
        within = end is not None and end <= row["limit"] + GRID * max(1.0, abs(row["limit"]))
        row["p_holm"] = p
        row["outcome"] = "undecided"
        if row["drop"] is None or (p is not None and p < how.alpha):
            row["outcome"] = "failed"
        elif p is not None and within:
            row["outcome"] = "passed"
    return rows


def _too_small(rows: Rows, how: Inference) -> list[str]:
    """Note families in which no p could have been small enough, by the number of units."""
    notes = []
    for family in dict.fromkeys(row["family"] for row in rows):
        of_family = [row for row in rows if row["family"] == family]
        tested = [(row["curve"], row["p"]) for row in of_family if row["p"] is not None]
        curves, size = [curve for curve, _ in tested], of_family[0]["family_size"]
        if not curves or not all(curve.least_p for curve in curves):
            continue
        # pairs of one difference, and sides of one value each, have the smallest p that there is
        least = min(p if curve.method in CONSTANT else curve.least_p for curve, p in tested)
        if least * size >= how.alpha:
            notes.append(
                f"{family.removesuffix('s')} metrics: "
                f"{counted(max(curve.n_units for curve in curves), 'units')} cannot give a "
                f"corrected p below {how.alpha:g}: the smallest p is {least:.2g}, times "
                f"{counted(size, 'tests')}. More units are needed"
            )
    return notes


def _ranked(rows: Rows, metrics: Sequence[Metric]) -> tuple[Rows, list[str]]:
    """Rank three systems or more by their mean difference from the others, as it was tested.

    A ranking that a verdict contradicts is none: then pairs have different dialogues.
    """
    ranking: Rows = []
    notes = []
    told = [row for row in rows if row["difference"] is not None]
    told = [row for row in told if row["reason"] != "by_definition"]
    for group, metric in product(dict.fromkeys(row["group"] for row in rows), metrics):
        own = [row for row in told if (row["group"], row["metric"]) == (group, metric.id)]
        systems = list(dict.fromkeys(name for row in own for name in (row["a"], row["b"])))
        is_complete = len(own) >= len(systems) * (len(systems) - 1) // 2
        if len(systems) < LEAST_SYSTEMS or metric.scale.better == "neither" or not is_complete:
            continue
        found = _places(group, metric, own, systems)
        ranking += found
        if not found:
            notes.append(
                f"{metric.id}: not ranked, the verdicts of pairs with different dialogues "
                "have no common order. Set complete to compare on the dialogues that all have"
            )
    return ranking, notes


def _places(group: str | None, metric: Metric, rows: Rows, systems: Sequence[str]) -> Rows:
    """Return the ranking of one metric; no row if a verdict contradicts it."""
    sign = -1.0 if metric.scale.better == "lower" else 1.0
    lead = {(row["b"], row["a"]): sign * row["difference"] for row in rows}
    lead |= {(a, b): -value for (b, a), value in lead.items()}
    score = {
        name: sum(lead[name, other] for other in systems if other != name) / (len(systems) - 1)
        for name in systems
    }
    ordered = sorted(systems, key=lambda name: (-score[name], name))
    wins = {
        (row["b"], row["a"]) if sign * row["difference"] > 0 else (row["a"], row["b"])
        for row in rows
        if row["verdict"]
    }
    if any(score[winner] < score[loser] for winner, loser in wins):
        return []
    told_apart = {*wins, *((b, a) for a, b in wins)}
    samples = {row["n_a"] for row in rows} | {row["n_b"] for row in rows}
    paired = {row["design"] for row in rows} == {"paired"}
    sample = "own dialogues"
    if paired:
        sample = f"{samples.pop():,} pairs of all" if len(samples) == 1 else "each two's pairs"
    return [
        {
            "group": group,
            "metric": metric.id,
            "place": 1 + sum(score[other] > score[name] + _SAME for other in systems),
            "system": name,
            "mean_difference": sign * score[name],
            "sample": sample,
            "place_low": 1 + sum((other, name) in wins for other in systems),
            "place_high": len(systems) - sum((name, other) in wins for other in systems),
            "apart_from_next": None if following is None else (name, following) in told_apart,
            "is_best": (ordered[0], name) not in told_apart,
        }
        for name, following in zip_longest(ordered, ordered[1:])
    ]


def _described(side: Side, metric: Metric) -> dict[str, Any]:
    """Count a metric's values and nulls on a side, with the mean over rows and its interval."""
    parts = estimate(side.sums, [metric])
    found = joint_estimate(parts)
    of_metric = side.sums.nulls.filter(metric=metric.id)
    counts = dict(of_metric.group_by("reason").agg(pl.col("n").sum()).iter_rows())
    nulls = {f"n_{reason}": counts.get(reason, 0) for reason in NULL_REASONS}
    return {
        "group": side.group,
        "side": side.name,
        "metric": metric.id,
        "n": sum(part.n for part in parts),
        "n_null": sum(nulls.values()),
        **nulls,
        "n_dialogues": side.sums.frame.filter(pl.col(f"{metric.id}:n") > 0)["id"].n_unique(),
        "mean": found.value,
        **asdict(found),
    }


def _published(a: _Numbered, b: _Numbered, metric: Metric) -> dict[str, Any]:
    """Compute the statistics of the public guest_simulation code, one value a dialogue."""
    dialogues = [sum_values(side.sums.frame, metric, "id") for side in (a, b)]
    x, y = ((each["sum"] / each["n"]).drop_nans().to_numpy() for each in dialogues)
    place = {"group": a.group, "a": a.name, "b": b.name, "metric": metric.id}
    return place | published_statistics(x, y)


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
        pl.select(pl.lit("").str.extract(pattern, 1 if groups else 0))  # knows no look-around
    except (re.error, pl.exceptions.ComputeError) as error:
        found = str(error).partition("\n\nThis error")[0].split("\n")[-1]
        why = found.removeprefix("error: ").rstrip(".")
        raise UsageError(f"pair_by {pattern!r} is no regular expression: {why}.") from error
    if groups != 1:
        raise UsageError(
            f"pair_by {pattern!r} has {groups} groups, expected one.",
            "Write other parentheses as (?:...).",
        )
