"""All sets: methods agree, nature's kernel reproduces the robust value, radius zero is the model."""

from itertools import pairwise

import numpy as np
import pytest

import urbe
from urbe import (
    L1Ball,
    ModifiedPolicyIteration,
    PartialPolicyIteration,
    ValueIteration,
    evaluate_policy,
    solve,
)
from urbe.ambiguity.chi2 import Chi2Ball
from urbe.ambiguity.contamination import Contamination
from urbe.ambiguity.interval import Interval, LInfBall
from urbe.ambiguity.kl import KLBall
from urbe.ambiguity.l2 import L2Ball
from urbe.ambiguity.likelihood import LikelihoodRegion
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.scenarios import ConditionalValueAtRisk, Scenarios, ValueAtRisk
from urbe.ambiguity.wasserstein import WassersteinBall
from urbe.ambiguity.weighted_l1 import WeightedL1Ball
from urbe.mdp.evaluate import policy_value
from urbe.solvers.certificate import certify

GARNET = urbe.library.garnet(20, 3, 4, seed=3, discount=0.95)
LINE = np.abs(np.subtract.outer(np.arange(20), np.arange(20))).astype(float)
KERNELS = [urbe.library.garnet(20, 3, 4, seed=seed, discount=0.95) for seed in (4, 5, 6)]
SETS = {
    "l1": L1Ball(0.3),
    "l1, any successor": L1Ball(0.3, support="all"),
    "weighted l1": WeightedL1Ball(0.3, np.linspace(0.5, 2.0, 20)),
    "contamination": Contamination(0.1),
    "contamination, any successor": Contamination(0.1, support="all"),
    "linf": LInfBall(0.1),
    "interval": Interval(0.0, 0.9),
    "wasserstein": WassersteinBall(0.5, LINE),
    "kl": KLBall(0.1),
    "chi2": Chi2Ball(0.2),
    "l2": L2Ball(0.2),
    "likelihood": LikelihoodRegion(0.05),
    "scenarios": Scenarios(KERNELS),
    "cvar": ConditionalValueAtRisk(KERNELS, 0.4),
    "var": ValueAtRisk(KERNELS, 0.5),
    "optimistic l1": Optimistic(L1Ball(0.3)),
    "optimistic kl": Optimistic(KLBall(0.1)),
}
RADIUS_ZERO = {
    "l1": L1Ball(0.0),
    "l1, any successor": L1Ball(0.0, support="all"),
    "weighted l1": WeightedL1Ball(0.0, np.linspace(0.5, 2.0, 20)),
    "contamination": Contamination(0.0),
    "linf": LInfBall(0.0),
    "wasserstein": WassersteinBall(0.0, LINE),
    "kl": KLBall(0.0),
    "chi2": Chi2Ball(0.0),
    "l2": L2Ball(0.0),
    "likelihood": LikelihoodRegion(0.0),
    "scenarios": Scenarios([GARNET]),
    "interval": Interval(GARNET.rows.probability, GARNET.rows.probability),
    "optimistic": Optimistic(L1Ball(0.0)),
}


@pytest.mark.parametrize("name", SETS)
def test_methods_agree_and_are_certified(name):
    reference = solve(GARNET, SETS[name], PartialPolicyIteration(tolerance=1e-8))
    assert certify(reference).holds
    for method in (
        PartialPolicyIteration(tolerance=1e-8, linear="always"),
        PartialPolicyIteration(tolerance=1e-8, linear="never"),
        ModifiedPolicyIteration(tolerance=1e-8),
        ValueIteration(tolerance=1e-8),
        ValueIteration(tolerance=1e-8, rule="residual"),
    ):
        solution = solve(GARNET, SETS[name], method)
        assert np.abs(solution.value - reference.value).max() <= 1e-8
        assert np.array_equal(solution.policy, reference.policy)


@pytest.mark.parametrize("name", SETS)
def test_natures_answer_reproduces_the_value(name):
    """The kernel is a model of its own: solving it, and evaluating the policy on it, gives the robust value again."""
    solution = solve(GARNET, SETS[name], PartialPolicyIteration(tolerance=1e-10))
    nominal = solve(solution.kernel, method=PartialPolicyIteration(tolerance=1e-10))
    assert np.abs(nominal.value - solution.value).max() <= 1e-9
    assert np.abs(policy_value(solution.kernel, solution.policy) - solution.value).max() <= 1e-9
    assert np.abs(evaluate_policy(GARNET, solution.policy, SETS[name]).value - solution.value).max() <= 1e-6


@pytest.mark.parametrize("name", RADIUS_ZERO)
def test_a_set_of_radius_zero_is_the_model(name):
    nominal = solve(GARNET, method=PartialPolicyIteration(tolerance=1e-9))
    solution = solve(GARNET, RADIUS_ZERO[name], PartialPolicyIteration(tolerance=1e-9))
    assert np.abs(solution.value - nominal.value).max() <= 2e-9
    assert np.array_equal(solution.policy, nominal.policy)


@pytest.mark.parametrize("kind", [L1Ball, Contamination, LInfBall, KLBall, Chi2Ball])
def test_values_fall_with_the_radius(kind):
    values = [solve(GARNET, kind(radius)).value for radius in (0.0, 0.05, 0.2, 0.6)]
    for more, less in pairwise(values):
        assert (less <= more + 2e-6).all()
        assert (less < more - 1e-3).any()


def test_support_everywhere_is_worse_than_the_rows_own():
    own, everywhere = solve(GARNET, L1Ball(0.3)), solve(GARNET, L1Ball(0.3, support="all"))
    assert (everywhere.value < own.value).all()


def test_nature_with_all_the_mass_takes_the_minimum():
    """V = max_a r + gamma min V when every kernel is allowed."""
    solution = solve(GARNET, L1Ball(2.0, support="all"), PartialPolicyIteration(tolerance=1e-10))
    best = GARNET.by_action(GARNET.rows.reward).max(axis=1)
    assert solution.value == pytest.approx(best + 0.95 * best.min() / 0.05, abs=1e-9)
