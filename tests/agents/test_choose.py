"""Action selection: the noise has the stated distribution, ties are broken uniformly, episode noise is kept."""

import numpy as np
import pytest
from scipy import stats

import urbe
from urbe.agents import Noise, Streams
from urbe.agents.choose import Chooser


def bandit(arms=3, states=2):
    return urbe.MDP.from_dense(np.tile(np.eye(states), (arms, 1, 1)).swapaxes(0, 1), 0.0, discount=1.0)


def chooser(noise, replicates=1, model=None, seed=0):
    return Chooser(bandit() if model is None else model, noise, Streams(seed, np.arange(replicates)))


def values(rows, replicates=1, layers=1):
    return np.broadcast_to(np.asarray(rows, dtype=float), (replicates, layers, len(rows))).copy()


ZERO = np.zeros(1, dtype=int)


@pytest.mark.parametrize("noise", [Noise.STEP, Noise.EPISODE])
def test_noise_is_normal_of_the_planned_size(noise):
    """Two arms, apart by x: the upper wins with Phi(x / sqrt(u1 + u2)); 20 000 tries, false alarms 1e-5."""
    choose, n = chooser(noise, 100, bandit(arms=2, states=1)), 20_000
    q, u, who = values([0.0, 0.7], 100), values([0.5, 0.25], 100), np.arange(100)
    wins = 0
    for _ in range(n // 100):
        choose.begin_episode(who)
        wins += choose(who, np.zeros(100, dtype=int), q, u, 0).sum()
    expected = stats.norm.cdf(0.7 / np.sqrt(0.75))
    assert stats.binomtest(int(wins), n, expected).pvalue > 1e-5


def test_without_noise_the_best_is_taken():
    choose = chooser(Noise.NONE, 3)
    rows = choose(np.arange(3), np.array([0, 1, 0]), values([0, 2, 1, 5, 3, 4], 3), values([9.0] * 6, 3), 0)
    assert rows.tolist() == [1, 3, 1]


@pytest.mark.parametrize("noise", list(Noise))
def test_ties_fall_fairly(noise):
    """Three equal arms and a worse one: chi-square at 1e-5 each."""
    choose, who = chooser(noise, 50, bandit(arms=4, states=1)), np.arange(50)
    q, nothing, found = values([1.0, 0.0, 1.0, 1.0], 50), values([0.0] * 4, 50), np.zeros(4)
    for _ in range(200):
        np.add.at(found, choose(who, np.zeros(50, dtype=int), q, nothing, 0), 1)
    assert found[1] == 0
    assert stats.chisquare(found[[0, 2, 3]]).pvalue > 1e-5


def test_noise_of_an_episode_stays_within_it():
    model = bandit(arms=5, states=1)
    choose, q, u = chooser(Noise.EPISODE, 1, model), values([0.0] * 5), values([1.0] * 5)
    seen = []
    for _ in range(40):
        choose.begin_episode(ZERO)
        picks = {int(choose(ZERO, ZERO, q, u, step)[0]) for step in range(10)}
        assert len(picks) == 1
        seen.append(picks.pop())
    assert len(set(seen)) == 5
    each_step = chooser(Noise.STEP, 1, model)
    assert len({int(each_step(ZERO, ZERO, q, u, step)[0]) for step in range(40)}) == 5


def test_steps_beyond_the_last_layer_use_it():
    choose = chooser(Noise.NONE)
    q = np.stack([values([1, 0, 0, 0, 0, 0])[0, 0], values([0, 0, 1, 0, 0, 0])[0, 0]])[None]
    picks = [int(choose(ZERO, ZERO, q, np.zeros_like(q), step)[0]) for step in (0, 1, 2, 50)]
    assert picks == [0, 2, 2, 2]


@pytest.mark.parametrize("noise", list(Noise))
def test_a_replicate_chooses_the_same_whoever_is_beside_it(noise):
    together, q, u = chooser(noise, 4), values([0.0] * 6, 4), values([1.0] * 6, 4)
    alone, other = Chooser(bandit(), noise, Streams(0, np.array([2]))), chooser(noise, 4, seed=1)
    rng, differed = np.random.default_rng(0), False
    for k in range(600):
        who = np.array([0, 2, 3]) if k % 3 else np.array([2])
        state = rng.integers(2, size=len(who))
        if k % 5 == 0:
            for each, replicates in ((together, who), (other, who), (alone, ZERO)):
                each.begin_episode(replicates)
        rows = together(who, state, q, u, k % 5)
        at = list(who).index(2)
        assert rows[at] == alone(ZERO, state[at : at + 1], q[:1], u[:1], k % 5)[0]
        differed |= not np.array_equal(rows, other(who, state, q, u, k % 5))
    assert differed


@pytest.mark.parametrize("noise", list(Noise))
def test_state_goes_on(noise):
    one, other, q, u = chooser(noise), chooser(noise), values([0.0] * 6), values([1.0] * 6)
    for _ in range(100):
        one.begin_episode(ZERO)
        one(ZERO, ZERO, q, u, 0)
    other.load(one.state())
    assert [int(one(ZERO, ZERO, q, u, 0)[0]) for _ in range(600)] == [
        int(other(ZERO, ZERO, q, u, 0)[0]) for _ in range(600)
    ]
