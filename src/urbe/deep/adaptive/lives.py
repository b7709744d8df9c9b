"""Lives: parallel simulated deployments, in which the true parameters jump according to `Switching`.

A life and its belief continue from episode to episode. Its true parameters are those of a member or, for a share of the
draws, lie between two neighbouring ones. The time limit is a probability per step, 1 / time_limit, so that time need
not be observed. An action that changes nothing is repeated until then (see `lookahead`) if it is greedy, as one step of
experience; if it is not, the agent learns from it, and the life stays where it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32

from urbe.belief.switching import of_hazards, of_members
from urbe.deep.adaptive.inputs import inputs_of
from urbe.deep.adaptive.lookahead import Discounts, Lookahead, lookahead
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.natures import EpisodeNature
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.networks import q_values
from urbe.simulators.base import Params, State


class Life(NamedTuple):
    """The state of a simulated deployment; batched leaves have the lives along their first axis."""

    state: State
    log_b: Float[Array, "H K"]
    tilt: Float[Array, " K"]  # logarithms of the factors with which the episode's nature reweights members
    truth: Float[Array, " K"]  # weights of the members whose mean the true parameters are
    hazard: Float[Array, ""]  # the true one
    temper: Float[Array, ""]
    held: Int32[Array, ""]  # the repeated random action
    left: Int32[Array, ""]  # number of further repetitions
    episode_return: Float[Array, ""]
    elapsed: Int32[Array, ""]


class Experience(NamedTuple):
    """One step of one life, as used for learning.

    Attributes:
      inputs: inputs of the network.
      action: the action taken.
      greedy: whether it is greedy for the network.
      shortfall: V(x) - Q(x, a) >= 0.
      target: nature's mixture of the members' one-step targets.
      ratio: min(1, nature's / data's probability of the outcome), times the discount; 0 if the life does not continue
        from there.
      bootstrap: V of the successor.
      ended, finished_return, finished_length: end, return and length of finished episodes.
    """

    inputs: Float[Array, " I"]
    action: Int32[Array, ""]
    greedy: Bool[Array, ""]
    shortfall: Float[Array, ""]
    target: Float[Array, ""]
    ratio: Float[Array, ""]
    bootstrap: Float[Array, ""]
    ended: Bool[Array, ""]
    finished_return: Float[Array, ""]
    finished_length: Float[Array, ""]


def begin_life(settings: AdaptiveSettings, model: BeliefModel, key: jax.Array) -> Life:
    """Begins a life without observations. The key is consumed."""
    for_draws, for_start = jax.random.split(key)
    u = jax.random.uniform(for_draws, (6,), jnp.float32)
    truth = _draw_truth(settings, model, u[:4])
    return Life(
        state=model.simulator.start(for_start, params_of(model, truth)),
        log_b=jnp.asarray(model.switching.begin(model.n_members), jnp.float32),
        tilt=jnp.zeros(model.n_members, jnp.float32),
        truth=truth,
        hazard=_pick(model.switching.hazards, u[4]),
        temper=_pick(settings.tempers, u[5]),
        held=jnp.int32(0),
        left=jnp.int32(0),
        episode_return=jnp.float32(0.0),
        elapsed=jnp.int32(0),
    )


def inputs_of_life(settings: AdaptiveSettings, model: BeliefModel, life: Life) -> Float[Array, " I"]:
    """The input of the network in a life."""
    if settings.informed:
        return _inputs(model, life.state, life.truth, of_hazards(life.log_b))
    return _inputs(model, life.state, tilted(of_members(life.log_b), life.tilt), of_hazards(life.log_b))


def choose(
    settings: AdaptiveSettings, life: Life, q: Float[Array, " A"], epsilon: Float[Array, ""], key: jax.Array
) -> tuple[Life, Int32[Array, ""]]:
    """Chooses the best action, or a random one that is repeated for a few steps. The key is consumed."""
    u = jax.random.uniform(key, (3,), jnp.float32)
    begins = (life.left == 0) & (u[0] < epsilon)
    held = jnp.where(begins, (u[1] * len(q)).astype(jnp.int32), life.held)
    left = jnp.where(begins, 1 + (u[2] * settings.hold).astype(jnp.int32), life.left)
    action = jnp.where(left > 0, held, q.argmax().astype(jnp.int32))
    return life._replace(held=held, left=jnp.maximum(left - 1, 0)), action


def live(
    settings: AdaptiveSettings,
    model: BeliefModel,
    weights: Any,
    life: Life,
    x: Float[Array, " I"],
    q: Float[Array, " A"],
    action: Int32[Array, ""],
    key: jax.Array,
) -> tuple[Life, Experience]:
    """Takes one step of a life, and returns the experience to learn from. The key is consumed.

    Args:
      settings: settings of the agent.
      model: its belief model.
      weights: weights of the network.
      life: the state of the life.
      x, q: inputs of the network there, and the values of all actions.
      action: the action to take.
      key: key of all random numbers.
    """
    for_draws, for_start, for_life = jax.random.split(key, 3)
    u = jax.random.uniform(for_draws, (8,), jnp.float32)
    jumped = jnp.where(u[0] < life.hazard, _draw_truth(settings, model, u[1:5]), life.truth)
    per_step = model.switching.per == "step"
    truth, next_truth = (jumped, jumped) if per_step else (life.truth, jumped)
    first = model.simulator.start(for_start, params_of(model, next_truth))
    cut = u[5] < jnp.float32(1.0 / model.simulator.time_limit)
    discounts = Discounts(settings.discount, settings.boundary)
    true_params = params_of(model, truth)
    look = lookahead(
        model, discounts, life.state, life.log_b, action, true_params, first, cut, life.temper, settings.repeat
    )
    there = _arrivals(settings, model, weights, life, look, first, truth, next_truth)
    v = q_values(settings.network, weights, there.inputs).max(axis=-1)

    believed = truth if settings.informed else tilted(look.belief, life.tilt)
    reward = look.reward / jnp.float32(settings.reward_scale)
    values = look.probability @ (reward + look.discount * v)
    nature = settings.nature.weights(believed, values)
    happened = jnp.sum(u[6] >= jnp.cumsum(look.drawn)[:-1])
    greedy = action == q.argmax()
    taken_back = look.idle & ~greedy  # a single idle step is not repeated for the episode
    ended = look.ended[happened] & ~taken_back
    anew = ended & (u[7] < jnp.float32(settings.restart))
    steps = jnp.where(look.idle, jnp.int32(model.simulator.time_limit), jnp.int32(1))
    goes_on = _ratio(look.log_likelihood[happened], nature, believed) * look.discount[happened]
    experience = Experience(
        inputs=x,
        action=action,
        greedy=greedy,
        shortfall=q.max() - q[action],
        target=nature @ values,
        ratio=jnp.where(anew | taken_back, 0.0, goes_on),
        bootstrap=v[happened],
        ended=ended,
        finished_return=life.episode_return + look.reward[happened],
        finished_length=(life.elapsed + steps).astype(jnp.float32),
    )
    moved = life._replace(
        state=jax.tree.map(lambda leaf: leaf[happened], look.state),
        log_b=look.log_b[happened],
        tilt=there.tilt[happened],
        truth=jnp.where(ended, next_truth, truth),
        left=jnp.where(ended, 0, life.left),
        episode_return=jnp.where(ended, 0.0, experience.finished_return),
        elapsed=jnp.where(ended, 0, life.elapsed + 1),
    )
    fresh = begin_life(settings, model, for_life)
    after = jax.tree.map(lambda new, old: jnp.where(anew, new, old), fresh, moved)
    return jax.tree.map(lambda now, then: jnp.where(taken_back, now, then), life, after), experience


class _Arrivals(NamedTuple):
    inputs: Float[Array, "N I"]
    tilt: Float[Array, "N K"]


def _arrivals(
    settings: AdaptiveSettings,
    model: BeliefModel,
    weights: Any,
    life: Life,
    look: Lookahead,
    first: State,
    truth: Float[Array, " K"],
    next_truth: Float[Array, " K"],
) -> _Arrivals:
    """The network's input after each outcome, and the weights of members by the nature of that episode."""
    hazards = of_hazards(look.log_b)
    tilt = jnp.broadcast_to(life.tilt, (len(look.reward), len(life.tilt)))
    if settings.informed:
        belief = jnp.where(look.ended[:, None], next_truth, truth)
    else:
        belief = of_members(look.log_b)
        begun = begin_tilt(settings, model, weights, model.simulator.observe(first), belief, hazards)
        if begun is not None:
            tilt = jnp.where(look.ended[:, None], begun, tilt)
            belief = tilted(belief, tilt)
    obs = jax.vmap(model.simulator.observe)(look.state)
    return _Arrivals(inputs_of(model, obs, belief, hazards), tilt)


def begin_tilt(
    settings: AdaptiveSettings,
    model: BeliefModel,
    weights: Any,
    obs: Float[Array, " D"],
    belief: Float[Array, "N K"],
    hazards: Float[Array, "N H"],
) -> Float[Array, "N K"] | None:
    """Logarithms of the factors with which nature reweights members in an episode that begins at `obs`, if it does."""
    if not isinstance(settings.nature, EpisodeNature):
        return None
    k = model.n_members
    known = inputs_of(
        model,
        jnp.broadcast_to(obs, (k, len(obs))),
        jnp.eye(k, dtype=jnp.float32),
        jnp.broadcast_to(hazards[0], (k, hazards.shape[-1])),
    )
    v = q_values(settings.network, weights, known).max(axis=-1)
    wanted = settings.nature.begin_episode(belief, jnp.broadcast_to(v, belief.shape))
    return jnp.where(belief > 0.0, jnp.log(jnp.maximum(wanted, 1e-12)) - jnp.log(jnp.maximum(belief, 1e-30)), 0.0)


def tilted(belief: Float[Array, "*B K"], tilt: Float[Array, "*B K"]) -> Float[Array, "*B K"]:
    """Reweights and normalises the belief."""
    raised = belief * jnp.exp(tilt)
    return raised / jnp.maximum(raised.sum(axis=-1, keepdims=True), 1e-30)


def params_of(model: BeliefModel, truth: Float[Array, " K"]) -> Params:
    """The mean of the members' parameters with these weights."""
    return jax.tree.map(lambda leaf: (truth * leaf).sum(), model.params)


def _inputs(
    model: BeliefModel, state: State, belief: Float[Array, " K"], hazards: Float[Array, " H"]
) -> Float[Array, " I"]:
    return inputs_of(model, model.simulator.observe(state), belief, hazards)


def _ratio(
    log_likelihood: Float[Array, " K"], nature: Float[Array, " K"], believed: Float[Array, " K"]
) -> Float[Array, ""]:
    """min(1, nature's / data's probability of the outcome), both mixtures of the members' likelihoods."""
    likelihood = jnp.exp(log_likelihood - jnp.maximum(log_likelihood.max(), -1e30))
    data = believed @ likelihood
    return jnp.where(data > 0.0, jnp.minimum((nature @ likelihood) / jnp.maximum(data, 1e-30), 1.0), 1.0)


def _draw_truth(settings: AdaptiveSettings, model: BeliefModel, u: Float[Array, " 4"]) -> Float[Array, " K"]:
    """Draws a member from the prior or, for a share of the draws, a mean of it and a neighbour."""
    prior = np.exp(model.switching.log_prior(model.n_members))
    below = jnp.asarray(np.cumsum(prior)[:-1], jnp.float32)
    member = jnp.sum(u[0] >= below)
    one = jax.nn.one_hot(member, model.n_members, dtype=jnp.float32)
    if settings.between == 0.0 or model.n_members == 1:
        return one
    other = model.neighbours[member, (u[1] < 0.5).astype(jnp.int32)]
    share = jnp.where(u[2] < jnp.float32(settings.between), u[3], 0.0)
    return (1.0 - share) * one + share * jax.nn.one_hot(other, model.n_members, dtype=jnp.float32)


def _pick(choices: Any, u: Float[Array, ""]) -> Float[Array, ""]:
    """Picks one of a few numbers, all equally likely."""
    each = np.asarray(choices, np.float32)
    return jnp.asarray(each)[jnp.minimum((u * len(each)).astype(jnp.int32), len(each) - 1)]
