"""Messages recommend calls that work: each call is taken from the message and executed."""

import re

import gymnasium
import numpy as np
import pytest

import urbe
import urbe.deep
import urbe.gym
from fixtures.swing import Swing, SwingAdapter
from urbe.deep import dqn, robust_dqn
from urbe.gym import EnvMembers, FunctionMembers, Members, SimulatorEnv
from urbe.simulators import CartPole, Constant, UncertaintySet


def function(obs, action):  # noqa: ARG001
    return np.stack([obs, obs]), np.zeros(2), np.zeros(2, bool)


POLES = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
NAMES = {
    "urbe": urbe,
    "gymnasium": gymnasium,
    "EnvMembers": EnvMembers,
    "FunctionMembers": FunctionMembers,
    "UncertaintySet": UncertaintySet,
    "simulator": CartPole(),
    "adapter": SwingAdapter(),
    "params": [{"gravity": 3.0}],
    "function": function,
    "count": 2,
    "values": [-1.0, 1.0],
    "seed": 0,
    "schedule": Constant(CartPole().nominal()),
}
"""What the words in a message stand for."""


def calls(error):
    """Calls in a message."""
    return re.findall(r"[\w.]+\((?:[\w\s,.=\"-]|\(\))*\)", str(error.value))


def advised(act, env, pattern):
    """The result of the call in the message of what `act` raises."""
    with pytest.raises(ValueError) as error:
        act()
    (call,) = [each for each in calls(error) if re.match(pattern, each)]
    # what a message leaves open
    call = call.replace("name=values, ...", "length=(0.25, 1.0)").replace("(env, ...)", "(env, half_length=(0.25,))")
    call = call.replace("(simulator, ...)", "(simulator, half_length=(0.25,))")
    return eval(call, {**NAMES, "env": env})


def test_without_an_adapter():
    env = Swing()
    members = advised(lambda: robust_dqn(env, None, seed=0), env, r"EnvMembers\(")
    assert isinstance(members, Members)
    assert members.describe()["parameters"]["gravity"] == [9.8, 3.0]
    assert len(advised(lambda: EnvMembers.grid(env, gravity=(3.0,)), env, r"FunctionMembers\(")) == 2


def test_with_a_known_adapter():
    env = gymnasium.make("CartPole-v1")
    for uncertain in (None, POLES):
        found = advised(lambda uncertain=uncertain: robust_dqn(env, uncertain, seed=0), env, r"EnvMembers.grid")
        assert len(found) == 3


def test_simulators():
    assert len(advised(lambda: robust_dqn(CartPole(), None, seed=0), None, r"UncertaintySet.grid")) == 2
    wrapped = gymnasium.wrappers.TransformReward(SimulatorEnv(CartPole()), lambda reward: 2 * reward)
    assert len(advised(lambda: robust_dqn(wrapped, POLES, seed=0), wrapped, r"EnvMembers.grid")) == 2
    env = gymnasium.make("urbe/CartPole-v0")
    changing = advised(lambda: dqn(env, seed=0, schedule=NAMES["schedule"]), env, r"urbe.gym")
    assert changing.unwrapped is env.unwrapped


def test_environments():
    env = gymnasium.make("MountainCarContinuous-v0")
    assert advised(lambda: dqn(env, seed=0), env, r"urbe.gym.Disc").action_space == gymnasium.spaces.Discrete(2)
    made = advised(lambda: dqn("CartPole-v1", seed=0), None, r"gymnasium.make")
    assert made.spec.id == "CartPole-v1"


def test_grid_takes_the_adapter():
    made = []

    def make():
        made.append(Swing())
        return made[-1]

    members = EnvMembers.grid(Swing(), adapter=SwingAdapter(), make=make, shared_noise=False, gravity=(3.0, 20.0))
    assert members.copies == tuple(made)
    assert not members.shared_noise
    assert members.describe()["parameters"] == {"gravity": [9.8, 3.0, 20.0], "mass": [2.0, 2.0, 2.0]}
    assert EnvMembers(Swing(), [], adapter=SwingAdapter()).nominal == 0
