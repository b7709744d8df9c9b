"""Evaluation of given policies, and policies of a finite horizon."""

import itertools

import numpy as np
import pytest

import urbe
from urbe import MDP, BackwardInduction, L1Ball, ModifiedPolicyIteration, evaluate_policy, solve
from urbe.ambiguity.optimistic import Optimistic
from urbe.mdp.evaluate import policy_value

GARNET = urbe.library.garnet(30, 3, 4, seed=8, discount=0.97)
RNG = np.random.default_rng(2)
RANDOM = RNG.dirichlet(np.ones(3), size=30)
FIXED = RNG.integers(3, size=30)


@pytest.mark.parametrize("policy", [FIXED, RANDOM, np.eye(3)[FIXED]], ids=["actions", "mixtures", "one-hot"])
def test_nominal_values_are_those_of_the_linear_system(policy):
    solution = evaluate_policy(GARNET, policy)
    assert np.abs(solution.value - policy_value(GARNET, policy)).max() <= 1e-6
    assert solution.gap <= 1e-6


def test_one_hot_probabilities_are_actions():
    nature = L1Ball(0.3)
    one, other = evaluate_policy(GARNET, FIXED, nature), evaluate_policy(GARNET, np.eye(3)[FIXED], nature)
    assert np.abs(one.value - other.value).max() <= 1e-6
    assert np.array_equal(one.policy, FIXED)
    assert np.array_equal(other.policy, np.eye(3)[FIXED])


@pytest.mark.parametrize("policy", [FIXED, RANDOM], ids=["actions", "mixtures"])
def test_natures_answer_is_worse_than_any_kernel_tried(policy):
    nature = L1Ball(0.3)
    solution = evaluate_policy(GARNET, policy, nature)
    assert np.abs(policy_value(solution.kernel, policy) - solution.value).max() <= 1e-5
    rng = np.random.default_rng(0)
    bound = nature.bind(GARNET)
    for _ in range(5):
        other = GARNET.with_rows(bound.worst_case(rng.normal(size=30)).rows)
        assert (policy_value(other, policy) >= solution.lower - 1e-9).all()
    helped = evaluate_policy(GARNET, policy, Optimistic(nature))
    assert (helped.value > policy_value(GARNET, policy)).all()


def test_q_of_a_policy_are_values_of_single_deviations():
    solution = evaluate_policy(GARNET, FIXED, L1Ball(0.3))
    rows = L1Ball(0.3).bind(GARNET).values(solution.value)
    assert np.abs(solution.q - GARNET.by_action(rows)).max() <= 1e-9
    own = solution.q[np.arange(30), FIXED]
    assert np.abs(own - solution.value).max() <= 1e-6


def test_methods_and_threads_evaluate_alike():
    one = evaluate_policy(GARNET, RANDOM, L1Ball(0.3))
    other = evaluate_policy(GARNET, RANDOM, L1Ball(0.3), ModifiedPolicyIteration(), threads=2)
    assert np.abs(one.value - other.value).max() <= 1e-6


def test_terminal_states_take_no_action():
    mdp = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.9, terminal=[1])
    for policy in ([0, -1], [[1.0], [0.0]]):
        assert evaluate_policy(mdp, policy).value == pytest.approx([1.0 / 0.55, 0.0], abs=1e-6)
    with pytest.raises(ValueError, match=r"policy\[0\] is 3, but state 0 has the actions"):
        evaluate_policy(mdp, [3, -1])


def test_backward_induction_against_every_plan():
    """Nominal values over three steps are the best over all sequences of decision rules."""
    mdp = MDP.from_dense([[[0.2, 0.8], [0.9, 0.1]], [[0.5, 0.5], [0.0, 1.0]]], [[1.0, -2.0], [0.5, 0.25]], discount=0.8)
    transition, reward = mdp.to_dense()
    rules = list(itertools.product(range(2), repeat=2))
    best = np.full(2, -np.inf)
    for plan in itertools.product(rules, repeat=3):
        v = np.zeros(2)
        for rule in reversed(plan):
            v = np.array([reward[s, a] + 0.8 * transition[s, a] @ v for s, a in enumerate(rule)])
        best = np.maximum(best, v)
    solution = solve(mdp, method=BackwardInduction(3))
    assert solution.value[0] == pytest.approx(best, abs=1e-14)
    assert solution.value.shape == solution.lower.shape == solution.upper.shape == (4, 2)
    assert solution.policy.shape == (3, 2)
    assert solution.q.shape == (3, 2, 2)
    assert not solution.value[3].any()


def test_kernels_of_a_horizon_reproduce_its_values():
    solution = solve(GARNET, L1Ball(0.3), BackwardInduction(5))
    v = np.zeros(30)
    for step in range(4, -1, -1):
        transition, reward = solution.kernel_at(step).to_dense()
        q = reward + 0.97 * transition @ v
        v = np.take_along_axis(q, solution.policy[step][:, None], axis=1)[:, 0]
        assert v == pytest.approx(solution.value[step], abs=1e-12)
    with pytest.raises(ValueError, match=r"use kernel_at\(step\)"):
        _ = solution.kernel
    with pytest.raises(ValueError, match="no horizon; nature's answer is `kernel`"):
        solve(GARNET).kernel_at(0)


def test_a_long_horizon_nears_the_infinite_one():
    mdp = GARNET.with_discount(0.5)
    finite = solve(mdp, L1Ball(0.3), BackwardInduction(40))
    infinite = solve(mdp, L1Ball(0.3))
    assert np.abs(finite.value[0] - infinite.value).max() <= 1e-6
    assert np.array_equal(finite.policy[0], infinite.policy)
