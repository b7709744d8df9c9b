"""The result of `plan`: a policy, its guaranteed value, and its values on models not used for planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks, extras
from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.model import MDP
from urbe.mdp.start import start_text
from urbe.planners.base import PlanningMethod, pure_policy
from urbe.planners.guarantee import Guarantee
from urbe.planners.held_out import HeldOut
from urbe.posteriors.dirichlet import Posterior
from urbe.solvers.solution import Solution
from urbe.tables import TableResult, aligned
from urbe.types import FloatArray, IntArray

SHOWN_STATES = 12
SHOWN_PAIRS = 10
SHARES = (0.05, 0.25, 0.5, 0.95)
"""Quantiles of the table."""


@dataclass(frozen=True, eq=False, repr=False)
class SafePlan(TableResult):
    """A policy from data, with guarantees on its true value.

    Attributes:
      method, confidence: as passed to `plan`.
      posterior: as passed to `plan`.
      model, nature: the set the policy is best against; `urbe.solve(plan.model, plan.nature)` gives `solution` again,
        up to its gap. If rewards are uncertain, those of `model` are low quantiles.
      solution: of that problem. Its `value` is a worst case, not an estimate.
      start: `(S,)` initial distribution: that of the model, or else uniform over non-terminal states.
      guarantee: lower bounds on the policy's true value, from fresh posterior draws.
      held_out: values of `policy` on fresh models; `below` is the share in which the guarantee fails in some state.
      nominal_policy: `(S,)` the optimal policy of the mean model, for comparison.
      nominal_value: `(S,)` its value under the mean model.
      nominal_held_out: its values on the same fresh models; `below` is the share in which `nominal_value` is missed.
    """

    method: PlanningMethod
    confidence: float
    posterior: Posterior
    model: MDP
    nature: AmbiguitySet
    solution: Solution
    start: FloatArray
    guarantee: Guarantee
    held_out: HeldOut
    nominal_policy: IntArray
    nominal_value: FloatArray
    nominal_held_out: HeldOut

    @property
    def policy(self) -> IntArray:
        """`(S,)` the action of each state, -1 where terminal."""
        return pure_policy(self.solution)

    @property
    def guaranteed(self) -> FloatArray:
        """`(S,)` lower bounds on the value in all states simultaneously, with probability at least `confidence`."""
        return self.guarantee.in_every_state

    @property
    def guaranteed_at_start(self) -> float:
        """Lower bound on the value from the start, with probability at least `confidence`."""
        return self.guarantee.at_start

    @property
    def worst_case(self) -> FloatArray:
        """`(S,)` worst-case value over the set that the method built; `promise` says what it guarantees."""
        return self.solution.lower

    @property
    def promise(self) -> str:
        """One sentence on what the worst case over the set guarantees with this method."""
        return self.method.promise(self.confidence)

    @property
    def start_text(self) -> str:
        """The initial state, in words."""
        return start_text(self.model, self.start)

    def table(self) -> dict[str, np.ndarray]:
        """One row for each state, as columns: `state`, `action`, `mean_model_action`, `guaranteed`, `worst_case`.

        States and actions have their labels, if there are any.
        """
        labels = self.model.labels
        return {
            "state": labels.state_column(np.arange(self.model.n_states)),
            "action": labels.action_column(self.policy),
            "mean_model_action": labels.action_column(self.nominal_policy),
            "guaranteed": self.guaranteed,
            "worst_case": self.worst_case,
        }

    def plot(self) -> Any:
        """A figure of the values on fresh models and the guarantee in each state; needs `pip install urbe[plots]`."""
        return extras.drawings().draw_plan(self)

    def __repr__(self) -> str:
        return f"SafePlan({self.method}, confidence {self.confidence:g}, guaranteed {self.guaranteed_at_start:.5g})"

    def __str__(self) -> str:
        return "\n".join((*self._head(), "", *self._comparison(), "", *self._states()))

    def _head(self) -> list[str]:
        seen = f"{float(self.posterior.seen.sum()):.10g} transitions"
        return [
            f"{self.method} at confidence {self.confidence:g}, from {seen}",
            f"Guaranteed from the start: {self.guaranteed_at_start:.5g}",
            f"The start: {self.start_text}.",
            f"With posterior probability {self.confidence:g} or more the policy is worth at least this "
            f"({self.guarantee.draws} fresh draws).",
            f"Worst case over the set, from the start: {float(self.start @ self.worst_case):.5g}",
            self.promise,
            *self._untried(),
        ]

    def _untried(self) -> list[str]:
        """Lists the pairs without data."""
        without, absent = self.posterior.untried()
        labels, lines = self.model.labels, []
        for pairs, what in (
            (without, "without data, only with the prior"),
            (absent, "in neither log nor model, so the policy never takes them"),
        ):
            if len(pairs):
                names = [f"{labels.action(a)} in {labels.state(s)}" for s, a in pairs[:SHOWN_PAIRS].tolist()]
                more = f" and {len(pairs) - SHOWN_PAIRS} more" if len(pairs) > SHOWN_PAIRS else ""
                pairs_are = checks.some(len(pairs), 0, "pair of state and action", "pairs of state and action")
                lines.append(f"{pairs_are} {what}: {', '.join(names)}{more}.")
        return lines

    def _comparison(self) -> list[str]:
        """Compares the two policies on the held-out models."""
        mine, other = self.held_out, self.nominal_held_out
        if not len(mine.values):
            return ["No held-out draws."]

        def line(name: str, first: str, second: str) -> str:
            return f"{name:<34}{first:>14}{second:>20}"

        lines = [line(f"value on {len(mine.values)} held-out models", "safe policy", "mean-model policy")]
        lines += [
            line(f"  {share:.0%} quantile", f"{mine.percentile(share):.5g}", f"{other.percentile(share):.5g}")
            for share in SHARES
        ]
        lines.append(line("  mean", f"{mine.mean:.5g}", f"{other.mean:.5g}"))
        promised = float(self.start @ self.nominal_value)
        lines.append(line("stated value", f"{self.guaranteed_at_start:.5g}", f"{promised:.5g}"))
        lines.append(line("  missed in some state", f"{mine.below:.1%}", f"{other.below:.1%}"))
        return lines

    def _states(self) -> list[str]:
        labels, shown = self.model.labels, min(len(self.guaranteed), SHOWN_STATES)
        states = labels.state_texts(range(shown))
        mine, other = (labels.action_texts(p[:shown]) for p in (self.policy, self.nominal_policy))
        values = [f"{value:.5g}" for value in self.guaranteed[:shown]]
        rows = [("state", "action", "mean-model action", "guaranteed"), *zip(states, mine, other, values, strict=True)]
        lines = ["Guaranteed in all states at once; for a single state the guarantee would be higher:"]
        lines += aligned(rows, least=(7, 8, 18, 14))
        if shown < len(self.guaranteed):
            lines.append(f"    ... {len(self.guaranteed) - shown} more states")
        return lines
