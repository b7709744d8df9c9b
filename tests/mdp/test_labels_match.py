"""Models that are combined by ids must name the same states and actions."""

import numpy as np
import pytest

import urbe
from urbe.envs.finite import FiniteEnv, Phase
from urbe.planners import soft_robust_model, solve_belief


def named(*states):
    p = np.full((2, 1, 2), 0.5)
    mdp = urbe.MDP.from_dense(p, [[1.0], [0.0]], discount=0.9, initial=[1.0, 0.0])
    return mdp.with_labels(states=states) if states else mdp


@pytest.mark.parametrize(
    ("combine", "name"),
    [
        (lambda a, b: soft_robust_model([a, b], [0.5, 0.5]), r"models\[1\]"),
        (lambda a, b: urbe.solve(a, urbe.Scenarios([a, b])), r"kernels\[1\]"),
        (lambda a, b: FiniteEnv((Phase(a, 1), Phase(b, 1))), r"phases\[1\]\.model"),
        (lambda a, b: solve_belief([a, b], 0), r"members\[1\]"),
        (lambda a, b: urbe.random_deviations(urbe.limited_deviations(a, urbe.L1Ball(0.1), 1), b, 0.1), "kernel"),
    ],
)
def test_other_orders_of_labels_are_errors(combine, name):
    with pytest.raises(ValueError, match=rf"{name} has state 0 'jam', expected 'calm' as in .*matched by ids"):
        combine(named("calm", "jam"), named("jam", "calm"))
    combine(named("calm", "jam"), named("calm", "jam"))
    combine(named("calm", "jam"), named())  # without labels nothing contradicts
