"""The benchmark of coverage runs, and its samples have their stated mean."""

import numpy as np
import pytest

from benchmarks.coverage import DIALOGUES, ROWS, coverage


@pytest.mark.parametrize("name", [*DIALOGUES, *ROWS])
def test_each_population_has_the_mean_that_it_says(name):
    population = (DIALOGUES | ROWS)[name]
    drawn = population.draw(np.random.default_rng(5), 40_000)
    mean = drawn.sums.sum() / drawn.counts.sum()
    assert mean == pytest.approx(population.mean, abs=0.05 * max(population.mean, 0.4))


def test_every_table_of_the_benchmark_can_be_drawn():
    population = DIALOGUES["normal"]
    rates = list(coverage("normal", population, 20))
    assert all(0 <= rate.rate <= 1 for rate in rates if rate.refused < 1)
    assert {rate.units for rate in rates} == {2, 3, 8, 20, 50}
