"""Look one step ahead from a pair of state and belief: all outcomes of an action, as used in training.

    P[k, j]      the probability of outcome j under member k
    reward[j], discount[j], successor[j], belief[j]

The belief after an outcome depends on the outcome and not on the member. If members share outcomes, there are J of
them; if they predict, each member has its own, and all K x J are listed. The end of an episode leads to the first state
of the next one, with the surviving belief and with the `boundary` discount.

An action is idle if it changes neither state nor belief. A greedy policy then repeats it until the time limit, with a
probability of 1 / T per step: the step stands for all repetitions at once,

    reward  r / (1 - stay),    discount  boundary (1 / T) / (1 - stay),    stay = gamma (1 - 1 / T)

Otherwise the difference between an action and one more idle step would be too small to learn, even if idling for a
whole episode is much better or worse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from urbe.belief.switching import of_members
from urbe.deep.adaptive.model import BeliefModel
from urbe.simulators.base import Params, State


class Discounts(NamedTuple):
    """The discounts from step to step, and from the end of an episode to the next one."""

    step: float
    boundary: float


class Lookahead(NamedTuple):
    """The N possible outcomes of an action.

    Attributes:
      belief: `(K,)` belief in the members during the step.
      probability: `(K, N)` probability of each outcome under each member.
      drawn: `(N,)` probability under the true parameters.
      log_likelihood: `(N, K)` log-likelihood of each outcome, which updates the belief.
      reward, discount: `(N,)`.
      state: successors, leading axis N; the first state of the next episode if this one ended.
      log_b: `(N, H, K)` the belief after the outcome.
      ended: `(N,)` whether the episode ended.
      idle: whether the action changes nothing, so that the outcomes are those of repeating it until the time limit.
    """

    belief: Float[Array, " K"]
    probability: Float[Array, "K N"]
    drawn: Float[Array, " N"]
    log_likelihood: Float[Array, "N K"]
    reward: Float[Array, " N"]
    discount: Float[Array, " N"]
    state: State
    log_b: Float[Array, "N H K"]
    ended: Bool[Array, " N"]
    idle: Bool[Array, ""]


def lookahead(
    model: BeliefModel,
    discounts: Discounts,
    state: State,
    log_b: Float[Array, "H K"],
    action: Int[Array, ""],
    truth: Params,
    first: State,
    cut: Bool[Array, ""],
    temper: Float[Array, ""] | float = 1.0,
    repeat: bool = True,
) -> Lookahead:
    """Computes the outcomes of an action under every member and under the true parameters.

    Args:
      model: members, likelihoods and switching.
      discounts: within an episode and between episodes.
      state, log_b: the state, and the belief for the coming step, including possible jumps before it.
      action: the action.
      truth: the true parameters, not necessarily of a member; their outcomes come last if members predict.
      first: the first state of the next episode, if this one ends.
      cut: whether this step is the last one by the time limit.
      temper: an exponent of the likelihoods, in addition to that of `Switching`.
      repeat: whether an idle action stands for its repetitions, or for a single step.
    """
    switching = model.switching
    listed = _shared(model, state, action, truth) if model.shared else _predicted(model, state, action, truth)
    after, _ = switching.update(
        jnp.broadcast_to(log_b, (len(listed.reward), *log_b.shape)), temper * listed.log_likelihood
    )
    idle = _is_idle(model, state, listed) if repeat else jnp.bool_(False)
    ended = listed.terminated | cut | idle
    changes = ended if switching.per == "episode" else jnp.ones_like(ended)
    after = jnp.where(changes[:, None, None], switching.jump(after), after)

    def next_state(then: Array, anew: Array) -> Array:
        return jnp.where(ended.reshape(-1, *[1] * (then.ndim - 1)), anew[None], then)

    chance = 1.0 / model.simulator.time_limit
    repeats = 1.0 / (1.0 - discounts.step * (1.0 - chance))  # discounted number of repetitions
    over = jnp.where(idle, jnp.float32(discounts.boundary * chance * repeats), jnp.float32(discounts.boundary))
    return Lookahead(
        of_members(log_b),
        listed.probability,
        listed.drawn,
        listed.log_likelihood,
        listed.reward * jnp.where(idle, jnp.float32(repeats), jnp.float32(1.0)),
        jnp.where(ended, over, jnp.float32(discounts.step)),
        jax.tree.map(next_state, listed.state, first),
        after,
        ended,
        idle,
    )


class _Listed(NamedTuple):
    probability: Float[Array, "K N"]
    drawn: Float[Array, " N"]
    reward: Float[Array, " N"]
    terminated: Bool[Array, " N"]
    state: State
    log_likelihood: Float[Array, "N K"]


def _is_idle(model: BeliefModel, state: State, listed: _Listed) -> Bool[Array, ""]:
    """Whether every outcome leaves observation and belief unchanged."""
    if not model.shared or (model.switching.per == "step" and model.switching.hazards.any()):
        return jnp.zeros((), bool)  # predictions differ between members, and time alone changes the belief
    seen = jax.vmap(model.simulator.observe)(listed.state)
    stays = (seen == model.simulator.observe(state)).all(axis=-1) & ~listed.terminated
    says_nothing = (listed.probability == listed.probability[:1]).all(axis=0)
    possible = (listed.probability > 0.0).any(axis=0)
    idle: Array = (~possible | (stays & says_nothing)).all()
    return idle


def _with_truth(model: BeliefModel, truth: Params) -> Any:
    """The parameters of all members and, last, the true ones."""
    return jax.tree.map(
        lambda all_, one: jnp.concatenate([all_, jnp.asarray(one, all_.dtype)[None]]), model.params, truth
    )


def _shared(model: BeliefModel, state: State, action: Int[Array, ""], truth: Params) -> _Listed:
    found = model.outcomes(state, action, _with_truth(model, truth))
    of_members_ = found.probability[:-1]
    says = model.evidence_of_outcomes(of_members_)
    return _Listed(of_members_, found.probability[-1], found.reward, found.terminated, found.state, says.log_likelihood)


def _predicted(model: BeliefModel, state: State, action: Int[Array, ""], truth: Params) -> _Listed:
    found = model.outcomes(state, action, _with_truth(model, truth))
    members, outcomes = found.probability.shape[0] - 1, found.probability.shape[1]
    obs = jax.vmap(jax.vmap(model.simulator.observe))(found.state)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found)
    seen = obs.reshape(-1, obs.shape[-1])
    says, _ = model.evidence_of_observation(
        found.probability[:-1], obs[:-1], found.terminated[:-1], seen, flat.terminated, jnp.zeros_like(seen)
    )
    own = jnp.repeat(jnp.arange(members + 1), outcomes)  # the member of each outcome
    belongs = own[None] == jnp.arange(members + 1)[:, None]
    probability = jnp.where(belongs, flat.probability[None], jnp.float32(0.0))
    return _Listed(probability[:-1], probability[-1], flat.reward, flat.terminated, flat.state, says.log_likelihood)
