"""The interface of a planning method: from a posterior to an uncertainty set, and a policy that is safe within it."""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast

import numpy as np

from urbe.ambiguity.operator import AmbiguitySet
from urbe.mdp.model import MDP
from urbe.planners.guarantee import DRAWS
from urbe.posteriors.dirichlet import Posterior
from urbe.progress import Report, silent
from urbe.solvers.solution import Solution
from urbe.types import FloatArray, IntArray


class Solve(Protocol):
    """Solves a model against a set, optionally from initial values."""

    def __call__(self, mdp: MDP, nature: AmbiguitySet, *, start: FloatArray | None = None) -> Solution:
        """Returns the solution; `start` is `(S,)`, initial values."""


class PlanningTask(NamedTuple):
    """The task of a planning method.

    Attributes:
      posterior: of the transitions; rewards are known numbers, already lowered if they are uncertain.
      delta: probability with which the guarantee may fail.
      draws: number of posterior draws to plan with; None lets the method choose.
      rng: source of the draws.
      solve: solves a model against a set.
      whole: the posterior with its uncertain rewards, and the whole failure probability, for methods that treat
        rewards like transitions.
      certify: number of fresh draws from which the guarantee will be computed (`urbe.planners.guarantee`).
      report: receives the progress of work other than `solve`, which reports its own.
    """

    posterior: Posterior
    delta: float
    draws: int | None
    rng: np.random.Generator
    solve: Solve
    whole: tuple[Posterior, float]
    certify: int = DRAWS
    report: Report = silent


class PlannedSolution(NamedTuple):
    """A set, the model it is bound to, and the policy with the best worst case over it."""

    model: MDP
    nature: AmbiguitySet
    solution: Solution


def pure_policy(solution: Solution) -> IntArray:
    """`(S,)` the actions of a solution for a set that is rectangular in (s, a), whose policy needs no mixtures."""
    return cast(IntArray, solution.policy)


class PlanningMethod(Protocol):
    """A way from a posterior to a policy with a guaranteed value."""

    def answer(self, task: PlanningTask) -> PlannedSolution:
        """Builds the set and solves for the policy; `solution.lower` is its worst case."""

    def promise(self, confidence: float) -> str:
        """One sentence: what the worst case over the set says about the true value."""


def in_every_state(confidence: float) -> str:
    """The guarantee of the Bayesian methods."""
    return (
        f"With posterior probability {confidence:g} or more the policy is worth at least this in every state at once."
    )
