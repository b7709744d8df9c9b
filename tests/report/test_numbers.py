"""Numbers as text: significant digits, aligned columns, verdicts that follow from intervals."""

import math

import pytest

from urbe.report.numbers import decimals, interval_column, interval_text, number
from urbe.statistics.estimates import ConfidenceInterval


@pytest.mark.parametrize(
    ("value", "text"), [(-1e-12, "0"), (0.0, "0"), (1234.56789, "1234.57"), (-0.25, "-0.25"), (2e-7, "2e-07")]
)
def test_numbers_read_well(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("half", "places"), [(1000.0, 0), (10.0, 0), (9.9, 1), (1.0, 1), (0.5, 2), (0.02, 3), (1e-30, 9), (0.0, 3)]
)
def test_decimals_show_two_digits_of_the_width(half, places):
    assert decimals([ConfidenceInterval(5.0, 5.0 - half, 5.0 + half)]) == (places if half != 1e-30 else 3)
    assert decimals([ConfidenceInterval(0.0, -half, half)]) == places


def test_infinite_widths_do_not_count():
    assert decimals([ConfidenceInterval(1.0, -math.inf, math.inf), ConfidenceInterval(1.0, 0.5, 1.5)]) == 2


def test_a_column_has_the_same_decimals_and_widths():
    column = interval_column([ConfidenceInterval(-0.001, -0.5, 0.5), None, ConfidenceInterval(10.0, 9.5, 10.5)])
    assert column == ("0.00 [-0.50, \u20070.50]", "-", "10.00 [\u20079.50, 10.50]")
    assert interval_column([]) == ()
    assert interval_column([None]) == ("-",)


def test_text_of_an_interval():
    assert interval_text(ConfidenceInterval(1.0, -0.0001, 2.0), 2) == "1.00 [0.00, 2.00]"
