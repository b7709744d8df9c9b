"""Variances against brute force: robust values computed for hundreds of posterior draws of the centre.

Seeds are fixed, so that nothing here fails by chance; the margins are those under which another seed would fail with a
probability of well below one in a thousand (medians over 18 or more pairs, each variance known to 9 % from 250 draws).
"""

import numpy as np
import pytest

import urbe
from oracles.layered import layered, monte_carlo_variance, posterior_of, sets_around
from urbe import Bound, MonteCarlo, value_variance
from urbe.rng import stream

SETS = list(sets_around(layered(np.random.default_rng(0))))
HORIZON = 4


def ratios(name, count, instances, draws, seed):
    """Of all pairs with something to learn: u / variance for both forms, and the published w / variance."""
    out = []
    for k in range(instances):
        mdp = layered(stream(seed, "model", k))
        posterior = posterior_of(mdp, count)
        nature = sets_around(mdp)[name]
        loose = value_variance(posterior, nature, horizon=HORIZON)
        sharp = value_variance(posterior, nature, horizon=HORIZON, sharp=True)
        bound = value_variance(posterior, nature, horizon=HORIZON, local=Bound())
        rng = stream(seed, "draws", k)
        published = value_variance(
            posterior, nature, horizon=HORIZON, local=MonteCarlo(posterior.draws(rng, 40)), policy=loose.policy
        )
        expected = monte_carlo_variance(posterior, nature, loose.policy, HORIZON, draws, rng)
        live = expected > 1e-14
        assert live.sum() >= 14  # three of four layers, 18 pairs, lead to more than one state; nature may decide a few
        out.append([plan.variance[0][live] / expected[live] for plan in (loose, sharp, bound, published)])
    return np.concatenate(out, axis=1)


@pytest.mark.parametrize("name", SETS)
def test_calibrated_variances_are_those_of_posterior_draws(name):
    loose, sharp, bound, published = ratios(name, 50.0, 1, 250, seed=1)
    assert 1.0 <= np.median(loose) <= 4.0
    assert 0.8 <= np.median(sharp) <= 1.5
    # the theorem's inequality holds, by a factor that makes it useless as an estimate
    assert bound.min() > 10.0
    assert np.median(bound) > 100.0
    assert np.median(published) > 100.0


@pytest.mark.slow
@pytest.mark.parametrize("count", [50.0, 200.0, 500.0])
@pytest.mark.parametrize("name", SETS)
def test_calibrated_variances_on_many_models(name, count):
    loose, sharp, bound, published = ratios(name, count, 8, 600, seed=2)
    assert 1.0 <= np.median(loose) <= 4.0
    assert 0.8 <= np.median(sharp) <= 1.5
    assert np.quantile(sharp, 0.05) > 0.5
    assert bound.min() > 10.0
    assert np.median(published) > 100.0


def test_scenarios_do_not_move_with_the_posterior():
    mdp = layered(stream(3, "model"))
    posterior = posterior_of(mdp, 50.0)
    nature = urbe.Scenarios(posterior.draws(stream(3, "scenarios"), 5).T)
    plan = value_variance(posterior, nature, horizon=HORIZON)
    assert not plan.variance.any()
    expected = monte_carlo_variance(posterior, nature, plan.policy, HORIZON, 10, stream(3, "draws"))
    assert expected == pytest.approx(np.zeros(mdp.n_rows), abs=1e-28)


def test_the_bound_on_the_local_term_fails_for_worst_case_rows():
    """sum var / E <= K / n is claimed for worst-case rows too; at the centre it holds, for worst cases it does not."""
    failed, at_centre = 0, 0
    for k in range(4):
        mdp = layered(stream(4, "model", k))
        posterior = posterior_of(mdp, 50.0)
        centres = posterior.draws(stream(4, "draws", k), 200)
        limit = (HORIZON * mdp.rows.largest_reward) ** 2 * posterior.feasible / posterior.total
        several = posterior.feasible > 1.0
        for nature in (None, urbe.L1Ball(0.3)):
            nu = value_variance(posterior, nature, horizon=HORIZON, local=MonteCarlo(centres)).local[0]
            wrong = int((nu > limit)[several].sum())
            failed, at_centre = (failed, at_centre + wrong) if nature is None else (failed + wrong, at_centre)
    assert at_centre == 0
    assert failed > 0.15 * 4 * 18
