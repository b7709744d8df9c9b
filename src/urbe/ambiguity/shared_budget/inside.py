"""Keeps nature's answers within the budgets of their states, whatever rounding did to them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.sweep import fingerprint, when_called


@when_called
def make_inside(distance: Distance) -> Callable[..., None]:
    """Mixes the rows of each state that spends more than its budget with the model's own, all in the same share.

    Distances are convex and zero at the model's rows: a share 1 - budget / spent of these keeps the budget.
    """
    apart = distance.apart
    text = fingerprint(apart)

    @njit(cache=True, nogil=True)
    @distance.naming
    def inside(row_start, start, p, budget, q, sent):
        text  # noqa: B018  part of the cache key
        for s in range(len(row_start) - 1):
            spent = 0.0
            for row in range(row_start[s], row_start[s + 1]):
                a, b = np.int64(start[row]), np.int64(start[row + 1])
                spent += apart(q[a:b], p[a:b], sent[row])
            if spent > budget[s]:
                back = 1.0 - budget[s] / spent
                for row in range(row_start[s], row_start[s + 1]):
                    sent[row] *= 1.0 - back
                    for j in range(np.int64(start[row]), np.int64(start[row + 1])):
                        q[j] += back * (p[j] - q[j])

    return inside
