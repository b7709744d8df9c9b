"""Distributions within nested sets: linear programs, reductions, random distributions, errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import urbe
from urbe import Contamination, Exact, L1Ball, NestedSets
from urbe.testing import check_ambiguity_set
from urbe.testing.sets import small_models

LEVELS = (0.3, 0.8, 1.0)


def random_model(seed, *, n=4, discount=0.9):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size=(n, 2))
    return urbe.MDP.from_dense(p, rng.normal(size=(n, 2)), discount=discount)


def l1_program(p, z, radius):
    """The worst value in an L1 ball on the row's own successors."""
    own = p > 0.0
    p, z, n, eye = p[own], z[own], int(own.sum()), np.eye(int(own.sum()))
    a_ub = np.block([[eye, -eye], [-eye, -eye], [np.zeros(n), np.ones(n)]])
    return linprog(np.r_[z, np.zeros(n)], a_ub, np.r_[p, -p, radius], np.r_[np.ones(n), np.zeros(n)][None], [1.0]).fun


def by_programs(p, z):
    own = p > 0.0
    return 0.3 * float(p[own] @ z[own]) + 0.5 * l1_program(p, z, 0.3) + 0.2 * l1_program(p, z, 1.0)


MODELS = small_models()


def test_the_contract_of_sets_with_linear_programs():
    nested = NestedSets((Exact(), L1Ball(0.3), L1Ball(1.0)), LEVELS)
    check_ambiguity_set(nested, MODELS["sparse rows"], oracle=by_programs)


@pytest.mark.parametrize("model", ["ties", "one state", "terminal states", "rewards of successors"])
def test_the_contract_of_sets(model):
    # where values tie, every row has a kink, and there is no derivative to compare
    moves = model not in ("ties", "one state")
    check_ambiguity_set(NestedSets((Contamination(0.1), L1Ball(0.6)), (0.6, 1.0)), MODELS[model], center_moves=moves)


def test_the_contract_where_mass_may_go_anywhere():
    nested = NestedSets((L1Ball(0.2), L1Ball(0.5, support="all")), (0.6, 1.0))
    check_ambiguity_set(nested, MODELS["sparse rows"])


def test_one_set_is_the_set_itself():
    mdp = random_model(0)
    one, other = urbe.solve(mdp, NestedSets((L1Ball(0.4),), [1.0])), urbe.solve(mdp, L1Ball(0.4))
    assert one.value == pytest.approx(other.value, abs=1e-9)
    certain = urbe.solve(mdp, NestedSets((Exact(), L1Ball(2.0)), [1.0, 1.0]))
    assert certain.value == pytest.approx(urbe.solve(mdp).value, abs=2e-6)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_model_or_anything_is_contamination(share):
    mdp = random_model(1)
    nested = NestedSets((Exact(), L1Ball(2.0)), [1.0 - share, 1.0])
    v = np.random.default_rng(0).normal(size=4)
    expected = Contamination(share).bind(mdp).values(v)
    assert nested.bind(mdp).values(v) == pytest.approx(expected, abs=1e-14)
    assert urbe.solve(mdp, nested).value == pytest.approx(urbe.solve(mdp, Contamination(share)).value, abs=2e-6)


def test_values_rise_with_every_confidence_and_lie_between_the_sets():
    mdp = random_model(2)
    sets = (Exact(), L1Ball(0.3), L1Ball(0.9))
    last = urbe.solve(mdp, sets[2]).value
    for levels in (
        [0.0, 0.0, 1.0],
        [0.0, 0.4, 1.0],
        [0.2, 0.4, 1.0],
        [0.2, 0.9, 1.0],
        [0.9, 0.9, 1.0],
        [1.0, 1.0, 1.0],
    ):
        value = urbe.solve(mdp, NestedSets(sets, levels)).value
        assert (value >= last - 2e-6).all()
        last = value
    assert last == pytest.approx(urbe.solve(mdp).value, abs=2e-6)


def test_methods_certificates_and_policies_agree():
    mdp = random_model(3)
    nested = NestedSets((Exact(), L1Ball(0.3), L1Ball(0.9)), LEVELS)
    solution = urbe.solve(mdp, nested)
    assert urbe.certify(solution).holds
    assert urbe.certify(urbe.solve(mdp, nested, urbe.BackwardInduction(3))).holds
    assert urbe.certify(urbe.evaluate_policy(mdp, np.full((4, 2), 0.5), nested)).holds
    assert urbe.solve(mdp, nested, urbe.ValueIteration()).value == pytest.approx(solution.value, abs=2e-6)
    assert urbe.evaluate_policy(solution.kernel, solution.policy).value == pytest.approx(solution.value, abs=2e-6)
    low = replace(solution, lower=solution.lower - 1e-3, upper=solution.upper - 1e-3, value=solution.value - 1e-3)
    assert "upper bound" in urbe.certify(low).statement
    assert "leaves the set" in urbe.certify(solution, mdp, NestedSets((Exact(), L1Ball(0.1)), [0.5, 1.0])).statement
    curved = NestedSets((urbe.KLBall(0.05), urbe.Chi2Ball(1.0)), [0.5, 1.0])
    assert urbe.certify(urbe.solve(mdp, curved)).holds
    best = urbe.solve(mdp, urbe.Optimistic(nested))
    assert urbe.certify(best).holds
    assert (best.value > solution.value).all()


def test_certificates_refuse_members_that_are_not_the_worst():
    model = random_model(0)
    a_set = urbe.NestedSets((urbe.Exact(), urbe.L1Ball(0.5)), [0.5, 1.0])
    solution = urbe.solve(model, a_set)
    assert urbe.certify(solution).holds
    solution.__dict__["kernel"] = model
    assert "upper bound" in urbe.certify(solution).statement


def test_total_reward_without_discounting():
    p = np.array([[[0.5, 0.3, 0.2]], [[0.2, 0.3, 0.5]], [[0.0, 0.0, 1.0]]])
    mdp = urbe.MDP.from_dense(p, [[-1.0], [-2.0], [0.0]], discount=1.0, terminal=[2])
    assert urbe.certify(urbe.solve(mdp, NestedSets((Exact(), L1Ball(0.3)), [0.5, 1.0]))).holds


def test_no_law_within_the_confidences_does_worse_on_average():
    """Kernels drawn anew at every visit: only their mean matters, row by row, and it is drawn at random here."""
    mdp, rng = random_model(4), np.random.default_rng(0)
    p, reward = mdp.to_dense()
    nested = NestedSets((L1Ball(0.1), L1Ball(0.5), L1Ball(1.2)), LEVELS)
    solution = urbe.solve(mdp, nested)
    for _ in range(200):
        mean = np.zeros_like(p)
        for weight, radius in zip(np.diff([0.0, *LEVELS]), (0.1, 0.5, 1.2), strict=True):
            far = rng.dirichlet(np.full(4, 0.1), size=(4, 2))
            most = np.minimum(1.0, radius / np.maximum(np.abs(far - p).sum(axis=2), 1e-12))
            mean += weight * (p + (rng.uniform(size=(4, 2)) * most)[..., None] * (far - p))
        world = urbe.MDP.from_dense(mean, reward, discount=0.9)
        assert (urbe.evaluate_policy(world, solution.policy).value >= solution.lower - 1e-9).all()


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match=r"sets is empty"):
        NestedSets((), [])
    with pytest.raises(ValueError, match=r"confidence has 1 entries, expected one for each of 2 sets"):
        NestedSets((Exact(), L1Ball(0.1)), [1.0])
    with pytest.raises(ValueError, match=r"confidence\[1\] is 0\.4, expected at least 0\.5: a larger set"):
        NestedSets((Exact(), L1Ball(0.1), L1Ball(0.2)), [0.5, 0.4, 1.0])
    with pytest.raises(ValueError, match=r"confidence\[1\] is 0\.9, expected 1: the last set is certain"):
        NestedSets((Exact(), L1Ball(0.1)), [0.5, 0.9])
    with pytest.raises(ValueError, match=r"sets\[0\] is .*is not solved row by row"):
        NestedSets((urbe.SRectangular(L1Ball(0.1)),), [1.0])
    with pytest.raises(TypeError, match=r"sets\[0\] is 0\.1, expected a set that chooses"):
        NestedSets((0.1,), [1.0])
