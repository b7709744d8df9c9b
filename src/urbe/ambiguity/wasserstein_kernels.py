"""Compiled loops of `WassersteinBall`: plans by price, over a row's own successors or over all states."""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.budget_search import make_search
from urbe.ambiguity.moments import spread_of
from urbe.ambiguity.sweep import FAST


@register_jitable
def _best_within(j, lam, problem):
    """The receiver i that minimises z_i + lam d_ji among a row's entries; any of those that tie will do."""
    _, z, successor, metric = problem
    distance = metric[np.uint32(successor[j])]
    best, level, cost = j, z[j], 0.0
    for i in range(z.shape[0]):
        d = distance[np.uint32(successor[i])]
        here = z[i] + lam * d
        if here < level:
            best, level, cost = i, here, d
    return best, level, cost


@register_jitable
def _plan_within(lam, problem):
    p, z, _, _ = problem
    value = 0.0
    total = 0.0
    for j in range(p.shape[0]):
        best, _, cost = _best_within(j, lam, problem)
        value += p[j] * z[best]
        total += p[j] * cost
    return value, total


@register_jitable
def _free_within(j, problem):
    """The lowest receiver at distance zero: j itself, unless states coincide."""
    _, z, successor, metric = problem
    distance = metric[np.uint32(successor[j])]
    best = j
    for i in range(z.shape[0]):
        if distance[np.uint32(successor[i])] == 0.0 and z[i] < z[best]:
            best = i
    return best


@register_jitable
def _search_row_within(problem, radius, hint):
    p, z, _, _ = problem
    free = 0.0
    for j in range(p.shape[0]):
        free += p[j] * z[_free_within(j, problem)]
    return _search_within(problem, radius, _plan_within(0.0, problem), (free, 0.0), hint)


_search_within = make_search(_plan_within)


@register_jitable
def _gather(a, n, successor, r, w, z):
    for j in range(n):
        z[j] = w[np.uint32(successor[a + j])]
        if r is not None:
            z[j] += r[a + j]


@njit(cache=True, nogil=True, fastmath=FAST)
def sweep_within(first, last, start, successor, p, r, w, metric, radius, hint, work, out):
    """Values of the rows `first .. last`, without their own reward; mass stays among each row's entries."""
    for row in range(first, last):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        z = work[:n]
        _gather(a, n, successor, r, w, z)
        problem = (p[a : a + n], z, successor[a : a + n], metric)
        out[row], hint[row], _, _, _ = _search_row_within(problem, radius[row], hint[row])


@njit(cache=True, nogil=True)
def plans_within(start, successor, p, r, w, metric, radius, work, costly, cheap, share, m):
    """Each entry's two receivers (entries), each row's share of the first, and the sensitivities."""
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        z = work[:n]
        _gather(a, n, successor, r, w, z)
        problem = (p[a : a + n], z, successor[a : a + n], metric)
        _, lam, lam_costly, lam_cheap, share[row] = _search_row_within(problem, radius[row], 0.0)
        for j in range(n):
            free = _free_within(j, problem)
            costly[a + j] = a + _best_within(j, lam_costly, problem)[0]
            cheap[a + j] = a + (free if lam_cheap < 0.0 else _best_within(j, lam_cheap, problem)[0])
            m[a + j] = _best_within(j, lam, problem)[1] if radius[row] > 0.0 else z[free]


@njit(cache=True, nogil=True, fastmath=FAST)
def moments_within(start, successor, p, r, w, u, metric, radius, hint, work, out, scatter, carried):
    """`sweep_within` over all rows, and on the way sums of u over where mass goes and of squares of sensitivities."""
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, z, m = p[a : a + n], work[0, :n], work[1, :n]
        _gather(a, n, successor, r, w, z)
        problem = (row_p, z, successor[a : a + n], metric)
        out[row], hint[row], lam_costly, lam_cheap, share = _search_row_within(problem, radius[row], hint[row])
        total = 0.0
        for j in range(n):
            stays = radius[row] <= 0.0 or lam_cheap < 0.0
            free = _free_within(j, problem) if stays else j
            costly = _best_within(j, lam_costly, problem)[0] if share > 0.0 else free
            cheap = free if lam_cheap < 0.0 else _best_within(j, lam_cheap, problem)[0]
            total += row_p[j] * share * u[np.uint32(successor[a + costly])]
            total += row_p[j] * (1.0 - share) * u[np.uint32(successor[a + cheap])]
            m[j] = _best_within(j, hint[row], problem)[1] if radius[row] > 0.0 else z[free]
        carried[row], scatter[row] = total, spread_of(row_p, m)


@njit(cache=True, nogil=True)
def envelopes(donors, order, metric, w):
    """For each donor j the vertices of the lower convex envelope of the points (d_ji, w_i), from the closest on.

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
                continue  # farther and no lower
            if n > 0 and here == d[n - 1]:
                n -= 1
            # a vertex goes when the way past it gains more per distance than the way to it
            while n > 1 and (x[n - 2] - x[n - 1]) * (here - d[n - 1]) <= (x[n - 1] - level) * (d[n - 1] - d[n - 2]):
                n -= 1
            d[n], x[n], who[n] = here, level, i
            n += 1
            if level == low:
                break
        size[j] = n
    return size, cost, value, receiver


@register_jitable
def _best_anywhere(j, lam, hull):
    """The envelope's vertex that minimises value + lam cost, by bisection on the slopes of its edges."""
    size, cost, value, _ = hull
    d, x = cost[j], value[j]
    first, last = 0, size[j] - 1
    while first < last:
        k = (first + last) // 2
        if x[k] - x[k + 1] > lam * (d[k + 1] - d[k]):
            first = k + 1
        else:
            last = k
    return first


@register_jitable
def _plan_anywhere(lam, problem):
    p, successor, hull = problem
    _, cost, value, _ = hull
    total = 0.0
    paid = 0.0
    for j in range(p.shape[0]):
        state = np.int64(successor[j])
        k = _best_anywhere(state, lam, hull)
        total += p[j] * value[state, k]
        paid += p[j] * cost[state, k]
    return total, paid


_search_anywhere = make_search(_plan_anywhere)


@register_jitable
def _search_row_anywhere(problem, radius, hint):
    p, successor, hull = problem
    value = hull[2]
    free = 0.0
    for j in range(p.shape[0]):
        free += p[j] * value[np.int64(successor[j]), 0]
    return _search_anywhere(problem, radius, _plan_anywhere(0.0, problem), (free, 0.0), hint)


@njit(cache=True, nogil=True, fastmath=FAST)
def sweep_anywhere(first, last, start, successor, p, hull, radius, hint, out):
    """Values of the rows `first .. last`, without their own reward; mass may go to any state."""
    for row in range(first, last):
        a, b = np.int64(start[row]), np.int64(start[row + 1])
        problem = (p[a:b], successor[a:b], hull)
        out[row], hint[row], _, _, _ = _search_row_anywhere(problem, radius[row], hint[row])


@njit(cache=True, nogil=True)
def plans_anywhere(start, successor, p, hull, radius, costly, cheap, share, m):
    """Each entry's two receivers (states), each row's share of the first, and the sensitivities."""
    _, cost, value, receiver = hull
    for row in range(len(start) - 1):
        a, b = np.int64(start[row]), np.int64(start[row + 1])
        problem = (p[a:b], successor[a:b], hull)
        _, lam, lam_costly, lam_cheap, share[row] = _search_row_anywhere(problem, radius[row], 0.0)
        for e in range(a, b):
            state = np.int64(successor[e])
            costly[e] = receiver[state, _best_anywhere(state, lam_costly, hull)]
            cheap[e] = receiver[state, 0 if lam_cheap < 0.0 else _best_anywhere(state, lam_cheap, hull)]
            k = _best_anywhere(state, lam, hull)
            m[e] = value[state, k] + lam * cost[state, k]


@njit(cache=True, nogil=True, fastmath=FAST)
def moments_anywhere(start, successor, p, hull, u, radius, hint, work, out, scatter, carried):
    """`sweep_anywhere` over all rows, and on the way what `moments_within` adds."""
    _, cost, value, receiver = hull
    for row in range(len(start) - 1):
        a, b = np.int64(start[row]), np.int64(start[row + 1])
        row_p, m = p[a:b], work[0, : b - a]
        problem = (row_p, successor[a:b], hull)
        out[row], hint[row], lam_costly, lam_cheap, share = _search_row_anywhere(problem, radius[row], hint[row])
        lam, total = hint[row], 0.0
        for j in range(b - a):
            state = np.int64(successor[a + j])
            costly = receiver[state, _best_anywhere(state, lam_costly, hull)]
            cheap = receiver[state, 0 if lam_cheap < 0.0 else _best_anywhere(state, lam_cheap, hull)]
            total += row_p[j] * (share * u[costly] + (1.0 - share) * u[cheap])
            k = _best_anywhere(state, lam, hull)
            m[j] = value[state, k] + lam * cost[state, k]
        carried[row], scatter[row] = total, spread_of(row_p, m)
