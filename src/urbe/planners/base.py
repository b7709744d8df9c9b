"""What a planning method is given and what it gives back: from a posterior to a set, and a policy safe within it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.model import MDP
from urbe.posteriors.dirichlet import Posterior
from urbe.solvers.solution import Solution
from urbe.types import FloatArray


class Solve(Protocol):
    """Solves a model against a set, from values to start with if there are any."""

    def __call__(self, mdp: MDP, nature: AmbiguitySet, *, start: FloatArray | None = None) -> Solution:
        """The solution; `start` is `(S,)`."""


class PlanningTask(NamedTuple):
    """What a method is asked for.

    Attributes:
      posterior: of the transitions; rewards are known numbers (lowered beforehand where they were uncertain).
      delta: probability with which the promise may fail.
      draws: posterior draws to plan with; None for as many as the method thinks fit.
      rng: where they come from.
      solve: solves a model against a set.
      whole: the posterior with uncertain rewards as they are, and the whole failure probability, for methods that
        treat rewards like transitions.
    """

    posterior: Posterior
    delta: float
    draws: int | None
    rng: np.random.Generator
    solve: Solve
    whole: tuple[Posterior, float]


class PlannedSolution(NamedTuple):
    """A set, the model it is bound to, and the policy that is best against it."""

    model: MDP
    nature: AmbiguitySet
    solution: Solution


class PlanningMethod(Protocol):
    """A way from a posterior to a policy with a guaranteed value."""

    def answer(self, task: PlanningTask) -> PlannedSolution:
        """Builds the set and solves for the policy; `solution.lower` is its worst case."""

    def promise(self, confidence: float) -> str:
        """One sentence: what the worst case over the set says about the true value."""


def in_every_state(confidence: float) -> str:
    """The promise of the Bayesian methods."""
    return (
        f"With posterior probability {confidence:g} or more the policy is worth at least this in every state at once."
    )
