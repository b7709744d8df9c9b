"""Draws of many Dirichlet rows at once, for concentrations of any size.

    p_j = G_j / sum_k G_k,    G_j ~ Gamma(alpha_j) independent

Where alpha_j is small, G_j underflows; there log G(alpha) = log G(alpha + 1) - X / alpha, X ~ Exponential(1), is drawn
and rows are normalised in logarithms. As all concentrations of a row vanish, its draws become vertices.
"""

from __future__ import annotations

import numpy as np

from urbe import memory
from urbe.types import FloatArray, IntArray

SMALL = 0.1
"""Concentrations below which gamma draws may underflow."""

LEAST = 1e-290
"""Positive concentrations below this are drawn as if they were this: their logarithms would overflow."""


def dirichlet_draws(
    rng: np.random.Generator, concentration: FloatArray, entry_start: IntArray, size: int
) -> FloatArray:
    """`(size, E)` probabilities; a successor of concentration 0 never receives any.

    Args:
      concentration: `(E,)`, at least 0, positive somewhere in each row.
      entry_start: `(R + 1,)` first entry of each row.
      size: number of draws.
    """
    if len(entry_start) < 2:
        return np.zeros((size, 0))
    n_numbers = size * len(concentration)
    small = concentration < SMALL
    arrays = max(2.0, 1.0 + 3.0 * small.mean())  # the draws and what normalises them; three more for small ones
    memory.require(
        {f"{size} draws of {len(concentration)} probabilities": arrays * 8.0 * n_numbers},
        "Use fewer draws, or a model with fewer successors.",
    )
    first, length = entry_start[:-1], np.diff(entry_start)
    gamma = rng.standard_gamma(np.where(small, concentration + 1.0, concentration), (size, len(concentration)))
    if small.any():
        log = np.log(gamma, out=gamma)
        chosen = concentration[small]
        log[:, small] -= rng.standard_exponential((size, len(chosen))) / np.maximum(chosen, LEAST)
        log[:, concentration == 0.0] = -np.inf
        largest = np.maximum.reduceat(log, first, axis=1)
        log -= np.repeat(largest, length, axis=1)
        gamma = np.exp(log, out=log)
    gamma /= np.repeat(np.add.reduceat(gamma, first, axis=1), length, axis=1)
    return gamma
