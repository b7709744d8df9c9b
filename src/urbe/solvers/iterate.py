"""The common loop of all infinite-horizon methods: improve, bound, stop or evaluate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from urbe.ambiguity.operator import ROUNDING, Improvement, Iterated, Memory, Operator, PolicyOperator, PolicyRows
from urbe.mdp.model import MDP
from urbe.solvers.bounds import BoundRule, Bounds
from urbe.solvers.evaluation import Evaluated, PolicyEvaluation, Setting
from urbe.solvers.methods import Method
from urbe.solvers.solution import gave_up, solved, stopped
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers

Progress = Callable[[int, float], None]
"""Called after each improvement with its number and the certified gap."""

PATIENCE = 12
"""Stop after this many improvements without progress once rounding dominates the gap."""


class IterationOutcome(NamedTuple):
    """The result of the loop.

    Attributes:
      v: `(S,)` the values before the last improvement.
      improvement: T v, its rows and its policy.
      bounds: certified by that improvement.
      steps: number of improvements; sweeps: number of policy sweeps between them.
      reason: a sentence.
      reached: whether the gap is within the tolerance.
    """

    v: FloatArray
    improvement: Improvement[FloatArray | None]
    bounds: Bounds
    steps: int
    sweeps: int
    reason: str
    reached: bool


def iterate(
    operator: Iterated,
    method: Method,
    evaluation: PolicyEvaluation,
    rule: BoundRule,
    start: FloatArray,
    setting: Setting,
    progress: Progress,
) -> IterationOutcome:
    """Runs `method` from `start` until the gap is within its tolerance, rounding dominates, or steps run out."""
    v, sweeps, memory = start, 0, None
    best, since_best = np.inf, 0
    q = np.empty(operator.mdp.n_rows)
    for step in range(1, method.max_steps + 1):
        improvement = operator.improve(v, memory, setting.workers, q)
        memory = improvement.memory
        bounds = rule(v, improvement.value)
        gap = bounds.gap
        progress(step, gap)
        if gap <= method.tolerance:
            return IterationOutcome(v, improvement, bounds, step, sweeps, solved(gap), True)
        since_best = 0 if gap < best else since_best + 1
        best = min(best, gap)
        if since_best >= PATIENCE and gap <= 4.0 * bounds.floor + method.tolerance:
            status = (
                f"{stopped(gap)}rounding in double precision accounts for {bounds.floor:.3g}, "
                f"so the tolerance {method.tolerance:.3g} cannot be certified. Ask for {4 * gap:.1g} or more."
            )
            return IterationOutcome(v, improvement, bounds, step, sweeps, status, False)
        at = v
        # adding a constant leaves the spread unchanged, but not the differences to terminal states
        v = improvement.value if setting.terminal.any() else bounds.value
        # a spread below this certifies the tolerance
        enough = 0.5 * bounds.spread * method.tolerance / gap
        target = max(method.shrink * bounds.spread, enough) if method.rule == "span" else 0.0
        if bounds.spread > target:
            following, known = operator.against(improvement.policy, memory)
            reached = evaluation(following, Evaluated(v, bounds.spread, 0, known), target, setting)
            v, sweeps = reached.value, sweeps + reached.sweeps
    status = (
        f"{gave_up(method.max_steps, gap)}wanted {method.tolerance:.3g}. "
        "Raise max_steps, or use PartialPolicyIteration()."
    )
    return IterationOutcome(at, improvement, bounds, method.max_steps, sweeps, status, False)


@dataclass(frozen=True, eq=False)
class FixedPolicy:
    """An operator with a single policy, T_pi in place of T, so that `iterate` evaluates this policy.

    Args:
      operator: T.
      policy: the policy to evaluate.
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
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[None]:
        value, memory = self._following.apply(v, memory, workers)
        return Improvement(value, None, self.policy, memory)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        """Returns T_pi of the only policy."""
        return self._following, memory

    def error(self, v: FloatArray) -> float:
        """Bounds the rounding error; the weighted mean of rows adds one more sum."""
        n_actions = 0 if self.policy.probability is None else self.mdp.n_actions
        size = self.mdp.rows.largest_reward + float(np.abs(v).max(initial=0.0))
        return self.operator.error(v) + 2.0 * n_actions * ROUNDING * size
