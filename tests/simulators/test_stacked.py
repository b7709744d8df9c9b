"""Simulators with stacked observations, against a list kept by hand, within and across episodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.simulators import CartPole, MarsRover, Stacked, step
from urbe.simulators.base import observation_size
from urbe.simulators.limits import restart
from urbe.simulators.stacked import frame_size
from urbe.testing import check_simulator


def test_it_is_a_simulator():
    check_simulator(Stacked(MarsRover(), 2))


def by_hand(simulator, steps, length):
    """The frames of the last `length` of (obs, action, reward, reached, ended)."""
    size = frame_size(observation_size(simulator), simulator.n_actions)
    rows = [np.zeros(size, np.float32)] * length
    for obs, action, reward, reached, ended in steps:
        taken = [float(action == each) for each in range(simulator.n_actions)]
        rows.append(np.array([*obs, *taken, reward, float(ended), *(reached - obs)], np.float32))
    return np.stack(rows[-length:])


@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("inner", [CartPole(time_limit=7), MarsRover(time_limit=7)], ids=["pole", "rover"])
def test_frames_are_the_last_steps(inner, survives):
    stacked, params, key = Stacked(inner, 4, survives), inner.nominal(), jax.random.key(5)
    act = jax.jit(lambda key, state, action: step(stacked, key, state, action, params))
    plain = jax.jit(lambda key, state, action: step(inner, key, state, action, params))
    state, seen, elapsed = stacked.start(key, params), [], 0
    for t in range(40):
        own, action = jax.random.fold_in(key, t), jnp.int32(t % inner.n_actions)
        np.testing.assert_array_equal(state.frames, by_hand(inner, seen, 4))
        obs = np.asarray(inner.observe(state.inner))
        np.testing.assert_array_equal(stacked.observe(state), [*obs, *np.ravel(state.frames)])
        arrived, same = act(own, state, action), plain(own, state.inner, action)
        assert (float(arrived.reward), bool(arrived.terminated)) == (float(same.reward), bool(same.terminated))
        np.testing.assert_array_equal(arrived.state.inner, same.state)
        elapsed += 1
        ended = bool(arrived.terminated) or elapsed == inner.time_limit
        seen.append((obs, int(action), float(arrived.reward), np.asarray(inner.observe(same.state)), ended))
        state = arrived.state
        if ended:
            state, elapsed = restart(stacked, jax.random.fold_in(own, 1), params, state), 0
            seen = seen if survives else []


def test_simulators_without_a_memory_start_as_ever():
    pole, key = CartPole(), jax.random.key(0)
    np.testing.assert_array_equal(restart(pole, key, pole.nominal(), jnp.zeros(4)), pole.start(key, pole.nominal()))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="length is 0, expected"):
        Stacked(CartPole(), 0)
    with pytest.raises(ValueError, match="survives is 1, expected True or False"):
        Stacked(CartPole(), 2, survives=1)
