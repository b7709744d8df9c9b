"""Distributions with known moments: grids of kernels, closed-form reductions, certificates, errors."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

import urbe
from oracles import corpus
from urbe import Exact, L1Ball, LInfBall, MomentSet, NestedSets
from urbe.ambiguity.coupled import moment_program, moments
from urbe.testing import check_ambiguity_set
from urbe.testing.sets import small_models


def random_model(seed=0, *, n=4, discount=0.9):
    rng = np.random.default_rng(seed)
    return urbe.MDP.from_dense(rng.dirichlet(np.ones(n), size=(n, 2)), rng.normal(size=(n, 2)), discount=discount)


def worst_on_grid(p, z, mean_error, deviation, radius, confidence, steps=20):
    """The worst law over the kernels of a grid on the simplex: its probabilities are the variables."""
    grid = np.array([g for g in product(range(steps + 1), repeat=len(p)) if sum(g) == steps]) / steps
    away = np.abs(grid - p)
    a_ub, b_ub = [*away.T, *grid.T, *-grid.T], [*([deviation] * len(p)), *(p + mean_error), *(mean_error - p)]
    for r, c in zip(radius, confidence, strict=True):
        a_ub.append(-(away.sum(axis=1) <= r + 1e-12).astype(float))
        b_ub.append(-c)
    return linprog(grid @ z, np.array(a_ub), np.array(b_ub), np.ones((1, len(grid))), [1.0]).fun


@pytest.mark.parametrize(
    ("mean_error", "deviation", "radius", "confidence"),
    [
        (1.0, 1.0, (), ()),
        (0.1, 1.0, (), ()),
        (1.0, 0.1, (), ()),
        (1.0, 1.0, (0.2, 0.8), (0.5, 0.9)),
        (0.05, 0.2, (0.2, 0.8), (0.5, 0.9)),
        (0.3, 0.12, (0.4,), (0.7,)),
    ],
)
def test_no_law_on_a_grid_of_kernels_does_worse_and_some_come_close(mean_error, deviation, radius, confidence):
    """Centre, radii and limits are on the grid, and so are worst laws but for their shares of deviation."""
    p = np.array([0.5, 0.3, 0.2])
    mdp = urbe.MDP.from_dense(np.tile(p, (3, 1, 1)), 0.0, discount=1.0)
    nature = MomentSet(mean_error, deviation, radius, confidence).bind(mdp)
    for v in ([0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [-1.0, 4.0, 0.5], [1.0, 1.0, 0.0]):
        z = np.array(v)
        expected = worst_on_grid(p, z, mean_error, deviation, radius, confidence)
        found = nature.values(z)[0]
        assert found <= expected + 1e-7
        assert found == pytest.approx(expected, abs=0.02 * np.ptp(z))


def test_the_contract_of_sets():
    a_set = MomentSet(mean_error=0.2, deviation=0.15, radius=[0.3], confidence=[0.6])
    check_ambiguity_set(a_set, small_models()["terminal states"])


def test_rewards_of_successors_are_part_of_the_values():
    mdp = small_models()["rewards of successors"]
    v = np.random.default_rng(0).normal(size=3)
    found, expected = (x.bind(mdp).values(v) for x in (MomentSet(mean_error=0.1), LInfBall(0.1)))
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (MomentSet(), L1Ball(2.0)),  # only the support: robust
        (MomentSet(mean_error=0.0), Exact()),  # the mean is known: the model
        (MomentSet(deviation=0.0), Exact()),
        (MomentSet(mean_error=0.07), LInfBall(0.07)),
        (MomentSet(deviation=0.07), LInfBall(0.07)),  # a law without spread has the largest shift
        (MomentSet(radius=[0.3, 1.0], confidence=[0.6, 1.0]), NestedSets((L1Ball(0.3), L1Ball(1.0)), [0.6, 1.0])),
        (MomentSet(radius=[0.0], confidence=[0.8]), urbe.Contamination(0.2)),
    ],
)
def test_laws_with_less_information_are_known_sets(law, same):
    mdp = random_model(1)
    v = np.random.default_rng(0).normal(size=4)
    assert law.bind(mdp).values(v) == pytest.approx(same.bind(mdp).values(v), abs=1e-7)


def test_more_information_never_lowers_a_value():
    mdp = random_model(2)
    v = np.random.default_rng(0).normal(size=4)
    last = MomentSet().bind(mdp).values(v)
    for law in (
        MomentSet(mean_error=0.2),
        MomentSet(mean_error=0.2, deviation=0.15),
        MomentSet(mean_error=0.2, deviation=0.15, radius=[0.4], confidence=[0.5]),
        MomentSet(mean_error=0.2, deviation=0.15, radius=[0.4], confidence=[0.9]),
        MomentSet(mean_error=0.05, deviation=0.15, radius=[0.4], confidence=[0.9]),
    ):
        value = law.bind(mdp).values(v)
        assert (value >= last - 1e-7).all()
        last = value


def test_solutions_are_certified_and_per_pair_numbers_taken():
    mdp = random_model(3)
    law = MomentSet(mean_error=np.full((4, 2), 0.2), deviation=0.1, radius=[0.3], confidence=[0.6])
    solution = urbe.solve(mdp, law)
    assert urbe.certify(solution).holds
    assert "leaves the set" in urbe.certify(solution, mdp, MomentSet(mean_error=0.02)).statement
    assert urbe.evaluate_policy(solution.kernel, solution.policy).value == pytest.approx(solution.value, abs=2e-6)
    assert (solution.value >= urbe.solve(mdp, LInfBall(0.1)).lower).all()


def test_an_upper_bound_does_not_rest_on_the_precision_of_the_program(monkeypatch):
    """A plan that breaks the limits by 5e-10 is within HiGHS's tolerances, but is not a distribution of the set."""
    p, z = np.array([0.5, 0.3, 0.2]), np.array([3.0, 1.0, 0.0])
    nature = MomentSet(mean_error=0.1).bind(urbe.MDP.from_dense(np.tile(p, (3, 1, 1)), 0.0, discount=1.0))
    q = p + np.array([-0.1 - 5e-10, 0.0, 0.1 + 5e-10])
    plan = SimpleNamespace(x=np.concatenate([q, np.abs(q - p), [1.0, 0.0]]), fun=0.0, status=0)
    monkeypatch.setattr(moment_program, "minimise", lambda *_: plan)
    evidence = nature.evidence(replace(nature.rows, probability=np.tile(q, 3)))
    assert not evidence.outside.any()
    assert (evidence.above(z) >= 1.5).all()  # the least value, .5 z by hand
    assert (evidence.above(z) <= 1.5 + 1e-13).all()


@pytest.mark.parametrize("seed", range(6))
def test_members_keep_every_limit_wherever_they_start(seed):
    rng = np.random.default_rng(seed)
    p, mean_error, deviation = rng.dirichlet(np.ones(4)), float(rng.choice([0.0, 1e-12, 0.1])), float(rng.random() / 4)
    radius, confidence = np.array([0.0, 0.3, 2.0]), np.array([0.2, 0.7, 1.0])
    block = moment_program.Block(p, mean_error, deviation, radius, confidence)
    cost = rng.normal(size=4)
    x = moment_program.minimise(block.cost(cost), block.matrix, block.bound, block.equal, block.right).x
    for noise in (0.0, 1e-9, 1e-3, 1.0):
        mean = block.member(x + noise * rng.normal(size=len(x))).astype(float)
        assert abs(mean.sum() - 1.0) <= 1e-15
        assert np.abs(block.nearest(mean) - mean).max() <= 1e-9
        assert np.abs(mean - p).max() <= min(mean_error, deviation) + 1e-16
    assert block.member(x).astype(float) @ cost == pytest.approx(block.cost(cost) @ x, abs=1e-8)


def test_answers_that_duality_does_not_prove_are_errors(monkeypatch):
    monkeypatch.setattr(moments, "ACCURACY", -1.0)
    with pytest.raises(RuntimeError, match=r"The moment problem of row 0 was solved only to"):
        MomentSet(mean_error=0.1).bind(random_model()).values(np.arange(4.0))


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"confidence has 0 entries, expected one for each of 1 balls"):
        MomentSet(radius=[0.1])
    with pytest.raises(ValueError, match=r"radius\[1\] is 0\.1, expected increasing numbers"):
        MomentSet(radius=[0.2, 0.1], confidence=[0.5, 0.6])
    with pytest.raises(ValueError, match=r"confidence\[0\] is 1\.2, expected increasing numbers in \[0, 1\]"):
        MomentSet(radius=[0.2], confidence=[1.2])
    with pytest.raises(ValueError, match=r"mean_error is -1 for state 0, action 0, expected a number in \[0, inf\]"):
        MomentSet(mean_error=-1.0).bind(random_model())
    with pytest.raises(ValueError, match=r"deviation cannot be read as an array of numbers"):
        MomentSet(deviation="small")


def test_presolving_that_finds_a_feasible_program_infeasible_is_left_out():
    assert corpus.violations("moments", 439) == []
