"""Oracle agents against the solver, and as an upper bound for learners."""

import numpy as np
import pytest

import urbe
from urbe.agents import Minimax, Oracle, Run, Streams, Task, run
from urbe.envs import FiniteEnv, Phase

CHANCES = (0.001, 0.8, 0.1, 0.9)
ENV = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), 100) for p in CHANCES))
TASK = Task(urbe.Posterior.before(ENV.feasible), 3)


def phases(kind, replicates=20):
    reward = run(kind, ENV, TASK, episodes=400, seed=0, replicates=replicates).reward
    return reward.reshape(replicates, 4, 100).mean(axis=(0, 2))


def test_the_oracle_gambles_when_it_pays():
    """Within five standard errors of the best mean reward of every phase: one false alarm in 10^6."""
    best = np.maximum(CHANCES, 0.14)
    error = np.where(best > 0.14, np.sqrt(best * (1.0 - best) / 2000.0), 1e-12)
    assert (np.abs(phases(Oracle(ENV)) - best) <= 5.0 * error).all()


def test_the_robust_policy_never_gambles():
    found = phases(Minimax(ENV.feasible, urbe.L1Ball(2.0)), replicates=2)
    np.testing.assert_allclose(found, 0.14)


def test_without_nature_it_is_the_best_policy_of_the_model():
    """It believes in 0.8, and gambles at any odds."""
    found = phases(Minimax(urbe.library.seven_states(0.8), None))
    assert found[0] < 0.01
    assert found[1] == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    "nature", [urbe.L1Ball(0.3), urbe.KLBall(0.1), urbe.Contamination(0.2), urbe.Chi2Ball(0.1), urbe.LInfBall(0.1)]
)
def test_any_set_will_do(nature):
    """Actions are those of backward induction, at every step."""
    env = FiniteEnv.of(urbe.library.riverswim(5))
    model, horizon = env.feasible, 6
    agent = Minimax(model, nature).start(Task(urbe.Posterior.before(model), horizon), Streams(0, np.arange(1)))
    q = urbe.solve(model, nature, urbe.BackwardInduction(horizon)).q
    for step in range(horizon):
        for state in range(5):
            action = agent.act(np.zeros(1, dtype=int), np.array([state]), step)[0]
            assert q[step, state, action] == q[step, state].max()


def test_a_model_of_another_task_is_refused():
    with pytest.raises(ValueError, match=r"model is MDP.*expected the same states and actions as the task"):
        Minimax(urbe.library.riverswim(5), None).start(TASK, Streams(0, np.arange(1)))


def test_the_oracle_goes_on_in_the_right_phase():
    one, other = (Run(Oracle(ENV), ENV, TASK, episodes=400, seed=0, replicates=np.arange(2)) for _ in range(2))
    for _ in range(150):
        one.episode()
    other.load(one.state())
    while not other.done:
        one.episode()
        other.episode()
    assert np.array_equal(one.record.reward, other.record.reward)
