"""Comparisons of agents: SciPy's tests, closed testing, all resamples, and coverage of a whole family."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from urbe.statistics import bootstrap, comparisons
from urbe.statistics.comparisons import holm, paired_comparisons, probability_of_improvement
from urbe.statistics.estimates import paired_difference


def rng(seed=0):
    return np.random.default_rng(seed)


def closed_test(p):
    """Holm by its meaning: the largest Bonferroni p-value of all intersections that contain a hypothesis."""
    every = [s for size in range(1, len(p) + 1) for s in combinations(range(len(p)), size)]
    return [max(min(1.0, len(s) * min(p[j] for j in s)) for s in every if k in s) for k in range(len(p))]


@given(st.lists(st.sampled_from([0.0, 1e-4, 0.01, 0.012, 0.02, 0.3, 0.6, 1.0]), min_size=1, max_size=6))
def test_holm_is_a_closed_test(p):
    found = holm(p)
    assert found == pytest.approx(closed_test(p), abs=1e-15)
    assert (found >= np.array(p)).all()
    assert (found <= np.minimum(1.0, len(p) * np.array(p)) + 1e-15).all()


def test_holm_of_nothing_is_nothing():
    assert holm([]).shape == (0,)


def test_one_task_is_scipys_paired_test():
    shared = rng(1).normal(0.0, 10.0, size=12)
    scores = {"a": shared + rng(2).normal(0.5, 1.0, 12), "b": shared, "c": shared + rng(3).normal(0.0, 2.0, 12)}
    found = paired_comparisons(scores, rng(4), confidence=0.9, resamples=200)
    assert [(c.first, c.second) for c in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for c in found:
        oracle = stats.ttest_rel(scores[c.first], scores[c.second])
        assert c.p == pytest.approx(oracle.pvalue, rel=1e-9)
        low, high = oracle.confidence_interval(0.9)
        assert c.alone == pytest.approx((np.mean(scores[c.first] - scores[c.second]), low, high), abs=1e-12)
        assert c.alone == pytest.approx(paired_difference(scores[c.first], scores[c.second], confidence=0.9), abs=1e-12)
        assert c.simultaneous.estimate == c.alone.estimate
    assert [c.p_holm for c in found] == pytest.approx(closed_test([c.p for c in found]), rel=1e-12)


def test_several_tasks_are_welchs_test():
    # the sum of two means: Welch's test of first task against minus the second one
    d, e = rng(1).normal(0.3, 1.0, 9), rng(2).normal(0.2, 3.0, 14)
    found = paired_comparisons({"a": [d, e], "b": [np.zeros(9), np.zeros(14)]}, rng(3), resamples=100)[0]
    oracle = stats.ttest_ind(d, -e, equal_var=False)
    low, high = oracle.confidence_interval()
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-9)
    assert found.alone == pytest.approx(((d.mean() + e.mean()) / 2, low / 2, high / 2), abs=1e-12)


def exact_factor(d, level):
    """Quantiles 0.01 below and above `level` of the largest t over all n^n resamples of one task; `d` is `(n, K)`."""
    n, largest = len(d), []
    for index in product(range(n), repeat=n):
        x = d[list(index)]
        off, error = np.abs(x.mean(axis=0) - d.mean(axis=0)), x.std(axis=0, ddof=1) / np.sqrt(n)
        with np.errstate(divide="ignore"):
            largest.append((off / error).max() if len(set(index)) > 1 else np.inf)
    return np.sort(largest)[[int(n**n * (level - 0.01)), int(n**n * (level + 0.01))]]


def test_the_factor_is_that_of_all_3125_resamples():
    d = rng(7).normal(size=(5, 2))
    least, most = exact_factor(d, 0.8)
    # 0.01 is 5 deviations of a share of 40,000
    assert least <= comparisons._largest_t([d], rng(8), 40_000, 0.8) <= most


def test_the_factor_is_one_that_enough_resamples_keep():
    # at 60 % two of three resamples are within; levels 0 and 1 are the first and the last
    d = rng(7).normal(size=(9, 2))
    low, found, high = (comparisons._largest_t([d], rng(8), 3, level) for level in (0.0, 0.6, 1.0))
    assert low < found == high


def test_one_comparison_of_several_tasks_is_scipys_studentised_bootstrap():
    # the quantile of |t*| by plain loops over SciPy's way of drawing: indices, not counts
    tasks = [rng(1).normal(size=8), rng(2).exponential(size=6)]
    draw, t = rng(5), []
    for _ in range(10_000):
        drawn = [x[draw.integers(len(x), size=len(x))] for x in tasks]
        off = sum(y.mean() - x.mean() for x, y in zip(tasks, drawn, strict=True))
        t.append(abs(off) / np.sqrt(sum(y.var(ddof=1) / len(y) for y in drawn)))
    found = comparisons._largest_t([x[:, None] for x in tasks], rng(6), 10_000, 0.9)
    # shares of 10,000 twice: 0.02 is nearly 5 deviations
    assert np.quantile(t, 0.88) <= found <= np.quantile(t, 0.92)


def factors(found, scores):
    """Half widths in standard errors, for one task."""
    errors = [stats.sem(scores[c.first] - scores[c.second]) for c in found]
    return [(c.simultaneous.high - c.simultaneous.estimate) / e for c, e in zip(found, errors, strict=True)]


def test_the_factor_is_the_bootstraps_between_student_and_bonferroni():
    scores = {name: rng(k).uniform(size=40) for k, name in enumerate("ab")}
    scores["c"] = scores["b"] + 0.3 * rng(2).uniform(size=40)  # much like b: between one comparison and two
    c = comparisons._largest_t([np.stack([scores[x] - scores["a"] for x in "bc"], axis=1)], rng(3), 10_000, 0.95)
    assert stats.t.ppf(0.975, 39) < c < stats.t.ppf(0.9875, 39)
    assert factors(paired_comparisons(scores, rng(3), against="a"), scores) == pytest.approx([c, c])
    # differences without spread have no say
    more = {**scores, "same": scores["a"], "above": scores["a"] + 0.1}
    assert factors(paired_comparisons(more, rng(3), against="a")[:2], more) == pytest.approx([c, c])
    # one comparison is Student's
    one = paired_comparisons({name: scores[name] for name in "ab"}, rng(3))[0]
    assert one.simultaneous == one.alone
    lean = np.sign(rng(0).normal(size=40)) + 0.1 * rng(0).normal(
        size=40
    )  # light tails: the bootstrap would be narrower
    assert comparisons._largest_t([lean[:, None]], rng(3), 10_000, 0.95) < 0.99 * stats.t.ppf(0.975, 39)
    one = paired_comparisons({"a": lean, "b": np.zeros(40)}, rng(3))[0]
    assert one.simultaneous == one.alone
    # an agent and its copy: the largest of two equal t is that of one, yet never below Student's
    twin = {"a": scores["a"], "b": scores["b"], "copy": scores["b"]}
    d = (scores["b"] - scores["a"])[:, None]
    c = comparisons._largest_t([d], rng(3), 10_000, 0.95)
    assert comparisons._largest_t([np.hstack([d, d])], rng(3), 10_000, 0.95) == pytest.approx(c)
    found = paired_comparisons(twin, rng(3), against="a")
    assert factors(found, twin) == pytest.approx([max(c, stats.t.ppf(0.975, 39))] * 2)
    assert found[0].p_holm == pytest.approx(min(1.0, 2.0 * found[0].p))  # Holm does not know


def test_few_seeds_and_ties_are_bonferronis():
    # 3 of 27 resamples have no spread, more than 5 %
    few = {name: rng(k).normal(size=3) for k, name in enumerate("abc")}
    assert comparisons._largest_t([(few["a"] - few["b"])[:, None]], rng(3), 2_000, 0.95) == np.inf
    assert factors(paired_comparisons(few, rng(3)), few) == pytest.approx([stats.t.ppf(1 - 0.05 / 6, 2)] * 3)
    # of 20 seeds 19 agree but for rounding: a third of all resamples have no spread, and the others do not suffer much
    tied = {name: rng(k).normal(size=20) for k, name in enumerate("ab")}
    tied["c"] = tied["a"] + np.r_[0.7, np.full(19, 0.1)]
    assert comparisons._largest_t([(tied["c"] - tied["a"])[:, None]], rng(3), 2_000, 0.95) == np.inf
    assert comparisons._largest_t([np.r_[0.7, np.full(19, 0.1)][:, None]], rng(3), 2_000, 0.95) == np.inf
    assert factors(paired_comparisons(tied, rng(3)), tied) == pytest.approx([stats.t.ppf(1 - 0.05 / 6, 19)] * 3)


def test_what_pairs_share_cancels_and_more_comparisons_are_wider():
    shared = rng(1).normal(0.0, 100.0, size=30)
    scores = {f"agent {k}": shared + rng(k + 2).normal(0.1 * k, 0.1, size=30) for k in range(5)}
    every = paired_comparisons(scores, rng(9))
    assert len(every) == 10
    few = paired_comparisons({name: scores[name] for name in ("agent 0", "agent 1")}, rng(9))
    assert every[0].alone == pytest.approx(few[0].alone, abs=1e-12)
    assert every[0].simultaneous.high - every[0].simultaneous.low > few[0].simultaneous.high - few[0].simultaneous.low
    assert few[0].p_holm == few[0].p
    assert every[3].simultaneous.excludes(0.0)
    assert every[3].simultaneous.high - every[3].simultaneous.low < 0.5


def test_differences_without_spread():
    a = rng(1).normal(size=10)
    found = paired_comparisons(
        {"a": a, "same": a, "above": a + 0.1, "other": rng(2).normal(size=10)}, rng(3), against="a"
    )
    same, above, other = found
    assert same.alone == same.simultaneous == (0.0, 0.0, 0.0)
    assert (same.p, same.p_holm) == (1.0, 1.0)
    assert above.alone == above.simultaneous == pytest.approx((0.1, 0.1, 0.1), abs=1e-15)
    assert (above.p, above.p_holm) == (0.0, 0.0)
    alone = paired_comparisons({"a": a, "other": rng(2).normal(size=10)}, rng(3), against="a")[0]
    assert other.simultaneous == alone.simultaneous  # the others have no say
    only = paired_comparisons({"a": a, "same": a}, rng(3))
    assert only[0].simultaneous == (0.0, 0.0, 0.0)


@pytest.mark.slow
def test_all_comparisons_are_covered_together():
    # 4 agents, 6 comparisons of which none is a difference, 15 seeds on 2 tasks, 95 %. 1,000 repetitions: a share is
    # known to 0.007; within 0.03 of what was found but for probability 1e-4, and the seeds are fixed.
    together, alone, rejected = [], [], []
    for i, x in enumerate(rng(1).normal(size=(1_000, 4, 15, 2))):
        found = paired_comparisons({str(k): x[k] for k in range(4)}, rng(i), resamples=1_000)
        together.append(not any(c.simultaneous.excludes(0.0) for c in found))
        alone.append(not any(c.alone.excludes(0.0) for c in found))
        rejected.append(any(c.p_holm <= 0.05 for c in found))
    assert np.mean(together) == pytest.approx(0.959, abs=0.03)
    assert np.mean(alone) < 0.87
    assert np.mean(rejected) < 0.07  # 0.05 at most; 3 deviations


RUNS = st.lists(st.integers(-3, 3), min_size=2, max_size=6)


@given(RUNS, RUNS)
def test_probability_of_improvement_is_that_of_mann_and_whitney(a, b):
    found = probability_of_improvement(a, b, rng(), resamples=20)
    assert found.estimate == pytest.approx(stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)), abs=1e-12)
    assert -1e-12 <= found.low <= found.high <= 1.0 + 1e-12
    other = probability_of_improvement(b, a, rng(), resamples=20)
    assert found.estimate + other.estimate == pytest.approx(1.0)


def test_probability_of_improvement_averages_over_tasks():
    first, second = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    # wins surely in the first task; in the second, 2 of 3 lose and 1 of 3 draws
    expected = float((1 + Fraction(1, 6)) / 2)
    assert probability_of_improvement(first, second, rng()).estimate == pytest.approx(expected)
    ragged = [np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0])]
    assert probability_of_improvement(ragged, list(second.T), rng()).estimate == pytest.approx(expected)


def test_probability_of_improvement_is_that_of_all_resamples():
    a, b = np.array([1.0, 2.0, 4.0]), np.array([0.0, 2.0, 3.0])
    every = np.sort(
        [
            np.mean([0.5 * (x > y) + 0.5 * (x >= y) for x in s for y in t])
            for s, t in product(product(a, repeat=3), product(b, repeat=3))
        ]
    )
    gap = 5.0 * np.sqrt(0.25 / 20_000)
    for confidence in (0.3, 0.6, 0.9):
        found = probability_of_improvement(a, b, rng(5), resamples=20_000, confidence=confidence)
        for level, end in ((0.5 - confidence / 2, found.low), (0.5 + confidence / 2, found.high)):
            assert every[int(729 * (level - gap))] - 1e-9 <= end <= every[min(int(729 * (level + gap)), 728)] + 1e-9


def test_probability_of_improvement_covers():
    # P(N(0.5, 1) > N(0, 1)) = Phi(0.5 / sqrt 2); 400 repetitions of 40 against 40, at 95 %: within 0.90..0.98 but for
    # probability 1e-4, and the seeds are fixed
    truth = stats.norm.cdf(0.5 / np.sqrt(2.0))
    hits = 0
    for i in range(400):
        first, second = rng(i).normal(size=(2, 40))
        found = probability_of_improvement(first + 0.5, second, rng(10**6 + i), resamples=400)
        hits += not found.excludes(truth)
    assert 0.90 <= hits / 400 <= 0.98


def test_same_generator_same_bits(monkeypatch):
    x, y = rng(9).normal(size=(2, 10, 3))
    three = {"x": x, "y": y, "z": rng(8).uniform(size=(10, 3))}
    assert paired_comparisons(three, rng(1), confidence=0.8) == paired_comparisons(three, rng(1), confidence=0.8)
    assert comparisons._largest_t([x], rng(1), 300, 0.9) != comparisons._largest_t([x], rng(2), 300, 0.9)
    assert probability_of_improvement(x, y, rng(1)) == probability_of_improvement(x, y, rng(1))
    assert probability_of_improvement(x, y, rng(1)) != probability_of_improvement(x, y, rng(2))
    whole = comparisons._largest_t([x, y], rng(1), 300, 0.9)
    chance = probability_of_improvement(x, y, rng(1))
    monkeypatch.setattr(bootstrap, "_NUMBERS", 70)
    assert comparisons._largest_t([x, y], rng(1), 300, 0.9) == pytest.approx(whole, rel=1e-12)
    cut = probability_of_improvement(x, y, rng(1), resamples=300)
    assert cut == pytest.approx(chance, abs=0.05)  # other draws, the same law


def test_inputs_are_untouched():
    x, y = rng(9).normal(size=(2, 10, 3))
    before = x.copy(), y.copy()
    paired_comparisons({"x": x, "y": y}, rng(), resamples=20)
    probability_of_improvement(x, y, rng(), resamples=20)
    assert np.array_equal((x, y), before)


A, B = np.arange(4.0), np.arange(4.0)[::-1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_comparisons({"a": A}, rng()), "scores has 1 agents, expected at least 2"),
        (
            lambda: paired_comparisons({"a": A, "b": A[:3]}, rng()),
            "scores['b'] has 3 seeds for task 0 and scores['a'] has 4",
        ),
        (lambda: paired_comparisons({"a": A, "b": [A, B]}, rng()), "scores['b'] has 2 tasks and scores['a'] has 1"),
        (lambda: paired_comparisons({"a": A, "b": [0, 1, np.nan, 2]}, rng()), "scores['b'][2] is nan"),
        (lambda: paired_comparisons({"a": A, "b": B[:1]}, rng()), "scores['b'] has shape (1,) for task 0"),
        (lambda: paired_comparisons({"a": A, "b": B}, rng(), against="c"), "against is 'c', expected one of 'a', 'b'"),
        (lambda: paired_comparisons({"a": A, "b": B}, rng(), resamples=0), "resamples is 0"),
        (lambda: paired_comparisons({"a": A, "b": B}, rng(), confidence=1), "confidence is 1"),
        (lambda: holm([0.5, 1.5]), "p_values[1] is 1.5"),
        (lambda: holm([np.nan]), "p_values[0] is nan"),
        (lambda: probability_of_improvement(np.zeros((2, 2)), np.zeros((2, 3)), rng()), "2 tasks and second has 3"),
        (lambda: probability_of_improvement([1.0], A, rng()), "first has shape (1,) for task 0"),
        (lambda: probability_of_improvement(A, A, rng(), resamples=0), "resamples is 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
