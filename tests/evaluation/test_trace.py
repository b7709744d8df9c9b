"""Traces and visits: the episodes of the evaluation, and the visits of the exact model."""

from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.policies import linear, table
from urbe.evaluation.robustness import evaluate
from urbe.evaluation.trace import trace, visits
from urbe.gym import SimulatorEnv
from urbe.simulators import CartPole, MarsRover, MarsRoverParams, performance
from urbe.simulators.mars_rover import one_hot

POLE = CartPole(time_limit=100)
LEANING = linear([[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]], spread=0.02)
ROVER = MarsRover(size=4, start_zone=(2, 2), encoding=one_hot, time_limit=20)
AHEAD = [2 if cell // 4 < 3 else 1 for cell in range(16)]


@pytest.fixture(scope="module")
def seen():
    return trace(LEANING, POLE, {"half_length": 0.75}, episodes=10, seed=3)


@pytest.mark.parametrize("way", ["greedy", "noisy"])
def test_a_trace_shows_the_episodes_that_are_evaluated(way, seen):
    expected = seen if way == "greedy" else trace(LEANING, POLE, {"half_length": 0.75}, episodes=10, seed=3, acting=way)
    found = evaluate(LEANING, {"half_length": [0.75]}, env=POLE, episodes=10, seed=3).played[way]
    assert np.array_equal(expected.alive.sum(axis=1), found.lengths[0])
    assert np.array_equal(expected.reward.sum(axis=1), found.returns[0])
    assert np.array_equal(expected.terminated, found.terminated[0])


def test_a_trace_replays_step_by_step_in_the_environment(seen):
    e, steps, d = *seen.alive.shape, 4
    assert seen.observation.shape == (e, steps + 1, d)
    assert seen.observation.dtype == seen.reward.dtype == np.float32
    env = SimulatorEnv(POLE, half_length=0.75)
    env.reset(seed=0)
    for episode in (0, 5):
        env.set_state(seen.state[episode, 0])
        for t in range(int(seen.alive[episode].sum())):
            obs, reward, _, _, _ = env.step(seen.action[episode, t])
            # the same operations in another program: float32 rounding
            assert np.allclose(obs, seen.observation[episode, t + 1], rtol=1e-5, atol=1e-6)
            assert reward == seen.reward[episode, t]
            assert seen.action[episode, t] == int(seen.observation[episode, t, 2] > 0)


def test_after_the_end_nothing_happens(seen):
    lengths = seen.alive.sum(axis=1)
    assert (lengths < seen.alive.shape[1]).any()
    assert lengths.max() == seen.alive.shape[1]
    over = ~seen.alive
    assert (seen.action[over] == -1).all()
    assert (seen.reward[over] == 0.0).all()
    assert (np.diff(seen.alive.astype(int), axis=1) <= 0).all()
    for episode, length in enumerate(lengths):
        assert (seen.observation[episode, length:] == seen.observation[episode, length]).all()
    assert np.isin(seen.action[seen.alive], (0, 1)).all()


def test_episodes_begin_alike_for_all_parameters_and_policies(seen):
    other = trace(SimpleNamespace(predict=lambda _: 0), POLE, {"half_length": 3.0, "gravity": 1.0}, episodes=10, seed=3)
    assert np.array_equal(other.observation[:, 0], seen.observation[:, 0])
    assert not np.array_equal(trace(LEANING, POLE, episodes=10, seed=4).observation[:, 0], seen.observation[:, 0])
    first = [SimulatorEnv(POLE).reset(seed=s)[0] for s in (0, 1)]
    assert not np.array_equal(first[0], first[1])


def test_visits_are_those_of_the_exact_model():
    """5 standard errors: about one false alarm in 1e5 fresh seeds for all 17 states."""
    params, policy = MarsRoverParams(float(np.float32(0.2))), table(AHEAD, 4)
    exact = performance(ROVER, params, [*AHEAD, 0], discount=0.9).visits
    found = visits(policy, ROVER, params, episodes=1000, seed=1)
    expected = trace(policy, ROVER, params, episodes=1000, seed=1)
    there = np.concatenate([np.ones((1000, 1), bool), expected.alive], axis=1)
    counts = np.stack([np.bincount(s[t], minlength=17) for s, t in zip(expected.state, there, strict=True)])
    assert np.array_equal(counts.mean(axis=0), found)
    assert (np.abs(found - exact) <= 5.0 * counts.std(axis=0, ddof=1) / np.sqrt(1000) + 1e-12).all()
    assert (found[exact == 0.0] == 0.0).all()
    assert found[[ROVER.goal, ROVER.wreck]].sum() == expected.terminated.mean()


def test_params_may_be_left_out_and_refusals_are_those_of_evaluations():
    assert trace(LEANING, POLE, episodes=10, time_limit=3).alive.shape == (10, 3)
    for given, message in [
        ({"params": {"length": 1.0}}, "'length' is not among"),
        ({"episodes": 0}, "episodes is 0"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"acting": "random"}, "'random'"),
        ({"policy": table(AHEAD, 4)}, "observations of 16 numbers, but CartPole gives 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            trace(**({"policy": LEANING, "simulator": POLE, "episodes": 10} | given))
