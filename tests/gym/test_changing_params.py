"""Environments whose parameters follow a schedule, which advances at every reset."""

import re
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

from urbe.gym import ChangingParams
from urbe.simulators import Constant, DomainRandomisation, Drift, MarsRover, Uniform


class Params(NamedTuple):
    length: float = 0.5
    mass: float = 0.1
    gravity: float = 9.8


def rover_env(**named):
    return gymnasium.make("urbe/MarsRover-v0", **named)


def test_every_reset_of_an_environment_is_the_next_episode():
    drift = Drift(MarsRover().nominal(), {"failure": (0.0, 1.0)}, episodes=4)
    with ChangingParams(rover_env(), drift, seed=0) as env:
        assert env.episode is None
        for k, failure in enumerate((0.0, 0.25, 0.5, 0.75, 1.0, 1.0)):
            _, info = env.reset(seed=k % 2, options={"state": np.int32(12)})
            assert env.episode == k
            assert info["params"] == {"failure": failure}
            assert env.unwrapped.get_params() == {"failure": failure}
            assert int(env.unwrapped.get_state()) == 12
        assert env.step(2)[2]  # a risky move that must fail


def test_the_wrapper_draws_from_its_own_seed():
    law = DomainRandomisation(MarsRover().nominal(), {"failure": Uniform(0.0, 1.0)})

    def drawn(seed):
        with ChangingParams(rover_env(), law, seed=seed) as env:
            return [env.reset(seed=7)[1]["params"]["failure"] for _ in range(5)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    assert len(set(drawn(0))) == 5


def test_environments_and_schedules_that_do_not_fit_are_refused():
    rover = Constant(MarsRover().nominal())
    with gymnasium.make("CartPole-v1") as env, pytest.raises(ValueError, match=re.escape("has no get_params()")):
        ChangingParams(env, rover, seed=0)
    with rover_env() as env, pytest.raises(ValueError, match="schedule has the parameters length, mass, gravity, exp"):
        ChangingParams(env, Constant(Params()), seed=0)
    with ChangingParams(rover_env(), rover, seed=0) as env:
        with pytest.raises(ValueError, match="options has 'failure', "):
            env.reset(options={"failure": 0.3})
        assert env.episode is None
