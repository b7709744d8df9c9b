"""The Bellman operator: the interface of ambiguity sets to solvers, certificates and variances.

    (T v)(s)    = max_pi min_{P in U} sum_a pi(a|s) sum_s' P(s'|s, a) [r(s, a, s') + gamma v(s')]
    (T_pi v)(s) =        min_{P in U} sum_a pi(a|s) sum_s' P(s'|s, a) [r(s, a, s') + gamma v(s')]

Both must be monotone, with T(v + c) = T v + gamma c at non-terminal states: every certified bound relies on these two
facts [Iyengar2005] [NilimElGhaoui2005], or else on the `modulus` of a contraction. An ambiguity set is a description,
such as `L1Ball(0.5)`; its `operator` checks it against a model once and returns T. Sets that choose each row
independently need no operator of their own: see `urbe.ambiguity.rectangular`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from urbe import checks
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 2.0**-53

UNDERFLOW = 2.0**-1060
"""Some thousand times the smallest positive double."""

Memory = Any
"""The warm start that a sweep leaves for the next one; None if there is none.

Only the operator that returned a memory can read it. Passing a memory consumes it: the operator may overwrite and
return it.
"""


class PolicyRows(NamedTuple):
    """A stationary policy in the form of operators.

    Attributes:
      rows: the rows of positive probability, in increasing order.
      probability: probability of each of `rows`; None if every non-terminal state takes exactly one row.
    """

    rows: IntArray
    probability: FloatArray | None = None

    @property
    def share(self) -> FloatArray:
        """The probability of each of `rows`, ones if the policy is deterministic."""
        return np.ones(len(self.rows)) if self.probability is None else self.probability

    @classmethod
    def of_weights(cls, weights: FloatArray) -> PolicyRows:
        """Makes the policy that takes each row of the model with probability `weights`, `(R,)`."""
        rows = np.flatnonzero(weights > 0.0)
        return cls(rows, np.ascontiguousarray(weights[rows]))

    def weights(self, n_rows: int) -> FloatArray:
        """`(R,)` the probability with which each row of the model is taken."""
        out = np.zeros(n_rows)
        out[self.rows] = self.share
        return out

    def average(self, mdp: MDP, x: FloatArray, power: int = 1) -> FloatArray:
        """`(S,)` sum_a pi(a|s)^power x(s, a) of `(R,)` numbers; zero where terminal."""
        if self.probability is None:
            out = np.zeros(mdp.n_states)
            out[mdp.row_state[self.rows]] = x[self.rows]
            return out
        states = mdp.row_state[self.rows]
        weighted = self.probability**power * x[self.rows]
        return np.bincount(states, weighted, minlength=mdp.n_states).astype(np.float64, copy=False)

    def actions(self, mdp: MDP) -> IntArray | FloatArray:
        """Converts the policy to `(S,)` action ids, -1 where terminal, or `(S, A)` probabilities."""
        if self.probability is not None:
            return mdp.by_action(self.weights(mdp.n_rows), fill=0.0)
        out = np.full(mdp.n_states, -1, dtype=mdp.action.dtype)
        out[mdp.row_state[self.rows]] = mdp.action[self.rows]
        return out


RowValues = TypeVar("RowValues", bound=FloatArray | None, covariant=True)


class Improvement(NamedTuple, Generic[RowValues]):
    """One application of T.

    Attributes:
      value: `(S,)` T v.
      q: `(R,)` the value of each row; None if only one policy was evaluated.
      policy: a policy that attains T v.
      memory: memory of the sweep.
    """

    value: FloatArray
    q: RowValues
    policy: PolicyRows
    memory: Memory


class LowRank(NamedTuple):
    """An `(S, S)` matrix stored as a product of thin ones, left @ right.

    Attributes:
      left: `(S, r)`, an array or a SciPy sparse one.
      right: `(r, S)`, the same.
    """

    left: Any
    right: Any


class LinearSystem(NamedTuple):
    """The linear system of a fixed policy and nature's fixed answer: v = reward + discount * matrix @ v."""

    matrix: csr_array | LowRank
    reward: FloatArray

    def among(self, states: IntArray) -> LinearSystem:
        """Restricts the system to some states."""
        if isinstance(self.matrix, LowRank):
            thin = LowRank(self.matrix.left[states], self.matrix.right[:, states])
            return LinearSystem(thin, self.reward[states])
        return LinearSystem(self.matrix[states][:, states], self.reward[states])

    def listed(self) -> csr_array:
        """Returns the matrix as a sparse array."""
        from scipy.sparse import csr_array

        return csr_array(self.matrix.left @ self.matrix.right) if isinstance(self.matrix, LowRank) else self.matrix


class StepMoments(NamedTuple):
    """One application of T or T_pi, with what the posterior variance of its value needs.

    Attributes:
      value: `(S,)` T v, or T_pi v of a given policy.
      q: `(R,)` the value of each row.
      policy: the given policy, or one that attains T v.
      scatter: `(R,)` sum_j p_j (m_j - p . m)^2, where nature's answer to the policy changes by pi(a|s) m . dp when the
        centre p of the row (s, a) moves by dp.
      carried: `(R,)` sum_j q_j u(s'_j), with q nature's answer and u the variances of the successors.
      memory: memory of the sweep.
    """

    value: FloatArray
    q: FloatArray
    policy: PolicyRows
    scatter: FloatArray
    carried: FloatArray
    memory: Memory


StepBound = Callable[[FloatArray, PolicyRows], "NDArray[np.longdouble] | FloatArray"]
ActionBound = Callable[[FloatArray], "NDArray[np.longdouble] | FloatArray"]


class StepEvidence(NamedTuple):
    """Bounds on one step backwards by code that shares nothing with the sweeps, for certificates.

    Attributes:
      above: `(v, policy) -> (S,)` upper bound on T v, or on T_pi v for a given policy.
      below: `(v, policy) -> (S,)` lower bound on T_pi v.
      excess: largest distance of nature's kernel outside the set, at most 0 inside.
      failure: a sentence if the kernel is invalid, else None.
      rows: bounds on the value of each action, `v -> (R,)`, below and above: of its own worst case, or under the given
        kernel where nature's answer to an action depends on the policy.
    """

    above: StepBound
    below: StepBound
    excess: float
    failure: str | None
    rows: tuple[ActionBound, ActionBound]


class PolicyOperator(Protocol):
    """T_pi of one policy."""

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        """Returns `(S,)` T_pi v and the memory of the sweep."""

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        """Returns nature's answer at v on the policy's rows."""

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        """Returns the `(S, S)` system of the policy against nature's answer at v."""

    @property
    def entries(self) -> int:
        """Number of entries that one application reads; its cost."""


class Iterated(Protocol):
    """The part of an operator that iteration to a fixed point needs."""

    @property
    def mdp(self) -> MDP:
        """The model."""

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray | None]:
        """Computes T v and a policy that attains it; the values of rows may be written into `out`."""

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        """Returns T_pi and the memory of the policy's rows; `memory`, of a sweep over all rows, stays valid."""

    def error(self, v: FloatArray) -> float:
        """Bounds the rounding error of T v, in every state."""


class Operator(Iterated, Protocol):
    """T of one model and one set."""

    @property
    def singleton(self) -> bool:
        """Whether nature has no choice: the set contains only the model."""

    @property
    def modulus(self) -> float | None:
        """L < 1 if T is not monotone, but a contraction: |T v - T w| <= L max |v - w|; None if T is monotone."""

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        """Computes T v, a policy that attains it, and the values of all rows."""

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's answer at v to a policy, on all rows.

        If the policy is optimal at v, it is also optimal against this answer (a saddle point).
        """

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns `(R,)` the values of all actions at v, and the memory of the sweep if there was one.

        Where nature's answer to an action depends on the policy, they are the values under `kernel(at, policy)`;
        otherwise each action has its own worst case.
        """

    def moments(
        self,
        v: FloatArray,
        u: FloatArray,
        policy: PolicyRows | None = None,
        memory: Memory = None,
        q: FloatArray | None = None,
    ) -> StepMoments:
        """Computes the terms of the variance equations at v, for `(S,)` variances u of the states.

        Args:
          v, u: `(S,)`.
          policy: the policy; None takes one that attains T v.
          memory: memory of an earlier sweep.
          q: `(R,)` values of a sweep at the same v that returned `memory`; may save a sweep.
        """

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        """Bounds for a certificate.

        Args:
          kernel: nature's answer, rejected if it is outside the set. None uses only duality; the bound that needs the
            kernel is then infinite.
          optimal: whether `above` must hold for every policy, rather than for its argument.
        """

    def clock(self) -> Operator:
        """Returns T of the longest time to termination: reward 1, no discount, policy and nature both maximise.

        Its fixed point bounds the expected time to termination under every policy and every kernel of the set.
        """


class AmbiguitySet(Protocol):
    """The kernels from which nature may choose, relative to the model's own kernel."""

    def operator(self, mdp: MDP) -> Operator:
        """Checks the set against a model, once, and returns its Bellman operator."""


def check_set(name: str, value: object) -> None:
    """Raises TypeError unless `value` is an ambiguity set."""
    if callable(getattr(value, "bind", None)) and not hasattr(value, "operator"):
        raise TypeError(
            f"{name} is {checks.shown(value)}, which has bind but no operator; let its class inherit from "
            "urbe.RectangularSet."
        )
    number = value if isinstance(value, float | int) and not isinstance(value, bool) else 0.5
    checks.kind(name, value, callable(getattr(value, "operator", None)), f"an ambiguity set such as L1Ball({number!r})")


def midrange(v: FloatArray) -> float:
    """The middle of the range of v.

    Values are computed at v minus the midrange and shifted back, so that rounding grows with the spread of v, not its
    size.
    """
    return 0.5 * (float(v.min()) + float(v.max())) if len(v) else 0.0


def underflow(size: float) -> float:
    """Bounds the underflow error of products and sums; zero if all values are zero."""
    return UNDERFLOW if size > 0.0 else 0.0


def greedy(mdp: MDP, q: FloatArray) -> tuple[FloatArray, PolicyRows]:
    """Returns `(S,)` the largest q of each state, zero where terminal, and the policy that takes the first such row."""
    value = np.zeros(mdp.n_states)
    rows = np.empty(mdp.n_states, dtype=mdp.row_start.dtype)
    _greedy(mdp.row_start, q, value, rows)
    return value, PolicyRows(rows[rows >= 0] if mdp.terminal.any() else rows)


def followed(mdp: MDP, policy: PolicyRows) -> Callable[[FloatArray], FloatArray]:
    """From values of the rows a policy takes to `(S,)` their mean in each state, zero where terminal."""
    states = mdp.row_state[policy.rows]
    first = np.flatnonzero(np.append(True, np.diff(states) != 0)) if len(states) else policy.rows

    def average(q: FloatArray) -> FloatArray:
        if policy.probability is not None and len(q):
            q = np.add.reduceat(policy.probability * q, first)
        if len(first) == mdp.n_states:
            return q
        out = np.zeros(mdp.n_states)
        out[states[first]] = q
        return out

    return average


def linear_system(n_states: int, states: IntArray, policy: PolicyRows, answer: Rows) -> LinearSystem:
    """Builds the system of a policy whose rows belong to `states`, against nature's `answer` on them."""
    from scipy.sparse import csr_array

    if policy.probability is None:  # one row per non-terminal state, in order
        first = np.searchsorted(states, np.arange(n_states + 1))
        entries = (answer.probability, answer.successor, answer.entry_start[first])
        reward = np.zeros(n_states)
        reward[states] = answer.expected_reward()
        return LinearSystem(csr_array(entries, shape=(n_states, n_states)), reward)
    answers = csr_array((answer.probability, answer.successor, answer.entry_start), shape=(answer.n_rows, n_states))
    choice = csr_array((policy.probability, (states, np.arange(answer.n_rows))), shape=(n_states, answer.n_rows))
    return LinearSystem(choice @ answers, choice @ answer.expected_reward())


@njit(cache=True, nogil=True)
def _greedy(row_start, q, value, rows):
    """Writes the largest q of each state and its first row; states without rows keep their value."""
    for s in range(len(rows)):
        rows[s] = -1
        for row in range(row_start[s], row_start[s + 1]):
            if rows[s] < 0 or q[row] > value[s]:
                value[s] = q[row]
                rows[s] = row
