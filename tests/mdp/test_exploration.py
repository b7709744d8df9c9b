"""The hard exploration models have the values that their docstrings state."""

from itertools import product

import numpy as np
import pytest

from oracles.mdp import value_iteration
from urbe.mdp import library
from urbe.mdp.evaluate import policy_value


def dive(depth, rights):
    """The return of one sequence of moves, from the rules of the game."""
    column, total = 0, 0.0
    for right in rights:
        if right:
            total -= 0.01 / depth
            total += column == depth - 1
        column = min(column + 1, depth - 1) if right else max(column - 1, 0)
    return total


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_deep_sea_plays_by_the_rules(seed):
    depth = 5
    sea = library.deep_sea(depth, seed=seed)
    for actions in product((0, 1), repeat=depth):
        state, total, rights = 0, 0.0, []
        for row, action in enumerate(actions):
            at = sea.row_of(state, action)
            assert state == row * (row + 1) // 2 + (state - row * (row + 1) // 2) <= (row + 1) * (row + 2) // 2 - 1
            assert sea.rows.entry_start[at + 1] - sea.rows.entry_start[at] == 1
            rights.append(sea.rows.reward[at] != 0.0)
            total += sea.rows.reward[at]
            state = int(sea.rows.successor[sea.rows.entry_start[at]])
        assert sea.terminal[state]
        assert total == pytest.approx(dive(depth, rights), abs=1e-15)
        if seed is None:
            assert rights == [action == 1 for action in actions]


@pytest.mark.parametrize("depth", [1, 2, 10, 20])
def test_deep_sea_is_worth_a_treasure_less_the_way(depth):
    assert value_iteration(library.deep_sea(depth, seed=3), depth)[0] == pytest.approx(0.99, abs=1e-14)
    discounted = value_iteration(library.deep_sea(depth, seed=3, discount=0.9), depth)[0]
    way = 0.01 / depth * sum(0.9**k for k in range(depth))
    assert discounted == pytest.approx(max(0.0, 0.9 ** (depth - 1) - way), abs=1e-14)


def test_deep_sea_hides_the_right_action():
    right = [library.deep_sea(8, seed=seed).rows.reward for seed in (0, 0, 1)]
    assert np.array_equal(right[0], right[1])
    assert not np.array_equal(right[0], right[2])


def test_chain_earns_what_the_paper_says():
    mdp = library.chain()
    p, r = mdp.to_dense()
    always = np.linalg.matrix_power(p[:, 0], 200)[0]
    assert always @ r[:, 0] == pytest.approx(10 * 0.8**5 + 2 * 0.2, abs=1e-12)
    assert always @ r[:, 0] == pytest.approx(3.6768, abs=1e-12)
    v = value_iteration(mdp, 3000)
    assert v == pytest.approx(policy_value(mdp, [0] * 5), rel=1e-9)  # going on is optimal
    impatient = library.chain(discount=0.1)
    assert value_iteration(impatient, 100) == pytest.approx(policy_value(impatient, [1, 1, 1, 1, 0]), rel=1e-9)


def test_chain_by_hand():
    p, r = library.chain(3, 0.1).to_dense()
    assert p[1, 0] == pytest.approx([0.1, 0.0, 0.9])
    assert p[1, 1] == pytest.approx([0.9, 0.0, 0.1])
    assert r == pytest.approx(np.array([[0.2, 1.8], [0.2, 1.8], [9.2, 2.8]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: library.deep_sea(0), "depth is 0, expected a whole number of at least 1"),
        (lambda: library.chain(1), "n_states is 1, expected a whole number of at least 2"),
        (lambda: library.chain(5, 1.1), r"slip is 1.1, expected a number in \[0, 1\]"),
    ],
)
def test_refuses_other_sizes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
