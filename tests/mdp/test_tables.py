"""MDP.from_gymnasium and MDP.from_pymdptoolbox."""

import re
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

from oracles.mdp import same_model, table_value_iteration, value_iteration
from urbe import MDP


@pytest.mark.parametrize(
    ("env", "n_states", "n_terminal"),
    [
        (FrozenLakeEnv(map_name="4x4"), 16, 5),
        (gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False), 64, 11),
        (CliffWalkingEnv(), 48, 1),
        (TaxiEnv(), 501, 1),
    ],
    ids=["small lake", "wrapped lake", "cliff", "taxi"],
)
def test_gymnasium_values_are_those_of_the_table(env: Any, n_states: int, n_terminal: int) -> None:
    mdp = MDP.from_gymnasium(env, discount=0.8)
    table: Any = env.unwrapped.P
    assert mdp.n_states == n_states
    assert mdp.terminal.sum() == n_terminal
    wanted = table_value_iteration(table, 0.8, sweeps=60)
    got = value_iteration(mdp, sweeps=60)
    where = ~mdp.terminal[: len(table)]
    # both make the same 60 sweeps; sums of the same few terms in another order
    np.testing.assert_allclose(got[: len(table)][where], wanted[where], rtol=1e-12, atol=1e-12)
    assert not got[mdp.terminal].any()
    start = np.zeros(n_states)
    start[: len(table)] = env.unwrapped.initial_state_distrib
    assert mdp.initial is not None
    np.testing.assert_allclose(mdp.initial, start, rtol=1e-15)


def test_the_table_itself_is_read_and_kept() -> None:
    table: Any = {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 2.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    mdp = MDP.from_gymnasium(table, discount=0.9)
    assert mdp.terminal.tolist() == [False, True]
    assert mdp.rows.probability.tolist() == [0.5, 0.5]
    assert mdp.rows.reward.tolist() == [1.0, 2.0]
    assert mdp.initial is None
    assert table == {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 2.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}


def test_an_end_that_is_also_passed_through_gets_a_state_of_its_own() -> None:
    table: Any = {
        0: {0: [(1.0, 1, 5.0, True)], 1: [(1.0, 1, 0.0, False)]},
        1: {0: [(1.0, 0, 1.0, False)]},
    }
    mdp = MDP.from_gymnasium(table, discount=0.9)
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.rows.successor.tolist() == [2, 1, 0]
    assert mdp.rows.reward.tolist() == [5.0, 0.0, 1.0]


def test_an_end_where_episodes_also_start_gets_a_state_of_its_own() -> None:
    table: Any = {0: {0: [(1.0, 1, 5.0, True)]}, 1: {0: [(1.0, 0, 1.0, False)]}}
    mdp = MDP.from_gymnasium(SimpleNamespace(P=table, initial_state_distrib=[0.5, 0.5]), discount=0.9)
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.initial is not None
    assert mdp.initial.tolist() == [0.5, 0.5, 0.0]
    ended = MDP.from_gymnasium(SimpleNamespace(P=table, initial_state_distrib=[1.0, 0.0]), discount=0.9)
    assert ended.terminal.tolist() == [False, True]


def test_a_loop_at_the_end_is_no_way_through() -> None:
    table: Any = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, False)]}}
    assert MDP.from_gymnasium(table, discount=0.9).terminal.tolist() == [False, True]


def test_outcomes_of_probability_zero_end_nothing() -> None:
    table: Any = {0: {0: [(1.0, 1, 1.0, False), (0.0, 0, 0.0, True)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    mdp = MDP.from_gymnasium(table, discount=0.9)
    assert mdp.terminal.tolist() == [False, False]


def test_rows_of_a_state_that_is_over_are_not_read() -> None:
    table: Any = {0: {0: [(1.0, 1, 1.0, True)]}, 1: {0: [(1.0, 0, 100.0, False)]}}
    mdp = MDP.from_gymnasium(table, discount=0.9)
    assert (mdp.n_rows, mdp.rows.reward.tolist()) == (1, [1.0])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([1, 2], "list has no transition table P"),
        (
            {0: {0: [(1.0, 0, 1.0)]}},
            "P[0][0][0] is (1.0, 0, 1.0), expected (probability, next_state, reward, terminated)",
        ),
        ({0: {0: [(1.0, 3, 1.0, False)]}}, "next_state[0] is 3, expected a 0-based state below 1."),
        ({1: {0: [(1.0, 1, 1.0, False)]}}, "P lists the states 1, expected 0, 1, ..., 0."),
        ({0: {2: [(0.5, 0, 1.0, False)]}}, "The probabilities of state 0, action 2 sum to 0.5, expected 1."),
        ({0: {}}, "P lists no transitions, expected at least one."),
        ({}, "P lists no transitions, expected at least one."),
        ({0: {0: [(1.0, 0, 0.0, False)]}, 1: {}}, "1 state is without actions: 1."),
    ],
)
def test_refuses_bad_tables(table: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        MDP.from_gymnasium(table, discount=0.9)


def test_refuses_environments_without_a_table() -> None:
    with gymnasium.make("CartPole-v1") as env, pytest.raises(ValueError, match="CartPoleEnv has no transition table P"):
        MDP.from_gymnasium(env, discount=0.9)


def toolbox(seed: int, n_states: int, n_actions: int) -> tuple[np.ndarray, np.ndarray]:
    """`(A, S, S)` transitions with zeros, and `(A, S, S)` rewards."""
    rng = np.random.default_rng(seed)
    p = rng.exponential(size=(n_actions, n_states, n_states)) * (rng.random((n_actions, n_states, n_states)) > 0.5)
    p[..., -1] += p.sum(-1) == 0.0
    return p / p.sum(-1, keepdims=True), rng.normal(size=p.shape)


@given(seed=st.integers(0, 2**32 - 1), n_states=st.integers(1, 5), n_actions=st.integers(1, 4))
def test_toolbox_arrays_dense_and_sparse_agree_with_from_dense(seed: int, n_states: int, n_actions: int) -> None:
    p, r = toolbox(seed, n_states, n_actions)
    before = p.copy(), r.copy()
    wanted = MDP.from_dense(p.transpose(1, 0, 2), r.transpose(1, 0, 2), discount=0.9)
    models = [
        MDP.from_pymdptoolbox(p, r, discount=0.9),
        MDP.from_pymdptoolbox(tuple(csr_matrix(m) for m in p), r, discount=0.9),
        MDP.from_pymdptoolbox([coo_array(m) for m in p], [csr_array(m) for m in r], discount=0.9),
    ]
    for mdp in models:
        transition, reward = mdp.to_dense()
        assert np.array_equal(transition, wanted.to_dense()[0])
        # expected rewards may be stored per entry or, when no row has two successors, per row
        np.testing.assert_allclose(reward, wanted.to_dense()[1], rtol=1e-14, atol=1e-14)
    assert np.array_equal(p, before[0])
    assert np.array_equal(r, before[1])


def test_toolbox_rewards_by_state_and_by_pair() -> None:
    p, _ = toolbox(0, 4, 2)
    by_state = np.array([1.0, 2.0, 3.0, 4.0])
    by_pair = np.arange(8.0).reshape(4, 2)
    dense = p.transpose(1, 0, 2)
    assert same_model(MDP.from_pymdptoolbox(p, by_state, discount=0.9), MDP.from_dense(dense, by_state, discount=0.9))
    assert same_model(MDP.from_pymdptoolbox(p, by_pair, discount=0.9), MDP.from_dense(dense, by_pair, discount=0.9))


def test_refuses_bad_toolbox_arrays_naming_the_entry() -> None:
    p, _ = toolbox(1, 3, 2)

    def refuses(message: str, transition: Any, reward: Any = 0.0) -> None:
        reward = np.zeros(3) if np.ndim(reward) == 0 else reward
        with pytest.raises(ValueError, match=re.escape(message)):
            MDP.from_pymdptoolbox(transition, reward, discount=0.9)

    for kind in (np.asarray, csr_matrix):
        bad = p.copy()
        bad[1, 2, 0] = -0.5
        refuses("transition[1][2, 0] is -0.5, expected a probability.", [kind(m) for m in bad])
        bad[1, 2, 0] = np.nan
        refuses("transition[1][2, 0] is nan", [kind(m) for m in bad])
        bad = p.copy()
        bad[1, 2] *= 0.5
        refuses("The probabilities of state 2, action 1 sum to 0.5, expected 1.", [kind(m) for m in bad])
    refuses("transition[1] has shape (2, 2), expected (3, 3).", [p[0], np.eye(2)])
    refuses("transition is empty, expected one (states, states) matrix for each action.", [])
    refuses("reward has shape (2,), expected (3,), (3, 2) or (2, 3, 3).", p, np.zeros(2))
