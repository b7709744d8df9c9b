"""Policies that can be evaluated: compiled ones, and any object with `predict`.

A compiled policy runs together with a simulator in one program; any other chooses its actions step by step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, Int32

from urbe import checks
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.gym.kinds import Env
from urbe.simulators import Simulator

Acting = Literal["greedy", "noisy"]
"""Greedy, or perturbed by the uncertainty head as in training; never with uniformly random actions."""

WAYS: tuple[Acting, ...] = ("greedy", "noisy")

Ask = Callable[[np.ndarray], Any]
"""An action for an observation, or one for each row."""


class ActingRule(Protocol):
    """A rule from weights to actions: traceable, and hashable, so that equal rules are compiled once."""

    def __call__(self, weights: Any, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None) -> Int32[Array, " B"]:
        """The actions, numbered from 0; `noise` is standard normal, None for the greedy ones."""


@runtime_checkable
class Traceable(Protocol):
    """A policy that can be compiled together with a simulator, such as `urbe.deep.policies.policy.Policy`."""

    @property
    def rule(self) -> ActingRule:
        """The rule from weights to actions."""

    @property
    def weights(self) -> Any:
        """The weights, a pytree of arrays."""

    @property
    def obs_size(self) -> int:
        """D, the size of an observation."""

    @property
    def n_actions(self) -> int:
        """A, the number of actions."""

    @property
    def is_noisy(self) -> bool:
        """Whether it can act with noise."""


@runtime_checkable
class Trained(Protocol):
    """An agent: a policy, and its training environment."""

    @property
    def policy(self) -> Traceable:
        """Its current policy."""

    @property
    def simulator(self) -> Simulator | None:
        """Its simulator; None if it was trained on another environment."""


@runtime_checkable
class TrainedWithMemory(Protocol):
    """An agent whose actions may depend on earlier observations of the episode."""

    @property
    def acts_by_memory(self) -> bool:
        """Whether they do."""

    @property
    def memory_policy(self) -> MemoryPolicy[Any]:
        """Its current policy."""

    @property
    def simulator(self) -> Simulator | None:
        """Its simulator; None if it was trained on another environment."""


@runtime_checkable
class Deployable(Protocol):
    """An agent that can be deployed in a Gymnasium environment, where it observes every step."""

    def deploy(self, env: Env, *, seed: int) -> Deployment:
        """Starts a deployment, with an empty memory."""


class Deployment(Protocol):
    """A deployment in one environment, such as `urbe.deep.Session`."""

    def act(self, observation: Any) -> int:
        """Returns the action."""

    def observe(self, reward: float, observation: Any, terminated: bool, truncated: bool = False) -> None:
        """Receives the outcome of the action."""


@runtime_checkable
class Predicts(Protocol):
    """A policy of any other library."""

    def predict(self, obs: Any) -> Any:
        """An action, or a tuple of an action and a state that is None."""


def policy_of(given: object) -> Traceable | Predicts | MemoryPolicy[Any]:
    """The policy of an agent, or the policy itself."""
    if isinstance(given, TrainedWithMemory) and given.acts_by_memory:
        return given.memory_policy
    found = given.policy if isinstance(given, Trained) else given
    if not isinstance(found, (Traceable, Predicts, MemoryPolicy)):
        wrap = "; wrap a function as types.SimpleNamespace(predict=function)" if callable(found) else ""
        raise ValueError(
            f"policy is of type {type(found).__name__}, expected an agent, or an object with predict(obs){wrap}."
        )
    return found


def ways_of(policy: Traceable | Predicts | MemoryPolicy[Any], acting: object) -> tuple[Acting, ...]:
    """The requested ways of acting; None requests all that the policy has."""
    noisy = isinstance(policy, Traceable) and policy.is_noisy
    if acting is None:
        return WAYS if noisy else WAYS[:1]
    asked = (acting,) if isinstance(acting, str) else tuple(acting)  # type: ignore[arg-type]
    if not asked:
        raise ValueError("acting is empty, expected 'greedy', 'noisy' or both.")
    for i, way in enumerate(asked):
        checks.one_of(f"acting[{i}]", way, WAYS)
    if "noisy" in asked and not noisy:
        raise ValueError("acting contains 'noisy', but the policy has no uncertainty head; expected only 'greedy'.")
    return tuple(way for way in WAYS if way in asked)


def asker(policy: Predicts) -> Ask:
    """A function that returns the greedy action of a policy.

    Stable-Baselines3's `predict` explores by default: one that has the argument is called with `deterministic=True`.
    """
    predict = policy.predict
    try:
        deterministic = "deterministic" in inspect.signature(predict).parameters
    except (TypeError, ValueError):  # compiled functions have no signature to inspect
        deterministic = False

    def ask(obs: Any) -> Any:
        answer = predict(obs, deterministic=True) if deterministic else predict(obs)  # type: ignore[call-arg]
        if not isinstance(answer, tuple):
            return answer
        if len(answer) != 2 or answer[1] is not None:
            raise ValueError(
                f"policy.predict returned {len(answer)} values, the second of type {type(answer[-1]).__name__}, "
                "expected an action, or an action and None: policies with a memory of their own cannot be evaluated."
            )
        return answer[0]

    return ask


def takes_rows(ask: Ask, obs: np.ndarray, action_shape: tuple[int, ...]) -> bool:
    """Whether a policy accepts a batch of observations, and returns the same actions as one by one.

    Args:
      ask: the policy.
      obs: any observation.
      action_shape: shape of one action.
    """
    count = obs.shape[0] + 2 if obs.ndim else 2  # a length that does not occur by chance
    try:
        together = np.asarray(ask(np.stack([obs] * count)))
    except Exception:  # whatever it raises, try one by one next
        return False
    alone = np.asarray(ask(obs))
    if together.shape != (count, *action_shape) or alone.size != together[0].size:
        return False
    return bool(np.allclose(together, alone.reshape(action_shape), rtol=1e-5, atol=1e-6))
