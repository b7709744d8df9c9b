"""The last steps in Gymnasium's observations equal those of `Stacked` for the same simulator."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.gym import SimulatorEnv, StackedHistory
from urbe.simulators import CartPole, Stacked
from urbe.simulators.stacked import ended


def test_what_it_shows_is_in_its_space():
    env = StackedHistory(gymnasium.make("CartPole-v1"), 3)
    assert env.observation_space.contains(env.reset(seed=0)[0])
    assert env.observation_space.contains(env.step(1)[0])


@pytest.mark.parametrize("survives", [True, False])
def test_frames_are_those_of_the_stacked_simulator(survives):
    pole = CartPole()
    env, stacked = StackedHistory(SimulatorEnv(pole), 3, survives), Stacked(pole, 3, survives)
    seen, _ = env.reset(seed=4)
    frames = stacked.start(jnp.zeros(2, jnp.uint32), pole.nominal()).frames
    rng = np.random.default_rng(0)
    for _ in range(60):
        np.testing.assert_array_equal(seen[4:], np.ravel(frames))
        action = int(rng.integers(2))
        before = env.unwrapped.get_state()
        after, _, terminated, _, _ = env.step(action)
        state = stacked.start(jnp.zeros(2, jnp.uint32), pole.nominal())._replace(inner=before, frames=frames)
        frames = stacked.outcomes(state, jnp.int32(action), pole.nominal()).state.frames[0]
        np.testing.assert_allclose(after[4:], np.ravel(frames), rtol=1e-6, atol=1e-7)
        seen, frames = after, jnp.asarray(after[4:]).reshape(frames.shape)
        if terminated:
            seen, _ = env.reset()
            frames = ended(frames, 4, 2) if survives else jnp.zeros_like(frames)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="expected Discrete"):
        StackedHistory(gymnasium.make("Pendulum-v1"))
    with pytest.raises(ValueError, match="length is 0, expected"):
        StackedHistory(gymnasium.make("CartPole-v1"), 0)
