"""Likelihood regions: mass inside the row, and mass moved to the lowest state outside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import divergences
from oracles.worst_case import one_row_model
from urbe.ambiguity.likelihood import LikelihoodRegion
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.1, 1.744667), (1e4, 1.0)])
def test_numbers_of_the_specification(radius, value):
    for support in ("nominal", "all"):
        nature = LikelihoodRegion(radius, support).bind(one_row_model(P))
        assert nature.values(Z)[0] == pytest.approx(value, abs=5e-7)
        assert nature.worst_case(Z).value[0] == pytest.approx(value, abs=5e-7)


@given(
    row=rows(),
    radius=radii(3.0),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    everywhere=st.booleans(),
    listed=st.booleans(),
)
@settings(deadline=None, max_examples=25)
def test_agrees_with_forty_digits(row, radius, scale, everywhere, listed):
    p, z = row[0], row[1] * scale
    region = LikelihoodRegion(radius, "all" if everywhere else "nominal")
    divergences.check_row(region, p, z, divergences.likelihood(p, z, radius, everywhere), keep_zeros=listed)


@pytest.mark.parametrize(
    ("p", "z", "radius"),
    [
        ([1e-9, 1 - 1e-9], [0.0, 1.0], 1.0),  # the lowest successor is nearly impossible
        ([1 - 1e-9, 1e-9], [0.0, 1.0], 1e-10),  # and nearly certain
        ([0.3, 0.3, 0.4], [0.0, 1e-9, 1.0], 1.0),  # two scales
        ([0.3, 0.3, 0.4], [0.0, 1e-12, 1.0], 10.0),
        ([0.5, 0.5], [0.0, 1.0], 30.0),  # X far below the rounding of the values
        ([0.5, 0.5], [0.0, 1.0], 1e-20),
        ([0.5, 0.5], [0.0, 1.0], 1e-29),
        ([0.5, 0.5], [1e8, 1e8 + 1.0], 0.3),
        ([0.5, 0.5, 0.0], [1.0, 1.0, 0.0], 0.3),  # one value inside, a lower one outside
        ([1.0, 0.0], [1.0, 0.0], 0.3),
        ([0.5, 0.5, 0.0], [0.0, 1.0, 0.0], 0.3),  # as low outside as inside
        ([0.5, 0.5, 0.0], [1e-9, 1.0, 0.0], 3.0),  # hardly lower
        ([0.5, 0.5, 0.0], [1e-9, 1.0, 0.0], 9.0),
        ([0.5, 0.5, 0.0], [1.0, 2.0, 3.0], 0.3),
    ],
)
def test_hard_rows(p, z, radius):
    p, z = np.array(p), np.array(z)
    divergences.check_row(LikelihoodRegion(radius), p, z, divergences.likelihood(p, z, radius))
    expected = divergences.likelihood(p, z, radius, True)
    for listed in (False, True):
        divergences.check_row(LikelihoodRegion(radius, "all"), p, z, expected, keep_zeros=listed)


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0])
def test_contract(radius):
    check_ambiguity_set(
        LikelihoodRegion(radius),
        oracle=lambda p, z: divergences.likelihood(p, np.where(p > 0, z, 0.0), radius),
        oracle_tolerance=1e-13,
    )


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0])
def test_contract_of_any_successor(radius):
    check_ambiguity_set(
        LikelihoodRegion(radius, "all"),
        oracle=lambda p, z: divergences.likelihood(p, z, radius, True),
        oracle_tolerance=1e-13,
    )


def test_every_successor_of_the_model_keeps_some_mass():
    nature = LikelihoodRegion(0.5).bind(one_row_model([0.5, 0.5]))
    assert (nature.worst_case(np.array([0.0, 1.0])).rows.probability > 0.0).all()
    assert nature.excess(one_row_model([1.0, 0.0]).rows)[0] == np.inf


def test_only_the_lowest_state_outside_receives_mass():
    mdp, v = one_row_model([0.5, 0.5, 0.0, 0.0]), np.array([1.0, 2.0, -1.0, -5.0])
    q = LikelihoodRegion(0.2, "all").bind(mdp).worst_case(v).rows
    assert q.successor.tolist() == [0, 1, 3]
    # c p / y with y = (6, 7) and c = sqrt(6 * 7) exp(-0.2)
    assert q.probability[:2] == pytest.approx(np.sqrt(42.0) * np.exp(-0.2) * 0.5 / np.array([6.0, 7.0]), abs=1e-14)
    assert q.probability.sum() == pytest.approx(1.0, abs=1e-15)
