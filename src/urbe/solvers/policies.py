"""Policies as solvers hold them (rows) and as users see them (actions)."""

from __future__ import annotations

import numpy as np

from urbe.bellman.operators import is_randomised
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray


def policy_of(mdp: MDP, weights: IntArray | FloatArray) -> IntArray | FloatArray:
    """`(S,)` action ids from one row per state, or `(S, A)` probabilities from `(R,)` row weights."""
    if is_randomised(weights):
        return mdp.by_action(weights, fill=0.0)
    actions = np.full(mdp.n_states, -1, dtype=mdp.action.dtype)
    live = weights >= 0
    actions[live] = mdp.action[weights[live]]
    return actions
