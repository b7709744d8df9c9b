"""Plans and agents with any ambiguity set: the general recursion against compiled ones, solvers and variances."""

import numpy as np
import pytest
from scipy.optimize import linprog

import urbe
from oracles.plans import random_model, random_problem
from urbe import Chi2Ball, KLBall, L1Ball, LikelihoodRegion, LInfBall, SRectangular
from urbe.agents import (
    OLRM,
    PSRL,
    UBE,
    UCRL2,
    URBE,
    Criterion,
    Minimax,
    Oracle,
    QLearning,
    Robust,
    Single,
    Streams,
    Task,
    run,
)
from urbe.agents.l1_plan import L1Plan
from urbe.agents.set_plan import CALIBRATED, COUNT, DIRICHLET, LocalUncertainty, SetPlan, centred
from urbe.ambiguity.optimistic import helping
from urbe.envs import FiniteEnv, Phase
from urbe.posteriors.beliefs import Visit
from urbe.runs.checkpoint import load_agent, save_agent
from urbe.testing import check_agent

FORMS = {"count": COUNT, "dirichlet": DIRICHLET, "calibrated": CALIBRATED}
KINDS = {"sparse": {}, "dense": {"dense": True}, "rewards of successors": {"rewards_successors": True}}
SETS = {
    "L1": L1Ball(0.3),
    "KL": KLBall(0.05),
    "chi-square": Chi2Ball(0.05),
    "L-infinity": LInfBall(0.1),
    "shared L1": SRectangular(L1Ball(0.5)),
    "shared KL": SRectangular(KLBall(0.1)),
}
SEVEN = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), 20) for p in (0.8, 0.05)))
RIVER = FiniteEnv.of(urbe.library.riverswim(5))
ONE = np.zeros(1, dtype=int)


def task_of(env):
    return Task(urbe.Posterior.before(env.feasible), 12 if env is RIVER else 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", [1, 4])
def test_with_l1_balls_it_is_the_compiled_plan(kind, form, layers):
    rng = np.random.default_rng([layers, len(kind)])
    model, horizon = random_model(rng, **KINDS[kind]).with_discount(0.9), 4
    problem = random_problem(rng, model, layers)._replace(reward=rng.normal(size=model.n_rows))  # without ties
    arrays = problem.alpha[None], problem.total[None], problem.reward[None]
    local = LocalUncertainty(FORMS[form], np.array([0.7]), rng.random((1, model.n_rows)))
    fast, general = L1Plan(model, horizon, 1), SetPlan(model, horizon, 1)
    fast.update(ONE, *arrays, problem.radius[None], np.ones((1, model.n_rows), dtype=bool), local=local)
    general.update(ONE, *arrays, lambda _: L1Ball(problem.radius), local=local)
    for name in ("q", "v"):
        np.testing.assert_allclose(getattr(general, name), getattr(fast, name), rtol=1e-11, atol=1e-11, err_msg=name)
    same = np.isclose(general.u, fast.u, rtol=1e-9, atol=1e-11)
    assert same[:, -1].all()  # nothing is carried from after the last step
    # where successors tie, nature has several answers that carry different variances
    assert same.all() or kind == "rewards of successors"


@pytest.mark.parametrize("name", SETS)
def test_values_and_variances_are_those_of_value_variance(name):
    posterior = urbe.Posterior.before(urbe.library.garnet(6, 2, 3, seed=4, discount=0.9), concentration=5.0)
    model, horizon = posterior.mean(), 4
    plan = SetPlan(model, horizon, 1)
    arrays = posterior.concentration[None, None], posterior.total[None, None], model.rows.reward[None]
    plan.update(ONE, *arrays, lambda _: SETS[name], local=LocalUncertainty(CALIBRATED, np.ones(1)))
    expected = urbe.value_variance(posterior, SETS[name], horizon=horizon)
    for ours, theirs in (("q", "q"), ("u", "variance"), ("v", "value"), ("w", "value_variance")):
        np.testing.assert_allclose(getattr(plan, ours)[0], getattr(expected, theirs), rtol=1e-9, atol=1e-12)
    solved = urbe.solve(model, SETS[name], urbe.BackwardInduction(horizon))
    assert plan.v[0] == pytest.approx(solved.value, abs=1e-12)


EVERY = [URBE(set=each) for each in SETS.values()] + [kind(set=KLBall(0.05)) for kind in (UBE, PSRL, Robust)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: f"{type(kind).__name__} {type(kind.set).__name__}")
def test_agents_keep_their_contract_with_every_set(kind):
    check_agent(kind, learns=(), random=not isinstance(kind, Robust), episodes=30, replicates=3)


@pytest.mark.parametrize("env", [FiniteEnv.of(urbe.library.seven_states(0.8)), RIVER], ids=["seven states", "river"])
@pytest.mark.parametrize("name", ["KL", "chi-square"])
def test_urbe_learns_with_divergences(env, name):
    """In the last third, half the way from chance to what one who knows the model gets."""
    options = {"episodes": 60, "seed": 1, "replicates": 8}
    kinds = URBE(set=SETS[name]), QLearning(exploration=1.0), Oracle(env)
    found, chance, best = (run(kind, env, task_of(env), **options).reward[:, 40:].mean() for kind in kinds)
    assert found >= chance + 0.5 * (best - chance)


def test_l1_balls_by_either_name_act_alike():
    one, other = (run(k, SEVEN, task_of(SEVEN), episodes=40, seed=0) for k in (URBE(0.3), URBE(set=L1Ball(0.3))))
    assert np.array_equal(one.reward, other.reward)


def ball_of(seen):
    wide = np.sqrt(14.0 * seen.n_states * np.log(2.0 * seen.n_actions * seen.time / seen.delta))
    return L1Ball(np.minimum(wide / np.sqrt(np.maximum(seen.visits, 1.0)), 2.0))


@pytest.mark.parametrize("criterion", Criterion)
def test_ucrl2_takes_its_own_balls_as_a_set(criterion):
    """The same plans from the same visits."""
    task, rng = Task(urbe.Posterior.before(RIVER.feasible), 12), np.random.default_rng(2)
    entries, plans = rng.integers(RIVER.feasible.rows.n_entries, size=300), []
    for kind in (UCRL2(criterion=criterion), UCRL2(criterion=criterion, set=ball_of)):
        agent = kind.start(task, Streams(0, ONE))
        for entry in entries:
            visit = Visit(ONE, RIVER.feasible.rows.entry_row[[entry]], np.array([entry]), ONE)
            agent.known.transitions.observe(visit)
            agent.strategy.observe(visit)
        agent.strategy.plan(agent.known, ONE)
        plans.append((agent.strategy.q.copy(), agent.strategy.gain.copy()))
    (q, gain), (other_q, other_gain) = plans
    assert other_q == pytest.approx(q, abs=1e-11)
    assert other_gain == pytest.approx(gain, abs=1e-12)


def plan_of(kind, env):
    """Values of rows of the first plan."""
    agent = kind.start(task_of(env), Streams(0, ONE))
    agent.strategy.plan(agent.known, ONE)
    return agent.strategy.q[0, 0].copy()


@pytest.mark.parametrize("criterion", Criterion)
@pytest.mark.parametrize("name", [name for name in SETS if name.startswith("shared")])
def test_the_best_model_of_a_shared_budget_spends_it_on_one_action(name, criterion):
    one, other = SETS[name], type(SETS[name].ball)(SETS[name].ball.radius)
    plans = [plan_of(UCRL2(criterion=criterion, set=each), RIVER) for each in (one, other)]
    assert np.array_equal(*plans)


def test_a_shared_budget_helps_as_much_as_the_linear_program_over_its_kernels():
    """max_a max_q q_a . z with sum_a ||q_a - p_a||_1 <= 0.5; variables q and the deviations of two actions."""
    rng = np.random.default_rng(5)
    model = urbe.MDP.from_dense(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), discount=0.9)
    v = rng.normal(size=3)
    found = helping("set", SRectangular(L1Ball(0.5)), model).operator(model).improve(v)
    for s in range(3):
        p, best = model.to_dense()[0][s].ravel(), -np.inf
        for a in range(2):
            gain = np.zeros(12)
            gain[3 * a : 3 * a + 3] = v
            both = np.hstack([np.vstack([np.eye(6), -np.eye(6)]), -np.vstack([np.eye(6), np.eye(6)])])
            rows = np.vstack([both, np.repeat([0.0, 1.0], 6)])
            sums = np.hstack([np.kron(np.eye(2), np.ones(3)), np.zeros((2, 6))])
            lp = linprog(-gain, rows, np.concatenate([p, -p, [0.5]]), sums, np.ones(2))
            best = max(best, model.rows.row_reward[model.row_of(s, a)] - 0.9 * lp.fun)
        assert found.value[s] == pytest.approx(best, abs=1e-8)


def test_ucrl2_takes_factors_and_sets_that_help_already():
    model = RIVER.feasible
    dense = model.rows.matrix().toarray()
    shared = urbe.FactorSet(np.eye(model.n_rows), dense, L1Ball(0.3))
    for kind in (shared, urbe.FactorSet(np.eye(model.n_rows), dense, urbe.Optimistic(L1Ball(0.3)))):
        known = UCRL2(set=kind, criterion=Criterion.EPISODE), UCRL2(set=L1Ball(0.3), criterion=Criterion.EPISODE)
        found, plain = (each.start(Task(urbe.Posterior.before(model), 1), Streams(0, ONE)) for each in known)
        for agent in (found, plain):
            agent.strategy.plan(agent.known, ONE)
        assert found.strategy.q.shape == plain.strategy.q.shape  # one step: the reward of each pair
        assert found.strategy.q == pytest.approx(plain.strategy.q)
        best = helping("set", kind, model).operator(model).improve(np.arange(5.0)).q
        assert best == pytest.approx(urbe.Optimistic(L1Ball(0.3)).operator(model).improve(np.arange(5.0)).q)
    helped = UCRL2(set=urbe.Optimistic(KLBall(0.1))), UCRL2(set=KLBall(0.1))
    assert np.array_equal(*(plan_of(kind, RIVER) for kind in helped))


def test_regions_that_shrink_with_visits_learn_faster_than_ucrl2():
    """KL-UCRL: the region of a pair is of the size of what a likelihood ratio leaves open."""
    task = Task(urbe.Posterior.before(RIVER.feasible), 20)
    region = UCRL2(set=lambda seen: LikelihoodRegion(np.log(seen.time + 1.0) / np.maximum(seen.visits, 1.0)))
    found, plain = (run(k, RIVER, task, episodes=100, seed=3, replicates=4).reward.sum() for k in (region, UCRL2()))
    assert found >= plain


def test_olrm_takes_its_own_balls_as_sets():
    options = {"bonus_scale": 0.05, "check_scale": 0.01}
    kinds = OLRM(radii=(0.5, 2.0), **options), OLRM(sets=(L1Ball(0.5), L1Ball(2.0)), **options)
    one, other = (run(kind, SEVEN, task_of(SEVEN), episodes=60, seed=4, replicates=3).reward for kind in kinds)
    assert np.array_equal(one, other)
    check_agent(OLRM(sets=(KLBall(0.1), KLBall(1.0)), **options))


def test_a_plan_that_randomises_is_followed_in_its_shares():
    """Two mirrored actions: nature can ruin one of them, not both."""
    mirrored = [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], np.eye(3)[[1, 1]], np.eye(3)[[2, 2]]]
    reward = [[[0, 1, 0], [0, 0, 1]], np.zeros((2, 3)), np.zeros((2, 3))]
    mdp = urbe.MDP.from_dense(mirrored, reward, discount=1.0, terminal=[1, 2], initial=[1.0, 0.0, 0.0])
    task = Task(urbe.Posterior.before(mdp, 1e6), 1)
    shared = SRectangular(L1Ball(1.0))
    for kind in (Robust(set=shared), Minimax(mdp, shared)):
        agent = kind.start(task, Streams(0, np.arange(2000)))
        taken = agent.act(np.arange(2000), np.zeros(2000, dtype=int), 0)
        assert abs(taken.mean() - 0.5) < 0.05  # four standard deviations are 0.045


def test_what_does_not_fit_is_refused_before_the_first_episode():
    task = task_of(SEVEN)
    with pytest.raises(ValueError, match=r"radius is 0\.1 and set is KLBall.*: give one"):
        run(URBE(0.1, set=KLBall(0.1)), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(TypeError, match=r"set is 0\.3, expected an ambiguity set such as L1Ball\(0\.3\)"):
        run(URBE(set=0.3), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(ValueError, match="radius"):
        run(URBE(set=L1Ball(3.0)), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(ValueError, match=r"set is a TwiceRegularised.*: it does not define nature's choices in"):
        run(UCRL2(set=urbe.TwiceRegularised(0.01)), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(TypeError, match=r"sets\[0\]"):
        run(OLRM(sets=(0.3,)), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(ValueError, match=r"sets\[1\] is SRectangular.*, which is not solved row by row.*flagged"):
        run(OLRM(sets=(KLBall(0.1), SRectangular(L1Ball(0.3)))), SEVEN, task, episodes=1, seed=0)
    with pytest.raises(ValueError, match="radius"):
        run(OLRM(sets=(L1Ball(0.3), L1Ball(3.0))), SEVEN, task, episodes=1, seed=0)


def test_files_of_agents_that_knew_no_sets_still_load(tmp_path, monkeypatch):
    """What a parameter is that the file does not know of: None, or another agent."""
    from urbe.runs import checkpoint

    task = task_of(SEVEN)
    every = checkpoint._all_parts
    with monkeypatch.context() as patch:
        patch.setattr(
            checkpoint, "_all_parts", lambda agent: {k: v for k, v in every(agent).items() if k != "agent.set"}
        )
        save_agent(tmp_path / "old.npz", Single(URBE(0.3), task, seed=0))
    load_agent(tmp_path / "old.npz", Single(URBE(0.3), task, seed=0))
    with pytest.raises(ValueError, match=r"agent\.set"):
        load_agent(tmp_path / "old.npz", Single(URBE(0.3, set=L1Ball(0.3)), task, seed=0))


def test_centred_models_have_the_means_of_the_belief():
    model = urbe.library.riverswim(4)
    alpha = np.arange(1.0, model.rows.n_entries + 1.0)
    total = model.rows.row_sums(alpha)
    found = centred(model, alpha, total, np.full(model.n_rows, 7.0))
    assert found.rows.probability == pytest.approx(alpha / total[model.rows.entry_row])
    assert (found.rows.reward == 7.0).all()
