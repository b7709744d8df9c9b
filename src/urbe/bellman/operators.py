"""Robust Bellman operators: what solvers iterate.

    (T v)(s)    = max_a  min_{q in U(s, a)} sum_s' q(s') [r(s, a, s') + gamma v(s')]
    (T_pi v)(s) = sum_a pi(a|s) min_{q in U(s, a)} sum_s' q(s') [r(s, a, s') + gamma v(s')]

Both are monotone and T(v + c) = T v + gamma c away from terminal states [Iyengar2005] [NilimElGhaoui2005]. Values are
computed at v minus the middle of its range and shifted back, so that rounding grows with the spread of v, not its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, cast

import numpy as np
from numba import njit

from urbe.ambiguity.base import Nature
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 2.0**-53

UNDERFLOW = 2.0**-1060
"""Some thousand times the smallest number."""


class Improvement(NamedTuple):
    """One application of T.

    Attributes:
      value: `(S,)` T v.
      q: `(R,)` the value of each row.
      weights: the greedy policy: `(S,)` its row in each state (-1 where terminal), or `(R,)` probabilities.
    """

    value: FloatArray
    q: FloatArray
    weights: IntArray | FloatArray


class Frozen(NamedTuple):
    """A policy and nature's answer to it, both held fixed: v = reward + discount * matrix @ v."""

    matrix: csr_array
    reward: FloatArray


class Evaluator(Protocol):
    """T_pi of one policy."""

    def apply(self, v: FloatArray, workers: Workers = SERIAL) -> FloatArray:
        """`(S,)` T_pi v."""

    def freeze(self, v: FloatArray) -> Frozen:
        """The `(S, S)` linear system of the policy against nature's answer to v."""

    @property
    def entries(self) -> int:
        """Entries one application reads; its cost."""


class Bellman(Protocol):
    """T of one model and one nature."""

    @property
    def mdp(self) -> MDP:
        """The model."""

    def improve(self, v: FloatArray, workers: Workers = SERIAL, q: FloatArray | None = None) -> Improvement:
        """T v and the policy that attains it; the values of rows may be written into `q`."""

    def policy(self, weights: IntArray | FloatArray) -> Evaluator:
        """T_pi for the policy of an `Improvement`."""

    def kernel(self, v: FloatArray, weights: IntArray | FloatArray) -> Rows:
        """Nature's answer at v to a policy, on all rows."""

    def error(self, v: FloatArray) -> float:
        """Bound on the rounding error of T v, in every state."""


@dataclass(frozen=True, eq=False)
class RectangularBellman:
    """T for sets rectangular in (s, a): nature answers each action on its own."""

    mdp: MDP
    nature: Nature

    def improve(self, v: FloatArray, workers: Workers = SERIAL, q: FloatArray | None = None) -> Improvement:
        """See `Bellman`."""
        middle = midrange(v)
        q = self.nature.values(v - middle, middle, workers, q)
        value, rows = greedy(self.mdp, q)
        return Improvement(value, q, rows)

    def policy(self, weights: IntArray | FloatArray) -> Evaluator:
        """See `Bellman`."""
        return RectangularEvaluator(self.mdp, self.nature, *_weighted_rows(weights))

    def kernel(self, v: FloatArray, weights: IntArray | FloatArray) -> Rows:  # noqa: ARG002
        """See `Bellman`; the answer does not depend on the policy."""
        return self.nature.worst_case(v - midrange(v)).rows

    def error(self, v: FloatArray) -> float:
        """See `Bellman`."""
        return rounding_error(self.nature, v)


class RectangularEvaluator:
    """T_pi of rows and their weights; the rows are copied together, so that a sweep reads memory in order."""

    def __init__(self, mdp: MDP, nature: Nature, rows: IntArray, weights: FloatArray | None) -> None:
        self._mdp = mdp
        self._weights = weights
        self._nature = nature.take(rows)
        self._states = mdp.row_state[rows]
        self._first = np.flatnonzero(np.append(True, np.diff(self._states) != 0)) if len(rows) else rows

    @property
    def entries(self) -> int:
        """See `Evaluator`."""
        return self._nature.rows.n_entries

    def apply(self, v: FloatArray, workers: Workers = SERIAL) -> FloatArray:
        """See `Evaluator`."""
        middle = midrange(v)
        q = self._nature.values(v - middle, middle, workers)
        if self._weights is not None:
            q = np.add.reduceat(self._weights * q, self._first)
        if len(self._first) == self._mdp.n_states:
            return q
        out = np.zeros(self._mdp.n_states)
        out[self._states[self._first]] = q
        return out

    def freeze(self, v: FloatArray) -> Frozen:
        """See `Evaluator`."""
        from scipy.sparse import csr_array

        rows = self._nature.worst_case(v - midrange(v)).rows
        n = self._mdp.n_states
        if self._weights is None:  # one row per state that is not terminal, in their order
            first = np.searchsorted(self._states, np.arange(n + 1))
            matrix = csr_array((rows.probability, rows.successor, rows.entry_start[first]), shape=(n, n))
            reward = np.zeros(n)
            reward[self._states] = rows.expected_reward()
            return Frozen(matrix, reward)
        answers = csr_array((rows.probability, rows.successor, rows.entry_start), shape=(rows.n_rows, n))
        choice = csr_array((self._weights, (self._states, np.arange(rows.n_rows))), shape=(n, rows.n_rows))
        return Frozen(choice @ answers, choice @ rows.expected_reward())


@dataclass(frozen=True, eq=False)
class FixedPolicyBellman:
    """T_pi in the place of T, for evaluating a given policy with the same solvers."""

    bellman: Bellman
    weights: IntArray | FloatArray

    @property
    def mdp(self) -> MDP:
        """See `Bellman`."""
        return self.bellman.mdp

    @cached_property
    def _evaluator(self) -> Evaluator:
        return self.bellman.policy(self.weights)

    def improve(self, v: FloatArray, workers: Workers = SERIAL, q: FloatArray | None = None) -> Improvement:  # noqa: ARG002
        """See `Bellman`."""
        return Improvement(self._evaluator.apply(v, workers), np.empty(0), self.weights)

    def policy(self, weights: IntArray | FloatArray) -> Evaluator:  # noqa: ARG002  there is only one
        """See `Bellman`."""
        return self._evaluator

    def kernel(self, v: FloatArray, weights: IntArray | FloatArray) -> Rows:
        """See `Bellman`."""
        return self.bellman.kernel(v, weights)

    def error(self, v: FloatArray) -> float:
        """See `Bellman`: a weighted mean of rows adds one more sum."""
        n_actions = self.mdp.n_actions if is_randomised(self.weights) else 0
        size = self.mdp.rows.largest_reward + float(np.abs(v).max(initial=0.0))
        return self.bellman.error(v) + 2.0 * n_actions * ROUNDING * size


def greedy(mdp: MDP, q: FloatArray) -> tuple[FloatArray, IntArray]:
    """`(S,)` the largest q of each state and its first row; zero and -1 where terminal."""
    value = np.zeros(mdp.n_states)
    rows = np.empty(mdp.n_states, dtype=mdp.row_start.dtype)
    _greedy(mdp.row_start, q, value, rows)
    return value, rows


def is_randomised(weights: IntArray | FloatArray) -> TypeGuard[FloatArray]:
    """Whether a policy is `(R,)` probabilities of rows, rather than `(S,)` rows."""
    return np.issubdtype(weights.dtype, np.floating)


def midrange(v: FloatArray) -> float:
    """The middle of the range of v."""
    return 0.5 * (float(v.min()) + float(v.max())) if len(v) else 0.0


def underflow(size: float) -> float:
    """What products and sums next to the smallest number lose at most; nothing where all values are zero."""
    return UNDERFLOW if size > 0.0 else 0.0


def rounding_error(nature: Nature, v: FloatArray) -> float:
    """Bound on the error of `nature.values` at v when computed around the middle of v's range.

        accuracy max |z|  +  gamma |middle| (sum of a row - 1)  +  the final additions,

    for z = r + gamma (v - middle), in exact arithmetic on the model's floating-point numbers.
    """
    rows, gamma = nature.rows, nature.discount
    middle = midrange(v)
    spread = 0.5 * (float(v.max()) - float(v.min())) if len(v) else 0.0
    entry_reward = rows.largest_reward if rows.rewards_successors else 0.0
    size = rows.largest_reward + gamma * (abs(middle) + spread)
    return 1.01 * (
        nature.accuracy * (entry_reward + gamma * spread)
        + gamma * abs(middle) * rows.mass_error
        + 6.0 * ROUNDING * size
        + underflow(size)
    )


def _weighted_rows(weights: IntArray | FloatArray) -> tuple[IntArray, FloatArray | None]:
    if is_randomised(weights):
        positive = np.flatnonzero(weights > 0.0)
        return positive, weights[positive]
    return cast(IntArray, weights[weights >= 0]), None


@njit(cache=True, nogil=True)
def _greedy(row_start, q, value, rows):  # type: ignore[no-untyped-def]
    """The largest q of each state and its first row; states without rows keep their value."""
    for s in range(len(rows)):
        rows[s] = -1
        for row in range(row_start[s], row_start[s + 1]):
            if rows[s] < 0 or q[row] > value[s]:
                value[s] = q[row]
                rows[s] = row
