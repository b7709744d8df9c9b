"""Compiled loops of `WassersteinBall`: plans for given prices, over a row's own successors or over all states.

Both kinds of receivers provide functions of one row, a tuple whose first part is p, and of one of its entries j:

    row_of(a, b, problem, r, work)    the row of the entries a .. b
    best(j, lam, row)                 -> i, z_i, d_ji of the receiver that minimises z_i + lam d_ji
    free(j, row)                      -> i, z_i of the lowest receiver at distance zero
    state_of(i, row)                  -> the state of a receiver
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.budget_search import make_search
from urbe.ambiguity.moments import spread_of
from urbe.ambiguity.sweep import FAST, gather, named_after
from urbe.types import FloatArray, IntArray


class TransportProblem(NamedTuple):
    """The inputs of every loop, except the rewards of successors.

    Attributes:
      start, successor, p: rows as in `Rows`: `(R + 1,)`, `(E,)`, `(E,)`.
      radius: `(R,)`.
      w: `(S,)` discounted state values.
      ways: the `(S, S)` metric, or the `envelopes` of all states.
    """

    start: IntArray
    successor: IntArray
    p: FloatArray
    radius: FloatArray
    w: FloatArray
    ways: Any


class TransportPlans(NamedTuple):
    """Nature's answer: the receivers of each entry in two plans, `(E,)`, and the share of the first, `(R,)`."""

    costly: IntArray
    cheap: IntArray
    share: FloatArray


class TransportLoops(NamedTuple):
    """The loops of one kind of receivers.

    Attributes:
      sweep: writes the values of the rows `first .. last`, without the rewards of pairs.
      plans: writes `TransportPlans` and sensitivities.
      moments: sweeps over all rows, and sums u over the destinations of mass and squares of sensitivities.
    """

    sweep: Callable[..., None]
    plans: Callable[..., None]
    moments: Callable[..., None]


@cache
def transport_loops(anywhere: bool) -> TransportLoops:
    """Makes the loops for rows whose mass may go anywhere, or only to the row's own successors."""
    row_of, best, free, state_of = ANYWHERE if anywhere else WITHIN

    @register_jitable
    def plan(lam, row):
        p = row[0]
        value, total = 0.0, 0.0
        for j in range(p.shape[0]):
            _, level, cost = best(j, lam, row)
            value += p[j] * level
            total += p[j] * cost
        return value, total

    search_plans = make_search(plan)

    @register_jitable
    def search(row, radius, hint):
        p = row[0]
        at_no_cost = 0.0
        for j in range(p.shape[0]):
            at_no_cost += p[j] * free(j, row)[1]
        return search_plans(row, radius, plan(0.0, row), (at_no_cost, 0.0), hint)

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(best)
    def transport_sweep(first, last, problem, r, hint, work, out):
        for k in range(first, last):
            a, b = np.int64(problem.start[k]), np.int64(problem.start[k + 1])
            out[k], hint[k], _, _, _ = search(row_of(a, b, problem, r, work), problem.radius[k], hint[k])

    @njit(cache=True, nogil=True)
    @named_after(best)
    def transport_plans(problem, r, work, plans, m):
        for k in range(len(problem.start) - 1):
            a, b = np.int64(problem.start[k]), np.int64(problem.start[k + 1])
            row = row_of(a, b, problem, r, work)
            _, lam, lam_costly, lam_cheap, plans.share[k] = search(row, problem.radius[k], 0.0)
            for j in range(b - a):
                _, value, cost = best(j, lam, row)
                nearest, level = free(j, row)
                plans.costly[a + j] = best(j, lam_costly, row)[0]
                plans.cheap[a + j] = nearest if lam_cheap < 0.0 else best(j, lam_cheap, row)[0]
                m[a + j] = value + lam * cost if problem.radius[k] > 0.0 else level

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(best)
    def transport_moments(problem, r, u, hint, work, out, scatter, carried):
        for k in range(len(problem.start) - 1):
            a, b = np.int64(problem.start[k]), np.int64(problem.start[k + 1])
            row, p, m = row_of(a, b, problem, r, work), problem.p[a:b], work[1, : b - a]
            out[k], hint[k], lam_costly, lam_cheap, share = search(row, problem.radius[k], hint[k])
            total = 0.0
            for j in range(b - a):
                costly = best(j, lam_costly, row)[0]
                cheap = free(j, row)[0] if lam_cheap < 0.0 else best(j, lam_cheap, row)[0]
                total += p[j] * (share * u[state_of(costly, row)] + (1.0 - share) * u[state_of(cheap, row)])
                if problem.radius[k] > 0.0:
                    _, value, cost = best(j, hint[k], row)
                    m[j] = value + hint[k] * cost
                else:
                    m[j] = free(j, row)[1]
            carried[k], scatter[k] = total, spread_of(p, m)

    return TransportLoops(transport_sweep, transport_plans, transport_moments)


@register_jitable
def _row_within(a, b, problem, r, work):
    z, _ = gather(a, b - a, problem.successor, r, problem.w, np.inf, work)
    return problem.p[a:b], z, problem.successor[a:b], problem.ways


@register_jitable
def _best_within(j, lam, row):
    """Finds the best receiver among the row's entries; any of several ties."""
    _, z, successor, metric = row
    distance = metric[np.uint32(successor[j])]
    best, level, cost = j, z[j], 0.0
    for i in range(z.shape[0]):
        d = distance[np.uint32(successor[i])]
        here = z[i] + lam * d
        if here < level:
            best, level, cost = i, here, d
    return best, z[best], cost


@register_jitable
def _free_within(j, row):
    """Returns j itself, unless states coincide."""
    _, z, successor, metric = row
    distance = metric[np.uint32(successor[j])]
    best = j
    for i in range(z.shape[0]):
        if distance[np.uint32(successor[i])] == 0.0 and z[i] < z[best]:
            best = i
    return best, z[best]


@register_jitable
def _state_within(i, row):
    return np.uint32(row[2][i])


WITHIN = _row_within, _best_within, _free_within, _state_within
"""The receivers are the row's own entries."""


@njit(cache=True, nogil=True)
def envelopes(donors, order, metric, w):
    """Computes for each donor j the vertices of the lower convex envelope of the points (d_ji, w_i), closest first.

    Returns:
      size `(S,)`, and `(S, S)` cost, value and receiver of each vertex; only the first `size[j]` count.
    """
    n_states = len(w)
    size = np.zeros(n_states, dtype=np.int64)
    cost, value = np.empty((n_states, n_states)), np.empty((n_states, n_states))
    receiver = np.empty((n_states, n_states), dtype=np.int32)
    low = w.min()
    for j in donors:
        d, x, who = cost[j], value[j], receiver[j]
        n = 0
        for i in order[j]:
            here, level = metric[j, i], w[i]
            if n > 0 and level >= x[n - 1]:
                continue  # farther away and not lower
            if n > 0 and here == d[n - 1]:
                n -= 1
            # a vertex is removed if the slope past it is steeper than the slope to it
            while n > 1 and (x[n - 2] - x[n - 1]) * (here - d[n - 1]) <= (x[n - 1] - level) * (d[n - 1] - d[n - 2]):
                n -= 1
            d[n], x[n], who[n] = here, level, i
            n += 1
            if level == low:
                break
        size[j] = n
    return size, cost, value, receiver


@register_jitable
def _row_anywhere(a, b, problem, r, work):
    return problem.p[a:b], problem.successor[a:b], problem.ways


@register_jitable
def _best_anywhere(j, lam, row):
    """Finds the envelope's vertex that minimises value + lam cost, by bisection on the slopes of its edges."""
    _, successor, (size, cost, value, receiver) = row
    state = np.int64(successor[j])
    d, x = cost[state], value[state]
    first, last = 0, size[state] - 1
    while first < last:
        k = (first + last) // 2
        if x[k] - x[k + 1] > lam * (d[k + 1] - d[k]):
            first = k + 1
        else:
            last = k
    return receiver[state, first], x[first], d[first]


@register_jitable
def _free_anywhere(j, row):
    _, successor, (_, _, value, receiver) = row
    state = np.int64(successor[j])
    return receiver[state, 0], value[state, 0]


@register_jitable
def _state_anywhere(i, row):
    return np.int64(i)


ANYWHERE = _row_anywhere, _best_anywhere, _free_anywhere, _state_anywhere
"""The receivers are all states; rewards do not depend on the successor."""
