"""Rounds of RSVF: properties of the returned balls, termination, and what is not guaranteed."""

import numpy as np
import pytest

import urbe
from fixtures.data_sets import after
from oracles.worst_case import l1
from urbe.planners import RSVF, PlanningTask, QuantileDraw, VaRBellman

MODELS = {
    "riverswim": urbe.library.riverswim(6, discount=0.95),
    "machine": urbe.library.machine_replacement(10, discount=0.95),
    "garnet": urbe.library.garnet(12, 3, 4, seed=3, discount=0.9),
}
DELTA, DRAWS = 0.1, 1500


def answer(method, posterior, seed=1):
    return method.answer(
        PlanningTask(posterior, DELTA, DRAWS, np.random.default_rng(seed), urbe.solve, (posterior, DELTA))
    )


@pytest.mark.parametrize("rule", [RSVF(), RSVF(QuantileDraw())], ids=["hyperplane", "draw"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 30])
def test_every_worst_case_is_below_its_quantile(name, rule, n):
    posterior = after(MODELS[name], n, np.random.default_rng(2))
    found = answer(rule, posterior)
    rows, v = posterior.model.rows, found.solution.lower
    drawn = posterior.draws(np.random.default_rng(1), DRAWS)  # the draws planned with
    uncertain = int((posterior.feasible > 1).sum())
    allowed = int(DELTA / uncertain * (DRAWS + 1))
    for row in range(rows.n_rows):
        a, b = rows.entry_start[row : row + 2]
        z = posterior.model.discount * v[rows.successor[a:b]]
        centre, radius = found.model.rows.probability[a:b], found.nature.radius[row]
        worst = l1(centre, z, radius)
        # at most `allowed` - 1 draws are strictly below the k-th lowest; 1e-6: the oracle is a linear program
        assert np.count_nonzero(drawn[:, a:b] @ z < worst - 1e-6 * (1 + np.abs(z).max())) < max(allowed, 1)


@pytest.mark.parametrize("rule", [RSVF(), RSVF(QuantileDraw())], ids=["hyperplane", "draw"])
def test_rounds_end_on_many_data_sets(rule):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        for mdp in MODELS.values():
            posterior = after(mdp, int(rng.integers(1, 60)), rng, concentration=float(rng.uniform(0.1, 2.0)))
            answer(rule, posterior, seed)


def test_value_at_risk_is_the_limit_of_what_is_safe():
    for mdp in MODELS.values():
        posterior = after(mdp, 40, np.random.default_rng(3))
        fitted, best = answer(RSVF(), posterior), answer(VaRBellman(), posterior)
        assert (fitted.solution.lower <= best.solution.upper + 1e-9).all()  # the same draws: no chance involved
        span = np.ptp(best.solution.value)
        assert (best.solution.lower - fitted.solution.upper).max() <= 0.1 * span


def test_too_few_rounds_say_what_to_do():
    posterior = after(MODELS["riverswim"], 10, np.random.default_rng(0))
    with pytest.raises(RuntimeError, match=r"after 1 rounds \d+ of 12 rows need larger balls.*VaRBellman"):
        answer(RSVF(rounds=1), posterior)


def test_inputs_are_left_as_they_were():
    posterior = after(MODELS["machine"], 10, np.random.default_rng(0))
    alpha, mean = posterior.concentration.copy(), posterior.probability.copy()
    answer(RSVF(), posterior)
    assert np.array_equal(alpha, posterior.concentration)
    assert np.array_equal(mean, posterior.probability)
