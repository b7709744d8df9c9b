"""Factors from counts: rows as mixtures of a few common distributions, by expectation maximisation.

    maximise  sum_{k, s'} n(k, s') log sum_i u_i(k) w_i(s')        over distributions u(k) and w_i

A transition of row k draws a factor i from u(k), then a successor from w_i. With the posterior probability of factor i
given the transition, h_i(k, s') = u_i(k) w_i(s') / sum_j u_j(k) w_j(s'), one step sets

    u_i(k) = sum_s' n(k, s') h_i(k, s') / n(k),        w_i(s') ~ sum_k n(k, s') h_i(k, s').

The likelihood never falls, and no projection is needed: distributions remain distributions. It has local maxima, so
several starts are tried. The factors make an ambiguity set, `urbe.FactorSet`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks, memory
from urbe.types import FloatArray, IntArray

BLOCK = 1 << 20
"""Block size of products."""


@dataclass(frozen=True, eq=False, repr=False)
class FactorFit:
    """Coefficients and factors fitted to counts.

    Attributes:
      coefficients: `(R, r)` u, one distribution over factors for each row. Rows without counts have the mixture of all
        the data.
      factors: `(r, S)` w, one distribution over states for each factor.
      log_likelihood: of the counts after each step; it never falls.
      error: how far the mixtures are from the observed frequencies: the total-variation distance
        sum_s' |n / n(k) - u(k) w| / 2, averaged over rows by their counts.
      converged: whether a step gained less than the tolerance before the steps ran out.
    """

    coefficients: FloatArray
    factors: FloatArray
    log_likelihood: FloatArray
    error: float
    converged: bool

    def __repr__(self) -> str:
        n_rows, n_factors = self.coefficients.shape
        ended = "converged" if self.converged else "not converged"
        return (
            f"FactorFit({n_factors} factors of {n_rows} rows, error {self.error:.3g}, "
            f"{ended} after {len(self.log_likelihood)} steps)"
        )


def fit_factors(
    counts: Any,
    n_factors: int,
    *,
    rng: np.random.Generator,
    restarts: int = 4,
    max_steps: int = 2000,
    tolerance: float = 1e-7,
) -> FactorFit:
    """Fits `n_factors` common factors to counts of transitions, by expectation maximisation.

    A step costs as many operations as there are positive counts times factors.

    Args:
      counts: `(R, S)` or `(S, A, S)` how often each row led to each state, or `(R, S)` as a SciPy sparse array. They
        need not be integers: `mdp.matrix()` fits the factors of a model.
      n_factors: r, at least 1. More factors fit better; r = min(R, S) fits every row.
      rng: draws the starting points.
      restarts: number of starts; the most likely factors are kept.
      max_steps: largest number of steps per start.
      tolerance: gain of log-likelihood per count at which a start has converged.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> share, factors = rng.dirichlet([0.2, 0.2], size=40), rng.dirichlet(np.ones(6), size=2)
    >>> fit = fit_factors(rng.poisson(500 * share @ factors), 2, rng=rng)
    >>> fit.coefficients.shape, fit.factors.shape, fit.error < 0.05
    ((40, 2), (2, 6), True)
    """
    checks.generator("rng", rng)
    r = checks.whole_number("n_factors", n_factors, 1)
    tries = checks.whole_number("restarts", restarts, 1)
    steps = checks.whole_number("max_steps", max_steps, 1)
    least = checks.number("tolerance", tolerance, 0.0, np.inf)
    n = _matrix(counts)
    memory.require(
        {f"coefficients of {r} factors in {n.shape[0]} rows": 32.0 * r * n.shape[0], "factors": 24.0 * r * n.shape[1]},
        "Use fewer factors.",
    )
    fits = [_climb(n, r, rng, steps, least) for _ in range(tries)]
    return max(fits, key=lambda fit: float(fit.log_likelihood[-1]))


def _matrix(counts: Any) -> Any:
    """The counts as a CSR array of positive numbers."""
    from scipy.sparse import csr_array

    if hasattr(counts, "tocsr"):
        n = csr_array(counts.tocsr().astype(np.float64))
        n.sum_duplicates()
        checks.finite("counts.data", n.data)
        checks.non_negative("counts.data", n.data)
    else:
        dense = checks.float_array("counts", counts)
        if dense.ndim not in (2, 3):
            raise ValueError(f"counts has shape {dense.shape}, expected (rows, states) or (states, actions, states).")
        checks.non_negative("counts", dense)
        n = csr_array(dense.reshape(-1, dense.shape[-1]))
    n.eliminate_zeros()
    if not n.nnz:
        raise ValueError("counts are all zero, expected at least one transition.")
    return n


def _climb(n: Any, n_factors: int, rng: np.random.Generator, max_steps: int, tolerance: float) -> FactorFit:
    """Expectation maximisation from one random start."""
    from scipy.sparse import csr_array

    n_rows, n_states = n.shape
    row = np.repeat(np.arange(n_rows), np.diff(n.indptr))
    of_rows, total = np.asarray(n.sum(axis=1)).ravel(), float(n.data.sum())
    seen = of_rows > 0.0
    u = rng.dirichlet(np.ones(n_factors), size=n_rows)
    w = _normal((n.T @ u).T)
    history: list[float] = []
    converged = False
    while len(history) < max_steps and not converged:
        mixed = _mixed(row, n.indices, u, w)
        ratio = csr_array((n.data / mixed, n.indices, n.indptr), shape=(n_rows, n_states))
        new_u = u * (ratio @ w.T)
        new_u[seen] /= new_u[seen].sum(axis=1, keepdims=True)
        w = _normal(w * (ratio.T @ u).T)
        u = new_u
        history.append(float(n.data @ np.log(_mixed(row, n.indices, u, w))))
        converged = len(history) > 1 and history[-1] - history[-2] <= tolerance * total
    u[~seen] = of_rows @ u / total
    error = 0.5 * float(of_rows @ _distance(n, of_rows, u, w)) / total
    return FactorFit(u, w, np.array(history), error, converged)


def _normal(w: FloatArray) -> FloatArray:
    """Rows divided by their sums; a factor that explains nothing becomes uniform."""
    total = w.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, w / np.where(total > 0.0, total, 1.0), 1.0 / w.shape[1])


def _mixed(row: IntArray, column: IntArray, u: FloatArray, w: FloatArray) -> FloatArray:
    """`(E,)` sum_i u_i(k) w_i(s') of the pairs that were counted."""
    out, by_state = np.empty(len(row)), np.ascontiguousarray(w.T)
    step = max(BLOCK // u.shape[1], 1)
    for first in range(0, len(row), step):
        some = slice(first, first + step)
        np.einsum("ei,ei->e", u[row[some]], by_state[column[some]], out=out[some])
    return out


def _distance(n: Any, of_rows: FloatArray, u: FloatArray, w: FloatArray) -> FloatArray:
    """`(R,)` sum_s' |n / n(k) - u(k) w|, zero for rows without counts.

    If a pair has no counts, the difference is u(k) w itself, without its mass on the counted successors.
    """
    row = np.repeat(np.arange(n.shape[0]), np.diff(n.indptr))
    mixed = _mixed(row, n.indices, u, w)
    apart = np.abs(n.data / of_rows[row] - mixed) - mixed
    found = np.bincount(row, apart, minlength=n.shape[0])
    return np.where(of_rows > 0.0, 1.0 + found, 0.0)
