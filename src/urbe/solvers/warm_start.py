"""Values to start from: a policy of the nominal model, evaluated against nature.

A robust sweep over all rows is dear the first time, when nothing is known of where each row's worst case lies. A
nominal sweep is not, and its policies are close enough to begin with.
"""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.exact import ExactNature
from urbe.bellman.operators import Bellman, RectangularBellman
from urbe.mdp.model import MDP
from urbe.solvers.bounds import spread_of
from urbe.solvers.evaluation import Evaluation, Setting
from urbe.types import FloatArray

ROUNDS = 1
SHRINK = 0.1


def reward_alone(mdp: MDP) -> FloatArray:
    """`(S,)` T 0 for the model as it is: the best expected reward of one step."""
    v = np.zeros(mdp.n_states)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        v[live] = np.maximum.reduceat(mdp.rows.expected_reward(), mdp.row_start[live])
    return v


def warm_start(bellman: Bellman, evaluation: Evaluation, setting: Setting) -> FloatArray:
    """`(S,)` the robust value, roughly, of a policy that is nearly optimal for the nominal model."""
    nominal = RectangularBellman(bellman.mdp, ExactNature(bellman.mdp.rows, bellman.mdp.discount))
    v = reward_alone(bellman.mdp)
    for last in (False,) * (ROUNDS - 1) + (True,):
        improvement = nominal.improve(v, setting.workers)
        lo, hi = spread_of(v, improvement.value, setting.terminal)
        policy = (bellman if last else nominal).policy(improvement.weights)
        v = evaluation(policy, improvement.value, hi - lo, SHRINK * (hi - lo), setting).value
    return v
