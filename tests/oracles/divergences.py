"""Worst cases over divergence balls in 40-digit decimals: bisection on the optimality condition, or enumeration.

Nothing here is shared with the kernels: KL, likelihood and chi-square solve the primal optimality condition by plain
bisection; L2 tries every support and keeps the best feasible point.
"""

from decimal import Decimal as D
from decimal import getcontext
from itertools import combinations

import numpy as np
import pytest

from oracles.worst_case import one_row_model

getcontext().prec = 40
STEPS = 120


def _decimals(p, z):
    """p rescaled to sum to one exactly, and z; both as decimals."""
    weights = [D(float(x)) for x in p]
    total = sum(weights)
    return [x / total for x in weights], [D(float(x)) for x in z]


def _bisect(too_small, low, high):
    """The point of [low, high] where `too_small` turns false, by halving."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        if too_small(middle):
            low = middle
        else:
            high = middle
    return high


def kl(p, z, radius):
    """min q @ z with sum q log(q / p) <= radius: q proportional to p exp(-beta y), beta by bisection."""
    p, z = _decimals(p, z)
    p, z = zip(*[(a, b) for a, b in zip(p, z, strict=True) if a > 0], strict=True)
    radius, low = D(float(radius)), min(z)
    y = [b - low for b in z]
    lowest = sum(a for a, b in zip(p, y, strict=True) if b == 0)
    if radius >= -lowest.ln() or max(y) == 0:
        return float(low)
    if radius == 0:
        return float(sum(a * b for a, b in zip(p, z, strict=True)))

    def tilted(beta):
        w = [a * (-beta * b).exp() for a, b in zip(p, y, strict=True)]
        return [x / sum(w) for x in w]

    def too_small(beta):
        q = tilted(beta)
        return sum(x * (x / a).ln() for x, a in zip(q, p, strict=True) if x > 0) < radius

    beta = D(1) / max(y)
    while too_small(beta):
        beta *= 16
    q = tilted(_bisect(too_small, D(0), beta))
    return float(low + sum(x * b for x, b in zip(q, y, strict=True)))


def likelihood(p, z, radius, everywhere=False):
    """min q @ z with sum p log(p / q) <= radius; `everywhere` lets mass go to states of probability zero."""
    p, z = _decimals(p, z)
    radius = D(float(radius))
    inside = [(a, b) for a, b in zip(p, z, strict=True) if a > 0]
    low = min(z) if everywhere else min(b for _, b in inside)
    p, y = [a for a, _ in inside], [b - low for _, b in inside]
    # below 1e-34 forty digits say nothing, but the value is within sqrt(2 radius) max y of the mean: 1.5e-17 max y
    if radius < D("1e-34"):
        return float(low + sum(a * b for a, b in zip(p, y, strict=True)))
    if max(y) == 0:
        return float(low)

    def spent(x):
        logs = sum(a * (b + x).ln() for a, b in zip(p, y, strict=True))
        return logs + sum(a / (b + x) for a, b in zip(p, y, strict=True)).ln()

    if min(y) > 0 and radius >= spent(D(0)):
        return float(low + (sum(a * b.ln() for a, b in zip(p, y, strict=True)) - radius).exp())
    x = max(y)
    while spent(x) > radius:
        x *= 16
    bottom = x
    while spent(bottom) < radius:
        bottom /= D(10) ** 6
        if bottom < max(y) * D(10) ** -40:
            return float(low)
    # bisection on log x, since x may be many orders of magnitude below the values
    log_x = _bisect(lambda e: spent(e.exp()) > radius, bottom.ln(), x.ln())
    x = log_x.exp()
    return float(low + 1 / sum(a / (b + x) for a, b in zip(p, y, strict=True)) - x)


def chi2(p, z, radius):
    """min q @ z with sum (q - p)^2 / p <= radius: q proportional to p (eta - z)_+, eta by bisection."""
    p, z = _decimals(p, z)
    p, z = zip(*[(a, b) for a, b in zip(p, z, strict=True) if a > 0], strict=True)
    radius, low = D(float(radius)), min(z)
    if radius == 0:
        return float(sum(a * b for a, b in zip(p, z, strict=True)))
    y = [b - low for b in z]
    lowest = sum(a for a, b in zip(p, y, strict=True) if b == 0)
    if 1 / lowest - 1 <= radius:
        return float(low)

    def shares(eta):
        w = [a * max(eta - b, D(0)) for a, b in zip(p, y, strict=True)]
        return [x / sum(w) for x in w]

    def too_small(eta):  # the divergence falls as eta grows
        return sum((x - a) ** 2 / a for x, a in zip(shares(eta), p, strict=True)) > radius

    eta = max(y)
    while too_small(eta):
        eta *= 16
    q = shares(_bisect(too_small, D(0), eta))
    return float(low + sum(x * b for x, b in zip(q, y, strict=True)))


def l2(p, z, radius, everywhere=False):
    """min q @ z with ||q - p|| <= radius over the simplex: the best feasible stationary point over all supports."""
    p, z = _decimals(p, z)
    if not everywhere:
        p, z = zip(*[(a, b) for a, b in zip(p, z, strict=True) if a > 0], strict=True)
    radius, n = D(float(radius)), len(p)
    best = sum(a * b for a, b in zip(p, z, strict=True))
    for size in range(1, n + 1):
        for support in combinations(range(n), size):
            mean = sum(z[j] for j in support) / size
            rest = 1 - sum(p[j] for j in support)
            out = sum(p[j] ** 2 for j in range(n) if j not in support)
            room = radius**2 - out - rest**2 / size
            if room < 0:
                continue
            level = len({z[j] for j in support}) == 1  # their mean may be rounded
            x = D(0) if level else (room / sum((z[j] - mean) ** 2 for j in support)).sqrt()
            q = [p[j] + rest / size - x * (z[j] - mean) for j in support]
            if min(q) >= 0:
                best = min(best, sum(a * z[j] for a, j in zip(q, support, strict=True)))
    return float(best)


def check_row(ball, p, z, expected, keep_zeros=False):
    """Holds value, memory, minimiser and dual of a one-row model to the `expected` value, at the accuracy claimed."""
    nature = ball.bind(one_row_model(p, keep_zeros=keep_zeros))
    size = max(np.abs(z).max(), 1e-280)  # a row whose values differ by less than 1e-300 is taken to have one value
    before = z.copy()
    for _ in range(3):  # cold, and twice from memory
        assert nature.values(z)[0] == pytest.approx(expected, rel=0, abs=nature.accuracy * size)
    worst = nature.worst_case(z)
    # the minimiser is feasible to 1e-12, and primal values are first order in that
    assert worst.value[0] == pytest.approx(expected, rel=0, abs=1e-11 * size)
    assert nature.excess(worst.rows)[0] <= 1e-12
    bound = nature.dual_bound(z)[0]
    assert bound == pytest.approx(expected, rel=0, abs=1e-10 * size)
    assert bound <= expected + 4e-16 * size
    assert np.array_equal(z, before)


def check_memory(ball, mdp, rng):
    """Sweeps after unrelated values, scales and signs agree with a fresh nature to twice the accuracy claimed."""
    nature = ball.bind(mdp)
    for k in range(8):
        v = rng.integers(-2, 3, size=mdp.n_states).astype(float) if k % 3 == 0 else rng.normal(size=mdp.n_states)
        v *= 10.0 ** rng.integers(-8, 9)
        allowed = 2.0 * nature.accuracy * (mdp.rows.largest_reward + np.abs(v).max())
        first = nature.values(v)
        assert first == pytest.approx(ball.bind(mdp).values(v), rel=0, abs=allowed)
        assert nature.values(v) == pytest.approx(first, rel=0, abs=allowed)
        assert first == pytest.approx(nature.dual_bound(v), rel=0, abs=max(allowed, 1e-10 * np.abs(v).max()))


def check_radius_laws(family, mdp, v, radii):
    """Radius 0 is nominal, values fall as the radius grows, and a huge radius leaves the lowest successor."""
    mean = mdp.rows.expected_reward() + mdp.discount * (mdp.matrix() @ v)
    table = np.array([family(r).bind(mdp).values(v) for r in (0.0, *radii, 1e6)])
    assert table[0] == pytest.approx(mean, rel=0, abs=1e-14 * np.abs(v).max())
    allowed = 2.0 * family(1.0).bind(mdp).accuracy * np.abs(v).max()
    assert (np.diff(table, axis=0) <= allowed).all()
    lowest = np.minimum.reduceat(mdp.discount * v[mdp.rows.successor], mdp.rows.entry_start[:-1])
    assert table[-1] == pytest.approx(mdp.rows.reward + lowest, rel=0, abs=1e-12 * np.abs(v).max())


def sparse_model(rng, n_states=12, n_actions=3, length=5, concentration=0.5, discount=0.9):
    """Rows of `length` random successors each, Dirichlet probabilities, rewards r(s, a)."""
    from urbe.mdp.model import MDP

    transition = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            some = rng.choice(n_states, length, replace=False)
            transition[s, a, some] = rng.dirichlet(np.full(length, concentration))
    return MDP.from_dense(transition, rng.normal(size=(n_states, n_actions)), discount=discount)
