"""Performance profiles: counting, the binomial distribution, all resamples, coverage of the whole curve."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from urbe.statistics import bootstrap
from urbe.statistics.profiles import performance_profile


def rng(seed=0):
    return np.random.default_rng(seed)


def test_shares_by_counting():
    tasks = [np.array([0.0, 1.0, 1.0, 4.0]), np.array([1.0, 3.0])]
    found = performance_profile(tasks, [-1.0, 0.0, 1.0, 2.0, 3.0, 9.0], rng())
    by_hand = [1.0, (3 / 4 + 1) / 2, (1 / 4 + 1 / 2) / 2, (1 / 4 + 1 / 2) / 2, 1 / 8, 0.0]  # strictly above
    assert found.pointwise.estimate == pytest.approx(by_hand, abs=1e-15)
    assert np.array_equal(found.simultaneous.estimate, found.pointwise.estimate)
    assert found.thresholds.tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0, 9.0]


def test_the_area_below_is_the_mean():
    x = rng(1).uniform(size=(6, 3))
    levels = np.unique(np.r_[0.0, x.ravel(), 1.0])
    share = performance_profile(x, levels, rng(), resamples=10).pointwise.estimate
    assert (share[:-1] * np.diff(levels)).sum() == pytest.approx(x.mean(), abs=1e-12)


def test_one_threshold_of_one_task_is_binomial():
    # 30 of 40 runs are above: resamples are Binomial(40, 3/4) / 40, whose quantiles are known
    x = np.r_[np.zeros(10), np.ones(30)]
    found = performance_profile(x, [0.5], rng(1), resamples=40_000, confidence=0.85)
    law = stats.binom(40, 0.75)
    # both levels are at least 0.02 from a jump of the law, 10 deviations of a share of 40,000
    assert min(np.abs(law.cdf(np.arange(41)) - level).min() for level in (0.075, 0.925)) > 0.02
    assert found.pointwise.low[0] == pytest.approx(law.ppf(0.075) / 40)
    assert found.pointwise.high[0] == pytest.approx(law.ppf(0.925) / 40)
    # the simultaneous band of one threshold: the smallest c with P(|B - 30| <= 40 c) >= 0.85
    width = next(c for c in range(41) if law.cdf(30 + c) - law.cdf(29 - c) >= 0.85)
    assert found.simultaneous.high[0] - 0.75 == pytest.approx(width / 40)


def test_the_simultaneous_width_is_that_of_all_resamples():
    a, b, levels = np.array([0.0, 2.0, 4.0]), np.array([1.0, 3.0]), np.array([0.5, 1.5, 2.5, 3.5])

    def profile(s, t):
        return 0.5 * np.mean(np.array(s)[:, None] > levels, axis=0) + 0.5 * np.mean(
            np.array(t)[:, None] > levels, axis=0
        )

    every = [profile(s, t) for s, t in product(product(a, repeat=3), product(b, repeat=2))]
    furthest = np.sort(np.abs(np.array(every) - profile(a, b)).max(axis=1).round(9))
    found = performance_profile([a, b], levels, rng(2), resamples=20_000, confidence=0.5)
    gap = 4.0 * np.sqrt(0.25 / 20_000)
    width = (found.simultaneous.high - found.simultaneous.estimate).max()
    assert furthest[int(108 * (0.5 - gap))] - 1e-8 <= width <= furthest[int(np.ceil(108 * (0.5 + gap)))] + 1e-8


def test_the_width_is_one_that_enough_resamples_keep():
    # at 60 % two of three resamples are within
    x, levels = rng(5).normal(size=9), np.linspace(-1.0, 1.0, 7)
    found = performance_profile(x, levels, rng(6), resamples=3, confidence=0.6)
    drawn = np.concatenate(list(bootstrap.resample_shares(9, rng(6), 3, 7))) @ (x[:, None] > levels)
    furthest = np.sort(np.abs(drawn - found.pointwise.estimate).max(axis=1))
    assert len(np.unique(furthest.round(9))) == 3
    assert (found.simultaneous.high - found.simultaneous.estimate).max() == pytest.approx(furthest[2])


def test_bands_are_ordered_and_the_wide_one_contains_the_narrow_one():
    found = performance_profile(rng(3).normal(size=(8, 4)), np.linspace(-3, 3, 41), rng(4), resamples=2_000)
    for band in (found.pointwise, found.simultaneous):
        assert (np.diff(band.estimate) <= 0.0).all()
        assert (band.low >= 0.0).all()
        assert (band.low <= band.estimate).all()
        assert (band.estimate <= band.high).all()
        assert (band.high <= 1.0).all()
    assert (found.simultaneous.low <= found.pointwise.low + 1e-12).all()
    assert (found.simultaneous.high >= found.pointwise.high - 1e-12).all()


def test_where_all_runs_are_above_only_the_simultaneous_band_has_width():
    found = performance_profile(rng(3).uniform(size=10), [-1.0, 0.5], rng(4))
    assert (found.pointwise.low[0], found.pointwise.high[0]) == pytest.approx((1.0, 1.0))
    assert found.simultaneous.low[0] < 0.9


def test_same_generator_same_bits_and_blocks_change_nothing(monkeypatch):
    scores, levels = rng(9).normal(size=(10, 3)), np.linspace(-1, 1, 5)
    found, again, other = (performance_profile(scores, levels, rng(s), resamples=300) for s in (1, 1, 2))
    assert all(np.array_equal(x, y) for x, y in zip(found.pointwise, again.pointwise, strict=True))
    assert not np.array_equal(found.pointwise.low, other.pointwise.low)
    monkeypatch.setattr(bootstrap, "_NUMBERS", 70)
    cut = performance_profile(scores, levels, rng(1), resamples=300)
    assert np.array(cut.pointwise) == pytest.approx(np.array(found.pointwise), abs=1e-15)
    assert np.array(cut.simultaneous) == pytest.approx(np.array(found.simultaneous), abs=1e-15)


@pytest.mark.slow
def test_the_whole_curve_is_covered():
    # 20 normal runs, 41 thresholds, 95 %. 1,000 repetitions: a share is known to 0.007; within 0.03 of what was found
    # but for probability 1e-4, and the seeds are fixed. Pointwise intervals cover the whole curve far less often.
    levels = np.linspace(-2, 2, 41)
    truth = stats.norm.sf(levels)
    together, alone = [], []
    for i, x in enumerate(rng(1).normal(size=(1_000, 20))):
        found = performance_profile(x, levels, rng(i), resamples=500)
        together.append(((found.simultaneous.low <= truth) & (truth <= found.simultaneous.high)).all())
        alone.append(((found.pointwise.low <= truth) & (truth <= found.pointwise.high)).all())
    assert np.mean(together) == pytest.approx(0.924, abs=0.03)
    assert np.mean(alone) < 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: performance_profile([1.0], [0.0], rng()), "scores has shape (1,) for task 0"),
        (lambda: performance_profile([1.0, 2.0], [], rng()), "thresholds is empty"),
        (
            lambda: performance_profile([1.0, 2.0], [0.0, 1.0, 1.0], rng()),
            "thresholds[2] is 1 after 1, expected increasing",
        ),
        (lambda: performance_profile([1.0, 2.0], [0.0, np.nan], rng()), "thresholds[1] is nan"),
        (lambda: performance_profile([1.0, 2.0], [0.0], rng(), resamples=0), "resamples is 0"),
        (lambda: performance_profile([1.0, 2.0], [0.0], rng(), confidence=0), "confidence is 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
