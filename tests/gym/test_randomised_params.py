"""Domain randomisation of Gymnasium environments: distribution and duration of draws, and resuming."""

import gymnasium
import numpy as np
import pytest

from urbe.gym import EnvMembers, RandomisedParams, SimulatorEnv
from urbe.simulators import CartPole, Uniform


def pole():
    return gymnasium.make("CartPole-v1")


def lengths(env, episodes):
    found = []
    for _ in range(episodes):
        env.reset()
        found.append(env.unwrapped.length)
    return found


def test_every_point_is_drawn_and_the_others_stay():
    env = RandomisedParams(pole(), [{"length": 0.25}, {"length": 1.0, "masspole": 0.3}], seed=0)
    seen = set()
    for _ in range(60):
        env.reset()
        inner = env.unwrapped
        seen.add((inner.length, inner.masspole))
        assert inner.polemass_length == inner.length * inner.masspole
    assert seen == {(0.25, 0.1), (1.0, 0.3)}  # what another draw had set is as before


def test_distributions_are_drawn_from():
    env = RandomisedParams(pole(), {"length": Uniform(0.3, 0.6)}, seed=0)
    found = lengths(env, 50)
    assert len(set(found)) == 50
    assert 0.3 <= min(found) < 0.4 < 0.5 < max(found) <= 0.6


def test_members_of_a_set_are_points():
    inner = pole()
    env = RandomisedParams(inner, EnvMembers(inner, [{"length": 0.25}]), seed=0)
    assert set(lengths(env, 30)) == {0.5, 0.25}


def test_parameters_change_with_their_probability_and_follow_from_the_seed():
    make = [RandomisedParams(pole(), {"length": Uniform(0.3, 0.6)}, seed=seed, hazard=0.3) for seed in (1, 1, 2)]
    one, again, other = (lengths(env, 400) for env in make)
    assert one == again != other
    assert abs(np.mean(np.diff(one) != 0) - 0.3) < 5 * (0.21 / 400) ** 0.5


def test_draws_are_taken_up_where_they_were():
    env = RandomisedParams(pole(), {"length": Uniform(0.3, 0.6)}, seed=1, hazard=0.3)
    lengths(env, 7)
    kept, now = env.get_draws(), env.unwrapped.length
    after = lengths(env, 5)
    other = RandomisedParams(pole(), {"length": Uniform(0.3, 0.6)}, seed=1, hazard=0.3)
    other.set_draws(kept)
    assert other.unwrapped.length == now
    assert lengths(other, 5) == after


def test_simulators_behind_gymnasium_are_set_too():
    env = RandomisedParams(SimulatorEnv(CartPole()), [{"force": -10.0}], seed=0)
    assert env.reset(seed=0)[1]["params"]["force"] == -10.0


def test_what_cannot_be_is_refused():
    for parameters, message in (
        ([], "parameters is empty, expected at least one"),
        ({}, "parameters is empty, expected distributions of some of gravity"),
        ([{"size": 1.0}], "'size' is not among the parameters of the environment"),
        ({"length": 0.5}, r"parameters\['length'\] is 0.5, expected a distribution"),
    ):
        with pytest.raises(ValueError, match=message):
            RandomisedParams(pole(), parameters, seed=0)
    with pytest.raises(ValueError, match="no adapter is known"):
        RandomisedParams(gymnasium.make("Blackjack-v1"), [{"x": 1.0}], seed=0)
    with pytest.raises(ValueError, match="expected a single environment"):
        RandomisedParams(gymnasium.make_vec("CartPole-v1", 2), [{"length": 1.0}], seed=0)
