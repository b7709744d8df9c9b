"""A deployment in the user's own loop: act, observe, and read the belief at each step.

session = agent.deploy(seed=0)
action = session.act(observation)
session.observe(reward, observation, terminated, truncated)

Calling a compiled program takes longer than a small network or a filter. So `observe` makes one call, which updates the
belief and decides about the new observation, and `act` on that observation only looks the action up.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from urbe import checks, extras
from urbe.deep.adaptive.packing import Packing
from urbe.deep.adaptive.policy import AdaptiveMemory, AdaptivePolicy
from urbe.evaluation.adaptation import Step
from urbe.gym.kinds import Env
from urbe.gym.members.base import MemberOutcomes, Members
from urbe.gym.spaces import Spaces
from urbe.runs.errors import CheckpointError
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.simulators.limits import param_dict, unrecoverable

VERSION = 1
"""Version of the files that `Session.save` writes."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest reward: the belief is computed in single precision."""


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
        why = unrecoverable(policy.model.simulator) if members is None else None
        if why is not None:
            raise ValueError(f"{why} The session computes the members' predictions from it.")
        self.policy, self._spaces, self._env, self._members = policy, spaces, env, members
        self._leaves, tree = jax.tree.flatten(policy)
        memory = jax.jit(_start, static_argnums=2)(policy, checks.whole_number("seed", seed, 0), members is not None)
        self._packing = Packing.of(memory)
        self._run = _programs(tree, self._packing)
        self._vector: Any = self._packing.pack(memory)
        self.log: list[tuple[dict[str, Any], Any]] = []
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
            row = self._row(observation)
            if decided is None or not _same(row, decided[0]):
                self._vector = self._run.act(self._leaves, self._vector, row)
                decided = row, _action(self._vector)
        self._acted, self._report = decided, None
        action = decided[1] + self._spaces.start
        if self._members is not None:
            self._predicted = self._members.successors(self._env, decided[0], action)
        return action

    def take(self, action: int) -> int:
        """States that another action than the agent's was taken after the last `act`, and returns it.

        Call it before the environment steps, as `env.step(session.take(action))`: members predict from its state.

        Raises:
          ValueError: there was no `act` since the last observation, or the environment has no such action.
        """
        if self._acted is None:
            raise ValueError("take was called before act, expected session.act(observation) first.")
        first, last = self._spaces.start, self._spaces.start + self._spaces.n_actions - 1
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not first <= action <= last:
            raise ValueError(f"action is {action!r}, expected a whole number from {first} to {last}, as act returns.")
        self._acted = self._acted[0], int(action) - first
        if self._members is not None:
            self._predicted = self._members.successors(self._env, self._acted[0], int(action))
        return int(action)

    def observe(self, reward: float, observation: Any, terminated: bool, truncated: bool = False) -> None:
        """Updates the belief by the outcome of the last action; at the end of an episode, its last observation.

        If another action than the agent's was taken, say so with `take`. After an error, nothing has changed: the
        outcome can be given again.

        Raises:
          ValueError: there was no action since the last call, the observation is not one of the environment's, or the
            reward is not a finite number.
        """
        if self._acted is None:
            raise ValueError("observe was called before act, expected an action first: session.act(observation).")
        row, reward = self._row(observation), checks.number("reward", reward, -LARGEST, LARGEST)
        terminated, truncated = checks.flag("terminated", terminated), checks.flag("truncated", truncated)
        before, action = self._acted
        step = np.concatenate((before, row, (action, reward, terminated, truncated)), dtype=np.float32)
        predicted = () if self._predicted is None else tuple(self._predicted[:4])
        self._vector = self._run.observe(self._leaves, self._vector, step, predicted)
        self._acted, self._predicted, self._report = None, None, None
        self._decided = None if terminated or truncated else (row, _action(self._vector))
        happened = {"action": action + self._spaces.start, "reward": reward}
        self.log.append((happened | {"terminated": terminated, "truncated": truncated}, self._vector))

    def _row(self, observation: Any) -> np.ndarray:
        rows, single = self._spaces.rows(observation)
        if not single:
            raise ValueError(
                f"observation is a batch of {len(rows)}, expected one: a session is the deployment in one environment. "
                "Call agent.deploy() for each environment."
            )
        row: np.ndarray = rows[0]
        return row

    @property
    def memory(self) -> AdaptiveMemory:
        """The memory from step to step."""
        memory: AdaptiveMemory = jax.tree.map(jnp.asarray, self._packing.unpack(np.asarray(self._vector)))
        return memory if self._acted is None else memory._replace(observation=jnp.asarray(self._acted[0]))

    def report(self) -> dict[str, np.ndarray]:
        """The current report: see `AdaptivePolicy.report`."""
        if self._report is None:
            self._report = self._reported(self._vector, None if self._acted is None else self._acted[0])
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
            {name: np.asarray(value) for name, value in happened.items()} | self._reported(memory)
            for happened, memory in self.log
        ]
        return {name: np.stack([row[name] for row in rows]) for name in (rows[0] if rows else ())}

    def _reported(self, vector: Any, seen: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Returns the report of a packed memory, for another observation if one is given."""
        words = np.asarray(vector)
        row = self._packing.unpack(words).observation if seen is None else seen
        found = self._run.report(self._leaves, words, row)
        return {name: np.asarray(value) for name, value in found.items()}

    @property
    def member_names(self) -> tuple[str, ...]:
        """Names of the members, by the parameters that vary."""
        model = self.policy.model
        each = [param_dict(type(model.params)(*point)) for point in zip(*map(np.asarray, model.params), strict=True)]
        return tuple(", ".join(f"{name} {point[name]:g}" for name in model.varied) or "the only one" for point in each)

    def plot(self) -> Any:
        """Draws belief, surprise and returns over the steps so far; needs `pip install urbe[plots]`."""
        return extras.drawings().draw_session(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves belief and log, also in the middle of an episode; `agent.deploy(...).load(path)` resumes there."""
        tensors: dict[str, Any] = {"memory": self._vector}
        for name, pair in (("decided", self._decided), ("acted", self._acted)):
            if pair is not None:
                tensors |= {f"{name}/row": pair[0], f"{name}/action": pair[1]}
        if self._predicted is not None:
            tensors |= {f"predicted/{name}": part for name, part in self._predicted._asdict().items()}
        if self.log:
            tensors |= {f"log/{name}": np.stack([each[name] for each, _ in self.log]) for name in self.log[0][0]}
            tensors["log/memory"] = np.stack([np.asarray(memory) for _, memory in self.log])
        save_tensors(path, {name: np.asarray(array) for name, array in tensors.items()}, self._about())

    def load(self, path: str | os.PathLike[str]) -> Session:
        """Resumes from a file of `save`. The file does not contain the environment: restore its state, or reset it.

        Raises:
          CheckpointError: the file is damaged, or of a deployment of another agent.
        """
        kept, about = load_tensors(path)
        if about != self._about():
            raise CheckpointError(
                path, "is not of a deployment of this agent: weights, members or assumptions differ, or a sensor."
            )
        tensors = {name: np.array(array) for name, array in kept.items()}
        self._vector, self._report = tensors["memory"], None
        self._decided, self._acted = (
            (tensors[f"{name}/row"], int(tensors[f"{name}/action"])) if f"{name}/row" in tensors else None
            for name in ("decided", "acted")
        )
        parts = {name: tensors.get(f"predicted/{name}") for name in MemberOutcomes._fields}
        self._predicted = None if parts["obs"] is None else MemberOutcomes(**parts)  # type: ignore[arg-type]
        happened = {name: tensors[f"log/{name}"].tolist() for name in _HAPPENED if "log/memory" in tensors}
        self.log = [
            (dict(zip(_HAPPENED, step, strict=True)), memory)
            for *step, memory in zip(*happened.values(), tensors.get("log/memory", ()), strict=True)
        ]
        return self

    def _about(self) -> dict[str, Any]:
        """Describes the fields in which a file and a deployment must agree."""
        digest = hashlib.sha256(repr((self._packing.shapes, self.policy.rule, self.policy.watch)).encode())
        for leaf in self._leaves:
            digest.update(np.asarray(leaf).tobytes())
        model = self.policy.model
        assumed = (model.switching, model.floor, model.flip, self.policy.sensor)
        digest.update(repr(assumed).encode())
        return {"version": VERSION, "family": "session", "policy": digest.hexdigest()}


_HAPPENED = ("action", "reward", "terminated", "truncated")


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

    def report(policy: AdaptivePolicy, memory: AdaptiveMemory, observation: Any) -> dict[str, Any]:
        return policy.report(memory._replace(observation=observation))

    return _Programs(of(act), of(observe), of(report))


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
    # the members of a Gymnasium environment predict, even if those of the simulator share their outcomes
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
