"""The stratified bootstrap: all resamples of tiny samples, SciPy's bootstrap, and coverage."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy import stats

from urbe.statistics import bootstrap
from urbe.statistics.aggregates import iqm, mean, median
from urbe.statistics.bootstrap import resample_shares, stratified_bootstrap


def rng(seed=0):
    return np.random.default_rng(seed)


def test_three_seeds_are_all_27_resamples():
    x = np.array([0.0, 1.0, 10.0])
    every = np.sort([np.mean(sample) for sample in product(x, repeat=3)])
    # levels between the atoms, at least 0.01 away: 20,000 resamples miss one with probability below 1e-7
    for confidence, low, high in ((0.95, every[0], every[-1]), (0.75, every[3], every[-4]), (0.3, every[9], every[17])):
        found = stratified_bootstrap(mean, x, rng(3), resamples=20_000, confidence=confidence)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert found.estimate == pytest.approx(x.mean())


def test_two_tasks_of_unequal_seeds_are_all_108_resamples():
    a, b = np.array([0.0, 1.0, 5.0]), np.array([0.0, 7.0])
    every = np.sort(
        [iqm([np.array(s), np.array(t)]) for s, t in product(product(a, repeat=3), product(b, repeat=2))]
    )  # fmt: skip
    values, counts = np.unique(every.round(9), return_counts=True)
    ends = np.cumsum(counts) / 108.0
    gap = 4.0 * np.sqrt(0.25 / 20_000)  # four standard deviations of a share
    for confidence in (0.2, 0.5, 0.62, 0.8, 0.9):
        found = stratified_bootstrap(iqm, [a, b], rng(4), resamples=20_000, confidence=confidence)
        for level, end in ((0.5 - confidence / 2, found.low), (0.5 + confidence / 2, found.high)):
            assert values[np.searchsorted(ends, level - gap)] - 1e-8 <= end
            assert end <= values[min(np.searchsorted(ends, level + gap), len(values) - 1)] + 1e-8


def scipy_ends(statistic, tasks, method, confidence):
    """SciPy's bootstrap of several samples draws within each: the same, by other code."""

    def along(*samples, axis):
        assert axis == -1
        return statistic([np.asarray(sample) for sample in samples])

    found = stats.bootstrap(
        tasks, along, n_resamples=40_000, method=method, rng=rng(99), vectorized=True, axis=-1,
        confidence_level=confidence,
    )  # fmt: skip
    return found.confidence_interval.low, found.confidence_interval.high, found.standard_error


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("statistic", "tasks"),
    [
        (mean, [rng(1).exponential(size=12)]),
        (mean, [rng(1).exponential(size=12), 3.0 * rng(2).exponential(size=7), rng(3).normal(size=20)]),
        (iqm, [rng(1).exponential(size=12), 3.0 * rng(2).exponential(size=7)]),
        (lambda tasks: tasks[0].std(axis=-1), [rng(5).normal(size=15), rng(6).normal(size=3)]),
    ],
    ids=["mean", "mean of three", "iqm of two", "standard deviation"],
)
def test_ends_are_scipys(statistic, tasks, method):
    found = stratified_bootstrap(statistic, tasks, rng(7), resamples=40_000, confidence=0.9, method=method)
    low, high, error = scipy_ends(statistic, tasks, method, 0.9)
    # an end is off by 0.0106 standard errors (about normal) on each side; 0.08 is 5 deviations of the difference
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.08 * error)
    assert found.estimate == pytest.approx(float(statistic(tasks)), abs=1e-14)


def test_bca_moves_the_ends_where_scores_are_skewed():
    x = rng(1).exponential(size=25)
    plain, corrected = (stratified_bootstrap(mean, x, rng(7), method=m) for m in ("percentile", "bca"))
    assert corrected.low > plain.low
    assert corrected.high > plain.high + 0.03


def test_bca_of_symmetric_scores_is_nearly_the_percentile():
    x = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
    plain, corrected = (stratified_bootstrap(mean, x, rng(7), method=m) for m in ("percentile", "bca"))
    assert corrected == pytest.approx(plain, abs=0.1)  # z0 is 0 but for the draws, a is 0


def test_the_correction_at_its_limits():
    draws = np.linspace(0.0, 1.0, 101)
    tails = np.array([0.025, 0.975])
    assert bootstrap._corrected(tails, 0.5, draws, 0.0) == pytest.approx(tails, abs=1e-12)
    # all draws on one side: levels stay ordered and within [0, 1]
    for estimate in (-1.0, 2.0):
        low, high = bootstrap._corrected(tails, estimate, draws, 0.0)
        assert 0.0 <= low < high <= 1.0
    # beyond the pole
    assert bootstrap._corrected(tails, 0.5, draws, 0.6)[1] == 1.0
    assert bootstrap._corrected(tails, 0.5, draws, -0.6)[0] == 0.0
    # draws that equal the estimate but for rounding count half on each side
    near = np.array([0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2, 0.1, 0.5])
    assert bootstrap._corrected(tails, 0.3, near, 0.0) == pytest.approx(tails, abs=1e-12)


def test_the_acceleration_of_a_mean_is_its_skewness(monkeypatch):
    # leaving one run out moves a mean by what it was off, so that U_ti = (x_ti - mean_t) / m
    tasks = tuple(rng(k).exponential(size=n) for k, n in enumerate((3, 9, 5)))
    off = [(x - x.mean()) / 3.0 for x in tasks]
    third, second = (sum((u**power).sum() / len(u) ** power for u in off) for power in (3, 2))
    for most in (bootstrap._NUMBERS, 17 * 2):
        monkeypatch.setattr(bootstrap, "_NUMBERS", most)
        assert bootstrap._acceleration(mean, tasks) == pytest.approx(third / (6.0 * second**1.5), rel=1e-10)
    assert bootstrap._acceleration(mean, (np.ones(3),)) == 0.0


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_seeds_are_drawn_within_their_task(method):
    # each task's seeds agree, so that nothing can change whatever is drawn
    scores = np.tile([1.0, 2.0, 3.0, 40.0], (5, 1))
    assert stratified_bootstrap(iqm, scores, rng(), method=method) == (2.5, 2.5, 2.5)


def test_within_tasks_is_narrower_than_over_all_runs():
    scores = rng(1).normal(loc=[0.0, 10.0, 20.0], size=(10, 3))
    within = stratified_bootstrap(mean, scores, rng(2))
    assert within.high - within.low == pytest.approx(2 * 1.96 / np.sqrt(30), rel=0.4)
    pooled = stratified_bootstrap(mean, scores.ravel(), rng(2))
    assert pooled.high - pooled.low > 4.0 * (within.high - within.low)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_same_generator_same_bits_and_blocks_change_nothing(method, monkeypatch):
    scores = [rng(9).normal(size=n) for n in (10, 4, 7)]
    found = stratified_bootstrap(iqm, scores, rng(1), resamples=500, method=method)
    assert found == stratified_bootstrap(iqm, scores, rng(1), resamples=500, method=method)
    assert found != stratified_bootstrap(iqm, scores, rng(2), resamples=500, method=method)
    shares = np.concatenate(list(resample_shares(5, rng(3), 100, 1)))
    shapes = []

    def watched(tasks):
        shapes.append(tasks[0].shape[:-1])
        return iqm(tasks)

    monkeypatch.setattr(bootstrap, "_NUMBERS", 21 * 100)
    assert found == stratified_bootstrap(watched, scores, rng(1), resamples=500, method=method)
    assert shapes[:6] == [(), (100,), (100,), (100,), (100,), (100,)]
    blocks = list(resample_shares(5, rng(3), 100, 70))
    assert len(blocks) == 4
    assert np.array_equal(np.concatenate(blocks), shares)


def test_shares_are_those_of_draws_with_replacement():
    shares = np.concatenate(list(resample_shares(3, rng(1), 27_000, 1)))
    assert shares.sum(axis=1) == pytest.approx(1.0)
    cells, counts = np.unique((3 * shares).round().astype(int), axis=0, return_counts=True)
    assert len(cells) == 10
    expected = [factorial(3) / np.prod([factorial(c) for c in cell]) / 27.0 for cell in cells]
    assert stats.chisquare(counts, 27_000 * np.array(expected)).pvalue > 1e-6


def test_the_error_of_the_ends_is_the_documented_one():
    for resamples, expected in ((2_000, 0.060), (10_000, 0.027), (50_000, 0.012)):
        assert np.sqrt(0.025 * 0.975 / resamples) / stats.norm.pdf(1.96) == pytest.approx(expected, abs=6e-4)
    # and it is what happens: 200 bootstraps of one sample, whose spread is known to a twentieth
    x = rng(1).normal(size=30)
    highs = [stratified_bootstrap(mean, x, rng(100 + i), resamples=2_000).high for i in range(200)]
    assert np.std(highs) == pytest.approx(0.060 * x.std() / np.sqrt(30), rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "law", "coverage"),
    [
        ("percentile", "normal", 0.935),
        ("bca", "normal", 0.930),
        ("percentile", "skewed", 0.907),
        ("bca", "skewed", 0.913),
    ],
)
def test_coverage(method, law, coverage):
    # 10 seeds on each of 3 tasks, the mean, 95 %: below it, as ten seeds are few. 2,000 repetitions, so that a share is
    # known to 0.006; within 0.025 of what was found but for probability 1e-4, and the seeds are fixed
    draw = {"normal": rng(1).normal, "skewed": lambda size: rng(1).exponential(size=size) - 1.0}[law]
    hits = [
        not stratified_bootstrap(mean, x, rng(i), resamples=1_000, method=method).excludes(0.0)
        for i, x in enumerate(draw(size=(2_000, 10, 3)))
    ]
    assert np.mean(hits) == pytest.approx(coverage, abs=0.025)


def test_medians_cover_about_as_often_as_promised():
    # 400 repetitions of 25 seeds: within 0.90..0.985 but for probability 1e-4, and the seeds are fixed
    hits = [
        not stratified_bootstrap(median, rng(i).normal(size=25), rng(10_000 + i), resamples=400).excludes(0.0)
        for i in range(400)
    ]
    assert 0.90 <= np.mean(hits) <= 0.985


def test_inputs_are_untouched():
    x = rng().normal(size=(7, 2))
    before = x.copy()
    stratified_bootstrap(iqm, x, rng(), resamples=50, method="bca")
    assert np.array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: stratified_bootstrap(mean, [1.0], rng()),
            "scores has shape (1,) for task 0, expected (n,) with at least",
        ),
        (lambda: stratified_bootstrap(mean, [np.ones(3), np.ones(1)], rng()), "shape (1,) for task 1"),
        (lambda: stratified_bootstrap(mean, [np.ones((2, 3))], rng()), "shape (2, 3) for task 0"),
        (lambda: stratified_bootstrap(mean, [1.0, np.nan], rng()), "scores[1] is nan"),
        (lambda: stratified_bootstrap(mean, [1.0, 2.0], rng(), resamples=0), "resamples is 0"),
        (
            lambda: stratified_bootstrap(mean, [1.0, 2.0], rng(), confidence=95),
            "confidence is 95, expected a number in",
        ),
        (
            lambda: stratified_bootstrap(mean, [1.0, 2.0], rng(), method="t"),
            "method is 't', expected one of 'percentile'",
        ),
        (lambda: stratified_bootstrap(lambda x: x[0], [1.0, 2.0], rng()), "statistic gave shape (2,) for arrays (2,)"),
        (lambda: stratified_bootstrap(lambda x: np.float64(0.0), [1.0, 2.0], rng()), "expected (10000,)"),  # noqa: ARG005
        (lambda: stratified_bootstrap(lambda x: x[0].mean(-1) * np.nan, [1.0, 2.0], rng()), "statistic gave nan"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
