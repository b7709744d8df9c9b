"""Bayesian Q-learning against quadrature, simulation, and the chain of the original paper."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import urbe
from fixtures.agents import start, steps
from urbe.agents import BayesianQ, Mixture, Moments, QSampling, Task, ValueOfInformation, run
from urbe.agents.bayes_q_rules import closest, expected_excess, shape_of, value_of_information
from urbe.envs.finite import FiniteEnv
from urbe.mdp.model import MDP
from urbe.posteriors.rewards import RewardPosterior


def belief(*columns):
    return RewardPosterior(*(np.array(column, dtype=float) for column in columns))


PAIR = belief([1.0], [2.0], [3.0], [4.0])
AHEAD = belief([-0.5], [4.0], [2.5], [1.5])
RULES = [Moments(), Mixture(), Mixture(1)]


def numbers(posterior):
    return np.stack([posterior.mean, posterior.weight, posterior.shape, posterior.rate])


def log_density(posterior, mu, tau):
    """Of the normal-gamma law, by SciPy."""
    weight, shape, rate = posterior.weight[0], posterior.shape[0], posterior.rate[0]
    return stats.gamma.logpdf(tau, shape, scale=1 / rate) + stats.norm.logpdf(
        mu, posterior.mean[0], 1 / np.sqrt(weight * tau)
    )


@pytest.mark.parametrize("rule", RULES)
def test_a_known_return_gives_the_posterior_of_the_textbook(rule):
    """gamma = 0: prior times likelihood, normalised, at every (mu, tau)."""
    after = rule(PAIR, np.array([2.5]), np.zeros(1), AHEAD)
    rng = np.random.default_rng(0)
    mu, tau = rng.normal(1.0, 1.0, size=50), rng.gamma(2.0, size=50) + 0.05
    ratio = log_density(PAIR, mu, tau) + stats.norm.logpdf(2.5, mu, 1 / np.sqrt(tau)) - log_density(after, mu, tau)
    assert ratio == pytest.approx(ratio[0], abs=1e-9)


def test_moments_by_hand():
    r, gamma = 0.7, 0.9
    second = 5.0 / 4.0 * 1.5 / 1.5 + 0.25  # E R'^2 = (weight + 1) / weight rate / (shape - 1) + mean^2
    m1, m2 = r + gamma * -0.5, r**2 + 2 * gamma * r * -0.5 + gamma**2 * second
    rate = 4.0 + (m2 - m1**2) / 2 + 2.0 * (m1 - 1.0) ** 2 / (2 * 3.0)
    after = numbers(Moments()(PAIR, np.array([r]), np.array([gamma]), AHEAD))[:, 0]
    assert after == pytest.approx([(2.0 + m1) / 3.0, 3.0, 3.5, rate], abs=1e-14)


def mixture_by_quadrature(r, gamma):
    """The four expectations of the mixture, integrated over the law of R'."""
    scale = np.sqrt(5.0 * 1.5 / (4.0 * 2.5))
    law = stats.t(5.0, loc=-0.5, scale=scale)

    def mean_of(f):
        def integrand(x):
            y = r + gamma * x
            return law.pdf(x) * f((2.0 + y) / 3.0, 4.0 + 2.0 * (y - 1.0) ** 2 / 6.0)

        return integrate.quad(integrand, -np.inf, np.inf, epsabs=1e-12, epsrel=1e-12, limit=200)[0]

    return {
        "tau": mean_of(lambda _, b: 3.5 / b),
        "tau mu": mean_of(lambda m, b: m * 3.5 / b),
        "tau mu^2": mean_of(lambda m, b: 1 / 3.0 + m**2 * 3.5 / b),
        "log tau": mean_of(lambda _, b: special.psi(3.5) - np.log(b)),
    }


def test_mixture_keeps_the_moments_of_the_mixture():
    expected = mixture_by_quadrature(0.7, 0.9)
    mean, weight, shape, rate = numbers(Mixture(2000)(PAIR, np.array([0.7]), np.array([0.9]), AHEAD))[:, 0]
    found = {
        "tau": shape / rate,
        "tau mu": mean * shape / rate,
        "tau mu^2": 1 / weight + mean**2 * shape / rate,
        "log tau": special.psi(shape) - np.log(rate),
    }
    assert found == pytest.approx(expected, rel=1e-3)  # 2000 nodes leave out the last 1 / 4000 of each tail
    coarse = numbers(Mixture()(PAIR, np.array([0.7]), np.array([0.9]), AHEAD))[:, 0]
    assert coarse == pytest.approx([mean, weight, shape, rate], rel=0.02)


def test_a_mixture_is_wider_than_its_moments():
    """Uncertainty about R' stays uncertainty about the pair; the moment update calls it noise."""
    wide = belief([0.0], [0.01], [2.0], [10.0])
    by = {rule: numbers(rule(PAIR, np.zeros(1), np.full(1, 0.9), wide))[:, 0] for rule in (Moments(), Mixture())}
    assert by[Mixture()][1] < by[Moments()][1] == 3.0


def test_the_projection_of_one_law_is_itself():
    shapes = np.array([1.5, 2.0, 40.0, 1e4])
    each = belief(*(x[:, None] for x in (np.arange(4.0), np.arange(1.0, 5.0), shapes, np.full(4, 3.0))))
    assert numbers(closest(each)) == pytest.approx(numbers(each)[:, :, 0], rel=1e-7)


@pytest.mark.parametrize("y", [1e-3, 0.1, 1.0, 1.001, 7.0, 1e3, 1e5])
def test_digamma_is_inverted(y):
    gap = np.array([np.log(y) - special.psi(y)])
    # log y - digamma(y) itself is good to 1e-15 and about 1 / 2y: that is what limits large y
    assert shape_of(gap)[0] == pytest.approx(y, rel=1e-10 + 1e-14 * y)


def test_shapes_stay_above_one():
    far = belief(*(np.array([x]) for x in ([-1e3, 1e3], [1.0, 1.0], [1.2, 1.2], [1e-3, 1e6])))
    after = closest(far)
    assert after.shape[0] >= 1.001
    assert np.isfinite(numbers(after)).all()


@pytest.mark.parametrize("freedom", [2.5, 4.0, 50.0, 1e6])
@pytest.mark.parametrize("z", [0.0, 0.3, 2.0, 8.0])
def test_expected_excess_by_quadrature(freedom, z):
    expected = integrate.quad(lambda x: (x - z) * stats.t.pdf(x, freedom), z, np.inf, epsabs=1e-14, limit=500)[0]
    assert expected_excess(np.array(freedom), np.array(z)) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_value_of_information_by_simulation():
    beliefs = belief([[1.0, 0.6, 0.0]], [[2.0, 1.0, 0.5]], [[3.0, 2.0, 4.0]], [[2.0, 1.0, 6.0]])
    rng = np.random.default_rng(0)
    n = 400_000
    tau = rng.gamma(beliefs.shape[0], size=(n, 3)) / beliefs.rate[0]
    mu = beliefs.mean[0] + rng.normal(size=(n, 3)) / np.sqrt(beliefs.weight[0] * tau)
    gains = np.stack(
        [np.maximum(0.6 - mu[:, 0], 0.0), np.maximum(mu[:, 1] - 1.0, 0.0), np.maximum(mu[:, 2] - 1.0, 0.0)]
    )
    found = value_of_information(beliefs, np.ones((1, 3), dtype=bool))[0]
    # 5 standard errors: false alarms below 2e-6
    for k in range(3):
        assert found[k] == pytest.approx(gains[k].mean(), abs=5 * gains[k].std() / np.sqrt(n))


def test_value_of_information_is_a_value():
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(200, 4)), *(1.0 + rng.exponential(5.0, size=(200, 4)) for _ in range(3))
    listed = rng.uniform(size=(200, 4)) < 0.8
    listed[:, 0] = True
    gain = value_of_information(belief(*columns), listed)
    assert (gain >= 0.0).all()
    assert (gain[~listed] == 0.0).all()
    assert (gain[listed.sum(axis=1) == 1] == 0.0).all()
    sure = belief(columns[0], np.full((200, 4), 1e12), *columns[2:])
    assert value_of_information(sure, listed).max() < 1e-5
    tied = belief([[1.0, 1.0]], [[1.0, 1.0]], [[2.0, 2.0]], [[1.0, 1.0]])
    gain = value_of_information(tied, np.ones((1, 2), dtype=bool))[0]
    assert gain[0] == gain[1] > 0.1


def test_sampling_takes_an_action_as_often_as_it_is_believed_best():
    mdp = MDP.from_dense([[[1.0]] * 2], 0.0, discount=0.0)
    agent = start(BayesianQ(), mdp)
    agent.belief[:, 0, 0], agent.belief[:, 0, 1] = (0.5, 2.0, 3.0, 2.0), (0.0, 1.0, 2.0, 3.0)
    n = 4000
    zero = np.zeros(1, dtype=int)
    taken = np.mean([agent.act(zero, zero, 0)[0] for _ in range(n)])
    rng = np.random.default_rng(0)
    tau = rng.gamma([3.0, 2.0], size=(10**6, 2)) / [2.0, 3.0]
    mu = [0.5, 0.0] + rng.normal(size=(10**6, 2)) / np.sqrt(np.array([2.0, 1.0]) * tau)
    best = (mu[:, 1] > mu[:, 0]).mean()
    assert taken == pytest.approx(best, abs=5 * np.sqrt(best * (1 - best) / n))  # false alarms below 1e-6


def test_ends_and_cuts():
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.5)
    expected = {}
    for name, flags in {"plain": {}, "cut": {"truncated": True}, "ended": {"terminated": True}}.items():
        agent = start(BayesianQ(mean=4.0), mdp)
        agent.observe(steps(0, 0, 1.0, 1, **flags), 0)
        expected[name] = agent.belief[0, 0, 0]
    assert expected == {"plain": 3.5, "cut": 3.5, "ended": 2.5}  # (4 + 1 + 0.5 * 4) / 2 and (4 + 1) / 2


def test_a_terminal_state_has_no_future_even_when_nobody_says_so():
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=0.5, terminal=[1])
    agent = start(BayesianQ(mean=4.0), mdp)
    agent.observe(steps(0, 0, 1.0, 1), 0)
    assert agent.belief[0, 0, 0] == 2.5


def test_the_best_action_ahead_counts():
    mdp = MDP.from_dense(np.full((2, 3, 2), 0.5), 0.0, discount=0.5)
    agent = start(BayesianQ(), mdp)
    agent.belief[0, 0] = [0.0, 0.0, 0.0, 1.0, 9.0, -3.0]
    agent.observe(steps(0, 1, 1.0, 1), 0)
    assert agent.belief[0, 0].tolist() == [0.0, 0.5 * (1.0 + 4.5), 0.0, 1.0, 9.0, -3.0]


CHAIN = {
    "VPI and moments": (BayesianQ(weight=0.01, shape=1.5, rate=100.0, choice=ValueOfInformation()), 2600.0),
    "sampling and moments": (BayesianQ(weight=0.01, shape=1.5, rate=100.0, choice=QSampling()), 2000.0),
}


@pytest.mark.parametrize("name", CHAIN)
def test_chain(name):
    """1000 steps after 7000: going back always earns 1600 to 1700, going on 3677; [Dearden1998] Table 1."""
    kind, least = CHAIN[name]
    mdp = urbe.library.chain()
    record = run(kind, FiniteEnv.of(mdp), Task(urbe.Posterior.before(mdp), 1000), episodes=8, seed=1, replicates=10)
    assert record.reward[:, -1].mean() > least


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (BayesianQ(shape=1.0), r"shape is 1, expected a number in \(1, inf\]"),
        (BayesianQ(weight=0.0), r"weight is 0, expected a number in \(0, inf\]"),
        (BayesianQ(rate=[-1.0]), r"rate\[0\] is -1, expected a number in \(0, inf\]"),
    ],
)
def test_refuses_other_parameters(kind, message):
    with pytest.raises(ValueError, match=message):
        start(kind, urbe.library.chain())
    with pytest.raises(ValueError, match="nodes is 0, expected a whole number of at least 1"):
        Mixture(0)


def test_replicates_may_start_with_other_beliefs():
    agent = start(BayesianQ(mean=[0.0, 5.0], rate=2.0), urbe.library.chain(), replicates=2)
    assert agent.belief[0, :, 0].tolist() == [0.0, 5.0]
    assert (agent.belief[3] == 2.0).all()
