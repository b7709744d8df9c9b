"""A budget shared by the actions of a state: the best randomised policy, and nature's best split of the budget.

Nature lowers the value Q_a of action a by t_a w_a, and may choose any t >= 0 with ||t||_p <= 1:

    max_pi min_t  sum_a pi_a (Q_a - t_a w_a)  =  max_pi  pi . Q - ||pi w||_q  =  x,    sum_a ((Q_a - x)_+ / w_a)^p = 1

with pi_a proportional to (Q_a - x)_+^(p-1) / w_a^p, and nature's t_a = (Q_a - x)_+ / w_a: actions below x are not taken
[KumarLevyWangMannor2022]. With p = inf every action has its whole w_a, and one action is best.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_answers(row_start, q, w, norm, value, weights):
    """Computes the value of every state and the probabilities of its rows; states without rows keep zero."""
    most = 0
    for s in range(len(row_start) - 1):
        most = max(most, row_start[s + 1] - row_start[s])
    order = np.empty(most, dtype=np.int64)
    for s in range(len(row_start) - 1):
        a, b = row_start[s], row_start[s + 1]
        if b > a:
            value[s] = _answer(q[a:b], w[a:b], norm, order, weights[a:b])


@njit(cache=True, nogil=True)
def _answer(q, w, norm, order, pi):
    """Computes x and pi of one state."""
    n = len(q)
    safe, unit = -1, math.inf
    for a in range(n):
        pi[a] = 0.0
        if w[a] <= 0.0:
            if safe < 0 or q[a] > q[safe]:
                safe = a
        else:
            unit = min(unit, w[a])
    x = -math.inf
    if unit < math.inf:
        x = _level(q, w, unit, norm, _sorted(q, w, order), order)
    if safe >= 0 and q[safe] >= x:
        pi[safe] = 1.0
        return q[safe]
    total = 0.0
    for a in range(n):
        if w[a] > 0.0 and q[a] > x:
            share = unit / w[a]
            pi[a] = share if norm == 1.0 else share * share * (q[a] - x)
            total += pi[a]
    if total <= 0.0:  # all values are equal up to rounding
        pi[order[0]] = 1.0
        return x
    for a in range(n):
        pi[a] /= total
    return x


@njit(cache=True, nogil=True)
def _sorted(q, w, order):
    """Sorts the actions with a positive penalty, the best first; returns their number."""
    k = 0
    for a in range(len(q)):
        if w[a] > 0.0:
            at = k
            while at > 0 and q[order[at - 1]] < q[a]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = a
            k += 1
    return k


@njit(cache=True, nogil=True)
def _level(q, w, unit, norm, count, order):
    """Solves sum_a ((Q_a - x)_+ / w_a)^p = 1 over `order`: actions are added, best first, while they are above x."""
    top, x = q[order[0]], -math.inf
    weight, mean, spread = 0.0, 0.0, 0.0  # of Q - top, in weights (unit / w)^p
    for k in range(count):
        a = order[k]
        if q[a] <= x:
            break
        share = unit / w[a] if norm == 1.0 else (unit / w[a]) ** 2
        weight += share
        change = (q[a] - top) - mean
        mean += change * share / weight
        spread += share * change * ((q[a] - top) - mean)
        if norm == 1.0:
            x = top + mean - unit / weight
        else:
            x = top + mean - math.sqrt(max(unit * unit - spread, 0.0) / weight)
    return x


@njit(cache=True, nogil=True)
def largest_loss(pi, w, norm):
    """||pi w||_q of one state: the penalty of a policy."""
    largest = 0.0
    for a in range(len(pi)):
        largest = max(largest, pi[a] * w[a])
    if norm == 1.0 or largest == 0.0:
        return largest
    total = 0.0
    for a in range(len(pi)):
        size = pi[a] * w[a] / largest
        total += size if norm == math.inf else size * size
    return largest * (total if norm == math.inf else math.sqrt(total))


@njit(cache=True, nogil=True)
def natures_share(pi, w, norm, t):
    """Writes t with sum_a pi_a t_a w_a = ||pi w||_q."""
    loss = largest_loss(pi, w, norm)
    taken = False
    for a in range(len(pi)):
        size = pi[a] * w[a]
        if norm == math.inf:
            t[a] = 1.0
        elif norm == 2.0:
            t[a] = size / loss if loss > 0.0 else 0.0
        else:
            t[a] = 1.0 if size == loss and loss > 0.0 and not taken else 0.0
            taken = taken or t[a] > 0.0
