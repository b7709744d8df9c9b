"""Nature with one budget per state: solve the inner problems of states by the compiled loops of a distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.ambiguity.dual_search import highest_of_each
from urbe.ambiguity.entries import on_entries, row_blocks
from urbe.ambiguity.nature import exponent
from urbe.ambiguity.operator import PolicyRows
from urbe.ambiguity.row_nature import with_receiver
from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.shared_budget.evaluate import make_answer, make_evaluate, make_inside, make_sensitivity
from urbe.ambiguity.shared_budget.gather import Hints, Scratch, StateProblem
from urbe.ambiguity.shared_budget.improve import make_improve, make_saddle
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

NOTHING = 2.0**-140
"""Smaller differences of values, relative to the model's largest, count as zero: their squares would underflow."""


class StateKernel(NamedTuple):
    """The compiled loops over states of one distance; see the functions that make them."""

    improve: Callable[..., None]
    saddle: Callable[..., None]
    evaluate: Callable[..., None]
    answer: Callable[..., None]
    inside: Callable[..., None]
    sensitivity: Callable[..., None]


@cache
def state_kernel(distance: Distance) -> StateKernel:
    """Returns the loops of one distance, which are compiled on their first call."""
    makers = (make_improve, make_saddle, make_evaluate, make_answer, make_inside, make_sensitivity)
    return StateKernel(*(make(distance) for make in makers))


class StateValues(NamedTuple):
    """The solutions of the inner problems of all states.

    Attributes:
      value: `(S,)` V, zero where terminal.
      q: `(R,)` value of each action under the kernel that lowers all of them to V.
      weights: `(R,)` an optimal policy.
      upper: `(S,)` the level that nature reaches within its budget; equal to V up to the accuracy.
    """

    value: FloatArray
    q: FloatArray
    weights: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class StateNature:
    """The nature of a model with one budget per state.

    Args:
      distance: the distance's functions of one row.
      mdp: the model.
      rows: rows in which every entry may receive mass.
      budget: `(S,)`.
      everywhere: whether mass may also go to the lowest state outside a row.
    """

    distance: Distance
    mdp: MDP
    rows: Rows
    budget: FloatArray
    everywhere: bool

    @property
    def kernel(self) -> StateKernel:
        """The compiled loops of the distance."""
        return state_kernel(self.distance)

    def fresh(self) -> Hints:
        """Returns a fresh memory for `improve`."""
        return Hints.none(self.mdp.n_states, self.rows.n_rows)

    @property
    def tolerance(self) -> float:
        """Gap, as a multiple of max |z|, at which searches stop; above the rounding of a row's sums."""
        return (self.rows.longest + 32) * 2.0**-51

    @property
    def accuracy(self) -> float:
        """Bound on the error of values as a multiple of max |z|: the searches' gap and the same for rounding."""
        return 2.0 * self.tolerance

    def improve(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, memory: Hints | None = None
    ) -> StateValues:
        """Computes V at the state values `v + shift`, and a policy that attains it; updates `memory` in place."""
        mdp, rows = self.mdp, self.rows
        hints = self.fresh() if memory is None else memory
        states, of_rows = (np.empty(mdp.n_states) for _ in range(2)), (np.empty(rows.n_rows) for _ in range(2))
        out = StateValues(next(states), next(of_rows), next(of_rows), next(states))
        w, constant = mdp.discount * v, mdp.discount * shift
        problem, k = self._problem(rows, mdp.row_start, self.budget, w)

        def task(first: int, last: int) -> None:
            scratch = Scratch.of(rows, mdp.row_start)
            self.kernel.improve(first, last, problem, float(np.ldexp(constant, -k)), hints, scratch, out)

        workers.run(rows.entry_start[mdp.row_start], task)
        if k:
            out = StateValues(np.ldexp(out.value, k), np.ldexp(out.q, k), out.weights, np.ldexp(out.upper, k))
        return out

    def saddle(self, v: FloatArray) -> Rows:
        """Computes a kernel under which no policy exceeds V: every action is lowered to its state's level."""
        mdp, rows = self.mdp, self.rows
        w = mdp.discount * v
        q, sent, scratch = np.empty(rows.n_entries), np.zeros(rows.n_rows), Scratch.of(rows, mdp.row_start)
        problem, k = self._problem(rows, mdp.row_start, self.budget, w)
        hints = self.fresh()
        upper = np.ldexp(self.improve(v, memory=hints).upper, -k)
        self.kernel.saddle(problem, upper, hints, scratch, q, sent)
        self.kernel.inside(mdp.row_start, rows.entry_start, rows.probability, self.budget, q, sent)
        return self._answered(rows, w, q, sent)

    def against(self, policy: PolicyRows) -> PolicyNature:
        """Returns the adversary of one policy."""
        return PolicyNature(self, policy)

    def excess(self, kernel: Rows) -> FloatArray:
        """`(S,)` how far a kernel exceeds the budgets; at most 0 inside the set."""
        (q, stray), spent = on_entries(self.rows, kernel), np.zeros(self.rows.n_rows)
        for some, entries in row_blocks(self.rows):
            own, p = np.column_stack([q[entries], stray[some]]), self.rows.probability[entries]
            own, p = own.astype(np.longdouble), np.column_stack([p, np.zeros(len(p))]).astype(np.longdouble)
            with np.errstate(all="ignore"):
                apart = self.distance.measure(own, p)
            spent[some] = apart + np.maximum(-own.min(axis=1), np.maximum(np.abs(own.sum(axis=1) - 1.0) - 1e-12, 0.0))
        if not self.everywhere:
            spent[stray > 0.0] = np.inf
        return np.bincount(self.mdp.row_state, spent, minlength=self.mdp.n_states) - self.budget

    def policy_bound(self, v: FloatArray, weights: FloatArray) -> NDArray[np.longdouble]:
        """`(S,)` lower bounds on T_pi v by weak duality, from code that shares nothing with `improve`.

            min_{sum_a d(q_a) <= kappa} sum_a pi_a q_a . z_a  >=  sum_a pi_a h_a(mu / pi_a) - mu kappa

        for every price mu >= 0 of the budget, with h_a(price) = min_q q . z_a + price d(q) bounded by
        `Distance.bound`. The right-hand side is concave in mu.

        Args:
          v: `(S,)`.
          weights: `(R,)` the policy's probabilities.
        """
        mdp, w = self.mdp, np.longdouble(self.mdp.discount) * v.astype(np.longdouble)
        out, chosen = np.zeros(mdp.n_states, dtype=np.longdouble), np.flatnonzero(weights > 0.0)
        if not len(chosen):
            return out
        rows, pi, state = self.rows.take(chosen), weights[chosen].astype(np.longdouble), mdp.row_state[chosen]
        states, first, of = np.unique(state, return_index=True, return_inverse=True)
        z = rows.successor_values(w)
        starts = rows.entry_start[:-1]
        low = np.minimum(np.minimum.reduceat(z, starts), w.min() if self.everywhere else np.inf)
        span = np.maximum.reduceat(np.maximum.reduceat(z, starts) - low, first)  # of each state, its unit of values
        unit = np.where(span > 0.0, span, 1.0)[of]
        p = rows.probability.astype(np.longdouble)
        p, y = p / np.add.reduceat(p, starts)[rows.entry_row], (z - low[rows.entry_row]) / unit[rows.entry_row]
        blocks, budget = list(row_blocks(rows)), self.budget[states].astype(np.longdouble)
        sizes = len(states), len(states), len(p), len(p), len(pi)

        def lagrangian(log_mu: Any, budget: Any, p: Any, y: Any, pi: Any) -> Any:
            # one line for each copy of the problem that the search tests at once
            given = (log_mu, budget, p, y, pi)
            log_mu, budget, p, y, pi = (x.reshape(-1, n) for x, n in zip(given, sizes, strict=True))
            mu, h = np.exp(log_mu), np.empty_like(pi)
            price = mu[:, of] / pi
            for some, entries in blocks:
                own, values = (x[:, entries].reshape(-1, entries.shape[1]) for x in (p, y))
                h[:, some] = self.distance.bound(own, values, price[:, some].reshape(-1)).reshape(-1, len(some))
            return (np.add.reduceat(pi * h, first, axis=1) - mu * budget).reshape(-1)

        # above the last price nature stays nominal: it is at most n spans for norms, span / sqrt(8 budget) for KL
        last = np.log(rows.longest) + np.maximum(0.0, -0.5 * np.log(np.where(budget > 0.0, budget, 1.0))) + 2.0
        best = np.fmax(highest_of_each(lagrangian, -50.0, last, budget, p, y, pi), 0.0)
        nominal = np.add.reduceat(pi * np.add.reduceat(p * y, starts), first)
        base = np.add.reduceat(pi * (low + rows.row_reward), first)
        out[states] = base + span * np.where(budget > 0.0, best, nominal)
        return out

    def _problem(self, rows: Rows, row_start: IntArray, budget: FloatArray, w: FloatArray) -> tuple[StateProblem, int]:
        """Returns the loops' inputs, and k: rewards and discounted values are times 2^-k (`urbe.ambiguity.nature`)."""
        k = exponent(w, rows.reward)
        reward = np.ldexp(rows.reward, -k) if k else rows.reward
        w = np.ldexp(w, -k) if k else w
        outside = float(w.min()) if self.everywhere else np.inf
        nothing = NOTHING * (float(np.abs(w).max(initial=0.0)) + float(np.abs(reward).max(initial=0.0)))
        problem = StateProblem(
            row_start, rows.entry_start, rows.successor, rows.probability, reward, rows.rewards_successors, w,
            outside, nothing, budget, self.tolerance,
        )  # fmt: skip
        return problem, k

    def _answered(self, rows: Rows, w: FloatArray, q: FloatArray, sent: FloatArray) -> Rows:
        answer = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        return with_receiver(answer, int(np.argmin(w)), sent) if sent.any() else answer


class Moved(NamedTuple):
    """Nature's answer to a policy, written by the loops.

    Attributes:
      q: `(E,)` probabilities on the entries of the policy's rows.
      sent: `(R,)` the mass sent from each row to the lowest state outside it.
      price: price of each state's budget: 0 if the budget is not fully used, infinite if it is zero.
    """

    q: FloatArray
    sent: FloatArray
    price: FloatArray


class PolicyNature:
    """The adversary of one policy: the joint worst case of its rows in each state."""

    def __init__(self, nature: StateNature, policy: PolicyRows) -> None:
        chosen, state = policy.rows, nature.mdp.row_state[policy.rows]
        first = np.flatnonzero(np.append(True, np.diff(state) != 0)) if len(chosen) else np.zeros(0, dtype=np.int64)
        self.rows = nature.rows.take(chosen)
        self.states = state[first]
        self.row_states = state
        self.weights = policy.share
        self._nature = nature
        self._row_start = np.append(first, len(chosen))
        self._budget = nature.budget[self.states]

    def fresh(self) -> Hints:
        """Returns a fresh memory for `values`."""
        return Hints.none(len(self.states), self.rows.n_rows)

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, memory: Hints | None = None
    ) -> FloatArray:
        """Computes the worst-case value in each of `states`, at the state values `v + shift`; updates `memory`."""
        nature, rows = self._nature, self.rows
        hints = self.fresh() if memory is None else memory
        out, w = np.empty(len(self.states)), nature.mdp.discount * v
        problem, k = self._problem(w)
        constant = float(np.ldexp(nature.mdp.discount * shift, -k))

        def task(first: int, last: int) -> None:
            scratch = Scratch.of(rows, self._row_start)
            nature.kernel.evaluate(first, last, problem, self.weights, constant, hints, scratch, out)

        workers.run(rows.entry_start[self._row_start], task)
        return np.ldexp(out, k) if k else out

    def answer(self, v: FloatArray, memory: Hints | None = None) -> Rows:
        """Computes nature's distributions on the policy's rows, which keep the budgets and attain `values`."""
        moved = self._moved(v, memory)
        return self._nature._answered(self.rows, self._nature.mdp.discount * v, moved.q, moved.sent)

    def sensitivity(self, v: FloatArray) -> tuple[Rows, FloatArray]:
        """Computes nature's answer, and `(E,)` m: values change by sum_a pi_a m_a . dp_a with the centres p_a.

            V = max_mu sum_a pi_a h_a(mu / pi_a) - mu kappa,        h_a(price) = min_q q . z_a + price d(q, p_a)

        is an envelope: only the h_a change with p_a, at the best price mu of the budget.
        """
        nature, rows = self._nature, self.rows
        w = nature.mdp.discount * v
        q, sent, price = self._moved(v, None)
        m, scratch = np.empty(rows.n_entries), Scratch.of(rows, self._row_start)
        problem, k = self._problem(w)
        nature.kernel.sensitivity(problem, self.weights, price, scratch, np.empty(rows.longest), m)
        return nature._answered(rows, w, q, sent), np.ldexp(m, k)

    def _moved(self, v: FloatArray, memory: Hints | None) -> Moved:
        nature, rows = self._nature, self.rows
        hints = self.fresh() if memory is None else memory
        problem, _ = self._problem(nature.mdp.discount * v)
        out = Moved(np.empty(rows.n_entries), np.zeros(rows.n_rows), np.empty(len(self.states)))
        scratch = Scratch.of(rows, self._row_start)
        nature.kernel.answer(problem, self.weights, hints, scratch, np.empty(rows.longest), out)
        nature.kernel.inside(self._row_start, rows.entry_start, rows.probability, self._budget, out.q, out.sent)
        return out

    def _problem(self, w: FloatArray) -> tuple[StateProblem, int]:
        return self._nature._problem(self.rows, self._row_start, self._budget, w)
