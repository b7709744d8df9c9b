"""Robust values of small models in high precision, enclosed.

A value function v is improved by Newton's steps on v = T v, and by policy iteration, nature's inside the agent's, where
those do not help; linear systems are solved in decimals.
What is certain does not depend on how v was found: with delta = max |T v - v| and m the largest sum of a row,

    |V* - v| <= delta / (1 - gamma m),

and without discounting |V* - v| <= delta w for any w >= 1 + max q . w, the longest expected time to the end.
"""

from typing import Any, NamedTuple, Protocol

from oracles.high_precision.numbers import D, dot, tolerance

MOST_ROUNDS = 40

VANISHED = D("1e-2000")
"""Values smaller than this, relative to the largest, are taken for zero on the way to the fixed point.

Newton's steps double the exponent of a value that tends to zero, without end, and row problems would follow it.
"""


class Enclosure(NamedTuple):
    """`low[s] <= V(s) <= high[s]`."""

    low: list[D]
    high: list[D]


class Step(NamedTuple):
    """One state of T at v.

    Attributes:
      low, high: enclose (T v)(s).
      gain, onward: reward and `{state: probability}` of the policy and kernel that attain it.
      choice: the policy, in whatever form the problem keeps it.
    """

    low: D
    high: D
    gain: D
    onward: dict[int, D]
    choice: Any


class Problem(Protocol):
    """T of a model: what the iteration needs to know."""

    n_states: int
    discount: D
    mass: D

    def best(self, s: int, v: list[D]) -> Step | None:
        """T v in state s, None where terminal."""

    def follow(self, s: int, v: list[D], choice: Any) -> Step | None:
        """T_pi v in state s for a policy of `best`."""


class Rectangular:
    """T of a model and an (s, a)-rectangular set, or T_pi where a policy is given.

    Args:
      mdp: the model.
      oracle: its set, from `oracle_of`.
      weights: `(R,)` probabilities of rows where the policy is fixed.
    """

    def __init__(self, mdp: Any, oracle: Any, weights: Any = None) -> None:
        self.n_states = mdp.n_states
        self.discount = D(mdp.discount)
        self.oracle = oracle
        self.start = [int(x) for x in mdp.row_start]
        self.paid_once = not mdp.rows.rewards_successors
        self.mass = max([D(1), *(sum(row.p, D(0)) for row in oracle.rows)])
        self.weights = None if weights is None else [D(float(x)) for x in weights]

    def row(self, k: int, v: list[D]) -> Step:
        """Row k at v."""
        row = self.oracle.rows[k]
        z = [self.discount * v[s] for s in row.states]
        if not self.paid_once:
            z = [a + r for a, r in zip(z, row.reward, strict=True)]
        low, high, q = self.oracle.answer(k, z)
        gain = row.reward[0] if self.paid_once else dot(q, row.reward)
        if self.paid_once:
            low, high = low + gain, high + gain
        return Step(low, high, gain, dict(zip(row.states, q, strict=True)), {k: D(1)})

    def best(self, s: int, v: list[D]) -> Step | None:
        """See `Problem`."""
        rows = range(self.start[s], self.start[s + 1])
        if not rows:
            return None
        if self.weights is not None:
            return self.follow(s, v, {k: self.weights[k] for k in rows if self.weights[k]})
        steps = [self.row(k, v) for k in rows]
        winner = max(steps, key=lambda step: step.high)
        return winner._replace(low=max(step.low for step in steps))

    def follow(self, s: int, v: list[D], choice: dict[int, D]) -> Step | None:  # noqa: ARG002
        """See `Problem`; `choice` is `{row: probability}`."""
        low, high, gain, onward = D(0), D(0), D(0), {}
        for k, weight in choice.items():
            step = self.row(k, v)
            low, high, gain = low + weight * step.low, high + weight * step.high, gain + weight * step.gain
            for t, q in step.onward.items():
                onward[t] = onward.get(t, D(0)) + weight * q
        return Step(low, high, gain, onward, choice)


def enclosed(problem: Problem, start: Any = None, duration: D | None = None) -> Enclosure:
    """The fixed point of T, enclosed.

    Args:
      problem: T.
      start: values to begin with, such as a solver's; the closer, the fewer rounds.
      duration: with discount 1, a bound on the expected time to the end under all policies and kernels.
    """
    v = [D(0)] * problem.n_states if start is None else [D(float(x)) for x in start]
    best, error, delta = v, D("Infinity"), D("Infinity")
    for _ in range(MOST_ROUNDS):
        steps = [problem.best(s, v) for s in range(problem.n_states)]
        v = [D(0) if step is None else x for x, step in zip(v, steps, strict=True)]
        before = delta
        delta = max([D(0), *(max(abs(a.low - x), abs(a.high - x)) for a, x in zip(steps, v, strict=True) if a)])
        # rounds go on while they help, and a little beyond: the last ones cost little
        if delta < error:
            best, error, size = v, delta, max(abs(x) for x in v)
        elif error <= size * tolerance() * 100:
            break
        if error <= size * tolerance() * 2:
            break
        v = _solved(problem, steps) if delta * 10 < before else _evaluated(problem, steps, v)
    steps_left = duration if problem.discount == 1 else 1 / (1 - problem.discount * problem.mass)
    radius = error * steps_left
    ends = [step is None for step in steps]
    return Enclosure(
        [D(0) if end else x - radius for x, end in zip(best, ends, strict=True)],
        [D(0) if end else x + radius for x, end in zip(best, ends, strict=True)],
    )


def over_horizon(problem: Problem, horizon: int) -> list[Enclosure]:
    """`[t]` the values with horizon - t decisions left."""
    v, error = [D(0)] * problem.n_states, D(0)
    found = [Enclosure(v, v)]
    for _ in range(horizon):
        steps = [problem.best(s, v) for s in range(problem.n_states)]
        width = max([D(0), *(step.high - step.low for step in steps if step)])
        v = [D(0) if step is None else step.low for step in steps]
        error = problem.discount * problem.mass * error + width
        ends = [step is None for step in steps]
        low = [D(0) if end else x - error for x, end in zip(v, ends, strict=True)]
        high = [D(0) if end else x + error for x, end in zip(v, ends, strict=True)]
        found.insert(0, Enclosure(low, high))
    return found


def _evaluated(problem: Problem, steps: list[Step | None], v: list[D]) -> list[D]:
    """The policy of `steps` against nature, by Newton steps on nature's answer."""
    for _ in range(MOST_ROUNDS):
        new = _solved(problem, steps)
        moved = max(abs(a - b) for a, b in zip(new, v, strict=True))
        v = new
        if moved <= max(abs(x) for x in v) * tolerance() * 10**6:
            break
        steps = [None if step is None else problem.follow(s, v, step.choice) for s, step in enumerate(steps)]
    return v


def _solved(problem: Problem, steps: list[Step | None]) -> list[D]:
    """v = gain + gamma onward v, by elimination: a point to go on from, of which nothing is claimed."""
    n = problem.n_states
    lines = []
    for s, step in enumerate(steps):
        line = [D(int(t == s)) for t in range(n)] + [D(0)]
        if step is not None:
            for t, q in step.onward.items():
                line[t] -= problem.discount * q
            line[n] = step.gain
        lines.append(line)
    for s in range(n):
        pivot = max(range(s, n), key=lambda i: abs(lines[i][s]))
        lines[s], lines[pivot] = lines[pivot], lines[s]
        head = lines[s][s]
        for i in range(s + 1, n):
            factor = lines[i][s] / head
            if factor:
                lines[i] = [a - factor * b if b else a for a, b in zip(lines[i], lines[s], strict=True)]
    v = [D(0)] * n
    for s in range(n - 1, -1, -1):
        v[s] = (lines[s][n] - sum((lines[s][t] * v[t] for t in range(s + 1, n) if lines[s][t]), D(0))) / lines[s][s]
    least = max(abs(x) for x in v) * VANISHED
    return [x if abs(x) > least else D(0) for x in v]
