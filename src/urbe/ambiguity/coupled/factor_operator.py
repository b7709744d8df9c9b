"""The robust Bellman operator of rows that are mixtures of factors: nature answers each factor, the rows mix.

    f_i         = min_{w in W_i} w . v                                one row problem for each factor
    Q(s, a)     = r(s, a) + gamma sum_i u_i(s, a) f_i                 one product with the coefficients
    (T v)(s)    = max_a Q(s, a),      (T_pi v)(s) = sum_a pi(a|s) Q(s, a)

Against a fixed policy, nature faces a decision process whose states are the factors,

    beta_i = min_{w in W_i} sum_s w(s) [r_pi(s) + gamma sum_j u_pi,j(s) beta_j],       V_pi = r_pi + gamma u_pi beta.

Its policy iteration solves r x r systems: solvers get the linear system of a policy as a product of two thin matrices
(`LowRank`), which is never listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from urbe import memory as memory_left
from urbe.ambiguity import evidence as proofs
from urbe.ambiguity.exact import ExactNature
from urbe.ambiguity.nature import Nature
from urbe.ambiguity.operator import (
    ROUNDING,
    Improvement,
    LinearSystem,
    LowRank,
    Memory,
    PolicyRows,
    StepEvidence,
    StepMoments,
    followed,
    greedy,
    linear_system,
    midrange,
    underflow,
)
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers

PRECISE = 1e-13
"""How far rounding of a kernel may move the factors that are estimated from it by least squares."""

DUST = proofs.LARGEST_EXCESS
"""Smaller probabilities of estimated factors are replaced: a divergence magnifies their errors without limit."""

ROUNDED = 1e-6
"""Tolerance for a factor estimated from a rounded kernel to be outside of its set, in the set's own terms."""

UNIQUE = 0.1 * DUST
"""How far a factor may depend on the others in the least-squares problem and still be estimated from a kernel."""

LEAST_SINGULAR = 1e-15
"""Smaller singular values of the coefficients, relative to the largest, count as zero."""


@dataclass(frozen=True, eq=False)
class FactorOperator:
    """T of a model whose rows are mixtures of factors.

    Args:
      mdp: the model; its transition rows are not read.
      mixing: the coefficients u as rows over the factors, with the model's rewards and discount.
      nature: the factors' sets, bound to the factors as rows over the states.
      choices: the same, minimising over all kernels from which nature chooses, to test kernels.
      set: the ambiguity set of each factor.
    """

    mdp: MDP
    mixing: ExactNature
    nature: Nature
    choices: Nature
    set: RectangularSet

    modulus = None  # T is monotone

    @property
    def singleton(self) -> bool:
        """Returns False: otherwise solvers would use the model's own rows instead of those of the set."""
        return False

    def factors(self, v: FloatArray) -> FloatArray:
        """`(r, S)` nature's factors at the state values v."""
        return np.asarray(self.nature.worst_case(v - midrange(v)).rows.matrix().toarray())

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        memory = self.nature.fresh() if memory is None else memory
        middle = midrange(v)
        f = self.nature.values(v - middle, 0.0, workers, memory=memory)
        q = self.mixing.values(f, middle, workers, out)
        value, policy = greedy(self.mdp, q)
        return Improvement(value, q, policy, memory)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[FactorPolicy, Memory]:
        """T_pi and its memory; that of the factors does not depend on the policy."""
        return FactorPolicy(self, policy), None if memory is None else memory.copy()

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's answer, the same for all policies; raises if R x S numbers do not fit into memory."""
        return listed_rows(self.mixing.rows, self.nature.worst_case(v - midrange(v)).rows)

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns the worst cases of all actions, which do not depend on the policy."""
        best = self.improve(v, memory)
        return best.q, best.memory

    def error(self, v: FloatArray) -> float:
        """Bounds the error of the mixed values of factors and of the mixing.

        Coefficients and factors represent distributions: errors of their sums count as rounding.
        """
        gamma, middle = self.mdp.discount, midrange(v)
        spread = 0.5 * (float(v.max()) - float(v.min())) if len(v) else 0.0
        size = self.mdp.rows.largest_reward + gamma * (abs(middle) + spread)
        off = 4.0 * (self.nature.rows.mass_error + self.mixing.rows.mass_error)
        return 1.01 * (
            gamma * (self.nature.accuracy + self.mixing.accuracy + off) * spread
            + 6.0 * ROUNDING * size
            + underflow(size)
        )

    def moments(
        self,
        v: FloatArray,
        u: FloatArray,
        policy: PolicyRows | None = None,
        memory: Memory = None,
        q: FloatArray | None = None,
    ) -> StepMoments:
        """The factors do not move with the model's rows: the scatter is zero."""
        memory = self.nature.fresh() if memory is None else memory
        middle = midrange(v)
        f, _, carried = self.nature.moments(v - middle, 0.0, u, None, memory)
        q = self.mixing.values(f, middle)
        value, policy = greedy(self.mdp, q) if policy is None else (policy.average(self.mdp, q), policy)
        return StepMoments(value, q, policy, np.zeros(len(q)), self.mixing.rows.matrix() @ carried, memory)

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        """Duality bounds each factor from one side, factors found at the values and proven members from the other.

        The kernel must attain the bounds as well. The check that it is a mixture of members only shows that it is
        nature's answer; no bound relies on it.
        """
        n_rows = self.mixing.rows.n_rows
        below = self._mixed(proofs.from_below(self.nature, kernel is not None), -1.0)
        above = self._mixed(proofs.from_above(self.nature, kernel is not None), 1.0)
        excess, failure = (-np.inf, None) if kernel is None else self._membership(kernel)
        if failure is not None:
            above = proofs.unproven(n_rows, 1.0)
        elif kernel is not None:
            answer = proofs.expectation(self.mixing.rows, self.mdp.discount, kernel)
            below, above = proofs.attained(below, answer, -1.0), proofs.attained(above, answer, 1.0)
        bounds = proofs.RowEvidence(above, below, np.full(n_rows, excess), np.zeros(n_rows, dtype=np.bool_))
        return proofs.over_rows(self.mdp, bounds, optimal)._replace(failure=failure)

    def clock(self) -> FactorOperator:
        ones = np.ones(self.mdp.n_rows)
        model = replace(self.mdp, rows=replace(self.mdp.rows, reward=ones), discount=1.0)
        mixing = ExactNature(replace(self.mixing.rows, reward=ones), 1.0)
        bare = self.nature.rows.n_rows
        factors = replace(self.nature.rows, reward=np.zeros(bare))
        longest, listed = Optimistic(self.set.choices()), factor_model(factors)
        return FactorOperator(model, mixing, longest.bind(listed), longest.set.bind(listed), longest)

    def _membership(self, kernel: Rows) -> tuple[float, str | None]:
        """Returns the distance of a kernel from mixtures of members, and a sentence if it is not such a mixture.

        A least-squares problem finds the factors whose mixtures are closest to the kernel and, among those, closest to
        the centre of the set. Some factors cannot be recovered, because of rounding or because they are not unique. If
        such a factor is not a member, the rows that use it are compared with the set instead.
        """
        rows, centre = self.mixing.rows, self.nature.rows
        n_rows, n_factors, n_states = rows.n_rows, centre.n_rows, centre.n_states
        memory_left.require(
            {f"a kernel of {n_rows} rows over {n_states} states": 24.0 * n_rows * n_states},
            "Certify a smaller model.",
        )
        u, listed = rows.matrix().toarray(), kernel.matrix().toarray()
        start = centre.matrix().toarray()
        inverse = np.linalg.pinv(u, rcond=LEAST_SINGULAR)  # says what is unique, but its rounding is that of 1 / u
        w = start + np.linalg.lstsq(u, listed - u @ start, rcond=LEAST_SINGULAR)[0]
        apart = float(np.abs(u @ w - listed).max(initial=0.0))
        if not apart <= proofs.LARGEST_EXCESS:
            return apart, f"nature's kernel differs by {apart:.3g} from mixtures of factors with these coefficients."
        lost = np.abs(w.sum(axis=1) - 1.0) + np.maximum(-w, 0.0).sum(axis=1)
        w = np.where(w < DUST, np.minimum(start, DUST), w)
        total = w.sum(axis=1, keepdims=True)
        w = np.where(total > 0.0, w / np.where(total > 0.0, total, 1.0), start)
        excess = np.maximum(self.choices.excess(Rows.of_matrix(_sparse(w), np.zeros(n_factors))), lost)
        radius = self.choices.ball_radius
        outside = ~(excess <= ROUNDED * np.fmax(1.0, np.nan if radius is None else radius)) | ~(lost <= ROUNDED)
        unique = np.abs(inverse @ u - np.eye(n_factors)).max(axis=1, initial=0.0) <= UNIQUE
        known = unique & (ROUNDING * np.abs(inverse).sum(axis=1) <= PRECISE)
        if (outside & known).any():
            at = int(np.argmax(outside & known))
            many = f"({int(outside.sum())} of {n_factors} factors do)"
            return float(excess[at]), f"nature's factor {at} leaves its set by {excess[at]:.3g} {many}."
        using = (u[:, outside] > 0.0).any(axis=1)
        beyond = self._beyond(u, listed) * using if outside.any() else np.zeros(n_rows)
        largest = max(float(beyond.max(initial=0.0)), float(excess[~outside].max(initial=-np.inf)))
        if (beyond > proofs.LARGEST_EXCESS).any():
            return largest, proofs.refusal(self.mdp, beyond, beyond > proofs.LARGEST_EXCESS)
        return largest, None

    def _beyond(self, u: FloatArray, listed: FloatArray) -> FloatArray:
        """`(R,)` the largest amount by which a state's probability is outside its range over the set."""
        worst = np.zeros(len(u))
        for state in np.flatnonzero(listed.any(axis=0)):
            for side in (1.0, -1.0):
                v = np.zeros(listed.shape[1])
                v[state] = side
                least = u @ np.asarray(self.choices.dual_bound(v), dtype=np.float64)
                worst = np.maximum(worst, least - side * listed[:, state])
        return worst

    def _mixed(self, bound: proofs.RowBound, side: float) -> proofs.RowBound:
        """Mixes bounds on the factors to bounds on the rows, in extended precision."""
        rows, gamma = self.mixing.rows, np.longdouble(self.mdp.discount)
        eps = (rows.longest + 16) * float(np.finfo(np.longdouble).eps)

        def mixed(v: FloatArray) -> proofs.Extended:
            f = bound(v)
            if not np.isfinite(f).all():
                return np.full(rows.n_rows, side * np.inf, dtype=np.longdouble)
            u = rows.probability.astype(np.longdouble)
            mean = proofs.row_sums(rows, u * f[rows.successor]) / proofs.row_sums(rows, u)
            return rows.row_reward + gamma * mean + side * eps * proofs.largest_value(rows, self.mdp.discount, v)

        return mixed


class FactorPolicy:
    """T_pi of a policy, with the coefficients of its rows in contiguous memory."""

    def __init__(self, operator: FactorOperator, policy: PolicyRows) -> None:
        self._mdp, self._nature, self._policy = operator.mdp, operator.nature, policy
        self._mixing = operator.mixing.take(policy.rows)
        self._states = operator.mdp.row_state[policy.rows]
        self._average = followed(operator.mdp, policy)

    @property
    def entries(self) -> int:
        return self._mixing.rows.n_entries + self._nature.rows.n_entries

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        memory = self._nature.fresh() if memory is None else memory
        middle = midrange(v)
        f = self._nature.values(v - middle, 0.0, workers, memory=memory)
        return self._average(self._mixing.values(f, middle, workers)), memory

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return listed_rows(self._mixing.rows, self._answer(v, memory))

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        """Returns the system of the policy, thin if there are fewer factors than states."""
        if self._nature.rows.n_rows >= self._mdp.n_states:
            return linear_system(self._mdp.n_states, self._states, self._policy, self.kernel(v, memory))
        from scipy.sparse import csr_array

        n_taken = len(self._policy.rows)
        shape = (self._mdp.n_states, n_taken)
        choice = csr_array((self._policy.share, (self._states, np.arange(n_taken))), shape=shape)
        mixing, answer = self._mixing.rows, self._answer(v, memory)
        left: Any = mixing.matrix()
        if mixing.is_dense:
            left = mixing.probability.reshape(n_taken, -1)
        return LinearSystem(LowRank(choice @ left, answer.matrix()), choice @ mixing.row_reward)

    def _answer(self, v: FloatArray, memory: Memory) -> Rows:
        return self._nature.worst_case(v - midrange(v), memory).rows


def factor_model(factors: Rows) -> MDP:
    """Builds a model whose actions in one state are the factors, without rewards and without discounting."""
    row_start = np.full(factors.n_states + 1, factors.n_rows, dtype=np.int32)
    row_start[0] = 0
    return MDP(row_start, np.arange(factors.n_rows, dtype=np.int32), factors, 1.0)


def listed_rows(mixing: Rows, factors: Rows) -> Rows:
    """Computes the rows `coefficients @ factors`, over the states; raises if they do not fit into memory."""
    u, w = mixing.matrix(), factors.matrix()
    usual = float(np.mean(mixing.length)) * float(np.mean(factors.length)) if mixing.n_rows else 0.0
    size = mixing.n_rows * min(usual, factors.n_states)
    memory_left.require(
        {f"{mixing.n_rows} rows over {factors.n_states} states": 24.0 * size},
        "Solve without listing them, with FactorSet.model(..., listed=False): values, bounds and policies of a "
        "FactorSet do not need them, and nature's factors are solution.operator.factors(solution.at).",
    )
    return Rows.of_matrix(u @ w, mixing.reward)


def _sparse(array: FloatArray) -> Any:
    from scipy.sparse import csr_array

    return csr_array(array)
