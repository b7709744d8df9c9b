"""The inner problems of one state whose actions share nature's budget, over the functions of one distance.

Improvement. With z the values of successors and xi_a(u) the distance at which action a falls to the level u,

    V = max_pi min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  =  min {u : sum_a xi_a(u) <= kappa}        [Wiesemann2013]

xi is convex: Newton's method from u, with slopes beta_a = -xi_a'(u), leads to

    new = u + (sum_a xi_a(u) - kappa) / sum_a beta_a   =   (sum_a beta_a h_a(1 / beta_a) - kappa) / sum_a beta_a,

which is the dual value of the policy pi_a = beta_a / sum beta whatever the slopes: new <= min over nature against pi
<= V. Every u with sum_a xi_a(u) <= kappa bounds V from above. The search ends when both bounds agree, which also holds
the policy to its value at kinks.

Evaluation. For a given policy, with mu the price of a unit of budget,

    min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  =  max_mu D(mu),    D(mu) = sum_a pi_a h_a(mu / pi_a) - mu kappa,

D' = sum_a d_a - kappa. Tangents on both sides of the maximum bound it by the height at which they meet, and the same
mixture of nature's two answers keeps the budget and attains that height.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.levels import Distance
from urbe.ambiguity.sweep import fingerprint, row_function

MOST_TRIALS = 500
"""Steps of a search, far more than any needs: bisection alone takes 60."""
NEARBY = 2.0**-10
"""Relative distance at which a search looks for the other side of last time's kink."""


class StateKernel(NamedTuple):
    """Compiled loops over states; see the functions that make them."""

    improve: Callable[..., None]
    saddle: Callable[..., None]
    evaluate: Callable[..., None]
    answer: Callable[..., None]


def state_kernel(distance: Distance) -> StateKernel:
    """The loops of one distance."""
    return StateKernel(_make_improve(distance), _make_saddle(distance), _make_evaluate(distance), _make_answer(distance))


@row_function
def _gather(first, last, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean):  # type: ignore[no-untyped-def]
    """Copies the rows of a state; y = z - low in `values`, low and p . y of each row, and max |z|."""
    size = 0.0
    at[0] = 0
    for row in range(first, last):
        k = row - first
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        y = values[at[k] : at[k] + n]
        constant = 0.0 if by_entry else reward[row]
        lowest = outside + constant
        highest = -np.inf
        for j in range(n):
            z = w[np.uint32(successor[a + j])] + (reward[a + j] if by_entry else constant)
            y[j] = z
            lowest = min(lowest, z)
            highest = max(highest, z)
        largest = max(abs(lowest), abs(highest))
        nothing = 2.0**-100 * largest
        total = 0.0
        for j in range(n):
            above = y[j] - lowest
            y[j] = above if above > nothing else 0.0
            masses[at[k] + j] = p[a + j]
            total += p[a + j] * y[j]
        at[k + 1] = at[k] + n
        low[k] = lowest
        mean[k] = total
        size = max(size, largest)
    return size


def _make_improve(distance: Distance) -> Callable[..., None]:
    """Values, bounds from above, and policies: writes `value`, `upper`, `q` and `weights`."""
    prepare, level, negligible = distance.prepare, distance.level, distance.negligible
    text = fingerprint(level) ^ fingerprint(_gather)

    @register_jitable
    def at_level(u, masses, values, at, low, mean, count, slope, hint, work):  # type: ignore[no-untyped-def]
        """sum_a xi_a(u) and sum_a beta_a; the slopes of each action in `slope`."""
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
    def improve(
        first, last, row_start, start, successor, p, reward, by_entry, w, outside, budget, shift, tolerance,
        level_hint, row_hint, masses, values, at, low, mean, slope, work, value, upper, q, weights,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        text  # noqa: B018  part of the cache key
        for s in range(first, last):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            if a == b:
                value[s] = 0.0
                upper[s] = 0.0
                continue
            count = b - a
            size = _gather(a, b, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
            hints = row_hint[a:b]
            chosen, lowest = 0, 0
            for k in range(count):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
                chosen = k if low[k] + mean[k] > low[chosen] + mean[chosen] else chosen
                lowest = k if low[k] > low[lowest] else lowest
                weights[a + k] = 0.0
            floor, high = low[lowest], low[chosen] + mean[chosen]
            best, tol = floor, tolerance * size
            if budget[s] <= negligible:
                best = high
                weights[a + chosen] = 1.0
            elif high - floor <= tol:
                weights[a + lowest] = 1.0
            else:
                weights[a + lowest] = 1.0
                floor_open = True  # whether the floor itself may be within reach
                u = level_hint[s]
                for trial in range(MOST_TRIALS):
                    width = high - best
                    if not best < u < high:
                        u = best + 0.5 * width
                    spent, steep = at_level(u, masses, values, at, low, mean, count, slope, hints, work)
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
                        spent, _ = at_level(floor, masses, values, at, low, mean, count, slope, hints, work)
                        floor_open = False
                        if spent <= budget[s]:
                            high = floor
                            break
                    # just beyond Newton's point, to bound from above too; where that is slow, halve
                    u = best + 0.5 * tol
                    if best == floor or (trial > 3 and high - best > 0.5 * width):
                        u = best + 0.5 * (high - best)
                level_hint[s] = best
            value[s] = best + shift
            upper[s] = high
            for k in range(count):
                q[a + k] = min(low[k] + mean[k], best) + shift

    return improve  # type: ignore[no-any-return]


def _make_saddle(distance: Distance) -> Callable[..., None]:
    """The kernel that holds every action to the level `upper[s]` of its state: nature's half of the saddle point."""
    prepare, level, point = distance.prepare, distance.level, distance.point
    text = fingerprint(level) ^ fingerprint(_gather)

    @njit(cache=True, nogil=True)
    def saddle(
        first, last, row_start, start, successor, p, reward, by_entry, w, outside, upper,
        row_hint, masses, values, at, low, mean, work, q, sent,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        text  # noqa: B018
        for s in range(first, last):
            for row in range(row_start[s], row_start[s + 1]):
                _gather(row, row + 1, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
                n = at[1]
                a = np.int64(start[row])
                q[a : a + n] = p[a : a + n]
                c = upper[s] - low[0]
                if mean[0] > c:
                    prepare(masses[:n], values[:n])
                    _, _, x, _ = level(masses[:n], values[:n], c, mean[0], row_hint[row], work[:, :n])
                    _gather(row, row + 1, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
                    sent[row] = point(p[a : a + n], values[:n], x, work[:, :n], q[a : a + n])

    return saddle  # type: ignore[no-any-return]


def _make_search(distance: Distance) -> Callable[..., tuple[float, float, float, float]]:
    """The maximum of D at one state, the prices on both sides of it, and the weight of the lower one."""
    penalty, negligible = distance.penalty, distance.negligible

    @register_jitable
    def at_price(mu, masses, values, at, mean, pi, hint, work):  # type: ignore[no-untyped-def]
        """sum_a pi_a h_a, sum_a d_a and their curvature at the price mu."""
        total, spent, curvature = 0.0, 0.0, 0.0
        for k in range(len(pi)):
            a, b = at[k], at[k + 1]
            h, d, bend, _, hint[k] = penalty(
                masses[a:b], values[a:b], mean[k], mu / pi[k], hint[k], work[:, : b - a]
            )
            total += pi[k] * h
            spent += d
            curvature += bend / pi[k]
        return total, spent, curvature

    @register_jitable
    def search(masses, values, at, mean, pi, budget, tol, mu, hint, work):  # type: ignore[no-untyped-def]
        nominal = 0.0
        for k in range(len(pi)):
            nominal += pi[k] * mean[k]
        if budget <= negligible or nominal <= 0.0:
            return nominal, 0.0, np.inf, 0.0
        # tangents value + spent mu - budget mu, at the prices left and right of the maximum: at 0, where nature goes
        # to the floor (unless that is not known yet), and at infinity, where it stays
        left, left_value, left_spent, left_known = 0.0, 0.0, np.inf, False
        right, right_value, right_spent = np.inf, nominal, 0.0
        best, away = 0.0, NEARBY
        if not 0.0 < mu < np.inf:
            mu = 0.0
        for trial in range(MOST_TRIALS):
            if mu <= 0.0:
                _, left_spent, _ = at_price(0.0, masses, values, at, mean, pi, hint, work)
                left_known = True
                if left_spent <= budget:
                    return 0.0, 0.0, right, 1.0
                mu = (right_value - left_value) / (left_spent - right_spent)
            total, spent, curvature = at_price(mu, masses, values, at, mean, pi, hint, work)
            best = max(best, total - mu * budget)
            if spent >= budget:
                left, left_value, left_spent, left_known = mu, total - mu * spent, spent, True
            else:
                right, right_value, right_spent = mu, total - mu * spent, spent
            newton = mu + (spent - budget) / curvature if curvature > 0.0 else -1.0
            if left_known:
                meet = (right_value - left_value) / max(left_spent - right_spent, 2.0**-1000)
                upper = left_value + (left_spent - budget) * meet
                if upper - best <= tol:
                    break
                following = meet
                if left < newton < right and trial % 4 != 3:
                    following = newton
                elif right == np.inf and curvature <= 0.0 and away < 1.0 and trial % 4 != 3:
                    following = mu * (1.0 + away)
                    away *= 8.0
                if not left < following < right:
                    break
                mu = following
            elif 0.0 < newton < right:
                mu = newton
            elif away < 1.0:
                mu *= 1.0 - away
                away *= 8.0
            else:
                mu = 0.0
        mix = (budget - right_spent) / (left_spent - right_spent) if left_spent > budget else 1.0
        return best, left, right, mix

    return search  # type: ignore[no-any-return]


def _make_evaluate(distance: Distance) -> Callable[..., None]:
    """Worst-case values of a policy; rows are those it takes, `first_row` the first of each of their states."""
    prepare, search = distance.prepare, _make_search(distance)
    text = fingerprint(distance.penalty) ^ fingerprint(_gather)

    @njit(cache=True, nogil=True)
    def evaluate(
        first, last, row_start, start, successor, p, reward, by_entry, w, outside, pi, budget, shift, tolerance,
        price_hint, row_hint, masses, values, at, low, mean, work, value,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        text  # noqa: B018
        for s in range(first, last):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            size = _gather(a, b, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
            base = 0.0
            for k in range(b - a):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
                base += pi[a + k] * low[k]
            best, left, right, _ = search(
                masses, values, at, mean, pi[a:b], budget[s], tolerance * size, price_hint[s], row_hint[a:b], work
            )
            price_hint[s] = left if right == np.inf else 0.5 * (left + right)
            value[s] = base + best + shift

    return evaluate  # type: ignore[no-any-return]


def _make_answer(distance: Distance) -> Callable[..., None]:
    """Nature's answer to a policy on the rows it takes, and the policy's value under it up to `tolerance`."""
    prepare, penalty, point, search = distance.prepare, distance.penalty, distance.point, _make_search(distance)
    text = fingerprint(distance.penalty) ^ fingerprint(_gather)

    @njit(cache=True, nogil=True)
    def answer(
        first, last, row_start, start, successor, p, reward, by_entry, w, outside, pi, budget, tolerance,
        price_hint, row_hint, masses, values, at, low, mean, work, q, other, sent,
    ):  # type: ignore[no-untyped-def]  # fmt: skip
        text  # noqa: B018
        for s in range(first, last):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            size = _gather(a, b, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
            for k in range(b - a):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
            _, left, right, mix = search(
                masses, values, at, mean, pi[a:b], budget[s], tolerance * size, price_hint[s], row_hint[a:b], work
            )
            for row in range(a, b):
                e, f = np.int64(start[row]), np.int64(start[row + 1])
                n = f - e
                q[e:f] = 0.0
                for side in range(2):
                    share = mix if side == 0 else 1.0 - mix
                    price = left if side == 0 else right
                    if share <= 0.0:
                        continue
                    _gather(row, row + 1, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
                    other[:n] = p[e:f]
                    if price < np.inf:
                        prepare(masses[:n], values[:n])
                        _, _, _, x, _ = penalty(
                            masses[:n], values[:n], mean[0], price / pi[row], row_hint[row], work[:, :n]
                        )
                        _gather(row, row + 1, start, successor, p, reward, by_entry, w, outside, masses, values, at, low, mean)
                        sent[row] += share * point(p[e:f], values[:n], x, work[:, :n], other[:n])
                    for j in range(n):
                        q[e + j] += share * other[j]

    return answer  # type: ignore[no-any-return]
