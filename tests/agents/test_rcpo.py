"""Reward-constrained policy optimisation against the linear program."""

import numpy as np
import pytest

import urbe
from fixtures.agents import feed, start, steps
from urbe.agents import RCPO, Task
from urbe.agents.run import Run
from urbe.envs.finite import FiniteEnv

TWO = urbe.MDP.from_dense(
    [[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]], [[0.1, 0.0], [0.5, 1.0]], discount=0.8, initial=[1.0, 0.0]
)
COST = [[0.0, 0.2], [0.0, 1.0]]


def learnt(limit, episodes, replicates, **settings):
    task = Task(urbe.Posterior.before(TWO), 30)
    running = Run(
        RCPO(COST, limit, **settings), FiniteEnv.of(TWO), task, episodes=episodes, seed=0,
        replicates=np.arange(replicates),
    )  # fmt: skip
    while not running.done:
        running.episode()
    return running.agent


def test_one_step_by_hand():
    agent = start(RCPO(COST, 1.0, critic=0.5, actor=0.1, initial_price=2.0), TWO)
    agent.v[0] = 1.0, 3.0
    agent.observe(steps(0, 1, 0.0, 1), 0)
    delta = 0.0 - 2.0 * 0.2 + 0.8 * 3.0 - 1.0
    assert agent.v[0, 0] == pytest.approx(1.0 + 0.5 * delta)
    np.testing.assert_allclose(agent.theta[0], [-0.05 * delta, 0.05 * delta, 0.0, 0.0])
    agent.observe(steps(1, 1, 0.0, 0), 1)
    assert agent.episode_cost[0] == pytest.approx(0.2 + 0.8 * 1.0)
    np.testing.assert_allclose(agent.policy.reshape(2, 2).sum(axis=1), 1.0)


def test_the_price_follows_the_cost_of_an_episode_within_its_bounds():
    agent = start(RCPO(COST, 0.5, price=0.1, initial_price=0.02, most=0.05), TWO)
    agent.end_episode()
    assert agent.price[0] == 0.0  # no cost at all
    for _ in range(2):
        agent.observe(steps(1, 1, 0.0, 0), 0)
    agent.end_episode()
    assert agent.price[0] == 0.05  # 0.1 (1.8 - 0.5), cut
    assert agent.mean_price[0] == pytest.approx(0.05)


@pytest.mark.slow
def test_the_price_tends_to_the_multiplier_of_the_linear_program():
    """Within 5 %; ten replicates of 4,000 episodes."""
    expected = urbe.solve_constrained(TWO, COST, 1.0)
    agent = learnt(1.0, 4000, 10)
    assert agent.mean_price.mean() == pytest.approx(expected.multiplier, rel=0.05)


def test_a_limit_that_does_not_bind_has_no_price():
    agent = learnt(10.0, 100, 4)
    assert (agent.price == 0.0).all()
    assert (agent.policy[:, 3] > 0.9).all()  # the best action of the unconstrained model, where it pays most


def test_states_are_taken_up():
    one, two = (start(RCPO(COST, 0.5), TWO) for _ in range(2))
    feed(one, TWO, np.random.default_rng(0), 3)
    one.end_episode()
    two.load(one.state())
    acts = [[x.act(np.zeros(1, int), np.zeros(1, int), 0)[0] for _ in range(30)] for x in (one, two)]
    assert acts[0] == acts[1]
    np.testing.assert_array_equal(one.mean_price, two.mean_price)
