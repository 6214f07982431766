"""Error rates, coverage and power of comparisons with a known truth, by simulation.

``python -m benchmarks.inference [--write]`` compares sides whose truth is known, as `compare`,
`check` and `report` compare them. It prints a table of rates beside what they should be at most or
at least. ``--write`` keeps it as a record, and writes the record into docs/statistics.md.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from fastscore.results.comparison import Comparison
from fastscore.results.differences import Inference, Side, add_sides, concluded
from fastscore.run.progress import SilentReporter
from fastscore.statistics.clustered import clustered_mean
from fastscore.suites.declarations import Design, Formula, Metric, Scale
from fastscore.suites.sums import Sums, estimate

Values = npt.NDArray[np.float64]
Generator = np.random.Generator
ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "data" / "inference.json"
PAGE = ROOT / "docs" / "statistics.md"
START, END = "<!-- inference: start -->", "<!-- inference: end -->"
SEED = 1


def metric(id: str = "share", **scale: Any) -> Metric:
    of = Scale(**{"better": "higher"} | scale)
    return Metric(id=id, name=id, formula=Formula(), scale=of, source="", role="headline")


BITS = 50


def sums_of(
    columns: Mapping[str, Sequence[float]],
    pairs: Sequence[object] | None = None,
    *,
    counts: Sequence[int] | None = None,
    repeats: Sequence[str] | None = None,
    metrics: Sequence[Metric] = (),
) -> Sums:
    """Make the sums of dialogues with these values, NaN for null, and as many rows each."""
    n = len(next(iter(columns.values())))
    names = [str(name) for name in (range(n) if pairs is None else pairs)]
    declared = tuple(metrics) or tuple(metric(id) for id in columns)
    parts: dict[str, Any] = {
        "id": [f"{name}#{place}" for place, name in enumerate(names)],
        "pair": names,
        "unit": names,
        "repeat": repeats if repeats is not None else [None] * n,
        "rows": [1] * n if counts is None else counts,
    }
    nulls = []
    for one in declared:
        values = np.asarray(columns[one.id], np.float64)
        known = ~np.isnan(values)
        rows = known * (np.ones(n, np.int64) if counts is None else np.asarray(counts))
        sums = np.where(known, values, 0.0) * rows
        parts |= {
            f"{one.id}:exact": [round(total * 2**BITS) for total in sums.tolist()],
            f"{one.id}:sum": sums,
            f"{one.id}:n": rows,
            f"{one.id}:at_minimum": ((values == one.scale.minimum) * rows).astype(np.int64),
            f"{one.id}:at_maximum": ((values == one.scale.maximum) * rows).astype(np.int64),
            f"{one.id}:fixed": np.zeros(n, np.int64),
            f"{one.id}:left_out": np.zeros(n, np.int64),
        }
        nulls += [(parts["id"][place], one.id, "bad_input", 1) for place in np.flatnonzero(~known)]
    schema = {"id": pl.String, "metric": pl.String, "reason": pl.String, "n": pl.Int64}
    return Sums(
        metrics=declared,
        frame=pl.DataFrame(parts, schema_overrides={"repeat": pl.String}),
        nulls=pl.DataFrame(nulls, schema=schema, orient="row"),
        bits=dict.fromkeys((one.id for one in declared), BITS),
        lacking={},
    )


def compared(sides: Mapping[str, Sums], repeats: str = "", **how: Any) -> Comparison:
    """Compare sides by their pairs."""
    metrics = next(iter(sides.values())).metrics
    group = [Side(None, name, sums) for name, sums in sides.items()]
    inference = Inference(design=Design(repeat=repeats), **how)
    found, notes = defaultdict[str, list[dict[str, Any]]](list), list[str]()
    add_sides(found, group, metrics, inference, notes, SilentReporter())
    return concluded(found, metrics, inference, "", notes, ())


OPEN = {"minimum": None, "maximum": None}


def sides_of(ids: bool, groups: Mapping[str, Mapping[str, Any]], **range_: Any) -> dict[str, Sums]:
    """Return sides by their values; of `ids` position i of all is one pair."""
    metrics = [metric(id, **range_) for id in next(iter(groups.values()))]
    return {
        name: sums_of(
            values,
            None if ids else [f"{name}{k}" for k in range(len(next(iter(values.values()))))],
            metrics=metrics,
        )
        for name, values in groups.items()
    }


def verdict(a: Values, b: Values, *, paired: bool, **range_: Any) -> bool:
    """Tell whether two sides of one metric have a verdict."""
    sides = sides_of(paired, {"a": {"x": a}, "b": {"x": b}}, **range_)
    return bool(compared(sides, paired=paired).differences["verdict"][0])


def bernoulli(p: float, n: int, m: int) -> Callable[[Generator], bool]:
    return lambda g: verdict((g.random(n) < p) * 1.0, (g.random(m) < p) * 1.0, paired=False)


def inflated(n: int, m: int) -> Callable[[Generator], bool]:
    def values(g: Generator, size: int) -> Values:
        return np.where(g.random(size) < 0.85, 1.0, 1 - 0.6 * g.beta(2, 2, size))

    return lambda g: verdict(values(g, n), values(g, m), paired=False)


def skewed(g: Generator, n: int) -> Values:
    """Return changes of mean 0: most lose a little, one in ten wins much."""
    return np.where(g.random(n) < 0.1, 0.36, -0.04) + g.normal(0, 0.02, n)


def gate(limits: int, n: int) -> Callable[[Generator], bool]:
    def fails(g: Generator) -> bool:
        ids = [f"m{k}" for k in range(limits)]
        sides = sides_of(
            True,
            {"a": dict.fromkeys(ids, np.zeros(n)), "b": {id: skewed(g, n) for id in ids}},
            **OPEN,
        )
        return (
            "failed" in compared(sides, limits=dict.fromkeys(ids, 0.0)).drops["outcome"].to_list()
        )

    return fails


def differing_groups(*groups: tuple[int, float]) -> Callable[[Generator], bool]:
    """Return whether groups of one mean, but of these sizes and widths, are said to differ."""

    def said(g: Generator) -> bool:
        sides = sides_of(
            False,
            {
                f"g{k}": {"x": 0.5 + g.choice([-1, 1], n) * width * g.random(n)}
                for k, (n, width) in enumerate(groups)
            },
        )
        p = compared(sides, paired=False, omnibus=True).omnibus["p"][0]
        return p is not None and p < 0.05

    return said


def page(runs: int, metrics: int) -> Callable[[Generator], bool]:
    def said(g: Generator) -> bool:
        level = g.normal(0, 0.1, (metrics, 30))
        groups = {
            f"r{k}": {f"m{i}": level[i] + g.normal(0, 0.07, 30) for i in range(metrics)}
            for k in range(runs + 1)
        }
        found = compared(sides_of(True, groups, **OPEN), contrasts="first").differences
        return bool((found["verdict"] != "").any())

    return said


def power(family: int) -> Callable[[Generator], bool]:
    level = 0.05 / family
    size = (stats.t.ppf(1 - level / 2, 29) + stats.t.ppf(0.8, 29)) * 0.1 / 30**0.5

    def found(g: Generator) -> bool:
        values = g.normal(0, 0.1, (family, 30))
        values[0] += size
        ids = [f"m{k}" for k in range(family)]
        groups = {
            "a": dict.fromkeys(ids, np.zeros(30)),
            "b": dict(zip(ids, values, strict=True)),
        }
        rows = compared(sides_of(True, groups, **OPEN)).differences
        return bool(rows.filter(metric="m0")["verdict"][0])

    return found


def places(which: int | None) -> Callable[[Generator], float]:
    """Return how often bounds hold the true places of six nearly equal systems, or of one."""

    def held(g: Generator) -> float:
        level = g.normal(0.5, 0.1, 12)
        groups = {f"s{k}": {"x": level + g.normal(0, 0.08, 12) - 0.002 * k} for k in range(6)}
        rows = compared(sides_of(True, groups, **OPEN)).ranking.to_dicts()
        hits = {
            int(row["system"][1]): row["place_low"]
            <= 1 + int(row["system"][1])
            <= row["place_high"]
            for row in rows
        }
        return float(np.mean([*hits.values()]) if which is None else hits[which])

    return held


def pooled_mean(by_user: bool) -> Callable[[Generator], bool]:
    """Return whether the interval of 16 users by 4 models, ICC .6, contains the mean."""

    def held(g: Generator) -> bool:
        values = 0.5 + 0.15 * (
            0.6**0.5 * g.normal(size=(16, 1)) + 0.4**0.5 * g.normal(size=(16, 4))
        )
        units = np.repeat(np.arange(16), 4) if by_user else np.arange(64)
        sums = sums_of({"x": values.ravel()}, units, metrics=[metric("x", **OPEN)])  # type: ignore[arg-type]
        found = estimate(sums)[0].estimate
        return bool((found.low or 0) <= 0.5 <= (found.high or 0))

    return held


def proportion(p: float, n: int) -> Callable[[Generator], bool]:
    def held(g: Generator) -> bool:
        found = clustered_mean((g.random(n) < p) * 1.0, np.ones(n), (0.0, 1.0))
        return bool((found.low or 0) <= p <= (found.high or 0))

    return held


def difference_of_proportions(p: float, n: int, *, paired: bool) -> Callable[[Generator], bool]:
    """Return whether the interval of a difference of 0 contains 0; half of the pairs are tied."""

    def held(g: Generator) -> bool:
        a, b = ((g.random(n) < p) * 1.0 for _ in range(2))
        b = np.where(g.random(n) < 0.5, a, b) if paired else b
        sides = sides_of(paired, {"a": {"x": a}, "b": {"x": b}})
        low, high = compared(sides, paired=paired).differences.select("low", "high").row(0)
        return low is None or low <= 1e-12 <= high + 2e-12

    return held


def normal_pairs(n: int) -> Callable[[Generator], bool]:
    return lambda g: verdict(
        *(level + g.normal(0, 0.05, n) for level in [g.normal(0.5, 0.1, n)] * 2),
        paired=True,
        **OPEN,
    )


def uneven_rows(n: int, *, paired: bool) -> Callable[[Generator], bool]:
    """Return whether sides of one distribution have a verdict if units have 1 to 40 rows."""

    def said(g: Generator) -> bool:
        sides = {
            name: sums_of(
                {"x": g.normal(0.5, 0.1, n)},
                None if paired else [f"{name}{k}" for k in range(n)],
                counts=np.ceil(40 * g.beta(0.4, 1.2, n)).astype(np.int64),
                metrics=[metric("x", **OPEN)],
            )
            for name in "ab"
        }
        return bool(compared(sides, paired=paired).differences["verdict"][0])

    return said


def equivalence(n: int, margin: float, p: str) -> Callable[[Generator], bool]:
    """Return whether a true drop of the whole margin is said to be within it."""

    def said(g: Generator) -> bool:
        level = g.normal(0.5, 0.1, n)
        sides = sides_of(
            True,
            {
                "a": {"x": level + g.normal(0, 0.05, n)},
                "b": {"x": level - margin + g.normal(0, 0.05, n)},
            },
            **OPEN,
        )
        return bool(compared(sides, margin=margin).differences[p][0] < 0.05)

    return said


WIDE = ((6, 0.5), (6, 0.5), (6, 0.5), (100, 0.08))
RATES: tuple[tuple[str, str, Callable[[Generator], float]], ...] = (
    ("verdicts, independent Bernoulli .9, 8 against 32", "<= .06", bernoulli(0.9, 8, 32)),
    ("verdicts, independent Bernoulli .9, 20 against 80", "<= .06", bernoulli(0.9, 20, 80)),
    ("verdicts, independent Bernoulli .9, 20 against 400", "<= .06", bernoulli(0.9, 20, 400)),
    ("verdicts, independent, .85 at 1, 20 against 80", "<= .06", inflated(20, 80)),
    ("verdicts, normal pairs, n = 8", "<= .06", normal_pairs(8)),
    ("verdicts, normal pairs, n = 50", "<= .06", normal_pairs(50)),
    ("verdicts, 8 pairs, 1 to 40 rows each", "<= .06", uneven_rows(8, paired=True)),
    ("verdicts, independent, 6 and 6, 1 to 40 rows each", "<= .06", uneven_rows(6, paired=False)),
    (
        "verdicts, skewed pairs, n = 50",
        "limit",
        lambda g: verdict(np.zeros(50), skewed(g, 50), paired=True, **OPEN),
    ),
    ("`check` fails, skewed drops of mean 0, n = 8", "limit (.43)", gate(1, 8)),
    ("`check` fails, skewed drops of mean 0, n = 20", "limit (.12)", gate(1, 20)),
    ("`check` fails, skewed drops of mean 0, n = 50", "<= .06", gate(1, 50)),
    ("`check` fails, six limits, skewed drops of mean 0, n = 50", "<= .06", gate(6, 50)),
    ("groups differ, 6, 6, 6 wide and 100 narrow", "<= .06", differing_groups(*WIDE)),
    ("page of a base and 1 run, 6 metrics, some verdict", "<= .06", page(1, 6)),
    ("page of a base and 5 runs, 6 metrics, some verdict", "<= .06", page(5, 6)),
    ("verdict at `detectable`, family of 1", ">= .8", power(1)),
    ("verdict at `detectable`, family of 9", ">= .8", power(9)),
    ("bounds hold a place of six nearly equal", ">= .93", places(None)),
    ("bounds hold the best of six nearly equal", ">= .93", places(0)),
    ("interval of a mean, 16 users by 4 models, by user", ">= .93", pooled_mean(by_user=True)),
    ("the same by conversation", "not used", pooled_mean(by_user=False)),
    ("interval of a proportion of .9, n = 20", ".93 to .98", proportion(0.9, 20)),
    (
        "interval of a difference, Bernoulli .9, n = 20",
        ">= .93",
        difference_of_proportions(0.9, 20, paired=False),
    ),
    (
        "interval of a paired difference, Bernoulli .9, n = 20",
        ">= .93",
        difference_of_proportions(0.9, 20, paired=True),
    ),
    (
        "true drop of the margin said no worse, n = 20",
        "<= .06",
        equivalence(20, 0.05, "p_no_worse"),
    ),
    ("true drop of the margin said equal, n = 60", "<= .06", equivalence(60, 0.02, "p_equal")),
)


def simulate(repetitions: int) -> Iterator[dict[str, Any]]:
    """Estimate every rate."""
    for what, aim, holds in RATES:
        started = time.perf_counter()
        generator = np.random.default_rng(SEED)
        found = [float(holds(generator)) for _ in range(repetitions)]
        rate = {"what": what, "aim": aim, "rate": round(float(np.mean(found)), 3)}
        print(rate, f"{time.perf_counter() - started:.0f} s", flush=True)
        yield rate | {"repetitions": repetitions}


def table(rates: Sequence[Mapping[str, Any]]) -> str:
    """Write rates as a table of a page."""
    rows = [f"| {one['what']} | {one['rate']:.3f} | {one['aim']} |" for one in rates]
    return "\n".join(["| Simulated | Rate | Aim |", "|---|--:|---|", *rows])


def filled(page_text: str) -> str:
    """Write the record between a page's marks."""
    before, _, rest = page_text.partition(START)
    _, _, after = rest.partition(END)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return f"{before}{START}\n{table(record)}\n{END}{after}"


def main() -> None:
    """Simulate, print and, if asked, keep the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--write", action="store_true", help="keep the record and fill the page")
    asked = parser.parse_args()
    rates = list(simulate(asked.repetitions))
    print(table(rates))
    if asked.write:
        RECORD.write_text(json.dumps(rates, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
