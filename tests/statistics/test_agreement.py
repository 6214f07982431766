"""Agreement and rank correlation: hand-worked examples, scikit-learn, SciPy and plain Python."""

import itertools
import math
from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from fastscore.statistics.agreement import (
    MEASURES,
    Correlation,
    categorical_agreement,
    clustered_correlation,
    detectable_correlation,
    krippendorff_alpha,
    weighted_kappa,
)

NAN = np.nan

RELIABILITY = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
"""Krippendorff (2011), section C: four observers, twelve units, missing values."""


def plain_alpha(ratings, level):
    """Compute alpha by its definition: all pairs of values, coincidences in fractions."""
    units = [[int(v) for v in unit if v == v] for unit in ratings]
    units = [unit for unit in units if len(unit) > 1]
    pool = [v for unit in units for v in unit]
    counts = {v: pool.count(v) for v in sorted(set(pool))}

    def distance(c, k):
        if level == "interval":
            return Fraction((c - k) ** 2)
        between = sum(counts[g] for g in counts if min(c, k) <= g <= max(c, k))
        return (between - Fraction(counts[c] + counts[k], 2)) ** 2

    observed = sum(
        Fraction(1, len(unit) - 1) * distance(c, k)
        for unit in units
        for c, k in itertools.permutations(unit, 2)
    ) / len(pool)
    expected = sum(distance(c, k) for c, k in itertools.permutations(pool, 2)) / Fraction(
        len(pool) * (len(pool) - 1)
    )
    return float(1 - observed / expected)


@pytest.mark.parametrize(("level", "published"), [("interval", 0.849), ("ordinal", 0.815)])
def test_alpha_is_krippendorffs(level, published):
    found = krippendorff_alpha(RELIABILITY, level)
    assert found.value == pytest.approx(published, abs=5e-4)
    assert found.n == 11  # the twelfth unit has one value


@pytest.mark.parametrize("level", ["interval", "ordinal"])
def test_alpha_is_its_definition(level):
    random = np.random.default_rng(5)
    for _ in range(20):
        ratings = random.integers(1, 6, (9, 3)).astype(float)
        ratings[random.random(ratings.shape) < 0.2] = NAN
        found = krippendorff_alpha(ratings, level).value
        assert found == pytest.approx(plain_alpha(ratings, level), abs=1e-12)


def plain_categorical(ratings, categories):
    """Compute percent agreement, Fleiss' kappa, AC1 and AC2 in fractions, pair by pair."""
    units = [[Fraction(v) for v in unit if v == v] for unit in ratings]
    units = [unit for unit in units if unit]
    several = [unit for unit in units if len(unit) > 1]
    shares = {
        k: sum(Fraction(unit.count(k), len(unit)) for unit in units) / len(units)
        for k in map(Fraction, categories)
    }
    width = max(shares) - min(shares)

    def weight(a, b, weighted):
        return 1 - (a - b) ** 2 / width**2 if weighted else Fraction(int(a == b))

    def agreed(weighted):
        return sum(
            Fraction(sum(weight(a, b, weighted) for a, b in itertools.permutations(unit, 2)))
            / (len(unit) * (len(unit) - 1))
            for unit in several
        ) / len(several)

    def gwet(weighted):
        q = len(shares)
        total = sum(weight(a, b, weighted) for a in shares for b in shares)
        chance = total / (q * (q - 1)) * sum(s * (1 - s) for s in shares.values())
        return (agreed(weighted) - chance) / (1 - chance)

    same = sum(s**2 for s in shares.values())
    return {
        "percent_agreement": float(agreed(False)),
        "fleiss_kappa": float((agreed(False) - same) / (1 - same)),
        "ac1": float(gwet(False)),
        "ac2": float(gwet(True)),
    }


ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
"""Gwet (2014), ectopic pregnancies: how often one abstractor says i and the other j."""


def test_categorical_coefficients_are_published_ones():
    # irrCAC, the package of the author of AC1, publishes them for both data sets
    found = categorical_agreement(RELIABILITY)
    values = [round(found[name].value, 5) for name in ("percent_agreement", "fleiss_kappa", "ac1")]
    assert values == [0.81818, 0.76117, 0.77544]
    pairs = [(i, j) for i in range(3) for j in range(3) for _ in range(ABSTRACTORS[i][j])]
    found = categorical_agreement(pairs)
    # of two raters Fleiss' kappa is Scott's pi
    values = [round(found[name].value, 7) for name in ("percent_agreement", "fleiss_kappa", "ac1")]
    assert values == [0.89, 0.7962397, 0.8493305]


def test_a_coefficient_below_minus_one_is_not_called_opposite():
    # nobody agrees on ten things, and seventy that one rater saw are of one category
    ratings = [(1.0, 2.0)] * 5 + [(2.0, 1.0)] * 5 + [(1.0, NAN)] * 70
    found = categorical_agreement(ratings, [1, 2])
    plain = plain_categorical(ratings, [1, 2])
    assert plain["fleiss_kappa"] < -1
    for name in ("fleiss_kappa", "ac1", "ac2"):
        assert found[name].value == pytest.approx(plain[name], abs=1e-12)
        assert (found[name].reason == "below_minus_one") == (plain[name] < -1)
    (mirrored,) = {categorical_agreement(ratings[:10], [1, 2])["fleiss_kappa"].reason}
    assert mirrored == "opposite_ratings"


def test_categorical_coefficients_are_their_definitions():
    random = np.random.default_rng(6)
    for _ in range(20):
        ratings = random.integers(1, 6, (12, 3)).astype(float)
        ratings[random.random(ratings.shape) < 0.2] = NAN
        found = categorical_agreement(ratings, [1, 2, 3, 4, 5])
        for name, value in plain_categorical(ratings, [1, 2, 3, 4, 5]).items():
            assert found[name].value == pytest.approx(value, abs=1e-12)


def test_intervals_of_categorical_coefficients_are_by_cluster():
    random = np.random.default_rng(3)
    ratings = random.integers(1, 4, (20, 3)).astype(float)
    clusters = np.arange(20) // 2
    kept = [clusters != left for left in range(10)]
    for name, found in categorical_agreement(ratings, [1, 2, 3], clusters).items():
        value = plain_categorical(ratings, [1, 2, 3])[name]
        if name == "percent_agreement":
            continue  # the interval of a mean has tests of its own
        left = [plain_categorical(ratings[rows], [1, 2, 3])[name] for rows in kept]
        error = (9 / 10 * sum((one - sum(left) / 10) ** 2 for one in left)) ** 0.5
        z, width = np.arctanh(value), 2.262157163 * error / (1 - value**2)
        expected = np.tanh(z - width), np.tanh(z + width)
        assert (found.low, found.high) == pytest.approx(expected, abs=1e-8)


def rate(random, n, *strictness):
    """Draw ratings of one quality by raters with independent noise, some of them stricter."""
    quality = random.normal(size=n)
    seen = quality + 0.8 * random.normal(size=(len(strictness), n)) + np.c_[list(strictness)]
    return np.clip(np.rint(3 + 1.2 * seen), 1, 5)


@pytest.mark.parametrize("n", [8, 20])
def test_intervals_of_categorical_coefficients_cover_as_the_page_says(n):
    random, raters, scale = np.random.default_rng(11), (0.0, 0.3, 0.0), [1, 2, 3, 4, 5]
    truth = categorical_agreement(rate(random, 50_000, *raters).T, scale, np.arange(50_000) % 9)
    drawn = [categorical_agreement(rate(random, n, *raters).T, scale) for _ in range(300)]
    # docs/agreement.md: .89 and .92, .92 and .94, .93 and .94; four standard errors are .05 to .07
    least = {"percent_agreement": 0.90, "fleiss_kappa": 0.84, "ac1": 0.87, "ac2": 0.88}
    for name, lowest in least.items():
        covered = [
            found[name].low <= truth[name].value <= found[name].high
            for found in drawn
            if found[name].low is not None
        ]
        assert len(covered) > 280
        assert lowest < np.mean(covered), name


def test_ratings_between_categories_have_equal_ones_alone():
    found = categorical_agreement([[1, 1], [2.5, 3]], [1, 2, 3])
    assert found["percent_agreement"].value == 0.5
    assert {found[name].reason for name in ("fleiss_kappa", "ac1", "ac2")} == {"no_categories"}
    nothing = categorical_agreement([[1, NAN], [NAN, 2]])
    assert {(one.n, one.value, one.reason) for one in nothing.values()} == {
        (0, None, "too_few_values")
    }


@pytest.mark.filterwarnings("error")
def test_one_thing_with_two_ratings_has_no_interval():
    ratings = np.full((9, 2), np.nan)
    ratings[:, 0], ratings[0, 1] = np.arange(9) % 3, 2
    found = categorical_agreement(ratings)["fleiss_kappa"]
    assert (found.n, found.low, found.reason) == (1, None, "zero_variance")


@pytest.mark.parametrize(("n_pairs", "reason"), [(7, "too_few_values"), (8, None)])
def test_things_with_one_rating_add_no_interval(n_pairs, reason):
    ratings = np.full((20, 2), np.nan)
    ratings[:, 0] = np.arange(20) % 3
    ratings[:n_pairs, 1] = [0, 1, 1, 0, 2, 2, 0, 1][:n_pairs]
    found = categorical_agreement(ratings)
    assert {found[name].reason for name in ("fleiss_kappa", "ac1", "ac2")} == {reason}


def plain_interval(coefficient, n, t):
    """Compute the interval of a function of the things that are kept, by leaving out each."""
    everything = list(range(n))
    value = coefficient(everything)
    left = [coefficient(everything[:i] + everything[i + 1 :]) for i in everything]
    mean = sum(left) / n
    error = ((n - 1) / n * sum((one - mean) ** 2 for one in left)) ** 0.5
    z, width = np.arctanh(value), t * error / (1 - value**2)
    return np.tanh(z - width), np.tanh(z + width)


def test_intervals_leave_out_each_thing_once():
    a = np.array([1, 2, 3, 4, 5, 3, 2, 4, 1, 5])
    b = np.array([1, 3, 3, 4, 4, 2, 2, 5, 2, 5])
    t = 2.262157163  # of nine degrees of freedom, as tables have it
    kappa = weighted_kappa(a, b)
    expected = plain_interval(
        lambda kept: cohen_kappa_score(
            a[kept], b[kept], weights="quadratic", labels=[1, 2, 3, 4, 5]
        ),
        10,
        t,
    )
    assert (kappa.low, kappa.high) == pytest.approx(expected, abs=1e-8)
    both = np.column_stack([a, b])
    for level in ("interval", "ordinal"):
        alpha = krippendorff_alpha(both, level)
        expected = plain_interval(lambda kept, of=level: plain_alpha(both[kept], of), 10, t)
        assert (alpha.low, alpha.high) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("least", [8, 20])
def test_intervals_cover_what_they_should(least):
    random = np.random.default_rng(11)
    many = rate(random, 400_000, 0.0, 0.3)
    truth = cohen_kappa_score(*many, weights="quadratic", labels=[1, 2, 3, 4, 5])
    found = [weighted_kappa(*rate(random, least, 0.0, 0.3)) for _ in range(400)]
    covered = [one.low <= truth <= one.high for one in found if one.low is not None]
    assert len(covered) > 390
    # a 95 % interval; four standard errors of 400 draws are 0.044
    assert 0.91 < np.mean(covered) <= 1.0


def test_what_is_missing_has_a_reason():
    assert krippendorff_alpha([[1, 1], [2, 2]]).value == 1
    assert krippendorff_alpha([[1, 1], [2, 2]]).reason == "too_few_values"  # of an interval
    same = krippendorff_alpha([[3, 3], [3, 3]])
    assert (same.value, same.reason) == (None, "zero_variance")
    single = krippendorff_alpha([[3, NAN], [2, NAN]])
    assert (single.n, single.value, single.reason) == (0, None, "too_few_values")
    perfect = weighted_kappa(range(10), range(10))
    assert (perfect.value, perfect.low, perfect.reason) == (1.0, None, "no_disagreement")
    assert weighted_kappa([3, 3], [3, 3]).reason == "zero_variance"
    one_apart = weighted_kappa([3] * 9 + [4], [3] * 9 + [5])
    assert one_apart.value is not None
    assert one_apart.reason == "zero_variance"  # without the tenth all are equal


# --- rank correlations


clustered_spearman, clustered_kendall = (partial(clustered_correlation, one) for one in MEASURES)

ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3), st.integers(-3, 3), st.sampled_from("abcde"), st.sampled_from("mn")
    ),
    min_size=3,
    max_size=16,
)


def plain_spearman(rows):
    """Correlate (x, y, stratum) by ranks within strata, in plain Python."""
    x_grades, y_grades = [], []
    for stratum in {row[2] for row in rows}:
        part = [row for row in rows if row[2] == stratum]
        for side, grades in ((0, x_grades), (1, y_grades)):
            for row in part:
                below = sum(other[side] < row[side] for other in part)
                equal = sum(other[side] == row[side] for other in part)
                grades.append(Fraction(2 * below + equal, 2 * len(part)) - Fraction(1, 2))
    return quotient(
        sum(x * y for x, y in zip(x_grades, y_grades, strict=True)),
        sum(x * x for x in x_grades),
        sum(y * y for y in y_grades),
    )


def plain_kendall(rows):
    """Compare all pairs of one stratum, in plain Python."""
    pairs = [
        (np.sign(first[0] - second[0]), np.sign(first[1] - second[1]))
        for place, first in enumerate(rows)
        for second in rows[:place]
        if first[2] == second[2]
    ]
    return quotient(
        sum(x * y for x, y in pairs), sum(x * x for x, _ in pairs), sum(y * y for _, y in pairs)
    )


def quotient(products, of_x, of_y):
    if not of_x or not of_y:
        return math.nan
    return float(products) / math.sqrt(float(of_x) * float(of_y))


PLAIN = [(clustered_spearman, plain_spearman), (clustered_kendall, plain_kendall)]


def arrays(rows):
    x, y, clusters, strata = map(list, zip(*rows, strict=True))
    return x, y, clusters, strata


def test_too_few_pairs_and_constant_sides_give_reasons():
    for clustered, _ in PLAIN:
        assert clustered([], [], []) == Correlation(None, 0, 0, reason="too_few_units")
        constant = clustered([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1, 2, 3])
        assert constant == Correlation(None, 3, 3, reason="zero_variance")
        two = clustered([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1, 2, 2])
        assert two == Correlation(pytest.approx(1.0), 3, 2, reason="too_few_units")
    with pytest.raises(ValueError, match=r"clusters has shape \(1,\), expected \(2,\)"):
        clustered_spearman([1.0, 2.0], [1.0, 2.0], ["a"])


@given(ROWS)
def test_clusters_are_left_out_one_by_one(rows):
    """Value, interval and p of the jackknife, each replicate computed from the rows that remain."""
    x, y, clusters, strata = arrays(rows)
    for clustered, plain in PLAIN:
        found = clustered(x, y, clusters, strata)
        value = plain([(row[0], row[1], row[3]) for row in rows])
        if math.isnan(value):
            assert found.value is None
            continue
        assert found.value == pytest.approx(value)
        labels = sorted(set(clusters))
        left = [plain([(r[0], r[1], r[3]) for r in rows if r[2] != label]) for label in labels]
        expected = jackknife_interval(value, left) if len(labels) > 2 else None
        if expected is None:
            assert (found.low, found.high) == (None, None)
            continue
        low, high, p_value = expected
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
        if found.method == "jackknife":
            assert found.p_value == pytest.approx(p_value)


def jackknife_interval(value, replicates):
    n = len(replicates)
    if abs(value) > 0.9999 or any(math.isnan(replicate) for replicate in replicates):
        return None
    of_replicates = [math.atanh(min(max(r, -0.9999), 0.9999)) for r in replicates]
    pseudovalues = [n * math.atanh(value) - (n - 1) * z for z in of_replicates]
    if max(pseudovalues) - min(pseudovalues) < 1e-8:
        return None
    test = stats.ttest_1samp(pseudovalues, 0.0)
    ends = test.confidence_interval(0.95)
    low, high = math.tanh(ends.low), math.tanh(ends.high)
    return min(low, value), max(high, value), float(test.pvalue)


@settings(max_examples=30)
@given(st.integers(3, 5), st.integers(1, 3), st.lists(st.integers(-2, 2), min_size=30, max_size=30))
def test_few_complete_clusters_count_every_order_of_them(n_clusters, n_strata, values):
    """Whole clusters are exchanged: what a stratum adds to all of its values changes nothing."""
    x, y = np.reshape(values, (2, 15))[:, : n_clusters * n_strata].reshape(2, n_clusters, -1)
    codes, strata = np.indices(x.shape).reshape(2, -1)
    for clustered, plain in PLAIN:
        found = clustered(x.ravel(), y.ravel(), codes, strata)
        if found.value is None:
            continue
        sizes = [
            abs(plain(list(zip(x.ravel(), y[list(order)].ravel(), strata, strict=True))))
            for order in permutations(range(n_clusters))
        ]
        as_large = Fraction(sum(size >= sizes[0] - 1e-9 for size in sizes), len(sizes))
        largest = Fraction(sum(size >= max(sizes) - 1e-9 for size in sizes), len(sizes))
        assert found.method == "exact"
        assert (found.p_value, found.smallest_p) == pytest.approx((as_large, largest))
        shifted = clustered(x.ravel() + 9 * strata, y.ravel() - 7 * strata, codes, strata)
        assert (shifted.value, shifted.p_value) == (found.value, found.p_value)


def test_incomplete_clusters_have_the_test_of_their_interval():
    x, y = [1.0, 2.0, 3.0, 5.0, 4.0], [2.0, 1.0, 4.0, 3.0, 5.0]
    assert clustered_spearman(x, y, [1, 2, 3, 4, 5]).method == "exact"
    assert clustered_spearman(x, y, [1, 2, 3, 4, 4]).method == "jackknife"
    assert clustered_spearman(x, y, [1, 2, 3, 4, 5], ["m", "m", "m", "n", "n"]).method != "exact"


def test_perfect_correlation_has_no_interval():
    found = clustered_spearman([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1, 2, 3])
    assert (found.value, found.low, found.p_value) == (1.0, None, pytest.approx(1 / 3))
    assert found.smallest_p == pytest.approx(1 / 3)
    assert found.reason == "zero_variance"
    many = clustered_spearman(np.arange(20.0), np.arange(20.0), np.arange(20))
    assert (many.value, many.p_value, many.reason) == (1.0, None, "zero_variance")


@given(ROWS, st.randoms())
def test_order_never_matters(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    for clustered, _ in PLAIN:
        assert clustered(*arrays(rows)) == clustered(*arrays(shuffled))


def test_smallest_detectable_correlation_by_hand():
    # t(0.975, 9) = 2.262157, t(0.8, 9) = 0.883404: tanh(3.145561 * 0.2)
    found = Correlation(0.1, 10, 10, error=0.2, smallest_p=0.0)
    assert detectable_correlation(found) == pytest.approx(math.tanh(0.6291122), abs=1e-6)
    assert detectable_correlation(Correlation(1.0, 10, 10)) is None
    # three clusters: p is at least 1 / 3
    assert detectable_correlation(Correlation(0.5, 3, 3, error=0.2, smallest_p=1 / 3)) is None
