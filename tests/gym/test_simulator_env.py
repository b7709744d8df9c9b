"""Simulators as Gymnasium environments: the checker, the same bits from the same seed, termination, truncation."""

import json
import subprocess
import sys
from copy import deepcopy

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from urbe.gym import SimulatorEnv
from urbe.gym.registration import ENVIRONMENTS, register
from urbe.simulators import DeepSea, DeepSeaParams, MountainCar, step

NAMES = sorted(ENVIRONMENTS)


def play(env, seed, steps=12):
    """Everything a random player gets to see; episodes follow each other."""
    rng = np.random.default_rng(7)
    observation, info = env.reset(seed=seed)
    expected = [observation.tobytes(), info]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        expected.append((observation.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            expected.append(env.reset()[0].tobytes())
    return expected


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing_to_say(name):
    env = gymnasium.make(name)
    check_env(env.unwrapped)  # its warnings would be errors here
    assert env.action_space.n == env.unwrapped.simulator.n_actions


def test_gymnasium_would_have_said_something():
    env = gymnasium.make("urbe/CartPole-v0").unwrapped
    env.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,))
    with pytest.raises(UserWarning, match="minimum value is -infinity"):
        check_env(env)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name):
    assert play(gymnasium.make(name), 3) == play(gymnasium.make(name), 3)


@pytest.mark.parametrize("name", ["urbe/CartPole-v0", "urbe/MarsRover-v0"])
def test_other_seed_other_bits_64_bit_mode_the_same(name):
    first = play(gymnasium.make(name), 3)
    assert first != play(gymnasium.make(name), 4)
    with jax.enable_x64(True):
        assert first == play(gymnasium.make(name), 3)


@pytest.mark.parametrize("name", NAMES)
def test_time_is_kept_once(name):
    env = gymnasium.make(name)
    if name == "urbe/DeepSea-v0":  # ends by itself
        assert env.spec.max_episode_steps is None
    else:
        assert env.spec.max_episode_steps == env.unwrapped.simulator.time_limit
    assert json.loads(env.spec.to_json())["kwargs"] == {"simulator": ENVIRONMENTS[name][0]}


def test_running_out_of_time_is_not_an_end():
    env = gymnasium.make("urbe/MountainCar-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(1)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    env.unwrapped.step(1)  # the simulator could go on


def test_an_end_is_not_running_out_of_time():
    env = gymnasium.make("urbe/MountainCar-v0")
    env.reset(options={"state": [0.45, 0.06]})
    observation, reward, terminated, truncated, _ = env.step(2)
    assert observation[0] >= 0.5
    assert (reward, terminated, truncated) == (-1.0, True, False)


def test_draws_are_those_of_the_simulator():
    sea = DeepSea(6)
    env = SimulatorEnv(sea, slip=0.5)
    env.reset(seed=11)
    words = np.random.Generator(np.random.PCG64(np.random.SeedSequence(11))).integers(2**32, size=2, dtype=np.uint32)
    key, state = jax.random.wrap_key_data(jnp.asarray(words)), jnp.int32(0)
    go = jax.jit(lambda t, state: step(sea, jax.random.fold_in(key, t), state, jnp.int32(1), DeepSeaParams(slip=0.5)))
    for t in range(1, 7):
        state, reward, ended = go(t, state)
        observation, earned, terminated, _, _ = env.step(1)
        assert np.array_equal(observation, sea.observe(state))
        assert earned == pytest.approx(float(reward), abs=1e-7)  # compiled division may differ in the last place
        assert terminated == bool(ended)


def test_steps_slip_independently():
    env = SimulatorEnv(DeepSea(400), slip=0.5)
    env.reset(seed=0)
    columns = []
    for _ in range(399):
        env.step(1)
        state = int(env.get_state())
        row = int((np.sqrt(8 * state + 1) - 1) // 2)
        columns.append(state - row * (row + 1) // 2)
    moved = np.diff(columns, prepend=0)
    assert set(moved.tolist()) == {0, 1}
    # 5 standard deviations each: a false alarm in a million seeds
    assert abs(moved.mean() - 0.5) < 5 * 0.5 / np.sqrt(399)
    assert abs((moved[1:] != moved[:-1]).mean() - 0.5) < 5 * 0.5 / np.sqrt(398)


def test_out_of_turn():
    env = SimulatorEnv(MountainCar())
    for early in (lambda: env.step(0), env.get_state, lambda: env.set_state([0.0, 0.0])):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            early()
    env.reset(options={"state": [0.49, 0.07]})
    for wrong in (3, -1, 1.0, "left"):
        with pytest.raises(ValueError, match=f"action is {wrong!r}, expected one of 3 from 0"):
            env.step(wrong)
    assert env.step(np.int64(2))[2]
    with pytest.raises(gymnasium.error.ResetNeeded, match="it has terminated"):
        env.step(2)


def test_copies_go_on_alike():
    env = gymnasium.make("urbe/DeepSea-v0", slip=0.5)
    env.reset(seed=0)
    env.step(1)
    other = deepcopy(env)
    for _ in range(9):
        one, two = env.step(1), other.step(1)
        assert one[0].tolist() == two[0].tolist()
    assert env.reset()[0].tolist() == other.reset()[0].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_vector_environments_are_environments_side_by_side(name):
    envs = gymnasium.make_vec(name, num_envs=2, vectorization_mode="sync")
    singles = [gymnasium.make(name) for _ in range(2)]
    seen, info = envs.reset(seed=[4, 5])
    assert np.array_equal(seen, [env.reset(seed=4 + i)[0] for i, env in enumerate(singles)])
    seen, reward, terminated, truncated, info = envs.step(np.array([1, 0]))
    expected = [env.step(a) for env, a in zip(singles, (1, 0), strict=True)]
    assert np.array_equal(seen, [one[0] for one in expected])
    assert reward.tolist() == [one[1] for one in expected]
    assert terminated.tolist() == [one[2] for one in expected]
    assert truncated.tolist() == [one[3] for one in expected]
    for key, value in expected[0][4]["params"].items():
        assert info["params"][key].tolist() == [value, value]
    envs.close()


def test_vector_environments_take_parameters():
    envs = gymnasium.make_vec("urbe/CartPole-v0", num_envs=3, half_length=0.75)
    _, info = envs.reset(seed=0, options={"masspole": 0.3})
    assert info["params"]["half_length"].tolist() == [0.75] * 3
    assert info["params"]["masspole"].tolist() == [0.3] * 3
    envs.close()


def test_registering_twice_does_no_harm():
    register()
    assert set(NAMES) <= set(gymnasium.registry)


def test_found_by_module_and_name_and_only_when_asked_for():
    code = (
        "import sys, urbe.testing, gymnasium\n"
        "print('jax' in sys.modules)\n"
        "env = gymnasium.make('urbe.gym:urbe/CartPole-v0', half_length=1.25)\n"
        "print(env.reset(seed=0)[1]['params']['half_length'])\n"
        "import jax\n"
        "print(jax.config.jax_enable_x64, env.step(0)[0].dtype, 'urbe.testing.simulators' in sys.modules)\n"
        "from urbe.testing import check_simulator\n"
        "print(check_simulator is sys.modules['urbe.testing.simulators'].check_simulator)\n"
    )
    found = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "1.25", "False", "float32", "False", "True"]
