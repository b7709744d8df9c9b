import numpy as np
import pytest

import urbe
from urbe.mdp.evaluate import occupancy
from urbe.solvers.approximate import largest_probabilities


def exercised(put, actions):
    """`(T + 1, T + 1)` whether one sells at time t after k rises, where holding is possible too."""
    n = round((2 * put.n_states) ** 0.5) - 1
    out = np.zeros((n, n), dtype=bool)
    for t in range(n):
        for k in range(t + 1):
            out[t, k] = actions[t * (t + 1) // 2 + k] == 1
    return out


def prices(put_steps, volatility=0.2):
    time = np.repeat(np.arange(put_steps + 1), np.arange(1, put_steps + 2))
    rises = np.arange(len(time)) - time * (time + 1) // 2
    return time, np.exp(volatility / np.sqrt(put_steps)) ** (2.0 * rises - time)


def hats(steps, knots):
    """Piecewise linear functions of the price, and of the price times the time that is left."""
    time, price = prices(steps)
    centres = np.linspace(0.6, 1.5, knots)
    hat = np.maximum(1.0 - np.abs(price[:, None] - centres) * (knots - 1) / 0.9, 0.0)
    left = (1.0 - time / steps)[:, None]
    return np.vstack([np.hstack([hat, hat * left, hat * left**2]), np.zeros((1, 3 * knots))])


def test_the_put_without_interest_is_worth_its_european_price():
    """With rate 0 early exercise is worth nothing: the value is a binomial sum."""
    from math import comb

    put = urbe.library.american_put(10)
    up = np.exp(0.2 / np.sqrt(10))
    p = (1 - 1 / up) / (up - 1 / up)
    european = sum(comb(10, k) * p**k * (1 - p) ** (10 - k) * max(1 - up ** (2 * k - 10), 0.0) for k in range(11))
    value = urbe.solve(put, None, urbe.BackwardInduction(11)).value[0, 0]
    assert value == pytest.approx(european, abs=1e-12)
    high_rate = urbe.library.american_put(10, rate=0.06)
    assert high_rate.discount == pytest.approx(np.exp(-0.006))


@pytest.mark.parametrize("nature", [None, urbe.L1Ball(0.1), urbe.KLBall(0.02), urbe.Contamination(0.1)])
def test_one_hot_features_are_exact_robust_dynamic_programming(nature):
    put = urbe.library.american_put(12, rate=0.06)
    exact = urbe.solve(put, nature)
    found = urbe.approximate_values(put, np.eye(put.n_states), nature)
    np.testing.assert_allclose(found.value, exact.value, atol=2e-6)
    mdp = urbe.library.machine_replacement(8)
    policy = urbe.solve(mdp, nature).policy
    found = urbe.approximate_values(mdp, np.eye(8), nature, policy=policy)
    np.testing.assert_allclose(found.value, urbe.solve(mdp, nature).value, atol=1e-5)


def test_robust_exercise_is_earlier_exactly_and_approximately():
    steps = 30
    put = urbe.library.american_put(steps, rate=0.06)
    nature = urbe.L1Ball(0.06)
    robust, nominal = (exercised(put, urbe.solve(put, x).policy) for x in (nature, None))
    assert (robust | ~nominal).all()  # whoever sells without doubt sells with it
    assert robust.sum() > nominal.sum()
    phi = hats(steps, 12)
    plain, doubting = (urbe.approximate_values(put, phi, x) for x in (None, nature))
    assert exercised(put, doubting.policy).sum() > exercised(put, plain.policy).sum()
    # and the policy found is nearly as good, by its certified worst case
    worst = urbe.evaluate_policy(put, doubting.policy, nature)
    best = urbe.solve(put, nature)
    assert best.value[0] - 1e-6 <= 1.01 * worst.value[0] <= 1.02 * best.value[0]
    assert doubting.value[0] == pytest.approx(best.value[0], rel=0.02)


def test_error_is_within_the_stated_multiple_of_the_best_fit():
    """||Phi w - V||_d <= ||Pi V - V||_d / (1 - modulus), for a narrow set that contracts."""
    rng = np.random.default_rng(3)
    for seed in range(20):
        mdp = urbe.library.garnet(30, 1, 5, seed=seed, discount=0.6)
        phi = rng.normal(size=(30, 6))
        narrow = urbe.L1Ball(0.4 * np.minimum.reduceat(mdp.rows.probability, mdp.rows.entry_start[:-1]))
        found = urbe.approximate_values(mdp, phi, narrow, policy=[0] * 30)
        assert found.modulus == pytest.approx(1.2 * 0.6**0.5)  # the smallest probability grows by a fifth
        exact = urbe.evaluate_policy(mdp, [0] * 30, narrow).value
        d = occupancy(mdp, [0] * 30, np.full(30, 1 / 30))
        d = np.sqrt(d / d.sum())
        best = phi @ np.linalg.lstsq(d[:, None] * phi, d * exact, rcond=None)[0]
        error, least = np.linalg.norm(d * (found.value - exact)), np.linalg.norm(d * (best - exact))
        assert error <= found.amplification * least + 1e-6


def test_largest_probabilities_by_hand():
    mdp = urbe.MDP.from_dense([[[0.2, 0.3, 0.5]], [[0.0, 1.0, 0.0]], [[0.5, 0.5, 0.0]]], [[0.0]] * 3, discount=0.9)
    np.testing.assert_allclose(largest_probabilities(mdp, urbe.L1Ball(0.2)), [0.3, 0.4, 0.6, 1.0, 0.6, 0.6], atol=1e-12)
    np.testing.assert_allclose(
        largest_probabilities(mdp, urbe.Contamination(0.5)), [0.6, 0.65, 0.75, 1.0, 0.75, 0.75], atol=1e-12
    )


def spreading():
    """Two states with features 1 and 2; the policy goes to the second, which is hardly explored."""
    transition = [[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    return urbe.MDP.from_dense(transition, [[1.0, 0.0], [1.0, 0.0]], discount=0.95, initial=[1.0, 0.0])


def test_divergence_is_detected_and_explained():
    mdp = spreading()
    with pytest.raises(urbe.Diverged, match="modulus is inf, expected below 1"):
        urbe.approximate_values(mdp, [[1.0], [2.0]], policy=[0, 0], explore=[1, 1])
    mixed = np.array([[0.05, 0.95], [0.05, 0.95]])
    with pytest.raises(urbe.Diverged, match="contraction condition does not hold"):
        urbe.approximate_values(mdp, [[1.0], [2.0]], policy=[0, 0], explore=mixed)
    own = urbe.approximate_values(mdp, [[1.0], [2.0]], policy=[0, 0])
    assert own.modulus == pytest.approx(0.95**0.5)


def test_samples_come_near_the_expected_weights():
    put = urbe.library.american_put(20, rate=0.06)
    phi = hats(20, 8)
    full = urbe.approximate_values(put, phi, urbe.L1Ball(0.05))
    drawn = urbe.approximate_values(put, phi, urbe.L1Ball(0.05), samples=20_000, seed=1)
    again = urbe.approximate_values(put, phi, urbe.L1Ball(0.05), samples=20_000, seed=1)
    np.testing.assert_array_equal(drawn.weights, again.weights)
    assert drawn.value[0] == pytest.approx(full.value[0], rel=0.01)


def test_mistakes_are_named():
    put = urbe.library.american_put(5)
    with pytest.raises(ValueError, match="features has 3 rows, expected one for each of 22 states"):
        urbe.approximate_values(put, np.eye(3))
    with pytest.raises(ValueError, match=r"State 0 has 2 actions that continue.*policy="):
        urbe.approximate_values(urbe.library.riverswim(), np.eye(6))
    with pytest.raises(ValueError, match="rise"):
        urbe.library.american_put(5, rise=1.5)
    with pytest.raises(ValueError, match="samples"):
        urbe.approximate_values(put, np.eye(22), samples=0)
