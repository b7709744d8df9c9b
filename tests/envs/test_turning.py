"""An environment that turns adversarial: draws before and after, and the minimax value by enumeration."""

import numpy as np
import pytest

import urbe
from urbe.envs import TurningEnv
from urbe.rng import streams

SEVEN = urbe.library.seven_states


def test_rewards_before_and_after_the_turn():
    """The worst kernel is played from the turn on: the gamble pays .8 before and nothing after."""
    world = TurningEnv(SEVEN(0.8), urbe.L1Ball(2.0), True, horizon=3, benign=2)
    policy = np.asarray(urbe.solve(SEVEN(0.8), method=urbe.BackwardInduction(3)).policy)
    env = world.start(streams(0, "environment", np.arange(2000)))
    means = []
    for episode in range(4):
        state, total, who = env.begin(episode), np.zeros(2000), np.arange(2000)
        for step in range(3):
            arrival = env.step(who, state, policy[step][state])
            total[who] += arrival.reward
            going = ~arrival.terminated
            who, state = who[going], arrival.next_state[going]
            if not len(who):
                break
        means.append(total.mean())
    assert means[:2] == pytest.approx([0.8, 0.8], abs=0.05)
    assert means[2:] == [0.0, 0.0]
    assert world.regret(np.array([[0.8, 0.0]]))[0] == pytest.approx([0.14 - 0.8, 0.28 - 0.8])


def test_only_the_pairs_named_turn():
    model = SEVEN(0.8)
    pairs = {(int(s), int(a)): k == 0 for k, (s, a) in enumerate(zip(model.row_state, model.action, strict=True))}
    world = TurningEnv(model, urbe.L1Ball(2.0), pairs, horizon=3, benign=0)
    assert world.turns.tolist() == [True] + [False] * (model.n_rows - 1)
    nature = urbe.PerRow((urbe.Exact(), urbe.L1Ball(2.0)), world.turns.astype(float))
    exact = urbe.solve(model, nature, urbe.BackwardInduction(3)).value[0] @ model.initial
    assert world.minimax_at_start == pytest.approx(exact)
    nobody = TurningEnv(model, urbe.L1Ball(2.0), False, horizon=3, benign=0)
    assert nobody.minimax_at_start == nobody.optimal_at_start


def test_a_run_is_taken_up_bit_for_bit():
    world = TurningEnv(SEVEN(0.8), urbe.L1Ball(1.0), True, horizon=3, benign=1)
    one, two = (world.start(streams(0, "environment", np.arange(3))) for _ in range(2))
    one.begin(0)
    one.step(np.arange(3), np.zeros(3, dtype=int), np.zeros(3, dtype=int))
    two.load(one.state())
    for env in (one, two):
        env.begin(1)
    again = [env.step(np.arange(3), np.zeros(3, dtype=int), np.zeros(3, dtype=int)) for env in (one, two)]
    assert all(np.array_equal(a, b) for a, b in zip(*again, strict=True))


def test_refusals():
    with pytest.raises(ValueError, match="benign is -1"):
        TurningEnv(SEVEN(0.8), urbe.L1Ball(2.0), True, horizon=3, benign=-1)
    with pytest.raises(ValueError, match=r"adversarial has shape \(1,\)"):
        TurningEnv(SEVEN(0.8), urbe.L1Ball(2.0), [True], horizon=3, benign=1)
    with pytest.raises(ValueError, match="no initial distribution"):
        TurningEnv(urbe.MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=1.0), urbe.L1Ball(2.0), True, 3, 1)
    env = TurningEnv(SEVEN(0.8), urbe.L1Ball(2.0), True, horizon=1, benign=1).start(
        streams(0, "environment", np.arange(1))
    )
    state = env.begin(0)
    env.step(np.arange(1), state, np.zeros(1, dtype=int))
    with pytest.raises(ValueError, match="Episodes of this environment have 1 steps"):
        env.step(np.arange(1), state, np.zeros(1, dtype=int))
