"""Deployment under noisy observations: the compiled filter equals `urbe.belief`, and identifies the member."""

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief import (
    Belief,
    Sensor,
    Switching,
    corrected_estimates,
    first_estimates,
    mixed_estimates,
    predicted_estimates,
)
from urbe.belief.likelihoods import endings, tolerance
from urbe.deep import DuelingNetwork, bayes_adaptive_dqn
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.policy import check_sensor
from urbe.gym import EnvMembers, EnvSimulator
from urbe.simulators import CartPole, MarsRover, UncertaintySet
from urbe.simulators.base import step as simulate
from urbe.simulators.mars_rover import one_hot

POLE = CartPole(time_limit=40)
FORCES = (-10.0, 5.0, 10.0)
POLES = UncertaintySet.grid(POLE, include_nominal=False, force=FORCES)
SWITCHING = Switching(1e-3)
PUSH = jax.jit(partial(simulate, POLE))
SMALL = {"lives": 4, "length": 8, "minibatches": 2, "network": DuelingNetwork((8,))}


@pytest.fixture(scope="module")
def agent():
    return bayes_adaptive_dqn(POLE, POLES, switching=SWITCHING, seed=0, **SMALL)


def lead(obs, force, action):
    """CartPole's Euler step, in double precision, in NumPy."""
    x, v, angle, turn = obs
    push = force if action else -force
    sin, cos = np.sin(angle), np.cos(angle)
    u = (push + 0.05 * turn**2 * sin) / 1.1
    turning = (9.8 * sin - u * cos) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    moving = u - 0.05 * turning * cos / 1.1
    return np.array([x + 0.02 * v, v + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning])


def test_the_session_follows_the_filter_of_urbe_belief(agent):
    sensor, noise, draws = Sensor(0.05), 0.05, np.random.default_rng(1)
    session, belief = agent.deploy(sensor=sensor), Belief(3, SWITCHING)
    state = POLE.start(jax.random.key(5), POLE.nominal())
    estimates, action, wiggle = None, 0, 1e-6
    for t in range(15):
        seen = (np.asarray(state) + noise * draws.normal(size=4)).astype(np.float32)
        if t == 0:
            estimates = first_estimates(sensor, seen.astype(np.float64), 3)
        else:
            session.observe(1.0, seen, False)
            estimates = mixed_estimates(SWITCHING, belief.state.log_b, estimates)
            predicted = np.array([lead(m, f, action) for m, f in zip(estimates.mean, FORCES, strict=True)])
            jacobian = np.array(
                [
                    np.array([(lead(m + e, f, action) - lead(m - e, f, action)) / (2 * wiggle)
                              for e in wiggle * np.eye(4)]).T
                    for m, f in zip(estimates.mean, FORCES, strict=True)
                ]
            )  # fmt: skip
            ahead = predicted_estimates(predicted, jacobian, tolerance(predicted, 3.0, 1e-3) ** 2, estimates)
            estimates, evidence = corrected_estimates(sensor, ahead, seen.astype(np.float64))
            ends = (np.abs(predicted[:, 0]) > 2.4) | (np.abs(predicted[:, 2]) > 12 * np.pi / 180)
            more = endings(ends, np.bool_(False), 0.05)
            belief.observe(evidence._replace(log_likelihood=evidence.log_likelihood + more))
            np.testing.assert_allclose(session.memory.estimates.mean, estimates.mean, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(session.report()["filtered"], belief.filtered, atol=2e-3)
        action = session.act(seen)
        state = PUSH(jax.random.key(0), state, jnp.int32(action), POLES.members()[1]).state
    assert session.belief.argmax() == 1
    assert session.belief[1] > 0.9


def test_estimates_begin_anew_with_every_episode(agent):
    session = agent.deploy(sensor=Sensor(0.02))
    session.act([0.0, 0.0, 0.05, 0.0])
    session.observe(1.0, [0.0, 0.2, 0.05, -0.27], True)
    session.act([0.01, 0.02, 0.03, 0.04])
    np.testing.assert_allclose(session.memory.estimates.mean, [[0.01, 0.02, 0.03, 0.04]] * 3, rtol=1e-6)


def test_what_cannot_be_estimated_is_refused(agent):
    rover = MarsRover(size=4, start_zone=(2, 2), encoding=one_hot)
    rovers = UncertaintySet.grid(rover, include_nominal=False, failure=(0.02, 0.5))
    shared = bayes_adaptive_dqn(rover, rovers, switching=Switching(0.1, "episode"), seed=0, **SMALL)
    with pytest.raises(ValueError, match="sensor was given for MarsRover"):
        shared.deploy(sensor=Sensor(0.1))

    def place(env, seen):
        env.unwrapped.state = tuple(seen.astype(float))

    for named in ({}, {"place": place}):
        outside = EnvSimulator(gymnasium.make("CartPole-v1", max_episode_steps=20), **named)
        pushes = UncertaintySet.grid(outside, include_nominal=False, force_mag=(-10.0, 10.0))
        model = BeliefModel.of(outside, pushes, Switching(0.1), magnitude=np.ones(4))
        with pytest.raises(ValueError, match=r"sensor was given for EnvSimulator.*steps outside of JAX"):
            check_sensor(model, Sensor(0.1))
    with pytest.raises(ValueError, match="deviation has 2 entries, expected 4"):
        agent.under_noise(Sensor((0.1, 0.2)))
    env = gymnasium.make("CartPole-v1")
    members = EnvMembers(env, [{"force_mag": force} for force in (-10.0, 5.0)])
    with pytest.raises(ValueError, match="sensor was given with members"):
        agent.deploy(env, members, sensor=Sensor(0.1))
