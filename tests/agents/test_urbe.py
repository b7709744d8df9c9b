"""URBE and its special cases: every reduction bit for bit, parameters per replicate, the seven-state comparison."""

import numpy as np
import pytest
from scipy import stats

import urbe
from fixtures.agents import steps
from oracles.plans import Problem, slow_plan
from urbe.agents import (
    PSRL,
    UBE,
    UCRL2,
    URBE,
    Centre,
    CertaintyEquivalent,
    Criterion,
    Form,
    Noise,
    Replan,
    Robust,
    Streams,
    Task,
    run,
)
from urbe.envs import FiniteEnv, Phase
from urbe.posteriors.beliefs import Forgetting, Stationary, Window

PHASES = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), 30) for p in (0.1, 0.8, 0.05)))
RIVER = FiniteEnv.of(urbe.library.riverswim(5))
FADING = Forgetting(0.95)


def rewards(kind, env=PHASES, prior=None, replicates=6, seed=0):
    task = Task(urbe.Posterior.before(env.feasible, 1.0, prior), 3 if env is PHASES else 12)
    return run(kind, env, task, episodes=90, seed=seed, replicates=replicates).reward


SAME = {
    "URBE without radius is UBE": (URBE(0.0, 0.3, belief=FADING), UBE(0.3, belief=FADING)),
    "in the count form": (URBE(0.0, 0.1, Form.COUNT, FADING), UBE(0.1, Form.COUNT, FADING)),
    "in the Dirichlet form": (URBE(0.0, 0.2, Form.DIRICHLET, FADING), UBE(0.2, Form.DIRICHLET, FADING)),
    "UBE without scale is certainty-equivalent": (UBE(0.0, belief=FADING), CertaintyEquivalent(FADING)),
    "noise per episode too": (UBE(0.0, belief=FADING, noise=Noise.EPISODE), CertaintyEquivalent(FADING)),
    "URBE without scale is robust": (URBE(0.4, 0.0, belief=FADING), Robust(0.4, FADING)),
    "URBE without noise is robust": (URBE(0.4, 1.0, belief=FADING, noise=Noise.NONE), Robust(0.4, FADING)),
    "robust without radius is certainty-equivalent": (Robust(0.0, FADING), CertaintyEquivalent(FADING)),
    "a drawn centre alone is posterior sampling": (URBE(0.0, 0.0, belief=FADING, centre=Centre.SAMPLE), PSRL(FADING)),
    "a factor of one is stationary": (URBE(0.3, belief=Forgetting(1.0)), URBE(0.3, belief=Stationary())),
    "an endless window is stationary": (URBE(0.3, belief=Window(10**6)), URBE(0.3, belief=Stationary())),
}


@pytest.mark.parametrize("env", [PHASES, RIVER], ids=["seven states", "river"])
@pytest.mark.parametrize("prior", [None, urbe.NormalGamma()], ids=["known rewards", "uncertain rewards"])
@pytest.mark.parametrize("law", SAME)
def test_reductions_bit_for_bit(law, prior, env):
    one, other = (rewards(kind, env, prior) for kind in SAME[law])
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "kind",
    [URBE(0.4, 0.3, belief=FADING), UBE(1.0, belief=FADING), PSRL(FADING), URBE(0.3, 0.3, Form.COUNT, FADING)],
)
def test_what_should_differ_does(kind):
    """The reductions compare runs that depend on what they leave out."""
    assert not np.array_equal(rewards(kind), rewards(CertaintyEquivalent(FADING)))


def test_parameters_per_replicate_are_those_of_separate_runs():
    radius, scale, factor = [0.0, 0.3, 0.6], [0.1, 1.0, 0.0], [1.0, 0.9, 0.98]
    together = rewards(URBE(radius, scale, belief=Forgetting(factor)), replicates=3)
    for b in range(3):
        alone = rewards(URBE(radius[b], scale[b], belief=Forgetting(factor[b])), replicates=np.array([b]))
        assert np.array_equal(together[b : b + 1], alone)


def test_counts_per_step_change_nothing_where_each_state_has_its_step():
    for kind in (URBE, UBE):
        pooled, apart = (rewards(kind(scale=0.3, belief=FADING, per_step=each)) for each in (False, True))
        assert np.array_equal(pooled, apart)
    assert not np.array_equal(rewards(UBE(per_step=False), RIVER), rewards(UBE(per_step=True), RIVER))


@pytest.mark.parametrize("form", [("count", Form.COUNT), ("calibrated", Form.CALIBRATED)], ids=lambda x: x[0])
def test_plans_follow_the_posterior(form):
    """Before each step (or episode) the plan is that of a slow recursion on the counts so far."""
    model, horizon, rng = RIVER.feasible, 4, np.random.default_rng(0)
    task = Task(urbe.Posterior.before(model), horizon)
    agents = {replan: URBE(0.4, 0.5, form[1], replan=replan).start(task, Streams(0, np.arange(1))) for replan in Replan}
    alpha, first = np.ones((1, model.rows.n_entries)), None
    for step in range(8):
        if step % horizon == 0:
            first = alpha.copy()
        for replan, agent in agents.items():
            agent.act(np.zeros(1, dtype=int), np.zeros(1, dtype=int), step % horizon)
            counts = first if replan is Replan.EPISODE else alpha
            problem = Problem(model, counts, model.rows.reward, np.full(model.n_rows, 0.4))
            slow = slow_plan(problem, horizon, form[0], 0.5)
            np.testing.assert_allclose(agent.strategy.q[0], slow.q, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(agent.strategy.u[0], slow.u, rtol=1e-12, atol=1e-14)
        entry = int(rng.integers(model.rows.n_entries))
        row = model.rows.entry_row[entry]
        alpha[0, entry] += 1.0
        seen = steps(model.row_state[row], model.action[row], model.rows.reward[row], model.rows.successor[entry])
        for agent in agents.values():
            agent.observe(seen, step % horizon)
            if step % horizon == horizon - 1:
                agent.end_episode()


def test_uncertain_rewards_add_to_the_variance():
    model = urbe.MDP.from_dense(np.ones((1, 2, 1)), 0.0, discount=1.0)
    prior = urbe.NormalGamma(mean=1.0, weight=2.0, shape=3.0, rate=4.0)
    agent = UBE(3.0).start(Task(urbe.Posterior.before(model, 1.0, prior), 2), Streams(0, np.arange(1)))
    agent.act(np.zeros(1, dtype=int), np.zeros(1, dtype=int), 0)
    assert agent.strategy.q[0].tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert agent.strategy.u[0].tolist() == [[18.0, 18.0], [9.0, 9.0]]  # 9 rate / (weight (shape - 1)), twice


@pytest.mark.parametrize("kind", [UBE(0.0), UCRL2(0.0, criterion=Criterion.EPISODE)])
def test_uncertain_rewards_take_the_place_of_those_of_successors(kind):
    """Where rewards are uncertain, an agent does not read the model's."""
    model = urbe.MDP.from_dense(np.full((2, 2, 2), 0.5), np.arange(8.0).reshape(2, 2, 2), discount=1.0)
    task = Task(urbe.Posterior.before(model, 1.0, urbe.NormalGamma(mean=3.0)), 2)
    agent, who = kind.start(task, Streams(0, np.arange(1))), np.zeros(1, dtype=int)
    agent.observe(steps(0, 1, 5.0, 1), 0)
    agent.end_episode()
    agent.act(who, who, 0)
    assert agent.strategy.q[0, 1].tolist() == [3.0, 4.0, 3.0, 3.0]


def test_a_drawn_centre_gambles_as_often_as_the_posterior_says():
    """One gamble against 0.14: taken when its draw p, less what nature takes, exceeds that; false alarms 1e-5."""
    model = urbe.MDP.from_transitions(
        [0, 0, 1, 1], [0, 1, 0, 0], [2, 1, 2, 3], [1.0, 1.0, 0.5, 0.5], [0.14, 0.0, 0.0, 1.0], discount=1.0,
        n_states=4, terminal=[2, 3],
    )  # fmt: skip
    n, radius = 1500, 0.3
    concentration = np.where(model.rows.entry_row == 2, [1.0, 1.0, 4.0, 2.0], 1.0)
    agent = URBE(radius, 0.0, centre=Centre.SAMPLE).start(
        Task(urbe.Posterior.before(model, concentration), 2), Streams(0, np.arange(n))
    )
    gambles = int(agent.act(np.arange(n), np.zeros(n, dtype=int), 0).sum())
    expected = stats.beta(2.0, 4.0).sf(0.14 + radius / 2.0)
    assert stats.binomtest(gambles, n, expected).pvalue > 1e-5


def test_posterior_sampling_learns_to_swim():
    """Any state may follow any other, as far as it knows; after 300 episodes regret is below 2 % of the value."""
    horizon, known = 40, urbe.library.riverswim(6, discount=1.0)
    p, r = known.to_dense()
    model = urbe.MDP.from_dense(p, r, discount=1.0, initial=known.initial, keep_zeros=True)
    optimal = model.initial @ urbe.solve(model, None, urbe.BackwardInduction(horizon)).value[0]
    task = Task(urbe.Posterior.before(model), horizon)
    reward = run(PSRL(), FiniteEnv.of(model), task, episodes=400, seed=0, replicates=20).reward
    found, error = reward[:, 300:].mean(), reward[:, 300:].std() / np.sqrt(20 * 100)
    assert found > 0.98 * optimal - 3.0 * error
    assert reward[:, 0].mean() < 0.5 * optimal


def test_the_seven_state_comparison():
    """Forgetting, small scale: in both adverse phases URBE loses less than UBE, and both are far above robust."""
    n, replicates = 400, 40
    env = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), n) for p in (0.001, 0.8, 0.1, 0.9)))
    task = Task(urbe.Posterior.before(env.feasible), 3)
    phases = {}
    for radius in (0.0, 0.3):
        kind = URBE(radius, 0.1, Form.COUNT, Forgetting(0.98))
        reward = run(kind, env, task, episodes=4 * n, seed=0, replicates=replicates).reward
        phases[radius] = reward.reshape(replicates, 4, n).mean(axis=2)
    ube, ours = phases[0.0], phases[0.3]
    assert ube.sum(axis=1).mean() == pytest.approx(1.867, abs=0.02)
    assert ours.sum(axis=1).mean() == pytest.approx(1.915, abs=0.02)
    gap = (ours - ube)[:, [0, 2]]
    assert (gap.mean(axis=0) > 3.0 * gap.std(axis=0) / np.sqrt(replicates)).all()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (URBE(radius=2.5), "radius is 2.5, expected a number in"),
        (URBE(radius=[0.1, -0.1]), r"radius\[1\] is -0.1"),
        (UBE(scale=-1.0), "scale is -1"),
        (URBE(scale=[1.0, 2.0, 3.0]), r"scale has shape \(3,\), expected a number or one per replicate \(2,\)"),
        (URBE(scale=float("nan")), "scale is nan, expected a finite number"),
    ],
)
def test_refusals(kind, message):
    with pytest.raises(ValueError, match=message):
        kind.start(Task(urbe.Posterior.before(RIVER.feasible), 3), Streams(0, np.arange(2)))
