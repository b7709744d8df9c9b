"""Reward-constrained policy optimisation against the linear program."""

from dataclasses import replace

import numpy as np
import pytest

import urbe
from fixtures.agents import feed, start, steps
from urbe.agents import RCPO, Task
from urbe.agents.run import Run
from urbe.envs.finite import FiniteEnv
from urbe.mdp.evaluate import policy_value, start_weights
from urbe.simulators import MarsRover, MarsRoverParams, to_mdp

TWO = urbe.MDP.from_dense(
    [[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]], [[0.1, 0.0], [0.5, 1.0]], discount=0.8, initial=[1.0, 0.0]
)
COST = [[0.0, 0.2], [0.0, 1.0]]


def learnt(limit, episodes, replicates, mdp=TWO, cost=COST, horizon=30, **settings):
    task = Task(urbe.Posterior.before(mdp), horizon)
    running = Run(
        RCPO(cost, limit, **settings), FiniteEnv.of(mdp), task, episodes=episodes, seed=0,
        replicates=np.arange(replicates),
    )  # fmt: skip
    while not running.done:
        running.episode()
    return running.agent


def test_one_step_by_hand():
    agent = start(RCPO(COST, 1.0, critic=0.5, actor=0.1, initial_price=2.0), TWO, horizon=3)
    agent.q[0, 2:], agent.cost_q[0, 2:] = (1.0, 3.0), (0.0, 1.0)
    agent.observe(steps(0, 1, 0.5, 1), 0)
    q, cost_q = 0.5 * (0.5 + 0.8 * 2.0), 0.5 * (0.2 + 0.8 * 0.5)  # from 0; both actions of the next state are as likely
    assert agent.q[0, :2].tolist() == pytest.approx([0.0, q])
    assert agent.cost_q[0, :2].tolist() == pytest.approx([0.0, cost_q])
    better = 3.0 * 0.1 * (q - 2.0 * cost_q)
    np.testing.assert_allclose(agent.theta[0, :2], [min(-better, 0.0), min(better, 0.0)])
    agent.observe(steps(1, 1, 0.0, 0), 1)
    assert agent.episode_cost[0] == pytest.approx(0.2 + 0.8 * 1.0)
    np.testing.assert_allclose(agent.policy.reshape(2, 2).sum(axis=1), 1.0)
    np.testing.assert_allclose(agent.mean_policy, 0.5)  # the policy by which both actions were taken


def test_the_price_follows_the_cost_of_an_episode_within_its_bounds():
    agent = start(RCPO(COST, 0.5, price=0.1, initial_price=0.02, most=0.05), TWO)
    agent.end_episode()
    assert agent.price[0] == 0.0  # no cost at all
    for _ in range(2):
        agent.observe(steps(1, 1, 0.0, 0), 0)
    agent.end_episode()
    assert agent.price[0] == 0.05  # 0.1 (1.8 - 0.5), cut
    assert agent.mean_price[0] == pytest.approx(4.0 / 5.0 * 0.05)  # weights 1 and 4


def found_by(agent, mdp, cost):
    """`(B, 2)` return and cost of the mean policies, exactly."""
    policies = [mdp.by_action(each, fill=0.0) for each in agent.mean_policy]
    models = mdp, replace(mdp, rows=replace(mdp.rows, reward=mdp.per_row("cost", cost)))
    return np.array([[start_weights(m) @ policy_value(m, policy) for m in models] for policy in policies])


def test_price_and_policy_tend_to_those_of_the_linear_program():
    """Every one of eight learners: the multiplier .710 within 8 %, return 1.383 and cost 1 within .05."""
    expected = urbe.solve_constrained(TWO, COST, 1.0)
    agent = learnt(1.0, 3000, 8, initial=5.0)
    assert agent.mean_price == pytest.approx(np.full(8, expected.multiplier), rel=0.08)
    assert agent.mean_price.mean() == pytest.approx(expected.multiplier, rel=0.03)
    found = found_by(agent, TWO, COST)
    assert found == pytest.approx(np.tile([expected.value, expected.cost], (8, 1)), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.1, 0.2])
def test_the_rover_settles(limit):
    """20,000 episodes of at most 400 steps: the multiplier within 6 %, the cost within .02, the return within .06."""
    rover = to_mdp(MarsRover(step_reward=-0.001), MarsRoverParams(failure=0.02), discount=0.999)
    wrecked = rover.matrix()[:, [100]].toarray().ravel()
    expected = urbe.solve_constrained(rover, wrecked, limit)
    agent = learnt(limit, 20_000, 4, rover, wrecked, 400)
    assert agent.mean_price == pytest.approx(np.full(4, expected.multiplier), rel=0.06)
    found = found_by(agent, rover, wrecked)
    print("limit", limit, "multiplier", agent.mean_price.round(3), "return and cost", found.round(3).tolist())
    assert np.abs(found[:, 1] - limit).max() <= 0.02
    assert np.abs(found[:, 0] - expected.value).max() <= 0.06


def test_a_limit_that_does_not_bind_has_no_price():
    agent = learnt(10.0, 100, 4, initial=5.0)
    assert (agent.price == 0.0).all()
    assert (agent.policy[:, 3] > 0.9).all()  # the best action of the unconstrained model, where it pays most


def test_resumes_from_a_saved_state():
    one, two = (start(RCPO(COST, 0.5), TWO) for _ in range(2))
    feed(one, TWO, np.random.default_rng(0), 3)
    one.end_episode()
    two.load(one.state())
    acts = [[x.act(np.zeros(1, int), np.zeros(1, int), 0)[0] for _ in range(30)] for x in (one, two)]
    assert acts[0] == acts[1]
    np.testing.assert_array_equal(one.mean_price, two.mean_price)
