"""MDP.from_dense: what it stores, what it rejects, and its messages."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import urbe
from oracles.mdp import same_model
from urbe import MDP


def random_dense(seed: int, n_states: int, n_actions: int, zeros: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Transition and reward arrays with about `zeros` of the successors missing."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(n_states, n_actions, n_states)) * (
        rng.random((n_states, n_actions, n_states)) > zeros
    )
    weights[..., 0] += weights.sum(-1) == 0.0
    return weights / weights.sum(-1, keepdims=True), rng.normal(size=(n_states, n_actions)).round(2)


def refuses(message: str, *args: object, **kwargs: object) -> None:
    """Asserts that from_dense raises with `message`, literally, somewhere in its text."""
    with pytest.raises(ValueError, match=re.escape(message)):
        MDP.from_dense(*args, **({"discount": 0.9} | kwargs))  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**32 - 1), n_states=st.integers(1, 6), n_actions=st.integers(1, 4))
def test_to_dense_gives_back_what_went_in(seed: int, n_states: int, n_actions: int) -> None:
    p, r = random_dense(seed, n_states, n_actions)
    before = p.copy(), r.copy()
    mdp = MDP.from_dense(p, r, discount=0.9)
    transition, reward = mdp.to_dense()
    assert np.array_equal(p, before[0])
    assert np.array_equal(r, before[1])
    # rows that sum to one but for rounding are stored as they are; others are rescaled by less than an ulp per entry
    np.testing.assert_allclose(transition, p, rtol=n_states * 2.0**-52, atol=0)
    assert np.array_equal(reward, r)
    assert np.array_equal(transition > 0, p > 0)
    assert mdp.rows.n_entries == (p > 0).sum()


def test_types_and_sizes() -> None:
    mdp = MDP.from_dense(*random_dense(0, 5, 3), discount=0.9)
    assert (mdp.n_states, mdp.n_actions, mdp.n_rows) == (5, 3, 15)
    for array in (mdp.row_start, mdp.action, mdp.rows.entry_start, mdp.rows.successor):
        assert array.dtype == np.int32
    for numbers in (mdp.rows.probability, mdp.rows.reward):
        assert numbers.dtype == np.float64
        assert numbers.flags.c_contiguous


def test_the_model_does_not_share_memory_with_dense_input() -> None:
    p, r = random_dense(0, 4, 2, zeros=0.0)
    mdp = MDP.from_dense(p, r, discount=0.9)
    assert not np.shares_memory(mdp.rows.probability, p)
    assert not np.shares_memory(mdp.rows.reward, r)


def test_reward_shapes_agree() -> None:
    p, _ = random_dense(1, 4, 2)
    by_state = np.array([1.0, -2.0, 3.0, 0.5])
    models = [
        MDP.from_dense(p, by_state, discount=0.9),
        MDP.from_dense(p, np.repeat(by_state[:, None], 2, axis=1), discount=0.9),
    ]
    assert same_model(*models)
    full = MDP.from_dense(p, np.broadcast_to(by_state[:, None, None], p.shape), discount=0.9)
    assert full.rows.rewards_successors
    # a sum of at most four products, each rounded once
    np.testing.assert_allclose(full.rows.expected_reward(), np.repeat(by_state, 2), rtol=2.0**-50)
    assert np.array_equal(MDP.from_dense(p, 2.5, discount=0.9).rows.reward, np.full(8, 2.5))


def test_rewards_of_successors_follow_their_entry() -> None:
    p = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])
    r = np.array([[[1.0, 2.0]], [[3.0, 4.0]]])
    assert MDP.from_dense(p, r, discount=0.9).rows.reward.tolist() == [1.0, 2.0, 3.0]
    kept = MDP.from_dense(p, r, discount=0.9, keep_zeros=True)
    assert kept.rows.reward.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert kept.rows.probability.tolist() == [0.25, 0.75, 1.0, 0.0]
    assert kept.rows.is_dense


def test_missing_pairs_are_not_read() -> None:
    p, r = random_dense(2, 4, 2)
    available = np.array([[True, True], [True, False], [False, True], [True, True]])
    clean = MDP.from_dense(p, r, discount=0.9, available=available, terminal=[3])
    p[1, 1], r[1, 1] = np.nan, np.nan
    p[2, 0] = -1.0
    p[3], r[3] = np.inf, np.nan
    mdp = MDP.from_dense(p, r, discount=0.9, available=available, terminal=[3])
    assert same_model(mdp, clean)
    assert mdp.terminal.tolist() == [False, False, False, True]
    assert mdp.action.tolist() == [0, 1, 0, 1]
    assert mdp.row_state.tolist() == [0, 0, 1, 2]


def test_terminal_may_be_a_mask() -> None:
    p, r = random_dense(2, 3, 2)
    by_mask = MDP.from_dense(p, r, discount=0.9, terminal=np.array([False, True, False]))
    assert same_model(by_mask, MDP.from_dense(p, r, discount=0.9, terminal=[1]))


def test_rows_off_by_rounding_of_files_are_rescaled() -> None:
    p = np.array([[[0.3333333333, 0.3333333333, 0.3333333333]]] * 3)
    mdp = MDP.from_dense(p, 0.0, discount=0.9)
    assert np.abs(mdp.rows.row_sums(mdp.rows.probability) - 1.0).max() <= 3 * 2.0**-52


def test_one_state() -> None:
    mdp = MDP.from_dense([[[1.0]]], 1.0, discount=0.5)
    assert (mdp.n_states, mdp.n_rows, mdp.rows.n_entries) == (1, 1, 1)


def test_every_state_terminal() -> None:
    mdp = MDP.from_dense([[[1.0, 0.0]], [[0.0, 1.0]]], 1.0, discount=0.5, terminal=[0, 1])
    assert (mdp.n_rows, mdp.rows.n_entries, mdp.n_actions) == (0, 0, 0)


def test_refuses_bad_numbers_naming_the_index() -> None:
    p, r = random_dense(3, 4, 2, zeros=0.0)
    bad = p.copy()
    bad[2, 1, 3] = np.nan
    refuses("transition[2, 1, 3] is nan, expected a finite number. 1 of 32 entries is not finite", bad, r)
    bad = p.copy()
    bad[2, 1, 3] = -0.25
    refuses("transition[2, 1, 3] is -0.25, expected at least 0.", bad, r)
    bad = r.copy()
    bad[3, 0] = np.inf
    refuses("reward[3, 0] is inf, expected a finite number.", p, bad)
    refuses("reward is nan, expected a finite number.", p, np.nan)
    refuses("transition cannot be read as an array of numbers", [[["a"]]], 0.0)


def test_refuses_rows_that_are_no_distributions_naming_the_pair() -> None:
    p, r = random_dense(4, 4, 3, zeros=0.0)
    p[3, 1] *= 0.98
    refuses("The probabilities of state 3, action 1 sum to 0.98, expected 1. 1 of 12 rows is not a distribution", p, r)
    p[0, 2] = 0.0
    refuses("state 0, action 2 has no successors, expected probabilities that sum to 1.", p, r)


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 3, 3), (3, 2, 2), (0, 1, 0), (3, 0, 3)])
def test_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    refuses(f"transition has shape {shape}, expected (states, actions, states)", np.zeros(shape), 0.0)


def test_points_to_the_toolbox_reader() -> None:
    refuses("for pymdptoolbox arrays (A, S, S) use MDP.from_pymdptoolbox", np.zeros((2, 3, 3)), 0.0)


def test_refuses_other_arguments() -> None:
    p, r = random_dense(5, 3, 2)
    refuses("reward has shape (2,), expected a number, (3,), (3, 2) or (3, 2, 3).", p, [1.0, 2.0])
    refuses("terminal[0] is 3, expected a 0-based state below 3.", p, r, terminal=[3])
    refuses("terminal[1] is -1, expected at least 0", p, r, terminal=[0, -1])
    refuses("expected booleans of shape (3, 2)", p, r, available=np.ones((3, 2)))
    refuses("1 state is without actions: 1.", p, r, available=np.array([[True, True], [False, False], [True, True]]))
    refuses("2 states are without actions: 0, 1.", p, r, available=np.repeat([[False], [False], [True]], 2, axis=1))
    refuses("initial sums to 0.9, expected 1.", p, r, initial=[0.5, 0.4, 0.0])
    refuses("initial has 2 entries, expected 3.", p, r, initial=[0.5, 0.5])
    refuses("initial[1] is -0.5, expected at least 0.", p, r, initial=[1.0, -0.5, 0.5])


@pytest.mark.parametrize("discount", [-0.1, 1.1, np.nan, "a", None])
def test_refuses_other_discounts(discount: object) -> None:
    refuses(f"discount is {discount!r}, expected", [[[1.0]]], 0.0, discount=discount)


def test_the_first_state_may_be_a_number() -> None:
    kernel = np.full((2, 1, 2), 0.5)
    assert MDP.from_dense(kernel, 0.0, discount=0.9, initial=1).initial.tolist() == [0.0, 1.0]
    for wrong in (2, -1, 0.5):
        with pytest.raises(ValueError, match=r"initial\[0\] is"):
            MDP.from_dense(kernel, 0.0, discount=0.9, initial=wrong)


def test_single_precision_is_as_exact_as_it_can_be():
    """Rows of float32 sum to one up to their own rounding, whichever constructor reads them; other rows do not."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(40), size=(40, 3)).astype(np.float32)
    p /= p.sum(axis=-1, keepdims=True)
    assert (np.abs(p.astype(float).sum(axis=-1) - 1.0) > 1e-9).any()
    dense = MDP.from_dense(p, 0.0, discount=0.9)
    np.testing.assert_allclose(dense.rows.row_sums(dense.rows.probability), 1.0, rtol=0, atol=1e-15)
    s, a, t = (axis.ravel() for axis in np.indices(p.shape))
    columns = {"state": s, "action": a, "next_state": t, "probability": p.ravel(), "reward": np.zeros(len(s))}
    others = [
        MDP.from_transitions(*columns.values(), discount=0.9),
        MDP.from_columns(columns, discount=0.9),
        MDP.from_sparse([csr_array(p[:, k]) for k in range(3)], 0.0, discount=0.9),
        MDP.from_pymdptoolbox(p.transpose(1, 0, 2), np.zeros(40), discount=0.9),
    ]
    for other in others:
        np.testing.assert_array_equal(other.rows.probability, dense.rows.probability)
    with pytest.raises(ValueError, match=r"sum to 0\.9999999\d+, expected 1"):
        MDP.from_dense(p.astype(float), 0.0, discount=0.9)
    with pytest.raises(ValueError, match=r"sum to 0\.99998\d+, expected 1"):
        MDP.from_dense(p * np.float32(0.99999), 0.0, discount=0.9)


def test_policies_scenarios_and_starts_may_be_of_single_precision():
    third = np.full((3, 1, 3), 1.0 / 3.0)
    mdp = MDP.from_dense(np.repeat(third, 3, axis=1), np.eye(3), discount=0.9, initial=third[0, 0].astype(np.float32))
    single = third[:, 0].astype(np.float32)
    assert abs(single.astype(float).sum(axis=1)[0] - 1.0) > 1e-9
    np.testing.assert_allclose(urbe.evaluate_policy(mdp, single).value, urbe.evaluate_policy(mdp, third[:, 0]).value)
    with pytest.raises(ValueError, match=r"policy\[0\] sums to"):
        urbe.evaluate_policy(mdp, single.astype(float))
    kernels = np.repeat(third, 3, axis=1)
    found = [urbe.solve(mdp, urbe.Scenarios([k])).value for k in (kernels.astype(np.float32), kernels)]
    np.testing.assert_allclose(*found)
