"""Policies that keep on learning in deployment: each life has weights of its own, and the trained ones stay."""

import numpy as np
import pytest

from urbe.belief import Switching
from urbe.deep import BeliefCVaR, CopyEvery, DuelingNetwork, Epsilon, Network, Settings
from urbe.deep.adaptive.presets import bayes_adaptive_dqn, thompson_dqn
from urbe.deep.presets import dqn, dqn_urbe, robust_dqn
from urbe.evaluation.adaptation import deploy_lives, parameter_paths
from urbe.simulators import CartPole, MarsRover, StepChange, UncertaintySet

POLE = CartPole(time_limit=20)
SMALL = Settings(network=Network(hidden=(8,)), batch=8, capacity=64, warm_up=8, epsilon=Epsilon(1.0, 0.1, 50))
GAINS = UncertaintySet.grid(POLE, include_nominal=False, force=(-10.0, 10.0))


def held(lives=2, episodes=4):
    base = POLE.nominal()
    schedule = StepChange(((episodes // 2, base), (episodes // 2, base._replace(force=-10.0))))
    return parameter_paths(schedule, lives=lives, episodes=episodes, seed=0)


def test_lives_in_turn_are_lives_together():
    policy = dqn(POLE, seed=0, settings=SMALL).learn(50).memory_policy
    together, in_turn = (deploy_lives(policy, POLE, held(), seed=3, in_turn=each) for each in (False, True))
    np.testing.assert_array_equal(together.episode_return, in_turn.episode_return)


def test_without_a_learning_rate_and_random_actions_it_is_the_frozen_policy():
    agent = dqn(POLE, seed=0, settings=SMALL).learn(100)
    still = agent.learning_policy(learning_rate=1e-30, epsilon=Epsilon(0.0, 0.0, 1))
    frozen = deploy_lives(agent.memory_policy, POLE, held(), seed=3)
    found = deploy_lives(still, POLE, held(), seed=3, in_turn=True)
    np.testing.assert_array_equal(found.episode_return, frozen.episode_return)
    steps = found.length.sum(axis=1)
    learned = (steps - SMALL.batch) // SMALL.train_every
    assert (np.abs(found.reports["updates"][:, -1] - learned) <= 1).all()


def test_it_learns_in_deployment_as_in_training():
    """From random weights to a pole that stays up longer, within one life; the agent itself does not change."""
    pole = CartPole(time_limit=60, terminal_reward=0.0)
    settings = Settings(
        network=Network(hidden=(32,)), batch=32, learning_rate=1e-3, discount=0.95, double=True,
        copy=CopyEvery(updates=50),
    )  # fmt: skip
    agent = dqn(pole, seed=0, settings=settings)
    before = agent.tensors()
    params = parameter_paths(StepChange(((300, pole.nominal()),)), lives=1, episodes=300, seed=0)
    found = deploy_lives(agent.learning_policy(train_every=1), pole, params, seed=0, in_turn=True)
    assert found.episode_return[0, -20:].mean() > 2.0 * found.episode_return[0, :20].mean()
    assert all(np.array_equal(before[name], array) for name, array in agent.tensors().items())


def test_agents_that_cannot_learn_from_observations_alone_are_refused():
    for agent in (robust_dqn(POLE, GAINS, seed=0, settings=SMALL), dqn_urbe(POLE, GAINS, seed=0, settings=SMALL)):
        with pytest.raises(ValueError, match="needs the outcomes under every member"):
            agent.learning_policy()
    belief = {"switching": Switching(0.01), "seed": 0, "lives": 2, "length": 4, "minibatches": 1}
    for agent in (thompson_dqn(POLE, GAINS, **belief),):
        with pytest.raises(ValueError, match="thompson-dqn learns values of members"):
            agent.learning_policy()


@pytest.mark.parametrize("simulator", [POLE, MarsRover(time_limit=20)])
def test_a_belief_agent_takes_gradient_steps_between_its_observations(simulator):
    """At a tiny rate it is the frozen agent; else its values are drawn to their targets."""
    if simulator is POLE:
        members, params = GAINS, held()
    else:
        members = UncertaintySet.grid(simulator, include_nominal=False, failure=(0.01, 0.5))
        schedule = StepChange(((4, simulator.nominal()),))
        params = parameter_paths(schedule, lives=2, episodes=4, seed=0)
    agent = bayes_adaptive_dqn(
        simulator, members, switching=Switching(0.01, per="episode"), caution=BeliefCVaR(0.9), seed=0, lives=4,
        length=8, minibatches=2, network=DuelingNetwork((16,)),
    ).learn(64)  # fmt: skip
    frozen = deploy_lives(agent.policy, simulator, params, seed=1)
    still = deploy_lives(agent.learning_policy(learning_rate=1e-30, batch=4), simulator, params, seed=1, in_turn=True)
    np.testing.assert_array_equal(still.episode_return, frozen.episode_return)
    np.testing.assert_allclose(still.reports["belief"], frozen.reports["belief"], atol=1e-6)
    np.testing.assert_array_equal(still.reports["updates"][:, -1], frozen.length.sum(axis=1) // 4)
