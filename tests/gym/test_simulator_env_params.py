"""Parameters and states of simulators in Gymnasium: they arrive, are shown, and impossible ones are refused."""

from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.gym import SimulatorEnv
from urbe.simulators import CartPole, DeepSea, Outcomes


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
        match=r"CartPole has no 'lenght', expected one of its parameters \(half_length, .*, force\) or of its "
        r"fields \(terminal_reward\)",
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
        (
            {"chance": 1.5},
            r"The outcome probabilities .* are not a distribution. The parameters were chance=1.5, scale=1;",
        ),
        ({"chance": 0.0, "scale": 0.0}, r"Action 0 led to an observation \[nan.*expected finite ones.*scale=0"),
    ],
)
def test_dynamics_that_break_are_reported(named, message):
    env = SimulatorEnv(OddSimulator(), **named)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(0)
