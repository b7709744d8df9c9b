"""Posteriors after data: the same number of transitions from every pair of a model."""

import numpy as np

from urbe.posteriors import Posterior


def after(truth, n, rng, concentration=1.0):
    """The posterior after `n` transitions of each pair of `truth`; feasible are the successors it lists."""
    counts = np.zeros(truth.rows.n_entries)
    for first, last in zip(truth.rows.entry_start[:-1], truth.rows.entry_start[1:], strict=True):
        p = truth.rows.probability[first:last]
        counts[first:last] = rng.multinomial(n, p / p.sum())
    return Posterior.before(truth, concentration).with_counts(counts)
