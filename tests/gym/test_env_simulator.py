"""Gymnasium environments as simulators: what copies do is what the environment does, and lives can be simulated."""

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief import Switching
from urbe.deep import DuelingNetwork, bayes_adaptive_dqn, load_adaptive
from urbe.deep.adaptive.presets import simulated
from urbe.gym import EnvMembers, EnvSimulator
from urbe.runs.errors import CheckpointError
from urbe.simulators import UncertaintySet
from urbe.simulators.base import observation_size


class Sled(gymnasium.Env):
    """To be kept near the middle by a push that may go either way."""

    def __init__(self, push=1.0):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2, start=3)
        self.push, self.place, self.speed, self.clock = push, 0.0, np.zeros(1), 0

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self.place, self.speed, self.clock = float(self.np_random.uniform(-0.1, 0.1)), np.zeros(1), 0
        return self._seen(), {}

    def step(self, action):
        self.speed = self.speed + 0.1 * self.push * (1.0 if action == 4 else -1.0)
        self.place += 0.1 * float(self.speed[0])
        self.clock += 1
        return self._seen(), 1.0 - abs(self.place), abs(self.place) > 0.5, False, {}

    def _seen(self):
        return np.array([self.place, self.speed[0]], np.float32)

    def get_state(self):
        return {"place": self.place, "speed": self.speed, "clock": self.clock}

    def set_state(self, state):
        self.place, self.speed, self.clock = state["place"], state["speed"], state["clock"]

    def get_params(self):
        return {"push": self.push}

    def set_params(self, push):
        if push == 0.0:
            raise ValueError("push is 0, expected another number.")
        self.push = push


def sled(kind=Sled, **given):
    return gymnasium.wrappers.TimeLimit(kind(**given), 20)


def test_batches_of_copies_do_what_the_environment_does_to_the_last_bit():
    simulator, env = EnvSimulator(sled(push=0.7)), sled()
    assert (simulator.n_actions, simulator.time_limit, observation_size(simulator)) == (2, 20, 2)
    pushes = UncertaintySet.grid(simulator, push=(-1.0, 0.3))
    assert pushes.describe()["parameters"]["push"] == [0.7, -1.0, 0.3]

    def follow(params, key):
        state = simulator.start(key, params)
        begun = simulator.observe(state)
        found = simulator.outcomes(state, jnp.int32(1), params)
        again = simulator.outcomes(jax.tree.map(lambda leaf: leaf[0], found.state), jnp.int32(0), params)
        return begun, found, again

    keys = jax.random.split(jax.random.key(0), 4)
    each = jax.jit(jax.vmap(jax.vmap(follow, in_axes=(None, 0)), in_axes=(0, None)))
    begun, found, again = each(pushes.params, keys)
    for k, push in enumerate((0.7, -1.0, 0.3)):
        for i, key in enumerate(keys):
            env.unwrapped.set_params(push=push)
            first, _ = env.reset(seed=int(jax.random.bits(key, (), jnp.uint32)))
            np.testing.assert_array_equal(begun[k, i], first)
            for action, there in ((4, found), (3, again)):
                seen, reward, terminated, _, _ = env.step(action)
                np.testing.assert_array_equal(there.state.seen[k, i, 0], seen)
                assert float(there.reward[k, i, 0]) == np.float32(reward)
                assert bool(there.terminated[k, i, 0]) == terminated
    for one, other in zip(jax.tree.leaves((begun, found, again)), jax.tree.leaves(each(pushes.params, keys)),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)  # whatever the copies were asked for in between


class Windy(Sled):
    def step(self, action):
        self.place += 0.01 * float(self.np_random.normal())
        return super().step(action)


class Forgetful(Sled):
    def get_state(self):
        return {"place": self.place, "speed": self.speed, "clock": "late" if self.clock else 0}


class Vague(Sled):
    def get_state(self):
        return {"place": self.place, "speed": self.speed, "clock": "early"}


class Varied(Sled):
    def reset(self, **named):
        found = super().reset(**named)
        self.push = float(self.np_random.uniform(0.5, 1.5))
        return found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Sled, "no time limit, expected one"),
        (partial(sled, Windy), "draws random numbers in its steps"),
        (partial(sled, Varied), "draws parameters when it is reset"),
        (partial(sled, Vague), "holds 'early', a str, expected numbers"),
    ],
)
def test_what_cannot_be_simulated_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        EnvSimulator(make())


def test_bad_parameters_and_states_that_change_their_type_are_named():
    with pytest.raises(ValueError, match="push is 0, expected another"):
        UncertaintySet.grid(EnvSimulator(sled()), push=(0.0, 1.0))
    simulator = EnvSimulator(sled(Forgetful))
    state = simulator.start(jax.random.key(0), simulator.nominal())
    with pytest.raises(Exception, match="numbers must not change their type"):
        jax.block_until_ready(simulator.outcomes(state, jnp.int32(0), simulator.nominal()))


def test_states_follow_from_observations_where_a_function_says_how():
    def place(env, seen):
        env.unwrapped.set_state({"place": float(seen[0]), "speed": seen[1:].astype(float), "clock": 7})

    simulator = EnvSimulator(sled(), place=place)
    seen = jnp.asarray([[0.25, -0.5], [0.125, 1.0]])
    states = jax.vmap(simulator.state_of)(seen)
    np.testing.assert_array_equal(states.seen, seen)
    found = jax.vmap(lambda state: simulator.outcomes(state, jnp.int32(1), simulator.nominal()))(states)
    np.testing.assert_allclose(found.state.seen[:, 0], [[0.25 - 0.04, -0.4], [0.125 + 0.11, 1.1]], rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected EnvSimulator\(env, place=function\)"):
        EnvSimulator(sled()).state_of(seen[0])


def test_an_agent_learns_in_a_gymnasium_environment_is_saved_and_adapts_in_another(tmp_path):
    simulator = EnvSimulator(sled())
    pushes = UncertaintySet.grid(simulator, include_nominal=False, push=(-1.0, 0.5, 1.0))

    def make():
        small = {"lives": 4, "length": 8, "minibatches": 2, "network": DuelingNetwork((16,))}
        return bayes_adaptive_dqn(simulator, pushes, switching=Switching(0.01), seed=0, **small)

    agent = make().learn(64)
    agent.save(tmp_path / "agent")
    with pytest.raises(CheckpointError, match=r"Give it: load_adaptive\(path, env\)"):
        load_adaptive(tmp_path / "agent")
    again, whole = load_adaptive(tmp_path / "agent", simulator).learn(32), make().learn(96)
    assert all(array.tobytes() == whole.tensors()[name].tobytes() for name, array in again.tensors().items())
    for push, member in ((-1.0, 0), (1.0, 2)):
        found = again.adapt(sled(push=push), 2, seed=1)
        assert found.reports["filtered"][0, -1].argmax() == member
    with pytest.raises(ValueError, match="env is None, expected the Gymnasium environment"):
        again.deploy()


def test_an_environment_and_its_members_become_a_simulator_and_its_set():
    members = EnvMembers.grid(sled(), push=(-1.0, 0.5))
    simulator, pushes = simulated(sled(), members)
    assert isinstance(simulator, EnvSimulator)
    assert pushes.describe() == {"parameters": {"push": [1.0, -1.0, 0.5]}, "nominal": 0}
    assert simulator.members_of(sled(push=9.0), pushes).describe()["parameters"] == {"push": [1.0, -1.0, 0.5]}
    for env, of in ((sled(), pushes), (simulator, members)):
        with pytest.raises(ValueError, match="or a Gymnasium environment with its EnvMembers"):
            simulated(env, of)


def test_a_single_step_is_one_of_a_batch():
    simulator = EnvSimulator(sled())
    state = simulator.start(jax.random.key(0), simulator.nominal())
    alone = jax.jit(simulator.outcomes)(state, jnp.int32(1), simulator.nominal())
    batch = jax.vmap(lambda action: simulator.outcomes(state, action, simulator.nominal()))(jnp.int32([0, 1]))
    jax.tree.map(lambda one, many: np.testing.assert_array_equal(one, many[1]), alone, batch)
