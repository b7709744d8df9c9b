"""Regret: the loss of an agent's actions against the optimal ones."""

from __future__ import annotations

import numpy as np

from urbe.mdp.model import MDP
from urbe.solvers.methods import BackwardInduction
from urbe.solvers.solve import solve
from urbe.types import FloatArray


def optimality_gaps(model: MDP, horizon: int) -> FloatArray:
    """The loss of each action at each step of an episode.

        gap_h(s, a) = V*_h(s) - Q*_h(s, a) >= 0

    Summed along an episode, the gaps equal in expectation the difference between the returns of the optimal policy and
    of the agent (the performance difference lemma), without the noise of the rewards.

    Args:
      model: the true model.
      horizon: H, steps of an episode.

    Returns:
      `(H, S, A)`; infinite for unavailable actions and in terminal states.

    >>> import urbe
    >>> optimality_gaps(urbe.library.riverswim(3, discount=1.0), 2)[1]
    array([[0.   , 0.005],
           [0.   , 0.   ],
           [1.   , 0.   ]])
    """
    solution = solve(model, method=BackwardInduction(horizon))
    gaps: FloatArray = np.asarray(solution.value)[:horizon, :, None] - np.asarray(solution.q)
    return gaps
