"""Contamination: a share of the mass is chosen by nature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import worst_case as lp
from urbe.ambiguity.contamination import Contamination
from urbe.mdp.model import MDP
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(("fraction", "value"), [(0.0, 2.3), (0.2, 2.04), (1.0, 1.0)])
def test_numbers_of_the_specification(fraction, value):
    assert Contamination(fraction).bind(lp.one_row_model(P)).values(Z)[0] == pytest.approx(value, abs=1e-15)


@given(row=rows(), fraction=radii(1.0), everywhere=st.booleans())
@settings(deadline=None)
def test_agrees_with_the_linear_program(row, fraction, everywhere):
    p, z = row
    nature = Contamination(fraction, "all" if everywhere else "nominal").bind(lp.one_row_model(p))
    receivers = np.ones(len(p), bool) if everywhere else None
    scale = 1 + np.abs(z).max()
    value = nature.values(z)[0]
    assert value == pytest.approx(lp.contamination(p, z, fraction, receivers), abs=lp.LP_TOLERANCE * scale)
    worst = nature.worst_case(z)
    assert worst.value[0] == pytest.approx(value, abs=1e-14 * scale)
    assert nature.excess(worst.rows)[0] <= 1e-14
    assert nature.dual_bound(z)[0] == pytest.approx(value, abs=1e-14 * scale)


@pytest.mark.parametrize("support", ["nominal", "all"])
@pytest.mark.parametrize("fraction", [0.0, 0.2, 1.0])
def test_contract(support, fraction):
    def oracle(p, z):
        return lp.contamination(p, z, fraction, np.ones(len(p), bool) if support == "all" else None)

    check_ambiguity_set(Contamination(fraction, support), oracle=oracle)


def test_sensitivity_is_what_the_specification_says():
    worst = Contamination(0.2).bind(lp.one_row_model(P)).worst_case(Z)
    assert worst.sensitivity == pytest.approx(0.8 * Z, abs=1e-15)


def test_fraction_per_pair_and_its_errors():
    mdp = MDP.from_dense(np.full((2, 1, 2), 0.5), 0.0, discount=1.0)
    assert Contamination([[0.0], [1.0]]).bind(mdp).values(np.array([0.0, 1.0])) == pytest.approx([0.5, 0.0])
    with pytest.raises(ValueError, match=r"fraction is 1\.5 for state 1, action 0, expected a number in \[0, 1\]"):
        Contamination([[0.0], [1.5]]).bind(mdp)
    with pytest.raises(ValueError, match="support is 'none'"):
        Contamination(0.1, "none").bind(mdp)
