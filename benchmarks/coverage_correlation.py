"""How often tests and intervals of clustered rank correlations are right: users by models.

Every design has users, whose conversations with several models belong together, and no
correlation or a known one. Called by `benchmarks.coverage`, or alone:
`python -m benchmarks.coverage_correlation SIMULATIONS [rho] [tau]`.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.figures import Figure, publish
from fastscore.statistics.correlation import Correlation, clustered_kendall, clustered_spearman

Array = npt.NDArray[np.float64]
USERS = (5, 8, 20, 60)
ALPHA = 0.05
PEARSON = 0.5
SHARE_OF_USER = 0.5
"""The share of a score's variance that a user's conversations have in common."""
LARGE = 200_000


class Found(NamedTuple):
    """A rate of a simulation: its name, the number of users, the nominal rate and the found one."""

    name: str
    n: int
    nominal: float
    found: float


@dataclass(frozen=True, slots=True)
class Design:
    """How users and models are crossed.

    Parameters
    ----------
    name
        What is particular about it.
    models
        How many models there are.
    model_effect
        Standard deviation of what a model adds to all of its conversations, in either score.
    answered
        The share of a user's models that answered; at least one did.
    dialogues
        How many dialogues a user has with each model.
    is_tied
        Whether the judge gives whole scores from 1 to 5, and much of the score is at its minimum.
    is_uneven
        Whether users differ in the spread of their scores, in both scores alike.
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
    """Return rho or tau-b within a model, of very many users, by SciPy."""
    plain = Design("", 1, is_tied=design.is_tied, is_uneven=design.is_uneven)
    drawn = simulate(plain, LARGE, pearson, np.random.default_rng(1))
    of_scipy = stats.spearmanr if symbol == "rho" else stats.kendalltau
    return float(of_scipy(drawn.score, drawn.judge).statistic)


def measure(
    simulations: int, users: Sequence[int] = USERS, symbols: Sequence[str] = ("rho",)
) -> Iterator[Found]:
    """Yield error rates and coverages of every design and number of users.

    Parameters
    ----------
    simulations
        How many logs are drawn for each rate.
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
    """Yield the rates of one design and number of users; ``truth`` is its correlation."""
    generator = np.random.default_rng(n)
    clustered = clustered_spearman if symbol == "rho" else clustered_kendall
    name = f"{symbol}, {design.name}"
    logs = [simulate(design, n, 0.0, generator) for _ in range(simulations)]
    as_rows = [stats.spearmanr(log.score, log.judge).pvalue for log in logs]
    found = [clustered(*log) for log in logs]
    small = np.array([one.p_value is not None and one.p_value < ALPHA for one in found])
    covers_none = ~_covers(found, 0.0)
    yield Found(f"{name}: p < 0.05 if rows were independent", n, ALPHA, _share(as_rows, ALPHA))
    yield Found(f"{name}: p < 0.05", n, ALPHA, float(small.mean()))
    yield Found(f"{name}: verdicts", n, ALPHA, float((small & covers_none).mean()))
    yield Found(f"{name}: interval covers 0", n, 1 - ALPHA, float(_covers(found, 0.0).mean()))
    logs = [simulate(design, n, PEARSON, generator) for _ in range(simulations)]
    covered = _covers([clustered(*log) for log in logs], truth)
    yield Found(f"{name}: interval covers {truth:.2f}", n, 1 - ALPHA, float(covered.mean()))


def _share(p_values: Sequence[float], alpha: float) -> float:
    return float((np.array(p_values) < alpha).mean())


def _covers(found: Sequence[Correlation], truth: float) -> npt.NDArray[np.bool_]:
    """Tell which intervals contain a value; a missing one excludes none."""
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


if __name__ == "__main__":
    print_rates(int(sys.argv[1]), symbols=sys.argv[2:] or ("rho",))
