"""Aggregates of scores: exact rationals, SciPy, runs repeated until tasks have equally many."""

from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from urbe.statistics.aggregates import by_task, iqm, mean, median, optimality_gap

RUNS = st.lists(st.integers(-5, 5), min_size=1, max_size=7)
TASKS = st.lists(RUNS, min_size=1, max_size=4)
ALL = (iqm, mean, median, optimality_gap)


def arrays(tasks):
    return [np.array(task, dtype=float) for task in tasks]


def repeated(tasks):
    """Each run so often that all tasks have the same number: the same mixture, as a plain sorted list."""
    most = lcm(*map(len, tasks))
    return sorted(run for task in tasks for run in task for _ in range(most // len(task)))


def exact_iqm(tasks):
    runs = [Fraction(run) for run in repeated(tasks) for _ in range(4)]  # a multiple of 4: no fractions are left
    middle = runs[len(runs) // 4 : 3 * len(runs) // 4]
    return sum(middle) / len(middle)


@given(TASKS)
def test_all_are_those_of_the_repeated_runs(tasks):
    scores, runs = arrays(tasks), repeated(tasks)
    assert iqm(scores) == pytest.approx(float(exact_iqm(tasks)), abs=1e-12)
    assert mean(scores) == pytest.approx(np.mean(runs), abs=1e-12)
    assert median(scores) == np.median(runs)
    assert optimality_gap(scores, target=2.0) == pytest.approx(
        np.mean([max(2.0 - run, 0.0) for run in runs]), abs=1e-12
    )


@pytest.mark.parametrize("counts", [(6, 8), (7, 9), (2, 3, 10)])
def test_medians_where_weights_are_no_binary_fractions(counts):
    # sums of weights then miss the half by rounding, on either side
    for seed in range(100):
        ranks = np.random.default_rng(seed).permutation(np.arange(float(sum(counts))))
        tasks = np.split(ranks, np.cumsum(counts)[:-1])
        assert median(tasks) == np.median(repeated(tasks))


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_iqm_is_scipys_where_four_divides_the_runs(n, m, seed):
    x = np.random.default_rng(seed).normal(size=(4 * n, m))
    assert iqm(x) == pytest.approx(stats.trim_mean(x, 0.25, axis=None), abs=1e-12)


def test_iqm_is_not_scipys_elsewhere():
    x = np.array([0.0, 3.0, 90.0])
    assert stats.trim_mean(x, 0.25) == 31.0  # nothing is dropped
    assert iqm(x) == 17.0  # 0 and 90 count a quarter each
    # 11 runs: the middle 5.5 of them, 2.75 off each end
    y = np.arange(11.0) ** 2
    by_hand = (0.25 * 4 + 9 + 16 + 25 + 36 + 49 + 0.25 * 64) / 5.5
    assert iqm(y) == pytest.approx(by_hand, abs=1e-12)
    assert stats.trim_mean(y, 0.25) == np.mean(y[2:9])


def test_iqm_ignores_outliers_and_one_run_is_itself():
    assert iqm(np.array([1.0, 2.0, 3.0, 1e300])) == 2.5
    for statistic in (iqm, mean, median):
        assert statistic(np.array([7.0])) == 7.0
        assert statistic(np.full((5, 3), 0.1)) == pytest.approx(0.1, rel=1e-15)


def test_tasks_weigh_the_same_whatever_their_runs():
    scores = [np.zeros(100), np.ones(2)]
    assert mean(scores) == pytest.approx(0.5)
    assert iqm(scores) == pytest.approx(0.5)
    assert median(scores) == 0.5


@pytest.mark.parametrize("statistic", ALL)
def test_laws(statistic):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3))
    before = x.copy()
    # neither the order of seeds nor that of tasks matters, and the array is its list of columns
    mixed = rng.permuted(x, axis=0)[:, [2, 0, 1]]
    assert statistic(mixed) == pytest.approx(statistic(x), abs=1e-14)
    assert statistic(list(x.T)) == statistic(x)
    shifted = statistic(x + 2.0) if statistic is not optimality_gap else optimality_gap(x + 2.0, target=3.0) + 2.0
    assert shifted == pytest.approx(statistic(x) + 2.0, abs=1e-13)
    assert np.array_equal(x, before)
    # axes in front are many samples at once
    ragged = [rng.normal(size=(5, 2, n)) for n in (3, 7)]
    many = statistic(ragged)
    assert many.shape == (5, 2)
    for i, j in np.ndindex(5, 2):
        assert many[i, j] == statistic([task[i, j] for task in ragged])


def test_one_task_may_be_a_plain_list():
    assert mean([1, 2, 6]) == 3.0
    assert [task.tolist() for task in by_task("x", np.array([[1, 2], [3, 4], [5, 6]]))] == [[1, 3, 5], [2, 4, 6]]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([], "scores is empty"),
        (np.zeros((0, 3)), "scores has shape (0, 3), expected (seeds, tasks)"),
        (np.zeros((3, 0)), "scores has shape (3, 0)"),
        (np.zeros((2, 2, 2)), "scores has shape (2, 2, 2)"),
        (3.0, "scores has shape ()"),
        (np.array([[0.0, 1.0], [np.nan, 2.0]]), "scores[1, 0] is nan"),
        ([np.zeros(2), np.array([0.0, np.inf])], "scores[1][1] is inf"),
        ([0.0, np.nan], "scores[1] is nan"),
        ([[0.0, 1.0], [2.0, 3.0]], "scores is a list of lists"),
        ([np.zeros(2), np.zeros(0)], "scores[1] has shape (0,), expected the scores of at least one seed"),
        ([np.zeros(2), 1.0], "scores[1] has shape ()"),
        ([np.zeros((2, 3)), np.zeros((4, 3))], "scores[1] has shape (4, 3) and scores[0] has (2, 3)"),
        (["a", "b"], "cannot be read as an array of numbers"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises(ValueError) as error:
        iqm(scores)
    assert message in str(error.value)


def test_a_target_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="target is nan"):
        optimality_gap([1.0], target=np.nan)
