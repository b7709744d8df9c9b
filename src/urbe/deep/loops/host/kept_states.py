"""The states of Gymnasium environments in which transitions began, so that members may change during training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from urbe import memory
from urbe.gym.members.base import MemberOutcomes, Members
from urbe.gym.members.copies import copy_of
from urbe.gym.rows import HostEnv, host_env
from urbe.gym.states import env_states


class KeptStates:
    """Stores the state before each transition in the replay, and before the last one of each environment.

    Environments in other processes have no states here: their members compute outcomes from observations.

    Args:
      env: the environments.
      capacity: number of transitions in the replay.

    Raises:
      ValueError: the environments are in this process, but their states cannot be read and set.
    """

    def __init__(self, env: HostEnv, capacity: int) -> None:
        self._env, self._capacity, self._states = env, capacity, env_states(env)
        self._ring: Any = None  # a state in each place: those of the replay in its order, then of each environment
        if self._states is not None:
            first, places = jax.tree.map(np.asarray, self._states.get([False] * env.count)[0]), capacity + env.count
            size = float(sum(leaf.nbytes for leaf in jax.tree.leaves(first)))
            memory.require({f"the states of {places} transitions": places * size}, "Use a smaller capacity.")
            self._ring = jax.tree.map(lambda leaf: np.zeros((places, *leaf.shape), leaf.dtype), first)
        elif behind := env.behind():
            raise ValueError(
                f"keep_states is True, but the state of {behind[0]} cannot be read and set, expected an environment "
                "with an adapter and wrappers without a memory; see urbe.gym.Adapter."
            )

    def before_step(self, waiting: list[bool]) -> None:
        """Stores the states of the environments that are about to act."""
        if self._states is not None:
            for i, state in enumerate(self._states.get(waiting)):
                if not waiting[i]:
                    self._put(self._capacity + i, state)

    def learned(self, i: int, step: int) -> None:
        """Moves the state of environment `i` to the place of its transition, number `step`."""
        self._put(step % self._capacity, self._at(self._capacity + i))

    def place_of(self, i: int) -> int:
        """The place of the transition of environment `i` that is not in the replay yet."""
        return self._capacity + i

    def outcomes(
        self, members: Members, transitions: Iterable[tuple[int, Float[np.ndarray, " D"], int]]
    ) -> Iterator[MemberOutcomes]:
        """Yields the outcomes under other members of each transition: its place, observation and action."""
        copy = None if self._states is None else copy_of((self._env.behind() or [])[0])
        states = None if copy is None else env_states(host_env(copy))
        assert (copy is None) == (states is None)
        for place, obs, action in transitions:
            if states is not None:
                states.set([self._at(place)], [False])
            yield members.successors(copy, obs, action)

    def state(self) -> Any:
        """All states, to resume."""
        return jax.tree.map(np.array, self._ring)

    def load(self, ring: Any) -> None:
        """Restores the result of `state`."""
        self._ring = jax.tree.map(np.array, ring)

    def _at(self, place: int) -> Any:
        return jax.tree.map(lambda leaf: np.array(leaf[place]), self._ring)

    def _put(self, place: int, state: Any) -> None:
        for ring, leaf in zip(jax.tree.leaves(self._ring), jax.tree.leaves(state), strict=True):
            ring[place] = leaf
