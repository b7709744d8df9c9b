"""Models from one sparse matrix for each action."""

import re

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array

import urbe


def matrices(seed=0, n_states=6, n_actions=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_states), size=(n_actions, n_states)) * (
        rng.random((n_actions, n_states, n_states)) < 0.6
    )
    p[:, :, 0] += 1e-3
    return p / p.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("kind", [csr_array, coo_array, csc_matrix, np.asarray])
def test_agrees_with_a_dense_array(kind):
    p = matrices()
    rewards = np.random.default_rng(1).normal(size=p.shape)
    dense = urbe.MDP.from_dense(p.transpose(1, 0, 2), rewards.transpose(1, 0, 2), discount=0.9)
    for reward in (rewards, [csr_array(r) for r in rewards]):
        mdp = urbe.MDP.from_sparse([kind(m) for m in p], reward, discount=0.9)
        for one, two in zip(mdp.to_dense(), dense.to_dense(), strict=True):
            assert one == pytest.approx(two, abs=1e-12)


def test_empty_rows_are_actions_that_do_not_exist():
    p = matrices()
    p[1, 2] = 0.0
    p[:, 4] = 0.0
    mdp = urbe.MDP.from_sparse({name: csr_array(m) for name, m in zip("xyz", p, strict=True)}, 1.0, discount=0.9)
    assert mdp.terminal.tolist() == [False] * 4 + [True, False]
    assert mdp.labels.actions == ("x", "y", "z")
    with pytest.raises(KeyError, match="State 2 has no action y"):
        mdp.row_of(2, 1)


def test_labels_start_and_end():
    stay, go = csr_array([[1.0, 0.0], [0.0, 1.0]]), csr_array([[0.0, 1.0], [0.0, 1.0]])
    mdp = urbe.MDP.from_sparse(
        {"stay": stay, "go": go}, {"stay": csr_array((2, 2)), "go": csr_array([[0.0, 5.0], [0.0, 0.0]])}, discount=0.9,
        terminal=["there"], initial="here", states=["here", "there"],
    )  # fmt: skip
    solution = urbe.solve(mdp)
    assert (solution.value_at_start(), solution.action_text(0), solution.action_text(1)) == (5.0, "go", "end")


@pytest.mark.parametrize(
    ("transition", "reward", "message"),
    [
        ([], 0.0, "transition is empty, expected one (states, states) matrix for each action."),
        ([np.eye(2), np.eye(3)], 0.0, "transition[1] has shape (3, 3), expected (2, 2)."),
        ([0.5 * np.eye(2)], 0.0, "The probabilities of state a, action 0 sum to 0.5, expected 1."),
        ([-np.eye(2)], 0.0, "transition[0][0, 0] is -1, expected a probability."),
        ([np.eye(2)], [csr_array((3, 3))], "reward[0] has shape (3, 3), expected (2, 2)."),
        ([np.eye(2)], [csr_array((2, 2))] * 2, "reward has 2 matrices, expected 1, one for each action."),
        ({"x": np.eye(2)}, {"y": csr_array((2, 2))}, "reward has no matrix for ['x'] actions, expected the same keys."),
    ],
)
def test_refusals(transition, reward, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        urbe.MDP.from_sparse(transition, reward, discount=0.9, states=["a", "b"])


def test_one_matrix_is_not_a_list_of_them():
    with pytest.raises(
        TypeError, match=r"transition is .*, expected a list or \{action: matrix\} of matrices, one for each"
    ):
        urbe.MDP.from_sparse(csr_array([[1.0]]), 0.0, discount=0.9)
