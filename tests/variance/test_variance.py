"""The variance recursion: pen and paper, plain loops, linear algebra, reductions and laws."""

import numpy as np
import pytest
from scipy.optimize import linprog

import urbe
from oracles.layered import layered, posterior_of, sets_around
from urbe import (
    BackwardInduction,
    Bound,
    Calibrated,
    Count,
    DirichletForm,
    L1Ball,
    MonteCarlo,
    Posterior,
    value_variance,
)
from urbe.posteriors import NormalGamma
from urbe.variance.recursion import check_acyclic, second_moments

SETS = list(sets_around(layered(np.random.default_rng(0))))


def chain(length, discount):
    """A deterministic chain of one action: nothing to learn about it."""
    n = length + 1
    transition = np.zeros((n, 1, n))
    transition[np.arange(length), 0, np.arange(1, n)] = 1.0
    transition[-1, 0, -1] = 1.0
    return urbe.MDP.from_dense(transition, np.ones((n, 1)), discount=discount, terminal=[n - 1])


def cyclic(seed=0, discount=0.9, terminal=()):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(5, 0.5), size=(5, 2))
    return urbe.MDP.from_dense(transition, rng.normal(size=(5, 2)), discount=discount, terminal=terminal)


def plain_l1_recursion(posterior, radius, horizon, nu):
    """Values and variances by linear programs and dictionaries; nu(row) is constant over steps."""
    model = posterior.model
    p = posterior.probability
    v, u = np.zeros(model.n_states), np.zeros(model.n_states)
    for _ in range(horizon):
        q, w = np.zeros(model.n_rows), np.zeros(model.n_rows)
        for row in range(model.n_rows):
            a, b = model.rows.entry_start[row : row + 2]
            to, n = model.rows.successor[a:b], b - a
            eye = np.eye(n)
            done = linprog(
                np.r_[v[to], np.zeros(n)],
                np.block([[eye, -eye], [-eye, -eye], [np.zeros(n), np.ones(n)]]),
                np.r_[p[a:b], -p[a:b], radius],
                np.r_[np.ones(n), np.zeros(n)][None],
                [1.0],
            )
            x = done.x[:n]
            q[row] = model.rows.reward[row] + model.discount * x @ v[to]
            w[row] = nu[row] + model.discount**2 * x @ u[to]
        v, u = np.zeros(model.n_states), np.zeros(model.n_states)
        for s in np.flatnonzero(~model.terminal):
            best = max(range(model.row_start[s], model.row_start[s + 1]), key=lambda row: q[row])
            v[s], u[s] = q[best], w[best]
    return q, w


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("length", [1, 5])
def test_a_chain_adds_up_its_local_uncertainties(length, discount):
    # one pseudo-observation in each row and beta = 1: nu = 1; u(1) = sum_{i < H} gamma^2i
    posterior = Posterior.before(chain(length, discount), 1.0)
    expected = sum(discount ** (2 * i) for i in range(length))
    plan = value_variance(posterior, L1Ball(0.2), horizon=length, local=Count())
    assert plan.variance[0, 0] == pytest.approx(expected, rel=1e-14)
    assert value_variance(posterior, L1Ball(0.2), local=Count()).variance[0] == pytest.approx(expected, rel=1e-14)
    assert value_variance(posterior, horizon=length, local=Count(), sharp=True).variance[0, 0] == pytest.approx(
        expected
    )


@pytest.mark.parametrize("name", SETS)
def test_a_known_model_has_no_variance(name):
    posterior = Posterior.before(chain(4, 0.9), 1.0)
    nature = sets_around(posterior.model)[name]
    for local in (Calibrated(), DirichletForm(), Bound(), MonteCarlo(np.ones((3, 4)))):
        for horizon in (None, 6):
            assert not value_variance(posterior, nature, horizon=horizon, local=local).variance.any()


def test_two_steps_by_hand():
    # state 0 -> 1 or 2 with Dirichlet(3, 1); 1 and 2 end with rewards 4 and 0; gamma = 1/2, radius 0.5
    transition = np.zeros((4, 1, 4))
    transition[0, 0, 1:3], transition[1:, 0, 3] = (0.75, 0.25), 1.0
    mdp = urbe.MDP.from_dense(transition, [[0.0], [4.0], [0.0], [0.0]], discount=0.5, terminal=[3])
    posterior = Posterior.before(mdp, [3.0, 1.0, 2.0, 2.0])
    plan = value_variance(posterior, L1Ball(0.5), horizon=2)
    # nature moves 0.25 from 1 to 2: Q = 0.5 * 0.5 * 4, and tau is at state 1, so m = z = (2, 0)
    assert plan.q[0, 0] == pytest.approx(1.0)
    assert plan.variance[0, 0] == pytest.approx(4.0 * 0.75 * 0.25 / 5.0)
    # with all the mass nature's, the centre no longer matters
    assert value_variance(posterior, L1Ball(2.0), horizon=2).variance[0, 0] == 0.0
    # uncertain rewards add their variance, discounted on the way
    rewards = NormalGamma(0.0, 1.0, 2.0, 1.0).after(np.array([0.0, 3.0, 0.0]), np.array([0.0, 4.0, 0.0]), np.zeros(3))
    doubtful = Posterior.before(mdp, [3.0, 1.0, 2.0, 2.0], rewards)
    plan = value_variance(doubtful, L1Ball(0.5), horizon=2)
    var = rewards.variance()
    assert plan.variance[1] == pytest.approx(var)
    m = 0.5 * rewards.mean[1:]
    nu = (m[0] - m[1]) ** 2 * 0.75 * 0.25 / 5.0 + var[0]
    assert plan.variance[0, 0] == pytest.approx(nu + 0.25 * (0.5 * var[1] + 0.5 * var[2]))


@pytest.mark.parametrize("radius", [0.0, 0.4, 2.0])
def test_the_recursion_in_plain_loops(radius):
    rng = np.random.default_rng(4)
    mdp = layered(rng, n_layers=3, discount=0.8)
    posterior = posterior_of(mdp, 7.0)
    told_q, told_u = plain_l1_recursion(posterior, radius, 3, 0.7**2 / posterior.total)
    plan = value_variance(posterior, L1Ball(radius), horizon=3, local=Count(beta=0.7))
    # 1e-6: the linear programs accept that much infeasibility
    assert plan.q[0] == pytest.approx(told_q, abs=1e-6)
    assert plan.variance[0] == pytest.approx(told_u, abs=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_values_are_those_of_backward_induction_bit_for_bit(name):
    for mdp in (layered(np.random.default_rng(1)), cyclic(1, terminal=[2])):
        posterior = posterior_of(mdp, 9.0)
        nature = sets_around(mdp)[name]
        expected = urbe.solve(posterior.mean(), nature, BackwardInduction(5))
        plan = value_variance(posterior, nature, horizon=5)
        assert np.array_equal(plan.value, expected.value)
        assert np.array_equal(plan.policy, expected.policy)
        assert np.array_equal(np.array([mdp.by_action(q, -np.inf) for q in plan.q]), expected.q)


@pytest.mark.parametrize("zero", [
    L1Ball(0.0), L1Ball(0.0, support="all"), urbe.WeightedL1Ball(0.0, 1.0), urbe.L2Ball(0.0), urbe.LInfBall(0.0),
    urbe.KLBall(0.0), urbe.LikelihoodRegion(0.0), urbe.Chi2Ball(0.0), urbe.Contamination(0.0),
])  # fmt: skip
@pytest.mark.parametrize("local", [Calibrated(), Count(), DirichletForm(), Bound()])
def test_radius_zero_is_the_uncertainty_bellman_equation_bit_for_bit(zero, local):
    posterior = posterior_of(cyclic(2), 9.0)
    plain = urbe.solve(posterior.mean(), None, BackwardInduction(6))
    ube = value_variance(posterior, None, horizon=6, local=local)
    urbe_ = value_variance(posterior, zero, horizon=6, local=local)
    assert np.array_equal(ube.value, plain.value)
    for one, other in zip((ube.q, ube.variance, ube.local), (urbe_.q, urbe_.variance, urbe_.local), strict=True):
        assert np.array_equal(one, other)


def test_small_radii_are_close_to_none():
    posterior = posterior_of(cyclic(3), 9.0)
    ube = value_variance(posterior, None, horizon=6)
    for nature in (L1Ball(1e-9), urbe.L2Ball(1e-9), urbe.KLBall(1e-18), urbe.Chi2Ball(1e-18), urbe.Contamination(1e-9)):
        assert value_variance(posterior, nature, horizon=6).variance == pytest.approx(ube.variance, rel=1e-6)


@pytest.mark.parametrize("horizon", [None, 5])
@pytest.mark.parametrize("name", SETS)
def test_variances_scale_with_beta_and_are_at_least_local(name, horizon):
    posterior = posterior_of(cyclic(4), 6.0)
    nature = sets_around(posterior.model)[name]
    one = value_variance(posterior, nature, horizon=horizon, local=Count(1.0))
    three = value_variance(posterior, nature, horizon=horizon, local=Count(3.0))
    assert three.variance == pytest.approx(9.0 * one.variance, rel=1e-12)
    assert np.array_equal(one.q, three.q)
    assert (one.variance >= one.local).all()
    assert (one.local > 0.0).all()
    assert not value_variance(posterior, nature, horizon=horizon, local=Count(0.0)).variance.any()


def test_variances_are_linear_in_nu_and_fall_with_counts():
    posterior = posterior_of(cyclic(5), 6.0)
    policy = value_variance(posterior, L1Ball(0.2)).policy
    count, dirichlet = Count(0.8), DirichletForm(1.3)

    class Both:
        def bind(self, problem):
            one, other = count.bind(problem), dirichlet.bind(problem)
            return lambda step: one(step) + other(step)

    plans = [value_variance(posterior, L1Ball(0.2), policy=policy, local=each) for each in (count, dirichlet, Both())]
    assert plans[2].variance == pytest.approx(plans[0].variance + plans[1].variance, rel=1e-10)
    for local in (count, dirichlet, Bound(), Calibrated()):
        last = np.inf
        for times in (1.0, 2.0, 10.0, 1e6):
            more = Posterior.before(posterior.model, times * posterior.concentration)
            now = value_variance(more, L1Ball(0.2), policy=policy, local=local).variance
            assert (now <= last).all()
            last = now
        assert local == Bound() or last.max() < 1e-2


@pytest.mark.parametrize("randomised", [False, True])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_without_a_horizon_variances_solve_the_linear_system(discount, randomised):
    mdp = cyclic(6, discount, terminal=[3])
    posterior = posterior_of(mdp, 5.0)
    nature = L1Ball(0.3)
    policy = None
    if randomised:
        policy = np.random.default_rng(7).dirichlet(np.ones(2), size=5)
        policy[3] = 0.0
    plan = value_variance(posterior, nature, policy=policy)
    worst = nature.bind(posterior.mean()).worst_case(plan.value)
    kernel = np.zeros((mdp.n_rows, 5))
    kernel[worst.rows.entry_row, worst.rows.successor] = worst.rows.probability
    pi = np.zeros((5, mdp.n_rows))
    chance = plan.policy if randomised else np.eye(2)[np.maximum(plan.policy, 0)]
    pi[mdp.row_state, np.arange(mdp.n_rows)] = chance[mdp.row_state, mdp.action]
    u = np.linalg.solve(np.eye(mdp.n_rows) - discount**2 * kernel @ pi, plan.local)
    assert plan.variance == pytest.approx(u, rel=1e-9)
    assert plan.value_variance == pytest.approx(pi @ u, rel=1e-9)
    assert plan.value_variance[3] == 0.0


def test_rows_and_states_agree_where_successors_tie():
    # 0 -> 1, 2 or 3; 1 and 2 lead to 4 (worth 2) or 5 (worth 0) alike, but much more is known of 2
    transition = np.zeros((7, 1, 7))
    transition[0, 0, 1:4], transition[1:3, 0, 4:6], transition[3:, 0, 6] = 1.0 / 3.0, 0.5, 1.0
    reward = np.array([0.0, 0.0, 0.0, 5.0, 2.0, 0.0, 0.0])[:, None]
    mdp = urbe.MDP.from_dense(transition, reward, discount=0.9, terminal=[6])
    concentration = mdp.rows.probability * np.array([6.0, 4.0, 400.0, 1.0, 1.0, 1.0])[mdp.rows.entry_row]
    for nature in (L1Ball(0.2), urbe.Contamination(0.2), urbe.Chi2Ball(0.2), urbe.LInfBall(0.1)):
        plan = value_variance(Posterior.before(mdp, concentration), nature)
        assert plan.value[1] == plan.value[2]
        assert plan.value_variance[1] > 10.0 * plan.value_variance[2]
        assert plan.variance == pytest.approx(plan.value_variance[:6], rel=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_a_long_horizon_is_no_horizon(name):
    posterior = posterior_of(cyclic(8, 0.7), 5.0)
    nature = sets_around(posterior.model)[name]
    endless = value_variance(posterior, nature, method=urbe.PartialPolicyIteration(tolerance=1e-10))
    long = value_variance(posterior, nature, horizon=90)
    assert long.q[0] == pytest.approx(endless.q, abs=1e-8)
    assert long.variance[0] == pytest.approx(endless.variance, rel=1e-6)


@pytest.mark.parametrize("solver", ["plan", "spsolve"])
def test_total_reward_without_discount(solver, monkeypatch):
    if solver == "spsolve":
        monkeypatch.setattr("urbe.variance.value_variance.solve_system", lambda *_: None)
    mdp = layered(np.random.default_rng(9), discount=1.0)
    posterior = posterior_of(mdp, 20.0)
    endless = value_variance(posterior, L1Ball(0.2))
    assert value_variance(posterior, L1Ball(0.2), horizon=4).variance[0] == pytest.approx(endless.variance, rel=1e-9)
    with pytest.raises(ValueError, match="horizon="):
        value_variance(posterior, L1Ball(0.2), local=Bound())


@pytest.mark.parametrize("name", SETS)
def test_the_local_term_is_the_variance_of_a_linearised_worst_case(name):
    """Difference quotients of the worst case by the centre, in place of the set's own sensitivity."""
    rng = np.random.default_rng(10)
    mdp = layered(rng)
    posterior = posterior_of(mdp, 30.0)
    nature = sets_around(mdp)[name] or urbe.Exact()
    plan = value_variance(posterior, nature, horizon=4)
    rows, step, compared = mdp.rows, 1e-6, 0
    for row in range(mdp.n_rows):
        a, b = rows.entry_start[row : row + 2]

        def value(p, a=a, b=b, row=row):
            centre = posterior.probability.copy()
            centre[a:b] = p
            return nature.bind(posterior.model_with(centre)).values(plan.value[1])[row]

        p = posterior.probability[a:b]
        slope = np.zeros(b - a)
        kink = False
        for j in range(b - a):
            towards = np.eye(b - a)[j] - np.eye(b - a)[0]
            ahead = (value(p + step * towards) - value(p)) / step
            behind = (value(p) - value(p - step * towards)) / step
            kink |= abs(ahead - behind) > 1e-3
            slope[j] = 0.5 * (ahead + behind)
        if kink:
            continue
        expected = (p @ slope**2 - (p @ slope) ** 2) / (posterior.total[row] + 1.0)
        assert plan.local[0, row] == pytest.approx(expected, abs=1e-8, rel=1e-4)
        compared += 1
    assert compared > mdp.n_rows // 2


def test_sharp_is_below_jensen():
    rng = np.random.default_rng(11)
    for name in SETS:
        mdp = layered(rng)
        posterior = posterior_of(mdp, 30.0)
        nature = sets_around(mdp)[name]
        jensen = value_variance(posterior, nature, horizon=4)
        endless = value_variance(posterior, nature)
        for loose, sharp in (
            (jensen.variance[0], value_variance(posterior, nature, horizon=4, sharp=True).variance[0]),
            (endless.variance, value_variance(posterior, nature, sharp=True).variance),
        ):
            # sweeps and kernels agree to half their digits on divergence sets
            assert (sharp <= loose * (1.0 + 1e-6)).all()
            assert sharp.sum() < 0.99 * loose.sum()
        assert np.array_equal(jensen.q, value_variance(posterior, nature, horizon=4, sharp=True).q)


def test_sharp_with_a_mixed_policy_squares_it():
    # two actions lead on, each to a state of its own with u = nu = 1 there: sum pi^2 u
    transition = np.zeros((4, 2, 4))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1:, :, 3] = 1.0
    mdp = urbe.MDP.from_dense(transition, np.zeros((4, 2)), discount=1.0, terminal=[3])
    posterior = Posterior.before(mdp, 1.0)
    mixed = np.full((4, 2), 0.5)
    mixed[3] = 0.0
    for horizon in (None, 2):
        loose = value_variance(posterior, horizon=horizon, policy=mixed, local=Count())
        sharp = value_variance(posterior, horizon=horizon, policy=mixed, local=Count(), sharp=True)
        at = (0, 0) if horizon else (0,)
        assert loose.value_variance[at] == pytest.approx(2.0)  # 1 + 1
        assert sharp.value_variance[at] == pytest.approx(0.5 * (1.0 + 0.5))


def test_second_moments_where_nature_adds_successors():
    mdp = urbe.MDP.from_dense([[[0.0, 0.75, 0.25]], [[0, 0, 1.0]], [[0, 0, 1.0]]], 0.0, discount=1.0, terminal=[2])
    posterior = Posterior.before(mdp, 4.0 * mdp.rows.probability)
    nature = L1Ball(0.5, support="all").bind(posterior.mean())
    answer = nature.worst_case(np.array([-5.0, 1.0, 2.0])).rows
    assert answer.successor[:3].tolist() == [0, 1, 2]
    assert answer.probability[:3].tolist() == [0.25, 0.75, 0.0]
    expected = [0.25**2, 0.75**2 + 0.75 * 0.25 / 5.0, 0.0]
    assert second_moments(posterior.mean().rows, answer, posterior.total)[:3] == pytest.approx(expected)


@pytest.mark.parametrize("horizon", [None, 3])
def test_sharp_refuses_cycles(horizon):
    posterior = posterior_of(cyclic(12), 5.0)
    with pytest.raises(ValueError, match=r"no state is met twice, but 5 of 5 states are on a cycle: 0, 1, 2"):
        value_variance(posterior, horizon=horizon, sharp=True)
    mdp = layered(np.random.default_rng(13))
    posterior = posterior_of(mdp, 5.0)
    value_variance(posterior, L1Ball(0.2), horizon=horizon, sharp=True)
    transition, reward = mdp.to_dense()
    transition[-1] = np.eye(13)[-1]
    posterior = posterior_of(urbe.MDP.from_dense(transition, reward - 2.0, discount=0.9, terminal=[12]), 5.0)
    value_variance(posterior, L1Ball(0.2), horizon=horizon, sharp=True)
    with pytest.raises(ValueError, match="on a cycle"):  # nature alone leads back
        value_variance(posterior, L1Ball(0.2, support="all"), horizon=horizon, sharp=True)
    loop = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], 1.0, discount=0.9, terminal=[1])
    with pytest.raises(ValueError, match="1 of 2 states is on a cycle: 0"):
        check_acyclic(loop, loop.rows)


def test_policies_of_every_shape():
    mdp = cyclic(14, terminal=[0])
    posterior = posterior_of(mdp, 5.0)
    free = value_variance(posterior, L1Ball(0.2), horizon=3)
    again = value_variance(posterior, L1Ball(0.2), horizon=3, policy=free.policy)
    one_hot = np.eye(2)[np.maximum(free.policy, 0)] * (free.policy >= 0)[..., None]
    mixed = value_variance(posterior, L1Ball(0.2), horizon=3, policy=one_hot)
    for other in (again, mixed):
        assert other.q == pytest.approx(free.q, rel=1e-14)
        assert other.variance == pytest.approx(free.variance, rel=1e-12)
    assert mixed.policy.shape == (3, 5, 2)
    still = np.array([-1, 1, 0, 1, 0])
    shares = np.eye(2)[still] * (still >= 0)[:, None]
    for shape in (still, np.tile(still, (3, 1)), shares, shares.astype(int), [{1: 1, 2: 0, 3: 1, 4: 0}] * 3):
        plan = value_variance(posterior, L1Ball(0.2), horizon=3, policy=shape)
        assert plan.value[0] == pytest.approx(value_variance(posterior, L1Ball(0.2), horizon=3, policy=still).value[0])
    with pytest.raises(ValueError, match="policy has 2 steps, expected 3, as many as the horizon"):
        value_variance(posterior, L1Ball(0.2), horizon=3, policy=free.policy[:2])
    with pytest.raises(ValueError, match=r"policy\[1\] is 7"):
        value_variance(posterior, L1Ball(0.2), horizon=3, policy=[-1, 7, 0, 0, 0])


def test_sets_that_stay_where_they_are_have_no_local_uncertainty():
    mdp = layered(np.random.default_rng(15))
    posterior = posterior_of(mdp, 5.0)
    for nature in (urbe.Scenarios([mdp, posterior.mean()]), urbe.Interval(0.0, 1.0)):
        assert not value_variance(posterior, nature, horizon=4).variance.any()
        assert not value_variance(posterior, nature).variance.any()
        assert value_variance(posterior, nature, horizon=4, local=Count()).variance.all()


def test_optimism_has_variances_too():
    mdp = layered(np.random.default_rng(16))
    posterior = posterior_of(mdp, 50.0)
    negated = urbe.MDP.from_dense(mdp.to_dense()[0], -mdp.to_dense()[1], discount=mdp.discount, terminal=[12])
    policy = value_variance(posterior, urbe.Optimistic(L1Ball(0.2)), horizon=4).policy
    best = value_variance(posterior, urbe.Optimistic(L1Ball(0.2)), horizon=4, policy=policy)
    worst = value_variance(Posterior.before(negated, posterior.concentration), L1Ball(0.2), horizon=4, policy=policy)
    assert best.q == pytest.approx(-worst.q)
    assert best.variance == pytest.approx(worst.variance)


def test_one_state_and_refusals():
    one = Posterior.before(urbe.MDP.from_dense([[[1.0]]], [[2.0]], discount=0.5), 3.0)
    plan = value_variance(one, L1Ball(0.3), local=Count())
    assert plan.variance == pytest.approx([1.0 / 3.0 / (1.0 - 0.25)])
    assert repr(plan) == "ValueVariance(1 states, 1 rows)"
    assert plan.deviation == pytest.approx(np.sqrt(plan.variance))
    with pytest.raises(ValueError, match="horizon is 0"):
        value_variance(one, horizon=0)


def test_a_randomised_policy_with_as_many_rows_as_states_is_not_taken_for_one_row_each():
    """Two live states of three take three rows; dense rows, so that the shortcut for one row each is near."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(3, 2))
    mdp = urbe.MDP.from_dense(p, rng.random((3, 2)), discount=0.9, terminal=[2])
    posterior = urbe.Posterior.before(mdp, 4.0)
    policy = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])
    plan = urbe.value_variance(posterior, policy=policy)
    weights = np.array([0.5, 0.5, 1.0])
    chance = posterior.mean().rows.probability.reshape(4, 3)[:3]
    matrix = np.array([0.5 * chance[0] + 0.5 * chance[1], chance[2], np.zeros(3)])
    nu = np.array([weights[:2] @ plan.local[:2], plan.local[2], 0.0])
    np.testing.assert_allclose(plan.value_variance, np.linalg.solve(np.eye(3) - 0.81 * matrix, nu), rtol=1e-9)
