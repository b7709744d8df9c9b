"""The robust Bellman operator of rows that are mixtures of factors: nature answers each factor, the rows mix.

    f_i         = min_{w in W_i} w . v                                one row problem for each factor
    Q(s, a)     = r(s, a) + gamma sum_i u_i(s, a) f_i                 one product with the coefficients
    (T v)(s)    = max_a Q(s, a),      (T_pi v)(s) = sum_a pi(a|s) Q(s, a)

Against a fixed policy nature has a decision process of its own, whose states are the factors,

    beta_i = min_{w in W_i} sum_s w(s) [r_pi(s) + gamma sum_j u_pi,j(s) beta_j],       V_pi = r_pi + gamma u_pi beta.

Its policy iteration solves r x r systems: the linear system of a policy is handed to solvers as a product of two thin
matrices (`LowRank`), and never listed.
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
    Evidence,
    Improvement,
    LinearSystem,
    LowRank,
    Memory,
    Moments,
    PolicyRows,
    greedy,
    linear_system,
    midrange,
    underflow,
)
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows, index_type
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers

DUST = 1e-13
"""Probabilities below this, of factors read off a kernel by least squares, are rounding."""


@dataclass(frozen=True, eq=False)
class FactorOperator:
    """T of a model whose rows are mixtures of factors.

    Args:
      mdp: the model; its transition rows are not read.
      mixing: the coefficients u as rows over the factors, with the model's rewards and discount.
      nature: the factors' sets, bound to the factors as rows over the states.
      set: what nature may do with a factor.
    """

    mdp: MDP
    mixing: ExactNature
    nature: Nature
    set: RectangularSet

    @property
    def singleton(self) -> bool:
        """Never: solvers would take the model's own rows for those of the set."""
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
        """What is known of the factors is known whatever the policy."""
        return FactorPolicy(self, policy), None if memory is None else memory.copy()

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:  # noqa: ARG002
        """The answer does not depend on the policy; refused where R x S numbers do not fit into memory."""
        return listed_rows(self.mixing.rows, self.nature.worst_case(v - midrange(v)).rows)

    def error(self, v: FloatArray) -> float:
        """The error of the factors' values, mixed, and of the mixing.

        Coefficients and factors stand for distributions: what they are short of one by counts as rounding.
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
    ) -> Moments:
        """The factors do not move with the model's rows: the scatter is zero."""
        memory = self.nature.fresh() if memory is None else memory
        middle = midrange(v)
        f, _, carried = self.nature.moments(v - middle, 0.0, u, None, memory)
        q = self.mixing.values(f, middle)
        value, policy = greedy(self.mdp, q) if policy is None else (policy.average(self.mdp, q), policy)
        return Moments(value, q, policy, np.zeros(len(q)), self.mixing.rows.matrix() @ carried, memory)

    def evidence(self, kernel: Rows | None, optimal: bool) -> Evidence:
        """Factors are read off the kernel and proven to lie in their sets; duality bounds each from below.

        Any factors inside the sets bound T from above. That the kernel is a mixture of the ones found says that it is
        nature's answer, and nothing else rests on it.
        """
        factors, apart = (None, 0.0) if kernel is None else self._unmixed(kernel)
        found = self.nature.evidence(factors)
        bounds = proofs.RowEvidence(
            self._mixed(found.above, 1.0), self._mixed(found.below, -1.0), found.excess, found.outside
        )
        stated = proofs.over_rows(self.mdp, bounds._replace(outside=np.zeros(0, dtype=np.bool_)), optimal)
        if apart > proofs.LARGEST_EXCESS:
            failure = f"nature's kernel is no mixture of factors with these coefficients: it is {apart:.3g} off."
            return stated._replace(excess=max(stated.excess, apart), failure=failure)
        if found.outside.any():
            at = int(np.argmax(found.outside))
            return stated._replace(
                failure=f"nature's factor {at} leaves its set by {found.excess[at]:.3g} "
                f"({int(found.outside.sum())} of {len(found.outside)} factors do)."
            )
        return stated

    def clock(self) -> FactorOperator:
        ones = np.ones(self.mdp.n_rows)
        model = replace(self.mdp, rows=replace(self.mdp.rows, reward=ones), discount=1.0)
        mixing = ExactNature(replace(self.mixing.rows, reward=ones), 1.0)
        bare = self.nature.rows.n_rows
        factors = replace(self.nature.rows, reward=np.zeros(bare))
        longest = Optimistic(self.set.choices())
        return FactorOperator(model, mixing, longest.bind(factor_model(factors)), longest)

    def _unmixed(self, kernel: Rows) -> tuple[Rows, float]:
        """Factors whose mixtures come closest to a kernel, nearest to the centre of the set, and how close they come.

        min ||u w - P||, solved for w - centre, which is zero for factors that no row uses.
        """
        rows, centre = self.mixing.rows, self.nature.rows
        n_rows, n_factors, n_states = rows.n_rows, centre.n_rows, centre.n_states
        memory_left.require(
            {f"a kernel of {n_rows} rows over {n_states} states": 24.0 * n_rows * n_states},
            "Certify a smaller model.",
        )
        u, listed = rows.matrix().toarray(), kernel.matrix().toarray()
        start = centre.matrix().toarray()
        moved, *_ = np.linalg.lstsq(u, listed - u @ start, rcond=None)
        w = start + moved
        w[w < DUST] = 0.0
        total = w.sum(axis=1, keepdims=True)
        w /= np.where(total > 0.0, total, 1.0)
        apart = float(np.abs(u @ w - listed).max(initial=0.0))
        if not (total > 0.0).all():
            return centre, np.inf
        return _rows_of(_sparse(w), np.zeros(n_factors)), apart

    def _mixed(self, bound: proofs.RowBound, side: float) -> proofs.RowBound:
        """Bounds on the rows from bounds on the factors, in extended precision."""
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
    """T_pi: the coefficients of a policy's rows are copied together."""

    def __init__(self, operator: FactorOperator, policy: PolicyRows) -> None:
        self._mdp, self._nature, self._policy = operator.mdp, operator.nature, policy
        self._mixing = operator.mixing.take(policy.rows)
        self._states = operator.mdp.row_state[policy.rows]
        self._first = np.flatnonzero(np.append(True, np.diff(self._states) != 0)) if len(policy.rows) else policy.rows

    @property
    def entries(self) -> int:
        return self._mixing.rows.n_entries + self._nature.rows.n_entries

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        memory = self._nature.fresh() if memory is None else memory
        middle = midrange(v)
        f = self._nature.values(v - middle, 0.0, workers, memory=memory)
        q = self._mixing.values(f, middle, workers)
        if self._policy.probability is not None:
            q = np.add.reduceat(self._policy.probability * q, self._first) if len(q) else q
        if len(self._first) == self._mdp.n_states:
            return q, memory
        out = np.zeros(self._mdp.n_states)
        out[self._states[self._first]] = q
        return out, memory

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return listed_rows(self._mixing.rows, self._answer(v, memory))

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        """Thin where there are fewer factors than states."""
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
    """The factors as the actions of one state, without rewards and without discounting."""
    row_start = np.full(factors.n_states + 1, factors.n_rows, dtype=np.int32)
    row_start[0] = 0
    return MDP(row_start, np.arange(factors.n_rows, dtype=np.int32), factors, 1.0)


def listed_rows(mixing: Rows, factors: Rows) -> Rows:
    """The rows `coefficients @ factors`, over the states; refused where they do not fit into memory."""
    u, w = mixing.matrix(), factors.matrix()
    usual = float(np.mean(mixing.length)) * float(np.mean(factors.length)) if mixing.n_rows else 0.0
    size = mixing.n_rows * min(usual, factors.n_states)
    memory_left.require(
        {f"{mixing.n_rows} rows over {factors.n_states} states": 24.0 * size},
        "Solve without listing them: values, bounds and policies of a FactorSet do not need them, and nature's factors "
        "are solution.operator.factors(solution.at).",
    )
    return _rows_of(u @ w, mixing.reward)


def _sparse(array: FloatArray) -> Any:
    from scipy.sparse import csr_array

    return csr_array(array)


def _rows_of(matrix: Any, reward: FloatArray) -> Rows:
    matrix.sort_indices()
    start = matrix.indptr.astype(index_type(matrix.nnz))
    return Rows(matrix.shape[1], start, matrix.indices.astype(np.int32, copy=False), matrix.data, reward)
