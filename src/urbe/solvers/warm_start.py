"""Values to start from: a policy of the nominal model, evaluated against nature.

The first robust sweep over all rows is expensive: no row has a warm start. A nominal sweep is cheap, and its policies
are close enough to begin with.
"""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.operator import Iterated
from urbe.mdp.model import MDP
from urbe.solvers.bounds import spread_of
from urbe.solvers.evaluation import Evaluated, PolicyEvaluation, Setting
from urbe.types import FloatArray

SHRINK = 0.1
"""Share of the nominal improvement's spread at which the evaluation ends."""


def reward_alone(mdp: MDP) -> FloatArray:
    """`(S,)` T 0 for the model as it is: the best expected reward of one step."""
    v = np.zeros(mdp.n_states)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        v[live] = np.maximum.reduceat(mdp.rows.expected_reward(), mdp.row_start[live])
    return v


def warm_start(operator: Iterated, nominal: Iterated, evaluation: PolicyEvaluation, setting: Setting) -> FloatArray:
    """`(S,)` the robust value, roughly, of a policy that is nearly optimal for the nominal model."""
    v = reward_alone(operator.mdp)
    improvement = nominal.improve(v, None, setting.workers)
    lo, hi = spread_of(v, improvement.value, setting.terminal)
    following, memory = operator.against(improvement.policy)
    return evaluation(following, Evaluated(improvement.value, hi - lo, 0, memory), SHRINK * (hi - lo), setting).value
