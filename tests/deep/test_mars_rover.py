"""What agents learn on Mars Rover, held against exact dynamic programming."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from urbe.deep import dqn, paper, robust_dqn
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
"""The published network and rates, with all transitions kept and exploration that goes on.

With our readings of what the paper leaves open, a replay of 10,000 and an epsilon that ends at 0.001, 3 of 16 seeds
miss the 5 % after 50,000 steps: what is not tried any more is neither remembered nor corrected.
"""


@seeds
def test_dqn_is_within_five_percent_of_the_best_nominal_value(rover, seen, seed):
    nominal = rover.nominal()
    optimal = urbe.solve(to_mdp(rover, nominal, discount=0.9))
    best = performance(rover, nominal, optimal.policy, discount=0.9)
    assert best.discounted == pytest.approx(0.11507, abs=1e-5)
    agent = dqn(rover, seed=seed, settings=EXPLORING).learn(LONG - 10_000)
    found = []
    for _ in range(5):  # its rate does not fall, so that now and then a policy is off for a moment
        found.append(performance(rover, nominal, table(agent.learn(2_000), seen), discount=0.9).discounted)
    assert np.median(found) >= 0.95 * best.discounted


@seeds
def test_robust_dqn_never_takes_a_risky_move(rover, seen, seed):
    """As the exact robust policy of the same set, whose members go up to a failure probability near one."""
    failures = UncertaintySet.samples(rover, seed, count=paper.MEMBERS, failure=Uniform(0.0, 1.0))
    exact = urbe.solve(*scenarios(rover, failures, discount=0.9))
    assert risky_moves(rover, exact.policy) == 0
    agent = robust_dqn(rover, failures, seed=seed, settings=paper.MARS_ROVER).learn(STEPS // 3)
    assert risky_moves(rover, table(agent, seen)) == 0
    totals = [
        performance(rover, rover.nominal()._replace(failure=p), table(agent, seen), discount=0.9).total
        for p in (0.0, 0.2, 0.9)
    ]
    assert totals == pytest.approx([rover.time_limit * rover.step_reward] * 3, rel=1e-6)  # it waits, whatever p is
