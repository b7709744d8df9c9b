"""Optimism is pessimism about negated values; every result has the right sign."""

from dataclasses import replace

import numpy as np
import pytest

from oracles import worst_case as lp
from urbe.ambiguity.contamination import Contamination
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.interval import Interval, LInfBall
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.scenarios import ConditionalValueAtRisk, Scenarios, ValueAtRisk
from urbe.ambiguity.wasserstein import WassersteinBall
from urbe.ambiguity.weighted_l1 import WeightedL1Ball
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


def draws(mdp):
    return np.random.default_rng(7).dirichlet(np.ones(mdp.n_states), size=(5, mdp.n_states, mdp.n_actions))


SETS = {
    "exact": (lambda _: Exact(), lambda p, z: p @ z),
    "l1": (lambda _: L1Ball(0.4), lambda p, z: -lp.l1(p, -z, 0.4)),
    "l1, any state": (lambda _: L1Ball(0.4, "all"), lambda p, z: -lp.l1(p, -z, 0.4, receivers=p >= 0)),
    "weighted l1": (
        lambda mdp: WeightedL1Ball(0.9, 1.0 + np.arange(mdp.n_states)),
        lambda p, z: -lp.l1(p, -z, 0.9, 1.0 + np.arange(len(p))),
    ),
    "box": (
        lambda _: LInfBall(0.2),
        lambda p, z: -lp.box(np.maximum(p - 0.2, 0), np.minimum(1, (p + 0.2) * (p > 0)), -z),
    ),
    "contamination": (lambda _: Contamination(0.3), lambda p, z: -lp.contamination(p, -z, 0.3)),
    "wasserstein": (
        lambda mdp: WassersteinBall(0.2, 1.0 - np.eye(mdp.n_states), "all"),
        lambda p, z: -lp.wasserstein(p, -z, 1.0 - np.eye(len(p)), 0.2, p >= 0),
    ),
    "scenarios": (lambda mdp: Scenarios(draws(mdp)), None),
    "tail": (lambda mdp: ConditionalValueAtRisk(draws(mdp), 0.3), None),
    "quantile": (lambda mdp: ValueAtRisk(draws(mdp), 0.3), None),
}


@pytest.mark.parametrize("name", SETS)
def test_contract(name):
    build, oracle = SETS[name]
    check_ambiguity_set(lambda mdp: Optimistic(build(mdp)), oracle=oracle, optimistic=True, convex=name != "quantile")


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.5, 3.3), (2.0, 5.0)])
def test_by_hand(radius, value):
    nature = Optimistic(L1Ball(radius)).bind(lp.one_row_model(P))
    assert nature.values(Z)[0] == pytest.approx(value, abs=1e-14)


def test_twice_optimistic_is_the_set_itself():
    rng = np.random.default_rng(0)
    mdp = MDP.from_dense(rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2)), discount=0.9)
    v = rng.normal(size=4)
    once, twice = L1Ball(0.5).bind(mdp), Optimistic(Optimistic(L1Ball(0.5))).bind(mdp)
    assert np.array_equal(twice.values(v), once.values(v))
    assert np.array_equal(twice.rows.reward, once.rows.reward)


def test_a_models_own_bounds_survive():
    mdp = lp.one_row_model(P)
    bounded = replace(mdp, bounds=(P - 0.1, P + 0.1))
    assert Optimistic(Interval()).bind(bounded).values(Z)[0] == pytest.approx(2.9, abs=1e-14)


def test_zero_is_not_printed_with_a_sign():
    nature = Optimistic(L1Ball(0.5)).bind(lp.one_row_model(P))
    assert not np.signbit(nature.values(np.zeros(4))).any()
    assert not np.signbit(nature.rows.reward).any()


def test_the_quantile_is_counted_from_the_top():
    kernels = np.zeros((4, 4, 1, 4))
    kernels[np.arange(4), :, :, np.arange(4)] = 1.0
    mdp = MDP.from_dense(np.full((4, 1, 4), 0.25), 0.0, discount=1.0)
    v = np.array([0.0, 1.0, 2.0, 3.0])
    assert Optimistic(ValueAtRisk(kernels, 0.25)).bind(mdp).values(v)[0] == 3.0
    assert Optimistic(ConditionalValueAtRisk(kernels, 0.5)).bind(mdp).values(v)[0] == 2.5
