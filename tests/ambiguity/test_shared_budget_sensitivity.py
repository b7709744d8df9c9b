"""Sensitivities under shared budgets: difference quotients by the centres, and the model itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import urbe
from urbe import KLBall, L1Ball, L2Ball, LInfBall, SRectangular
from urbe.ambiguity.operator import PolicyRows

STEP = 1e-6
BALLS = [L1Ball, L2Ball, LInfBall, KLBall]


def random_policy(mdp, rng):
    weights = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    weights[rng.random(weights.shape) < 0.2] = 0.0  # actions that are not taken
    weights[:, 0] += 1e-3
    return PolicyRows.of_weights((weights / weights.sum(axis=1, keepdims=True)).ravel())


@pytest.mark.parametrize("ball", BALLS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), budget=st.floats(1e-3, 3.0))
def test_values_move_with_the_centres_as_their_sensitivity_says(ball, seed, budget):
    rng = np.random.default_rng(seed)
    mdp = urbe.library.garnet(5, 3, 4, seed=seed % 1000, discount=0.9)
    shared, v, policy = SRectangular(ball(budget)), 3.0 * rng.normal(size=5), random_policy(mdp, rng)
    operator = shared.operator(mdp)
    rows, direction = mdp.rows, rng.normal(size=mdp.rows.n_entries)
    direction -= (rows.row_sums(direction) / rows.length)[rows.entry_row]
    thin = rows.entry_row[rows.probability < 1e-2]
    direction[np.isin(rows.entry_row, thin)] = 0.0  # so that a step stays well inside the simplex

    def value(step):
        moved = mdp.with_rows(replace(rows, probability=rows.probability + step * direction))
        return shared.operator(moved).against(policy)[0].apply(v)[0]

    ahead, behind = (value(STEP) - value(0.0)) / STEP, (value(0.0) - value(-STEP)) / STEP
    _, taken = operator.nature.against(policy).sensitivity(v)
    m = np.zeros(rows.n_entries)
    m[rows.entries_of(policy.rows)] = taken
    found = policy.average(mdp, rows.row_sums(m * direction))
    # 1e-8: rounding of values over the step; 1e-3: curvature times the step where budgets are small
    assert (found >= np.minimum(ahead, behind) - 1e-3).all()
    assert (found <= np.maximum(ahead, behind) + 1e-3).all()
    smooth = np.abs(ahead - behind) < 1e-5
    assume(smooth.any())
    assert found[smooth] == pytest.approx(0.5 * (ahead + behind)[smooth], abs=1e-6)


@pytest.mark.parametrize("ball", BALLS)
def test_without_a_budget_moments_are_those_of_the_model(ball):
    mdp = urbe.library.garnet(6, 2, 3, seed=1, discount=0.8)
    rng = np.random.default_rng(2)
    v, u = rng.normal(size=6), rng.random(6)
    found, expected = SRectangular(ball(0.0)).operator(mdp).moments(v, u), urbe.Exact().operator(mdp).moments(v, u)
    assert found.policy.actions(mdp).argmax(axis=1).tolist() == expected.policy.actions(mdp).tolist()
    for name in ("value", "q", "scatter", "carried"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12), name


@pytest.mark.parametrize("ball", BALLS)
def test_with_one_action_moments_are_those_of_the_ball(ball):
    """A state with a single action spends all of its budget there."""
    mdp = urbe.library.garnet(8, 1, 4, seed=3, discount=0.9)
    rng = np.random.default_rng(4)
    v, u = rng.normal(size=8), rng.random(8)
    found, expected = SRectangular(ball(0.3)).operator(mdp).moments(v, u), ball(0.3).operator(mdp).moments(v, u)
    for name in ("value", "q", "scatter", "carried"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-7), name


@pytest.mark.parametrize("ball", BALLS)
def test_a_given_policy_is_worth_what_its_operator_says(ball):
    mdp = urbe.library.garnet(6, 3, 4, seed=5, discount=0.9)
    rng = np.random.default_rng(6)
    v, policy = rng.normal(size=6) + 50.0, random_policy(mdp, rng)
    operator = SRectangular(ball(0.4)).operator(mdp)
    found = operator.moments(v, np.ones(6), policy)
    assert found.policy is policy
    assert found.value == pytest.approx(operator.against(policy)[0].apply(v)[0], abs=1e-11)
    assert found.carried == pytest.approx(np.ones(mdp.n_rows))  # of distributions
