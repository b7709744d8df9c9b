"""What agents learn on Mars Rover, compared with exact dynamic programming."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from urbe.deep import OneMemberDecides, dqn, paper, robust_dqn
from urbe.simulators import UncertaintySet, Uniform, performance, scenarios, to_mdp

STEPS = 50_000  # some 1500 episodes for an agent that travels, of the paper's 3000


@pytest.fixture(scope="module")
def rover():
    return paper.mars_rover()


@pytest.fixture(scope="module")
def seen(rover):
    """Every cell as the network sees it, goal and wreck left out."""
    return np.stack([np.asarray(rover.observe(np.int32(cell))) for cell in range(rover.goal)])


def table(agent, seen):
    """The agent's policy, with something in the two states where nothing can be done."""
    return np.r_[agent.predict(seen), 0, 0]


def risky_moves(rover, policy):
    cells, nominal = jnp.arange(rover.goal, dtype=jnp.int32), rover.nominal()
    moves = jnp.asarray(policy[: rover.goal], jnp.int32)
    chances = jax.vmap(lambda s, a: rover.outcomes(s, a, nominal).probability[0])(cells, moves)
    return int((chances > 0.0).sum())


seeds = pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])

LONG = 90_000  # the paper's 3000 episodes
EXPLORING = replace(paper.MARS_ROVER, capacity=LONG, epsilon=replace(paper.MARS_ROVER.epsilon, last=0.05))
"""The published network and rates, with all transitions kept and exploration that goes on."""


@pytest.fixture(scope="module")
def best(rover):
    """The best value from the start."""
    optimal = urbe.solve(to_mdp(rover, rover.nominal(), discount=0.9))
    found = performance(rover, rover.nominal(), optimal.policy, discount=0.9).discounted
    assert found == pytest.approx(0.11507, abs=1e-5)
    return found


def value(rover, agent, seen):
    return performance(rover, rover.nominal(), table(agent, seen), discount=0.9).discounted


def published(rover, seen, seed):
    """The value that DQN attains with the paper's settings."""
    return value(rover, dqn(rover, seed=seed, settings=paper.MARS_ROVER).learn(STEPS), seen)


def test_the_published_dqn_reaches_the_goal(rover, seen, best):
    assert published(rover, seen, 0) >= 0.5 * best


@pytest.mark.slow
def test_the_published_dqn_is_often_within_five_percent_of_the_best_nominal_value(rover, seen, best):
    """Not always: epsilon ends at 0.001 and the replay holds 10,000 transitions, so that a detour may remain.

    Which seeds miss depends on rounding, and so on the machine: 4 of these 6 came close on each of two machines, and
    13 of the first 16 on one. At that rate, fewer than 2 of 6 have a probability of 0.3 %.
    """
    values = np.array([published(rover, seen, seed) for seed in range(6)])
    assert (values >= 0.95 * best).sum() >= 2, values / best
    assert np.median(values) >= 0.7 * best, values / best


@seeds
def test_dqn_that_goes_on_exploring_is_within_five_percent_of_the_best_nominal_value(rover, seen, best, seed):
    agent = dqn(rover, seed=seed, settings=EXPLORING).learn(LONG - 10_000)
    # its rate does not fall, so that now and then a policy is off for a moment
    assert np.median([value(rover, agent.learn(2_000), seen) for _ in range(5)]) >= 0.95 * best


@seeds
def test_robust_dqn_never_takes_a_risky_move(rover, seen, seed):
    """As the exact robust policy of the same set, whose members go up to a failure probability near one."""
    failures = UncertaintySet.samples(rover, seed, count=paper.MEMBERS, failure=Uniform(0.0, 1.0))
    exact = urbe.solve(*scenarios(rover, failures, discount=0.9))
    assert risky_moves(rover, exact.policy) == 0
    with pytest.warns(OneMemberDecides, match="decided 100 % of the targets"):
        agent = robust_dqn(rover, failures, seed=seed, settings=paper.MARS_ROVER).learn(STEPS // 3)
    assert risky_moves(rover, table(agent, seen)) == 0
    totals = [
        performance(rover, rover.nominal()._replace(failure=p), table(agent, seen), discount=0.9).total
        for p in (0.0, 0.2, 0.9)
    ]
    assert totals == pytest.approx([rover.time_limit * rover.step_reward] * 3, rel=1e-6)  # it waits, whatever p is
