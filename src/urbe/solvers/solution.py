"""The result of `solve`, and the error it raises if it does not converge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from urbe import checks, extras
from urbe.ambiguity.operator import Memory, Operator, PolicyRows
from urbe.mdp.model import MDP
from urbe.tables import TableResult, aligned
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Solution(TableResult):
    """A robust policy, its value, and certified bounds on it.

    With a finite horizon H every array has a leading axis of steps: H + 1 for `value`, `lower`, `upper` (the last is
    the end), H for `policy` and `q`.

    Attributes:
      value: `(S,)` the optimal robust value, zero where terminal.
      q: `(S, A)` value of each action against nature, -inf where the action does not exist. Where the actions of a
        state share nature's budget, it is the value under `kernel`, nature's answer to `policy`.
      policy: `(S,)` the action of each state, -1 where terminal; or `(S, A)` probabilities if randomised.
      lower, upper: `(S,)` certified: lower <= V* <= upper, rounding included. `lower` also bounds the worst-case value
        of `policy` itself.
      converged: whether the gap is within the method's tolerance.
      status: one sentence.
      steps: improvements (sweeps over all rows).
      sweeps: policy sweeps between them.
      operator: T of the model and the set.
      policies: `policy` in the form of `operator`: one policy, or one per step of a horizon.
      at: `(S,)` or `(H, S)` the values before the last improvement, or before that of each step.
      memory: memory of the last sweep.
      optimal: whether the solver chose `policy`; for a given policy, read V_pi for V*.
    """

    value: FloatArray
    q: FloatArray
    policy: IntArray | FloatArray
    lower: FloatArray
    upper: FloatArray
    converged: bool
    status: str
    steps: int
    sweeps: int
    operator: Operator
    policies: tuple[PolicyRows, ...]
    at: FloatArray
    memory: Memory
    optimal: bool = True

    @property
    def gap(self) -> float:
        """max over states of upper - lower."""
        return float((self.upper - self.lower).max(initial=0.0))

    @cached_property
    def kernel(self) -> MDP:
        """Nature's answer: the model with the worst-case rows in place of its own; computed on first use."""
        if self.value.ndim > 1:
            raise ValueError("With a finite horizon nature's answer depends on the step; use kernel_at(step).")
        return self._kernel(self.at, self.policies[0])

    def kernel_at(self, step: int) -> MDP:
        """Nature's answer at one step of a finite horizon."""
        if self.value.ndim == 1:
            raise ValueError("This solution has no horizon; nature's answer is `kernel`.")
        if checks.whole_number("step", step, 0) >= len(self.policies):
            raise ValueError(f"step is {step}, expected a step before the horizon of {len(self.policies)}.")
        return self._kernel(self.at[step], self.policies[step])

    def _kernel(self, v: FloatArray, policy: PolicyRows) -> MDP:
        return self.operator.mdp.with_rows(self.operator.kernel(v, policy))

    def value_at_start(self) -> float | None:
        """Returns the mean value over the model's initial distribution; None if it has none."""
        initial = self.operator.mdp.initial
        return None if initial is None else float(np.atleast_2d(self.value)[0] @ initial)

    def table(self) -> dict[str, np.ndarray]:
        """Returns columns with one row per state: `state`, `action`, `value`, `lower`, `upper`.

        States and actions are named by their labels, if any. A randomised policy has a row for each action of positive
        probability and a column `probability`; a horizon adds rows for each step and a column `step`.
        """
        if self.value.ndim == 1:
            return self._step_table(self.policy, self.value, self.lower, self.upper)
        steps = [
            self._step_table(self.policy[h], self.value[h], self.lower[h], self.upper[h])
            for h in range(len(self.policies))
        ]
        numbered = [{"step": np.full(len(part["state"]), h)} | part for h, part in enumerate(steps)]
        return {name: np.concatenate([part[name] for part in numbered]) for name in numbered[0]}

    def _step_table(
        self, policy: IntArray | FloatArray, value: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> dict[str, np.ndarray]:
        labels, share = self.operator.mdp.labels, {}
        state = np.arange(len(value))
        action: np.ndarray = policy
        if policy.ndim == 2:
            whole = np.append(policy, self.operator.mdp.terminal[:, None], axis=1)  # the last column: nothing to do
            state, action = np.nonzero(whole)
            share = {"probability": whole[state, action]}
            action = np.where(action == policy.shape[1], -1, action)
        named = {"state": labels.state_column(state), "action": labels.action_column(action)}
        return named | share | {"value": value[state], "lower": lower[state], "upper": upper[state]}

    def plot(self) -> Any:
        """Draws the value, bounds and action of each state; needs `pip install urbe[plots]`."""
        return extras.drawings().draw_solution(self)

    def __repr__(self) -> str:
        return f"Solution({self.operator.mdp.n_states} states, gap {self.gap:.3g}, {self.status!r})"

    def __str__(self) -> str:
        first = np.atleast_2d(self.value)[0]
        lower, upper = np.atleast_2d(self.lower)[0], np.atleast_2d(self.upper)[0]
        labels, shown = self.operator.mdp.labels, min(len(first), 12)
        rows = [("state", "action", "value", "at least", "at most")]
        for s in range(shown):
            a, b, c = (f"{x[s]:.8g}" for x in (first, lower, upper))
            rows.append((labels.state(s), self.action_text(s), a, b, c))
        lines = [self.status, *aligned(rows, least=(7, 12, 14, 14, 14))]
        if shown < len(first):
            lines.append(f"    ... {len(first) - shown} more states")
        return "\n".join(lines)

    def action_text(self, state: int) -> str:
        """Formats the policy in a state (at the first step): an action, a mixture `0:.44 1:.56`, or `end`."""
        policy = self.policy[0] if self.value.ndim > 1 else self.policy
        if self.operator.mdp.terminal[state]:
            return "end"
        labels = self.operator.mdp.labels
        if policy.ndim == 1:
            return labels.action(int(policy[state]))
        chosen = np.flatnonzero(policy[state] > 0.0)
        if len(chosen) == 1:
            return labels.action(int(chosen[0]))
        return " ".join(f"{labels.action(int(a))}:{policy[state, a]:.3g}" for a in chosen)


def solved(gap: float) -> str:
    """The status of a solution whose bounds are within the tolerance."""
    return f"Solved: the bounds are within {gap:.3g} of each other in every state."


def solved_over(steps: int, gap: float) -> str:
    """The status of a finite horizon."""
    return f"Solved over {steps} steps: rounding leaves the bounds within {gap:.3g} of each other in every state."


def stopped(gap: float) -> str:
    """How a status begins where rounding stopped the solver."""
    return f"Stopped at a gap of {gap:.3g}: "


def gave_up(steps: int, gap: float) -> str:
    """The first words of a status if the steps ran out."""
    return f"Gave up after {steps} steps at a gap of {gap:.3g}, "


class NotConverged(RuntimeError):
    """The tolerance was not reached; `solution` holds the best result, with valid bounds."""

    def __init__(self, solution: Solution) -> None:
        super().__init__(
            f"{solution.status} The bounds so far are in the error's `solution`; throw=False returns them."
        )
        self.solution = solution
