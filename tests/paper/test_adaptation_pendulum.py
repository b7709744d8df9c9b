"""The chapter's pendulum does what Gymnasium's does, for any gravity and mass of its pole."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.gym.mujoco import MujocoAdapter
from urbe.paper.adaptation.pendulum import FORCES, LEAN, Pendulum, PendulumParams


@pytest.mark.parametrize("params", [PendulumParams(), PendulumParams(25.0, 12.5)])
def test_steps_are_those_of_gymnasium(params):
    env, simulator, draws = gymnasium.make("InvertedPendulum-v5"), Pendulum(), np.random.default_rng(0)
    MujocoAdapter().set_params(env, params._asdict())
    held = PendulumParams(*map(jnp.float32, params))
    outcomes = jax.jit(simulator.outcomes)
    env.reset(seed=0)
    ends = set()
    for _ in range(40):
        state = (draws.uniform(-1.0, 1.0, 4) * (0.5, 0.25, 1.0, 2.0)).astype(np.float32)
        action = int(draws.integers(len(FORCES)))
        env.unwrapped.set_state(np.float64(state[:2]), np.float64(state[2:]))
        reached, reward, terminated, *_ = env.step(np.array([FORCES[action]], np.float32))
        found = outcomes(state, jnp.int32(action), held)
        np.testing.assert_allclose(found.state[0], reached, rtol=1e-6, atol=1e-6)  # parameters are float32 numbers
        assert found.terminated[0] == terminated
        assert found.reward[0] == reward
        ends.add(terminated)
    assert ends == {True, False}


def test_batches_are_single_steps_and_parameters_are_nominal():
    env, simulator = gymnasium.make("InvertedPendulum-v5"), Pendulum()
    known = MujocoAdapter().get_params(env)
    assert simulator.nominal()._asdict() == pytest.approx({name: known[name] for name in ("gravity", "pole_mass")})
    state = simulator.start(jax.random.key(0), simulator.nominal())
    many = PendulumParams(jnp.float32([5.0, 20.0, 5.0]), jnp.float32([2.0, 9.0, 9.0]))
    together = jax.vmap(lambda one: simulator.outcomes(state, jnp.int32(0), one).state[0])(many)
    rows = zip(*many, strict=True)
    alone = [simulator.outcomes(state, jnp.int32(0), PendulumParams(*map(jnp.float32, row))) for row in rows]
    np.testing.assert_array_equal(together, [found.state[0] for found in alone])
    assert abs(float(state[1])) < LEAN
    with pytest.raises(ValueError, match="pole_mass"):
        simulator.check_params({"gravity": 9.0, "pole_mass": 0.0})
