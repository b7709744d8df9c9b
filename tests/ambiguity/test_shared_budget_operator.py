"""The Bellman operator of shared budgets: policies, linear systems, kernels and the stated accuracy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.s_rectangular import level_by_bisection
from urbe.ambiguity.interval import LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.operator import Operator, PolicyRows
from urbe.ambiguity.shared_budget.s_rectangular import SRectangular
from urbe.mdp.model import MDP

BALLS = [L1Ball, L2Ball, LInfBall, KLBall]


def operator_of(mdp, ball) -> Operator:
    return SRectangular(ball).operator(mdp)


def random_model(seed, *, successors=False, terminal=(4,)):
    """Five states with one to three actions each."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(5, 0.4), size=(5, 3))
    transition[transition < 0.02] = 0.0
    transition /= transition.sum(axis=-1, keepdims=True)
    available = rng.random((5, 3)) < 0.6
    available[:, 0] = True
    reward = rng.normal(size=(5, 3, 5) if successors else (5, 3))
    return MDP.from_dense(transition, reward, discount=0.9, terminal=terminal, available=available)


@pytest.mark.parametrize("ball", BALLS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), successors=st.booleans(), budget=st.sampled_from([0.0, 1e-6, 0.1, 0.7, 9.0]))
def test_improvement_evaluation_and_kernel_agree(ball, seed, successors, budget):
    mdp = random_model(seed, successors=successors)
    operator = operator_of(mdp, ball(budget))
    v = np.random.default_rng(seed).normal(size=5) + 100.0
    v[4] = 0.0
    error = operator.error(v)
    assert error < 1e-11
    better = operator.improve(v)
    assert better.value[4] == 0.0
    assert better.policy.average(mdp, better.q) == pytest.approx(better.value, abs=2 * error)
    following, _ = operator.against(better.policy)
    assert following.apply(v)[0] == pytest.approx(better.value, abs=2 * error)
    system = following.linear_system(v)
    assert system.reward + mdp.discount * system.matrix @ v == pytest.approx(better.value, abs=4 * error)
    # nature's own best kernel leaves no action above the value
    answered = mdp.with_rows(operator.kernel(v, better.policy))
    rows = answered.rows
    q = rows.expected_reward() + mdp.discount * rows.row_sums(rows.probability * v[rows.successor])
    assert (q <= better.value[mdp.row_state] + 4 * error).all()


@pytest.mark.parametrize("ball", BALLS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), budget=st.sampled_from([0.0, 0.1, 0.7, 9.0]))
def test_any_policy_is_answered_on_its_own_rows_alone(ball, seed, budget):
    mdp = random_model(seed)
    operator = operator_of(mdp, ball(budget))
    rng = np.random.default_rng(seed)
    v = np.append(rng.normal(size=4), 0.0)
    weights = rng.integers(0, 3, mdp.n_rows) + 0.0
    weights[mdp.row_start[:4]] += 1.0
    weights /= np.bincount(mdp.row_state, weights, minlength=5)[mdp.row_state]
    policy = PolicyRows.of_weights(weights)
    value, _ = operator.against(policy)[0].apply(v)
    assert (value <= operator.improve(v).value + 2 * operator.error(v)).all()
    rows = operator.kernel(v, policy)
    q = rows.expected_reward() + mdp.discount * rows.row_sums(rows.probability * v[rows.successor])
    assert np.bincount(mdp.row_state, weights * q, minlength=5) == pytest.approx(value, abs=1e-12)
    if (value < operator.improve(v).value - 1e-9).any():
        for row in np.flatnonzero(weights == 0.0):
            a, b = rows.entry_start[row : row + 2]
            c, d = mdp.rows.entry_start[row : row + 2]
            assert np.array_equal(rows.probability[a:b], mdp.rows.probability[c:d])


def test_rows_that_gain_a_successor_fit_in_place():
    """Any state may receive mass: answered rows grow longer, the others stay as they are."""
    transition = np.zeros((3, 2, 3))
    transition[0, :, 1] = transition[1, :, 1] = 1.0
    mdp = MDP.from_dense(transition, [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], discount=0.5, terminal=[2])
    operator = operator_of(mdp, L1Ball(0.5, support="all"))
    v = np.array([1.0, 2.0, 0.0])
    policy = PolicyRows(np.array([0, 2]))  # not optimal in state 0
    rows = operator.kernel(v, policy)
    dense, _ = mdp.with_rows(rows).to_dense()
    assert dense[0, 0] == pytest.approx([0.0, 0.75, 0.25])
    assert dense[0, 1] == pytest.approx([0.0, 1.0, 0.0])
    assert operator.against(policy)[0].apply(v)[0][0] == pytest.approx(0.75)


@pytest.mark.parametrize("ball", BALLS)
def test_one_row_each_is_the_policy_with_certainty(ball):
    mdp = random_model(3)
    operator = operator_of(mdp, ball(0.3))
    v = np.arange(5.0) - 4.0
    weights = np.zeros(mdp.n_rows)
    weights[mdp.row_start[:4]] = 1.0
    sure, mixed = PolicyRows(mdp.row_start[:4]), PolicyRows.of_weights(weights)
    one, other = (operator.against(policy)[0].apply(v)[0] for policy in (sure, mixed))
    assert np.array_equal(one, other)


@pytest.mark.parametrize(("ball", "norm"), [(L2Ball, "l2"), (KLBall, "kl")])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), budget=st.sampled_from([1e-3, 0.1, 0.7]))
def test_the_stated_accuracy_holds(ball, norm, seed, budget):
    mdp = random_model(seed, terminal=(1, 2, 3, 4))
    operator = operator_of(mdp, ball(budget))
    v = np.random.default_rng(seed).normal(size=5)
    v[1:] *= 10.0
    rows = slice(0, mdp.row_start[1])
    transition, reward = mdp.to_dense()
    ps = transition[0, mdp.action[rows]]
    zs = reward[0, mdp.action[rows]].astype(np.longdouble)[:, None] + np.longdouble(mdp.discount) * v
    exact = level_by_bisection(ps, zs, budget, norm, ps > 0)
    # the oracle's own sums take rows as they are, not as distributions: that is part of `error`
    assert abs(operator.improve(v).value[0] - exact) <= operator.error(v) + 1e-15 * np.abs(zs).max()


@pytest.mark.parametrize("ball", BALLS)
def test_values_do_not_depend_on_what_a_memory_holds(ball):
    mdp = random_model(5)
    operator = operator_of(mdp, ball(0.4))
    rng = np.random.default_rng(0)
    _, _, policy, memory = operator.improve(np.zeros(5))
    following, known = operator.against(policy, memory)
    for _ in range(20):
        v = np.append(rng.normal(size=4) * 10.0 ** rng.integers(-3, 3), 0.0)
        improvement = operator.improve(v, memory)
        value, known = following.apply(v, known)
        memory = improvement.memory
        assert improvement.value == pytest.approx(operator.improve(v).value, abs=2 * operator.error(v))
        assert value == pytest.approx(following.apply(v)[0], abs=2 * operator.error(v))
