"""Radii against Beta quantiles, coverage of fresh draws, and bounds that must hold."""

import math
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

import urbe
from fixtures.posteriors import row_posterior, skeleton
from urbe import Posterior
from urbe.posteriors import radius
from urbe.posteriors.centred import credible_l1_centred, improve, middle

# z-tests allow 4.9 standard errors: a fresh seed would fail right code about once in a million tests
SIGMAS = 4.9


def beta_radius(alpha, level):
    """The level quantile of 2 |p_1 - m_1| under Beta(alpha), by root finding on the distribution function."""
    law, mean = stats.beta(*alpha), alpha[0] / sum(alpha)
    covered = lambda x: law.cdf(mean + x / 2) - law.cdf(mean - x / 2) - level  # noqa: E731
    return optimize.brentq(covered, 0.0, 2.0)


def quantile_error(alpha, level, draws):
    """Standard error of an empirical quantile, from the slope of the distribution function by differences."""
    step = 1e-4
    slope = 2 * step / (beta_radius(alpha, level + step) - beta_radius(alpha, level - step))
    return math.sqrt(level * (1 - level) / draws) / slope


ROWS = [(0.5, 0.5), (1.0, 1.0), (3.0, 1.0), (20.0, 80.0), (500.0, 500.0)]


@pytest.mark.parametrize("union", [True, False])
def test_two_successors_agree_with_beta_quantiles(union):
    posterior = row_posterior(*ROWS)
    level = 1 - 0.1 / (len(ROWS) if union else 1)
    got = radius.credible_l1(posterior, 0.9, np.random.default_rng(0), draws=100_000, union=union)
    for alpha, r in zip(ROWS, got, strict=True):
        assert abs(r - beta_radius(alpha, level)) < SIGMAS * quantile_error(alpha, level, 100_000) + 1e-6


def test_two_successors_chi_square_agree_with_beta_quantiles():
    """(p - m)^2 / m + (p - m)^2 / (1 - m) is (|p - m|_1 / 2)^2 / (m (1 - m))."""
    posterior = row_posterior(*ROWS)
    got = radius.credible_chi_square(posterior, 0.9, np.random.default_rng(0), draws=100_000, union=False)
    for alpha, rho in zip(ROWS, got, strict=True):
        m = alpha[0] / sum(alpha)
        assert (
            abs(2 * math.sqrt(rho * m * (1 - m)) - beta_radius(alpha, 0.9))
            < SIGMAS * quantile_error(alpha, 0.9, 100_000) + 1e-6
        )


def test_the_chi_square_quantile_is_that_of_many_transitions():
    posterior = row_posterior((300.0, 500.0, 200.0), (2000.0, 1000.0))
    drawn = radius.credible_chi_square(posterior, 0.9, np.random.default_rng(1), draws=50_000)
    # the law is approached at the rate 1 / N; the quantile itself is known to 1 %
    np.testing.assert_allclose(radius.chi_square(posterior, 0.9), drawn, rtol=0.03)
    by_hand = -2 * math.log(0.1 / 2) / 1000.0  # two degrees of freedom: an exponential law
    assert radius.chi_square(posterior, 0.9)[0] == pytest.approx(by_hand, rel=1e-12)


ANY = [(1.0, 2.0, 0.5), (30.0, 10.0, 5.0, 0.1), (1e-3, 1e-3), (400.0, 1.0)]


@pytest.mark.parametrize("compute", [radius.credible_l1, radius.credible_chi_square], ids=lambda f: f.__name__)
def test_each_row_covers_fresh_draws(compute):
    """Both the quantile and the share beyond it are estimated: their variances add."""
    posterior, draws, fresh = row_posterior(*ANY), 20_000, 20_000
    r = compute(posterior, 0.9, np.random.default_rng(2), draws=draws, union=False)
    p = posterior.draws(np.random.default_rng(3), fresh)
    rows, mean = posterior.model.rows, posterior.probability
    terms = np.abs(p - mean) if compute is radius.credible_l1 else (p - mean) ** 2 / mean
    inside = (np.add.reduceat(terms, rows.entry_start[:-1], axis=1) <= r).mean(axis=0)
    error = math.sqrt(0.9 * 0.1 * (1 / draws + 1 / fresh))
    assert (inside >= 0.9 - SIGMAS * error).all()
    # no larger than needed, where distances are continuous; near vertices they are tied
    assert (inside[[0, 1, 3]] <= 0.9 + SIGMAS * error).all()


def test_with_the_union_all_rows_hold_at_once():
    """Rows are independent, so each holding with 1 - delta / R all do with its R-th power, just above 1 - delta."""
    posterior = row_posterior(*ROWS, *ANY[:2])
    r = radius.credible_l1(posterior, 0.9, np.random.default_rng(4), draws=20_000)
    p = posterior.draws(np.random.default_rng(5), 20_000)
    far = np.add.reduceat(np.abs(p - posterior.probability), posterior.model.rows.entry_start[:-1], axis=1)
    exact = (1 - 0.1 / 7) ** 7
    assert abs((far <= r).all(axis=1).mean() - exact) < SIGMAS * math.sqrt(0.09 * (1 / 20_000 + 1 / 20_000))
    assert (r > radius.credible_l1(posterior, 0.9, np.random.default_rng(4), draws=20_000, union=False)).all()


@given(
    counts=st.lists(st.integers(0, 60), min_size=2, max_size=5).filter(any),
    confidence=st.sampled_from([0.5, 0.9, 0.99]),
)
def test_credible_radii_are_below_weissman(counts, confidence):
    model = skeleton(len(counts), 1)
    posterior = Posterior.before(model, 1.0).with_counts(np.array([*counts, 0.0]))
    credible = radius.credible_l1(posterior, confidence, np.random.default_rng(0), draws=400)
    assert 0.0 < credible[0] <= radius.weissman(posterior, confidence)[0] <= 2.0
    assert credible[1] == 0.0


@pytest.mark.parametrize("k", [2, 3, 10, 60, 3000])
def test_weissman_is_the_formula_in_whole_numbers(k):
    model = skeleton(k, 1)
    counts = np.zeros(k + 1)
    counts[0] = 1e6
    posterior = Posterior.before(model, 1.0).with_counts(counts)
    log_choices = math.log(2**k - 2)  # exact integers
    wanted = math.sqrt(2 / 1e6 * (log_choices - math.log(0.05 / 2)))
    assert radius.weissman(posterior, 0.95)[0] == pytest.approx(wanted, rel=1e-9)
    alone = math.sqrt(2 / 1e6 * (log_choices - math.log(0.05)))
    assert radius.weissman(posterior, 0.95, union=False)[0] == pytest.approx(alone, rel=1e-9)


def test_weissman_edges():
    posterior = row_posterior([1.0, 1.0], [1.0], [1.0, 0.0], [1.0, 1.0]).with_counts(np.array([0, 0, 5, 3, 0, 1, 0]))
    r = radius.weissman(posterior, 0.9)
    assert r[0] == 2.0  # nothing seen
    assert r[1] == r[2] == 0.0  # one successor alone is feasible
    assert r[3] == 2.0  # one transition says nothing yet


def test_weissman_around_the_mean_reaches_as_far_as_around_the_frequencies():
    posterior = row_posterior([5.0, 1.0, 1.0], [1.0, 1.0]).with_counts(np.array([10.0, 70.0, 20.0, 0.0, 0.0]))
    plain, shifted = (radius.weissman(posterior, 0.9, around_mean=flag) for flag in (False, True))
    gap = np.abs(posterior.probability[:3] - [0.1, 0.7, 0.2]).sum()
    assert shifted[0] == pytest.approx(plain[0] + gap, rel=1e-12)
    assert shifted[1] == 2.0


def test_weissman_covers_whatever_the_truth():
    """The bound holds for every truth; it is loose, so no false alarm is allowed for."""
    truth, rng = np.array([0.6, 0.3, 0.1]), np.random.default_rng(6)
    counts = rng.multinomial(50, truth, size=2000)
    posteriors = Posterior.before(skeleton(3, 1), 1e-9)
    r = radius.weissman(posteriors.with_counts(np.array([50.0, 0, 0, 0])), 0.9, union=False)[0]
    assert (np.abs(counts / 50 - truth).sum(axis=1) <= r).mean() >= 0.9


def test_more_draws_more_data_less_confidence():
    rng = np.random.default_rng
    few = row_posterior([1.0, 2.0, 3.0], [2.0, 1.0])
    many = row_posterior([1e8, 2e8, 3e8], [2e8, 1e8])
    assert (radius.credible_l1(many, 0.9, rng(0)) < 1e-3).all()
    assert (radius.credible_l1(few, 0.5, rng(0)) < radius.credible_l1(few, 0.9, rng(0))).all()
    assert (radius.chi_square(few, 0.5) < radius.chi_square(few, 0.9)).all()
    assert (radius.weissman(many, 0.9) == 2.0).all()  # a prior is no data


def test_one_successor_has_radius_zero():
    posterior = row_posterior([0.3], [0.0, 5.0, 0.0], [1e-12], [7e7])
    rng = np.random.default_rng(0)
    for r in (
        radius.credible_l1(posterior, 0.9, rng),
        radius.credible_chi_square(posterior, 0.9, rng),
        radius.chi_square(posterior, 0.9),
        radius.weissman(posterior, 0.9),
        radius.drift(posterior, 0.1, 10.0, credible=0.5),
        credible_l1_centred(posterior, 0.9, rng).radius,
    ):
        assert r.tolist() == [0.0] * 4


def test_the_quantile_is_that_of_the_stated_index():
    """M = 20, level 0.9: the 18th smallest distance, found by a full sort."""
    posterior = row_posterior([1.0, 2.0], [3.0, 4.0])
    p = posterior.draws(np.random.default_rng(7), 20)
    far = np.sort(2 * np.abs(p[:, [0, 2]] - posterior.probability[[0, 2]]), axis=0)
    got = radius.credible_l1(posterior, 0.9, np.random.default_rng(7), draws=20, union=False)
    np.testing.assert_allclose(got, far[17], rtol=1e-12)
    half = radius.credible_l1(posterior, 0.8, np.random.default_rng(7), draws=20, union=True)
    np.testing.assert_allclose(half, far[17], rtol=1e-12)


@pytest.mark.parametrize(
    ("m", "delta", "index"),
    [(10, 0.1, 8), (1000, 1.0 - 0.95, 949), (20, 0.05, 18), (1, 1.0, 0), (3, 0.5, 1), (100, 0.999, 0)],
)
def test_index_of_the_quantile(m, delta, index):
    assert radius.quantile_index(m, delta) == index


def test_same_seed_same_bits_other_seed_other_bits():
    posterior = row_posterior(*ANY)
    for compute in (radius.credible_l1, radius.credible_chi_square, lambda *a, **k: credible_l1_centred(*a, **k)[1]):
        a, b, c = (compute(posterior, 0.9, np.random.default_rng(seed), draws=200) for seed in (1, 1, 2))
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)


def test_blocks_cover_every_row_and_bound_the_memory(monkeypatch):
    model = urbe.library.garnet(300, 2, 40, seed=0)
    posterior = Posterior.before(model, 2.0)
    monkeypatch.setattr(radius, "CHUNK", 1 << 15)
    tracemalloc.start()
    r = radius.credible_l1(posterior, 0.9, np.random.default_rng(0), draws=2000, union=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # all draws at once would take 380 MB
    assert (np.abs(r - np.median(r)) < 0.05).all()  # all rows have the same law
    assert [*radius._row_blocks(np.array([0, 5, 6, 7, 50]), (1 << 15) // 7)] == [(0, 3), (3, 4)]


def test_radii_plug_into_balls():
    model = urbe.library.riverswim(6)
    posterior = Posterior.before(model).with_counts(np.full(22, 30.0))
    rng, mean = np.random.default_rng(0), posterior.mean()
    nominal = urbe.solve(mean).value
    for ball in (
        urbe.L1Ball(radius.credible_l1(posterior, 0.9, rng)),
        urbe.L1Ball(radius.weissman(posterior, 0.9)),
        urbe.L1Ball(radius.drift(posterior, 0.01, 10.0, radius.credible_l1(posterior, 0.9, rng))),
        urbe.Chi2Ball(radius.chi_square(posterior, 0.9)),
        urbe.Chi2Ball(radius.credible_chi_square(posterior, 0.9, rng)),
    ):
        assert (urbe.solve(mean, ball).value <= nominal).all()
    balls = credible_l1_centred(posterior, 0.9, rng)
    assert (urbe.solve(posterior.model_with(balls.centre), urbe.L1Ball(balls.radius)).value < nominal * 1.1).all()


def test_robust_values_are_safe():
    """With confidence 0.8, the robust value is below the policy's value in at least 80 % of fresh models."""
    from urbe.mdp.evaluate import policy_value

    posterior = Posterior.before(urbe.library.riverswim(6)).with_counts(np.full(22, 15.0))
    r = radius.credible_l1(posterior, 0.8, np.random.default_rng(0), draws=2000)
    solution = urbe.solve(posterior.mean(), urbe.L1Ball(r))
    rng = np.random.default_rng(1)
    values = np.array([policy_value(posterior.sample(rng), solution.policy) for _ in range(300)])
    assert (values >= solution.lower).all(axis=1).mean() >= 0.8


def test_drift_adds_what_may_have_changed():
    posterior = row_posterior([1.0, 1.0], [1.0, 1.0], [1.0])
    assert radius.drift(posterior, 0.01, 20.0).tolist() == [0.2, 0.2, 0.0]
    assert radius.drift(posterior, 0.01, 20.0, credible=[0.1, 0.3, 0.0]).tolist() == pytest.approx([0.3, 0.5, 0.0])
    assert radius.drift(posterior, [0.0, 1.0, 1.0], 20.0, credible=0.5).tolist() == [0.5, 2.0, 0.0]


def test_drift_covers_a_row_that_moves():
    """A row that moves by 0.02 in each of 40 episodes, forgotten at 0.9: 10 episodes of memory cover the lag."""
    path = 0.2 + 0.01 * np.arange(40)
    weights = 0.9 ** np.arange(39, -1, -1)
    remembered = (weights * path).sum() / weights.sum()
    posterior = row_posterior([1.0, 1.0], [1.0])
    assert 2 * abs(path[-1] - remembered) <= radius.drift(posterior, 0.02, 1 / (1 - 0.9))[0]
    assert 2 * abs(path[-1] - remembered) > radius.drift(posterior, 0.02, 5.0)[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, g: radius.credible_l1(p, 1.0, g), "confidence is 1.0, expected a number above 0 and below 1."),
        (lambda p, g: radius.credible_l1(p, 0.0, g), "confidence is 0.0, expected a number above 0 and below 1."),
        (lambda p, _: radius.weissman(p, 95), "confidence is 95, expected a number in [0, 1]."),
        (lambda p, g: radius.credible_l1(p, 0.95, g, draws=39), "draws is 39, too few for a quantile of level 1 - "
         "0.025: expected at least 40. Ask for more draws, a lower confidence, or union=False for single rows."),
        (lambda p, g: radius.credible_l1(p, 0.95, g, draws=0), "draws is 0, expected a whole number of at least 1."),
        (lambda p, g: credible_l1_centred(p, 0.95, g, draws=10), "draws is 10, too few"),
        (lambda p, g: credible_l1_centred(p, 0.95, g, rounds=-1), "rounds is -1, expected a whole number"),
        (lambda p, _: radius.drift(p, -0.1, 1.0), "per_episode is -0.1 for state 0, action 0, expected a number in"),
        (lambda p, _: radius.drift(p, 0.1, -1.0), "memory is -1.0, expected a number in [0, inf)."),
        (lambda p, _: radius.drift(p, 0.1, 1.0, [0.1]), "credible has shape (1,), expected a number, one per row (2,)"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(row_posterior([1.0, 1.0], [2.0, 2.0]), np.random.default_rng(0))


def test_forty_draws_are_enough_for_two_rows_at_95():
    radius.credible_l1(row_posterior([1.0, 1.0], [2.0, 2.0]), 0.95, np.random.default_rng(0), draws=40)


# centres of their own


def brute_radius(p, centre):
    return np.abs(p - centre).sum(axis=1).max()


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 4), m=st.integers(1, 30))
def test_the_middle_is_nowhere_worse_than_any_other_point(seed, k, m):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), size=m)
    centre = middle(p, p.mean(axis=0))
    assert centre.min() >= 0.0
    assert centre.sum() == pytest.approx(1.0, abs=1e-12)
    best = brute_radius(p, centre)
    for other in (*rng.dirichlet(np.ones(k), size=50), *p, p.mean(axis=0)):
        assert best <= brute_radius(p, other) + 1e-6
    for _ in range(50):  # convex: no better point nearby means no better point
        other = np.maximum(centre + rng.normal(size=k) * 1e-3, 0.0)
        assert best <= brute_radius(p, other / other.sum()) + 1e-6


def test_the_middle_of_two_successors_is_half_way():
    p = np.array([0.1, 0.15, 0.4, 0.7])
    assert middle(np.c_[p, 1 - p], np.array([0.3, 0.7]))[0] == pytest.approx(0.4, abs=1e-7)


@given(seed=st.integers(0, 2**32 - 1), alpha=st.lists(st.sampled_from([0.2, 1.0, 8.0]), min_size=2, max_size=4))
def test_radii_never_grow_from_round_to_round(seed, alpha):
    p = np.random.default_rng(seed).dirichlet(alpha, size=100)
    mean = np.array(alpha) / sum(alpha)
    centre, radii = improve(p, mean, 84, 8)
    assert (np.diff(radii) < 0).all()
    assert np.sort(np.abs(p - centre).sum(axis=1))[84] == pytest.approx(radii[-1], abs=1e-12)
    assert np.sort(np.abs(p - mean).sum(axis=1))[84] == pytest.approx(radii[0], abs=1e-12)
    assert improve(p, mean, 84, 1)[1] == radii[:2]  # fewer rounds are the beginning of more


def test_own_centres_cover_fresh_draws_with_smaller_balls():
    posterior, draws = row_posterior((0.5, 2.0), (1.0, 6.0, 1.0), (0.3, 0.3, 4.0)), 5000
    balls = credible_l1_centred(posterior, 0.9, np.random.default_rng(0), draws=draws, union=False)
    plain = radius.credible_l1(posterior, 0.9, np.random.default_rng(0), draws=draws, union=False)
    assert (balls.radius < plain).all()
    start = posterior.model.rows.entry_start[:-1]
    np.testing.assert_allclose(np.add.reduceat(balls.centre, start), 1.0, rtol=1e-12)
    p = posterior.draws(np.random.default_rng(1), 20_000)
    inside = (np.add.reduceat(np.abs(p - balls.centre), start, axis=1) <= balls.radius).mean(axis=0)
    assert (inside >= 0.9 - SIGMAS * math.sqrt(0.09 * (1 / draws + 1 / 20_000))).all()


def test_without_rounds_the_centre_is_the_mean():
    posterior = row_posterior((0.5, 2.0), (1.0, 6.0, 1.0))
    balls = credible_l1_centred(posterior, 0.9, np.random.default_rng(0), rounds=0)
    assert np.array_equal(balls.centre, posterior.probability)
