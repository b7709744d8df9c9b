"""Deep sea follows its rules, equals the tabular model, and has the value that its docstring states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.mdp import value_iteration
from urbe.mdp import library
from urbe.simulators import DeepSea, DeepSeaParams, step
from urbe.simulators.finite import to_mdp

PARAMS = DeepSeaParams(move_cost=0.3, treasure=2.0, slip=0.25)


def numbered(row, column):
    return row * (row + 1) // 2 + column


def by_the_rules(size, row, column, goes_right, slips, params):
    """Next row and column, or None at the end, and the reward: the game as it is described."""
    reward = 0.0
    if goes_right:
        reward -= params.move_cost / size
        if column == size - 1:
            reward += params.treasure
        column += 0 if slips else 1
    else:
        column = max(column - 1, 0)
    return (None if row == size - 1 else (row + 1, column)), reward


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("size", [1, 4])
def test_every_outcome_is_by_the_rules(size, seed):
    sea = DeepSea(size, seed)
    cells = [(row, column) for row in range(size) for column in range(row + 1)]
    end = len(cells)
    right = np.ones(end, int) if seed is None else np.random.default_rng(seed).integers(2, size=end)
    play = jax.jit(sea.outcomes)
    for row, column in cells:
        at = numbered(row, column)
        for action in (0, 1):
            found = play(jnp.int32(at), jnp.int32(action), PARAMS)
            goes_right = action == right[at]
            assert found.probability.tolist() == ([0.75, 0.25] if goes_right else [1.0, 0.0])
            for j, slips in enumerate((False, True)):
                if found.probability[j] == 0.0:
                    continue
                where, reward = by_the_rules(size, row, column, goes_right, slips, PARAMS)
                assert found.state[j] == (end if where is None else numbered(*where))
                assert found.terminated[j] == (where is None)
                assert found.reward[j] == pytest.approx(reward, abs=1e-6)


def test_the_end_is_never_left_and_pays_nothing():
    sea = DeepSea(3)
    for action in (0, 1):
        found = sea.outcomes(jnp.int32(6), jnp.int32(action), PARAMS)
        assert found.state.tolist() == [6, 6]
        assert found.terminated.tolist() == [True, True]
        assert found.reward.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("size", "seed"), [(1, None), (2, 0), (7, None), (7, 5)])
def test_is_the_model_of_the_tabular_plane(size, seed):
    ours, theirs = (
        to_mdp(DeepSea(size, seed), DeepSeaParams(), discount=0.9),
        library.deep_sea(size, seed=seed, discount=0.9),
    )
    for one, other in zip(ours.to_dense(), theirs.to_dense(), strict=True):
        assert one == pytest.approx(other, abs=1e-15)
    assert np.array_equal(ours.terminal, theirs.terminal)
    assert ours.initial == pytest.approx(theirs.initial)
    assert DeepSea(size).n_states == theirs.n_states


@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize(
    "params",
    [
        DeepSeaParams(),
        PARAMS,
        DeepSeaParams(move_cost=4.0),  # not worth the way
        DeepSeaParams(slip=1.0),
        DeepSeaParams(treasure=-1.0),
        DeepSeaParams(move_cost=0.5, slip=0.1),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_best_return(size, params, discount):
    sea = DeepSea(size, seed=2)
    assert sea.best_return(params, discount) == pytest.approx(
        value_iteration(to_mdp(sea, params, discount=discount), size)[0], abs=1e-12
    )


def test_nominal_optimum_and_what_everybody_else_gets():
    sea = DeepSea(6)
    assert sea.best_return(sea.nominal()) == pytest.approx(0.99, abs=1e-7)
    returns = []
    for moves in np.ndindex(*(2,) * 6):
        place, total = (0, 0), 0.0
        for right in moves:
            place, reward = by_the_rules(6, *place, bool(right), False, DeepSeaParams())
            total += reward
        returns.append(total)
    assert sum(total > 0 for total in returns) == 1
    assert max(returns) == pytest.approx(0.99)


def test_slips_as_often_as_said():
    sea, n = DeepSea(5), 20_000
    keys = jax.random.split(jax.random.key(1), n)
    go = jax.jit(jax.vmap(lambda key: step(sea, key, jnp.int32(numbered(2, 1)), jnp.int32(1), PARAMS)))
    states = np.asarray(go(keys).state)
    assert set(states.tolist()) == {numbered(3, 1), numbered(3, 2)}
    share = (states == numbered(3, 1)).mean()
    assert abs(share - 0.25) < 5 * np.sqrt(0.25 * 0.75 / n)  # 5 standard errors: a false alarm in two million seeds


def test_observations_are_one_hot_and_nothing_at_the_end():
    sea = DeepSea(3, seed=0)
    seen = np.asarray(jax.vmap(sea.observe)(jnp.arange(7)))
    places = [0, 3, 4, 6, 7, 8]  # row * 3 + column
    assert np.array_equal(seen[:6], np.eye(9, dtype=np.float32)[places])
    assert not seen[6].any()


def test_hidden_actions_follow_the_seed():
    def right(seed):
        sea = DeepSea(8, seed)
        play = jax.jit(jax.vmap(sea.outcomes, (0, None, None)))
        return np.asarray(play(jnp.arange(36), jnp.int32(1), DeepSeaParams(slip=0.5)).probability[:, 1] > 0).tolist()

    assert right(4) == np.random.default_rng(4).integers(2, size=36).astype(bool).tolist()
    assert right(4) != right(5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DeepSea(0), "size is 0, expected a whole number of at least 1"),
        (lambda: DeepSea(4, seed=-1), "seed is -1, expected a whole number of at least 0"),
        (lambda: DeepSea(4, seed=0.5), "seed is 0.5, expected a whole number of at least 0"),
    ],
)
def test_refuses_other_choices(call, message):
    with pytest.raises(ValueError, match=message):
        call()
