"""Estimates with intervals: against scipy, by hand, and by how often they cover the truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from urbe.evaluation import statistics
from urbe.evaluation.statistics import (
    bootstrap_interval,
    frequency_interval,
    interquartile_mean,
    mean_band,
    mean_interval,
    paired_difference,
    probability_of_improvement,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def median(x):
    return np.median(x, axis=-1)


def mean(x):
    return x.mean(axis=-1)


SAMPLES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(SAMPLES, st.floats(0.01, 0.999))
def test_mean_is_that_of_scipy(x, confidence):
    found = mean_interval(x, confidence=confidence)
    oracle = stats.ttest_1samp(x, 0.0) if np.ptp(x) > 1e-6 else None
    assert found.estimate == pytest.approx(np.mean(x), abs=1e-9)
    if oracle is not None:
        low, high = oracle.confidence_interval(confidence)
        # ttest_1samp loses digits to cancellation as the interval narrows
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


def test_mean_by_hand():
    # 1, 2, 4: mean 7/3, variance 7/3; t of 2 degrees is (2p-1) sqrt(2 / (4p(1-p)))
    t = 0.95 * np.sqrt(2.0 / (4 * 0.975 * 0.025))
    half = t * np.sqrt(7.0 / 9.0)
    assert mean_interval([1, 2, 4]) == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half), rel=1e-9)


def test_equal_replicates_have_no_width():
    assert mean_interval([3.0] * 5) == (3.0, 3.0, 3.0)


def test_a_band_is_an_interval_at_each_point():
    x = rng().normal(size=(6, 4, 3))
    band = mean_band(x, confidence=0.8)
    assert band.low.shape == (4, 3)
    for i, j in product(range(4), range(3)):
        assert mean_interval(x[:, i, j], confidence=0.8) == (band.estimate[i, j], band.low[i, j], band.high[i, j])


def within_chance(hits, trials, probability):
    """Whether a count of successes is one that chance explains; a false alarm happens with probability 1e-6."""
    low, high = stats.binom.interval(1.0 - 1e-6, trials, probability)
    return low <= hits <= high


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("n", [2, 5, 30])
def test_the_mean_of_normal_numbers_is_covered_as_often_as_promised(n, confidence):
    band = mean_band(rng(n).normal(1.5, 2.0, size=(n, 20_000)), confidence=confidence)
    assert within_chance(((band.low <= 1.5) & (band.high >= 1.5)).sum(), 20_000, confidence)


def test_pairs_cancel_what_they_share():
    shared, noise = rng(1).normal(0.0, 100.0, size=50), rng(2).normal(0.3, 0.1, size=50)
    found = paired_difference(shared + noise, shared)
    assert found == pytest.approx(mean_interval(noise), abs=1e-10)
    assert found.excludes(0.0)
    assert not found.excludes(found.estimate)
    low, high = stats.ttest_rel(shared + noise, shared).confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_the_bootstrap_of_three_numbers_is_all_27_samples():
    x = np.array([0.0, 1.0, 10.0])
    every = np.sort([np.mean(sample) for sample in product(x, repeat=3)])
    # levels between the atoms, at least 0.01 away: 20,000 samples miss one with probability below 1e-7
    for confidence, low, high in ((0.95, every[0], every[-1]), (0.75, every[3], every[-4]), (0.3, every[9], every[17])):
        found = bootstrap_interval(x, mean, rng(3), resamples=20_000, confidence=confidence)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert found.estimate == x.mean()


def test_the_bootstrap_is_near_that_of_scipy():
    x = rng(4).exponential(size=40)
    found = bootstrap_interval(x, median, rng(5), resamples=20_000)
    oracle = stats.bootstrap(
        (x,), np.median, n_resamples=20_000, method="percentile", rng=rng(6), vectorized=True
    ).confidence_interval  # fmt: skip
    spread = np.ptp(x[np.argsort(x)[12:28]])
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=0.1 * spread)
    assert found.estimate == np.median(x)


def test_the_bootstrap_covers_about_as_often_as_promised():
    # 600 repetitions; the percentile interval for 50 normal numbers covers 93.9 %: within 0.91..0.965 but for
    # probability 1e-3, and the seeds are fixed
    hits = 0
    for i in range(600):
        found = bootstrap_interval(rng(i).normal(size=50), mean, rng(10_000 + i), resamples=400)
        hits += not found.excludes(0.0)
    assert 0.91 <= hits / 600 <= 0.965


def test_memory_is_taken_in_pieces(monkeypatch):
    monkeypatch.setattr(statistics, "_pieces", lambda count, _: [count - 1, 1])
    shapes = []

    def watched(x):
        shapes.append(x.shape)
        return mean(x)

    bootstrap_interval(np.arange(4.0), watched, rng(), resamples=10)
    assert shapes == [(9, 4), (1, 4), (4,)]


@pytest.mark.parametrize(("count", "length"), [(1, 1), (2000, 10), (2000, 10_000), (3, 10**7)])
def test_pieces_add_up(count, length):
    pieces = statistics._pieces(count, length)
    assert sum(pieces) == count
    assert min(pieces) > 0
    assert max(pieces) * length <= max(2_000_000, length)


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_interquartile_mean_is_a_trimmed_mean(n, m, seed):
    x = rng(seed).normal(size=(n, m)).round(1)
    found = interquartile_mean(x, rng(seed), resamples=50)
    assert found.estimate == pytest.approx(stats.trim_mean(x, 0.25, axis=None), abs=1e-12)
    assert x.min() <= found.low <= found.high <= x.max()


def test_outliers_do_not_move_the_interquartile_mean():
    x = np.arange(12.0)
    x[-1] = 1e9
    assert interquartile_mean(x, rng()).estimate == 5.5
    assert interquartile_mean(x, rng()).high < 12.0


def test_replicates_are_drawn_within_their_task():
    # each task's replicates agree, so that nothing can change whatever is drawn
    scores = np.tile([1.0, 2.0, 3.0, 40.0], (5, 1))
    found = interquartile_mean(scores, rng())
    assert found.low == found.estimate == found.high == 2.5
    both = probability_of_improvement(scores, scores[:3] - 0.5, rng())
    assert both == (1.0, 1.0, 1.0)


@given(SAMPLES, SAMPLES)
def test_probability_of_improvement_is_that_of_mann_and_whitney(a, b):
    a, b = np.round(a), np.round(b)
    found = probability_of_improvement(a, b, rng(), resamples=20)
    assert found.estimate == pytest.approx(stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)), abs=1e-12)
    assert -1e-12 <= found.low <= found.high <= 1.0 + 1e-12


def test_probability_of_improvement_averages_over_tasks():
    first, second = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # wins surely in the first task; in the second, 2 of 3 lose and 1 of 3 draws
    assert probability_of_improvement(first, second, rng()).estimate == pytest.approx((1.0 + 0.5 / 3.0) / 2.0)


def test_probability_of_improvement_covers():
    # P(N(0.5, 1) > N(0, 1)) = Phi(0.5 / sqrt 2); 400 repetitions of 40 against 40, at 95 %: within 0.90..0.98 but for
    # probability 1e-4, and the seeds are fixed
    truth = stats.norm.cdf(0.5 / np.sqrt(2.0))
    hits = 0
    for i in range(400):
        first, second = rng(i).normal(size=(2, 40))
        found = probability_of_improvement(first + 0.5, second, rng(10**6 + i), resamples=400)
        hits += not found.excludes(truth)
    assert 0.90 <= hits / 400 <= 0.98


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0.01, 0.999))
def test_wilson_is_that_of_scipy(n, fraction, confidence):
    k = round(fraction * n)
    found = frequency_interval(k, n, confidence=confidence)
    oracle = stats.binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=1e-9)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


@pytest.mark.parametrize("confidence", np.linspace(0.01, 0.99, 50))
@pytest.mark.parametrize("n", [1, 7, 20])
def test_wilson_meets_zero_and_one(n, confidence):
    assert frequency_interval(0, n, confidence=confidence).low == 0.0
    assert frequency_interval(n, n, confidence=confidence).high == 1.0


def test_wilson_covers_on_average():
    # exact coverage for 40 trials, averaged over probabilities
    n, grid = 40, np.linspace(0.01, 0.99, 197)
    intervals = [frequency_interval(k, n) for k in range(n + 1)]
    covered = np.array([[not interval.excludes(p) for interval in intervals] for p in grid])
    coverage = (stats.binom.pmf(np.arange(n + 1), n, grid[:, None]) * covered).sum(axis=1)
    assert coverage.mean() == pytest.approx(0.95, abs=0.01)
    assert coverage.min() > 0.83


@pytest.mark.parametrize(
    "estimate",
    [
        lambda draw: bootstrap_interval(rng(9).normal(size=30), mean, draw),
        lambda draw: interquartile_mean(rng(9).normal(size=(10, 3)), draw),
        lambda draw: probability_of_improvement(rng(9).normal(size=10), rng(8).normal(size=10), draw),
    ],
)
def test_same_seed_same_interval_other_seed_another(estimate):
    assert estimate(rng(1)) == estimate(rng(1))
    assert estimate(rng(1)) != estimate(rng(2))


def test_inputs_are_untouched():
    x = rng().normal(size=(7, 2))
    before = x.copy()
    interquartile_mean(x, rng())
    probability_of_improvement(x, x, rng())
    mean_band(x)
    assert np.array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mean_interval([1.0]), "samples has shape (1,), expected at least 2 replicates"),
        (lambda: mean_interval([1.0, np.nan]), "samples[1] is nan"),
        (lambda: mean_interval([1.0, 2.0], confidence=95), "confidence is 95, expected a number in (0, 1)"),
        (lambda: mean_interval([1.0, 2.0], confidence=1.0), "confidence is 1.0"),
        (lambda: mean_band(3.0), "at least 2 replicates"),
        (lambda: paired_difference([1, 2], [1, 2, 3]), "first has 2 replicates and second has 3, expected pairs"),
        (lambda: bootstrap_interval([1, 2], mean, rng(), resamples=0), "resamples is 0"),
        (lambda: bootstrap_interval([1, 2], lambda x: x, rng()), "statistic gave shape"),
        (lambda: bootstrap_interval([[1, 2]], mean, rng()), "expected 1 dimension"),
        (lambda: interquartile_mean(np.zeros((2, 2, 2)), rng()), "(replicates, tasks)"),
        (lambda: interquartile_mean(np.zeros((2, 0)), rng()), "(replicates, tasks)"),
        (lambda: probability_of_improvement(np.zeros((2, 2)), np.zeros((2, 3)), rng()), "2 tasks and second has 3"),
        (lambda: frequency_interval(1, 0), "trials is 0"),
        (lambda: frequency_interval(-1, 5), "successes is -1"),
        (lambda: frequency_interval(6, 5), "successes is 6, expected at most the 5 trials"),
    ],
)
def test_bad_input_is_named(call, told):
    with pytest.raises(ValueError) as error:
        call()
    assert told in str(error.value)
