"""Estimates with intervals: against SciPy, by hand, and by coverage."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from urbe.statistics.estimates import (
    frequency_interval,
    mean_band,
    mean_interval,
    paired_difference,
)


def rng(seed=0):
    return np.random.default_rng(seed)


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


def test_inputs_are_untouched():
    x = rng().normal(size=(7, 2))
    before = x.copy()
    mean_band(x)
    assert np.array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([1.0]), "samples has shape (1,), expected at least 2 replicates"),
        (lambda: mean_interval([1.0, np.nan]), "samples[1] is nan"),
        (lambda: mean_interval([1.0, 2.0], confidence=95), "confidence is 95, expected a number in (0, 1)"),
        (lambda: mean_interval([1.0, 2.0], confidence=1.0), "confidence is 1.0"),
        (lambda: mean_band(3.0), "at least 2 replicates"),
        (lambda: paired_difference([1, 2], [1, 2, 3]), "first has 2 replicates and second has 3, expected pairs"),
        (lambda: frequency_interval(1, 0), "trials is 0"),
        (lambda: frequency_interval(-1, 5), "successes is -1"),
        (lambda: frequency_interval(6, 5), "successes is 6, expected at most the 5 trials"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
