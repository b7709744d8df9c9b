"""Finite environments: frequencies, phases, feasible successors, and every error."""

import numpy as np
import pytest
from scipy import stats

from urbe import MDP
from urbe.envs import FiniteEnv, Phase
from urbe.rng import streams


def model(p, *, reward=0.0, n=4, initial=(0.5, 0.25, 0.25, 0.0), **options):
    """Action 0 of each of the first states moves by `p`; the last state is the end."""
    transition = np.zeros((n, 1, n))
    transition[: n - 1, 0] = p
    return MDP.from_dense(transition, reward, discount=0.9, terminal=[n - 1], initial=initial, **options)


def start(env, n=1, seed=0):
    return env.start(streams(seed, "environment", np.arange(n)))


def chi_square(found, p):
    """The p-value of counts; asserts that impossible outcomes did not occur."""
    p = np.asarray(p)
    assert not found[p == 0.0].any()
    return stats.chisquare(found[p > 0.0], p[p > 0.0] * found.sum()).pvalue


@pytest.mark.parametrize(
    "p", [(0.1, 0.2, 0.3, 0.4), (0.0, 0.5, 0.5, 0.0), (0.0, 0.0, 1.0, 0.0), (0.999, 0.0, 0.001, 0.0)]
)
def test_successors_come_with_their_probabilities(p):
    """Chi-square at 1e-5 on 40 000 steps, for four rows: one false alarm in 25 000 runs of the test."""
    replicates = 20
    env = start(FiniteEnv.of(model(p, keep_zeros=True)), replicates)
    who, state, found = np.arange(replicates), np.full(replicates, 1), np.zeros(4)
    for _ in range(2000):
        arrival = env.step(who, state, np.zeros(replicates, dtype=int))
        np.add.at(found, arrival.next_state, 1)
        assert np.array_equal(arrival.terminated, arrival.next_state == 3)
    assert np.count_nonzero(np.array(p)) == 1 or chi_square(found, p) > 1e-5


def test_first_states_come_with_their_probabilities():
    """As above, for initial states."""
    initial = (0.2, 0.0, 0.8, 0.0)
    env = start(FiniteEnv.of(model((0.0, 0.0, 0.0, 1.0), initial=initial)), 20)
    found = np.bincount(np.concatenate([env.begin(0) for _ in range(1000)]), minlength=4)
    assert chi_square(found, initial) > 1e-5


@pytest.mark.parametrize("x", [0.0, 0.5, 1.0 - 2.0**-53])
def test_the_impossible_does_not_happen_at_the_edges_of_chance(x):
    p = (0.0, 0.5, 0.5, 0.0)
    env = start(FiniteEnv.of(model(p, keep_zeros=True, initial=p)))
    for draw in (lambda: env.begin(0)[0], lambda: env.step(*np.zeros((3, 1), dtype=int)).next_state[0]):
        env._draws.need(2).values[:] = x
        assert draw() == (1 if x < 0.5 else 2)


@pytest.mark.parametrize("of_successors", [False, True])
def test_rewards_are_those_of_pairs_or_successors(of_successors):
    reward = np.arange(16.0).reshape(4, 1, 4) if of_successors else np.arange(4.0)[:, None]
    env = start(FiniteEnv.of(model((0.1, 0.2, 0.3, 0.4), reward=reward)), 50)
    state = np.arange(50) % 3
    arrival = env.step(np.arange(50), state, np.zeros(50, dtype=int))
    expected = reward[state, 0, arrival.next_state] if of_successors else reward[state, 0]
    assert np.array_equal(arrival.reward, expected)


def test_phases_follow_one_another_and_the_last_stays():
    sure = [model(np.eye(4)[k]) for k in (1, 2, 0)]
    env = FiniteEnv((Phase(sure[0], 2), Phase(sure[1], 1), Phase(sure[2], 5)))
    assert env.changes == (2, 3)
    running, came = start(env), []
    for episode in range(12):
        running.begin(episode)
        came.append(
            int(running.step(np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.zeros(1, dtype=int)).next_state[0])
        )
    assert came == [1, 1, 2] + [0] * 9
    assert [env.phase_of(episode) for episode in range(5)] == [0, 0, 1, 2, 2]
    running.begin(0)
    assert running.step(*np.zeros((3, 1), dtype=int)).next_state[0] == 1


def test_feasible_is_the_union_with_the_first_model_inside():
    one, two = model((0.5, 0.5, 0.0, 0.0), reward=2.0), model((0.0, 0.5, 0.0, 0.5), reward=7.0)
    union = FiniteEnv((Phase(one, 1), Phase(two, 1))).feasible
    for row in range(3):
        at = slice(union.rows.entry_start[row], union.rows.entry_start[row + 1])
        assert union.rows.successor[at].tolist() == [0, 1, 3]
        assert union.rows.probability[at].tolist() == [0.5, 0.5, 0.0]
    assert np.array_equal(union.rows.reward, [2.0, 2.0, 2.0])
    assert FiniteEnv((Phase(one, 1), Phase(one, 4))).feasible is one


def test_rewards_of_successors_in_a_union_are_the_first_phase_s():
    reward = np.arange(16.0).reshape(4, 1, 4)
    one, two = model((0.5, 0.5, 0.0, 0.0), reward=reward), model((0.0, 0.5, 0.0, 0.5), reward=10.0 * reward + 1.0)
    union = FiniteEnv((Phase(one, 1), Phase(two, 1))).feasible
    assert union.rows.reward[:3].tolist() == [0.0, 1.0, 31.0]


def test_a_replicate_does_not_depend_on_the_others():
    env = FiniteEnv.of(model((0.1, 0.2, 0.3, 0.4)))
    together, alone, other = start(env, 4), env.start(streams(0, "environment", np.array([2]))), start(env, 4, seed=1)
    differed = False
    for episode in range(700):
        first = together.begin(episode)
        assert first[2] == alone.begin(episode)[0]
        differed |= not np.array_equal(first, other.begin(episode))
        arrival = together.step(np.arange(4), first, np.zeros(4, dtype=int))
        assert (
            arrival.next_state[2]
            == alone.step(np.zeros(1, dtype=int), first[2:3], np.zeros(1, dtype=int)).next_state[0]
        )
    assert differed


def test_state_goes_on_bit_for_bit():
    env = FiniteEnv.of(model((0.1, 0.2, 0.3, 0.4)))
    one, other = start(env, 3), start(env, 3)
    for episode in range(300):
        one.begin(episode)
    other.load(one.state())
    assert all(np.array_equal(one.begin(0), other.begin(0)) for _ in range(600))


def no_start():
    return MDP.from_dense(np.full((1, 1, 1), 1.0), 0.0, discount=0.9)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        (lambda: (), "phases is empty"),
        (lambda: (Phase(model((1, 0, 0, 0)), 0),), r"phases\[0\].episodes is 0"),
        (lambda: (Phase(no_start(), 1),), "no initial distribution, so no episode can begin"),
        (
            lambda: (Phase(model((1, 0, 0, 0)), 1), Phase(no_start(), 1)),
            r"phases\[1\]\.model is .*expected the same states and actions",
        ),
        (
            lambda: (Phase(model((1, 0, 0, 0), initial=(0.9, 0.0, 0.0, 0.1)), 1),),
            "begins in state 3 with probability 0.1, but that state is terminal",
        ),
    ],
)
def test_refusals(phases, message):
    with pytest.raises(ValueError, match=message):
        FiniteEnv(phases())


@pytest.mark.parametrize(
    ("state", "action", "message"),
    [(1, 5, r"State 1 has no action 5; it has \[0\]"), (9, 0, "There is no state 9"), (-1, 0, "There is no state -1")],
)
def test_what_does_not_exist_cannot_be_done(state, action, message):
    env = start(FiniteEnv.of(model((1, 0, 0, 0))), 2)
    with pytest.raises(KeyError, match=message):
        env.step(np.arange(2), np.array([0, state]), np.array([0, action]))
