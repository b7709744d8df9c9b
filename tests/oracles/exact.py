"""Robust values of small models in rational numbers: exact for the given floating-point model.

Floats enter at their exact binary value. A set is a function `answer(p, z) -> q` on one row over all states, where z is
None for states that may not receive mass; q minimises q . z and is found by moving mass greedily. Values come from
policy iteration, nature's inside the agent's, with linear systems solved by elimination over the rationals, until the
robust Bellman equation holds exactly.
"""

from fractions import Fraction

import numpy as np

from oracles.mdp import solve_exactly


def nominal():
    """Nature has no choice."""
    return lambda p, z: list(p)  # noqa: ARG005


def l1(radius):
    """Half the radius moves from the highest successors to the lowest receiver; the row's sum stays what it is."""

    def answer(p, z):
        q = list(p)
        low = _lowest(z)
        left = Fraction(radius) / 2
        for j in sorted((j for j in range(len(p)) if p[j]), key=lambda j: -z[j]):
            if z[j] == z[low]:
                break
            step = min(left, q[j])
            q[j] -= step
            q[low] += step
            left -= step
        return q

    return answer


def contamination(fraction):
    """A fraction of the mass is nature's, and goes to the lowest receiver."""

    def answer(p, z):
        q = [(1 - Fraction(fraction)) * x for x in p]
        q[_lowest(z)] += Fraction(fraction)
        return q

    return answer


def linf(radius):
    """Every probability within `radius` of its own, in [0, 1]; filled from below in the order of z."""

    def answer(p, z):
        allowed = [j for j in range(len(p)) if z[j] is not None]
        lower = {j: max(p[j] - Fraction(radius), Fraction(0)) for j in allowed}
        upper = {j: min(p[j] + Fraction(radius), Fraction(1)) for j in allowed}
        return _fill(len(p), lower, upper, z)

    return answer


def interval(low, high):
    """Every probability of an allowed successor between the same two numbers."""

    def answer(p, z):
        allowed = [j for j in range(len(p)) if z[j] is not None]
        return _fill(len(p), dict.fromkeys(allowed, Fraction(low)), dict.fromkeys(allowed, Fraction(high)), z)

    return answer


def optimistic(answer):
    """The same kernels, chosen to help."""
    return lambda p, z: answer(p, [None if x is None else -x for x in z])


def _lowest(z):
    return min((j for j in range(len(z)) if z[j] is not None), key=lambda j: z[j])


def _fill(n, lower, upper, z):
    q = [lower.get(j, Fraction(0)) for j in range(n)]
    free = 1 - sum(q)
    assert free >= 0
    for j in sorted(lower, key=lambda j: z[j]):
        step = min(free, upper[j] - lower[j])
        q[j] += step
        free -= step
    assert free == 0, "the box holds no distribution"
    return q


class ExactModel:
    """A model's rows over all states, as Fractions, against one set.

    Args:
      mdp: a small model.
      answer: nature's, see above.
      everywhere: whether every state may receive mass, or only those of positive probability. With rewards of
        successors only listed ones may.
    """

    def __init__(self, mdp, answer, *, everywhere=False):
        self.n, self.gamma, self.answer = mdp.n_states, Fraction(mdp.discount), answer
        self.row_start = mdp.row_start.tolist()
        rows = mdp.rows
        self.p, self.r, self.allowed = [], [], []
        for k in range(rows.n_rows):
            p, r, listed = [Fraction(0)] * self.n, [Fraction(0)] * self.n, [False] * self.n
            for e in range(rows.entry_start[k], rows.entry_start[k + 1]):
                j = int(rows.successor[e])
                p[j], listed[j] = Fraction(float(rows.probability[e])), True
                r[j] = Fraction(float(rows.reward[e])) if rows.rewards_successors else Fraction(0)
            if not rows.rewards_successors:
                r = [Fraction(float(rows.reward[k]))] * self.n
            self.p.append(p)
            self.r.append(r)
            may = listed if rows.rewards_successors else [True] * self.n
            self.allowed.append(may if everywhere else [x > 0 for x in p])
        self.by_row = not rows.rewards_successors

    def kernel(self, k, v):
        """Nature's answer to v in row k."""
        z = [self.r[k][j] + self.gamma * v[j] if self.allowed[k][j] else None for j in range(self.n)]
        return self.answer(self.p[k], z)

    def gain(self, k, q):
        """The reward of row k under q; a reward of the pair is paid once, whatever q sums to in floating point."""
        return self.r[k][0] if self.by_row else sum(x * r for x, r in zip(q, self.r[k], strict=True))

    def q(self, k, v):
        """The worst value of row k at v."""
        answer = self.kernel(k, v)
        return self.gain(k, answer) + self.gamma * sum(x * y for x, y in zip(answer, v, strict=True))

    def rows_of(self, s):
        """The rows of a state; none where terminal."""
        return range(self.row_start[s], self.row_start[s + 1])

    def policy_value(self, weights):
        """The worst-case value of the policy that takes row k with probability weights[k]; exact fixed point."""
        weights = [Fraction(float(w)) for w in weights]
        v = [Fraction(0)] * self.n
        while True:
            new = self._frozen_value(weights, v)
            if new == v:
                return v
            v = new

    def _frozen_value(self, weights, v):
        system = []
        for s in range(self.n):
            line = [Fraction(int(t == s)) for t in range(self.n)] + [Fraction(0)]
            for k in self.rows_of(s):
                if weights[k]:
                    q = self.kernel(k, v)
                    for t in range(self.n):
                        line[t] -= weights[k] * self.gamma * q[t]
                    line[-1] += weights[k] * self.gain(k, q)
            system.append(line)
        return solve_exactly(system)

    def optimal_value(self):
        """The fixed point of v = max_a min_q r + gamma q . v, by policy iteration."""
        live = [s for s in range(self.n) if self.rows_of(s)]
        chosen = {s: self.rows_of(s)[0] for s in live}
        while True:
            weights = np.zeros(len(self.p))
            weights[list(chosen.values())] = 1.0
            v = self.policy_value(weights)
            stable = True
            for s in live:
                best = max(self.rows_of(s), key=lambda k, v=v: self.q(k, v))
                if self.q(best, v) > v[s]:
                    chosen[s], stable = best, False
            if stable:
                assert all(v[s] == max(self.q(k, v) for k in self.rows_of(s)) for s in live)
                return v

    def may_last_forever(self):
        """Whether some policy and kernel never end: states that can be kept among themselves, row by row."""
        kept = {s for s in range(self.n) if self.rows_of(s)}
        while True:
            staying = {s for s in kept if any(self._can_stay(k, kept) for k in self.rows_of(s))}
            if staying == kept:
                return bool(kept)
            kept = staying

    def _can_stay(self, k, kept):
        inside = [Fraction(int(j in kept)) if self.allowed[k][j] else None for j in range(self.n)]
        for sign in (1, -1):  # whatever nature's aim
            q = self.answer(self.p[k], [None if x is None else sign * x for x in inside])
            if all(x == 0 for j, x in enumerate(q) if j not in kept):
                return True
        return False

    def horizon_values(self, horizon):
        """`[t][s]` the optimal robust values with `horizon - t` decisions left."""
        values = [[Fraction(0)] * self.n]
        for _ in range(horizon):
            v = values[0]
            values.insert(0, [max((self.q(k, v) for k in self.rows_of(s)), default=Fraction(0)) for s in range(self.n)])
        return values


def assert_bracketed(lower, exact, upper):
    """lower <= exact <= upper in every state, compared as rationals."""
    for s, x in enumerate(exact):
        low, high = Fraction(float(lower[s])), Fraction(float(upper[s]))
        assert low <= x, f"state {s}: lower {float(low)!r} exceeds {float(x)!r} by {float(low - x):.3g}"
        assert x <= high, f"state {s}: upper {float(high)!r} falls short of {float(x)!r} by {float(x - high):.3g}"
