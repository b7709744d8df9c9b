"""Compute radii of balls around a posterior's mean, one per row, for `L1Ball` and `Chi2Ball`.

    credible:   P(distance(p, centre) <= radius | data) >= confidence
    union:      the same for all rows at once, each row failing with at most delta / R, delta = 1 - confidence

With the union the robust value of every policy is, with the given confidence, a lower bound on its true value. Without
it, the confidence holds for each row separately. A row with one feasible successor is known and has radius 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.posteriors.sampling import dirichlet_draws
from urbe.posteriors.shared_draws import SharedDraws
from urbe.progress import Report, silent
from urbe.types import FloatArray, IntArray

CHUNK = 1 << 22
"""Numbers drawn at a time; a radius needs memory for these and for one number per draw of some rows."""

MANY = 500_000_000
"""With more numbers, rows share random numbers if only extremes are needed: ten times as fast."""

EXTREME = 64
"""A quantile within this distance from the end counts as an extreme."""

Distance = Callable[[FloatArray, FloatArray], FloatArray]
"""Terms `(M, E)` of the distances of draws from a centre `(E,)`; a row's distance is their sum."""


def credible_l1(
    posterior: Posterior,
    confidence: float,
    rng: np.random.Generator,
    *,
    draws: int = 1000,
    union: bool = True,
    report: Report = silent,
) -> FloatArray:
    """Computes L1 radii around the posterior mean from posterior draws, the sets BCI of [Petrik2019].

        radius(s, a) = the ceil(M level)-th smallest of ||p_m - mean||_1,  m = 1, ..., M

    Args:
      confidence: in (0, 1).
      draws: M, at least 1 / (1 - level): the quantile must have draws beyond it. With more than 5e8 numbers in all,
        rows share random numbers (`urbe.posteriors.shared_draws`), which does not bias the radius of any row.
      union: whether all rows hold simultaneously with `confidence` (level = 1 - delta / R), or each one (1 - delta).
      report: receives the progress.

    Returns:
      `(R,)` in [0, 2].

    >>> import urbe
    >>> posterior = Posterior.before(urbe.library.riverswim(6)).with_counts(np.full(22, 50.0))
    >>> radius = credible_l1(posterior, 0.95, np.random.default_rng(0))
    >>> radius[:4].round(2)
    array([0.  , 0.28, 0.  , 0.23])
    >>> solution = urbe.solve(posterior.mean(), urbe.L1Ball(radius))
    """
    return np.minimum(_quantiles(posterior, confidence, rng, draws, union, _l1_terms, report), 2.0)


def credible_chi_square(
    posterior: Posterior, confidence: float, rng: np.random.Generator, *, draws: int = 1000, union: bool = True
) -> FloatArray:
    """`(R,)` chi-square radii around the posterior mean from posterior draws; see `credible_l1` for the arguments.

    The distance is that of `Chi2Ball`: sum_j (p_j - mean_j)^2 / mean_j.
    """
    return _quantiles(posterior, confidence, rng, draws, union, _chi_square_terms)


def chi_square(posterior: Posterior, confidence: float, *, union: bool = True) -> FloatArray:
    """`(R,)` chi-square radii without draws: the level quantile of chi-square with K - 1 degrees of freedom, over N.

    N sum_j (p_j - mean_j)^2 / mean_j converges to this distribution as all concentrations grow; with concentrations
    below about 5, draws are more accurate (`credible_chi_square`).
    """
    from scipy.stats import chi2

    delta = failure(posterior, confidence, union)
    freedom = posterior.feasible - 1.0
    quantile = chi2.isf(delta, np.maximum(freedom, 1.0))
    return np.where(freedom > 0.0, quantile / posterior.total, 0.0)


def weissman(posterior: Posterior, confidence: float, *, union: bool = True, around_mean: bool = False) -> FloatArray:
    """Computes L1 radii that hold for any true rows, without a prior [Weissman2003].

        radius(s, a) = sqrt(2 / n log((2^K - 2) / delta)),   n = transitions seen, K = feasible successors

    The bound is around the observed frequencies. The prior shifts the posterior mean away from them; `around_mean` adds
    this distance, so that the ball around `posterior.mean()` has the guarantee. Forgetting invalidates it.

    Args:
      confidence: in (0, 1).
      union: whether all rows hold simultaneously (delta / R each), or each one.
      around_mean: add the distance between frequencies and posterior mean.

    Returns:
      `(R,)` in [0, 2]; 2, which allows everything, for rows without data.
    """
    delta = failure(posterior, confidence, union)
    k, n = posterior.feasible, np.maximum(posterior.seen, 0.0)
    uncertain, seen = k > 1.0, n > 0.0
    choices = k * math.log(2.0) + np.log1p(-(2.0 ** (1.0 - np.where(uncertain, k, 2.0))))  # log(2^K - 2)
    radius = np.sqrt(2.0 / np.where(seen, n, 1.0) * (choices - math.log(delta)))
    if around_mean:
        rows = posterior.model.rows
        share = (posterior.concentration - posterior.prior) / np.where(seen, n, 1.0)[rows.entry_row]
        radius += rows.row_sums(np.abs(posterior.probability - share))
    return np.where(uncertain, np.where(seen, np.minimum(radius, 2.0), 2.0), 0.0)


def drift(posterior: Posterior, per_episode: ArrayLike, memory: float, credible: ArrayLike = 0.0) -> FloatArray:
    """Computes L1 radii for changing dynamics: the possible drift since the data, plus the uncertainty of the data.

        radius(s, a) = min(2, per_episode memory + credible)

    A row that moves by at most `per_episode` in the L1 norm each episode is within `per_episode` times the average age
    of the data of the mean they were drawn from.

    Args:
      per_episode: drift of a row in one episode, a number, `(R,)` or `(S, A)`, at least 0.
      memory: average age of the data, in episodes; 1 / (1 - forget) and the window are upper bounds.
      credible: radius of the uncertainty of the data, such as `credible_l1`.

    Returns:
      `(R,)` in [0, 2]; 0 where only one successor is feasible.
    """
    model = posterior.model
    budget, credible = model.per_row("per_episode", per_episode), model.per_row("credible", credible)
    checks.row_range("per_episode", budget, 0.0, np.inf, model.row_name)
    checks.row_range("credible", credible, 0.0, np.inf, model.row_name)
    radius = np.minimum(budget * checks.number("memory", memory, 0.0, np.inf, closed=False) + credible, 2.0)
    return np.where(posterior.feasible > 1.0, radius, 0.0)


def _l1_terms(p: FloatArray, centre: FloatArray) -> FloatArray:
    """|p_j - centre_j|."""
    return np.abs(p - centre)


def _chi_square_terms(p: FloatArray, centre: FloatArray) -> FloatArray:
    """(p_j - centre_j)^2 / centre_j, 0 if neither has mass."""
    terms: FloatArray = (p - centre) ** 2 / np.where(centre > 0.0, centre, 1.0)
    return terms


def failure(posterior: Posterior, confidence: float, union: bool) -> float:
    """Returns the failure probability of one row."""
    check_posterior("posterior", posterior)
    level = checks.number("confidence", confidence, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence is {confidence}, expected a number above 0 and below 1.")
    return (1.0 - level) / (max(posterior.model.n_rows, 1) if union else 1)


def quantile_index(draws: int, delta: float) -> int:
    """ceil(M (1 - delta)) - 1, the 0-based index of the quantile among M sorted numbers; raises if M is too small."""
    checks.whole_number("draws", draws, 1)
    if draws * delta < 1.0 - 1e-9:  # 1 - confidence is rounded
        raise ValueError(
            f"draws is {draws}, too few for a quantile of level 1 - {delta:.3g}: expected at least "
            f"{math.ceil(1.0 / delta - 1e-6)}. Ask for more draws, a lower confidence, or union=False for single rows."
        )
    return max(math.ceil(draws * (1.0 - delta)), 1) - 1


def _row_blocks(entry_start: IntArray, draws: int) -> Iterator[tuple[int, int]]:
    """Yields first and last row of blocks whose draws fit into `CHUNK` numbers, or of single rows."""
    first, n_rows = 0, len(entry_start) - 1
    while first < n_rows:
        most = int(entry_start[first]) + max(CHUNK // draws, 1)
        last = max(int(np.searchsorted(entry_start, most, side="right")) - 1, first + 1)
        yield first, last
        first = last


def _quantiles(
    posterior: Posterior,
    confidence: float,
    rng: np.random.Generator,
    draws: int,
    union: bool,
    terms: Distance,
    report: Report = silent,
) -> FloatArray:
    """`(R,)` the level quantile of the distances of draws from the mean."""
    checks.generator("rng", rng)
    index = quantile_index(draws, failure(posterior, confidence, union))
    if terms is _l1_terms and draws * posterior.model.rows.n_entries > MANY and draws - index <= EXTREME:
        return SharedDraws(posterior, rng, draws, report).farthest(draws - index)[:, -1]
    radius = np.empty(posterior.model.n_rows)
    for first, last in _row_blocks(posterior.model.rows.entry_start, draws):
        far = _distances(posterior, first, last, rng, draws, terms)
        radius[first:last] = np.partition(far, index, axis=0)[index]
        report("radii of rows", last, len(radius))
    return radius


def _distances(
    posterior: Posterior, first: int, last: int, rng: np.random.Generator, draws: int, terms: Distance
) -> FloatArray:
    """`(M, last - first)` distances of draws of some rows from their mean."""
    start = posterior.model.rows.entry_start[first : last + 1].astype(np.int64)
    inside = slice(int(start[0]), int(start[-1]))
    start -= start[0]
    alpha, mean = posterior.concentration[inside], posterior.probability[inside]
    out = np.empty((draws, last - first))
    step = max(CHUNK // len(alpha), 1)
    for at in range(0, draws, step):
        p = dirichlet_draws(rng, alpha, start, min(step, draws - at))
        out[at : at + step] = np.add.reduceat(terms(p, mean), start[:-1], axis=1)
    return out
