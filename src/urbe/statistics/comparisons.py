"""Compare several agents over common seeds, adjusted for the number of comparisons.

Each of K comparisons at 95 % errs in one of twenty repetitions; some of the K err up to K times as often. Two results
hold for all K jointly: Holm's p-values, and intervals whose common factor is a quantile of the bootstrap's largest t.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from urbe import checks
from urbe.statistics.bootstrap import RESAMPLES, resample_shares, seeds_of
from urbe.statistics.estimates import ConfidenceInterval
from urbe.types import FloatArray


class Comparison(NamedTuple):
    """The mean of first - second over common seeds."""

    first: str
    second: str
    alone: ConfidenceInterval
    """Student's: right for one comparison that was chosen beforehand."""

    simultaneous: ConfidenceInterval
    """Covers, jointly with the intervals of all other comparisons, in a share `confidence` of repetitions."""

    p: float
    """Two-sided p-value of no difference, for one comparison."""

    p_holm: float
    """Adjusted p-value: rejecting all with at most q makes any error with probability at most q."""


def paired_comparisons(
    scores: Mapping[str, ArrayLike],
    rng: np.random.Generator,
    *,
    against: str | None = None,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> tuple[Comparison, ...]:
    """Differences between agents that ran with the same seeds, adjusted for the number of comparisons.

    With d_ti the difference of run i on task t, s_t^2 its variance over the n_t seeds (n_t - 1),

        D = 1/m sum_t mean_i d_ti,   SE^2 = 1/m^2 sum_t v_t,   v_t = s_t^2 / n_t
        alone:         D -+ t SE,   t Student's quantile of (sum_t v_t)^2 / sum_t (v_t^2 / (n_t - 1)) degrees (Welch)
        simultaneous:  D_k -+ c SE_k,   c the `confidence` quantile of max_k |D*_k - D_k| / SE*_k [RomanoWolf2005]

    over resamples of seeds within each task, the same ones for all agents: common noise of pairs
    cancels, and their dependence is kept. For one task, `alone` is `statistics.paired_difference`.

    Departure: c is clipped to the range between t and its Bonferroni value at level 1 - (1 - confidence) / K, which
    contains it for normal differences. With few seeds, or many ties, resamples without spread would make it infinite.
    Hence for one comparison both intervals agree. Comparisons whose differences are all equal are left out.

    Six comparisons of four agents that do not differ (15 normal seeds, 2 tasks, 95 %) are all covered 96 % of the
    time; by the intervals `alone`, 80 %.

    Args:
      scores: for each agent a `(seeds, tasks)` array, or a list with an array `(n_t,)` for each task; n_t >= 2. Run i
        on task t had the same seed for all agents.
      rng: generator; the same one gives the same bits.
      against: compare all others with this agent; without it, all pairs are compared.
      resamples: how many to draw; `urbe.statistics.bootstrap` says what error they leave.
      confidence: in (0, 1).

    Returns:
      one comparison for each pair, in the order of the agents.

    >>> draw = np.random.default_rng(0)
    >>> shared = draw.normal(size=20)
    >>> gains = {"dqn": 0.0, "ube": 0.0, "urbe": 1.0}
    >>> scores = {name: shared + draw.normal(gain, 0.1, size=20) for name, gain in gains.items()}
    >>> for found in paired_comparisons(scores, np.random.default_rng(1), against="dqn"):
    ...     print(found.first, "- %.2f [%.2f, %.2f]" % found.simultaneous, found.p_holm < 0.05)
    ube - 0.03 [-0.05, 0.11] False
    urbe - 1.02 [0.94, 1.10] True
    """
    agents = _same_seeds(scores)
    pairs = _pairs(tuple(agents), against)
    count = checks.whole_number("resamples", resamples, 1)
    level = checks.confidence(confidence)
    found = _differences(agents, pairs)
    spread = found.error > 0.0
    t = special.stdtrit(found.degrees, 0.5 + 0.5 * level)
    bonferroni = special.stdtrit(found.degrees, 1.0 - 0.5 * (1.0 - level) / max(1, int(spread.sum())))
    c = np.clip(_largest_t([d[:, spread] for d in found.per_task], rng, count, level), t, bonferroni)
    ratio = np.where(found.mean == 0.0, 0.0, np.inf)  # without spread: equal, or certainly different
    np.divide(np.abs(found.mean), found.error, out=ratio, where=spread)
    p = 2.0 * special.stdtr(found.degrees, -ratio)
    return tuple(
        Comparison(first, second, _around(mean, alone), _around(mean, together), float(p_value), float(adjusted))
        for (first, second), mean, alone, together, p_value, adjusted in zip(
            pairs, found.mean, t * found.error, c * found.error, p, holm(p), strict=True
        )
    )


def holm(p_values: ArrayLike) -> FloatArray:
    """Adjusts p-values for their number [Holm1979].

        p~_(j) = max_{i <= j} min(1, (K - i + 1) p_(i)),   p_(1) <= ... <= p_(K)

    Rejecting where p~ <= q rejects any true hypothesis with probability q at most, however the p-values depend on one
    another. Never less than p, never more than Bonferroni's K p.

    Args:
      p_values: `(K,)`, within [0, 1].

    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = checks.float_array("p_values", p_values, ndim=1)
    outside = np.flatnonzero((p < 0.0) | (p > 1.0))
    if len(outside):
        raise ValueError(f"p_values[{outside[0]}] is {p[outside[0]]:g}, expected a number in [0, 1].")
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def probability_of_improvement(
    first: ArrayLike,
    second: ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """The probability that a run of `first` beats one of `second`, averaged over tasks, with a bootstrap interval.

        1/m sum_t P(X_t > Y_t) + P(X_t = Y_t) / 2,   X_t from the first, Y_t from the second, independent

    The interval is a stratified percentile bootstrap. Seeds are not paired. It measures how often, not by how much. If
    all runs of one are above all of the other, so are all resamples, and the interval has width 0.

    Args:
      first: `(seeds, tasks)` array, or a list with an array `(n_t,)` for each task; n_t >= 2.
      second: likewise for the same tasks; numbers of seeds may differ.
      rng: generator; the same one gives the same bits.
      resamples: how many to draw; `urbe.statistics.bootstrap` says what error they leave.
      confidence: in (0, 1).

    >>> print("%.3f [%.3f, %.3f]" % probability_of_improvement([1, 2, 3, 4], [0, 1, 2], np.random.default_rng(0)))
    0.833 [0.500, 1.000]
    """
    x, y = seeds_of("first", first), seeds_of("second", second)
    if len(x) != len(y):
        raise ValueError(f"first has {len(x)} tasks and second has {len(y)}, expected the same tasks.")
    count = checks.whole_number("resamples", resamples, 1)
    tail = 0.5 - 0.5 * checks.confidence(confidence)
    estimate, drawn = 0.0, np.zeros(count)
    for a, b in zip(x, y, strict=True):
        beats = 0.5 + 0.5 * np.sign(a[:, None] - b)
        estimate += beats.mean() / len(x)
        width, begin = max(len(a), len(b)), 0
        blocks = zip(*(resample_shares(len(runs), rng, count, width) for runs in (a, b)), strict=True)
        for share_a, share_b in blocks:
            drawn[begin : begin + len(share_a)] += np.einsum("ri,ri->r", share_a @ beats, share_b) / len(x)
            begin += len(share_a)
    low, high = np.quantile(drawn, (tail, 1.0 - tail))
    return ConfidenceInterval(float(estimate), float(low), float(high))


class _Differences(NamedTuple):
    """The scores of K pairs of agents on m tasks."""

    per_task: list[FloatArray]  # m times (n_t, K)
    mean: FloatArray  # (K,)
    error: FloatArray  # (K,) standard errors; 0 where differences are all equal
    degrees: FloatArray  # (K,) of freedom


def _differences(agents: dict[str, tuple[FloatArray, ...]], pairs: list[tuple[str, str]]) -> _Differences:
    m = len(agents[pairs[0][0]])
    per_task = [np.stack([agents[a][t] - agents[b][t] for a, b in pairs], axis=1) for t in range(m)]
    largest = {name: max(np.abs(runs).max() for runs in tasks) for name, tasks in agents.items()}
    rounding = 1e-14 * np.array([max(largest[a], largest[b]) for a, b in pairs])
    v = np.array([d.var(axis=0, ddof=1) / len(d) for d in per_task])  # (m, K)
    v[v <= rounding**2] = 0.0
    total = v.sum(axis=0)
    below = np.sum([part**2 / (len(d) - 1.0) for part, d in zip(v, per_task, strict=True)], axis=0)
    degrees = np.divide(total**2, below, out=np.ones(len(pairs)), where=total > 0.0)
    mean = np.sum([d.mean(axis=0) for d in per_task], axis=0) / m
    return _Differences(per_task, mean, np.sqrt(total) / m, degrees)


def _largest_t(per_task: list[FloatArray], rng: np.random.Generator, count: int, level: float) -> float:
    """The `level` quantile over resamples of max_k |D*_k - D_k| / SE*_k."""
    shape = (count, per_task[0].shape[1])
    if not shape[1]:
        return 0.0
    off, variance = np.zeros(shape), np.zeros(shape)  # both times m
    for d in per_task:
        n, begin = len(d), 0
        centred = d - d.mean(axis=0)
        for shares in resample_shares(n, rng, count, shape[1]):
            mean, square = shares @ centred, shares @ centred**2
            part = square - mean**2
            part[part <= 1e-12 * square] = 0.0  # resamples of one number, up to rounding
            rows = slice(begin, begin + len(shares))
            off[rows] += mean
            variance[rows] += part / (n - 1)
            begin += len(shares)
    ratio = np.where(off == 0.0, 0.0, np.inf)
    np.divide(np.abs(off), np.sqrt(variance), out=ratio, where=variance > 0.0)
    return float(np.quantile(ratio.max(axis=1), level, method="higher"))


def _around(mean: float, half: float) -> ConfidenceInterval:
    return ConfidenceInterval(float(mean), float(mean - half), float(mean + half))


def _same_seeds(scores: Mapping[str, ArrayLike]) -> dict[str, tuple[FloatArray, ...]]:
    if len(scores) < 2:
        raise ValueError(f"scores has {len(scores)} agents, expected at least 2 to compare.")
    agents = {name: seeds_of(f"scores[{name!r}]", value) for name, value in scores.items()}
    base, expected = next(iter(agents.items()))
    for name, tasks in agents.items():
        if len(tasks) != len(expected):
            raise ValueError(
                f"scores[{name!r}] has {len(tasks)} tasks and scores[{base!r}] has {len(expected)}, expected the same."
            )
        for t, (runs, others) in enumerate(zip(tasks, expected, strict=True)):
            if len(runs) != len(others):
                raise ValueError(
                    f"scores[{name!r}] has {len(runs)} seeds for task {t} and scores[{base!r}] has {len(others)}, "
                    "expected pairs; keep the seeds that both have, in one order."
                )
    return agents


def _pairs(names: tuple[str, ...], against: str | None) -> list[tuple[str, str]]:
    if against is None:
        return list(combinations(names, 2))
    checks.one_of("against", against, names)
    return [(name, against) for name in names if name != against]
