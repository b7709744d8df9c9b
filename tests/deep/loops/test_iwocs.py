"""IWOCS on a rover with a known exact robust solution, and the sequence of its rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import urbe
from urbe.deep import CopyEvery, Epsilon, Network, Settings, dqn, iwocs_dqn
from urbe.deep.compilation import cache_compilation
from urbe.deep.core.precision import double
from urbe.deep.loops.iwocs import WorstCaseSearch
from urbe.deep.loops.member_returns import member_returns
from urbe.simulators import MarsRover, UncertaintySet, performance, scenarios
from urbe.simulators.mars_rover import one_hot

ROVER = MarsRover(size=3, start_zone=(2, 2), time_limit=30, encoding=one_hot)
RISKS = UncertaintySet.grid(ROVER, failure=(0.05, 0.6))
SETTINGS = Settings(
    discount=0.9,
    network=Network((32, 32)),
    learning_rate=2e-3,
    batch=32,
    capacity=4000,
    warm_up=200,
    copy=CopyEvery(updates=100),
    epsilon=Epsilon(1.0, 0.1, 2000),
)


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    cache_compilation()


def new(seed=0, round_steps=3000, uncertain=RISKS):
    return iwocs_dqn(
        ROVER, uncertain, seed=seed, round_steps=round_steps, episodes=50, settings=SETTINGS, log_every=500
    )


def table(agent):
    """What it does in each cell."""
    cells = np.stack([np.asarray(one_hot(jnp.int32(cell), 3)) for cell in range(9)])
    return [*agent.policy.predict(cells).tolist(), 0]


def exact_returns(policy):
    return [performance(ROVER, member, policy, discount=0.9).discounted for member in RISKS.members()]


@pytest.fixture(scope="module")
def trained():
    return new().learn(3000), new().learn(9500)


def test_it_finds_the_robust_policy(trained):
    robust = urbe.solve(*scenarios(ROVER, RISKS, discount=0.9))
    best = min(exact_returns(robust.policy))
    nominal, after = trained
    assert min(exact_returns(table(nominal))) < best - 0.5  # what the first round learns is not robust
    assert min(exact_returns(table(after))) == pytest.approx(best, abs=1e-6)


def test_rounds_go_to_the_worst_member(trained):
    first, after = (agent.trainer._run for agent in trained)
    worst = int(np.argmin(exact_returns(table(trained[0]))))
    assert (int(first.round), int(first.member)) == (1, worst)  # looked for as soon as a round is over
    assert np.asarray(first.learner.q.counts).tolist() == [1.0, 0.0, 0.0]
    assert int(after.round) == 3
    assert np.asarray(after.learner.q.counts)[[0, worst]].tolist() == [1.0, 1.0]
    assert (int(after.learner.step), int(after.problem.learner.step)) == (9500, 500)
    log = trained[1].history.log
    assert (np.diff(log["updates"]) >= 0).all()
    assert (np.diff(log["episodes"]) > 0).all()
    episodes = trained[1].history.episodes
    assert (np.diff(episodes["step"]) > 0).all()
    assert len(episodes["step"]) == log["episodes"][-1]


def test_the_first_round_is_dqn_under_the_first_member():
    agent = new(seed=4).learn(700)
    plain = dqn(ROVER, seed=4, settings=SETTINGS, log_every=500).learn(700)
    learner, other = agent.trainer._run.problem.learner, plain.trainer.learner
    for a, b in zip(jax.tree.leaves(learner.q), jax.tree.leaves(other.q), strict=True):
        assert np.array_equal(a, b)
    cells = np.eye(9, dtype=np.float32)
    np.testing.assert_allclose(agent.policy.values(cells).q, plain.policy.values(cells).q, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(agent.history.log["loss"], plain.history.log["loss"])


def test_returns_of_members_are_the_exact_ones(trained):
    trainer = trained[0].trainer
    with double():
        found = member_returns(
            trainer.settings, trainer.learner.q, ROVER, RISKS.params, jax.random.key(0), episodes=4000
        )
    # returns lie in [-1, 1] and 0.9^30 of them is cut off: 5 deviations of the mean are 0.08
    np.testing.assert_allclose(found, exact_returns(table(trained[0])), atol=0.12)


def test_what_cannot_be_is_refused():
    for name in ("round_steps", "episodes"):
        with pytest.raises(ValueError, match=f"{name} is 0, expected"):
            WorstCaseSearch(**{name: 0})
    with pytest.raises(ValueError, match=r"network is Network.*expected Minimum"):
        WorstCaseSearch().programs(SETTINGS, ROVER, None, 100)
    with pytest.raises(ValueError, match="uncertainty_set is None, expected an UncertaintySet"):
        iwocs_dqn(ROVER, None, seed=0)
