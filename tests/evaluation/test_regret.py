"""Gaps against plain dynamic programming, and regret against shortfalls."""

import numpy as np

import urbe
from urbe.agents import UBE, Minimax, Task, run
from urbe.envs.finite import FiniteEnv
from urbe.evaluation.regret import optimality_gaps
from urbe.posteriors.dirichlet import Posterior


def test_gaps_are_those_of_plain_dynamic_programming():
    model = urbe.library.machine_replacement(6, discount=0.9)
    transition, reward = model.to_dense()
    v = np.zeros(model.n_states)
    for h in range(4, -1, -1):
        q = reward + 0.9 * transition @ v
        v = q.max(axis=1)
        np.testing.assert_allclose(optimality_gaps(model, 5)[h], v[:, None] - q, atol=1e-12)


def test_the_best_policy_has_no_regret_and_missing_actions_infinite_gaps():
    model = urbe.library.seven_states(0.8)
    gaps = optimality_gaps(model, 3)
    assert np.isinf(gaps[0, 1, 1:]).all()
    record = run(
        Minimax(model, None), FiniteEnv.of(model), Task(Posterior.before(model), 3), episodes=20, seed=0, gaps=gaps
    )
    np.testing.assert_allclose(record.regret, 0.0, atol=1e-12)


def test_regret_is_what_is_earned_less_in_expectation():
    model = urbe.library.riverswim(6, discount=1.0)
    gaps, task, env = optimality_gaps(model, 20), Task(Posterior.before(model), 20), FiniteEnv.of(model)
    record = run(UBE(3.0), env, task, episodes=50, seed=0, replicates=200, gaps=gaps)
    best = float(np.asarray(urbe.solve(model, method=urbe.BackwardInduction(20)).value)[0, 0])
    missed = (best - record.reward).mean(axis=1)
    difference = missed - record.regret.mean(axis=1)
    # the mean over 200 independent replicates is within five standard errors of 0 but in 6 of ten million runs
    assert abs(difference.mean()) < 5.0 * difference.std() / np.sqrt(200)
    assert record.regret.mean() > 0.05
