"""T_pi in the place of T: the loop that finds the best policy then evaluates a given one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from urbe.ambiguity.operator import ROUNDING, Improvement, Memory, Operator, PolicyOperator, PolicyRows
from urbe.mdp.model import MDP
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class FixedPolicy:
    """An operator with a single policy to choose from; see `Iterated`.

    Args:
      operator: T.
      policy: the one that is evaluated.
    """

    operator: Operator
    policy: PolicyRows

    @property
    def mdp(self) -> MDP:
        return self.operator.mdp

    @cached_property
    def _following(self) -> PolicyOperator:
        return self.operator.against(self.policy)[0]

    def improve(
        self,
        v: FloatArray,
        memory: Memory = None,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,  # noqa: ARG002
    ) -> Improvement[None]:
        value, memory = self._following.apply(v, memory, workers)
        return Improvement(value, None, self.policy, memory)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:  # noqa: ARG002
        """The policy itself: there is no other."""
        return self._following, memory

    def error(self, v: FloatArray) -> float:
        """A weighted mean of rows adds one more sum."""
        n_actions = 0 if self.policy.probability is None else self.mdp.n_actions
        size = self.mdp.rows.largest_reward + float(np.abs(v).max(initial=0.0))
        return self.operator.error(v) + 2.0 * n_actions * ROUNDING * size
