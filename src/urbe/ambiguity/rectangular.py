"""The robust Bellman operator of sets that are rectangular in (s, a): nature answers each action independently.

(T v)(s)    = max_a  min_{q in U(s, a)} sum_s' q(s') [r(s, a, s') + gamma v(s')]
(T_pi v)(s) = sum_a pi(a|s) min_{q in U(s, a)} sum_s' q(s') [r(s, a, s') + gamma v(s')]
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from urbe import checks
from urbe.ambiguity.evidence import over_rows
from urbe.ambiguity.nature import Nature
from urbe.ambiguity.operator import (
    ROUNDING,
    Improvement,
    LinearSystem,
    Memory,
    PolicyOperator,
    PolicyRows,
    StepEvidence,
    StepMoments,
    followed,
    greedy,
    linear_system,
    midrange,
    underflow,
)
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers


class RectangularSet(Protocol):
    """An ambiguity set that chooses each row independently; inherit from it and implement `bind`."""

    @abstractmethod
    def bind(self, mdp: MDP) -> Nature:
        """Checks the set against a model once; kernels do not check again."""

    def operator(self, mdp: MDP) -> RectangularOperator:
        return RectangularOperator(mdp, self, self.bind(mdp))

    def choices(self) -> RectangularSet:
        """Returns the set of all kernels that nature may choose, whether it minimises or maximises."""
        return self


def check_rectangular(name: str, value: object, why: str = "") -> None:
    """Raises unless `value` is a set that chooses each row independently; `why` is the reason, a sentence."""
    bound = callable(getattr(value, "bind", None))
    if callable(getattr(value, "operator", None)) and not bound:
        reason = f": {why}" if why else "."
        raise ValueError(
            f"{name} is {checks.shown(value)}, which is not solved row by row, expected a set that chooses each row "
            f"independently, such as L1Ball(0.5){reason}"
        )
    checks.kind(name, value, bound, "a set that chooses each row on its own, such as L1Ball(0.5)")


@dataclass(frozen=True, eq=False)
class RectangularOperator:
    """T of a model and a set that is rectangular in (s, a).

    Args:
      mdp: the model.
      set: the ambiguity set.
      nature: the set bound to the model.
    """

    mdp: MDP
    set: RectangularSet
    nature: Nature

    modulus = None  # T is monotone

    @property
    def singleton(self) -> bool:
        return self.nature.singleton

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        memory = self.nature.fresh() if memory is None else memory
        middle = midrange(v)
        q = self.nature.values(v - middle, middle, workers, out, memory)
        value, policy = greedy(self.mdp, q)
        return Improvement(value, q, policy, memory)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        return RectangularPolicy(self.mdp, self.nature, policy), None if memory is None else memory[policy.rows]

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's answer, which does not depend on the policy."""
        return self.nature.worst_case(v - midrange(v)).rows

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns the worst cases of all actions, which do not depend on the policy."""
        best = self.improve(v, memory)
        return best.q, best.memory

    def error(self, v: FloatArray) -> float:
        """Bounds the error of one sweep,

            accuracy max |z|  +  gamma |middle| (sum of a row - 1)  +  the final additions,

        for z = r + gamma (v - middle), in exact arithmetic on the model's floating-point numbers.
        """
        rows, gamma = self.nature.rows, self.nature.discount
        middle = midrange(v)
        spread = 0.5 * (float(v.max()) - float(v.min())) if len(v) else 0.0
        entry_reward = rows.largest_reward if rows.rewards_successors else 0.0
        size = rows.largest_reward + gamma * (abs(middle) + spread)
        return 1.01 * (
            self.nature.accuracy * (entry_reward + gamma * spread)
            + gamma * abs(middle) * rows.mass_error
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
        """Nature's answer does not depend on the policy."""
        if memory is None:  # values are useless without the state of their sweep
            memory, q = self.nature.fresh(), None
        middle = midrange(v)
        q, scatter, carried = self.nature.moments(v - middle, middle, u, q, memory)
        value, policy = greedy(self.mdp, q) if policy is None else (policy.average(self.mdp, q), policy)
        return StepMoments(value, q, policy, scatter, carried, memory)

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        return over_rows(self.mdp, self.nature.evidence(kernel), optimal)

    def clock(self) -> RectangularOperator:
        from urbe.ambiguity.optimistic import Optimistic  # which is a rectangular set itself

        own = self.mdp.rows
        ones = Rows(own.n_states, own.entry_start, own.successor, own.probability, np.ones_like(own.reward))
        return Optimistic(self.set.choices()).operator(replace(self.mdp, rows=ones, discount=1.0))


class RectangularPolicy:
    """T_pi of a policy, whose rows are copied into contiguous memory."""

    def __init__(self, mdp: MDP, nature: Nature, policy: PolicyRows) -> None:
        self._n_states = mdp.n_states
        self._policy = policy
        self._nature = nature.take(policy.rows)
        self._states = mdp.row_state[policy.rows]
        self._average = followed(mdp, policy)

    @property
    def entries(self) -> int:
        return self._nature.rows.n_entries

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        memory = self._nature.fresh() if memory is None else memory
        middle = midrange(v)
        return self._average(self._nature.values(v - middle, middle, workers, memory=memory)), memory

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return self._nature.worst_case(v - midrange(v), memory).rows

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        return linear_system(self._n_states, self._states, self._policy, self.kernel(v, memory))
