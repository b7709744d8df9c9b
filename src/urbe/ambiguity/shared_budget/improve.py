"""Improve the policy of a state whose actions share nature's budget, and compute nature's half of the saddle point.

With z the values of successors and xi_a(u) the distance that lowers action a to the level u,

    V = max_pi min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  =  min {u : sum_a xi_a(u) <= kappa}   [Wiesemann2013]

xi is convex: Newton's method from u, with slopes beta_a = -xi_a'(u), leads to

    new = u + (sum_a xi_a(u) - kappa) / sum_a beta_a   =   (sum_a beta_a h_a(1 / beta_a) - kappa) / sum_a beta_a,

which is the dual value of the policy pi_a = beta_a / sum beta for any slopes: new <= worst case of pi <= V. Every u
with sum_a xi_a(u) <= kappa bounds V from above. The search ends when both bounds agree; the policy then attains the
value even at kinks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.shared_budget.gather import gather
from urbe.ambiguity.sweep import fingerprint, when_called

MOST_TRIALS = 500
"""Maximum steps of a search, far more than needed: bisection takes 60."""


@when_called
def make_improve(distance: Distance) -> Callable[..., None]:
    """Makes the loop that writes `value`, upper bounds `upper`, `q` and the policy `weights`."""
    prepare, level, negligible = distance.prepare, distance.level, distance.negligible
    text = fingerprint(level) ^ fingerprint(gather)

    @register_jitable
    @distance.naming
    def at_level(u, count, hint, scratch):
        """sum_a xi_a(u) and sum_a beta_a; the slopes of each action in `slope`."""
        masses, values, at, low, mean, slope, work, _ = scratch
        spent, steep = 0.0, 0.0
        for k in range(count):
            slope[k] = 0.0
            c = u - low[k]
            if mean[k] > c:
                a, b = at[k], at[k + 1]
                xi, slope[k], _, hint[k] = level(masses[a:b], values[a:b], c, mean[k], hint[k], work[:, : b - a])
                spent += xi
                steep += slope[k]
        return spent, steep

    @njit(cache=True, nogil=True)
    @distance.naming
    def improve(first, last, problem, shift, hints, scratch, out):
        text  # noqa: B018  part of the cache key
        row_start, budget = problem.row_start, problem.budget
        masses, values, at, low, mean, slope, _, _ = scratch
        value, q, weights, upper = out
        for s in range(first, last):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            if a == b:
                value[s] = 0.0
                upper[s] = 0.0
                continue
            count = b - a
            size = gather(a, b, problem, scratch)
            row_hints = hints.row[a:b]
            chosen, lowest = 0, 0
            for k in range(count):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
                chosen = k if low[k] + mean[k] > low[chosen] + mean[chosen] else chosen
                lowest = k if low[k] > low[lowest] else lowest
                weights[a + k] = 0.0
            floor, high = low[lowest], low[chosen] + mean[chosen]
            best, tol = floor, problem.tolerance * size
            if budget[s] <= negligible:
                best = high
                weights[a + chosen] = 1.0
            elif high - floor <= tol:
                weights[a + lowest] = 1.0
            else:
                weights[a + lowest] = 1.0
                floor_open = True  # whether the floor itself may be within reach
                u = hints.state[s]
                for trial in range(MOST_TRIALS):
                    width = high - best
                    if not best < u < high:
                        u = best + 0.5 * width
                    spent, steep = at_level(u, count, row_hints, scratch)
                    new = u + (spent - budget[s]) / steep if steep > 0.0 else best
                    if new > best:
                        best = min(new, high)
                        for k in range(count):
                            weights[a + k] = slope[k] / steep
                    if spent <= budget[s]:
                        high = min(high, u)
                    if high - best <= tol or not best < high:
                        break
                    if floor_open and spent <= budget[s] and new <= floor:
                        spent, _ = at_level(floor, count, row_hints, scratch)
                        floor_open = False
                        if spent <= budget[s]:
                            high = floor
                            break
                    # slightly above Newton's point, for an upper bound too; bisect if that is slow
                    u = best + 0.5 * tol
                    if best == floor or (trial > 3 and high - best > 0.5 * width):
                        u = best + 0.5 * (high - best)
                hints.state[s] = best
            value[s] = best + shift
            upper[s] = high
            for k in range(count):
                q[a + k] = min(low[k] + mean[k], best) + shift

    return improve


@when_called
def make_saddle(distance: Distance) -> Callable[..., None]:
    """Makes the loop for nature's saddle point: a kernel that lowers every action to its state's level `upper[s]`."""
    prepare, level, point = distance.prepare, distance.level, distance.point
    text = fingerprint(level) ^ fingerprint(gather)

    @njit(cache=True, nogil=True)
    @distance.naming
    def saddle(problem, upper, hints, scratch, q, sent):
        text  # noqa: B018
        row_start, start, p = problem.row_start, problem.start, problem.p
        masses, values, at, low, mean, _, work, _ = scratch
        for s in range(len(row_start) - 1):
            for row in range(row_start[s], row_start[s + 1]):
                gather(row, row + 1, problem, scratch)
                n = at[1]
                a = np.int64(start[row])
                q[a : a + n] = p[a : a + n]
                c = upper[s] - low[0]
                if mean[0] > c:
                    prepare(masses[:n], values[:n])
                    _, _, x, _ = level(masses[:n], values[:n], c, mean[0], hints.row[row], work[:, :n])
                    gather(row, row + 1, problem, scratch)
                    sent[row] = point(p[a : a + n], values[:n], x, work[:, :n], q[a : a + n])

    return saddle
