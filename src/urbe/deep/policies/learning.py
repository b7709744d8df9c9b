"""Policies that keep on learning while they are deployed: their weights are part of the memory of each life.

    memory = policy.start(key)                        the trained weights, and an empty replay
    action, memory = policy.act(memory, observation)
    memory = policy.observe(memory, step)             one step of the learner (`urbe.deep.core.learner`)

They are the comparison for agents that adapt without gradient steps. Play them with `deploy_lives(..., in_turn=True)`:
memories are large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int32

from urbe import checks
from urbe.deep.core.learner import LearnerState, init_learner, observe
from urbe.deep.core.networks import q_values
from urbe.deep.core.replay import Successors, Transition
from urbe.deep.core.schedules import Decay, Epsilon
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import NoVariance
from urbe.deep.loops.trainer import Trainer
from urbe.deep.policies.memory import WithoutMemory, memory_policy
from urbe.evaluation.adaptation import Step
from urbe.simulators.base import Key


class LearningMemory(NamedTuple):
    """The learner of one life, and the action that it has chosen for the next observation.

    Attributes:
      begun: whether that is an observation of the same episode; the first action of an episode is greedy.
    """

    learner: LearnerState
    action: Int32[Array, ""]
    begun: Bool[Array, ""]


@partial(jax.tree_util.register_dataclass, data_fields=["q", "optimiser"], meta_fields=["settings"])
@dataclass(frozen=True)
class LearningPolicy:
    """DQN that continues to explore and to learn, from the trained weights and with an empty replay.

    Args:
      q: the trained weights.
      optimiser: state of the optimiser after training.
      settings: of the deployment.
    """

    q: Any
    optimiser: Any
    settings: Settings

    def start(self, key: Key) -> LearningMemory:
        """The trained weights. The key is consumed."""
        size, n_actions = self.settings.network.sizes(self.q)
        new = init_learner(self.settings, key, size, n_actions, 1, 1)
        learner = new._replace(q=self.q, target=self.q, optimiser=self.optimiser)
        return LearningMemory(learner, jnp.int32(0), jnp.bool_(False))

    def act(self, memory: LearningMemory, observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], LearningMemory]:
        """The action that the learner has chosen, sometimes a random one."""
        best = q_values(self.settings.network, memory.learner.q, observation).argmax(axis=-1).astype(jnp.int32)
        return jnp.where(memory.begun, memory.action, best), memory

    def observe(self, memory: LearningMemory, step: Step) -> LearningMemory:
        """Learns from a transition."""
        goes_on = jnp.where(step.terminated, 0.0, jnp.float32(self.settings.discount))
        successors = Successors(
            step.reward[None, None], goes_on[None, None, None], step.next_observation[None, None, None]
        )
        last = step.terminated | step.truncated
        transition = Transition(step.observation[None], step.action[None], successors, last[None])
        learner, action, _ = observe(self.settings, memory.learner, transition, step.next_observation[None])
        return LearningMemory(learner, action[0], ~last)

    def report(self, memory: LearningMemory) -> dict[str, Array]:
        """The number of gradient steps so far."""
        return {"updates": memory.learner.updates}


def learning_policy(trainer: Trainer, changes: dict[str, Any]) -> LearningPolicy:
    """Continues a DQN in deployment, with a small replay, few random actions and the learning rate of the end.

    Raises:
      ValueError: the agent has more than one member, a variance or a memory, so that it cannot learn from its
        observations alone.
    """
    settings, learner = trainer.settings, trainer.learner
    alone = isinstance(memory_policy(trainer), WithoutMemory) and isinstance(settings.variance, NoVariance)
    if not (alone and isinstance(learner, LearnerState) and learner.replay.target.shape[-1] == 1):
        raise ValueError(
            "The agent cannot keep on learning from observations alone: it needs the outcomes under every member, "
            "learns a variance or acts on a memory; expected an agent of dqn(...)."
        )
    defaults: dict[str, Any] = {
        "capacity": 2_000,
        "warm_up": settings.batch,
        "epsilon": Epsilon(0.05, 0.05, 1),
        "decay": Decay(last=1.0, steps=1),
    }
    changed = checks.changed(replace(settings, **defaults), "settings", "Settings(...)", changes)
    return LearningPolicy(learner.q, learner.optimiser, changed)
