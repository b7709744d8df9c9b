"""Policies that keep on learning in deployment: each life has weights of its own, and the trained ones stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.belief import Switching
from urbe.deep import BeliefCVaR, CopyEvery, DuelingNetwork, Epsilon, Network, Settings
from urbe.deep.adaptive.inputs import inputs_of
from urbe.deep.adaptive.presets import bayes_adaptive_dqn, thompson_dqn
from urbe.deep.core.networks import q_values
from urbe.deep.presets import dqn, dqn_urbe, robust_dqn
from urbe.evaluation.adaptation import Step, deploy_lives, parameter_paths
from urbe.simulators import CartPole, MarsRover, StepChange, UncertaintySet

POLE = CartPole(time_limit=20)
SMALL = Settings(network=Network(hidden=(8,)), batch=8, capacity=64, warm_up=8, epsilon=Epsilon(1.0, 0.1, 50))
GAINS = UncertaintySet.grid(POLE, include_nominal=False, force=(-10.0, 10.0))


def held(lives=2, episodes=4):
    base = POLE.nominal()
    schedule = StepChange(((episodes // 2, base), (episodes // 2, base._replace(force=-10.0))))
    return parameter_paths(schedule, lives=lives, episodes=episodes, seed=0)


def test_lives_in_turn_are_lives_together():
    policy = dqn(POLE, seed=0, settings=SMALL).memory_policy
    together, in_turn = (deploy_lives(policy, POLE, held(), seed=3, in_turn=each) for each in (False, True))
    np.testing.assert_array_equal(together.episode_return, in_turn.episode_return)


def test_without_a_learning_rate_and_random_actions_it_is_the_frozen_policy():
    agent = dqn(POLE, seed=0, settings=SMALL)
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


@pytest.mark.parametrize("simulator", [POLE, MarsRover(time_limit=20)], ids=["predicting", "shared"])
def test_a_belief_agent_takes_gradient_steps_between_its_observations(simulator):
    """At a tiny rate it is the frozen agent."""
    if simulator is POLE:
        members, params = GAINS, held()
    else:
        members = UncertaintySet.grid(simulator, include_nominal=False, failure=(0.01, 0.5))
        schedule = StepChange(((4, simulator.nominal()),))
        params = parameter_paths(schedule, lives=2, episodes=4, seed=0)
    agent = bayes_adaptive_dqn(
        simulator, members, switching=Switching(0.01, per="episode"), caution=BeliefCVaR(0.9), seed=0, lives=4,
        length=8, minibatches=2, network=DuelingNetwork((16,)),
    )  # fmt: skip
    frozen = deploy_lives(agent.policy, simulator, params, seed=1)
    still = deploy_lives(agent.learning_policy(learning_rate=1e-30, batch=4), simulator, params, seed=1, in_turn=True)
    np.testing.assert_array_equal(still.episode_return, frozen.episode_return)
    np.testing.assert_allclose(still.reports["belief"], frozen.reports["belief"], atol=1e-6)
    np.testing.assert_array_equal(still.reports["updates"][:, -1], frozen.length.sum(axis=1) // 4)


def test_the_target_of_a_belief_agent_is_the_mean_over_members_each_with_the_belief_after_it():
    agent = bayes_adaptive_dqn(
        POLE, GAINS, switching=Switching(0.01, per="episode", prior=(0.7, 0.3)), seed=0, lives=4, length=8,
        minibatches=2, network=DuelingNetwork((16,)), discount=0.9, gap=0.5, reward_scale=10.0,
    )  # fmt: skip
    policy, model = agent.learning_policy(), agent.model
    obs, action = jnp.asarray([0.0, 0.1, 0.05, -0.2], jnp.float32), jnp.int32(1)
    memory = policy.start(jax.random.key(0))
    step = Step(obs, action, jnp.float32(1.0), obs, jnp.bool_(False), jnp.bool_(False))
    x, y = policy._target(memory, step)

    def values(obs, belief):
        return q_values(agent.settings.network, policy.policy.weights, inputs_of(model, obs, belief, jnp.ones(1)))

    led = [POLE.outcomes(obs, action, member).state[0] for member in GAINS.members()]
    worth = []
    for each in led:
        says, _ = model.evidence_of_observation(
            jnp.ones((2, 1)), jnp.stack(led)[:, None], jnp.zeros((2, 1), bool), each[None], jnp.zeros(1, bool),
            jnp.zeros((1, 4)),
        )  # fmt: skip
        after = np.array([0.7, 0.3]) * np.exp(says.log_likelihood[0] - says.log_likelihood.max())
        worth.append(0.1 + 0.9 * float(values(each, jnp.asarray(after / after.sum(), jnp.float32)).max()))
    q = np.asarray(values(obs, jnp.asarray([0.7, 0.3])))
    np.testing.assert_allclose(y, 0.7 * worth[0] + 0.3 * worth[1] - 0.5 * (q.max() - q[1]), rtol=1e-4)
    np.testing.assert_allclose(x, inputs_of(model, obs, jnp.asarray([0.7, 0.3]), jnp.ones(1)), rtol=1e-5)
