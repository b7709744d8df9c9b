"""Add the last steps to the observation of any simulator: a history of fixed length.

A step observed as (o, a, r, o') becomes the numbers

    frame = [ o | one-hot a | r | episode ended | o' - o ]            2 D + A + 2 of them

and the agent observes [ o | frame of n steps ago | ... | frame of the last step ], with zeros for missing steps. By
default frames survive the end of an episode, since the dynamics may stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes, Params, Simulator, State, observation_size

Frames = Float[Array, "n W"]
"""The last n steps, the oldest first."""


class StackedState(NamedTuple):
    """The state of the simulator, and the last steps."""

    inner: State
    frames: Frames


def frame_size(obs_size: int, n_actions: int) -> int:
    """W, the length of a frame."""
    return 2 * obs_size + n_actions + 2


def frame(
    obs: Float[Array, " D"],
    action: Int[Array, ""],
    reward: Float[Array, ""],
    next_obs: Float[Array, " D"],
    last: Bool[Array, ""],
    n_actions: int,
) -> Float[Array, " W"]:
    """One step as numbers; `next_obs` is the observation it reached, also at the end of an episode."""
    taken = jax.nn.one_hot(action, n_actions, dtype=jnp.float32)
    numbers = jnp.stack([reward.astype(jnp.float32), last.astype(jnp.float32)])
    return jnp.concatenate([obs, taken, numbers, next_obs - obs])


def no_frames(length: int, obs_size: int, n_actions: int) -> Frames:
    """The frames before the first step: zeros."""
    return jnp.zeros((length, frame_size(obs_size, n_actions)), jnp.float32)


def pushed(frames: Frames, new: Float[Array, " W"]) -> Frames:
    """Appends a new frame and drops the oldest."""
    return jnp.concatenate([frames[1:], new[None]])


def ended(frames: Frames, obs_size: int, n_actions: int) -> Frames:
    """Marks the end of the episode in the last frame."""
    return frames.at[-1, obs_size + n_actions + 1].set(1.0)


def with_frames(obs: Float[Array, " D"], frames: Frames) -> Float[Array, " E"]:
    """The observation of the agent, D + n W numbers."""
    return jnp.concatenate([obs, frames.ravel()])


@dataclass(frozen=True)
class Stacked:
    """A simulator whose observations contain the last steps.

    Args:
      simulator: any simulator; its dynamics, parameters and rewards are unchanged.
      length: n, the number of remembered steps.
      survives: whether they are remembered beyond the end of an episode. This needs a loop that begins episodes with
        `urbe.simulators.limits.restart`, as training does; `start` always begins with zeros.

    >>> from urbe.simulators import CartPole
    >>> from urbe.simulators.base import observation_size
    >>> observation_size(Stacked(CartPole(), length=3))  # 4 + 3 (2 4 + 2 + 2)
    40
    """

    simulator: Simulator
    length: int = 8
    survives: bool = True

    def __post_init__(self) -> None:
        fits = isinstance(self.simulator, Simulator)
        checks.kind("simulator", self.simulator, fits, "a simulator such as CartPole()")
        checks.whole_number("length", self.length, 1)
        checks.flag("survives", self.survives)

    @property
    def n_actions(self) -> int:
        """Those of the simulator."""
        return self.simulator.n_actions

    @property
    def time_limit(self) -> int:
        """That of the simulator."""
        return self.simulator.time_limit

    def nominal(self) -> Params:
        """Those of the simulator."""
        return self.simulator.nominal()

    def start(self, key: Key, params: Params) -> StackedState:
        """A first state without a history."""
        size = observation_size(self.simulator)
        return StackedState(self.simulator.start(key, params), no_frames(self.length, size, self.n_actions))

    def restart(self, key: Key, params: Params, state: StackedState) -> StackedState:
        """A first state after an episode that ended in `state`, which is remembered if `survives`."""
        first = self.start(key, params)
        if not self.survives:
            return first
        return first._replace(frames=ended(state.frames, observation_size(self.simulator), self.n_actions))

    def outcomes(self, state: StackedState, action: Int[Array, ""], params: Params) -> Outcomes:
        """Those of the simulator, each with the history that it leads to."""
        found = self.simulator.outcomes(state.inner, action, params)
        obs = self.simulator.observe(state.inner)

        def history(inner: State, reward: Float[Array, ""], terminated: Bool[Array, ""]) -> Frames:
            reached = self.simulator.observe(inner)
            return pushed(state.frames, frame(obs, action, reward, reached, terminated, self.n_actions))

        along: Any = jax.vmap(history)
        return found._replace(state=StackedState(found.state, along(found.state, found.reward, found.terminated)))

    def observe(self, state: StackedState) -> Float[Array, " E"]:
        """The simulator's observation, and the frames."""
        return with_frames(self.simulator.observe(state.inner), state.frames)
