"""Simulators as Gymnasium environments: the same bits from the same seed, and parameters that arrive."""

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from urbe.simulators import CartPole, DeepSea, DeepSeaParams, MountainCar, Outcomes, SimulatorEnv, step
from urbe.simulators.register import ENVIRONMENTS, register

NAMES = sorted(ENVIRONMENTS)


def play(env, seed, steps=12):
    """Everything a random player gets to see; episodes follow each other."""
    rng = np.random.default_rng(7)
    observation, info = env.reset(seed=seed)
    told = [observation.tobytes(), info]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        told.append((observation.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            told.append(env.reset()[0].tobytes())
    return told


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


def gym_pole(length):
    """Gymnasium's, with a pole of another length."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.length, env.polemass_length = length, env.masspole * length
    return env


def one_step(env, state=(0.1, -0.2, 0.05, 0.3)):
    return env.set_state(np.float32(state)), env.step(1)[0]


def test_parameters_arrive_and_are_shown():
    env = gymnasium.make("urbe/CartPole-v0", half_length=1.25, masspole=0.2)
    _, info = env.reset(seed=0)
    shown = {"half_length": 1.25, "masspole": 0.2, "masscart": 1.0, "gravity": 9.8, "force": 10.0}
    assert info["params"] == shown == env.unwrapped.get_params() == env.step(0)[4]["params"]

    def moves_like(length, masspole):
        pole = gym_pole(length)
        pole.masspole, pole.total_mass, pole.polemass_length = masspole, masspole + 1.0, masspole * length
        pole.reset(seed=0)
        pole.state = np.float64(np.float32([0.1, -0.2, 0.05, 0.3]))
        return one_step(env.unwrapped)[1] == pytest.approx(pole.step(1)[0], abs=1e-6)

    assert moves_like(1.25, 0.2)
    assert not moves_like(0.5, 0.2)
    _, info = env.reset(options={"half_length": 3.0})
    assert info["params"] == {**shown, "half_length": 3.0}
    assert moves_like(3.0, 0.2)
    env.reset(seed=5)
    assert env.step(0)[4]["params"]["half_length"] == 3.0  # from that reset on
    env.unwrapped.set_params(half_length=0.5, masspole=0.1)
    assert moves_like(0.5, 0.1)
    assert env.step(0)[4]["params"]["half_length"] == 0.5


def test_what_is_shown_cannot_change_the_simulator():
    env = SimulatorEnv(CartPole())
    _, info = env.reset(seed=0)
    info["params"]["half_length"] = 7.0
    env.get_params()["half_length"] = 7.0
    assert env.step(0)[4]["params"]["half_length"] == 0.5
    state = env.get_state()
    state[:] = 7.0
    assert not (env.get_state() == 7.0).any()


BAD_PARAMS = [
    (
        {"length": 1.0},
        "'length' is not among the parameters of CartPole, which are half_length, masspole, masscart, grav",
    ),
    ({"length": 1.0, "mass": 2.0}, "'length', 'mass' are not among the parameters"),
    ({"half_length": np.nan}, "half_length is nan, expected a finite number"),
    ({"force": -np.inf}, "force is -inf, expected a finite number"),
    ({"half_length": "long"}, "half_length is 'long', expected a number"),
    ({"half_length": [0.5, 1.0]}, r"half_length is \[0.5, 1.0\], expected a number"),
    ({"half_length": 0.0}, "half_length is 0.0, expected a number above 0"),
    ({"masscart": -1.0}, "masscart is -1.0, expected a number above 0"),
    ({"masspole": -0.1}, r"masspole is -0.1, expected a number in \[0, inf\]"),
    ({"force": 1e39}, r"force is 1e\+39, expected a number in \[-3.40282e\+38, 3.40282e\+38\]"),
]


@pytest.mark.parametrize(("named", "message"), BAD_PARAMS, ids=lambda value: str(value)[:30])
def test_impossible_parameters_are_refused_and_change_nothing(named, message):
    env = SimulatorEnv(CartPole(), half_length=0.75)
    before = env.get_params()
    for attempt in (
        lambda: env.set_params(**{"gravity": 1.0, **named}),
        lambda: env.reset(options={"gravity": 1.0, **named}),
        lambda: SimulatorEnv(CartPole(), **named),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert env.get_params() == before


def test_other_simulators_know_their_ranges():
    with pytest.raises(ValueError, match=r"slip is 1.5, expected a number in \[0, 1\]"):
        gymnasium.make("urbe/DeepSea-v0", slip=1.5)
    with pytest.raises(ValueError, match=r"max_speed is -1.0, expected a number in \[0, inf\]"):
        gymnasium.make("urbe/MountainCar-v0", max_speed=-1.0)
    with pytest.raises(ValueError, match=r"inertia_2 is 0.0, expected a number above 0"):
        gymnasium.make("urbe/Acrobot-v0", inertia_2=0.0)


def test_fixed_choices_by_name():
    env = gymnasium.make("urbe/DeepSea-v0", size=4, seed=1, slip=0.1)
    assert env.unwrapped.simulator == DeepSea(4, seed=1)
    assert env.observation_space.shape == (16,)
    assert env.reset()[1]["params"]["slip"] == 0.1
    with pytest.raises(
        ValueError,
        match=r"CartPole has no 'lenght', expected one of its parameters \(half_length, .*, force\) or of its fixed "
        r"choices \(terminal_reward\)",
    ):
        gymnasium.make("urbe/CartPole-v0", lenght=1.0)
    with pytest.raises(ValueError, match=r"time_limit is kept by Gymnasium: .*max_episode_steps=200"):
        gymnasium.make("urbe/CartPole-v0", time_limit=200)


def test_states_are_given_and_taken():
    env = gymnasium.make("urbe/CartPole-v0").unwrapped
    observation, _ = env.reset(options={"state": [0.1, 0.0, 0.05, -0.1], "half_length": 0.75})
    assert observation.tolist() == np.float32([0.1, 0.0, 0.05, -0.1]).tolist()
    middle = env.get_state()
    first = [env.step(a)[0].tolist() for a in (0, 1, 1)]
    assert env.set_state(middle).tolist() == observation.tolist()
    assert [env.step(a)[0].tolist() for a in (0, 1, 1)] == first
    env.set_state([2.4, 9.0, 0.0, 0.0])
    assert env.step(0)[2]
    env.set_state(middle)  # back from the end
    assert [env.step(a)[0].tolist() for a in (0, 1, 1)] == first


@pytest.mark.parametrize(
    ("name", "state", "message"),
    [
        ("urbe/CartPole-v0", [0.0, 0.0], r"state has shape \(2,\), expected \(4,\), as get_state gives it"),
        ("urbe/CartPole-v0", [0.0, 0.0, np.nan, 0.0], r"state\[2\] is nan, expected a finite number"),
        ("urbe/CartPole-v0", "upright", "state cannot be read as an array of numbers"),
        ("urbe/DeepSea-v0", 1.5, "state is 1.5, expected int32 numbers"),
        ("urbe/DeepSea-v0", 56, "state is 56, expected a number from 0 to 55"),
        ("urbe/MarsRover-v0", -1, "state is -1, expected a number from 0 to 100"),
    ],
)
def test_impossible_states_are_refused(name, state, message):
    env = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    before, params = env.get_state().tolist(), env.get_params()
    others = {key: value / 2 for key, value in params.items()}
    for attempt in (lambda: env.set_state(state), lambda: env.reset(options={**others, "state": state})):
        with pytest.raises(ValueError, match=message):
            attempt()
        assert env.get_state().tolist() == before
        assert env.get_params() == params


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


class Pair(NamedTuple):
    left: jax.Array
    right: jax.Array


class Odd(NamedTuple):
    chance: float = 0.5
    scale: float = 1.0


@dataclass(frozen=True)
class OddSimulator:
    """States with parts, and no ranges of its parameters."""

    n_actions: int = 2
    time_limit: int = 10

    def nominal(self):
        return Odd(*map(jnp.float32, Odd()))

    def start(self, key, params):  # noqa: ARG002
        return Pair(jnp.zeros(2, jnp.float32), jax.random.randint(key, (), 0, 5, jnp.int32))

    def outcomes(self, state, action, params):
        left = jnp.stack([state.left + 1.0, state.left / params.scale])
        return Outcomes(
            jnp.stack([params.chance, 1.0 - params.chance]),
            Pair(left.astype(jnp.float32), jnp.stack([state.right, -state.right])),
            jnp.ones(2, jnp.float32) * action,
            jnp.zeros(2, bool),
        )

    def observe(self, state):
        return jnp.concatenate([state.left, state.right[None].astype(jnp.float32)])


def test_states_with_parts():
    env = SimulatorEnv(OddSimulator())
    env.reset(seed=0)
    assert env.set_state(Pair([1.0, 2.0], 3)).tolist() == [1.0, 2.0, 3.0]
    assert isinstance(env.get_state(), Pair)
    assert env.get_state().right.dtype == np.int32
    with pytest.raises(ValueError, match=r"state.left has shape \(3,\), expected \(2,\)"):
        env.set_state(Pair([1.0, 2.0, 3.0], 3))
    with pytest.raises(ValueError, match="state has another form than the simulator's"):
        env.set_state([1.0, 2.0])


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"chance": 1.5}, r"The chances .* are no distribution. The parameters were chance=1.5, scale=1;"),
        ({"chance": 0.0, "scale": 0.0}, r"Action 0 led to an observation \[nan.*expected finite ones.*scale=0"),
    ],
)
def test_dynamics_that_break_are_told(named, message):
    env = SimulatorEnv(OddSimulator(), **named)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(0)


@pytest.mark.parametrize("name", NAMES)
def test_vector_environments_are_environments_side_by_side(name):
    envs = gymnasium.make_vec(name, num_envs=2, vectorization_mode="sync")
    singles = [gymnasium.make(name) for _ in range(2)]
    seen, info = envs.reset(seed=[4, 5])
    assert np.array_equal(seen, [env.reset(seed=4 + i)[0] for i, env in enumerate(singles)])
    seen, reward, terminated, truncated, info = envs.step(np.array([1, 0]))
    told = [env.step(a) for env, a in zip(singles, (1, 0), strict=True)]
    assert np.array_equal(seen, [one[0] for one in told])
    assert reward.tolist() == [one[1] for one in told]
    assert terminated.tolist() == [one[2] for one in told]
    assert truncated.tolist() == [one[3] for one in told]
    for key, value in told[0][4]["params"].items():
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
        "env = gymnasium.make('urbe.simulators:urbe/CartPole-v0', half_length=1.25)\n"
        "print(env.reset(seed=0)[1]['params']['half_length'])\n"
        "import jax\n"
        "print(jax.config.jax_enable_x64, env.step(0)[0].dtype, 'urbe.simulators.contract' in sys.modules)\n"
        "from urbe.testing import check_simulator\n"
        "print(check_simulator is sys.modules['urbe.simulators.contract'].check_simulator)\n"
    )
    found = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "1.25", "False", "float32", "False", "True"]
