"""Compiled plans with KL and chi-square balls equal the general plan; replicates are independent, bit for bit."""

import numpy as np
import pytest

import urbe
from oracles.plans import random_model, random_problem
from urbe import Chi2Ball, KLBall, L1Ball
from urbe.agents import PSRL, UBE, URBE, Robust, Single, Streams, Task, run
from urbe.agents.ball_plan import balls_of, plan_with_balls
from urbe.agents.set_plan import CALIBRATED, COUNT, DIRICHLET, LocalUncertainty, SetPlan
from urbe.agents.urbe_family import chosen_set
from urbe.envs import FiniteEnv, Phase
from urbe.posteriors.beliefs import Forgetting
from urbe.runs.checkpoint import load_agent, save_agent

BALLS = {"KL": KLBall, "chi-square": Chi2Ball}
KINDS = {"sparse": {}, "dense": {"dense": True}, "rewards of successors": {"rewards_successors": True}}
FORMS = {"count": COUNT, "dirichlet": DIRICHLET, "calibrated": CALIBRATED, "none": None}
EVERY = ("q", "u", "v", "w", "share")
REPLICATES, HORIZON = 4, 5

SEVEN = FiniteEnv(tuple(Phase(urbe.library.seven_states(p), 30) for p in (0.8, 0.05)))
RIVER = FiniteEnv.of(urbe.library.riverswim(5))


def task_of(env):
    return Task(urbe.Posterior.before(env.feasible), 8 if env is RIVER else 3)


def both_plans(model, sets, alpha, reward, local, horizon=HORIZON):
    """The general plan, the compiled one, and the replicates that the compiled one leaves out."""
    which = np.arange(len(sets))
    total = np.add.reduceat(alpha, model.rows.entry_start[:-1], axis=-1)
    general, compiled = (SetPlan(model, horizon, len(sets)) for _ in range(2))
    compiled.share[:] = np.nan  # everything is to be written
    general.update(which, alpha, total, reward, lambda b: sets[b], local=local)
    left = plan_with_balls(compiled, balls_of(sets, model), which, alpha, total, reward, local)
    return general, compiled, left


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", [1, HORIZON])
def test_it_is_the_general_plan(ball, kind, form, layers):
    rng = np.random.default_rng([layers, len(kind), len(form)])
    for discount in (0.9, 1.0):
        model = random_model(rng, **KINDS[kind]).with_discount(discount)
        problems = [random_problem(rng, model, layers) for _ in range(REPLICATES)]
        alpha = np.stack([problem.alpha for problem in problems]) + 1e-3
        reward = rng.normal(size=(REPLICATES, model.n_rows))
        sets = [BALLS[ball](problem.radius) for problem in problems]
        noise = rng.random(reward.shape) if layers == 1 else None
        local = None if FORMS[form] is None else LocalUncertainty(FORMS[form], rng.random(REPLICATES), noise)
        general, compiled, left = both_plans(model, sets, alpha, reward, local)
        assert len(left) == 0
        for name in EVERY:
            # the compiler reorders the sums of a row in either program as it likes
            np.testing.assert_allclose(getattr(compiled, name), getattr(general, name), 1e-9, 1e-11, err_msg=name)


@pytest.mark.parametrize("ball", BALLS)
def test_a_plan_has_the_same_bits_in_every_company(ball):
    rng = np.random.default_rng(11)
    model = random_model(rng, dense=True).with_discount(0.9)
    alpha = rng.gamma(0.5, 4.0, (REPLICATES, 1, model.rows.n_entries)) + 1e-3
    total = np.add.reduceat(alpha, model.rows.entry_start[:-1], axis=-1)
    reward, radius = rng.normal(size=(REPLICATES, model.n_rows)), rng.random(REPLICATES)
    balls = balls_of([BALLS[ball](each) for each in radius], model)
    local = LocalUncertainty(CALIBRATED, np.ones(REPLICATES))
    plans = []
    for companies in ([[0, 1, 2, 3]], [[3, 0], [2, 1]], [[2], [0], [3], [1]]):
        plans.append(SetPlan(model, HORIZON, REPLICATES))
        for company in companies:
            assert len(plan_with_balls(plans[-1], balls, np.array(company), alpha, total, reward, local)) == 0
    for name in EVERY:
        assert len({getattr(plan, name).tobytes() for plan in plans}) == 1, name


@pytest.mark.parametrize("ball", BALLS)
def test_what_needs_care_is_left_to_the_general_plan(ball):
    """Successors that cannot happen, and values that a sweep brings to another size first."""
    rng = np.random.default_rng(7)
    model = random_model(rng, dense=True).with_discount(0.9)
    alpha = np.stack([random_problem(rng, model).alpha for _ in range(3)]) + 1e-3
    alpha[1, 0, 1] = 0.0
    reward = rng.normal(size=(3, model.n_rows))
    reward[2] *= 1e-40
    general, compiled, left = both_plans(
        model, [BALLS[ball](0.1)] * 3, alpha, reward, LocalUncertainty(CALIBRATED, np.ones(3))
    )
    assert left.tolist() == [1, 2]
    np.testing.assert_allclose(compiled.q[0], general.q[0], rtol=1e-11)


def test_only_balls_of_one_kind_are_compiled():
    model = urbe.library.riverswim(3)
    assert balls_of([KLBall(0.1), Chi2Ball(0.1)], model) is None
    assert balls_of([L1Ball(0.1)], model) is None
    assert balls_of([KLBall(0.1), KLBall(0.2)], model).radius[:, 0].tolist() == [0.1, 0.2]


@pytest.mark.parametrize("env", [SEVEN, RIVER], ids=["seven states", "river"])
@pytest.mark.parametrize("family", [*BALLS.values(), lambda radius: urbe.LInfBall(radius)], ids=[*BALLS, "L-infinity"])
def test_replicates_do_not_depend_on_who_runs_beside_them(env, family):
    """Each of five with a radius and a scale of its own: all together, in two other companies, and alone."""
    radius, scale = np.array([0.0, 0.01, 0.05, 0.2, 0.05]), np.array([0.5, 1.0, 0.3, 0.5, 0.0])
    options = {"episodes": 40 if env is SEVEN else 8, "seed": 3}

    def earned(company):
        kind = URBE(radius[company], scale[company], belief=Forgetting(0.95), set=family)
        return run(kind, env, task_of(env), replicates=company, **options).reward

    together = earned(np.arange(5))
    assert len(np.unique(together, axis=0)) > 1
    for company in ([4, 0], [1, 3, 2], *([k] for k in range(5))):
        assert np.array_equal(earned(np.array(company)), together[company])


@pytest.mark.parametrize("ball", BALLS)
def test_a_radius_of_each_replicate_is_a_set_of_each(ball):
    options = {"episodes": 30, "seed": 1, "replicates": np.arange(2)}
    radii = np.array([0.02, 0.3])
    for kind in (URBE, Robust):
        both = run(kind(radius=radii, set=BALLS[ball]), SEVEN, task_of(SEVEN), **options).reward
        for k, radius in enumerate(radii):
            one = run(kind(set=BALLS[ball](radius)), SEVEN, task_of(SEVEN), **options).reward
            assert np.array_equal(both[k], one[k])


@pytest.mark.parametrize("kind", [UBE, PSRL], ids=lambda kind: kind.__name__)
def test_agents_without_a_radius_take_sets_alone(kind):
    with pytest.raises(
        TypeError, match=r"set is the class KLBall, expected an ambiguity set .* write KLBall\(\.\.\.\)"
    ):
        run(kind(set=KLBall), SEVEN, task_of(SEVEN), episodes=1, seed=0)


def test_families_of_sets_are_checked_before_the_first_episode():
    streams = Streams(0, np.arange(2))
    with pytest.raises(ValueError, match=r"radius has shape \(3,\), expected a number or one per replicate \(2,\)"):
        URBE(np.ones(3), set=KLBall).start(task_of(SEVEN), streams)
    with pytest.raises(ValueError, match=r"radius.* is -1"):
        URBE(-1.0, set=KLBall).start(task_of(SEVEN), streams)
    with pytest.raises(TypeError, match=r"set\(0\.3\) is 0\.6, expected an ambiguity set"):
        URBE(set=lambda radius: 2.0 * radius).start(task_of(SEVEN), streams)
    assert len(set(map(id, chosen_set(np.array([0.1, 0.2, 0.1]), KLBall, 3)))) == 2


def test_saved_in_the_middle_it_goes_on_bit_for_bit(tmp_path):
    kind, task = URBE(0.05, set=KLBall), task_of(SEVEN)
    first, second = (Single(kind, task, seed=2) for _ in range(2))
    first.act(0)
    first.observe(0, 0, 0.14, 1, terminated=True)
    first.end_episode()
    first.act(0)
    save_agent(tmp_path / "agent.npz", first)
    load_agent(tmp_path / "agent.npz", second)
    for name in ("q", "u"):
        assert np.array_equal(getattr(first.agent.strategy, name), getattr(second.agent.strategy, name))
    with pytest.raises(ValueError, match="set"):
        load_agent(tmp_path / "agent.npz", Single(URBE(0.05, set=Chi2Ball), task, seed=2))
