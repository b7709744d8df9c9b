"""How the value of a policy moves with the centres of the rows it takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.shared_budget.gather import gather
from urbe.ambiguity.sweep import fingerprint, when_called


@when_called
def make_sensitivity(distance: Distance) -> Callable[..., None]:
    """A loop that fills m of all rows from the price of each state's budget."""
    prepare, penalty, point, sensitivity = distance.prepare, distance.penalty, distance.point, distance.sensitivity
    text = fingerprint(sensitivity) ^ fingerprint(gather)

    @njit(cache=True, nogil=True)
    @distance.naming
    def loop(problem, pi, price, scratch, q, m):
        text  # noqa: B018  part of the cache key
        row_start, start, p = problem.row_start, problem.start, problem.p
        masses, values, _, _, mean, _, work, _ = scratch
        for s in range(len(row_start) - 1):
            for row in range(np.int64(row_start[s]), np.int64(row_start[s + 1])):
                a, b = np.int64(start[row]), np.int64(start[row + 1])
                n, of_row = b - a, price[s] / pi[row]
                row_p, row_m = p[a:b], m[a:b]
                if of_row == 0.0:  # nature reaches the lowest successors, wherever the centre is
                    row_m[:] = 0.0
                    continue
                gather(row, row + 1, problem, scratch)
                if of_row == np.inf:  # nature stays where it is
                    row_m[:] = values[:n]
                    continue
                prepare(masses[:n], values[:n])
                _, _, _, x, _ = penalty(masses[:n], values[:n], mean[0], of_row, np.nan, work[:, :n])
                gather(row, row + 1, problem, scratch)
                q[:n] = row_p
                point(row_p, values[:n], x, work[:, :n], q[:n])
                sensitivity(row_p, values[:n], q[:n], of_row, row_m)

    return loop
