"""The policy in deployment, with fixed weights and a belief as its memory, for `urbe.evaluation.adaptation`.

    memory = policy.start(key)
    action, memory = policy.act(memory, observation)
    memory = policy.observe(memory, step)

The memory is the belief of `urbe.belief`, with its noise and surprise, and survives the end of an episode. Everything
is pure and traceable: thousands of deployments run in parallel under `jax.vmap`.

If observations are noisy, a policy with a `Sensor` keeps an estimate of the state for every member (see
`urbe.belief.estimates`), compares predictions from these estimates, and acts on their mean under the belief.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32, UInt32

from urbe.belief.credible import credible_set
from urbe.belief.estimates import (
    Estimates,
    Sensor,
    believed_state,
    corrected_estimates,
    first_estimates,
    mixed_estimates,
    predicted_estimates,
)
from urbe.belief.likelihoods import Evidence, endings, known_outcomes
from urbe.belief.state import BeliefState, Watch, begin, new_episode, observe, used
from urbe.belief.switching import of_hazards, of_members
from urbe.deep.adaptive.inputs import inputs_of
from urbe.deep.adaptive.lives import begin_tilt, tilted
from urbe.deep.adaptive.model import BeliefModel
from urbe.deep.adaptive.rules import BeliefRule
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core.keys import as_key
from urbe.deep.core.networks import q_values
from urbe.evaluation.adaptation import Step
from urbe.simulators.base import Simulator, observation_size
from urbe.simulators.limits import Recoverable, recover_state


class AdaptiveMemory(NamedTuple):
    """The memory from step to step, and from episode to episode.

    Attributes:
      belief: the belief of `urbe.belief`.
      tilt: `(K,)` logarithms of the factors with which the episode's nature reweights members.
      member: drawn from the belief at the start of the episode.
      begun: whether the episode has begun.
      observation: the last one that was acted on.
      words: words of the key from which members are drawn.
      estimates: estimates of the state under each member, if observations are noisy; else empty.
    """

    belief: BeliefState
    tilt: Float[Array, " K"]
    member: Int32[Array, ""]
    begun: Bool[Array, ""]
    observation: Float[Array, " D"]
    words: UInt32[Array, " 2"]
    estimates: Estimates


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("weights", "model"),
    meta_fields=("settings", "rule", "watch", "alpha", "sensor"),
)
@dataclass(frozen=True, eq=False)
class AdaptivePolicy:
    """Acts with fixed weights and a belief that is updated by observations.

    Args:
      weights: weights of the network.
      model: members, likelihoods, and changes of the true member.
      settings: settings of the agent with these weights.
      rule: acting rule.
      watch: decides when no member explains the observations.
      alpha: the mass outside of the reported credible set.
      sensor: the noise of observations; None for exact ones. It needs members that predict, with one outcome each, and
        observations that determine the state.
    """

    weights: Any
    model: BeliefModel
    settings: AdaptiveSettings
    rule: BeliefRule
    watch: Watch
    alpha: float = 0.1
    sensor: Sensor | None = None

    def start(self, key: jax.Array) -> AdaptiveMemory:
        """The memory before the first observation. The key is consumed."""
        model = self.model
        size = observation_size(model.simulator)
        fresh = begin(model.switching, model.n_members, 0 if model.shared else size)
        belief = BeliefState(
            jnp.asarray(fresh.log_b, jnp.float32),
            jnp.asarray(fresh.noise, jnp.float32),
            jnp.asarray(fresh.count, jnp.int32),
            jnp.asarray(fresh.surprise, jnp.float32),
        )
        return AdaptiveMemory(
            belief,
            jnp.zeros(model.n_members, jnp.float32),
            jnp.int32(0),
            jnp.bool_(False),
            jnp.zeros(size, jnp.float32),
            jax.random.bits(key, (2,), jnp.uint32),
            _no_estimates(0, 0) if self.sensor is None else _no_estimates(model.n_members, size),
        )

    def act(self, memory: AdaptiveMemory, observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], AdaptiveMemory]:
        """The greedy action by the acting rule, and the memory after the decision."""
        return self.decide(self.begin_episode(memory, observation), observation)

    def decide(
        self, memory: AdaptiveMemory, observation: Float[Array, " D"]
    ) -> tuple[Int32[Array, ""], AdaptiveMemory]:
        """`act` within an episode."""
        belief = tilted(self.believed(memory), memory.tilt)
        seen = observation if self.sensor is None else believed_state(memory.belief.log_b, memory.estimates)
        q = self.rule.values(partial(self._values, memory, seen), belief, memory.member)
        return q.argmax().astype(jnp.int32), memory._replace(observation=observation)

    def observe(self, memory: AdaptiveMemory, step: Step) -> AdaptiveMemory:
        """The belief after one more transition; likelihoods come from the simulator's members."""
        ended = step.terminated | step.truncated
        if self.sensor is not None:
            estimates, evidence = evidence_under_noise(self.model, self.sensor, step, memory.belief, memory.estimates)
            return self.learn_of(memory._replace(estimates=estimates), evidence, None, ended)
        evidence, square = evidence_of(self.model, step, memory.belief.noise)
        return self.learn_of(memory, evidence, square, ended)

    def learn_of(
        self, memory: AdaptiveMemory, evidence: Evidence, square: Float[Array, "K D"] | None, ended: Bool[Array, ""]
    ) -> AdaptiveMemory:
        """The memory after any evidence about members.

        Args:
          memory: before it.
          evidence: the evidence of the step.
          square: squared errors of the members' predictions, to estimate the noise; None if they do not predict.
          ended: whether the episode ended with the step.
        """
        belief, _ = observe(self.model.switching, self.watch, memory.belief, evidence, square)
        after = new_episode(self.model.switching, belief)
        belief = jax.tree.map(lambda new, old: jnp.where(ended, new, old), after, belief)
        return memory._replace(belief=belief, begun=~ended)

    def believed(self, memory: AdaptiveMemory) -> Float[Array, " K"]:
        """The belief for decisions: the filter's, widened if no member explains the observations."""
        found: Array = used(self.model.switching, self.watch, self._coming(memory))
        return found

    def _coming(self, memory: AdaptiveMemory) -> BeliefState:
        """The belief for the coming step, including a possible jump before it."""
        switching, state = self.model.switching, memory.belief
        return state._replace(log_b=switching.jump(state.log_b)) if switching.per == "step" else state

    def report(self, memory: AdaptiveMemory) -> dict[str, Array]:
        """Reports the belief, the credible set, its worst member, and the surprise.

        `belief` is the belief for decisions, `filtered` the exact posterior, and `outside` measures their difference.
        `worst` is the credible member with the lowest value of the last observation, according to the network.
        """
        belief = self.believed(memory)
        inside = credible_set(belief, self.alpha)
        certain = jnp.eye(self.model.n_members, dtype=jnp.float32)
        v = self._values(memory, memory.observation, certain).max(axis=-1)
        limit = self.watch.limit
        return {
            "belief": belief,
            "filtered": of_members(memory.belief.log_b),
            "hazard": of_hazards(memory.belief.log_b) @ jnp.asarray(self.model.switching.hazards, jnp.float32),
            "credible": inside,
            "worst": jnp.where(inside, v, jnp.inf).argmin().astype(jnp.int32),
            "surprise": memory.belief.surprise,
            "outside": jnp.clip((memory.belief.surprise - limit) / limit, 0.0, 1.0),
        }

    def begin_episode(self, memory: AdaptiveMemory, observation: Float[Array, " D"]) -> AdaptiveMemory:
        """At the first decision of an episode, draws a member and lets nature reweight members; else does nothing."""
        key, for_member = jax.random.split(as_key(memory.words))
        belief = self.believed(memory)
        u = jax.random.uniform(for_member, (), jnp.float32)
        member = jnp.minimum(jnp.sum(u >= jnp.cumsum(belief)[:-1]), self.model.n_members - 1).astype(jnp.int32)
        hazards = of_hazards(memory.belief.log_b)
        begun = begin_tilt(self.settings, self.model, self.weights, observation, belief[None], hazards[None])
        tilt = memory.tilt if begun is None else begun[0]
        estimates = memory.estimates
        if self.sensor is not None:
            first = first_estimates(self.sensor, observation, self.model.n_members)
            estimates = jax.tree.map(lambda old, new: jnp.where(memory.begun, old, new), estimates, first)
        return memory._replace(
            estimates=estimates,
            tilt=jnp.where(memory.begun, memory.tilt, tilt),
            member=jnp.where(memory.begun, memory.member, member),
            begun=jnp.bool_(True),
            words=jnp.where(memory.begun, memory.words, jax.random.key_data(key)),
        )

    def _values(
        self, memory: AdaptiveMemory, observation: Float[Array, " D"], beliefs: Float[Array, "N K"]
    ) -> Float[Array, "N A"]:
        n, hazards = len(beliefs), of_hazards(memory.belief.log_b)
        rows = inputs_of(
            self.model,
            jnp.broadcast_to(observation, (n, len(observation))),
            beliefs,
            jnp.broadcast_to(hazards, (n, len(hazards))),
        )
        return q_values(self.settings.network, self.weights, rows)


UNLIKE = 1e6
"""Added to the distance of outcomes with different ends or rewards, which noise cannot confuse."""


def evidence_of(
    model: BeliefModel, step: Step, noise: Float[Array, " N"]
) -> tuple[Evidence, Float[Array, "K D"] | None]:
    """The evidence of a transition about the members of a simulator, and the squared errors of their predictions.

    If members share outcomes, the outcome is the one with the same end and reward and the nearest observation; if there
    is none, no member explains the step. `noise` is then empty.
    """
    simulator = model.simulator
    found = model.outcomes(recover_state(simulator, step.observation), step.action, model.params)
    if model.shared:
        obs = jax.vmap(simulator.observe)(found.state)
        unlike = (found.terminated != step.terminated) | (jnp.abs(found.reward - step.reward) > model.floor)
        distance = ((obs - step.next_observation) ** 2).sum(axis=-1) + jnp.where(unlike, jnp.float32(UNLIKE), 0.0)
        happened = distance.argmin()
        explained = distance[happened] < UNLIKE
        return known_outcomes(jnp.where(explained, found.probability, 0.0), happened), None
    obs = jax.vmap(jax.vmap(simulator.observe))(found.state)
    evidence, square = model.evidence_of_observation(
        found.probability, obs, found.terminated, step.next_observation[None], step.terminated[None], noise[None]
    )
    return Evidence(evidence.log_likelihood[0], evidence.surprise[0]), square[0]


def evidence_under_noise(
    model: BeliefModel, sensor: Sensor, step: Step, belief: BeliefState, estimates: Estimates
) -> tuple[Estimates, Evidence]:
    """The state estimates after a transition with noisy observations, and its evidence about the members.

    Half the distance between neighbouring members counts as noise of the dynamics, as in `evidence_of`.
    """
    simulator = model.simulator

    def lead(obs: Array, params: Any) -> tuple[Array, Array]:
        found = simulator.outcomes(recover_state(simulator, obs), step.action, params)
        return simulator.observe(jax.tree.map(lambda leaf: leaf[0], found.state)), found.terminated[0]

    if model.switching.per == "step":
        estimates = mixed_estimates(model.switching, belief.log_b, estimates)
    predicted, ends = jax.vmap(lead)(estimates.mean, model.params)
    jacobian = jax.vmap(jax.jacfwd(lambda obs, params: lead(obs, params)[0]))(estimates.mean, model.params)
    process = model.tolerated(predicted) ** 2
    ahead = predicted_estimates(predicted, jacobian, process, estimates)
    after, evidence = corrected_estimates(sensor, ahead, step.next_observation)
    ended = endings(ends, step.terminated, model.flip)
    return after, evidence._replace(log_likelihood=evidence.log_likelihood + ended)


def check_sensor(model: BeliefModel, sensor: Sensor) -> None:
    """Raises when states cannot be estimated: members must predict, with one outcome each."""
    simulator, key = model.simulator, jax.random.key(0)
    state = jax.eval_shape(simulator.start, key, simulator.nominal())
    found = jax.eval_shape(simulator.outcomes, state, jnp.int32(0), simulator.nominal())
    if model.shared or found.probability.shape[0] != 1 or not _is_smooth(simulator):
        outside = "steps outside of JAX, such as those of a Gymnasium environment, cannot be: "
        raise ValueError(
            f"sensor was given for {type(simulator).__name__}, expected None: states are estimated where each member "
            "leads to one successor that follows from parameters and can be differentiated, and the state follows from "
            f"the observation; {outside}simulate them in JAX, or deploy without a sensor, and the noise is learned on "
            "the way."
        )
    sensor.covariance(observation_size(simulator))


def _is_smooth(simulator: Simulator) -> bool:
    """Whether the successor can be differentiated by the observation."""

    def lead(obs: Array) -> Array:
        found = simulator.outcomes(recover_state(simulator, obs), jnp.int32(0), simulator.nominal())
        return simulator.observe(jax.tree.map(lambda leaf: leaf[0], found.state))

    if not isinstance(simulator, Recoverable):
        return False
    try:
        jax.eval_shape(jax.jacfwd(lead), jnp.zeros(observation_size(simulator), jnp.float32))
    except ValueError:  # a callback, or a state that does not follow from the observation after all
        return False
    return True


def _no_estimates(n_members: int, size: int) -> Estimates:
    return Estimates(jnp.zeros((n_members, size), jnp.float32), jnp.zeros((n_members, size, size), jnp.float32))
