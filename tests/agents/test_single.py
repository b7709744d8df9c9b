"""A single run with plain numbers equals replicate 0 of the loop."""

import numpy as np
import pytest

import urbe
from urbe.agents import RLSVI, URBE, BayesianQ, QLearning, Single, Task, run
from urbe.envs.finite import FiniteEnv
from urbe.posteriors.beliefs import Forgetting
from urbe.rng import streams

SWIM = urbe.library.riverswim(5)
TASK = Task(urbe.Posterior.before(SWIM), 12)


def episodes(agent, n, seed):
    """The loop a user would write."""
    env = FiniteEnv.of(SWIM).start(streams(seed, "environment", np.array([0])))
    zero, totals = np.zeros(1, dtype=int), []
    for episode in range(n):
        state, total = int(env.begin(episode)[0]), 0.0
        for step in range(TASK.horizon):
            action = agent.act(state)
            assert type(action) is int
            arrival = env.step(zero, np.array([state]), np.array([action]))
            following, reward, ended = (x[0].item() for x in arrival)
            agent.observe(state, action, reward, following, ended, step + 1 == TASK.horizon and not ended)
            state, total = following, total + reward
        agent.end_episode()
        totals.append(total)
    return totals


KINDS = [URBE(), URBE(belief=Forgetting(0.5)), QLearning(), RLSVI(0.3), BayesianQ()]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_acts_like_replicate_zero(kind):
    record = run(kind, FiniteEnv.of(SWIM), TASK, episodes=15, seed=4, replicates=2)
    assert episodes(Single(kind, TASK, seed=4), 15, 4) == record.reward[0].tolist()
    assert episodes(Single(kind, TASK, seed=5), 15, 4) != record.reward[0].tolist()


def test_goes_on_from_its_state_within_an_episode():
    one, two = (Single(URBE(), TASK, seed=0) for _ in range(2))
    for agent in (one, two):
        assert agent.step == 0
    one.observe(0, 1, 0.0, 1)
    two.load(one.state())
    assert two.step == 1
    assert [one.act(1) for _ in range(50)] == [two.act(1) for _ in range(50)]


def test_an_episode_that_is_over_is_not_acted_in():
    agent = Single(QLearning(), TASK, seed=0)
    agent.observe(0, 1, 0.0, 1, truncated=True)
    with pytest.raises(ValueError, match=r"The episode is over; call end_episode\(\)"):
        agent.act(1)
    agent.end_episode()
    agent.act(1)
    for _ in range(TASK.horizon):
        agent.observe(0, 0, 0.0, 0)
    with pytest.raises(ValueError, match="The episode has lasted 12 steps, the task's horizon"):
        agent.act(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda agent: agent.act(5), r"state\[0\] is 5, expected a 0-based state below 5"),
        (lambda agent: agent.act(0.5), r"state\[0\] is 0\.5, expected a whole number"),
        (lambda agent: agent.observe(0, 1, 0.0, -1), r"next_state\[0\] is -1, expected at least 0"),
        (lambda agent: agent.observe(0, 1, np.nan, 1), "reward is nan, expected a finite number"),
    ],
)
def test_refuses(call, message):
    agent = Single(QLearning(), TASK, seed=0)
    with pytest.raises(ValueError, match=message):
        call(agent)
    assert agent.step == 0


def test_refuses_to_act_where_all_is_over():
    agent = Single(QLearning(), Task(urbe.Posterior.before(urbe.library.seven_states(0.5)), 3), seed=0)
    with pytest.raises(ValueError, match="state 6 is terminal"):
        agent.act(6)
    with pytest.raises(ValueError, match="seed is -1, expected a whole number of at least 0"):
        Single(QLearning(), TASK, seed=-1)


def test_texts_are_labels():
    river = urbe.library.riverswim(5, discount=0.9).with_labels(states=list("abcde"), actions=["left", "right"])
    one, two = (Single(QLearning(), Task(urbe.Posterior.before(river), 10), seed=0) for _ in range(2))
    assert one.act("d") == two.act(3)
    one.observe("d", "right", 0.5, "e")
    two.observe(3, 1, 0.5, 4)
    assert np.array_equal(one.agent.q, two.agent.q)
    with pytest.raises(ValueError, match=r"state\[0\] is 'z', expected a state: 'a', 'b'"):
        one.act("z")
    with pytest.raises(ValueError, match=r"action\[0\] is 'up', expected an action: 'left', 'right'"):
        one.observe("d", "up", 0.0, "e")
    with pytest.raises(ValueError, match=r"state\[0\] is 'd', expected a whole number"):
        Single(QLearning(), TASK, seed=0).act("d")
