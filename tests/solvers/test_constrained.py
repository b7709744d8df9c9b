"""Constrained MDPs: enumeration of policies, duality, errors."""

import numpy as np
import pytest

import urbe
from urbe.mdp.evaluate import policy_value

TWO = urbe.MDP.from_dense(
    [[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]], [[0.1, 0.0], [0.5, 1.0]], discount=0.8, initial=[1.0, 0.0]
)
COST = np.array([[0.0, 0.2], [0.0, 1.0]])


def test_no_mixture_is_better():
    """Every policy of a fine grid that stays within the limit earns at most as much, and one comes close."""
    found = urbe.solve_constrained(TWO, COST, 1.0)
    costs = urbe.MDP.from_dense(TWO.to_dense()[0], COST, discount=0.8, initial=[1.0, 0.0])
    best = -np.inf
    for a in np.linspace(0.0, 1.0, 41):
        for b in np.linspace(0.0, 1.0, 41):
            policy = [[1.0 - a, a], [1.0 - b, b]]
            if policy_value(costs, policy)[0] <= 1.0 + 1e-12:
                best = max(best, policy_value(TWO, policy)[0])
    assert best <= found.value + 1e-9
    assert best >= found.value - 0.05
    assert found.cost == pytest.approx(1.0)


def test_the_multiplier_prices_the_limit_and_the_reward():
    rng = np.random.default_rng(0)
    for seed in range(10):
        mdp = urbe.library.garnet(8, 3, 3, seed=seed, discount=0.9)
        cost = rng.uniform(size=(8, 3))
        free = urbe.solve_constrained(mdp, cost, 100.0)
        assert free.multiplier == 0.0
        assert free.value == pytest.approx(np.full(8, 1 / 8) @ urbe.solve(mdp).value, abs=1e-6)
        least = -np.full(8, 1 / 8) @ urbe.solve(urbe.MDP.from_dense(mdp.to_dense()[0], -cost, discount=0.9)).value
        limit = 0.5 * (free.cost + least)
        found = urbe.solve_constrained(mdp, cost, limit)
        more = urbe.solve_constrained(mdp, cost, limit + 1e-6)
        assert found.cost == pytest.approx(limit)
        assert (more.value - found.value) / 1e-6 == pytest.approx(found.multiplier, rel=1e-3)
        # Lagrange: nothing beats the policy under r - lambda c
        dense, reward = mdp.to_dense()
        penalised = urbe.MDP.from_dense(dense, reward - found.multiplier * cost, discount=0.9)
        best = np.full(8, 1 / 8) @ urbe.solve(penalised).value
        assert found.value - found.multiplier * limit == pytest.approx(best, abs=1e-6)
        np.testing.assert_allclose(found.policy.sum(axis=1), 1.0)


def test_ends_total_reward_and_unreached_states():
    mdp = urbe.MDP.from_dense(
        [[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], [[0.0] * 3] * 2, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]],
        [[0.0, 1.0], [0.0, 0.0], [0.0, 5.0]], discount=1.0, terminal=[1], initial=[1.0, 0.0, 0.0],
    )  # fmt: skip
    found = urbe.solve_constrained(mdp, [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], 0.25)
    np.testing.assert_allclose(found.policy, [[0.75, 0.25], [0.0, 0.0], [0.0, 1.0]], atol=1e-9)
    assert found.value == pytest.approx(0.25)


def test_refuses_limits_that_nobody_keeps():
    with pytest.raises(ValueError, match=r"limit is -1, and no policy costs that little; the least possible cost is 0"):
        urbe.solve_constrained(TWO, COST, -1.0)
    with pytest.raises(ValueError, match="cost"):
        urbe.solve_constrained(TWO, [[0.0] * 3] * 2, 1.0)
