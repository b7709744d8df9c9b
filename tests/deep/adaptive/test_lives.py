"""Lives: targets of actions that change nothing."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from urbe.belief import Switching, tail_weights
from urbe.deep import EpisodeCVaR
from urbe.deep.adaptive.inputs import inputs_of
from urbe.deep.adaptive.learner import init_run
from urbe.deep.adaptive.lives import (
    _draw_truth,
    _ratio,
    begin_life,
    begin_tilt,
    choose,
    inputs_of_life,
    live,
    params_of,
    tilted,
)
from urbe.deep.adaptive.lookahead import Discounts, lookahead
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.dueling import DuelingNetwork
from urbe.deep.core.networks import q_values
from urbe.simulators import CartPole, MarsRover, UncertaintySet
from urbe.simulators.mars_rover import one_hot

ROVER = MarsRover(size=4, start_zone=(1, 1), encoding=one_hot, step_reward=-0.001, time_limit=20)
MODEL = BeliefModel.of(
    ROVER, UncertaintySet.grid(ROVER, include_nominal=False, failure=(0.1, 0.6)), Switching(0.2, "episode")
)
SETTINGS = AdaptiveSettings(network=DuelingNetwork((8,)), lives=2, minibatches=1, restart=0.0)
BELIEF = np.array([0.9, 0.1])


def bump(q):
    """A step against the upper border, where the values of actions are `q`."""
    run = init_run(SETTINGS, MODEL, jax.random.key(0))
    life = begin_life(SETTINGS, MODEL, jax.random.key(1))
    life = life._replace(state=jnp.int32(2), log_b=jnp.log(jnp.asarray([BELIEF], jnp.float32)), elapsed=jnp.int32(3))
    x = inputs_of_life(SETTINGS, MODEL, life)
    return life, *live(SETTINGS, MODEL, run.q, life, x, jnp.asarray(q), jnp.int32(0), jax.random.key(2))


STEP = jax.jit(jax.vmap(live, in_axes=(None, None, None, None, None, None, None, 0)), static_argnums=0)
KEYS = jax.random.split(jax.random.key(3), 4000)


def step_of(action, settings=SETTINGS, model=MODEL, state=6):
    """Many times the same step of a life whose true failure probability is 0.1."""
    run = init_run(settings, model, jax.random.key(0))
    life = begin_life(settings, model, jax.random.key(1))
    life = life._replace(
        state=jnp.int32(state), truth=jnp.asarray([1.0, 0.0]), log_b=jnp.log(jnp.asarray([BELIEF], jnp.float32))
    )
    x = inputs_of_life(settings, model, life)
    q = jnp.zeros(4).at[action].set(1.0)
    return STEP(settings, model, run.q, life, x, q, jnp.int32(action), KEYS)


def test_the_truth_jumps_between_episodes_and_time_runs_out_by_chance():
    """Moving up is safe and does not end an episode: only the time limit does, with a chance of 1 / 20."""
    after, seen = step_of(0)
    assert abs(float(seen.ended.mean()) - 1 / ROVER.time_limit) < 0.015
    changed = np.asarray(after.truth[:, 1])
    assert not changed[~np.asarray(seen.ended)].any()
    after, seen = step_of(0, state=2)  # a wait, which lasts until the end
    assert bool(seen.ended.all())
    assert abs(float(after.truth[:, 1].mean()) - 0.2 * 0.5) < 0.02  # the hazard, and the prior of the other member


def test_what_happens_is_drawn_from_the_true_parameters_of_the_episode():
    after, seen = step_of(2)
    failed = np.asarray(after.state) != np.asarray(after.state)[~np.asarray(seen.ended)][0]
    failed &= np.asarray(seen.finished_return) < -0.5
    assert abs(failed.mean() - 0.1) < 0.02


def test_rewards_are_scaled_and_lives_begin_anew():
    _, seen = step_of(0, state=2)
    after, scaled = step_of(0, replace(SETTINGS, reward_scale=10.0, restart=1.0), state=2)
    looked = lookahead(
        MODEL, Discounts(SETTINGS.discount, SETTINGS.boundary), jnp.int32(2), jnp.log(jnp.asarray([BELIEF])),
        jnp.int32(0), MODEL.simulator.nominal(), jnp.int32(0), jnp.bool_(False),
    )  # fmt: skip
    earned = looked.probability[0] @ looked.reward
    np.testing.assert_allclose(seen.target - scaled.target, 0.9 * earned, rtol=1e-3)
    np.testing.assert_allclose(np.exp(after.log_b[:, 0]), 0.5, rtol=1e-5)


def test_random_actions_are_held_for_a_few_steps():
    settings = replace(SETTINGS, hold=4)
    life = begin_life(settings, MODEL, jax.random.key(1))
    q, one = jnp.asarray([0.0, 0.0, 0.0, 9.0]), jnp.float32(1.0)
    began, action = jax.vmap(lambda key: choose(settings, life, q, one, key))(KEYS)
    np.testing.assert_allclose(np.bincount(np.asarray(action)) / len(KEYS), 0.25, atol=0.03)
    np.testing.assert_allclose(np.bincount(np.asarray(began.left)) / len(KEYS), 0.25, atol=0.03)  # 0 to 3 times more
    goes_on, again = jax.vmap(lambda life, key: choose(settings, life, q, jnp.float32(0.0), key))(began, KEYS)
    held = np.asarray(began.left) > 0
    np.testing.assert_array_equal(again, np.where(held, action, 3))
    np.testing.assert_array_equal(goes_on.left, np.maximum(began.left - 1, 0))


def test_the_nature_of_an_episode_reweighs_members_as_the_tail_of_their_values():
    settings = replace(SETTINGS, nature=EpisodeCVaR(0.5))
    weights, obs = init_run(settings, MODEL, jax.random.key(0)).q, ROVER.observe(jnp.int32(5))
    belief, none = jnp.asarray([[0.7, 0.3], [0.2, 0.8], [1.0, 0.0]]), jnp.ones((3, 1))
    tilt = begin_tilt(settings, MODEL, weights, obs, belief, none)
    certain = inputs_of(MODEL, jnp.broadcast_to(obs, (2, len(obs))), jnp.eye(2), jnp.ones((2, 1)))
    v = q_values(settings.network, weights, certain).max(axis=-1)
    wanted = tail_weights(belief, jnp.broadcast_to(v, belief.shape), 0.5)
    np.testing.assert_allclose(tilted(belief, tilt), wanted, atol=1e-6)
    assert float(jnp.abs(wanted - belief).max()) > 0.1


def test_a_greedy_wait_lasts_until_the_end_of_the_episode():
    _, after, seen = bump([1.0, 0.0, 0.0, 0.0])
    assert bool(seen.ended)
    assert float(seen.finished_length) == 3 + ROVER.time_limit
    assert float(seen.ratio) == np.float32(SETTINGS.boundary)
    assert int(after.state) == 0
    np.testing.assert_allclose(np.exp(after.log_b[0]), 0.8 * BELIEF + 0.2 * 0.5, rtol=1e-5)  # the hazard was applied


def test_a_wait_that_is_not_greedy_is_learned_about_and_taken_back():
    before, after, seen = bump([0.0, 1.0, 0.0, 0.0])
    for now, then in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(now, then)
    assert not bool(seen.ended)
    assert float(seen.ratio) == 0.0
    assert float(seen.target) == float(bump([1.0, 0.0, 0.0, 0.0])[2].target)


def test_ratios_are_of_the_mixtures_and_at_most_one():
    """nature / data = (0.5 0.2 + 0.5 0.8) / (0.9 0.2 + 0.1 0.8); where nature expects more of what happened, 1."""
    likelihood, believed, nature = np.array([0.2, 0.8]), np.array([0.9, 0.1]), np.array([0.5, 0.5])
    up = _ratio(*(jnp.asarray(each, jnp.float32) for each in (np.log(likelihood), nature, believed)))
    down = _ratio(*(jnp.asarray(each, jnp.float32) for each in (np.log(likelihood), believed, nature)))
    assert float(up) == 1.0
    np.testing.assert_allclose(down, 0.26 / 0.5, rtol=1e-6)
    impossible = jnp.full(2, -jnp.inf)
    assert float(_ratio(impossible, jnp.asarray(nature), jnp.asarray(believed))) == 1.0


def test_true_parameters_are_members_or_lie_between_neighbours():
    gains = (-4.0, -3.0, 1.0, 2.5, 5.0)
    members = UncertaintySet.grid(CartPole(), include_nominal=False, force=gains)
    prior = (0.4, 0.1, 0.2, 0.0, 0.3)
    model = BeliefModel.of(CartPole(), members, Switching(0.1, prior=prior))
    u = np.random.default_rng(0).random((2000, 4)).astype(np.float32)
    for share in (0.0, 0.6):
        settings = AdaptiveSettings(between=share)
        truth = np.asarray(jax.vmap(lambda one, of=settings: _draw_truth(of, model, one))(jnp.asarray(u)))
        np.testing.assert_allclose(truth.sum(axis=1), 1.0, rtol=1e-5)
        certain = (truth == 1.0).any(axis=1)
        assert abs(certain.mean() - (1.0 - share)) < 0.05
        np.testing.assert_allclose(np.bincount(truth[certain].argmax(axis=1), minlength=5) / certain.sum(), prior,
                                   atol=0.05)  # fmt: skip
        force = np.array([float(params_of(model, jnp.asarray(one)).force) for one in truth[~certain][:40]])
        assert ((force > -4.0) & (force < 5.0)).all()
        nearest = {0: (1, 2), 1: (0, 2), 2: (3, 4), 3: (2, 4), 4: (3, 2)}
        for one in truth[~certain]:
            pair = np.flatnonzero(one)
            assert len(pair) == 2
            assert pair[1] in nearest[pair[0]] or pair[0] in nearest[pair[1]]
