"""The rule of verdicts: coverage by simulation, each outcome, ties, few replicates, premises, and its own text."""

import re
from itertools import product

import numpy as np
import pytest
from scipy import stats

from urbe.statistics.estimates import mean_interval
from urbe.statistics.verdicts import (
    OUTCOMES,
    PROBABILITY,
    ExactNumber,
    Mean,
    Question,
    Ratio,
    Rule,
    Share,
    Test,
)

RULE = Rule()


def asked(*samples, number=0.0, side="above", **options):
    return Test([Question("x", Mean(np.array(samples)), number, side)], **options)


def outcomes(*tests, rule=RULE):
    return [found.outcome for found in rule.judge(tests)]


# Intervals


@pytest.mark.parametrize("n", [1, 7, 40])
def test_shares_have_clopper_and_pearson_s_interval_within_the_unit_interval(n):
    for k, confidence in product(range(n + 1), (0.95, 0.999)):
        found = Share(k, n).interval(confidence)
        exact = stats.binomtest(k, n).proportion_ci(confidence, "exact")
        assert found == pytest.approx((k / n, exact.low, exact.high), abs=1e-12)
        assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9, 0.97])
def test_intervals_of_shares_cover_at_least_as_often_as_they_say(p):
    n = 25
    for confidence in (0.95, 0.99):
        intervals = [Share(k, n).interval(confidence) for k in range(n + 1)]
        covered = [interval.low <= p <= interval.high for interval in intervals]
        assert stats.binom.pmf(np.arange(n + 1), n, p) @ covered >= confidence  # exact, by summing over all k


def test_means_of_probabilities_have_intervals_within_the_unit_interval():
    samples = np.array([0.9, 1.0, 1.0, 0.95])
    found, plain = Mean(samples, PROBABILITY).interval(0.95), mean_interval(samples)
    assert plain.high > 1.0 == found.high
    assert found[:2] == pytest.approx(plain[:2], abs=1e-9)


def test_ratios_are_judged_by_their_logarithms():
    samples = np.array([2.0, 4.0, 8.0])
    found = Ratio(samples).interval(0.9)
    assert found == pytest.approx(np.exp(mean_interval(np.log(samples), confidence=0.9)))
    assert found.estimate == pytest.approx(4.0)


def test_more_successes_than_trials_and_no_trials_are_refused():
    with pytest.raises(ValueError, match="successes is 3, expected at most the 2 trials"):
        Share(3, 2)
    with pytest.raises(ValueError, match="trials"):
        Share(0, 0)


# Coverage of a whole claim


def test_intervals_of_a_claim_cover_together_and_few_true_claims_are_rejected():
    """Three readings with two comparisons each, all true values 0: errs anywhere in at most 5 % of repetitions.

    With 1000 repetitions of a true rate of 5 % or less, more than 70 errors happen once in 400 runs; the seed is fixed.
    """
    rng, errors = np.random.default_rng(0), 0
    for _ in range(1000):
        shared = rng.normal(size=8)
        tests = [
            Test([Question("x", Mean(0.5 * shared + rng.normal(size=8))) for _ in range(2)], reading=str(i))
            for i in range(3)
        ]
        intervals = [answer.interval for found in RULE.judge(tests) for answer in found.answers]
        errors += any(interval.excludes(0.0) for interval in intervals)
    assert errors <= 70
    assert errors >= 20  # Bonferroni's correction is not wildly conservative here


def test_each_of_k_intervals_has_its_share_of_the_error():
    samples = np.array([1.0, 2.0, 4.0])
    for k in (1, 2, 9):
        (first, *_) = RULE.judge([asked(*samples, reading=str(i)) for i in range(k)])
        assert first.answers[0].interval == pytest.approx(mean_interval(samples, confidence=1 - 0.05 / k), abs=1e-9)


def test_premises_count_as_intervals_and_exact_or_missing_numbers_do_not():
    alone = RULE.judge([asked(1.0, 2.0, 4.0)])[0].answers[0].interval
    question = asked(1.0, 2.0, 4.0).questions[0]
    with_exact = Test([question, Question("e", ExactNumber(3.0)), Question("m", Mean(np.array([1.0])))])
    assert RULE.judge([with_exact])[0].answers[0].interval == alone
    with_premise = Test([question], [question])
    assert RULE.judge([with_premise])[0].answers[0].interval.low < alone.low


# Outcomes


@pytest.mark.parametrize("side", ["above", "below"])
def test_the_interval_decides(side):
    sign = 1.0 if side == "above" else -1.0
    for shift, outcome in ((5.0, "holds"), (-5.0, "does not hold"), (0.1, "undecided")):
        samples = 2.0 + sign * shift + np.array([-0.5, 0.0, 0.5])
        assert outcomes(asked(*samples, number=2.0, side=side)) == [outcome]


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3.3])
def test_the_number_itself_is_not_on_the_claimed_side(side, value):
    assert outcomes(asked(*[value] * 10, number=value, side=side)) == ["does not hold"]
    assert outcomes(Test([Question("x", ExactNumber(value), value, side)])) == ["does not hold"]


def test_agents_that_are_equal_in_every_replicate_have_an_interval_without_width():
    (found,) = RULE.judge([asked(*[0.3] * 7)])
    assert found.answers[0].interval == (0.3, 0.3, 0.3)
    assert found.outcome == "holds"


def test_other_orders_of_sums_are_no_difference():
    assert outcomes(asked(1e-17, 2e-17, 1e-17)) == ["does not hold"]
    assert outcomes(asked(1e-3, 2e-3, 1.5e-3)) != ["does not hold"]


def test_without_two_replicates_nothing_is_testable():
    assert outcomes(asked(), reading_one := asked(5.0), asked(5.0, np.nan)) == ["not testable"] * 3
    assert RULE.judge([reading_one])[0].answers[0].interval is None
    assert outcomes(Test([])) == ["not testable"]
    assert outcomes(Test([Question("x", Share(1, 1), 0.5)])) == ["undecided"]


HOLDS, FAILS, OPEN, NEVER = (
    Question("x", quantity)
    for quantity in (ExactNumber(1.0), ExactNumber(-1.0), Mean(np.array([-1.0, 1.0])), ExactNumber(np.nan))
)
KINDS = dict(zip((HOLDS, FAILS, OPEN, NEVER), OUTCOMES, strict=True))


def test_several_questions_must_all_hold():
    for pair in product(KINDS, repeat=2):
        seen = {KINDS[question] for question in pair}
        expected = next(o for o in ("does not hold", "not testable", "undecided", "holds") if o in seen)
        assert outcomes(Test(pair)) == [expected]


def test_one_premise_must_hold():
    for asked_for, *premises in product(KINDS, repeat=3):
        (found,) = RULE.judge([Test([asked_for], premises)])
        alone = KINDS[asked_for]
        seen = {KINDS[premise] for premise in premises}
        supposed = next(o for o in ("holds", "undecided", "not testable", "does not hold") if o in seen)
        assert found.supposed == supposed
        if alone == "not testable" or supposed == "holds":
            assert found.outcome == alone
        else:
            assert found.outcome == ("undecided" if supposed == "undecided" else "not testable")


def test_readings_are_concluded_from():
    for expected in product(OUTCOMES, repeat=3):
        readings = {str(i): [outcome] for i, outcome in enumerate(expected)}
        outcome, under = RULE.conclude(readings)
        holding = tuple(name for name, (each,) in readings.items() if each == "holds")
        assert outcome == next(o for o in OUTCOMES if o in expected)
        assert under == (holding if 0 < len(holding) < 3 else ())


# The text


def test_the_text_is_that_of_the_rule_that_judges():
    """What it says in numbers is what is computed: for another rule both change."""
    samples = np.array([1.0, 2.0, 4.0])
    for confidence in (0.95, 0.9):
        rule = Rule(confidence)
        (percent,) = re.findall(r"hold simultaneously with confidence (\d+) %", rule.text)
        (error,) = re.findall(r"has confidence 1 - ([\d.]+) / K", rule.text)
        assert int(percent) == round(100 * confidence)
        two = [asked(*samples, reading="a"), asked(*samples, reading="b")]
        found = rule.judge(two)[0].answers[0].interval
        assert found == pytest.approx(mean_interval(samples, confidence=1 - float(error) / 2), abs=1e-9)


def test_the_text_says_what_is_not_testable():
    assert "A mean or ratio of fewer than 2 replicates, or with a missing number, is not testable." in RULE.text
    for quantity in (Mean(np.ones(1)), Mean(np.array([1.0, np.nan, 1.0])), Ratio(np.ones(1))):
        assert outcomes(Test([Question("x", quantity)])) == ["not testable"]


def test_the_text_names_every_kind_of_interval():
    for kind in (Mean, Ratio, Share, ExactNumber):
        assert kind.text in RULE.text


def test_a_confidence_outside_is_refused():
    with pytest.raises(ValueError, match="confidence"):
        Rule(1.0)
