"""Inner problems of a state whose actions share a budget, solved by other methods than the library's.

L1 and L-infinity: linear programs over all actions' distributions at once (HiGHS). L2 and KL: nested bisection in
extended precision along the path of one action's minimisers (inside) and on the level or price common to all (outside).
They are good for budgets of 1e-9 and more: a divergence is known to 1e-19 only, and its root is what matters.
Rows are dense; `allowed` says which successors may receive mass.
"""

import numpy as np

from oracles.worst_case import worst_by_lp

EXACT = np.longdouble


def level_by_lp(ps, zs, budget, norm, allowed):
    """min u with p_a @ z_a <= u for every a and sum_a d(p_a, pbar_a) <= budget; variables (u, p_a, deviations)."""
    return _lp(ps, zs, budget, norm, allowed, None)


def policy_by_lp(ps, zs, pi, budget, norm, allowed):
    """min sum_a pi_a p_a @ z_a with sum_a d(p_a, pbar_a) <= budget."""
    return _lp(ps, zs, budget, norm, allowed, pi)


def _lp(ps, zs, budget, norm, allowed, pi):
    n_actions, n = np.shape(ps)
    size = n_actions * n
    devs = size if norm == "l1" else n_actions
    total = 1 + size + devs
    a_ub, b_ub, a_eq, bounds = [], [], [], [(None, None)]
    for a in range(n_actions):
        bounds += [(0, None if ok else 0) for ok in allowed[a]]
        one = np.zeros(total)
        one[1 + a * n : 1 + (a + 1) * n] = 1.0
        a_eq.append(one)
        if pi is None:
            line = np.zeros(total)
            line[0], line[1 + a * n : 1 + (a + 1) * n] = -1.0, zs[a]
            a_ub.append(line)
            b_ub.append(0.0)
        for j in range(n):
            for sign in (1.0, -1.0):
                line = np.zeros(total)
                line[1 + a * n + j] = sign
                line[1 + size + (a * n + j if norm == "l1" else a)] = -1.0
                a_ub.append(line)
                b_ub.append(sign * ps[a][j])
    bounds += [(0, None)] * devs
    spent = np.zeros(total)
    spent[1 + size :] = 1.0
    a_ub.append(spent)
    b_ub.append(budget)
    cost = np.zeros(total)
    if pi is None:
        cost[0] = 1.0
    else:
        cost[1 : 1 + size] = (np.asarray(pi)[:, None] * np.asarray(zs)).ravel()
        bounds[0] = (0, 0)
    return worst_by_lp(cost, np.array(a_ub), b_ub, np.array(a_eq), np.ones(n_actions), bounds)


def l2_point(p, z, t):
    """argmin q @ z + ||q - p||^2 / (2 t) over the simplex, for `(k,)` t: sort and cut (Held, Wolfe, Crowder)."""
    y = p - t[:, None] * (z - z.min())
    ordered = np.sort(y, axis=1)[:, ::-1]
    cut = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, len(p) + 1)
    last = (ordered > cut).sum(axis=1) - 1
    return np.maximum(y - cut[np.arange(len(t)), last][:, None], 0)


def kl_point(p, z, t):
    """argmin q @ z + KL(q || p) / t, for `(k,)` t."""
    weight = p * np.exp(-t[:, None] * (z - z.min()))
    return weight / weight.sum(axis=1, keepdims=True)


def l2_distance(q, p):
    """||q - p||_2 of each line of q."""
    return np.sqrt(((q - p) ** 2).sum(axis=1))


def kl_distance(q, p):
    """sum_j q_j log(q_j / p_j) of each line of q, zero where q_j is."""
    ratio = np.where(q > 0, q, p) / p
    return np.maximum((q * np.log(ratio)).sum(axis=1), 0)


PATHS = {"l2": (l2_point, l2_distance), "kl": (kl_point, kl_distance)}


def _path(p, z, norm, allowed):
    keep = np.asarray(allowed)
    return np.asarray(p, EXACT)[keep], np.asarray(z, EXACT)[keep], *PATHS[norm]


def _highest(function, low, high, rounds=9):
    """max of a unimodal function of `(k,)` numbers: grids of 33, each 16 times closer than the last."""
    low, high, best = EXACT(low), EXACT(high), -np.inf
    for _ in range(rounds):
        x = low + (high - low) * np.linspace(0, 1, 33, dtype=EXACT)
        y = function(x)
        at = int(np.argmax(y))
        best = max(best, y[at])
        low, high = x[max(at - 1, 0)], x[min(at + 1, 32)]
    return best


def distance_to_level(p, z, u, norm, allowed):
    """min d(q, p) with q @ z <= u, by bisection along the path of minimisers; inf below the lowest value."""
    p, z, point, distance = _path(p, z, norm, allowed)
    if p @ z <= u:
        return EXACT(0)
    if u < z.min():
        return EXACT(np.inf)
    low, high = EXACT(-80), EXACT(80)  # logarithms of the path's parameter
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (point(p, z, np.exp([middle])) @ z)[0] > u else (low, middle)
    return distance(point(p, z, np.exp([high])), p)[0]


def level_by_bisection(ps, zs, budget, norm, allowed):
    """min u with sum_a distance_to_level(u) <= budget."""
    low = max(np.asarray(z, EXACT)[ok].min() for z, ok in zip(zs, allowed, strict=True))
    high = max(np.asarray(p, EXACT) @ np.asarray(z, EXACT) for p, z in zip(ps, zs, strict=True))
    for _ in range(60):
        u = (low + high) / 2
        spent = sum(distance_to_level(p, z, u, norm, ok) for p, z, ok in zip(ps, zs, allowed, strict=True))
        low, high = (u, high) if spent > budget else (low, u)
    return float(high)


def policy_by_search(ps, zs, pi, budget, norm, allowed):
    """max over the price mu of a unit of budget of the sum of min_q pi_a q @ z_a + mu d(q, p_a), minus mu budget."""

    def answer(p, z, allowed, price):
        p, z, point, distance = _path(p, z, norm, allowed)

        def negative(log_t):
            q = point(p, z, np.exp(log_t))
            return -(q @ z + price * distance(q, p))

        return min(p @ z, -_highest(negative, -60, 60))

    rows = [(p, z, ok, w) for p, z, ok, w in zip(ps, zs, allowed, pi, strict=True) if w > 0]

    def dual(log_mu):
        return np.array(
            [sum(w * answer(p, z, ok, mu / w) for p, z, ok, w in rows) - mu * budget for mu in np.exp(log_mu)]
        )

    floor = sum(w * np.asarray(z, EXACT)[ok].min() for _, z, ok, w in rows)
    return float(max(floor, _highest(dual, -40, 40, rounds=13)))  # at a kink the error is of first order
