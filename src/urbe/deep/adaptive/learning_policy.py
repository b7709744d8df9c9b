"""The policy of a belief agent that keeps on learning while it is deployed: its weights are part of its memory.

    y_t = nature over members of  sum_j P_kj [ r_j + d_j max_a Q(s_j, b_j, a) ]
    loss = mean over the last steps of ( y_t - gap ( V(x_t) - Q(x_t, a_t) ) - Q(x_t, a_t) )^2

These are the targets of training without their traces, at pairs of observation and belief that the deployment visits.
Members of the simulator predict outcomes, weighted by the belief; observations enter only through the belief.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.belief.switching import of_hazards, of_members
from urbe.deep.adaptive.inputs import inputs, inputs_of
from urbe.deep.adaptive.learner import gradient_step
from urbe.deep.adaptive.lookahead import Discounts, lookahead
from urbe.deep.adaptive.policy import AdaptiveMemory, AdaptivePolicy
from urbe.deep.core.networks import q_values
from urbe.evaluation.adaptation import Step
from urbe.simulators.base import Key
from urbe.simulators.limits import recover_state


class LearningBeliefMemory(NamedTuple):
    """The memory of the agent with its belief, and its learner.

    Attributes:
      own: the memory of the policy that does not learn.
      weights, optimiser: of the network.
      inputs, action, wanted: the steps since the last gradient step.
      steps: the number of all steps.
    """

    own: AdaptiveMemory
    weights: Any
    optimiser: Any
    inputs: Float[Array, "B I"]
    action: Int32[Array, " B"]
    wanted: Float[Array, " B"]
    steps: Int32[Array, ""]


@partial(jax.tree_util.register_dataclass, data_fields=["policy", "optimiser"], meta_fields=["learning_rate", "batch"])
@dataclass(frozen=True, eq=False)
class LearningBelief:
    """A belief agent that takes a gradient step after every `batch` steps, on these.

    Args:
      policy: the trained policy.
      optimiser: state of the optimiser after training.
      learning_rate: of the gradient steps.
      batch: number of steps between them.
    """

    policy: AdaptivePolicy
    optimiser: Any
    learning_rate: float
    batch: int

    def start(self, key: Key) -> LearningBeliefMemory:
        """The trained weights, and the belief before the first episode. The key is consumed."""
        model, own = self.policy.model, self.policy.start(key)
        size = jax.eval_shape(partial(inputs, model), own.observation, own.belief.log_b).shape[-1]
        nothing = jnp.zeros(self.batch, jnp.float32)
        return LearningBeliefMemory(
            own,
            self.policy.weights,
            self.optimiser,
            jnp.zeros((self.batch, size), jnp.float32),
            nothing.astype(jnp.int32),
            nothing,
            jnp.int32(0),
        )

    def act(
        self, memory: LearningBeliefMemory, observation: Float[Array, " D"]
    ) -> tuple[Int32[Array, ""], LearningBeliefMemory]:
        """The greedy action, with the weights so far."""
        action, own = self._now(memory).act(memory.own, observation)
        return action, memory._replace(own=own)

    def observe(self, memory: LearningBeliefMemory, step: Step) -> LearningBeliefMemory:
        """The belief after a transition, and at times a gradient step."""
        x, y = self._target(memory, step)
        at = memory.steps % self.batch
        memory = memory._replace(
            own=self._now(memory).observe(memory.own, step),
            inputs=memory.inputs.at[at].set(x),
            action=memory.action.at[at].set(step.action),
            wanted=memory.wanted.at[at].set(y),
            steps=memory.steps + 1,
        )

        def learned(memory: LearningBeliefMemory) -> LearningBeliefMemory:
            weights, optimiser, _ = gradient_step(
                self.policy.settings,
                memory.weights,
                memory.optimiser,
                jnp.float32(self.learning_rate),
                memory.inputs,
                memory.action,
                memory.wanted,
            )
            return memory._replace(weights=weights, optimiser=optimiser)

        after: LearningBeliefMemory = jax.lax.cond(at == self.batch - 1, learned, lambda same: same, memory)
        return after

    def report(self, memory: LearningBeliefMemory) -> dict[str, Array]:
        """The report of the policy with the current weights, and the number of gradient steps so far."""
        return self._now(memory).report(memory.own) | {"updates": memory.steps // self.batch}

    def _now(self, memory: LearningBeliefMemory) -> AdaptivePolicy:
        return replace(self.policy, weights=memory.weights)

    def _target(self, memory: LearningBeliefMemory, step: Step) -> tuple[Float[Array, " I"], Float[Array, ""]]:
        """The input of the network before the step, and the target of the action's value."""
        model, settings = self.policy.model, self.policy.settings
        simulator = model.simulator
        belief = memory.own.belief.log_b
        log_b = model.switching.jump(belief) if model.switching.per == "step" else belief
        first = simulator.start(jax.random.fold_in(jax.random.key(0), memory.steps), simulator.nominal())
        look = lookahead(
            model,
            Discounts(settings.discount, settings.boundary),
            recover_state(simulator, step.observation),
            log_b,
            step.action,
            simulator.nominal(),
            first,
            step.truncated,
            repeat=settings.repeat,
        )
        reached = inputs_of(
            model, jax.vmap(simulator.observe)(look.state), of_members(look.log_b), of_hazards(look.log_b)
        )
        v = q_values(settings.network, memory.weights, reached).max(axis=-1)
        values = look.probability @ (look.reward / jnp.float32(settings.reward_scale) + look.discount * v)
        x = inputs(model, step.observation, log_b)
        q = q_values(settings.network, memory.weights, x)
        shortfall = q.max() - q[step.action]
        return x, settings.nature.weights(look.belief, values) @ values - jnp.float32(settings.gap) * shortfall
