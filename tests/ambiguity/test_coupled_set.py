"""A user-defined set that couples states works with solvers, certificates and variances."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

import urbe
from fixtures.factored_set import Factored
from urbe import MDP, BackwardInduction, ValueIteration, certify, evaluate_policy, solve, value_variance

N, ACTIONS, FACTORS = 5, 2, 3


def problem(seed, *, radius=0.4, discount=0.9, terminal=()):
    rng = np.random.default_rng(seed)
    share, centre = rng.dirichlet(np.ones(FACTORS), size=N * ACTIONS), rng.dirichlet(np.ones(N), size=FACTORS)
    transition = (share @ centre).reshape(N, ACTIONS, N)
    mdp = MDP.from_dense(transition, rng.normal(size=(N, ACTIONS)), discount=discount, terminal=terminal)
    live = np.repeat(~mdp.terminal, ACTIONS)
    return mdp, Factored(share[live], centre, radius)


def vertices(centre, radius):
    """Factors to which nature moves at the extremes: all mass it may move, taken in any order, sent to any state."""
    out = []
    for order in permutations(range(len(centre))):
        w, left = centre.copy(), min(radius / 2, 1.0 - centre[order[-1]])
        w[order[-1]] += left
        for s in order[:-1]:
            step = min(left, w[s])
            w[s], left = w[s] - step, left - step
        out.append(w)
    return np.unique(np.round(out, 12), axis=0)


def test_the_value_is_the_worst_over_all_choices_of_factors():
    """One w_i for all states: nature tries every combination of vertices, the policy is held fixed."""
    mdp, factored = problem(1)
    solution = solve(mdp, factored)
    rows = mdp.row_start[:-1] + solution.policy
    per_factor = [vertices(centre, factored.radius) for centre in factored.centre]
    rng = np.random.default_rng(0)
    combinations = list(product(*per_factor))
    for k in rng.choice(len(combinations), 3000, replace=False):
        matrix = factored.share[rows] @ np.array(combinations[k])
        value = np.linalg.solve(np.eye(N) - mdp.discount * matrix, mdp.rows.row_reward[rows])
        assert (value >= solution.lower - 1e-9).all()  # no choice hurts more, in any state
    answer = evaluate_policy(solution.kernel, solution.policy).value
    assert answer == pytest.approx(solution.value, abs=1e-6)  # and nature's own does as much


@pytest.mark.parametrize("seed", range(3))
def test_every_method_and_certificate_agrees(seed):
    mdp, factored = problem(seed)
    solution = solve(mdp, factored)
    assert solution.value == pytest.approx(solve(mdp, factored, ValueIteration()).value, abs=2e-6)
    assert certify(solution).holds
    assert certify(evaluate_policy(mdp, solution.policy, factored)).holds
    assert certify(solve(mdp, factored, BackwardInduction(4))).holds
    high = replace(solution, lower=solution.lower + 1e-3, upper=solution.upper + 1e-3, value=solution.value + 1e-3)
    assert "lower bound" in certify(high).statement
    assert "not a mixture" in certify(solution, mdp, replace(factored, radius=0.1)).statement
    assert (solution.value >= solve(mdp, urbe.L1Ball(factored.radius, support="all")).lower).all()  # contains it


def test_total_reward_without_discounting():
    mdp, factored = problem(4, discount=1.0, terminal=[4])
    solution = solve(mdp, factored)
    assert certify(solution).holds
    assert solution.gap < 1e-6


def test_variances_take_it_too():
    mdp, factored = problem(5)
    posterior = urbe.Posterior.before(mdp, 20.0 * mdp.rows.probability)
    plan = value_variance(posterior, factored, horizon=3)
    solved = solve(posterior.mean(), factored, BackwardInduction(3))
    assert plan.value == pytest.approx(solved.value, abs=1e-12)
    assert not plan.local.any()  # the factors do not move with the data
    counted = value_variance(posterior, factored, local=urbe.Count(beta=0.5))
    assert (counted.value_variance > 0.0).all()


def test_a_set_that_only_binds_hears_what_it_lacks():
    class Bound:
        def bind(self, mdp):
            return urbe.L1Ball(0.1).bind(mdp)

    with pytest.raises(TypeError, match=r"has bind but no operator; .* inherit from urbe\.RectangularSet"):
        solve(problem(1)[0], Bound())
