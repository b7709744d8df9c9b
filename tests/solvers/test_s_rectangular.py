"""Solving models whose actions share nature's budget: methods agree, bounds hold, policies randomise."""

import numpy as np
import pytest

import urbe
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.solvers.methods import BackwardInduction, PartialPolicyIteration, ValueIteration

BUDGETS = [L1Ball(0.5), L2Ball(0.3), LInfBall(0.2), KLBall(0.1)]


def ending_garnet(seed=0, discount=0.9):
    """A Garnet whose last two states are terminal, with signed rewards and an action missing here and there."""
    rng = np.random.default_rng(seed)
    mdp = urbe.library.garnet(30, 4, 5, seed=seed, discount=discount)
    transition, _ = mdp.to_dense()
    available = rng.random((30, 4)) < 0.7
    available[:, 2] = True
    return urbe.MDP.from_dense(
        transition, rng.normal(size=(30, 4)), discount=discount, terminal=[28, 29], available=available
    )


@pytest.mark.parametrize("ball", BUDGETS, ids=lambda ball: type(ball).__name__)
def test_methods_agree_and_policies_randomise(ball):
    mdp = ending_garnet()
    nature = SRectangular(ball)
    partial = urbe.solve(mdp, nature, PartialPolicyIteration(tolerance=1e-9))
    swept = urbe.solve(mdp, nature, ValueIteration(tolerance=1e-7))
    assert partial.converged
    assert partial.gap <= 1e-9
    for one, other in ((partial, swept), (swept, partial)):
        assert (one.lower <= other.upper).all()
        assert (one.lower <= other.value + other.gap).all()
        assert (other.value - other.gap <= one.upper).all()
    policy = partial.policy
    assert policy.shape == (30, 4)
    assert policy.sum(axis=1) == pytest.approx(np.append(np.ones(28), [0.0, 0.0]), abs=1e-12)
    assert ((policy > 0.01) & (policy < 0.99)).any()
    # the policy keeps its promise, and the kernel leaves no better one
    kept = urbe.evaluate_policy(mdp, policy, nature, PartialPolicyIteration(tolerance=1e-9))
    assert (kept.upper >= partial.lower).all()
    assert kept.value == pytest.approx(partial.value, abs=2e-9)
    best = urbe.solve(partial.kernel, None, PartialPolicyIteration(tolerance=1e-9))
    assert best.value == pytest.approx(partial.value, abs=1e-7)
    assert partial.operator.nature.excess(partial.kernel.rows).max() <= 1e-9


@pytest.mark.parametrize("ball", BUDGETS, ids=lambda ball: type(ball).__name__)
def test_between_the_nominal_value_and_a_budget_for_every_action(ball):
    mdp = ending_garnet(1)
    shared = urbe.solve(mdp, SRectangular(ball))
    each = urbe.solve(mdp, ball)
    assert (shared.upper >= each.lower).all()
    assert (shared.lower <= urbe.solve(mdp).upper).all()
    assert (shared.value > each.value + 1e-3).any()


@pytest.mark.parametrize("ball", BUDGETS, ids=lambda ball: type(ball).__name__)
def test_one_action_has_the_budget_to_itself(ball):
    """For a deterministic policy the shared budget is as bad as one for every action."""
    mdp = ending_garnet(2)
    policy = np.append(np.full(28, 2), [-1, -1])
    shared = urbe.evaluate_policy(mdp, policy, SRectangular(ball), PartialPolicyIteration(tolerance=1e-10))
    each = urbe.evaluate_policy(mdp, policy, ball, PartialPolicyIteration(tolerance=1e-10))
    assert shared.value == pytest.approx(each.value, abs=1e-9)
    table = np.zeros((30, 4))
    table[:28, 2] = 1.0
    expected = urbe.evaluate_policy(mdp, table, SRectangular(ball), PartialPolicyIteration(tolerance=1e-10))
    assert expected.value == pytest.approx(each.value, abs=1e-9)


def test_no_budget_is_the_model_itself():
    mdp = ending_garnet(3)
    assert urbe.solve(mdp, SRectangular(L2Ball(0.0))).value == pytest.approx(urbe.solve(mdp).value, abs=1e-6)


def test_total_reward_until_the_end():
    """Discount 1: one live state that ends with probability 1/2 by either action; nature delays both, or one.

    With stay probability 1/2 + d_a, sum_a 2 d_a <= 0.4: reward -1 a step. The best answer is 1/2, 1/2 and d = 0.1 in
    the mean: value -1 / (1/2 - 0.1) = -2.5; a single action would face d = 0.2, -1 / 0.3.
    """
    transition = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = urbe.MDP.from_dense(transition, [[-1.0, -1.0], [0.0, 0.0]], discount=1.0, terminal=[1])
    solution = urbe.solve(mdp, SRectangular(L1Ball(0.4)), PartialPolicyIteration(tolerance=1e-9))
    assert solution.value == pytest.approx([-2.5, 0.0], abs=1e-9)
    assert solution.policy[0] == pytest.approx([0.5, 0.5])
    one = urbe.evaluate_policy(mdp, [0, -1], SRectangular(L1Ball(0.4)))
    assert one.value[0] == pytest.approx(-1 / 0.3, abs=1e-6)
    with pytest.raises(ValueError, match="discount is 1"):
        urbe.solve(mdp, SRectangular(L1Ball(3.0)))


def test_finite_horizon():
    mdp = ending_garnet(4)
    nature = SRectangular(LInfBall(0.1))
    short = urbe.solve(mdp, nature, BackwardInduction(200))
    assert short.value[0] == pytest.approx(urbe.solve(mdp, nature).value, abs=1e-6)
    assert short.policy.shape == (200, 30, 4)
    assert short.kernel_at(0).rows.row_sums(short.kernel_at(0).rows.probability) == pytest.approx(np.ones(mdp.n_rows))


def test_threads_change_nothing():
    mdp = urbe.library.garnet(4000, 5, 25, seed=0, discount=0.9)
    one, two = (urbe.solve(mdp, SRectangular(L1Ball(0.3)), threads=threads) for threads in (1, 2))
    assert np.array_equal(one.value, two.value)
    assert np.array_equal(one.policy, two.policy)


@pytest.mark.parametrize("k", [0, 600, 1000])
def test_actions_that_a_policy_hardly_takes_cost_any_price(k):
    """A price divided by 1e-320 is infinite: nature leaves the row alone. The truth is from 60-digit decimals."""
    row = np.repeat(np.arange(10), [5, 5, 5, 5, 3, 3, 4, 1, 4, 4])
    successor = [*[0, 1, 2, 3, 4] * 4, 2, 3, 4, 0, 1, 4, 0, 1, 2, 3, 1, 0, 1, 3, 4, 0, 2, 3, 4]
    probability = [
        *(3.658954479949985e-82, 1.0, 3.296825364813212e-48, 7.997841081673736e-69, 1e-320),
        *(0.23106060606060605, 0.125, 0.25, 0.09090909090909091, 0.303030303030303),
        *(0.03851454242054554, 0.031125398352106495, 0.12950958747174585, 0.7558901429524069, 0.04496032880319533),
        *(1.0, 2.0**-54, 2.0**-54, 2.0**-54, 2.0**-54),
        *(0.5, 0.25, 0.25),
        *(8.857768293360871e-09, 0.9999999911422317, 3.2609004594328016e-18),
        *(9.99990000099999e-06, 9.99990000099999e-17, 0.9999900000999989, 9.999900000999992e-22),
        1.0,
        *(0.09090000090900001, 9.090000090900001e-05, 9.0900000909e-06, 0.9090000090900001),
        *(9.9900000099899e-07, 0.99900000099899, 9.990000009989898e-15, 0.00099900000099899),
    ]
    reward = np.array([-0.0, -5e-324, 5e-324, 5e-324, -5e-324, 1e-310, -0.0, 1e-310, 5e-324, -0.0])
    mdp = urbe.MDP.from_transitions(row // 2, row % 2, successor, probability, np.ldexp(reward, k)[row], discount=0.95)
    policy = [[1.0, 2.3e-308], [1.0, 1e-320], [0.5, 0.5], [0.5, 0.5], [0.465348679, 0.534651321]]
    set_ = SRectangular(KLBall([1.0, 0.2, 1.0, 1.0, 0.01]))
    found = urbe.evaluate_policy(mdp, policy, set_, urbe.ModifiedPolicyIteration(0.0, sweeps=1), throw=False)
    assert np.ldexp(found.value, -k) == pytest.approx(
        [3.6886525e-310, 3.8838688e-310, 4.1527587e-310, 4.2912831e-310, 3.7707926e-310], rel=1e-7
    )
    assert found.gap <= 1e-10 * found.value.max() + 1e-317
