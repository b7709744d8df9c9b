"""Credible L1 balls with optimised centres, smaller than those around the posterior mean.

For one row with draws p_1, ..., p_M and index n = ceil(M level), alternate [Petrik2019]

    1. N = the n draws nearest to the centre            radius = max_{m in N} ||p_m - centre||_1
    2. centre = argmin_c max_{m in N} ||p_m - c||_1     a linear program

Neither step can increase the radius. Few draws determine the program: farthest ones are added until none is farther.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.radius import failure, quantile_index
from urbe.posteriors.sampling import dirichlet_draws
from urbe.progress import Report, silent
from urbe.types import FloatArray

TOLERANCE = 1e-7
"""Tolerance of the linear programs, and the smallest gain in radius that continues the rounds."""


class CentredBalls(NamedTuple):
    """L1 balls: `urbe.solve(posterior.model_with(centre), urbe.L1Ball(radius))`.

    Attributes:
      centre: `(E,)` probabilities.
      radius: `(R,)` in [0, 2].
    """

    centre: FloatArray
    radius: FloatArray


def credible_l1_centred(
    posterior: Posterior,
    confidence: float,
    rng: np.random.Generator,
    *,
    draws: int = 1000,
    union: bool = True,
    rounds: int = 10,
    report: Report = silent,
) -> CentredBalls:
    """Computes credible L1 balls around centres that make them small.

    A radius measured on the draws that determined the centre would be too small, so it is measured on as many fresh
    draws; if the mean does better on those, the mean remains the centre.

    Args:
      confidence, draws, union: as in `credible_l1`.
      rounds: largest number of improvements of each centre; each costs a few linear programs. Rows are processed one
        at a time, with memory for the draws of one row.
      report: receives the progress.

    >>> import urbe
    >>> posterior = Posterior.before(urbe.library.riverswim(6), 0.5).with_counts(np.arange(22.0) % 3)
    >>> balls = credible_l1_centred(posterior, 0.9, np.random.default_rng(0), union=False)
    >>> balls.radius[:4].round(2)
    array([0.  , 0.69, 0.  , 0.75])
    """
    index = quantile_index(draws, failure(posterior, confidence, union))
    checks.whole_number("rounds", rounds, 0)
    rows = posterior.model.rows
    centre, radius = posterior.probability.copy(), np.zeros(rows.n_rows)
    for row in np.flatnonzero(posterior.feasible > 1.0):
        report("radii of rows", int(row), rows.n_rows)
        inside = slice(int(rows.entry_start[row]), int(rows.entry_start[row + 1]))
        alpha, mean = posterior.concentration[inside], posterior.probability[inside]
        one_row = np.array([0, len(alpha)])
        chosen, _ = improve(dirichlet_draws(rng, alpha, one_row, draws), mean, index, rounds)
        fresh = dirichlet_draws(rng, alpha, one_row, draws)
        sizes = [float(np.partition(np.abs(fresh - c).sum(axis=1), index)[index]) for c in (chosen, mean)]
        radius[row] = min(*sizes, 2.0)
        if sizes[0] < sizes[1]:
            centre[inside] = chosen
    return CentredBalls(centre, radius)


def improve(p: FloatArray, centre: FloatArray, index: int, rounds: int) -> tuple[FloatArray, list[float]]:
    """The best centre found for draws `p`, `(M, K)`, and the radius at the start and after each round."""
    far = np.abs(p - centre).sum(axis=1)
    nearest = np.argpartition(far, index)[: index + 1]
    radii = [float(far[nearest].max())]
    for _ in range(rounds):
        candidate = middle(p[nearest], centre)
        far = np.abs(p - candidate).sum(axis=1)
        chosen = np.argpartition(far, index)[: index + 1]
        radius = float(far[chosen].max())
        if radius > radii[-1] - TOLERANCE:
            break
        centre, nearest = candidate, chosen
        radii.append(radius)
    return centre, radii


def middle(p: FloatArray, start: FloatArray) -> FloatArray:
    """argmin over the simplex of max_m ||p_m - c||_1, up to the tolerance of linear programs."""
    k = p.shape[1]
    centre, active = start, np.zeros(0, dtype=np.int64)
    while True:
        far = np.abs(p - centre).sum(axis=1)
        bound = far[active].max(initial=0.0)
        new = np.argsort(-far, kind="stable")[: k + 1]
        new = np.setdiff1d(new[far[new] > bound + TOLERANCE], active)
        if not len(new):
            return centre
        active = np.append(active, new)
        centre = _program(p[active])


def _program(p: FloatArray) -> FloatArray:
    """min r over (c, r, d) with |p_m - c| <= d_m, sum_j d_mj <= r, c in the simplex."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array, eye_array, kron

    m, k = p.shape
    size = m * k
    same = kron(np.ones((m, 1)), eye_array(k))
    total = kron(eye_array(m), np.ones((1, k)))
    at_most = block_array(
        [
            [same, csr_array((size, 1)), -eye_array(size)],
            [-same, csr_array((size, 1)), -eye_array(size)],
            [csr_array((m, k)), csr_array(-np.ones((m, 1))), total],
        ]
    )
    limit = np.concatenate([p.ravel(), -p.ravel(), np.zeros(m)])
    cost = np.zeros(k + 1 + size)
    cost[k] = 1.0
    simplex = csr_array(np.where(np.arange(len(cost)) < k, 1.0, 0.0)[None])
    answer = linprog(cost, A_ub=at_most, b_ub=limit, A_eq=simplex, b_eq=[1.0], method="highs")
    if answer.x is None:
        raise RuntimeError(f"HiGHS did not solve the linear program of a centre: {answer.message}")
    c = np.maximum(answer.x[:k], 0.0)
    centre: FloatArray = c / c.sum()
    return centre
