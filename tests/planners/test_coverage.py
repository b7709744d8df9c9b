"""How often guarantees fail over repeated data sets, with true models drawn from the prior.

Thresholds are binomial quantiles such that a correct planner fails a test with probability 1e-4 at most.
"""

import numpy as np
import pytest
from scipy.stats import binom

import urbe
from fixtures.data_sets import after
from urbe.mdp.evaluate import policy_value
from urbe.planners import BCI, RSVF, HoeffdingSets, QuantileDraw, VaRBellman, plan
from urbe.posteriors import NormalGamma, Posterior

FALSE_ALARM = 1e-4
METHODS = {
    "bci": BCI(),
    "rsvf": RSVF(),
    "rsvf_draw": RSVF(QuantileDraw()),
    "var": VaRBellman(),
    "hoeffding": HoeffdingSets(),
}
DELTA = 0.2

COINS = 5
HEADS = urbe.MDP.from_dense(
    np.pad(np.full((COINS, 1, 2), 0.5), ((0, 2), (0, 0), (COINS, 0))),
    np.broadcast_to(np.eye(COINS + 2)[COINS + 1], (COINS + 2, 1, COINS + 2)),
    discount=0.0,
    terminal=[COINS, COINS + 1],
)
"""Five coins, each thrown once: state i pays 1 for heads. The union over rows is then nearly tight."""


def failures(method, mdp, data_sets, n, seed, truth=None, **options):
    """In how many data sets the policy is worth less than guaranteed in some state."""
    count = 0
    for i in range(data_sets):
        rng = np.random.default_rng([seed, i])
        true = Posterior.before(mdp).sample(rng) if truth is None else truth
        found = plan(after(true, n, rng), confidence=1 - DELTA, method=method, rng=rng, held_out=0, **options)
        count += bool((policy_value(true, found.policy) < found.worst_case - 1e-9).any())
    return count


@pytest.mark.parametrize("name", ["var", "rsvf", "rsvf_draw"])
def test_one_sided_methods_fail_exactly_as_often_as_they_may(name):
    # each coin fails with delta / 5 on its own: 1 - (1 - 0.04)^5 = 0.185 of the data sets
    found = failures(METHODS[name], HEADS, 200, 8, seed=1, draws=499)
    chance = 1.0 - (1.0 - DELTA / COINS) ** COINS
    assert binom.ppf(FALSE_ALARM / 2, 200, chance) <= found <= binom.ppf(1 - FALSE_ALARM / 2, 200, chance)


def test_credible_balls_fail_at_most_as_often_as_they_may():
    # an L1 ball around a coin fails on either side: between a quarter of delta and all of it
    found = failures(METHODS["bci"], HEADS, 300, 8, seed=2, draws=999)
    assert binom.ppf(FALSE_ALARM / 2, 300, DELTA / 4) <= found <= binom.ppf(1 - FALSE_ALARM / 2, 300, DELTA)


def test_level_not_shared_among_rows_fails_more_often():
    found = failures(VaRBellman(union=False), HEADS, 100, 8, seed=3, draws=499)
    chance = 1.0 - (1.0 - DELTA) ** COINS  # 0.67
    assert binom.ppf(FALSE_ALARM / 2, 100, chance) <= found <= binom.ppf(1 - FALSE_ALARM / 2, 100, chance)


@pytest.mark.parametrize("name", METHODS)
def test_guarantees_hold_on_a_river_drawn_from_the_prior(name):
    found = failures(METHODS[name], urbe.library.riverswim(4, discount=0.9), 60, 20, seed=4)
    assert found <= binom.ppf(1 - FALSE_ALARM, 60, DELTA)


@pytest.mark.parametrize("name", METHODS)
def test_guarantees_hold_on_the_machine_as_it_is(name):
    machine = urbe.library.machine_replacement(5, discount=0.9)
    found = failures(METHODS[name], machine, 30, 20, seed=5, truth=machine)
    assert found <= binom.ppf(1 - FALSE_ALARM, 30, DELTA)


def test_uncertain_rewards_are_covered():
    # three known walks with rewards from their prior: only rewards can fail, half of delta among three rows
    mdp = urbe.MDP.from_dense(np.eye(3)[:, None], 0.0, discount=0.5)
    prior = NormalGamma(mean=1.0, weight=0.5, shape=3.0, rate=2.0)
    count = 0
    for i in range(400):
        rng = np.random.default_rng([6, i])
        precision = rng.gamma(3.0, 1.0 / 2.0, 3)
        truth = rng.normal(1.0, 1.0 / np.sqrt(0.5 * precision))
        seen = rng.normal(truth, 1.0 / np.sqrt(precision), (4, 3))
        rewards = prior.before(3).after(np.full(3, 4.0), seen.mean(axis=0), 4 * seen.var(axis=0))
        found = plan(Posterior.before(mdp, rewards=rewards), confidence=1 - DELTA, rng=rng, held_out=0)
        count += bool((2.0 * truth < found.worst_case - 1e-9).any())
    chance = 1.0 - (1.0 - DELTA / 6) ** 3
    assert binom.ppf(FALSE_ALARM / 2, 400, chance) <= count <= binom.ppf(1 - FALSE_ALARM / 2, 400, chance)
