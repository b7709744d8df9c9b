"""Variances under shared budgets, against values computed for each posterior draw.

Seeds are fixed. A variance from 400 draws is known to 7 %; medians over nine states leave a wide margin.
"""

import numpy as np
import pytest

import urbe
from oracles.layered import layered, posterior_of
from urbe import SRectangular, value_variance
from urbe.rng import stream
from urbe.solvers.solve import given_policy

HORIZON = 4
SETS = [urbe.L1Ball(0.5), urbe.L2Ball(0.25), urbe.LInfBall(0.15), urbe.KLBall(0.15)]


def value_of(mdp, shared, policy):
    """`(S,)` first-step values of a policy for each step, by plain backward induction."""
    operator, v = shared.operator(mdp), np.zeros(mdp.n_states)
    for step in policy[::-1]:
        v, _ = operator.against(given_policy(mdp, step))[0].apply(v)
    return v


@pytest.mark.parametrize("ball", SETS, ids=lambda ball: type(ball).__name__)
def test_variances_of_states_are_those_of_posterior_draws(ball):
    mdp, shared = layered(stream(1, "model", 0)), SRectangular(ball)
    posterior = posterior_of(mdp, 200.0)
    plan = value_variance(posterior, shared, horizon=HORIZON)
    solved = urbe.solve(posterior.mean(), shared, urbe.BackwardInduction(HORIZON))
    assert plan.value == pytest.approx(solved.value, abs=1e-12)
    draws = posterior.draws(stream(1, "draws"), 400)
    values = [value_of(posterior.model_with(centre), shared, plan.policy) for centre in draws]
    expected = np.var(values, axis=0, ddof=1)
    live = expected > 1e-14
    assert live.sum() >= 7  # of three layers of three that lead to more than one state
    loose = plan.value_variance[0][live] / expected[live]
    assert loose.min() > 0.8  # an upper bound, up to the draws' own error and terms of second order
    assert 1.0 <= np.median(loose) <= 4.0


def test_infinite_horizons_solve_the_same_equation():
    mdp = urbe.library.garnet(6, 2, 3, seed=2, discount=0.9)
    posterior, shared = posterior_of(mdp, 100.0), SRectangular(urbe.KLBall(0.2))
    plan = value_variance(posterior, shared, method=urbe.PartialPolicyIteration(tolerance=1e-10))
    long = value_variance(posterior, shared, horizon=400, policy=plan.policy)
    assert plan.value == pytest.approx(long.value[0], abs=1e-8)
    assert plan.value_variance == pytest.approx(long.value_variance[0], rel=1e-6)


def test_no_budget_is_the_uncertainty_bellman_equation_bit_for_bit():
    mdp = urbe.library.garnet(6, 2, 3, seed=3, discount=0.9)
    posterior = posterior_of(mdp, 30.0)
    none, zero = (value_variance(posterior, nature, horizon=5) for nature in (None, SRectangular(urbe.L1Ball(0.0))))
    for name in ("q", "variance", "value", "policy"):
        assert np.array_equal(getattr(none, name), getattr(zero, name)), name
