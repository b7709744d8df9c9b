"""Spans of visited states, random actions in tests, and figures of both."""

import jax.numpy as jnp
import numpy as np
import pytest

from urbe.paper.cartpole import Row
from urbe.paper.cartpole.agents import EpsilonGreedy, Exploring
from urbe.paper.cartpole.figures import median_seed
from urbe.paper.cartpole.results import visits_of
from urbe.paper.cartpole.states import DRAWN, FINE, LEAN, TRACK, count_states, middles, span
from urbe.paper.results import Results
from urbe.report.maps import PALEST, cloud

CELL = 2 * TRACK / FINE * 2 * LEAN / FINE


def test_states_are_counted_where_they_are():
    draw = np.random.default_rng(0)
    x, degrees, action = draw.uniform(-TRACK, TRACK, 500), draw.uniform(-LEAN, LEAN, 500), draw.integers(2, size=500)
    counts = count_states(x, degrees, action, 8)
    expected = np.zeros((2, 8, 8), int)
    for at, angle, taken in zip(x, degrees, action, strict=True):
        expected[taken, int((at + TRACK) // (2 * TRACK / 8)), int((angle + LEAN) // (2 * LEAN / 8))] += 1
    np.testing.assert_array_equal(counts, expected)


def test_states_beyond_the_ends_count_at_the_edge():
    counts = count_states(np.array([-9.0, 9.0]), np.array([13.0, -13.0]), np.array([0, 1]), 4)
    assert counts[0, 0, 3] == counts[1, 3, 0] == 1
    assert counts.sum() == 2


def test_the_span_is_the_smallest_area_that_holds_the_share():
    counts = np.random.default_rng(1).poisson(3.0, size=(FINE, FINE))
    found = span(counts) / CELL
    best = np.sort(counts.ravel())[::-1]
    n = round(found)
    assert found == pytest.approx(n)
    assert best[:n].sum() >= 0.95 * counts.sum() > best[: n - 1].sum()


def test_the_span_of_a_uniform_cloud_is_its_area_and_of_one_place_a_cell():
    draw = np.random.default_rng(2)
    x, degrees = draw.uniform(-1.0, 1.0, 200_000), draw.uniform(-6.0, 6.0, 200_000)
    uniform = span(count_states(x, degrees, np.zeros(200_000, int), FINE).sum(axis=0))
    assert uniform == pytest.approx(0.95 * 2.0 * 12.0, rel=0.02)  # cells differ by chance: a little less is enough
    one = np.zeros((FINE, FINE), int)
    one[3, 4] = 7
    assert span(one) == pytest.approx(CELL)


def test_the_span_does_not_depend_on_the_place_nor_on_the_number_of_episodes():
    counts = np.zeros((FINE, FINE), int)
    counts[10:20, 30:50] = np.random.default_rng(3).integers(1, 9, size=(10, 20))
    assert span(np.roll(counts, (31, -12), (0, 1))) == span(counts) == span(5 * counts)


def test_a_rare_excursion_does_not_widen_the_span():
    counts = np.zeros((FINE, FINE), int)
    counts[40:50, 40:50] = 100
    more = counts.copy()
    more[0, :] = 1
    assert span(more) <= span(counts) + 2 * CELL


def test_pictures_put_visits_back_where_they_were():
    across, up = middles(DRAWN, TRACK), middles(DRAWN, LEAN)
    kept = [(1, 0, across[3], up[40], 5.0), (1, 1, across[47], up[0], 2.0), (2, 1, across[47], up[0], 1.0)]
    rows = [Row("raw", "dqn", seed, 0.0, "greedy", f"visits-{a}", x, y, times) for seed, a, x, y, times in kept]
    found = visits_of(Results.of(rows, Row), "dqn", "greedy")
    assert {(seed, *place): n for seed in found for place, n in np.ndenumerate(found[seed]) if n} == {
        (1, 0, 3, 40): 5.0,
        (1, 1, 47, 0): 2.0,
        (2, 1, 47, 0): 1.0,
    }
    assert visits_of(Results.of(rows, Row), "dqn", "noisy") == {}


def test_a_cloud_is_coloured_by_the_commoner_action_and_clear_where_nobody_was():
    counts = np.zeros((2, 3, 2))
    counts[:, 0, 0] = 1.0, 8.0
    counts[:, 2, 1] = 1.0, 0.0
    picture = cloud(counts, ("#ff0000", "#0000ff"))
    assert picture.shape == (2, 3, 4)  # rows upwards
    np.testing.assert_allclose(picture[0, 0], (0.0, 0.0, 1.0, 1.0))
    np.testing.assert_allclose(picture[1, 2], (1.0, 0.0, 0.0, PALEST))
    assert picture[..., 3].astype(bool).sum() == 2
    assert not cloud(np.zeros((2, 3, 2)), ("#ff0000", "#0000ff"))[..., 3].any()


@pytest.mark.parametrize(
    ("spans", "seed"), [({5: 1.0}, 5), ({5: 3.0, 6: 1.0}, 6), ({1: 3.0, 2: 1.0, 3: 2.0}, 3), ({4: 1.0, 3: 1.0}, 3)]
)
def test_the_seed_that_is_shown_has_the_median_span(spans, seed):
    assert median_seed(spans) == seed


class Fixed:
    """A policy that always takes the same action."""

    obs_size, n_actions, is_noisy, weights = 1, 4, False, None

    @staticmethod
    def rule(_weights, obs, noise):
        assert noise is None
        return jnp.full(len(obs), 2, jnp.int32)


def test_random_actions_come_as_often_as_epsilon_says_and_all_alike():
    noise = np.random.default_rng(4).standard_normal((200_000, 4)).astype(np.float32)
    actions = np.asarray(EpsilonGreedy(Fixed.rule, 0.1)(None, jnp.zeros((200_000, 1)), jnp.asarray(noise)))
    share = np.bincount(actions, minlength=4) / 200_000
    # five standard deviations of a share of 0.025 are 0.0018
    np.testing.assert_allclose(share, [0.025, 0.025, 0.925, 0.025], atol=0.003)


def test_without_noise_or_epsilon_an_exploring_policy_is_the_one_it_was_made_of():
    obs = jnp.zeros((50, 1))
    noise = jnp.asarray(np.random.default_rng(5).standard_normal((50, 4)), jnp.float32)
    assert (np.asarray(Exploring(Fixed, 0.3).rule(None, obs, None)) == 2).all()
    assert (np.asarray(EpsilonGreedy(Fixed.rule, 0.0)(None, obs, noise)) == 2).all()
    assert Exploring(Fixed, 0.3).is_noisy
    with pytest.raises(ValueError, match=r"epsilon is 1\.5"):
        Exploring(Fixed, 1.5)
