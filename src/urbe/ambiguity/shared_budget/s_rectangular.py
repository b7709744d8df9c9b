"""s-rectangular sets: budgets shared by the actions of a state.

    U(s) = {(q_a)_a : sum_a d(q_a, pbar(s, a)) <= kappa(s)},      d the distance of a ball

Nature knows the state but not the action, so it is weaker than nature with radius kappa on every action, and optimal
policies may have to randomise [Wiesemann2013] [HoPetrikWiesemann2021]. `distance` documents the interface of distances;
`improve` and `evaluate` state and solve the inner problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import allowed_rows
from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.shared_budget.kl import KL
from urbe.ambiguity.shared_budget.l1 import L1
from urbe.ambiguity.shared_budget.l2 import L2
from urbe.ambiguity.shared_budget.linf import LINF
from urbe.ambiguity.shared_budget.nature import StateNature
from urbe.ambiguity.shared_budget.operator import StateOperator
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

DISTANCES: dict[type, Distance] = {L1Ball: L1, L2Ball: L2, LInfBall: LINF, KLBall: KL}


@dataclass(frozen=True, eq=False)
class SRectangular:
    """U(s) = {(q_a)_a : sum_a d(q_a, pbar(s, a)) <= kappa(s)}: one budget per state.

    Args:
      ball: `L1Ball`, `L2Ball`, `LInfBall` or `KLBall`, for its distance and support. Its `radius` is the budget kappa:
        a number, `(S,)`, or `{state: number}` for every non-terminal state; at least 0.

    >>> import numpy as np, urbe
    >>> mirrored = [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], np.eye(3)[[1, 1]], np.eye(3)[[2, 2]]]
    >>> reward = [[[0, 1, 0], [0, 0, 1]], np.zeros((2, 3)), np.zeros((2, 3))]
    >>> mdp = urbe.MDP.from_dense(mirrored, reward, discount=0.9, terminal=[1, 2])
    >>> solution = urbe.solve(mdp, SRectangular(urbe.L1Ball(1.0)))  # nature can ruin one action, not both
    >>> solution.value[0].round(6), solution.policy[0]
    (np.float64(0.25), array([0.5, 0.5]))
    """

    ball: Any

    def __post_init__(self) -> None:
        names = ", ".join(kind.__name__ for kind in DISTANCES)
        expected = f"one of {names}, such as L1Ball(0.5), whose radius is the budget of a state"
        checks.kind("ball", self.ball, type(self.ball) in DISTANCES, expected)

    def operator(self, mdp: MDP) -> StateOperator:
        ball = self.ball
        checks.one_of("support", ball.support, ("nominal", "all"))
        support: Support = "nominal" if isinstance(ball, KLBall) else ball.support
        # if moving mass costs the same everywhere, only the lowest state outside a row receives it
        rows, everywhere = allowed_rows(mdp, support, receiver=isinstance(ball, L1Ball))
        nature = StateNature(DISTANCES[type(ball)], mdp, rows, self.budget(mdp), everywhere)
        return StateOperator(mdp, nature, self.relaxed(mdp))

    def budget(self, mdp: MDP) -> FloatArray:
        """`(S,)` kappa, zero where terminal."""
        given = self.ball.radius
        if isinstance(given, Mapping):
            budget = np.where(mdp.terminal, 0.0, np.nan)
            for state, number in given.items():
                if checks.whole_number("a state of radius", state, 0) >= mdp.n_states:
                    raise ValueError(
                        f"radius names state {state}; the model has the states 0, ..., {mdp.n_states - 1}."
                    )
                budget[state] = number
            if np.isnan(budget).any():
                state = int(np.argmax(np.isnan(budget)))
                raise ValueError(f"radius has no budget for state {state}; give one for every state.")
        else:
            array = checks.float_array("radius", given)
            if array.shape not in ((), (mdp.n_states,)):
                raise ValueError(
                    f"radius has shape {array.shape}, expected a number or one budget per state ({mdp.n_states},): "
                    "the actions of a state share its budget."
                )
            budget = np.array(np.broadcast_to(array, mdp.n_states))
        checks.row_range("radius", budget, 0.0, np.inf, lambda state: f"state {state}")
        return np.where(mdp.terminal, 0.0, budget)

    def relaxed(self, mdp: MDP) -> RectangularSet:
        """Returns the smallest (s, a)-rectangular set that contains this one: the whole budget on every action."""
        most = DISTANCES[type(self.ball)].largest
        wider: RectangularSet = replace(self.ball, radius=np.minimum(self.budget(mdp), most)[mdp.row_state])
        return wider

    def helping(self, mdp: MDP) -> RectangularSet:
        """Returns the set whose nature helps: with the agent, it spends the whole budget on one action."""
        return Optimistic(self.relaxed(mdp))
