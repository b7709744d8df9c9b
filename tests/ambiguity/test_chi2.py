"""Chi-square balls: closed form, clipping."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.strategies import radii, rows
from oracles import divergences
from oracles.worst_case import one_row_model
from urbe.ambiguity.chi2 import Chi2Ball
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@pytest.mark.parametrize(("radius", "value"), [(0.0, 2.3), (0.1, 1.851670), (1.0, 1.115587), (1.5, 1.0), (1e6, 1.0)])
def test_numbers_of_the_specification(radius, value):
    for support in ("nominal", "all"):
        nature = Chi2Ball(radius, support).bind(one_row_model(P))
        assert nature.values(Z)[0] == pytest.approx(value, abs=5e-7)
        assert nature.worst_case(Z).value[0] == pytest.approx(value, abs=5e-7)


@given(row=rows(), radius=radii(3.0), scale=st.sampled_from([1e-8, 1.0, 1e8]))
@settings(deadline=None, max_examples=25)
def test_agrees_with_forty_digits(row, radius, scale):
    p, z = row[0], row[1] * scale
    divergences.check_row(Chi2Ball(radius), p, z, divergences.chi2(p, z, radius))


@pytest.mark.parametrize(
    ("p", "z", "radius"),
    [
        ([1e-9, 1 - 1e-9], [0.0, 1.0], 1.0),  # the lowest successor is nearly impossible
        ([1 - 1e-9, 1e-9], [0.0, 1.0], 1e-10),  # and nearly certain
        ([0.3, 0.3, 0.4], [0.0, 1e-9, 1.0], 0.9),  # two scales
        ([0.25, 0.25, 0.5], [0.0, 0.0, 1.0], 1 - 1e-12),  # just short of the ties
        ([0.25, 0.25, 0.5], [0.0, 0.0, 1.0], 1.0),
        ([0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 2.0, 3.0], 1e5),
        ([0.5, 0.5], [0.0, 1.0], 1e-29),
        ([0.5, 0.5], [1e8, 1e8 + 1.0], 0.3),
        ([1 - 4.3e-11, 1.4e-11, 2.9e-11], [1.5, -1.1, 0.6], 5.4),
    ],
)
def test_hard_rows(p, z, radius):
    p, z = np.array(p), np.array(z)
    divergences.check_row(Chi2Ball(radius), p, z, divergences.chi2(p, z, radius))


def test_closed_form_while_nothing_is_clipped():
    mean = P @ Z
    for radius in (1e-12, 0.01, 0.1):
        expected = mean - np.sqrt(radius * (P @ (Z - mean) ** 2))
        assert Chi2Ball(radius).bind(one_row_model(P)).values(Z)[0] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0])
def test_contract(radius):
    check_ambiguity_set(
        Chi2Ball(radius),
        oracle=lambda p, z: divergences.chi2(p, np.where(p > 0, z, 0.0), radius),
        oracle_tolerance=1e-13,
    )


def test_contract_of_the_other_support():
    check_ambiguity_set(Chi2Ball(0.3, "all"))


def test_a_mean_within_rounding_of_its_successor_is_not_taken_for_the_level():
    """All mass fits on the lowest successor: 1 / p - 1 is just below the radius."""
    tiny = 2.0**-53
    nature = Chi2Ball(2.0**53 + 2.0).bind(one_row_model([tiny, 1.0, tiny]))
    assert nature.values(np.array([-1.386, 0.211, -0.492]))[0] == pytest.approx(-1.386, abs=1e-12)
