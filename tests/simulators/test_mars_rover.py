"""Mars Rover follows its description: rows, risks, walls, termination, encodings, initial states."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles import rover as oracle
from urbe.simulators import MarsRover, MarsRoverParams, step
from urbe.simulators import mars_rover as rules

SMALL = MarsRover(size=4, start_zone=(2, 2), time_limit=30)
RULES = {
    "any": rules.any_approach,
    "vertical": rules.vertical_approach,
    "horizontal": rules.horizontal_approach,
    "diagonal": rules.diagonal_approach,
}


def all_outcomes(rover, params):
    """Outcomes of every pair, leaves `(S, A, 2)`, as NumPy arrays."""
    over = jax.vmap(jax.vmap(rover.outcomes, (None, 0, None)), (0, None, None))
    found = jax.jit(over)(jnp.arange(rover.n_states, dtype=jnp.int32), jnp.arange(4, dtype=jnp.int32), params)
    return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("rule", RULES)
def test_rows_are_those_of_the_description(rule):
    rover = replace(SMALL, risk=RULES[rule], success=3.0, fail=-2.0, step_reward=-0.25)
    found = all_outcomes(rover, MarsRoverParams(0.375))
    expected = oracle.rows(4, 0.375, 3.0, -2.0, -0.25, rule)
    assert len(expected) == 15 * 4
    for (state, action), row in expected.items():
        reported = {}
        for p, t, r, ended in zip(*(leaf[state, action] for leaf in found), strict=True):
            if p > 0.0:
                reported[int(t)] = (float(p), float(r))
                assert ended == (t >= rover.goal)
        assert reported == row


@pytest.mark.parametrize("state", [SMALL.goal, SMALL.wreck])
def test_ends_are_never_left_and_pay_nothing(state):
    found = all_outcomes(SMALL, MarsRoverParams(0.5))
    assert (found.state[state] == state).all()
    assert (found.reward[state] == 0.0).all()
    assert found.terminated[state].all()
    assert np.array_equal(found.probability[state], [[0.0, 1.0]] * 4)


def test_a_rule_of_ones_own_is_not_asked_about_the_border():
    rover = replace(SMALL, risk=lambda *_: jnp.bool_(True))
    risky = all_outcomes(rover, MarsRoverParams(0.5)).probability[:, :, 0] > 0.0
    assert not risky[0, 0]  # up from the top left corner: it stays
    assert not risky[0, 3]
    assert risky[0, 1]
    assert risky[5].all()


def test_numbers_are_float32_unless_parameters_are_float64():
    def everything(params):
        found = SMALL.outcomes(jnp.int32(0), jnp.int32(2), params)
        return (*found, SMALL.observe(found.state[1]), SMALL.start(jax.random.key(0), params))

    def types(params):
        return [leaf.dtype.name for leaf in jax.eval_shape(lambda: everything(params))]

    single = ["float32", "int32", "float32", "bool", "float32", "int32"]
    for params in (SMALL.nominal(), MarsRoverParams(0.2), MarsRoverParams(np.float32(0.2))):
        assert types(params) == single
        with jax.enable_x64(True):
            assert types(params) == single
    with jax.enable_x64(True):
        assert types(MarsRoverParams(np.float64(0.2)))[:4] == ["float64", "int32", "float64", "bool"]


def test_encodings():
    cells = jnp.arange(SMALL.n_states, dtype=jnp.int32)
    xy = np.asarray(jax.vmap(SMALL.observe)(cells))
    assert xy.dtype == np.float32
    assert np.array_equal(xy[[0, 3, 12, 15]], [[0, 0], [1, 0], [0, 1], [1, 1]])
    assert np.array_equal(xy[SMALL.wreck], [-1, -1])
    assert len(np.unique(xy, axis=0)) == SMALL.n_states
    one_hot = np.asarray(jax.vmap(replace(SMALL, encoding=rules.one_hot).observe)(cells))
    assert np.array_equal(one_hot[:16], np.eye(16))
    assert not one_hot[SMALL.wreck].any()


def test_starts_are_uniform_in_the_zone():
    """Each of 6 cells within 5 standard deviations of its share: a false alarm in 3e5 seeds."""
    rover = MarsRover(size=5, start_zone=(2, 3))
    keys = jax.random.split(jax.random.key(0), 6000)
    drawn = np.bincount(jax.vmap(rover.start, (0, None))(keys, rover.nominal()), minlength=rover.n_states)
    law = np.asarray(rover.start_distribution(rover.nominal()))
    assert np.array_equal(np.flatnonzero(law), [0, 1, 2, 5, 6, 7])
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    assert (drawn[law == 0] == 0).all()
    assert (np.abs(drawn[law > 0] - 1000) < 5 * np.sqrt(6000 * 5 / 36)).all()


def test_steps_follow_the_key():
    go = jax.jit(jax.vmap(lambda key: step(SMALL, key, jnp.int32(5), jnp.int32(1), MarsRoverParams(0.5)).state))
    keys = jax.random.split(jax.random.key(1), 64)
    first, again = np.asarray(go(keys)), np.asarray(go(keys))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, np.asarray(go(jax.random.split(jax.random.key(2), 64))))
    assert set(first.tolist()) == {6, SMALL.wreck}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"size": 1}, "size is 1, expected a whole number of at least 2"),
        ({"start_zone": (3, 11)}, "start_zone[1] is 11, expected at most the size of the grid, 10"),
        ({"start_zone": (0, 3)}, "start_zone[0] is 0, expected a whole number of at least 1"),
        ({"start_zone": (10, 10)}, "start_zone is (10, 10), the whole grid, expected a zone without the goal"),
        ({"fail": float("nan")}, "fail is nan, expected a finite number"),
        ({"time_limit": 0}, "time_limit is 0, expected a whole number of at least 1"),
    ],
)
def test_refusals(choices, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MarsRover(**choices)


def test_failure_is_a_probability():
    with pytest.raises(ValueError, match=re.escape("failure is 1.5, expected a number in [0, 1]")):
        MarsRover().check_params({"failure": 1.5})
