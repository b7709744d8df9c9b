"""One update of the neural soft-robust actor-critic [Derman2018], a pure function.

    delta = r - J + gamma v(o') - v(o)         J = 0 for discounted rewards, gamma = 1 for average reward
    critic descends delta^2 / 2 with the target held fixed, actor ascends delta log pi(a | o)

o' comes from a member of the set; members are drawn with probabilities `shares`, in every step or once per episode.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.deep.actor_critic.settings import ActorCriticSettings
from urbe.deep.core.optimisers import Adam, optimise
from urbe.simulators.base import Params, Simulator, State, observation_size, step

_ADAM = Adam()


class ActorCriticRun(NamedTuple):
    """The complete state of learning.

    Attributes:
      actor, critic: weights of the networks, with the moments of their optimisers.
      gain: J, in units of `reward_scale`.
      updates: number of updates.
      key: key of random numbers.
      state, member, elapsed: state, member and time of each lane.
      total: return of each lane's episode so far.
      done, ended: sum of the returns and number of the episodes that finished since the last row of the log.
    """

    actor: Any
    critic: Any
    actor_moments: Any
    critic_moments: Any
    gain: Float[Array, ""]
    updates: Int32[Array, ""]
    key: jax.Array
    state: State
    member: Int32[Array, " L"]
    elapsed: Int32[Array, " L"]
    total: Float[Array, " L"]
    done: Float[Array, ""]
    ended: Int32[Array, ""]


class _Lived(NamedTuple):
    """One step of every lane."""

    observation: Array
    action: Array
    reward: Array
    ahead: Array
    goes_on: Array


class DrawnFrom(NamedTuple):
    """The parameters of K members, and the logarithms of their shares."""

    params: Params
    log_shares: Float[Array, " K"]


def begin(settings: ActorCriticSettings, simulator: Simulator, world: DrawnFrom, key: jax.Array) -> ActorCriticRun:
    """Fresh networks, and a first state in every lane. The key is consumed."""
    own, actor_key, critic_key, member_key, start_key = jax.random.split(key, 5)
    size = observation_size(simulator)
    actor = settings.actor.init(actor_key, size, simulator.n_actions)
    critic = settings.critic.init(critic_key, size, 1)
    member = jax.random.categorical(member_key, world.log_shares, shape=(settings.lanes,)).astype(jnp.int32)
    state = _start(simulator, world, jax.random.split(start_key, settings.lanes), member)
    zeros = jnp.zeros(settings.lanes)
    return ActorCriticRun(
        actor, critic, _ADAM.init(actor), _ADAM.init(critic), jnp.float32(0), jnp.int32(0), own, state, member,
        zeros.astype(jnp.int32), zeros, jnp.float32(0), jnp.int32(0),
    )  # fmt: skip


@partial(jax.jit, static_argnums=(0, 1))
def advance(
    settings: ActorCriticSettings,
    simulator: Simulator,
    world: DrawnFrom,
    run: ActorCriticRun,
    count: Int32[Array, ""],
) -> ActorCriticRun:
    """Makes several updates."""
    out: ActorCriticRun = jax.lax.fori_loop(0, count, lambda _, now: _update(settings, simulator, world, now), run)
    return out


def _update(
    settings: ActorCriticSettings, simulator: Simulator, world: DrawnFrom, run: ActorCriticRun
) -> ActorCriticRun:
    run, lived = jax.lax.scan(lambda now, _: _live(settings, simulator, world, now), run, None, length=settings.rollout)
    average = settings.criterion == "average"
    discount = 1.0 if average else settings.discount
    reward = lived.reward / settings.reward_scale
    goes_on = jnp.ones_like(reward) if average else lived.goes_on

    def worth(weights: Any, observation: Array) -> Array:
        return settings.critic.values(weights, settings.critic.features(weights, observation))[..., 0]

    target = reward - (run.gain if average else 0.0) + discount * goes_on * worth(run.critic, lived.ahead)
    delta = jax.lax.stop_gradient(target - worth(run.critic, lived.observation))

    def critic_loss(weights: Any) -> Array:
        return 0.5 * jnp.square(jax.lax.stop_gradient(target) - worth(weights, lived.observation)).mean()

    def actor_loss(weights: Any) -> Array:
        log_pi = jax.nn.log_softmax(settings.actor.values(weights, settings.actor.features(weights, lived.observation)))
        chosen = jnp.take_along_axis(log_pi, lived.action[..., None], axis=-1)[..., 0]
        return -(delta * chosen).mean() + settings.entropy * (jnp.exp(log_pi) * log_pi).sum(axis=-1).mean()

    late = 1.0 + run.updates.astype(jnp.float32) / settings.delay
    critic, critic_moments = optimise(
        _ADAM, settings.critic_rate * late**-settings.critic_power, run.critic, run.critic_moments,
        jax.grad(critic_loss)(run.critic), 10.0,
    )  # fmt: skip
    actor, actor_moments = optimise(
        _ADAM, settings.actor_rate * late**-settings.actor_power, run.actor, run.actor_moments,
        jax.grad(actor_loss)(run.actor), 10.0,
    )  # fmt: skip
    gain = run.gain + (settings.gain_rate * (reward.mean() - run.gain) if average else 0.0)
    return run._replace(
        actor=actor, critic=critic, actor_moments=actor_moments, critic_moments=critic_moments, gain=gain,
        updates=run.updates + 1,
    )  # fmt: skip


def _live(
    settings: ActorCriticSettings, simulator: Simulator, world: DrawnFrom, run: ActorCriticRun
) -> tuple[ActorCriticRun, _Lived]:
    """Steps every lane, and starts a new episode after one has ended."""
    own, act_key, member_key, step_key, again_key, start_key = jax.random.split(run.key, 6)
    lanes = settings.lanes
    observe = jax.vmap(simulator.observe)
    observation = observe(run.state)
    preference = settings.actor.values(run.actor, settings.actor.features(run.actor, observation))
    action = jax.random.categorical(act_key, preference).astype(jnp.int32)
    member = run.member
    if settings.draw == "step":
        member = jax.random.categorical(member_key, world.log_shares, shape=(lanes,)).astype(jnp.int32)
    params = jax.tree.map(lambda leaf: leaf[member], world.params)
    arrival = jax.vmap(partial(step, simulator))(jax.random.split(step_key, lanes), run.state, action, params)
    elapsed = run.elapsed + 1
    over = arrival.terminated | (elapsed >= simulator.time_limit)
    later = jax.random.categorical(again_key, world.log_shares, shape=(lanes,)).astype(jnp.int32)
    again = jnp.where(over, later, member)
    first = _start(simulator, world, jax.random.split(start_key, lanes), again)
    state = jax.tree.map(lambda new, old: jnp.where(_wide(over, new), new, old), first, arrival.state)
    # at a restart the average criterion bootstraps from the new first state, the discounted one from the reached state
    follows = over if settings.criterion == "average" else jnp.zeros_like(over)
    ahead = jnp.where(follows[:, None], observe(first), observe(arrival.state))
    total = run.total + arrival.reward
    lived = _Lived(observation, action, arrival.reward, ahead, 1.0 - arrival.terminated.astype(jnp.float32))
    run = run._replace(
        key=own, state=state, member=again, elapsed=jnp.where(over, 0, elapsed), total=jnp.where(over, 0.0, total),
        done=run.done + jnp.where(over, total, 0.0).sum(), ended=run.ended + over.sum(dtype=jnp.int32),
    )  # fmt: skip
    return run, lived


def _start(simulator: Simulator, world: DrawnFrom, keys: jax.Array, member: Int32[Array, " L"]) -> State:
    return jax.vmap(simulator.start)(keys, jax.tree.map(lambda leaf: leaf[member], world.params))


def _wide(flag: Array, like: Array) -> Array:
    return flag.reshape(flag.shape + (1,) * (like.ndim - 1))
