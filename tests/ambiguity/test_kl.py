"""KL balls, and the exponentials and logarithms with which they are computed."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from fixtures.strategies import radii, rows
from oracles import divergences
from oracles.worst_case import one_row_model
from urbe.ambiguity.exponential import LOG2_E, log_of, power_of_two, relative_entropy
from urbe.ambiguity.kl import KLBall
from urbe.testing import check_ambiguity_set

P, Z = np.array([0.4, 0.3, 0.1, 0.2]), np.array([1.0, 2.0, 5.0, 4.0])


@njit
def _powers(t):
    a, b = np.empty_like(t), np.empty_like(t)
    for j in range(len(t)):
        a[j], b[j] = power_of_two(t[j])
    return a, b


@njit
def _logs(x):
    out = np.empty_like(x)
    for j in range(len(x)):
        out[j] = log_of(x[j], x[j] - 1.0)
    return out


@njit
def _divergence(a, b):
    return relative_entropy(a, b)


def test_powers_of_two_and_logarithms_are_good_to_a_few_units_in_the_last_place():
    t = np.concatenate([np.linspace(-40, 0, 20001), -np.logspace(-300, 2.9, 5000), np.arange(-999.5, 0.0, 0.5), [0.0]])
    power, less = _powers(t)
    assert power == pytest.approx([2.0**x for x in t], rel=5e-16, abs=0)
    assert less == pytest.approx([math.expm1(x * math.log(2)) for x in t], rel=5e-16, abs=1e-300)
    x = np.concatenate([np.logspace(-290, 10, 20001), np.linspace(0.4, 2.0, 20001)])
    assert _logs(x) == pytest.approx([math.log(y) for y in x], rel=7e-16, abs=0)
    assert 1 / math.log(2) == LOG2_E


@pytest.mark.parametrize("apart", [1e-6, 1e-3, 0.01, 0.05, 0.5])
def test_divergences_of_rows_that_differ_little_keep_their_digits(apart):
    b = np.array([0.4, 0.3, 0.1, 0.2])
    a = b * (1.0 + apart * np.array([1.0, -1.0, 0.5, -0.75]))
    terms = [x * (x / y).ln() - x + y for x, y in zip(map(Decimal, a), map(Decimal, b), strict=True)]
    # 1e-11: where the series ends, at 2^-8, logarithms of 1e-16 leave 1e-16 / 0.01^2
    assert _divergence(a, b) == pytest.approx(float(sum(terms)), rel=1e-11, abs=0)
    assert _divergence(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2.0), rel=1e-15)
    assert _divergence(np.array([0.5, 0.5]), np.array([0.0, 1.0])) == np.inf


def test_exponents_below_the_range_count_as_its_end():
    assert _powers(np.array([-1e300, -5000.0]))[0] == pytest.approx(2.0**-1000, rel=1e-15)


@pytest.mark.parametrize(
    ("radius", "value"), [(0.0, 2.3), (0.01, 2.103209), (0.1, 1.709620), (0.5, 1.171141), (0.9163, 1.0), (5.0, 1.0)]
)
def test_numbers_of_the_specification(radius, value):
    for support in ("nominal", "all"):
        nature = KLBall(radius, support).bind(one_row_model(P))
        assert nature.values(Z)[0] == pytest.approx(value, abs=5e-7)
        assert nature.worst_case(Z).value[0] == pytest.approx(value, abs=5e-7)


@given(row=rows(), radius=radii(3.0), scale=st.sampled_from([1e-8, 1.0, 1e8]))
@settings(deadline=None, max_examples=25)
def test_agrees_with_forty_digits(row, radius, scale):
    p, z = row[0], row[1] * scale
    divergences.check_row(KLBall(radius), p, z, divergences.kl(p, z, radius))


@pytest.mark.parametrize(
    ("p", "z", "radius"),
    [
        ([1e-9, 1 - 1e-9], [0.0, 1.0], 1.0),  # the lowest successor is nearly impossible
        ([1 - 1e-9, 1e-9], [0.0, 1.0], 1e-10),  # and nearly certain
        ([0.3, 0.3, 0.4], [0.0, 1e-9, 1.0], 1.0),  # two scales: the divergence has a plateau
        ([0.3, 0.3, 0.4], [0.0, 1e-12, 1.0], -math.log(0.6) + 1e-9),
        ([0.25, 0.25, 0.5], [0.0, 0.0, 1.0], math.log(2) * (1 - 1e-12)),  # just short of the ties
        ([0.5, 0.5], [0.0, 1.0], 1e-20),
        ([0.5, 0.5], [0.0, 1.0], 1e-29),
        ([0.5, 0.5], [1e8, 1e8 + 1.0], 0.3),
    ],
)
def test_hard_rows(p, z, radius):
    p, z = np.array(p), np.array(z)
    divergences.check_row(KLBall(radius), p, z, divergences.kl(p, z, radius))


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0])
def test_contract(radius):
    check_ambiguity_set(
        KLBall(radius), oracle=lambda p, z: divergences.kl(p, np.where(p > 0, z, 0.0), radius), oracle_tolerance=1e-13
    )


def test_contract_of_the_other_support():
    check_ambiguity_set(KLBall(0.3, "all"))
