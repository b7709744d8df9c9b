"""A deployment in the user's own loop: act, observe, and read the belief at each step.

session = agent.deploy(seed=0)
action = session.act(observation)
session.observe(reward, observation, terminated, truncated)

Calling a compiled program takes longer than a small network or a filter. So `observe` makes one call, which updates the
belief and decides about the new observation, and `act` on that observation only looks the action up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from urbe.deep.adaptive.packing import Packing
from urbe.deep.adaptive.policy import AdaptiveMemory, AdaptivePolicy
from urbe.evaluation.adaptation import Step
from urbe.gym.kinds import Env
from urbe.gym.members.base import MemberOutcomes, Members
from urbe.gym.spaces import Spaces


class Session:
    """One deployment of an agent: weights are fixed, and observations update the belief, over episodes.

    Args:
      policy: the policy.
      spaces: spaces of the environment.
      seed: seed of random draws (only Thompson sampling draws).
      env, members: a Gymnasium environment and its members, as many as the agent's and in the same order. Likelihoods
        then come from the members' predictions before each step; without them, from the agent's simulator.

    Attributes:
      log: for each step its action, reward, terminated and truncated, and the packed memory after it; see `columns`.
    """

    def __init__(
        self, policy: AdaptivePolicy, spaces: Spaces, seed: int, env: Env | None = None, members: Members | None = None
    ) -> None:
        if (env is None) != (members is None):
            raise ValueError("env and members belong together, expected both or neither.")
        if members is not None and len(members) != policy.model.n_members:
            raise ValueError(
                f"members has {len(members)}, expected {policy.model.n_members}, as the agent was trained."
            )
        self.policy, self._spaces, self._env, self._members = policy, spaces, env, members
        self._leaves, tree = jax.tree.flatten(policy)
        memory = jax.jit(_start, static_argnums=2)(policy, seed, members is not None)
        self._packing = Packing.of(memory)
        self._run = _programs(tree, self._packing)
        self._vector = self._packing.pack(memory)
        self.log: list[tuple[dict[str, Any], jax.Array]] = []
        self._decided: tuple[np.ndarray, int] | None = None
        self._acted: tuple[np.ndarray, int] | None = None
        self._predicted: MemberOutcomes | None = None
        self._report: dict[str, np.ndarray] | None = None

    def act(self, observation: Any) -> int:
        """Returns the action; the first call of an episode begins it.

        Raises:
          ValueError: the observation is not one of the environment's.
        """
        decided = self._decided
        if decided is None or not _same(observation, decided[0]):
            row = self._spaces.rows(observation)[0][0]
            if decided is None or not _same(row, decided[0]):
                self._vector = self._run.act(self._leaves, self._vector, row)
                decided = row, _action(self._vector)
        self._acted, self._report = decided, None
        action = decided[1] + self._spaces.start
        if self._members is not None:
            self._predicted = self._members.successors(self._env, decided[0], action)
        return action

    def observe(self, reward: float, observation: Any, terminated: bool, truncated: bool = False) -> None:
        """Updates the belief by the outcome of the last action; at the end of an episode, its last observation.

        Raises:
          ValueError: there was no action since the last call, or the observation is not one of the environment's.
        """
        if self._acted is None:
            raise ValueError("observe was called before act, expected an action first: session.act(observation).")
        row = self._spaces.rows(observation)[0][0]
        before, action = self._acted
        step = np.concatenate((before, row, (action, reward, terminated, truncated)), dtype=np.float32)
        predicted = () if self._predicted is None else tuple(self._predicted[:4])
        self._vector = self._run.observe(self._leaves, self._vector, step, predicted)
        self._acted, self._predicted, self._report = None, None, None
        self._decided = None if terminated or truncated else (row, _action(self._vector))
        happened = {"action": action + self._spaces.start, "reward": float(reward)}
        self.log.append((happened | {"terminated": bool(terminated), "truncated": bool(truncated)}, self._vector))

    @property
    def memory(self) -> AdaptiveMemory:
        """The memory from step to step."""
        memory: AdaptiveMemory = jax.tree.map(jnp.asarray, self._packing.unpack(np.asarray(self._vector)))
        return memory if self._acted is None else memory._replace(observation=jnp.asarray(self._acted[0]))

    def report(self) -> dict[str, np.ndarray]:
        """The current report: see `AdaptivePolicy.report`."""
        if self._report is None:
            found = self._run.report(self._leaves, self._packing.pack(self.memory))
            self._report = {name: np.asarray(value) for name, value in found.items()}
        return dict(self._report)

    @property
    def belief(self) -> np.ndarray:
        """`(K,)` the belief for decisions."""
        return self.report()["belief"]

    @property
    def credible(self) -> np.ndarray:
        """`(K,)` whether each member is in the credible set."""
        return self.report()["credible"]

    @property
    def worst_member(self) -> int:
        """The credible member with the lowest value."""
        return int(self.report()["worst"])

    @property
    def surprise(self) -> float:
        """Unexplained nats per observation, averaged over recent ones; about 0 if a member explains them."""
        return float(self.report()["surprise"])

    def columns(self) -> dict[str, np.ndarray]:
        """The log as arrays, a row per step, with the columns of `report`."""
        rows = [
            {name: np.asarray(value) for name, value in (happened | self._run.report(self._leaves, memory)).items()}
            for happened, memory in self.log
        ]
        return {name: np.stack([row[name] for row in rows]) for name in (rows[0] if rows else ())}


class _Programs(NamedTuple):
    """The compiled programs of a session. Their first arguments are the leaves of the policy and the packed memory.

    Programs that decide return the packed memory with one more word, the action.
    """

    act: Any
    observe: Any
    report: Any


@cache
def _programs(tree: Any, packing: Packing) -> _Programs:
    """Compiles programs for all policies of one structure.

    Settings are part of the structure. It is compared here, once per session, since comparing it at every step would
    take longer than the step.
    """

    def of(method: Callable[..., Any]) -> Any:
        return jax.jit(
            lambda leaves, vector, *args: method(jax.tree.unflatten(tree, leaves), packing.unpack(vector), *args)
        )

    def decided(policy: AdaptivePolicy, memory: AdaptiveMemory, observation: Any) -> jax.Array:
        action = policy.decide(memory, observation)[0]
        return jnp.concatenate([packing.pack(memory), action.astype(jnp.uint32)[None]])

    def act(policy: AdaptivePolicy, memory: AdaptiveMemory, observation: Any) -> jax.Array:
        return decided(policy, policy.begin_episode(memory, observation), observation)

    def observe(policy: AdaptivePolicy, memory: AdaptiveMemory, row: Any, predicted: Any) -> jax.Array:
        size = len(memory.observation)
        return decided(policy, _observe(policy, memory, row, predicted), row[size : 2 * size])

    return _Programs(of(act), of(observe), of(lambda policy, memory: policy.report(memory)))


def _action(vector: jax.Array) -> int:
    """The action in the last word of a program's output."""
    return int(np.asarray(vector)[-1])


def _same(observation: Any, row: np.ndarray) -> bool:
    """Whether an observation is an array with the numbers of a row."""
    return (
        type(observation) is np.ndarray
        and observation.dtype == row.dtype
        and observation.shape == row.shape
        and observation.tobytes() == row.tobytes()
    )


def _start(policy: AdaptivePolicy, seed: Any, by_members: bool) -> AdaptiveMemory:
    memory = policy.start(jax.random.key(seed))
    # the members of a Gymnasium environment predict, even where those of the simulator share their outcomes
    noise = jnp.zeros_like(memory.observation) if by_members else memory.belief.noise
    return memory._replace(belief=memory.belief._replace(noise=noise))


def _observe(policy: AdaptivePolicy, memory: AdaptiveMemory, row: Any, predicted: Any) -> AdaptiveMemory:
    """The memory after a step, given as one row: observation, next observation, action, reward, terminated, truncated.

    `predicted` has the predictions of a Gymnasium environment's members; empty if the simulator's members predict.
    """
    size = len(memory.observation)
    action, reward, terminated, truncated = row[2 * size :]
    step = Step(row[:size], action.astype(jnp.int32), reward, row[size : 2 * size], terminated > 0, truncated > 0)
    memory = memory._replace(observation=step.observation)
    if not predicted:
        return policy.observe(memory, step)
    probability, obs, _, ends = predicted
    evidence, square = policy.model.evidence_of_observation(
        probability, obs, ends, step.next_observation[None], step.terminated[None], memory.belief.noise[None]
    )
    first = jax.tree.map(lambda leaf: leaf[0], evidence)
    return policy.learn_of(memory, first, square[0], step.terminated | step.truncated)
