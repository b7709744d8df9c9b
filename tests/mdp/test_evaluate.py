"""Exact policy evaluation against rationals and dense algebra, and its errors."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.mdp import exact_policy_value
from urbe import MDP
from urbe.mdp import library
from urbe.mdp.evaluate import occupancy, policy_matrix, policy_rows, policy_value


def random_model(seed: int, discount: float) -> tuple[MDP, np.ndarray, np.ndarray, np.random.Generator]:
    """A small model with a terminal last state, dyadic probabilities and rewards r(s, a, s')."""
    rng = np.random.default_rng(seed)
    n, a = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    p = rng.multinomial(63, np.full(n, 1.0 / n), size=(n, a)).astype(float)
    p[..., -1] += 1.0  # every step may end
    p /= 64.0
    r = rng.integers(-8, 9, size=(n, a, n)) / 4.0
    return MDP.from_dense(p, r, discount=discount, terminal=[n - 1]), p, r, rng


@given(seed=st.integers(0, 2**32 - 1), discount=st.sampled_from([0.0, 0.5, 0.99, 1.0]))
def test_values_are_the_exact_ones(seed: int, discount: float) -> None:
    mdp, p, r, rng = random_model(seed, discount)
    policy = np.append(rng.integers(0, mdp.n_actions, mdp.n_states - 1), -1)
    wanted = exact_policy_value(p, r, discount, policy.tolist())
    # every step ends with 1/64 at least, so the system is conditioned below 130: 13 digits
    np.testing.assert_allclose(policy_value(mdp, policy), np.array(wanted, dtype=float), rtol=1e-13, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), discount=st.sampled_from([0.0, 0.9, 1.0]))
def test_randomised_values_and_occupancies_by_dense_algebra(seed: int, discount: float) -> None:
    mdp, p, r, rng = random_model(seed, discount)
    policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    policy[-1] = 0.0
    before = policy.copy()
    start = rng.dirichlet(np.ones(mdp.n_states))
    p_pi = np.einsum("sa,sat->st", policy, p)
    r_pi = np.einsum("sa,sat,sat->s", policy, p, r)
    system = np.eye(mdp.n_states) - discount * p_pi
    value = policy_value(mdp, policy)
    visits = occupancy(mdp, policy, start)
    np.testing.assert_allclose(value, np.linalg.solve(system, r_pi), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(visits, np.linalg.solve(system.T, start), rtol=1e-11, atol=1e-12)
    assert visits @ r_pi == pytest.approx(start @ value, rel=1e-10, abs=1e-11)
    assert np.array_equal(policy, before)
    if discount == 1.0:
        assert visits[-1] == pytest.approx(1.0, rel=1e-11)  # it ends for certain, in the only terminal state


def test_deterministic_and_degenerate_random_policies_agree() -> None:
    mdp = library.machine_replacement()
    ids = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    table = np.eye(2)[ids]
    assert np.array_equal(policy_rows(mdp, ids), policy_rows(mdp, table))
    assert policy_rows(mdp, ids).sum() == 10.0
    assert np.array_equal(policy_value(mdp, ids), policy_value(mdp, table))


def test_rows_of_a_policy_with_uneven_action_sets() -> None:
    mdp = library.gambler(6)
    # stakes: 1 | 1 2 | 1 2 3 | 1 2 | 1
    assert policy_rows(mdp, [-1, 1, 2, 2, 1, 1, -1]).tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1]
    matrix = policy_matrix(mdp, policy_rows(mdp, [-1, 1, 2, 2, 1, 1, -1])).toarray()
    assert matrix[2].tolist() == [0.6, 0, 0, 0, 0.4, 0, 0]
    assert not matrix[[0, 6]].any()


def test_probabilities_off_by_rounding_are_rescaled() -> None:
    mdp = library.riverswim()
    weights = policy_rows(mdp, np.full((6, 2), 0.5 + 3e-10))
    assert weights.tolist() == [0.5] * 12


def test_occupancy_without_an_end_sums_to_the_horizon() -> None:
    mdp = library.riverswim(discount=0.9)
    visits = occupancy(mdp, np.ones(6, dtype=int))
    assert visits.sum() == pytest.approx(10.0, rel=1e-13)
    assert visits[0] == pytest.approx(1.0 + 0.9 * (0.4 * visits[0] + 0.05 * visits[1]), rel=1e-13)
    other = occupancy(mdp, np.ones(6, dtype=int), initial=[0, 0, 0, 0, 0, 1])
    assert other[5] > visits[5]


def test_occupancy_needs_a_start() -> None:
    mdp = library.garnet(5, 2, 2, seed=0)
    with pytest.raises(ValueError, match=re.escape("The model has no initial distribution; give initial=")):
        occupancy(mdp, [0] * 5)
    with pytest.raises(ValueError, match=r"initial sums to 0\.5, expected 1\."):
        occupancy(mdp, [0] * 5, [0.5, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([-1, 1, 3, 1, 1, 1, -1], "policy[2] is 3, but state 2 has the actions 1, 2."),
        ([-1, 1, 0, 1, 1, 1, -1], "policy[2] is 0, but state 2 has the actions 1, 2."),
        ([-1, -1, 1, 1, 1, 1, -1], "policy[1] is -1, but state 1 has the actions 1."),
        ([-1, 1, 1, 1, 1, 1, 1], "policy[6] is 1, but state 6 is terminal: expected -1"),
        ([-1, 1, 1, 1, 1, 1], "policy has 6 entries, expected one action for each of 7 states."),
        ([-1, 1, -2, 1, 1, 1, -1], "policy[2] is -2, expected at least -1"),
        ([-1, 1, 1.5, 1, 1, 1, -1], "policy[2] is 1.5, expected a whole number"),
        (0, "policy is 0, expected (7,) action ids or (7, 4) probabilities."),
        (np.zeros((7, 3)), "policy has shape (7, 3), expected (7, 4) probabilities."),
        (np.zeros((7, 4)), "policy[1] sums to 0, expected 1. 5 of 7 states are without a distribution"),
        (np.full((7, 4), 0.25), "policy[0, 0] is 0.25, but state 0 is terminal: expected -1"),
        (np.eye(7, 4), "policy[0, 0] is 1, but state 0 is terminal"),
        (np.vstack((np.zeros(4), np.eye(6, 4))), "policy[1, 0] is 1, but state 1 has the actions 1."),
        (np.full((7, 4), -0.25), "policy[0, 0] is -0.25, expected at least 0."),
        (np.full((7, 4), np.nan), "policy[0, 0] is nan, expected a finite number."),
    ],
)
def test_refuses_policies_that_do_not_fit(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        policy_value(library.gambler(6), policy)


def test_undiscounted_policies_must_end() -> None:
    # 0 -> 1 -> 0 forever or 0 -> 2, the end
    p = np.array([[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]], dtype=float)
    mdp = MDP.from_dense(p, -1.0, discount=1.0, terminal=[2])
    assert policy_value(mdp, [1, 0, -1]).tolist() == [-1.0, -2.0, 0.0]
    message = re.escape(
        "With discount 1 the policy must reach a terminal state; from 2 of 3 states it never does: 0, 1."
    )
    with pytest.raises(ValueError, match=message):
        policy_value(mdp, [0, 0, -1])
    with pytest.raises(ValueError, match=message):
        occupancy(mdp, [0, 0, -1], [1, 0, 0])
    sometimes = policy_value(mdp, [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(sometimes, [-3.0, -4.0, 0.0], rtol=1e-15)
    assert policy_value(mdp.with_discount(0.5), [0, 0, -1]).tolist() == [-2.0, -2.0, 0.0]


def test_a_move_of_probability_zero_is_no_end() -> None:
    mdp = MDP.from_transitions([0, 0], [0, 0], [0, 1], [1.0, 0.0], 1.0, discount=1.0, terminal=[1])
    with pytest.raises(ValueError, match="from 1 of 2 states it never does: 0"):
        policy_value(mdp, [0, -1])


@pytest.mark.parametrize("n", [40, 60, 200])
def test_ends_beyond_double_precision_are_refused(n: int) -> None:
    mdp = library.haddad_monmege(n)
    policy = np.where(mdp.terminal, -1, 0)
    with pytest.raises(ValueError, match="singular to double precision"):
        policy_value(mdp, policy)
    assert np.isfinite(policy_value(mdp.with_discount(0.99), policy)).all()


def test_discounts_next_to_one_are_refused_unless_the_policy_ends_soon() -> None:
    with pytest.raises(ValueError, match="singular to double precision"):
        policy_value(library.riverswim(discount=1.0 - 1e-13), np.ones(6, dtype=int))
    soon = MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], 1.0, discount=1.0 - 1e-13, terminal=[1])
    assert policy_value(soon, [0, -1])[0] == pytest.approx(2.0, rel=1e-12)


def test_a_model_of_terminal_states_only() -> None:
    mdp = MDP.from_dense([[[1.0]]], 1.0, discount=1.0, terminal=[0])
    assert policy_value(mdp, [-1]).tolist() == [0.0]
    assert occupancy(mdp, [-1], [1.0]).tolist() == [1.0]
