"""Coverage of confidence intervals of means and of rank correlations, by simulation.

``python -m benchmarks.coverage [--quick]`` draws samples with a known true mean. The functions of
summaries compute their intervals (95 %). The output is the coverage. Samples without an interval
are counted, not scored. Standard errors of the rates are below .008 at full size.

Dialogues are drawn from distributions (skewed, zero-inflated, rare failures), from constructed
rows (few clusters, unequal sizes) and, with replacement, from real logs that are scored first.

Rank correlations have designs of users with correlated conversations with several models, without a
correlation or with a known one. ``--correlations rho tau`` simulates only these.
"""

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

import fastscore
from benchmarks.figures import Figure, publish
from fastscore.api.examples import write_example
from fastscore.statistics.agreement import Correlation, Measure, clustered_correlation
from fastscore.statistics.clustered import Clusters, clustered_mean
from fastscore.statistics.significance import Values
from fastscore.suites.registry import load_suite

Array = npt.NDArray[np.float64]
USERS = (5, 8, 20, 60)
ALPHA = 0.05
PEARSON = 0.5
SHARE_OF_USER = 0.5
"""The share of a score's variance that is common to a user's conversations."""
LARGE = 200_000


class Found(NamedTuple):
    """A simulated rate: its name, the number of users, the nominal rate and the found rate."""

    name: str
    n: int
    nominal: float
    found: float


@dataclass(frozen=True, slots=True)
class Design:
    """A crossing of users and models.

    Parameters
    ----------
    name
        A short description.
    models
        The number of models.
    model_effect
        Standard deviation of a model's effect on both scores of its conversations.
    answered
        The share of a user's models that answered; at least one did.
    dialogues
        The number of dialogues of a user with each model.
    is_tied
        Whether the judge gives whole scores from 1 to 5, and many scores are at their minimum.
    is_uneven
        Whether users differ in the spread of their scores, equally in both scores.
    """

    name: str
    models: int
    model_effect: float = 0.0
    answered: float = 1.0
    dialogues: int = 1
    is_tied: bool = False
    is_uneven: bool = False


DESIGNS = (
    Design("one model", 1),
    Design("3 models", 3),
    Design("5 models that differ", 5, model_effect=1.0),
    Design("3 models, whole scores", 3, model_effect=0.5, is_tied=True),
    Design("4 models, 6 in 10 answered", 4, model_effect=0.5, answered=0.6),
    Design("2 models, 5 dialogues a user", 2, model_effect=0.5, dialogues=5),
    Design("3 models, users of unequal spread", 3, is_uneven=True),
)


class Conversations(NamedTuple):
    """Scores of conversations with their users and models: shape (n,) each."""

    score: Array
    judge: Array
    user: npt.NDArray[np.int64]
    model: npt.NDArray[np.int64]


def simulate(
    design: Design, users: int, pearson: float, generator: np.random.Generator
) -> Conversations:
    """Draw the conversations of one log."""
    shape = (users, design.models, design.dialogues)
    of_user = _correlated((users, 1, 1), pearson, generator)
    rest = _correlated(shape, pearson, generator)
    sides = np.sqrt(SHARE_OF_USER) * of_user + np.sqrt(1 - SHARE_OF_USER) * rest
    if design.is_uneven:
        sides = sides * np.exp(0.6 * generator.standard_normal((users, 1, 1)))
    score, judge = sides
    if design.is_tied:
        score, judge = _with_ties(score, judge)
    effects = generator.standard_normal((2, 1, design.models, 1)) * design.model_effect
    answered = generator.random(shape[:2]) < design.answered
    answered[np.arange(users), generator.integers(0, design.models, users)] = True
    kept = np.broadcast_to(answered[:, :, None], shape)
    user, model, _ = np.indices(shape)
    return Conversations(
        (score + effects[0])[kept], (judge + effects[1])[kept], user[kept], model[kept]
    )


def _correlated(shape: tuple[int, ...], pearson: float, generator: np.random.Generator) -> Array:
    first, other = generator.standard_normal((2, *shape))
    return np.stack([first, pearson * first + np.sqrt(1 - pearson**2) * other])


def _with_ties(score: Array, judge: Array) -> tuple[Array, Array]:
    return np.where(score < -0.3, -0.3, score.round(1)), (judge * 1.1 + 3.4).round().clip(1, 5)


def true_value(design: Design, symbol: str, pearson: float) -> float:
    """Return rho or tau-b within a model, estimated by SciPy from very many users."""
    plain = Design("", 1, is_tied=design.is_tied, is_uneven=design.is_uneven)
    drawn = simulate(plain, LARGE, pearson, np.random.default_rng(1))
    of_scipy = scipy.stats.spearmanr if symbol == "rho" else scipy.stats.kendalltau
    return float(of_scipy(drawn.score, drawn.judge).statistic)


def measure(
    simulations: int, users: Sequence[int] = USERS, symbols: Sequence[str] = ("rho",)
) -> Iterator[Found]:
    """Yield error rates and coverages of every design and number of users.

    Parameters
    ----------
    simulations
        The number of logs per rate.
    users
        Numbers of users.
    symbols
        Which correlations: ``rho``, ``tau``.
    """
    for symbol in symbols:
        for design in DESIGNS:
            truth = true_value(design, symbol, PEARSON)
            for n in users:
                yield from rates(design, n, symbol, truth, simulations)


def rates(design: Design, n: int, symbol: str, truth: float, simulations: int) -> Iterator[Found]:
    """Yield the rates of one design and number of users; ``truth`` is its true correlation."""
    generator = np.random.default_rng(n)
    measure: Measure = "spearman" if symbol == "rho" else "kendall"
    name = f"{symbol}, {design.name}"
    logs = [simulate(design, n, 0.0, generator) for _ in range(simulations)]
    as_rows = [scipy.stats.spearmanr(log.score, log.judge).pvalue for log in logs]
    found = [clustered_correlation(measure, *log) for log in logs]
    small = np.array([one.p_value is not None and one.p_value < ALPHA for one in found])
    covers_none = ~_covers(found, 0.0)
    yield Found(f"{name}: p < 0.05 if rows were independent", n, ALPHA, _share(as_rows, ALPHA))
    yield Found(f"{name}: p < 0.05", n, ALPHA, float(small.mean()))
    yield Found(f"{name}: verdicts", n, ALPHA, float((small & covers_none).mean()))
    yield Found(f"{name}: interval covers 0", n, 1 - ALPHA, float(_covers(found, 0.0).mean()))
    logs = [simulate(design, n, PEARSON, generator) for _ in range(simulations)]
    covered = _covers([clustered_correlation(measure, *log) for log in logs], truth)
    yield Found(f"{name}: interval covers {truth:.2f}", n, 1 - ALPHA, float(covered.mean()))


def _share(p_values: Sequence[float], alpha: float) -> float:
    return float((np.array(p_values) < alpha).mean())


def _covers(found: Sequence[Correlation], truth: float) -> npt.NDArray[np.bool_]:
    """Return which intervals contain a value. A missing interval contains all values."""
    return np.array([one.low is None or one.low <= truth <= (one.high or 0.0) for one in found])


def print_rates(
    simulations: int, users: Sequence[int] = USERS, symbols: Sequence[str] = ("rho",)
) -> None:
    """Measure, print a row for each design and number of users, and publish the figures."""
    print("\nRank correlations within models, users crossed with models\n")
    found = list(measure(simulations, users, symbols))
    columns = [row.name.partition(": ")[2] for row in found[:5]]
    columns[-1] = f"interval covers a correlation (Pearson's {PEARSON})"
    print("| design | users | " + " | ".join(columns) + " |")
    print("|---|--:|" + "--:|" * len(columns))
    for start in range(0, len(found), len(columns)):
        rows = found[start : start + len(columns)]
        cells = " | ".join(f"{row.found:.3f}" for row in rows)
        print(f"| {rows[0].name.partition(': ')[0]} | {rows[0].n} | {cells} |", flush=True)
    publish(
        Figure(
            what=f"{row.name}, n = {row.n}",
            rows=simulations,
            unit="",
            ours=round(row.found, 4),
            peer="nominal",
            theirs=row.nominal,
        )
        for row in found
    )


SIMULATIONS = 2_000
QUICK = 200
SEED = 20_261_125
UNITS = (2, 3, 8, 20, 50)

Draw = Callable[[np.random.Generator, int], Clusters]


@dataclass(frozen=True, slots=True)
class Population:
    """A distribution of dialogues.

    Parameters
    ----------
    draw
        Returns a number of dialogues: each one's sum of values and their number.
    mean
        The true mean over rows.
    bounds
        The ends of the metric's range; None for no end.
    """

    draw: Draw
    mean: float
    bounds: tuple[float | None, float | None] = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Rate:
    """A simulated rate.

    Parameters
    ----------
    what
        Description of the simulation.
    units
        The number of dialogues, of each side.
    rate
        The share of simulations in which the event happened.
    refused
        The share without an interval or verdict.
    """

    what: str
    units: int
    rate: float
    refused: float


def one_value(draw: Callable[[np.random.Generator, int], Values]) -> Draw:
    """Draw dialogues of one value each."""
    return lambda generator, n: Clusters(draw(generator, n), np.ones(n))


def of_rows(
    sizes: Callable[[np.random.Generator, int], Values],
    rates: Callable[[np.random.Generator, int], Values],
) -> Draw:
    """Draw dialogues of rows that are 0 or 1, with a separate rate for each dialogue."""

    def draw(generator: np.random.Generator, n: int) -> Clusters:
        counts = sizes(generator, n)
        sums = generator.binomial(counts.astype(np.int64), rates(generator, n))
        return Clusters(sums.astype(np.float64), counts)

    return draw


DIALOGUES: Mapping[str, Population] = {
    "normal": Population(one_value(lambda g, n: g.normal(0.0, 1.0, n)), 0.0, (None, None)),
    "uniform": Population(one_value(lambda g, n: g.random(n)), 0.5),
    "skewed, beta(.5, 2)": Population(one_value(lambda g, n: g.beta(0.5, 2.0, n)), 0.2),
    "70 % zeros": Population(
        one_value(lambda g, n: (g.random(n) > 0.7) * g.beta(2.0, 2.0, n)), 0.15
    ),
    "Bernoulli .8": Population(one_value(lambda g, n: (g.random(n) < 0.8) * 1.0), 0.8),
    "Bernoulli .95": Population(one_value(lambda g, n: (g.random(n) < 0.95) * 1.0), 0.95),
    "log-normal, from 0": Population(
        one_value(lambda g, n: np.exp(g.normal(0.0, 0.5, n))), math.exp(0.125), (0.0, None)
    ),
    "counts, Poisson(2)": Population(
        one_value(lambda g, n: g.poisson(2.0, n).astype(np.float64)), 2.0, (0.0, None)
    ),
}

ROWS: Mapping[str, Population] = {
    "rows, equal sizes": Population(
        of_rows(lambda g, n: np.full(n, 10.0), lambda g, n: g.beta(4.0, 1.0, n)), 0.8
    ),
    "rows, sizes log-normal": Population(
        of_rows(
            lambda g, n: np.maximum(1.0, np.round(np.exp(g.normal(2.0, 1.0, n)))),
            lambda g, n: g.beta(4.0, 1.0, n),
        ),
        0.8,
    ),
    "rows, one dialogue of 60": Population(
        of_rows(
            lambda g, n: np.where(np.arange(n) == 0, 60.0, 4.0), lambda g, n: g.beta(2.0, 2.0, n)
        ),
        0.5,
    ),
}


def real_populations(folder: Path) -> dict[str, Population]:
    """Score the bundled logs, and draw dialogues from these scores."""
    found: dict[str, Population] = {}
    for suite in ("score_dialogue", "preference_shift"):
        write_example(suite, folder / suite)
    for options, metrics in (
        (fastscore.ScoreDialogue(lex_weight=1.0), ("U_step", "U_best", "average_U_best_early")),
        (
            fastscore.PreferenceShift(
                catalogue=str(folder / "preference_shift/catalogue.jsonl"), segments="metadata"
            ),
            ("CR", "I", "tas"),
        ),
    ):
        suite = options.suite
        scores = fastscore.score(folder / suite / "logs", options, embedder=None)
        for metric in load_suite(suite).metrics:
            if metric.id in metrics:
                sums = (
                    scores.tables[metric.table]
                    .drop_nulls(metric.id)
                    .group_by("dialogue")
                    .agg(sum=pl.col(metric.id).sum(), n=pl.len())
                    .sort("dialogue")
                )
                found[f"{suite} {metric.id}"] = _resampled(
                    sums, metric.scale.minimum, metric.scale.maximum
                )
    return found


def _resampled(sums: pl.DataFrame, minimum: float | None, maximum: float | None) -> Population:
    totals, counts = (sums[name].cast(pl.Float64).to_numpy() for name in ("sum", "n"))

    def draw(generator: np.random.Generator, n: int) -> Clusters:
        chosen = generator.integers(0, totals.size, n)
        return Clusters(totals[chosen], counts[chosen])

    return Population(draw, float(totals.sum() / counts.sum()), (minimum, maximum))


def coverage(name: str, population: Population, simulations: int) -> Iterator[Rate]:
    """Estimate how often the interval of a mean contains the true mean."""
    low, high = population.bounds
    for n in UNITS:
        generator = np.random.default_rng(SEED)
        held = refused = 0
        for _ in range(simulations):
            drawn = population.draw(generator, n)
            found = clustered_mean(drawn.sums, drawn.counts, (low, high))
            if found.low is None or found.high is None:
                refused += 1
            else:
                held += found.low - 1e-12 <= population.mean <= found.high + 1e-12
        kept = simulations - refused
        yield Rate(name, n, held / kept if kept else math.nan, refused / simulations)


def main() -> None:
    """Simulate, print tables and publish the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 simulations each, not 2,000")
    parser.add_argument("--correlations", nargs="+", choices=("rho", "tau"), help="only these")
    asked = parser.parse_args()
    simulations = QUICK if asked.quick else SIMULATIONS
    if asked.correlations:
        print_rates(simulations // 2, symbols=asked.correlations)
        return
    with tempfile.TemporaryDirectory() as folder:
        real = real_populations(Path(folder))
    everything = {**DIALOGUES, **ROWS, **real}
    intervals = [
        rate for name, each in everything.items() for rate in coverage(name, each, simulations)
    ]
    _print("Coverage of intervals of means (nominal .95)", intervals, simulations, "coverage")
    print_rates(simulations // 4, users=(8, 20))


def _print(title: str, rates: list[Rate], simulations: int, what: str) -> None:
    print(f"\n{title}\n")
    sizes = dict.fromkeys(rate.units for rate in rates)
    print("| drawn from | " + " | ".join(f"n = {n}" for n in sizes) + " |")
    print("|---|" + "--:|" * len(sizes))
    for name in dict.fromkeys(rate.what for rate in rates):
        cells = [_cell(rate) for rate in rates if rate.what == name]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    publish(
        Figure(
            what=f"{what}: {rate.what}, n = {rate.units}",
            rows=simulations,
            unit="",
            ours=round(rate.rate, 4),
            peer="nominal",
            theirs=0.95 if what == "coverage" else 0.05,
        )
        for rate in rates
        if not math.isnan(rate.rate)
    )


def _cell(rate: Rate) -> str:
    """Format a rate, with the share of refused simulations in brackets."""
    shown = "-" if math.isnan(rate.rate) else f"{rate.rate:.3f}"
    return f"{shown} ({rate.refused:.0%} none)" if rate.refused else shown


if __name__ == "__main__":
    main()
