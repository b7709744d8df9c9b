"""Budgets shared by the actions of a state: s-rectangular sets.

    U(s) = {(q_a)_a : sum_a d(q_a, pbar(s, a)) <= kappa(s)},      d the distance of a ball

Nature decides knowing the state but not the action, so it is weaker than one with radius kappa on every action, and
optimal policies may have to randomise [Wiesemann2013] [HoPetrikWiesemann2021]. `urbe.ambiguity.levels` states
what each distance brings; its `improve` and `evaluate` state and solve the inner problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe import checks
from urbe.ambiguity.base import AmbiguitySet
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import KERNEL as ANY_KERNEL
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.levels import Distance
from urbe.ambiguity.levels.kl import KL
from urbe.ambiguity.levels.l1 import L1
from urbe.ambiguity.levels.l2 import L2
from urbe.ambiguity.levels.linf import LINF
from urbe.ambiguity.levels.states import StateKernel, state_kernel
from urbe.ambiguity.row_nature import _with_receiver, bind_rows
from urbe.ambiguity.scale import exponent
from urbe.ambiguity.zoom import highest
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray, Support
from urbe.workers import SERIAL, Workers

DISTANCES: dict[type, tuple[Distance, StateKernel]] = {
    L1Ball: (L1, state_kernel(L1)),
    L2Ball: (L2, state_kernel(L2)),
    LInfBall: (LINF, state_kernel(LINF)),
    KLBall: (KL, state_kernel(KL)),
}


NOTHING = 2.0**-140
"""Differences of values, relative to the largest of the model, that count as none: their squares would vanish."""


@dataclass(frozen=True, eq=False)
class SRectangular:
    """U(s) = {(q_a)_a : sum_a d(q_a, pbar(s, a)) <= kappa(s)}: one budget per state.

    Args:
      ball: `L1Ball`, `L2Ball`, `LInfBall` or `KLBall`, for its distance and support. Its `radius` is read as the
        budget kappa: a number, `(S,)`, or `{state: number}` for every state that is not terminal; at least 0.

    >>> import numpy as np, urbe
    >>> mirrored = [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], np.eye(3)[[1, 1]], np.eye(3)[[2, 2]]]
    >>> reward = [[[0, 1, 0], [0, 0, 1]], np.zeros((2, 3)), np.zeros((2, 3))]
    >>> mdp = urbe.MDP.from_dense(mirrored, reward, discount=0.9, terminal=[1, 2])
    >>> solution = urbe.solve(mdp, SRectangular(urbe.L1Ball(1.0)))  # nature can ruin one action, not both
    >>> solution.value[0].round(6), solution.policy[0]
    (np.float64(0.25), array([0.5, 0.5]))
    """

    ball: Any

    def __post_init__(self) -> None:
        names = ", ".join(kind.__name__ for kind in DISTANCES)
        expected = f"one of {names}, such as L1Ball(0.5), whose radius is the budget of a state"
        checks.kind("ball", self.ball, type(self.ball) in DISTANCES, expected)

    def bind(self, mdp: MDP) -> StateNature:
        """Checks the budgets against a model, once; the kernels then trust."""
        ball = self.ball
        checks.one_of("support", ball.support, ("nominal", "all"))
        distance, kernel = DISTANCES[type(ball)]
        support: Support = "nominal" if isinstance(ball, KLBall) else ball.support
        # only the lowest state outside a row receives mass where moving it costs the same everywhere
        bound = bind_rows(ANY_KERNEL, mdp, np.empty(0), support=support, receiver=isinstance(ball, L1Ball))
        return StateNature(distance, kernel, mdp, bound.rows, self.budget(mdp), bound.everywhere)

    def budget(self, mdp: MDP) -> FloatArray:
        """`(S,)` kappa, zero where terminal."""
        given = self.ball.radius
        if isinstance(given, Mapping):
            budget = np.where(mdp.terminal, 0.0, np.nan)
            for state, number in given.items():
                if checks.whole_number("a state of radius", state, 0) >= mdp.n_states:
                    raise ValueError(
                        f"radius names state {state}; the model has the states 0, ..., {mdp.n_states - 1}."
                    )
                budget[state] = number
            if np.isnan(budget).any():
                state = int(np.argmax(np.isnan(budget)))
                raise ValueError(f"radius says nothing for state {state}; give one budget for every state.")
        else:
            array = checks.float_array("radius", given)
            if array.shape not in ((), (mdp.n_states,)):
                raise ValueError(
                    f"radius has shape {array.shape}, expected a number or one budget per state ({mdp.n_states},): "
                    "the actions of a state share it."
                )
            budget = np.array(np.broadcast_to(array, mdp.n_states))
        checks.row_range("radius", budget, 0.0, np.inf, lambda state: f"state {state}")
        return np.where(mdp.terminal, 0.0, budget)

    def relaxed(self, mdp: MDP) -> AmbiguitySet:
        """The smallest (s, a)-rectangular set that contains this one: the whole budget on every action."""
        distance, _ = DISTANCES[type(self.ball)]
        wider: AmbiguitySet = replace(self.ball, radius=np.minimum(self.budget(mdp), distance.largest)[mdp.row_state])
        return wider


class StateValues(NamedTuple):
    """The inner problems of all states solved.

    Attributes:
      value: `(S,)` V, zero where terminal.
      q: `(R,)` value of each action under the kernel that holds all of them to V.
      weights: `(R,)` an optimal policy.
      upper: `(S,)` the level nature reaches within its budget; V up to the accuracy.
    """

    value: FloatArray
    q: FloatArray
    weights: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class StateNature:
    """The adversary of a bound model that has one budget per state.

    Args:
      distance: the distance's functions of one row.
      kernel: its loops over states.
      mdp: the model.
      rows: rows whose every entry may receive mass.
      budget: `(S,)`.
      everywhere: whether mass may also go to the lowest state outside a row.
    """

    distance: Distance
    kernel: StateKernel
    mdp: MDP
    rows: Rows
    budget: FloatArray
    everywhere: bool
    _level_hint: FloatArray = field(init=False)
    _row_hint: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_level_hint", np.full(self.mdp.n_states, np.nan))
        object.__setattr__(self, "_row_hint", np.full(self.rows.n_rows, np.nan))

    @property
    def tolerance(self) -> float:
        """Gap, as a multiple of max |z|, at which searches stop; above the rounding of a row's sums."""
        return (self.rows.longest + 32) * 2.0**-51

    @property
    def accuracy(self) -> float:
        """Bound on the error of values as a multiple of max |z|: the searches' gap and as much for rounding."""
        return 2.0 * self.tolerance

    def improve(self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL) -> StateValues:
        """V at the state values `v + shift`, and a policy that attains it."""
        mdp, rows = self.mdp, self.rows
        value, upper = np.empty(mdp.n_states), np.empty(mdp.n_states)
        q, weights = np.empty(rows.n_rows), np.empty(rows.n_rows)
        w, constant = mdp.discount * v, mdp.discount * shift
        problem, k = self._problem(rows, w)

        def task(first: int, last: int) -> None:
            b = Buffers.of(rows, mdp.row_start)
            self.kernel.improve(
                first, last, mdp.row_start, problem, self.budget, float(np.ldexp(constant, -k)), self.tolerance,
                self._level_hint, self._row_hint, b.masses, b.values, b.at, b.low, b.mean, b.slope, b.work,
                value, upper, q, weights,
            )  # fmt: skip

        workers.run(rows.entry_start[mdp.row_start], task)
        if k:
            value, q, upper = np.ldexp(value, k), np.ldexp(q, k), np.ldexp(upper, k)
        return StateValues(value, q, weights, upper)

    def saddle(self, v: FloatArray) -> Rows:
        """A kernel under which no policy does better than V: every action held to its state's level."""
        mdp, rows = self.mdp, self.rows
        w = mdp.discount * v
        q, sent, b = np.empty(rows.n_entries), np.zeros(rows.n_rows), Buffers.of(rows, mdp.row_start)
        problem, k = self._problem(rows, w)
        self.kernel.saddle(
            0, mdp.n_states, mdp.row_start, problem, np.ldexp(self.improve(v).upper, -k),
            self._row_hint, b.masses, b.values, b.at, b.low, b.mean, b.work, q, sent,
        )  # fmt: skip
        self.kernel.inside(mdp.row_start, rows.entry_start, rows.probability, self.budget, q, sent)
        return self._answered(rows, w, q, sent)

    def against(self, chosen: IntArray, weights: FloatArray) -> PolicyNature:
        """The same adversary facing one policy.

        Args:
          chosen: the rows it takes, increasing.
          weights: their probabilities, positive, summing to one in each state.
        """
        return PolicyNature(self, self.rows.take(chosen), chosen, weights)

    def excess(self, kernel: Rows) -> FloatArray:
        """`(S,)` by how much a kernel exceeds the budgets; at most 0 inside the set. Slow."""
        spent = np.zeros(self.mdp.n_states)
        for row, state in enumerate(self.mdp.row_state):
            p = np.zeros(self.mdp.n_states, dtype=np.longdouble)
            q = np.zeros_like(p)
            for rows, dense in ((self.rows, p), (kernel, q)):
                a, b = rows.entry_start[row : row + 2]
                dense[rows.successor[a:b]] = rows.probability[a:b]
            allowed = np.full(self.mdp.n_states, self.everywhere)
            allowed[self.rows.successor[slice(*self.rows.entry_start[row : row + 2])]] = True
            if (q[~allowed] != 0.0).any():
                spent[state] = np.inf
            spent[state] += self.distance.measure(q, p) + max(-q.min(), abs(q.sum() - 1.0) - 1e-12, 0.0)
        return spent - self.budget

    def policy_bound(self, v: FloatArray, weights: FloatArray) -> NDArray[np.longdouble]:
        """`(S,)` lower bounds on T_pi v by weak duality, from code that shares nothing with `improve`; slow.

            min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  >=  sum_a pi_a h_a(mu / pi_a) - mu kappa

        for every price mu >= 0 of the budget, with h_a(price) = min_q q . z_a + price d(q) bounded by
        `Distance.bound`. The right-hand side is concave in mu.

        Args:
          v: `(S,)`.
          weights: `(R,)` the policy's probabilities.
        """
        mdp, rows, w = self.mdp, self.rows, np.longdouble(self.mdp.discount) * v.astype(np.longdouble)
        outside = w.min() if self.everywhere else np.longdouble(np.inf)
        entry_reward, row_reward = rows.entry_reward, rows.row_reward
        out = np.zeros(mdp.n_states, dtype=np.longdouble)
        for state in np.flatnonzero(~mdp.terminal):
            actions = []
            for row in range(*mdp.row_start[state : state + 2]):
                if weights[row] > 0.0:
                    a, b = rows.entry_start[row : row + 2]
                    p = rows.probability[a:b].astype(np.longdouble)
                    z = w[rows.successor[a:b]] + (0.0 if entry_reward is None else entry_reward[a:b])
                    low = min(z.min(), outside)
                    actions.append((np.longdouble(weights[row]), p / p.sum(), z, low, row_reward[row]))
            out[state] = self._state_bound(actions, float(self.budget[state]))
        return out

    def _state_bound(self, actions: list[tuple[Any, ...]], budget: float) -> Any:
        base = sum(pi * reward for pi, _, _, _, reward in actions)
        nominal = sum(pi * (p @ z) for pi, p, z, _, _ in actions)
        floor = sum(pi * low for pi, _, _, low, _ in actions)
        span = float(max(z.max() - low for _, _, z, low, _ in actions))
        if budget <= 0.0 or span <= 0.0:
            return base + nominal

        def lagrangian(log_mu: Any) -> Any:
            mu = np.exp(log_mu)
            return sum(pi * self.distance.bound(p, z, low, mu / pi) for pi, p, z, low, _ in actions) - mu * budget

        # above the last price nature stays: that of norms is at most n spans, that of KL span / sqrt(8 budget)
        last = np.log(span) + np.log(self.rows.longest) + max(0.0, -0.5 * np.log(budget)) + 2.0
        return base + max(floor, highest(lagrangian, np.log(span) - 50.0, last, rounds=12))

    def _problem(self, rows: Rows, w: FloatArray) -> tuple[tuple[Any, ...], int]:
        """What all loops read, and k: rewards and discounted values are times 2^-k (`urbe.ambiguity.scale`)."""
        k = exponent(w, rows.reward)
        reward = np.ldexp(rows.reward, -k) if k else rows.reward
        w = np.ldexp(w, -k) if k else w
        outside = float(w.min()) if self.everywhere else np.inf
        nothing = NOTHING * (float(np.abs(w).max(initial=0.0)) + float(np.abs(reward).max(initial=0.0)))
        arrays = rows.entry_start, rows.successor, rows.probability, reward, rows.rewards_successors, w
        return (*arrays, outside, nothing), k

    def _answered(self, rows: Rows, w: FloatArray, q: FloatArray, sent: FloatArray) -> Rows:
        answer = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        return _with_receiver(answer, int(np.argmin(w)), sent) if sent.any() else answer


class PolicyNature:
    """The adversary facing one policy: the worst case of its rows together, state by state."""

    def __init__(self, nature: StateNature, rows: Rows, chosen: IntArray, weights: FloatArray) -> None:
        state = nature.mdp.row_state[chosen]
        first = np.flatnonzero(np.append(True, np.diff(state) != 0)) if len(chosen) else np.zeros(0, dtype=np.int64)
        self.rows = rows
        self.states = state[first]
        self.row_states = state
        self.weights = weights
        self._nature = nature
        self._row_start = np.append(first, len(chosen))
        self._budget = nature.budget[self.states]
        self._price_hint = np.full(len(self.states), np.nan)
        self._row_hint = np.full(len(chosen), np.nan)

    def values(self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL) -> FloatArray:
        """The worst-case value in each of `states`, at the state values `v + shift`."""
        nature, rows = self._nature, self.rows
        out, w = np.empty(len(self.states)), nature.mdp.discount * v
        problem, k = nature._problem(rows, w)
        constant = float(np.ldexp(nature.mdp.discount * shift, -k))

        def task(first: int, last: int) -> None:
            b = Buffers.of(rows, self._row_start)
            nature.kernel.evaluate(
                first, last, self._row_start, problem, self.weights, self._budget, constant, nature.tolerance,
                self._price_hint, self._row_hint, b.masses, b.values, b.at, b.low, b.mean, b.work, b.path, out,
            )  # fmt: skip

        workers.run(rows.entry_start[self._row_start], task)
        return np.ldexp(out, k) if k else out

    def answer(self, v: FloatArray) -> Rows:
        """Nature's distributions on the policy's rows: within the budgets, and attaining `values`."""
        nature, rows = self._nature, self.rows
        w, b = nature.mdp.discount * v, Buffers.of(rows, self._row_start)
        q, sent = np.empty(rows.n_entries), np.zeros(rows.n_rows)
        nature.kernel.answer(
            0, len(self.states), self._row_start, nature._problem(rows, w)[0], self.weights, self._budget,
            nature.tolerance, self._price_hint, self._row_hint,
            b.masses, b.values, b.at, b.low, b.mean, b.work, b.path, q, np.empty(rows.longest), sent,
        )  # fmt: skip
        nature.kernel.inside(self._row_start, rows.entry_start, rows.probability, self._budget, q, sent)
        return nature._answered(rows, w, q, sent)


class Buffers(NamedTuple):
    """Scratch for the state with the most rows and the one with the most entries."""

    masses: FloatArray
    values: FloatArray
    at: IntArray
    low: FloatArray
    mean: FloatArray
    slope: FloatArray
    work: FloatArray
    path: FloatArray

    @classmethod
    def of(cls, rows: Rows, row_start: IntArray) -> Buffers:
        """Fresh scratch for rows grouped by `row_start`."""
        n_rows = max(int(np.diff(row_start).max(initial=1)), 1)
        n_entries = max(int(np.diff(rows.entry_start[row_start]).max(initial=1)), 1)
        return cls(
            np.empty(n_entries), np.empty(n_entries), np.zeros(n_rows + 1, dtype=np.int64),
            np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty((4, rows.longest)), np.empty((3, n_rows)),
        )  # fmt: skip
