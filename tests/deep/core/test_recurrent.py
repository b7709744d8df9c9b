"""Backpropagation through time: hidden states, targets and gradients against a loop over single steps."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep.core.gru import gru_step, init_gru
from urbe.deep.core.keys import root_key
from urbe.deep.core.networks import Network, q_values
from urbe.deep.core.precision import double
from urbe.deep.core.recurrent import (
    Memory,
    RecurrentWeights,
    init_recurrent,
    learn,
    remembered,
    unroll,
    window_loss,
    window_targets,
)
from urbe.deep.core.sequences import RecurrentStep
from urbe.deep.core.settings import CopyEvery, Settings
from urbe.simulators.stacked import frame, frame_size

D, A, H, B, L = 3, 2, 4, 2, 3
SETTINGS = Settings(network=Network((6, 5)), huber=0.5, double=True)


def window(burn_in, seed=0):
    """Windows of random numbers; one episode ends within them."""
    rng = np.random.default_rng(seed)
    n = burn_in + L

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    last = np.zeros((B, n), bool)
    last[0, burn_in // 2], last[1, n - 2] = True, True
    return RecurrentStep(
        normal(B, n, D),
        jnp.asarray(rng.integers(A, size=(B, n)), jnp.int32),
        normal(B, n),
        jnp.asarray(0.9 * ~(last & (rng.random((B, n)) < 0.5)), jnp.float32),
        normal(B, n, D),
        jnp.asarray(last),
        normal(B, n, H),
    )


def weights(seed=0):
    one, other = jax.random.split(jax.random.key(seed))
    return RecurrentWeights(init_gru(one, frame_size(D, A), H), SETTINGS.network.init(other, D + H, A))


def at(steps, b, t):
    return jax.tree.map(lambda leaf: leaf[b, t], steps)


def reference(memory, gru, steps):
    """Hidden states before and after each step of the loss, by a loop over single steps."""
    before, after = [[None] * L for _ in range(B)], [[None] * L for _ in range(B)]
    last = np.asarray(steps.last)
    for b in range(B):
        h = steps.hidden[b, 0]
        for t in range(memory.window):
            if t == memory.burn_in:
                h = jax.lax.stop_gradient(h)
            now = at(steps, b, t)
            x = frame(now.obs, now.action, now.reward, now.reached, now.last, A)
            reached = gru_step(gru, h, x)
            if t >= memory.burn_in:
                before[b][t - memory.burn_in], after[b][t - memory.burn_in] = h, reached
            h = jnp.zeros(H) if last[b, t] and not memory.survives else reached
    return before, after


@pytest.mark.parametrize("survives", [True, False])
@pytest.mark.parametrize("burn_in", [0, 2])
def test_loss_targets_and_gradients_are_those_of_an_unrolled_loop(burn_in, survives):
    memory, steps = Memory(H, L, burn_in, survives), window(burn_in)
    online, target = weights(0), weights(1)
    wanted = jax.jit(partial(window_targets, SETTINGS, memory, n_actions=A))(online, target, steps)

    @jax.jit  # a loop of single steps all the same; operation by operation it would compile for half a minute
    def slow_targets(online, target):
        _, of_online = reference(memory, online.memory, steps)
        _, of_target = reference(memory, target.memory, steps)
        found = [[None] * L for _ in range(B)]
        for b in range(B):
            for t in range(L):
                now = at(steps, b, burn_in + t)
                best = q_values(SETTINGS.network, online.q, jnp.concatenate([now.reached, of_online[b][t]])).argmax()
                v = q_values(SETTINGS.network, target.q, jnp.concatenate([now.reached, of_target[b][t]]))[best]
                found[b][t] = now.reward + now.weight * v
        return jnp.asarray(found)

    np.testing.assert_allclose(wanted, slow_targets(online, target), rtol=1e-5, atol=1e-6)

    def slow(w):
        before, _ = reference(memory, w.memory, steps)
        total = 0.0
        for b in range(B):
            for t in range(L):
                now = at(steps, b, burn_in + t)
                q = q_values(SETTINGS.network, w.q, jnp.concatenate([now.obs, before[b][t]]))[now.action]
                size = jnp.abs(wanted[b, t] - q)
                total += jnp.where(size <= 0.5, size**2, 0.5 * (2 * size - 0.5))
        return total / (B * L)

    fast = jax.jit(jax.value_and_grad(lambda w: window_loss(SETTINGS, memory, w, steps, wanted, A)[0]))
    (found, gradient), (expected, other) = fast(online), jax.jit(jax.value_and_grad(slow))(online)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for one, two in zip(jax.tree.leaves(gradient), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)  # sums of float32 numbers in another order
    assert np.abs(gradient.memory.hidden).max() > 0.0  # it passes through time


def test_no_gradient_passes_the_burn_in():
    memory, steps = Memory(H, L, 2), window(2)

    def last(hidden):
        return unroll(memory, weights().memory, steps._replace(hidden=hidden), A).after.sum()

    assert not np.asarray(jax.grad(last)(steps.hidden)).any()


def test_acting_remembers_what_replaying_unrolls():
    for survives in (True, False):
        memory, steps, w = Memory(H, L, 0, survives), window(0), weights()
        found = unroll(memory, w.memory, steps, A)
        h = steps.hidden[0, 0]
        for t in range(L):
            np.testing.assert_allclose(found.before[0, t], h, rtol=1e-5, atol=1e-6)
            h = remembered(memory, w, at(steps, 0, t)._replace(hidden=h), A)


def test_gradient_steps_and_copies_are_made_when_they_are_due():
    settings = replace(
        SETTINGS, capacity=20, warm_up=3, batch=6, train_every=2, gradient_steps=3, copy=CopyEvery(updates=3)
    )
    memory = Memory(H, 3, 2)
    with double():
        learner = init_recurrent(settings, memory, root_key(0), D, A)
        first, steps, updates = learner.q, window(2), []
        take_in = jax.jit(partial(learn, settings, memory, n_actions=A))
        for t in range(10):
            learner, learned = take_in(learner, at(steps, 0, t % 5))
            updates.append(int(learner.updates))
    assert updates == [0, 0, 0, 0, 0, 3, 3, 6, 6, 9]  # a window of 5 steps first, then every second step
    assert float(learned.loss) > 0.0
    same = [np.array_equal(a, b) for a, b in zip(jax.tree.leaves(learner.q), jax.tree.leaves(first), strict=True)]
    assert not all(same)
    pairs = zip(jax.tree.leaves(learner.q), jax.tree.leaves(learner.target), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
