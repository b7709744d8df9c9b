"""Factor-matrix (r-rectangular) sets: all rows are mixtures of a few common factors, and nature chooses the factors.

    P(s, a) = sum_i u_i(s, a) w_i,        w_i in W_i,  independently for each i        [GoyalGrandClement2023]

Pairs that share a factor depend on the same choice of it. One w_i is the worst for all of them at once, so that

    (T v)(s) = max_a  r(s, a) + gamma sum_i u_i(s, a) min_{w in W_i} w . v

is monotone and T(v + c) = T v + gamma c: deterministic policies are optimal, and max min = min max. A sweep solves r
row problems and mixes their values, whereas a rectangular set solves one problem for each pair.

The set must be the product of the W_i: sets that couple factors are NP-hard to solve in general, and are rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.ambiguity.coupled.factor_operator import FactorOperator, factor_model, listed_rows
from urbe.ambiguity.exact import ExactNature
from urbe.ambiguity.nature import Nature
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.rectangular import RectangularSet, check_rectangular
from urbe.mdp.build import from_transitions
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import Rows, index_type
from urbe.mdp.terminal import terminal_ids
from urbe.types import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TOLERANCE = 1e-9
"""Tolerance for sums of coefficients or of a factor, which are rescaled to one."""


@dataclass(frozen=True, eq=False)
class FactorSet:
    """U = {P : P(s, a) = sum_i u_i(s, a) w_i,  w_i in W_i}: factors shared by all pairs, chosen independently.

    Pairs, rewards r(s, a) and discount are the model's. Its transition rows are not used: the centre of the set is
    `coefficients @ factors`, which `nominal` puts in their place.

    Args:
      coefficients: u, `(R, r)` for the pairs of the model in their order, `(S, A, r)`, or `(R, r)` as a SciPy sparse
        array. At least 0, each row summing to one.
      factors: w, `(r, S)` or the same as a SciPy sparse array. At least 0, each row summing to one.
      set: W_i for all i: any set that chooses each row independently, such as `L1Ball(0.2)`. Parameters per row are
        `(r,)`, one for each factor. With `Optimistic(L1Ball(0.2))` nature maximises.

    >>> import numpy as np, urbe
    >>> share = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    >>> both = urbe.FactorSet(share, [[0.8, 0.2], [0.3, 0.7]], urbe.L1Ball(0.2))
    >>> mdp = both.model([[0.0, 0.2], [1.0, 0.5]], discount=0.9)
    >>> solution = urbe.solve(mdp, both)
    >>> solution.value.round(6), solution.policy
    (array([5.251613, 6.283871]), array([1, 0], dtype=int32))
    """

    coefficients: Any
    factors: Any
    set: RectangularSet

    def __post_init__(self) -> None:
        check_rectangular("set", self.set, "with factors that depend on each other the problem is NP-hard.")

    def operator(self, mdp: MDP) -> FactorOperator:
        check_model("mdp", mdp)
        if mdp.rows.rewards_successors:
            raise ValueError(
                "The rewards of the model depend on the successor, so no choice of a factor is the worst for all "
                "pairs at once. Use rewards r(s, a): MDP.with_rows(...) with expected rewards."
            )
        factors = self._factor_rows()
        if factors.n_states != mdp.n_states:
            raise ValueError(
                f"factors has {factors.n_states} columns, expected one for each of {mdp.n_states} states of the model."
            )
        mixing = self._mixing(mdp, factors.n_rows)
        return FactorOperator(mdp, mixing, _bound(self.set, factors), _bound(self.set.choices(), factors), self.set)

    def helping(self, mdp: MDP) -> FactorSet:
        """Returns the set whose nature chooses every factor in favour of the agent."""
        return self if isinstance(self.set, Optimistic) else replace(self, set=Optimistic(self.set))

    def nominal(self, mdp: MDP) -> MDP:
        """Returns `mdp` with the transition rows `coefficients @ factors`; raises if these do not fit into memory."""
        check_model("mdp", mdp)
        factors = self._factor_rows()
        return mdp.with_rows(listed_rows(self._mixing(mdp, factors.n_rows).rows, factors))

    def model(
        self,
        reward: ArrayLike,
        *,
        discount: float,
        terminal: ArrayLike = (),
        initial: ArrayLike | None = None,
        listed: bool = True,
    ) -> MDP:
        """Builds the model of these factors.

        Args:
          reward: `(S, A)`.
          discount: in [0, 1].
          terminal: ids of terminal states.
          initial: `(S,)` distribution of the first state.
          listed: whether to store the rows `coefficients @ factors`, R x S numbers. If they do not fit into memory, use
            False: every row then stays in its state, and only the pairs and rewards of the model are meaningful. Use it
            only with sets that have their own kernels, like this one.
        """
        r = checks.float_array("reward", reward, ndim=2)
        n_states = self._factor_rows().n_states
        if len(r) != n_states:
            raise ValueError(f"reward has {len(r)} rows, expected one for each of {n_states} states of the factors.")
        state, action = (x.ravel() for x in np.indices(r.shape))
        live = ~np.isin(state, terminal_ids(terminal, n_states))
        state, action = state[live], action[live]
        pairs = from_transitions(
            state, action, state, np.ones(len(state)), r.ravel()[live],
            discount=discount, n_states=n_states, terminal=terminal, initial=initial,
        )  # fmt: skip
        return self.nominal(pairs) if listed else pairs

    def _factor_rows(self) -> Rows:
        """Returns the factors as rows over the states, without rewards."""
        w = _sparse_or_dense("factors", self.factors)
        return _rows("factors", w, np.zeros(w.shape[0]), "factor {}".format, keep_zeros=False)

    def _mixing(self, mdp: MDP, n_factors: int) -> ExactNature:
        """Returns the coefficients as rows over the factors, with the model's rewards and discount."""
        u = _sparse_or_dense("coefficients", self.coefficients)
        if u.ndim == 3 and u.shape[:2] == (mdp.n_states, mdp.n_actions):
            u = u[mdp.row_state, mdp.action]
        if u.shape != (mdp.n_rows, n_factors):
            raise ValueError(
                f"coefficients has shape {u.shape}, expected one row for each pair of the model and one column for "
                f"each factor: ({mdp.n_rows}, {n_factors}), or ({mdp.n_states}, {mdp.n_actions}, {n_factors})."
            )
        memory.require(
            {f"coefficients of {n_factors} factors in {mdp.n_rows} rows": 12.0 * (u.nnz if _is_sparse(u) else u.size)},
            "Use fewer factors, or give coefficients as a SciPy sparse array.",
        )
        rows = _rows("coefficients", u, mdp.rows.row_reward, mdp.row_name, keep_zeros=True)
        return ExactNature(rows, mdp.discount)


def _bound(a_set: RectangularSet, factors: Rows) -> Nature:
    """Binds the set to the factors."""
    try:
        return a_set.bind(factor_model(factors))
    except ValueError as error:
        raise ValueError(
            f"set does not fit the {factors.n_rows} factors (below, factor i is state 0, action i): {error}"
        ) from None


def _is_sparse(array: Any) -> bool:
    return hasattr(array, "tocsr")


def _sparse_or_dense(name: str, array: Any) -> Any:
    """Converts to a CSR array or a float array of two dimensions (coefficients may have three)."""
    if _is_sparse(array):
        out: csr_array = array.tocsr().astype(np.float64)
        out.sum_duplicates()
        out.eliminate_zeros()
        checks.finite(f"{name}.data", out.data)
        return out
    dense = checks.float_array(name, array)
    if dense.ndim != 2 and not (name == "coefficients" and dense.ndim == 3):
        raise ValueError(f"{name} has shape {dense.shape}, expected two dimensions.")
    return dense


def _rows(name: str, array: Any, reward: FloatArray, row_name: Any, *, keep_zeros: bool) -> Rows:
    """Converts distributions to rows; with `keep_zeros`, dense ones keep all entries, which makes products faster."""
    n_rows, n_columns = array.shape
    if not _is_sparse(array) and (keep_zeros or array.all()):
        start = np.arange(0, n_rows * n_columns + 1, max(n_columns, 1), dtype=index_type(array.size))
        successor = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
        probability = array.ravel()
    else:
        from scipy.sparse import csr_array

        sparse = csr_array(array)
        start = sparse.indptr.astype(index_type(sparse.nnz))
        successor, probability = sparse.indices.astype(np.int32, copy=False), sparse.data
    length = np.diff(start)
    if (length == 0).any():
        at = int(np.argmax(length == 0))
        raise ValueError(f"{name} of {row_name(at)} are all zero, expected numbers that sum to 1.")
    checks.non_negative(name, probability if _is_sparse(array) else array)
    total = np.add.reduceat(probability, start[:-1])
    wrong = ~(np.abs(total - 1.0) <= TOLERANCE)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"{name} of {row_name(at)} sum to {total[at]:.12g}, expected 1. "
            f"{checks.some(int(wrong.sum()), n_rows, 'row', 'rows')} not a distribution; divide each row by its sum."
        )
    if (np.abs(total - 1.0) > length * 2.0**-52).any():
        probability = probability / np.repeat(total, length)
    return Rows(n_columns, start, successor, np.ascontiguousarray(probability), np.ascontiguousarray(reward))
