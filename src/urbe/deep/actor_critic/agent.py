"""The neural soft-robust actor-critic agent: it learns, acts, and can be saved at any time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.deep.actor_critic.learner import ActorCriticRun, DrawnFrom, advance, begin
from urbe.deep.actor_critic.settings import ActorCriticSettings
from urbe.deep.core.finite import NotFinite
from urbe.deep.core.keys import key_data, root_key, with_keys
from urbe.deep.saving.describe import build, describe
from urbe.runs.errors import CheckpointError, refused
from urbe.runs.tensors import load_tensors, save_tensors
from urbe.runs.tree import flatten, unflatten
from urbe.simulators import Simulator, UncertaintySet
from urbe.simulators.base import observation_size
from urbe.types import FloatArray, IntArray

VERSION = 1
"""Version of saved files."""

LOG = ("step", "episode_return", "gain")
ROWS = 100
"""Number of updates per row of the log."""


class ActorCriticAgent:
    """A softmax policy and its critic, trained on draws from an uncertainty set; see `soft_robust_actor_critic`.

    Args:
      simulator: the training environment.
      uncertainty_set: the members to draw from.
      shares: weight of each, summing to one.
      settings: all other options.
      seed: seed of all random numbers.

    Attributes:
      log: one array per name in `LOG`: environment steps, mean return of the episodes that ended since the last row
        (NaN if none ended), and the average reward.
    """

    def __init__(
        self,
        simulator: Simulator,
        uncertainty_set: UncertaintySet,
        shares: Sequence[float],
        settings: ActorCriticSettings,
        seed: int,
    ) -> None:
        self.simulator, self.uncertainty_set, self.settings = simulator, uncertainty_set, settings
        self.shares = tuple(checks.distribution("shares", shares, len(uncertainty_set)).tolist())
        self.seed = checks.whole_number("seed", seed, 0)
        self.log: dict[str, np.ndarray] = {column: np.zeros(0) for column in LOG}
        self._asked = 0
        with np.errstate(divide="ignore"):
            log_shares = np.log(np.asarray(self.shares))
        self._world = DrawnFrom(uncertainty_set.params, jnp.asarray(log_shares, jnp.float32))
        self._run: ActorCriticRun = jax.jit(begin, static_argnums=(0, 1))(
            settings, simulator, self._world, root_key(self.seed)
        )

    @property
    def step(self) -> int:
        """Environment steps so far, a multiple of `lanes * rollout`."""
        return int(self._run.updates) * self._each

    @property
    def gain(self) -> float:
        """J, the running average reward; 0 for discounted rewards."""
        return float(self._run.gain) * self.settings.reward_scale

    def learn(self, steps: int) -> ActorCriticAgent:
        """Learns for `steps` more steps; the total over all calls is rounded up to whole updates.

        Raises:
          NotFinite: the weights are no longer finite.
        """
        self._asked += checks.whole_number("steps", steps, 0)
        wanted = -(-self._asked // self._each)
        while (at := int(self._run.updates)) < wanted:
            count = min(wanted, (at // ROWS + 1) * ROWS) - at
            self._run = advance(self.settings, self.simulator, self._world, self._run, jnp.int32(count))
            if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves((self._run.actor, self._run.critic))):
                raise NotFinite(
                    f"The weights are not finite after {self.step} steps. Lower the rates, or raise reward_scale."
                )
            if int(self._run.updates) % ROWS == 0:
                self._note()
        return self

    def probabilities(self, observations: ArrayLike) -> FloatArray:
        """`(..., A)` the probability of each action, for `(..., D)` observations."""
        return np.asarray(_probabilities(self.settings, self._run.actor, self._observations(observations)), np.float64)

    def predict(self, observations: ArrayLike) -> IntArray | int:
        """The most probable action for each observation; a plain number for a single one."""
        best = self.probabilities(observations).argmax(axis=-1)
        return int(best) if best.ndim == 0 else best

    def save(self, path: str | os.PathLike[str]) -> None:
        """Saves everything, including lanes and random numbers; see `load_actor_critic`."""
        about = {
            "family": "actor-critic", "version": VERSION, "seed": self.seed, "shares": list(self.shares),
            "settings": describe("settings", self.settings), "simulator": describe("simulator", self.simulator),
            "uncertain": self.uncertainty_set.describe(),
        }  # fmt: skip
        tree = {"run": jax.device_get(key_data(self._run)), "asked": np.int64(self._asked), "log": self.log}
        save_tensors(path, flatten(tree), about)

    def load_tensors(self, tensors: dict[str, np.ndarray], source: str | os.PathLike[str]) -> None:
        """Restores the arrays of a file."""
        rows = len(tensors.get("log/step", ()))
        like = {
            "run": jax.device_get(key_data(self._run)),
            "asked": np.int64(0),
            "log": {column: np.zeros(rows) for column in LOG},
        }
        found = unflatten(tensors, like, source)
        self._run = with_keys(jax.tree.map(jnp.asarray, found["run"]), self._run)
        self._asked, self.log = int(found["asked"]), found["log"]

    @property
    def _each(self) -> int:
        return self.settings.lanes * self.settings.rollout

    def _note(self) -> None:
        """Adds a row to the log."""
        ended = int(self._run.ended)
        mean = float(self._run.done) / ended if ended else np.nan
        for name, number in zip(LOG, (self.step, mean, self.gain), strict=True):
            self.log[name] = np.append(self.log[name], number)
        self._run = self._run._replace(done=jnp.float32(0), ended=jnp.int32(0))

    def _observations(self, given: ArrayLike) -> Any:
        array = checks.float_array("observations", given)
        size = observation_size(self.simulator)
        if not array.ndim or array.shape[-1] != size:
            raise ValueError(f"observations has shape {array.shape}, expected {size} numbers, or rows of them.")
        return jnp.asarray(array, jnp.float32)


@partial(jax.jit, static_argnums=0)
def _probabilities(settings: ActorCriticSettings, weights: Any, observations: Any) -> Any:
    return jax.nn.softmax(settings.actor.values(weights, settings.actor.features(weights, observations)))


def soft_robust_actor_critic(
    simulator: Simulator,
    uncertainty_set: UncertaintySet,
    shares: Sequence[float] | None = None,
    *,
    seed: int,
    settings: ActorCriticSettings | None = None,
    **changes: Any,
) -> ActorCriticAgent:
    """Soft-robust actor-critic [Derman2018] with networks: training draws members by their shares.

    Args:
      simulator: one of `urbe.simulators`, or your own.
      uncertainty_set: its possible parameters.
      shares: the weight of each member, summing to one; None means equal weights.
      seed: seed of all random numbers.
      settings: all other options.
      changes: fields of `settings` to change, by name.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> agent = soft_robust_actor_critic(CartPole(), poles, seed=0, lanes=2, rollout=4).learn(20)
    >>> agent.step, agent.predict([0.0, 0.0, 0.1, 0.0]) in (0, 1)
    (24, True)
    """
    each = [1.0 / len(uncertainty_set)] * len(uncertainty_set) if shares is None else shares
    chosen = replace(ActorCriticSettings() if settings is None else settings, **changes)
    return ActorCriticAgent(simulator, uncertainty_set, each, chosen, seed)


def load_actor_critic(path: str | os.PathLike[str]) -> ActorCriticAgent:
    """Loads an agent saved by `ActorCriticAgent.save`, which resumes bit for bit. No code in a file is executed.

    Raises:
      CheckpointError: the file is missing, damaged, of another kind, or newer.
    """
    tensors, about = load_tensors(path)
    if about.get("family") != "actor-critic":
        raise CheckpointError(path, "is not an actor-critic agent; load other agents with urbe.deep.load.")
    if about.get("version") != VERSION:
        raise CheckpointError(path, f"has version {about.get('version')!r}, expected {VERSION}.")
    with refused(path, "an agent"):
        simulator, settings = (build(name, about[name]) for name in ("simulator", "settings"))
        members = UncertaintySet.from_description(simulator, about["uncertain"])
        agent = ActorCriticAgent(simulator, members, about["shares"], settings, about["seed"])
    agent.load_tensors(tensors, path)
    return agent
