"""Convert trained agents to policies with a memory, for deployment by `urbe.evaluation.adaptation`.

    memory = policy.start(key)                        before the first episode
    action, memory = policy.act(memory, observation)
    memory = policy.observe(memory, step)             after every transition, the last of an episode included

Weights are the leaves of a policy and never change; only the memory does. An agent without a memory has an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe.deep.core.networks import q_values
from urbe.deep.core.recurrent import Memory, RecurrentWeights, remembered
from urbe.deep.core.sequences import RecurrentStep
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.deep.loops.recurrent import RecurrentTraining
from urbe.deep.loops.trainer import Trainer
from urbe.evaluation.adaptation import MemoryPolicy, Step
from urbe.gym.stacked_history import StackedHistory
from urbe.gym.wrapping import wrappers
from urbe.simulators.base import Key
from urbe.simulators.stacked import Frames, Stacked, frame, no_frames, pushed, with_frames


@partial(jax.tree_util.register_dataclass, data_fields=["q"], meta_fields=["settings"])
@dataclass(frozen=True)
class WithoutMemory:
    """The greedy policy of an agent without a memory.

    Args:
      q: the weights of the Q-network.
      settings: settings of the agent.
    """

    q: Any
    settings: Settings

    def start(self, key: Key) -> tuple[()]:
        """Returns the empty memory."""
        return ()

    def act(self, memory: tuple[()], observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], tuple[()]]:
        """Returns the greedy action."""
        return _greedy(self.settings, self.q, observation), memory

    def observe(self, memory: tuple[()], step: Step) -> tuple[()]:
        """Returns the memory unchanged."""
        return memory

    def report(self, memory: tuple[()]) -> dict[str, Array]:
        """Returns an empty report."""
        return {}


@partial(jax.tree_util.register_dataclass, data_fields=["q"], meta_fields=["settings", "length", "survives"])
@dataclass(frozen=True)
class StackedPolicy:
    """The greedy policy of an agent that observes the last steps, which are its memory.

    Args:
      q: the weights of the Q-network.
      settings: settings of the agent.
      length, survives: as in `urbe.simulators.Stacked`.
    """

    q: Any
    settings: Settings
    length: int
    survives: bool

    @property
    def _sizes(self) -> tuple[int, int]:
        """D and A: the network has D + length (2 D + A + 2) inputs."""
        seen, n_actions = self.settings.network.sizes(self.q)
        return (seen - self.length * (n_actions + 2)) // (1 + 2 * self.length), n_actions

    def start(self, key: Key) -> Frames:
        """Returns a memory of zeros."""
        return no_frames(self.length, *self._sizes)

    def act(self, memory: Frames, observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], Frames]:
        """Returns the greedy action."""
        return _greedy(self.settings, self.q, with_frames(observation, memory)), memory

    def observe(self, memory: Frames, step: Step) -> Frames:
        """The last steps; none after an episode if they do not survive."""
        last = step.terminated | step.truncated
        new = frame(step.observation, step.action, step.reward, step.next_observation, last, self._sizes[1])
        after = pushed(memory, new)
        return after if self.survives else jnp.where(last, 0.0, after)

    def report(self, memory: Frames) -> dict[str, Array]:
        """Returns an empty report."""
        return {}


@partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["settings", "memory"])
@dataclass(frozen=True)
class RecurrentPolicy:
    """The greedy policy of a recurrent agent, whose hidden state is its memory.

    Args:
      weights: weights of the memory and of the Q-network.
      settings: settings of the agent.
      memory: settings of the memory.
    """

    weights: RecurrentWeights
    settings: Settings
    memory: Memory

    def start(self, key: Key) -> Float[Array, " H"]:
        """Returns a hidden state of zeros."""
        return jnp.zeros(self.memory.units, jnp.float32)

    def act(
        self, memory: Float[Array, " H"], observation: Float[Array, " D"]
    ) -> tuple[Int32[Array, ""], Float[Array, " H"]]:
        """Returns the greedy action."""
        return _greedy(self.settings, self.weights.q, jnp.concatenate([observation, memory])), memory

    def observe(self, memory: Float[Array, " H"], step: Step) -> Float[Array, " H"]:
        """The hidden state after the step."""
        taken = RecurrentStep(
            obs=step.observation,
            action=step.action,
            reward=step.reward,
            weight=jnp.float32(0.0),
            reached=step.next_observation,
            last=step.terminated | step.truncated,
            hidden=memory,
        )
        n_actions = self.settings.network.sizes(self.weights.q)[1]
        return remembered(self.memory, self.weights, taken, n_actions)

    def report(self, memory: Float[Array, " H"]) -> dict[str, Array]:
        """Returns an empty report."""
        return {}


def memory_policy(trainer: Trainer) -> MemoryPolicy[Any]:
    """The greedy policy of a trainer's learner, with its memory."""
    settings, weights = trainer.settings, trainer.learner.q
    if isinstance(trainer, CompiledTrainer) and isinstance(trainer.training, RecurrentTraining):
        return RecurrentPolicy(weights, settings, trainer.training.memory)
    if (stack := _stack(trainer)) is not None:
        return StackedPolicy(weights, settings, stack.length, stack.survives)
    return WithoutMemory(weights, settings)


def acts_by_memory(trainer: Trainer) -> bool:
    """Whether actions depend on a hidden state."""
    return isinstance(trainer, CompiledTrainer) and isinstance(trainer.training, RecurrentTraining)


def _stack(trainer: Trainer) -> Stacked | StackedHistory | None:
    """The wrapper that adds the last steps to observations, if any."""
    if isinstance(trainer, CompiledTrainer):
        return trainer.simulator if isinstance(trainer.simulator, Stacked) else None
    envs = trainer.environments[:1] if isinstance(trainer, HostTrainer) else []
    return next((each for env in envs for each in wrappers(env) if isinstance(each, StackedHistory)), None)


def _greedy(settings: Settings, q: Any, seen: Float[Array, " E"]) -> Int32[Array, ""]:
    return q_values(settings.network, q, seen).argmax(axis=-1).astype(jnp.int32)
