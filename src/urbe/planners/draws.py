"""How many posterior draws a quantile needs, and which of them it is.

Let x_(1) <= .. <= x_(M) be a quantity under M draws and x its true value, a draw like them. Then

    P(x < x_(k)) <= k / (M + 1),

so x is at least the k-th lowest with probability 1 - level or more while k <= level (M + 1). A union over R uncertain
rows asks for level delta / R in each, hence for M of about R / delta draws at least.
"""

from __future__ import annotations

import math

import numpy as np

from urbe import checks, memory
from urbe.posteriors.dirichlet import Posterior
from urbe.types import FloatArray

ROUNDING = 1e-9
"""delta / R (M + 1) is whole up to this."""

FEWEST = 1000
"""Draws by default, unless more are needed."""


def uncertain_rows(posterior: Posterior) -> int:
    """Rows with more than one feasible successor; the others are known."""
    return int(np.count_nonzero(posterior.feasible > 1.0))


def number_of_draws(draws: int | None, n_rows: int, delta: float, rank: int = 1) -> int:
    """`draws` if the quantile is at least their `rank`-th lowest; the usual number when None.

    Raises:
      ValueError: there are fewer than rank R / delta; the message names the number needed.
    """
    needed = math.ceil(rank * max(n_rows, 1) / delta - ROUNDING)
    if draws is None:
        return max(FEWEST, needed)
    given = checks.whole_number("draws", draws, 1)
    if given < needed:
        raise ValueError(
            f"draws is {given}, expected at least {needed}: a failure probability of {delta:.4g} shared by {n_rows} "
            f"uncertain rows asks for a quantile of level {delta / max(n_rows, 1):.2g}, beyond what {given} draws can "
            "tell. Use more draws, or a lower confidence."
        )
    return given


def quantile_rank(n_rows: int, delta: float, draws: int) -> int:
    """The largest k with k / (M + 1) <= delta / R."""
    return int(delta / max(n_rows, 1) * (draws + 1) + ROUNDING)


def drawn_rows(posterior: Posterior, rng: np.random.Generator, draws: int) -> FloatArray:
    """`(E, M)` drawn probabilities, one column per draw.

    Raises:
      NotEnoughMemory: they, and the copy by which a set is bound to them, do not fit.
    """
    rows = posterior.model.rows
    n_numbers = draws * (rows.n_entries + rows.n_rows)
    memory.require(
        {f"{draws} draws of {rows.n_rows} rows with {rows.n_entries} successors": 2.0 * 8.0 * n_numbers},
        "Use fewer draws (draws=..., or a lower confidence, which needs fewer), or a method without draws such as "
        "HoeffdingSets().",
    )
    return np.ascontiguousarray(posterior.draws(rng, draws).T)
