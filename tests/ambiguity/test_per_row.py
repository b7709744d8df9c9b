"""Sets that differ by row: each row behaves like its own set, in nature and in solvers."""

from dataclasses import replace

import numpy as np
import pytest

import urbe
from urbe import Exact, KLBall, L1Ball, LInfBall, Optimistic, PerRow, Scenarios, certify, solve
from urbe.testing import check_ambiguity_set, small_models

SETS = (Exact(), L1Ball(0.4), KLBall(0.2), LInfBall(0.1))
GARNET = urbe.library.garnet(12, 3, 4, seed=1, discount=0.9)
CHOICE = np.arange(36) % 4


def mixed(mdp):
    """All four sets in turn, over the rows of any model."""
    return PerRow(SETS, np.arange(mdp.n_rows) % 4)


def test_the_contract():
    check_ambiguity_set(mixed)
    check_ambiguity_set(lambda mdp: Optimistic(mixed(mdp)), optimistic=True)


@pytest.mark.parametrize("name", small_models())
def test_every_answer_is_that_of_the_rows_own_set(name):
    mdp = small_models()[name]
    nature, v = mixed(mdp).bind(mdp), np.random.default_rng(0).normal(size=mdp.n_states)
    u = np.random.default_rng(1).random(mdp.n_states)
    worst, moments = nature.worst_case(v), nature.moments(v, 0.5, u)
    for row in range(mdp.n_rows):
        own = SETS[row % 4].bind(mdp)
        assert nature.values(v)[row] == own.values(v)[row]
        assert nature.dual_bound(v)[row] == own.dual_bound(v)[row]
        assert [x[row] for x in moments] == [x[row] for x in own.moments(v, 0.5, u)]
        expected = own.worst_case(v).rows
        a, b = worst.rows.entry_start[row : row + 2]
        c, d = expected.entry_start[row : row + 2]
        assert worst.rows.successor[a:b].tolist() == expected.successor[c:d].tolist()
        assert worst.rows.probability[a:b].tolist() == expected.probability[c:d].tolist()


def test_successors_outside_a_row_are_listed_where_its_set_has_them():
    mixed_support = PerRow((L1Ball(0.5), L1Ball(0.5, support="all")), CHOICE % 2)
    solution = solve(GARNET, mixed_support)
    assert certify(solution).holds
    grown = solution.kernel.rows.length - GARNET.rows.length
    assert (grown[CHOICE % 2 == 0] == 0).all()
    assert (grown[CHOICE % 2 == 1] >= 0).all()
    assert grown.any()


def test_solutions_are_certified_and_lie_between_those_of_single_sets():
    solution = solve(GARNET, PerRow((Exact(), L1Ball(0.4)), CHOICE % 2))
    assert certify(solution).holds
    assert (solve(GARNET, L1Ball(0.4)).lower <= solution.upper).all()
    assert (solution.lower <= solve(GARNET).upper).all()
    high = replace(solution, lower=solution.lower + 1e-3, upper=solution.upper + 1e-3, value=solution.value + 1e-3)
    assert not certify(high).holds


def test_without_discounting_and_with_quantiles():
    mdp = urbe.library.gambler(8)
    kernels = [mdp, mdp]
    sets = PerRow((L1Ball(0.05), urbe.ValueAtRisk(kernels, 0.5), Scenarios(kernels)), np.arange(mdp.n_rows) % 3)
    assert certify(solve(mdp, sets)).holds


def test_refusals():
    with pytest.raises(ValueError, match="sets is empty"):
        PerRow((), 0)
    with pytest.raises(TypeError, match=r"sets\[1\] is 0\.5, expected a set that chooses each row"):
        PerRow((Exact(), 0.5), 0)
    with pytest.raises(ValueError, match="choice is 4 for state 0, action 0"):
        PerRow(SETS, 4).bind(GARNET)
    with pytest.raises(ValueError, match=r"choice of state 0, action 0 is 0\.5, expected a whole number"):
        PerRow(SETS, 0.5).bind(GARNET)
