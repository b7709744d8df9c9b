"""Local uncertainties, against moments in closed form, a published example and plain Monte Carlo."""

import numpy as np
import pytest

import urbe
from oracles.layered import layered, posterior_of, robust_q, sets_around
from urbe import Bound, Calibrated, Count, DirichletForm, ExactUBE, L1Ball, MonteCarlo, Posterior, value_variance
from urbe.posteriors import NormalGamma
from urbe.rng import stream

TOY_CENTRES = np.array([[1 - a, a, 1.0, b, 1 - b, 1.0] for a in (0.7, 0.6) for b in (0.5, 0.4)])
"""The four equally likely kernels of the toy of [Luis2023]: 0 -> 1 or 2 (a), 1 ends, 2 -> 3 (b) or ends, 3 pays 100."""


def toy(n0=90.0, n2=98.0):
    """Its model, with the Dirichlet rows that have the same means and variances: 0.65 x 0.35 / 91, 0.45 x 0.55 / 99."""
    transition = np.zeros((5, 1, 5))
    transition[0, 0, 1:3], transition[2, 0, 3:] = (0.35, 0.65), (0.45, 0.55)
    transition[[1, 3, 4], 0, 4] = 1.0
    mdp = urbe.MDP.from_dense(transition, np.array([0, 0, 0, 100.0, 0])[:, None], discount=0.99, terminal=[4])
    concentration = mdp.rows.probability * np.array([n0, 1.0, n2, 1.0])[mdp.rows.entry_row]
    return Posterior.before(mdp, concentration)


@pytest.mark.parametrize("horizon", [None, 3, 7])
def test_the_published_toy(horizon):
    def at_start(**options):
        plan = value_variance(toy(), horizon=horizon, **options)
        values, variances = np.atleast_2d(plan.value)[0], np.atleast_2d(plan.value_variance)[0]
        return values[0], variances[0], variances[2]

    # 28.6679, 15.0694 and 20.4727 are as published; four centres are the whole posterior, nothing is drawn
    assert at_start(local=ExactUBE(TOY_CENTRES)) == pytest.approx((28.6679, 15.0694, 24.5025), abs=1e-4)
    assert at_start(local=Calibrated()) == pytest.approx((28.6679, 20.4727, 24.5025), abs=1e-4)
    # state 1 is known, so that no covariances are left out: the sharp form is exact as well
    assert at_start(sharp=True) == pytest.approx((28.6679, 15.0694, 24.5025), abs=1e-4)


def test_the_toy_by_enumeration():
    """The exact equation against the variance of the four models' values, worked out by hand."""
    values = np.array([0.99**2 * 100.0 * a * b for a in (0.7, 0.6) for b in (0.5, 0.4)])
    plan = value_variance(toy(), local=ExactUBE(TOY_CENTRES))
    assert plan.value[0] == pytest.approx(values.mean(), rel=1e-12)
    assert plan.value_variance[0] == pytest.approx(values.var(), rel=1e-10)


def test_exact_ube_is_the_variance_of_the_draws_on_layered_models():
    rng = np.random.default_rng(0)
    posterior = posterior_of(layered(rng), 8.0)
    policy = value_variance(posterior, horizon=4).policy
    centres = posterior.draws(rng, 4000)
    plan = value_variance(posterior, horizon=4, policy=policy, local=ExactUBE(centres))
    expected = np.var([robust_q(posterior.model_with(p), None, policy, 4) for p in centres], axis=0)
    live = expected > 1e-12
    # rows are independent in the posterior, but 4000 draws of them only nearly so
    assert np.abs(plan.variance[0][live] / expected[live] - 1.0).max() < 0.05
    jensen = value_variance(posterior, horizon=4, policy=policy)
    assert np.abs(jensen.variance[0][live] / expected[live] - 1.0).max() > 0.1
    few = ExactUBE(centres[:100])
    endless = value_variance(posterior, policy=policy[0], local=few)
    assert endless.variance == pytest.approx(
        value_variance(posterior, horizon=4, policy=policy[0], local=few).variance[0], abs=1e-9
    )


def test_exact_ube_adds_rewards_and_refuses_a_nature_with_a_choice():
    posterior = toy()
    rewards = NormalGamma(1.0, 2.0, 3.0, 1.5).before(4)
    doubtful = Posterior.before(posterior.model, posterior.concentration, rewards)
    for local in (ExactUBE(TOY_CENTRES), Calibrated(), Bound(), MonteCarlo(TOY_CENTRES)):
        plain = value_variance(Posterior.before(doubtful.mean(), posterior.concentration), horizon=3, local=local)
        more = value_variance(doubtful, horizon=3, local=local)
        assert more.local - plain.local == pytest.approx(np.tile(rewards.variance(), (3, 1)))
    with pytest.raises(ValueError, match=r"ExactUBE.*nature is L1Ball\(radius=0.1"):
        value_variance(posterior, L1Ball(0.1), local=ExactUBE(TOY_CENTRES))


def test_closed_forms():
    mdp = urbe.library.riverswim(4, discount=0.9)
    posterior = Posterior.after(mdp, 0.5, np.arange(mdp.rows.n_entries, dtype=float))
    alpha, total, n, k = [], [], [], []
    for row in range(mdp.n_rows):
        a, b = mdp.rows.entry_start[row : row + 2]
        alpha.append(0.5 + np.arange(a, b))
        total.append(alpha[-1].sum())
        n.append(float(np.arange(a, b).sum()))
        k.append(b - a)
    total, n, k = map(np.array, (total, n, k))

    def nu(local, **options):
        return value_variance(posterior, L1Ball(0.2), local=local, **options).local

    assert nu(Count(0.5)) == pytest.approx(0.25 / total)
    assert nu(Count(0.5, n0=3.0)) == pytest.approx(0.25 / np.maximum(n, 3.0))
    assert nu(DirichletForm(2.0)) == pytest.approx(4.0 * (k - 1) / (total + 1))
    largest = np.abs(mdp.rows.reward).max()
    assert nu(Bound()) == pytest.approx((largest / 0.1) ** 2 * (k - 1) / (total + 1))
    assert nu(Bound(), horizon=7)[3] == pytest.approx((7 * largest) ** 2 * (k - 1) / (total + 1))
    # and the Dirichlet form is the sum of var / mean of the posterior itself
    variance = posterior.variance()
    ratio = np.add.reduceat(variance / posterior.probability, mdp.rows.entry_start[:-1])
    assert ratio == pytest.approx((k - 1) / (total + 1))


def test_impossible_successors_do_not_count():
    mdp = urbe.library.riverswim(4, discount=0.9)
    alpha = np.full(mdp.rows.n_entries, 2.0)
    alpha[mdp.rows.entry_start[2] : mdp.rows.entry_start[3]] = 0.0
    alpha[mdp.rows.entry_start[2]] = 5.0  # one successor is left in row 2
    posterior = Posterior.before(mdp, alpha)
    for local in (DirichletForm(), Bound(), Calibrated(), MonteCarlo(posterior.draws(stream(0, "draws"), 20))):
        assert value_variance(posterior, urbe.KLBall(0.1), horizon=3, local=local).local[:, 2] == pytest.approx(0.0)


@pytest.mark.parametrize("name", sets_around(layered(np.random.default_rng(0))))
def test_monte_carlo_is_var_over_mean_of_worst_case_rows(name):
    """Each draw is solved on its own; rows are compared as dense arrays, divisions guarded in the plainest way."""
    mdp = layered(np.random.default_rng(1), n_layers=3)
    check_monte_carlo(posterior_of(mdp, 10.0), sets_around(mdp)[name])


def test_monte_carlo_where_draws_lead_to_different_successors():
    # 1 or 2 is the lowest state, as the draws have it, and nature sends mass there from rows that do not list it
    transition = np.zeros((6, 1, 6))
    transition[0, 0, 1:3], transition[1:3, 0, 3:5], transition[3:, 0, 5] = 0.5, 0.5, 1.0
    reward = np.array([0.0, -20.0, -20.0, -10.0, 0.0, 0.0])[:, None]
    mdp = urbe.MDP.from_dense(transition, reward, discount=0.9, terminal=[5])
    check_monte_carlo(posterior_of(mdp, 3.0), L1Ball(0.3, support="all"))


def check_monte_carlo(posterior, nature):
    mdp = posterior.model
    centres = posterior.draws(np.random.default_rng(2), 30)
    plan = value_variance(posterior, nature, horizon=3, local=MonteCarlo(centres))
    expected = np.zeros((3, mdp.n_rows))
    kernels = np.zeros((3, len(centres), mdp.n_rows, mdp.n_states))
    for k, centre in enumerate(centres):
        bound = (nature or urbe.Exact()).bind(posterior.model_with(centre))
        v = np.zeros(mdp.n_states)
        for h in (2, 1, 0):
            worst = bound.worst_case(v)
            kernels[h, k, worst.rows.entry_row, worst.rows.successor] = worst.rows.probability
            v = np.zeros(mdp.n_states)
            for s in range(mdp.n_states - 1):
                v[s] = worst.value[mdp.row_of(s, plan.policy[h, s])]
    mean, var = kernels.mean(axis=1), kernels.var(axis=1, ddof=1)
    expected = (
        9.0 * mdp.rows.largest_reward**2 * np.where(mean > 0, var / np.where(mean > 0, mean, 1.0), 0.0).sum(axis=-1)
    )
    assert plan.local == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert np.isfinite(plan.variance).all()


def test_monte_carlo_without_a_choice_estimates_the_dirichlet_form():
    posterior = posterior_of(layered(np.random.default_rng(2)), 20.0)
    expected = value_variance(posterior, horizon=4, local=Bound()).local[0]
    found = value_variance(posterior, horizon=4, local=MonteCarlo(posterior.draws(stream(0, "mc"), 3000))).local[0]
    live = expected > 0.0
    assert np.abs(found[live] / expected[live] - 1.0).max() < 0.2


@pytest.mark.parametrize("nature", [None, L1Ball(0.3), L1Ball(0.3, support="all"), urbe.KLBall(0.1)])
def test_monte_carlo_without_a_horizon_is_that_of_a_long_one(nature):
    mdp = urbe.library.garnet(6, 2, 3, seed=5, discount=0.6)
    posterior = posterior_of(mdp, 10.0)
    centres = posterior.draws(stream(0, "centres"), 8)
    policy = value_variance(posterior, nature).policy
    scale = (mdp.rows.largest_reward / 0.4) ** 2 / (60 * mdp.rows.largest_reward) ** 2
    endless = value_variance(posterior, nature, policy=policy, local=MonteCarlo(centres))
    long = value_variance(posterior, nature, policy=policy, horizon=60, local=MonteCarlo(centres))
    assert endless.local == pytest.approx(scale * long.local[0], rel=1e-5)


def test_same_draws_same_bits_other_draws_others():
    posterior = posterior_of(layered(np.random.default_rng(3)), 10.0)

    def plan(seed, form):
        return value_variance(posterior, horizon=4, local=form(posterior.draws(stream(seed, "draws"), 20))).variance

    for form in (MonteCarlo, ExactUBE):
        assert np.array_equal(plan(0, form), plan(0, form))
        assert not np.array_equal(plan(0, form), plan(1, form))


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Count(-1.0), "beta is -1.0"),
    (lambda: Count(1.0, n0=0.0), "n0 is 0"),
    (lambda: DirichletForm(np.nan), "beta is nan"),
])  # fmt: skip
def test_refused_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(("centres", "words"), [
    (np.ones((3, 5)), r"centres has shape \(3, 5\), expected at least two draws of \(6,\)"),
    (TOY_CENTRES[:1], "at least two draws"),
    (-TOY_CENTRES, r"centres\[0, 0\] is -0.3"),
])  # fmt: skip
def test_refused_centres(centres, words):
    with pytest.raises(ValueError, match=words):
        value_variance(toy(), horizon=3, local=MonteCarlo(centres))
