"""Evaluate the worst case of a given policy in a state whose actions share nature's budget.

For a given policy, with mu the price of a unit of budget,

    min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  =  max_mu D(mu),    D(mu) = sum_a pi_a h_a(mu / pi_a) - mu kappa,

D' = sum_a d_a - kappa. Tangents on both sides of the maximum bound it by the height at which they meet, and the
corresponding mixture of nature's two answers keeps the budget and attains this height. The loops compute the value,
nature's answer, its correction to stay within the budget despite rounding, and the derivative by the centres of rows.
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
NEARBY = 2.0**-10
"""Relative distance at which a search looks for the other side of the previous kink."""

STATIONARY = 1e-6
"""Relative length of a Newton step that leads to a maximum where D is smooth, rather than to a kink."""


def _make_search(distance: Distance) -> Callable[..., tuple[float, float, float, float, float]]:
    """Makes the search for the maximum of D at one state, with the prices on both sides, their mixture and its price.

    `path[1]` and `path[2]` store nature's answers at these prices: at a kink a price has many answers, and recomputing
    may give another one.
    """
    penalty, negligible = distance.penalty, distance.negligible

    @register_jitable
    @distance.naming
    def at_price(mu, pi, hint, scratch):
        """sum_a pi_a h_a, sum_a d_a and their curvature at the price mu."""
        masses, values, at, _, mean, _, work, path = scratch
        total, spent, curvature = 0.0, 0.0, 0.0
        for k in range(len(pi)):
            a, b = at[k], at[k + 1]
            row = masses[a:b], values[a:b]
            h, d, bend, path[0, k], hint[k] = penalty(*row, mean[k], mu / pi[k], hint[k], work[:, : b - a])
            total += pi[k] * h
            spent += d
            curvature += bend / pi[k]
        return total, spent, curvature

    @register_jitable
    @distance.naming
    def search(pi, budget, tol, mu, hint, scratch):
        mean, path = scratch.mean, scratch.path
        nominal = 0.0
        for k in range(len(pi)):
            nominal += pi[k] * mean[k]
        if budget <= negligible or nominal <= 0.0:
            return nominal, 0.0, np.inf, 0.0, np.inf
        # tangents value + spent mu - budget mu, at the prices left and right of the maximum: at 0, where nature goes
        # to the floor (unless that is not known yet), and at infinity, where it stays
        left, left_value, left_spent, left_known = 0.0, 0.0, np.inf, False
        right, right_value, right_spent = np.inf, nominal, 0.0
        best, away, meet, price = 0.0, NEARBY, 0.0, np.nan
        if not 0.0 < mu < np.inf:
            mu = 0.0
        for trial in range(MOST_TRIALS):
            if mu <= 0.0:
                _, left_spent, _ = at_price(0.0, pi, hint, scratch)
                left_known = True
                path[1] = path[0]
                if left_spent <= budget:
                    return 0.0, 0.0, right, 1.0, 0.0
                mu = (right_value - left_value) / (left_spent - right_spent)
            total, spent, curvature = at_price(mu, pi, hint, scratch)
            best = max(best, total - mu * budget)
            if spent >= budget:
                left, left_value, left_spent, left_known = mu, total - mu * spent, spent, True
                path[1] = path[0]
            else:
                right, right_value, right_spent = mu, total - mu * spent, spent
                path[2] = path[0]
            newton = mu + (spent - budget) / curvature if curvature > 0.0 else -1.0
            if abs(newton - mu) <= STATIONARY * mu:
                price = newton
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
        # at a kink the price is where the tangents of both sides meet
        return best, left, right, mix, meet if np.isnan(price) else price

    return search


@when_called
def make_evaluate(distance: Distance) -> Callable[..., None]:
    """Makes the loop for worst-case values of a policy, over the rows it takes."""
    prepare, search = distance.prepare, _make_search(distance)
    text = fingerprint(distance.penalty) ^ fingerprint(gather)

    @njit(cache=True, nogil=True)
    @distance.naming
    def evaluate(first, last, problem, pi, shift, hints, scratch, value):
        text  # noqa: B018  part of the cache key
        row_start, budget, price_hint = problem.row_start, problem.budget, hints.state
        masses, values, at, low, _, _, _, _ = scratch
        for s in range(first, last):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            size = gather(a, b, problem, scratch)
            base = 0.0
            for k in range(b - a):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
                base += pi[a + k] * low[k]
            tol = problem.tolerance * size
            best, left, right, _, _ = search(pi[a:b], budget[s], tol, price_hint[s], hints.row[a:b], scratch)
            price_hint[s] = left if right == np.inf else 0.5 * (left + right)
            value[s] = base + best + shift

    return evaluate


@when_called
def make_answer(distance: Distance) -> Callable[..., None]:
    """Makes the loop for nature's answer to a policy on the rows it takes, and the price of each state's budget."""
    prepare, point, search = distance.prepare, distance.point, _make_search(distance)
    text = fingerprint(distance.penalty) ^ fingerprint(gather)

    @njit(cache=True, nogil=True)
    @distance.naming
    def answer(problem, pi, hints, scratch, other, out):
        text  # noqa: B018  part of the cache key
        row_start, budget, start, p = problem.row_start, problem.budget, problem.start, problem.p
        masses, values, at, _, _, _, work, path = scratch
        q, sent, price = out
        for s in range(len(row_start) - 1):
            a, b = np.int64(row_start[s]), np.int64(row_start[s + 1])
            size = gather(a, b, problem, scratch)
            for k in range(b - a):
                prepare(masses[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
            tol = problem.tolerance * size
            _, _, right, mix, price[s] = search(pi[a:b], budget[s], tol, hints.state[s], hints.row[a:b], scratch)
            for row in range(a, b):
                e, f = np.int64(start[row]), np.int64(start[row + 1])
                n = f - e
                q[e:f] = 0.0
                gather(row, row + 1, problem, scratch)
                for side in range(2):
                    share = mix if side == 0 else 1.0 - mix
                    if share <= 0.0:
                        continue
                    other[:n] = p[e:f]
                    if side == 0 or right < np.inf:
                        sent[row] += share * point(p[e:f], values[:n], path[1 + side, row - a], work[:, :n], other[:n])
                    for j in range(n):
                        q[e + j] += share * other[j]

    return answer


@when_called
def make_inside(distance: Distance) -> Callable[..., None]:
    """Makes the loop that mixes the rows of each state over its budget with the model's rows, all with the same weight.

    Distances are convex and zero at the model's rows: weight 1 - budget / spent on these keeps the budget.
    """
    row_distance = distance.row_distance
    text = fingerprint(row_distance)

    @njit(cache=True, nogil=True)
    @distance.naming
    def inside(row_start, start, p, budget, q, sent):
        text  # noqa: B018  part of the cache key
        for s in range(len(row_start) - 1):
            spent = 0.0
            for row in range(row_start[s], row_start[s + 1]):
                a, b = np.int64(start[row]), np.int64(start[row + 1])
                spent += row_distance(q[a:b], p[a:b], sent[row])
            if spent > budget[s]:
                back = 1.0 - budget[s] / spent
                for row in range(row_start[s], row_start[s + 1]):
                    sent[row] *= 1.0 - back
                    for j in range(np.int64(start[row]), np.int64(start[row + 1])):
                        q[j] += back * (p[j] - q[j])

    return inside


@when_called
def make_sensitivity(distance: Distance) -> Callable[..., None]:
    """Makes the loop for the derivative m of a policy's value by the centres of its rows, from the budgets' prices."""
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
                if of_row == 0.0:  # nature reaches the lowest successors from any centre
                    row_m[:] = 0.0
                    continue
                gather(row, row + 1, problem, scratch)
                if of_row == np.inf:  # nature stays at the centre
                    row_m[:] = values[:n]
                    continue
                prepare(masses[:n], values[:n])
                _, _, _, x, _ = penalty(masses[:n], values[:n], mean[0], of_row, np.nan, work[:, :n])
                gather(row, row + 1, problem, scratch)
                q[:n] = row_p
                point(row_p, values[:n], x, work[:, :n], q[:n])
                sensitivity(row_p, values[:n], q[:n], of_row, row_m)

    return loop
