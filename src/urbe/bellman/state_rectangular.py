"""The robust Bellman operator where the actions of a state share nature's budget.

    (T v)(s)    = max_pi min_{q in U(s)} sum_a pi_a sum_s' q_a(s') [r(s, a, s') + gamma v(s')]
    (T_pi v)(s) =        min_{q in U(s)} sum_a pi_a sum_s' q_a(s') [r(s, a, s') + gamma v(s')]

Both are monotone and T(v + c) = T v + gamma c [Wiesemann2013], so that all solvers and bounds apply. As in
`urbe.bellman.operators`, values are computed around the middle of the range of v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.ambiguity.s_rectangular import PolicyNature, StateNature
from urbe.bellman.operators import ROUNDING, Evaluator, Frozen, Improvement, midrange, underflow
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class StateBellman:
    """T for sets rectangular in s; policies are `(R,)` probabilities."""

    mdp: MDP
    nature: StateNature

    def improve(self, v: FloatArray, workers: Workers = SERIAL, q: FloatArray | None = None) -> Improvement:
        """See `Bellman`; q are the values of the actions under a kernel that is optimal for nature."""
        middle = midrange(v)
        value, q, weights, _ = self.nature.improve(v - middle, middle, workers)
        return Improvement(value, q, weights)

    def policy(self, weights: IntArray | FloatArray) -> Evaluator:
        """See `Bellman`."""
        return StateEvaluator(self.mdp, self.nature.against(*_taken(weights)))

    def kernel(self, v: FloatArray, weights: IntArray | FloatArray) -> Rows:
        """See `Bellman`; the answer to an optimal policy is one that leaves no better policy (a saddle point).

        Otherwise, rows the policy does not take keep their nominal distribution.
        """
        centred = v - midrange(v)
        chosen, probabilities = _taken(weights)
        facing = self.nature.against(chosen, probabilities)
        best = self.nature.improve(centred).value[facing.states]
        if (facing.values(centred) >= best - 4.0 * self.error(v)).all():
            return self.nature.saddle(centred)
        return _in_place(self.nature.rows, chosen, facing.answer(centred))

    def error(self, v: FloatArray) -> float:
        """See `Bellman`: as `rounding_error`, but rewards take part in the comparison of actions."""
        rows, gamma = self.nature.rows, self.mdp.discount
        middle = midrange(v)
        size = rows.largest_reward + gamma * 0.5 * (float(v.max()) - float(v.min()) if len(v) else 0.0)
        whole = size + gamma * abs(middle)
        actions = int(np.diff(self.mdp.row_start).max(initial=0))
        # rows are taken as if the mass missing from one stood at the lowest successor
        return 1.01 * (
            (self.nature.accuracy + 2.0 * actions * ROUNDING) * size
            + whole * (rows.mass_error + 6.0 * ROUNDING)
            + underflow(whole)
        )


class StateEvaluator:
    """T_pi against nature with one budget per state."""

    def __init__(self, mdp: MDP, facing: PolicyNature) -> None:
        self._mdp = mdp
        self._facing = facing

    @property
    def entries(self) -> int:
        """See `Evaluator`."""
        return self._facing.rows.n_entries

    def apply(self, v: FloatArray, workers: Workers = SERIAL) -> FloatArray:
        """See `Evaluator`."""
        middle = midrange(v)
        out = np.zeros(self._mdp.n_states)
        out[self._facing.states] = self._facing.values(v - middle, middle, workers)
        return out

    def freeze(self, v: FloatArray) -> Frozen:
        """See `Evaluator`."""
        from scipy.sparse import csr_array

        n, facing = self._mdp.n_states, self._facing
        rows = facing.answer(v - midrange(v))
        answers = csr_array((rows.probability, rows.successor, rows.entry_start), shape=(rows.n_rows, n))
        choice = csr_array((facing.weights, (facing.row_states, np.arange(rows.n_rows))), shape=(n, rows.n_rows))
        return Frozen(choice @ answers, choice @ rows.expected_reward())


def _taken(weights: IntArray | FloatArray) -> tuple[IntArray, FloatArray]:
    """The rows a policy takes and their probabilities."""
    if np.issubdtype(weights.dtype, np.floating):
        taken = np.flatnonzero(weights > 0.0)
        return taken, np.ascontiguousarray(weights[taken])
    rows: IntArray = weights[weights >= 0]  # type: ignore[assignment]
    return rows, np.ones(len(rows))


def _in_place(rows: Rows, chosen: IntArray, answer: Rows) -> Rows:
    """`rows` with those of `chosen` replaced by `answer`, which may list other successors."""
    length = np.array(rows.length)
    length[chosen] = answer.length
    entry_start = np.zeros_like(rows.entry_start)
    np.cumsum(length, out=entry_start[1:])
    successor = np.empty(entry_start[-1], dtype=rows.successor.dtype)
    probability = np.empty(len(successor))
    kept = np.setdiff1d(np.arange(rows.n_rows), chosen)
    out = Rows(rows.n_states, entry_start, successor, probability, rows.reward)
    for here, source in ((out.entries_of(chosen), answer), (out.entries_of(kept), rows.take(kept))):
        successor[here] = source.successor
        probability[here] = source.probability
    return out
