"""Methods and properties of a finished model."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urbe import MDP
from urbe.mdp import library


@pytest.fixture
def uneven() -> MDP:
    """Three states, actions {0, 2}, {1} and none."""
    return MDP.from_transitions(
        [0, 0, 0, 1, 1], [0, 0, 2, 1, 1], [0, 1, 2, 0, 2], [0.25, 0.75, 1.0, 0.5, 0.5], [1, 2, 3, 4, 5],
        discount=0.9, terminal=[2],
    )  # fmt: skip


def test_pairs_and_their_rows(uneven: MDP) -> None:
    assert (uneven.n_states, uneven.n_actions, uneven.n_rows) == (3, 3, 3)
    assert uneven.row_start.tolist() == [0, 2, 3, 3]
    assert [uneven.row_of(s, a) for s, a in ((0, 0), (0, 2), (1, 1))] == [0, 1, 2]
    assert uneven.row_name(2) == "state 1, action 1"
    assert repr(uneven) == "MDP(3 states (1 terminal), 3 rows, 5 entries, discount 0.9)"


@pytest.mark.parametrize(
    ("state", "action", "message"),
    [
        (0, 1, "State 0 has no action 1; it has [0, 2]."),
        (0, 3, "State 0 has no action 3; it has [0, 2]."),
        (2, 0, "State 2 has no action 0; it has []."),
        (3, 0, "There is no state 3; the model has the states 0, ..., 2."),
        (-1, 0, "There is no state -1; the model has the states 0, ..., 2."),
    ],
)
def test_pairs_that_do_not_exist(uneven: MDP, state: int, action: int, message: str) -> None:
    with pytest.raises(KeyError, match=re.escape(message)):
        uneven.row_of(state, action)


def test_tables_by_action(uneven: MDP) -> None:
    table = uneven.by_action([1.0, 2.0, 3.0], fill=-1.0)
    assert table.tolist() == [[1.0, -1.0, 2.0], [-1.0, 3.0, -1.0], [-1.0, -1.0, -1.0]]
    assert np.isnan(uneven.by_action([1.0, 2.0, 3.0])[2]).all()


def test_numbers_per_row(uneven: MDP) -> None:
    table = [[1.0, 9.0, 2.0], [9.0, 3.0, 9.0], [9.0, 9.0, 9.0]]
    assert uneven.per_row("radius", 0.5).tolist() == [0.5, 0.5, 0.5]
    for given_as in (np.array([1.0, 2.0, 3.0]), table, {(1, 1): 3.0, (0, 0): 1.0, (0, 2): 2.0}):
        assert uneven.per_row("radius", given_as).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({(0, 0): 1.0, (1, 1): 1.0}, "radius has no number for state 0, action 2"),
        (np.zeros(2), "radius has shape (2,), expected a number, one per row (3,) or one per state and action (3, 3)."),
        (np.array([1.0, np.nan, 1.0]), "radius[1] is nan, expected a finite number."),
    ],
)
def test_numbers_per_row_that_do_not_fit(uneven: MDP, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        uneven.per_row("radius", value)


def test_expected_rewards_and_dense_form(uneven: MDP) -> None:
    assert uneven.rows.expected_reward().tolist() == [1.75, 3.0, 4.5]
    transition, reward = uneven.to_dense()
    assert transition[0].tolist() == [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert reward.tolist() == [[1.75, 0.0, 3.0], [0.0, 4.5, 0.0], [0.0, 0.0, 0.0]]
    assert uneven.matrix().toarray().tolist() == [[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]


def test_another_discount_leaves_the_model_alone(uneven: MDP) -> None:
    other = uneven.with_discount(0.5)
    assert (other.discount, uneven.discount) == (0.5, 0.9)
    assert other.rows is uneven.rows
    with pytest.raises(ValueError, match=r"discount is 2, expected a number in \[0, 1\]"):
        uneven.with_discount(2)


@given(seed=st.integers(0, 2**32 - 1), n_chosen=st.integers(0, 8))
def test_taken_rows_are_those_of_the_matrix(seed: int, n_chosen: int) -> None:
    mdp = library.garnet(4, 3, 2, seed=seed)
    chosen = np.random.default_rng(seed).integers(0, 12, size=n_chosen)
    rows = mdp.rows.take(chosen)
    assert np.array_equal(rows.reward, mdp.rows.reward[chosen])
    assert np.array_equal(mdp.with_rows(rows).rows.length, np.full(n_chosen, 2))
    dense = np.zeros((n_chosen, 4))
    dense[rows.entry_row, rows.successor] = rows.probability
    assert np.array_equal(dense, mdp.matrix().toarray()[chosen])


def test_taken_rows_keep_the_rewards_of_their_successors() -> None:
    rows = library.gambler(6).rows.take(np.array([8, 0, 8]))  # stakes of 1 with 5, with 1, and with 5 again
    assert rows.entry_start.tolist() == [0, 2, 4, 6]
    assert rows.successor.tolist() == [4, 6, 0, 2, 4, 6]
    assert rows.reward.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def test_rows_without_zeros_and_with_all_states() -> None:
    p = np.array([[[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]], [[0.2, 0.3, 0.5]]])
    full = MDP.from_dense(p, [[1.0], [2.0], [3.0]], discount=0.9, keep_zeros=True)
    sparse = MDP.from_dense(p, [[1.0], [2.0], [3.0]], discount=0.9)
    assert full.rows.is_dense
    assert full.rows.without_zeros.successor.tolist() == sparse.rows.successor.tolist() == [1, 0, 2, 0, 1, 2]
    assert full.rows.without_zeros.entry_start.tolist() == [0, 1, 3, 6]
    assert np.array_equal(sparse.rows.with_all_states().probability, full.rows.probability)
    assert sparse.rows.with_all_states().reward.tolist() == [1.0, 2.0, 3.0]
