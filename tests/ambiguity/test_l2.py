"""L2 balls: closed form, clipping, states of probability zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import divergences
from oracles.worst_case import one_row_model
from urbe.ambiguity.l2 import L2Ball
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(
    ("radius", "value"), [(0.0, 2.3), (0.01, 2.3 - 0.03162278), (0.1, 2.3 - 0.3162278), (0.9, 1.0), (1e6, 1.0)]
)
def test_numbers_of_the_specification(radius, value):
    for support in ("nominal", "all"):
        nature = L2Ball(radius, support).bind(one_row_model(P))
        assert nature.values(Z)[0] == pytest.approx(value, abs=5e-7)
        assert nature.worst_case(Z).value[0] == pytest.approx(value, abs=5e-7)


@given(row=rows(6), radius=radii(1.5), scale=st.sampled_from([1e-8, 1.0, 1e8]), everywhere=st.booleans())
@settings(deadline=None, max_examples=30)
def test_agrees_with_forty_digits(row, radius, scale, everywhere):
    p, z = row[0], row[1] * scale
    ball = L2Ball(radius, "all" if everywhere else "nominal")
    divergences.check_row(ball, p, z, divergences.l2(p, z, radius, everywhere))


@pytest.mark.parametrize(
    ("p", "z", "radius"),
    [
        ([1e-9, 1 - 1e-9], [0.0, 1.0], 0.3),  # the lowest successor is nearly impossible
        ([1 - 1e-9, 1e-9], [0.0, 1.0], 1e-10),  # and nearly certain
        ([0.3, 0.3, 0.4], [0.0, 1e-9, 1.0], 0.5),  # two scales
        ([0.25, 0.25, 0.5], [0.0, 0.0, 1.0], 0.375**0.5 * (1 - 1e-12)),  # just short of the ties
        ([0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 2.0, 3.0], 0.4),
        ([0.97, 0.01, 0.01, 0.01], [0.0, 1.0, 2.0, 3.0], 0.011),  # small entries leave one by one
        ([0.97, 0.01, 0.01, 0.01], [3.0, 2.0, 1.0, 0.0], 0.9),
        ([0.5, 0.5], [0.0, 1.0], 1e-29),
        ([0.5, 0.5], [0.0, 1.0], 1e-200),
        ([0.5, 0.5], [1e8, 1e8 + 1.0], 0.3),
    ],
)
def test_hard_rows(p, z, radius):
    p, z = np.array(p), np.array(z)
    divergences.check_row(L2Ball(radius), p, z, divergences.l2(p, z, radius))


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.6])
def test_contract(radius):
    check_ambiguity_set(
        L2Ball(radius), oracle=lambda p, z: divergences.l2(p, np.where(p > 0, z, 0.0), radius), oracle_tolerance=1e-13
    )


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.6])
def test_contract_of_any_successor(radius):
    check_ambiguity_set(
        L2Ball(radius, "all"), oracle=lambda p, z: divergences.l2(p, z, radius, True), oracle_tolerance=1e-13
    )


def test_closed_form_while_nothing_is_clipped():
    for radius in (1e-12, 0.01, 0.1):
        expected = P @ Z - radius * np.linalg.norm(Z - Z.mean())
        assert L2Ball(radius).bind(one_row_model(P)).values(Z)[0] == pytest.approx(expected, abs=1e-14)


def test_states_of_probability_zero_receive_mass_only_when_they_may():
    mdp, v = one_row_model([0.5, 0.5, 0.0]), np.array([1.0, 2.0, -5.0])
    assert L2Ball(0.1).bind(mdp).values(v)[0] == pytest.approx(1.5 - 0.1 * 0.5**0.5, abs=1e-14)
    everywhere = L2Ball(0.1, "all").bind(mdp)
    assert everywhere.worst_case(v).rows.probability[2] > 0.0
    assert everywhere.values(v)[0] == pytest.approx(divergences.l2([0.5, 0.5, 0.0], v, 0.1, True), abs=1e-14)
