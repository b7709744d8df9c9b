"""Budgets shared by the actions of a state, in high precision.

    max_pi min {sum_a pi_a q_a . z_a : sum_a d(q_a, p_a) <= kappa}  =  min {V : sum_a r_a(V) <= kappa}

with r_a the curve of row a (`curves`). The lines of the curves at a level V bound the value from below: with slopes s_a
and F = sum_a r_a(V) - kappa, the policy pi ~ s earns at least V + F / sum_a s_a. For a given policy the price lam of
the budget is sought instead, at which the rows with slopes pi_a / lam spend it.
"""

from typing import Any

import urbe
from oracles.high_precision import curves
from oracles.high_precision.bellman import Step
from oracles.high_precision.numbers import D, dot, exp, extra_digits, ln, precise, rescaled, root, tolerance
from oracles.high_precision.sets import Row, rows_of

CURVES: dict[type, Any] = {
    urbe.L1Ball: curves.L1,
    urbe.L2Ball: curves.L2,
    urbe.LInfBall: curves.LInf,
    urbe.KLBall: curves.Kl,
}

NEGLIGIBLE = D(10) ** -90
"""Budgets below are taken as zero, and the value widened by what they could move."""


class SharedOracle:
    """The rows and budgets of an s-rectangular set."""

    def __init__(self, mdp: Any, set_: Any) -> None:
        ball = set_.ball
        self.kind = type(ball)
        with precise():
            support = "nominal" if self.kind is urbe.KLBall else ball.support
            self.rows: list[Row] = [row._replace(p=rescaled(row.p)) for row in rows_of(mdp, support)]
            self.start = [int(x) for x in mdp.row_start]
            self.budget = [D(float(x)) for x in set_.budget(mdp)]

    def excess(self, s: int, q: list[list[D]]) -> D:
        """By how much the rows of state s together exceed the budget."""
        spent = D(0)
        for k in range(self.start[s], self.start[s + 1]):
            simplex = max(abs(sum(q[k], D(0)) - 1) - D("1e-12"), -min(q[k]), D(0))
            spent += simplex + self._distance(q[k], self.rows[k].p)
        return spent - self.budget[s]

    def _distance(self, q: list[D], p: list[D]) -> D:
        apart = [abs(a - b) for a, b in zip(q, p, strict=True)]
        if self.kind is urbe.L1Ball:
            return sum(apart, D(0))
        if self.kind is urbe.LInfBall:
            return max(apart)
        if self.kind is urbe.L2Ball:
            return sum((x * x for x in apart), D(0)).sqrt()
        return sum((a * (ln(a) - ln(b)) for a, b in zip(q, p, strict=True) if a), D(0))


class Shared:
    """T of an s-rectangular set, or T_pi where a policy is given; see `bellman.Problem`."""

    def __init__(self, mdp: Any, oracle: SharedOracle, weights: Any = None) -> None:
        self.n_states = mdp.n_states
        self.discount = D(mdp.discount)
        self.mass = D(1)
        self.oracle = oracle
        self.paid_once = not mdp.rows.rewards_successors
        self.weights = None if weights is None else [D(float(x)) for x in weights]

    def best(self, s: int, v: list[D]) -> Step | None:
        """See `Problem`."""
        rows = range(self.oracle.start[s], self.oracle.start[s + 1])
        if not rows:
            return None
        if self.weights is not None:
            return self.follow(s, v, {k: self.weights[k] for k in rows if self.weights[k]})
        z = {k: self._values(k, v) for k in rows}
        kappa = self.oracle.budget[s]
        with precise(extra_digits(kappa) if kappa > NEGLIGIBLE else 0):
            low, high, weights, q = _improved(
                {k: self.oracle.rows[k].p for k in rows}, z, kappa, CURVES[self.oracle.kind]
            )
        return self._step(low, high, weights, q)

    def follow(self, s: int, v: list[D], choice: dict[int, D]) -> Step | None:
        """See `Problem`; `choice` is `{row: probability}`."""
        z = {k: self._values(k, v) for k in choice}
        kappa = self.oracle.budget[s]
        with precise(extra_digits(kappa) if kappa > NEGLIGIBLE else 0):
            low, high, q = _evaluated(
                {k: self.oracle.rows[k].p for k in choice}, z, choice, kappa, CURVES[self.oracle.kind]
            )
        return self._step(low, high, choice, q)

    def _values(self, k: int, v: list[D]) -> list[D]:
        row = self.oracle.rows[k]
        return [r + self.discount * v[s] for r, s in zip(row.reward, row.states, strict=True)]

    def _step(self, low: D, high: D, weights: dict[int, D], q: dict[int, list[D]]) -> Step:
        gain, onward = D(0), {}
        for k, weight in weights.items():
            row = self.oracle.rows[k]
            gain += weight * dot(q[k], row.reward)
            for t, x in zip(row.states, q[k], strict=True):
                onward[t] = onward.get(t, D(0)) + weight * x
        return Step(low, high, gain, onward, weights)


def _heights(z: list[D], unit: D) -> tuple[D, list[D]]:
    low = min(z)
    return low / unit, [(x - low) / unit for x in z]


def improved(p: dict, z: dict, kappa: D, curve: Any) -> tuple[D, D, dict, dict]:
    """`(low, high, policy, kernel)` of max_pi min_q, for rows and values by action."""
    with precise(extra_digits(kappa) if kappa > NEGLIGIBLE else 0):
        return _improved(p, z, kappa, curve)


def evaluated(p: dict, z: dict, weights: dict, kappa: D, curve: Any) -> tuple[D, D, dict]:
    """`(low, high, kernel)` of min_q for a policy, `{action: probability}`."""
    with precise(extra_digits(kappa) if kappa > NEGLIGIBLE else 0):
        return _evaluated(p, z, weights, kappa, curve)


def _improved(p: dict, z: dict, kappa: D, curve: Any) -> tuple[D, D, dict, dict]:
    unit = max(abs(x) for values in z.values() for x in values)
    if not unit:
        return D(0), D(0), {next(iter(p)): D(1)}, p
    p = {k: rescaled(row) for k, row in p.items()}  # to all digits: a sum off by more than the budget spends it
    floor, curve_of, mean = {}, {}, {}
    for k in p:
        floor[k], y = _heights(z[k], unit)
        mean[k] = floor[k] + dot(p[k], y)
        if any(y):
            curve_of[k] = curve(p[k], y)
    top, bottom = max(mean.values()), max(floor.values())
    slack = tolerance() / 100
    best, sure = max(mean, key=lambda k: mean[k]), max(floor, key=lambda k: floor[k])
    if top - bottom <= slack:  # nature cannot lower the action whose lowest value is highest
        return unit * (bottom - slack), unit * (top + slack), {sure: D(1)}, p
    if kappa <= NEGLIGIBLE:  # moves no value by more than 1e-44 of the range
        return unit * (top - 4 * kappa.sqrt() - slack), unit * (top + slack), {best: D(1)}, p

    def points(level: D) -> dict:
        found = {}
        for k, c in curve_of.items():
            if level - floor[k] < c.mean:
                if level <= floor[k]:
                    found[k] = curves.Point(D(0), c.reach, D(0), c.floor)
                else:
                    found[k] = c.at_level(level - floor[k])
        return found

    if sum((point.r for point in points(bottom).values()), D(0)) <= kappa:
        q = {k: points(bottom)[k].q if k in points(bottom) else p[k] for k in p}
        return unit * (bottom - slack), unit * (bottom + slack), {sure: D(1)}, q

    def spare(level: D) -> tuple[D, D]:
        here = points(level).values()
        return kappa - sum((point.r for point in here), D(0)), sum((point.slope for point in here), D(0))

    low, high = root(spare, bottom, top)
    here = points(low if low > bottom else (low + high) / 2)
    slopes = sum((point.slope for point in here.values()), D(0))
    level = low if low > bottom else (low + high) / 2
    short = sum((point.r for point in here.values()), D(0)) - kappa
    weights = {k: point.slope / slopes for k, point in here.items()}
    bound = level + short / slopes
    inside = points(high)
    q = {k: inside[k].q if k in inside else p[k] for k in p}
    return unit * (bound - slack), unit * (high + slack), weights, q


def _evaluated(p: dict, z: dict, weights: dict, kappa: D, curve: Any) -> tuple[D, D, dict]:
    unit = max(abs(x) for values in z.values() for x in values)
    if not unit:
        return D(0), D(0), p
    p = {k: rescaled(row) for k, row in p.items()}
    floor, curve_of = {}, {}
    total, mean = D(0), D(0)
    for k in p:
        floor[k], y = _heights(z[k], unit)
        total += weights[k] * floor[k]
        mean += weights[k] * dot(p[k], y)
        if any(y):
            curve_of[k] = curve(p[k], y)
    slack = tolerance() / 100
    if mean <= slack:
        return unit * (total - slack), unit * (total + mean + slack), p
    if kappa <= NEGLIGIBLE:
        return unit * (total + mean - 4 * kappa.sqrt() - slack), unit * (total + mean + slack), p
    if sum((c.reach for c in curve_of.values()), D(0)) <= kappa:
        q = {k: curve_of[k].floor if k in curve_of else p[k] for k in p}
        return unit * (total - slack), unit * (total + slack), q

    def points(price: D) -> dict:
        return {k: c.at_slope(weights[k] / price) for k, c in curve_of.items()}

    def spare(log_price: D) -> tuple[D, D]:
        here = points(exp(log_price)).values()
        return kappa - sum((x.r for x in here), D(0)), sum((x.bend for x in here), D(0))

    low, high = D(-1), D(1)
    while spare(low)[0] > 0:
        low -= 2 * (high - low)
    while spare(high)[0] < 0:
        high += 2 * (high - low)
        assert high < 10**7, "the budget is spent at any price"
    jumps = [ln(weights[k] / slope) for k, c in curve_of.items() for slope in c.jumps]
    low, high = root(spare, *_between_jumps(spare, low, high, jumps))
    costly, cheap = points(exp(low)), points(exp(high))
    spent, left = (sum((x.r for x in group.values()), D(0)) for group in (costly, cheap))
    share = D(0) if spent <= left else min(D(1), (kappa - left) / (spent - left))
    q = {}
    for k in p:
        q[k] = p[k]
        if k in curve_of:
            q[k] = [share * a + (1 - share) * b for a, b in zip(costly[k].q, cheap[k].q, strict=True)]
    value = sum((weights[k] * (share * costly[k].c + (1 - share) * cheap[k].c) for k in curve_of), D(0))
    price = exp(high)
    dual = sum((weights[k] * x.c + price * x.r for k, x in cheap.items()), D(0)) - price * kappa
    return unit * (total + dual - slack), unit * (total + value + slack), q


def _between_jumps(function, low: D, high: D, jumps: list[D]) -> tuple[D, D]:
    """The part of a bracket in which the function is continuous, or the two sides of the jump over its root."""
    jumps = sorted(jumps)
    while inside := [t for t in jumps if low < t < high]:
        t = inside[len(inside) // 2]
        aside = tolerance() / 400 * max(D(1), abs(t))
        if function(t - aside)[0] > 0:
            high = t - aside
        elif function(t + aside)[0] < 0:
            low = t + aside
        else:
            return t - aside, t + aside
    return low, high
