"""One number for the scores of an agent on several tasks.

Task t has n_t runs, one per seed, with scores x_ti. All aggregates are functionals of one distribution, the mixture
that picks a task uniformly, and then one of its runs:

    F = 1/m sum_t 1/n_t sum_i (point mass at x_ti)

so that tasks with more runs do not count more. Scores of different tasks must be on a common scale.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.types import FloatArray


def mean(scores: ArrayLike) -> FloatArray:
    """The mean of F: the mean over tasks of the mean over seeds.

        1/m sum_t 1/n_t sum_i x_ti

    Args:
      scores: `(seeds, tasks)` array, or a list with an array `(..., n_t)` for each task: see `by_task`.

    >>> float(mean([np.array([0.0, 1.0, 2.0]), np.array([3.0])]))
    2.0
    """
    runs, weights = _mixture(by_task("scores", scores))
    found: FloatArray = (runs * weights).sum(axis=-1) / weights.sum()
    return found


def iqm(scores: ArrayLike) -> FloatArray:
    """The interquartile mean [Agarwal2021]: the mean of the middle half of F.

        2 int_{1/4}^{3/4} F^{-1}(u) du

    Runs on the quartiles count fractionally. Departure: the published version is SciPy's
    `trim_mean(scores, 0.25)`, which drops floor(N/4) of N runs at each end, hence less than half of them unless 4
    divides N: none of 3, two of 11. Both agree where 4 divides N, or all runs are equal.

    Args:
      scores: `(seeds, tasks)` array, or a list with an array `(..., n_t)` for each task: see `by_task`.

    Returns:
      one number; `(...)` for arrays `(..., n_t)`.

    >>> float(iqm(np.array([0.0, 1.0, 2.0, 90.0])))
    1.5
    >>> float(iqm(np.array([0.0, 3.0, 90.0])))  # (0 / 4 + 3 + 90 / 4) / 1.5
    17.0
    """
    runs, weights = _mixture(by_task("scores", scores))
    order = np.argsort(runs, axis=-1)
    quarter, weights = 0.25 * weights.sum(), weights[order]
    end = np.cumsum(weights, axis=-1)
    inside = np.maximum(np.minimum(end, 3.0 * quarter) - np.maximum(end - weights, quarter), 0.0)
    found: FloatArray = (np.take_along_axis(runs, order, axis=-1) * inside).sum(axis=-1) / inside.sum(axis=-1)
    return found


def median(scores: ArrayLike) -> FloatArray:
    """The median of F, over all runs; its midpoint if it is an interval.

    Departure: the median of [Agarwal2021] is that over tasks of their means, which for one task is the mean.

    Args:
      scores: `(seeds, tasks)` array, or a list with an array `(..., n_t)` for each task: see `by_task`.

    >>> float(median(np.array([0.0, 1.0, 2.0, 90.0])))
    1.5
    """
    runs, weights = _mixture(by_task("scores", scores))
    order = np.argsort(runs, axis=-1)
    runs, end = np.take_along_axis(runs, order, axis=-1), np.cumsum(weights[order], axis=-1)
    half, rounding = 0.5 * weights.sum(), 1e-12 * weights.sum()  # weights are at least 1
    low = np.argmax(end >= half - rounding, axis=-1)[..., None]
    high = np.argmax(end > half + rounding, axis=-1)[..., None]
    both = np.take_along_axis(runs, low, axis=-1) + np.take_along_axis(runs, high, axis=-1)
    found: FloatArray = 0.5 * both[..., 0]
    return found


def optimality_gap(scores: ArrayLike, *, target: float = 1.0) -> FloatArray:
    """The mean shortfall of runs below a target; scores above the target do not compensate for it.

        1/m sum_t 1/n_t sum_i (target - x_ti)^+

    Args:
      scores: `(seeds, tasks)` array, or a list with an array `(..., n_t)` for each task: see `by_task`.
      target: the target score.

    >>> float(optimality_gap(np.array([0.5, 1.0, 7.0, 0.5])))
    0.25
    """
    runs, weights = _mixture(by_task("scores", scores))
    below = np.maximum(checks.finite_number("target", target) - runs, 0.0)
    found: FloatArray = (below * weights).sum(axis=-1) / weights.sum()
    return found


def by_task(name: str, scores: ArrayLike) -> tuple[FloatArray, ...]:
    """Scores as one array per task, with seeds on the last axis.

    Args:
      name: name of the argument, for messages.
      scores: an array `(seeds, tasks)`, or `(seeds,)` for one task; or a list with an array `(n_t,)` for each task,
        whose lengths may differ. Arrays `(..., n_t)` of a list have the same axes in front. Lists of lists are refused:
        they could be meant either way.
    """
    if not isinstance(scores, (list, tuple)):
        array = checks.float_array(name, scores)
        if array.ndim not in (1, 2) or not array.size:
            raise ValueError(f"{name} has shape {array.shape}, expected (seeds, tasks) or (seeds,), none of them 0.")
        return tuple(np.ascontiguousarray(column) for column in array.reshape(len(array), -1).T)
    if not scores:
        raise ValueError(f"{name} is empty, expected an array of scores for each task.")
    if any(isinstance(item, (list, tuple)) for item in scores):
        raise ValueError(
            f"{name} is a list of lists, which does not say what its rows are, expected np.array({name}) if they are "
            f"seeds, or [np.array(row) for row in {name}] if they are tasks."
        )
    if all(np.ndim(item) == 0 for item in scores):
        return (checks.float_array(name, scores, ndim=1),)
    tasks = tuple(checks.float_array(f"{name}[{t}]", item) for t, item in enumerate(scores))
    for t, task in enumerate(tasks):
        if task.ndim == 0 or not task.size:
            raise ValueError(f"{name}[{t}] has shape {task.shape}, expected the scores of at least one seed.")
        if task.shape[:-1] != tasks[0].shape[:-1]:
            raise ValueError(
                f"{name}[{t}] has shape {task.shape} and {name}[0] has {tasks[0].shape}, expected arrays that differ "
                "in the last axis at most."
            )
    return tasks


def _mixture(tasks: tuple[FloatArray, ...]) -> tuple[FloatArray, FloatArray]:
    """All runs `(..., N)`, and weights `(N,)` in proportion to F: ones, hence exact sums, for equal numbers of runs."""
    counts = [task.shape[-1] for task in tasks]
    weights = np.repeat([max(counts) / n for n in counts], counts)
    return np.concatenate(tasks, axis=-1), weights
