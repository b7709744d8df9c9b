"""The protocol of uncertainty heads, and the variance without a head.

A variance keeps a head, which is any tree of arrays, and is called at four places of the learning step:

    perturbed   before learning, to choose the next action
    learn       once per transition, before the Q-network learns
    track       after each gradient step of the Q-network, with its TD errors
    refresh     at the end of the step

No gradient of a head reaches the Q-network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float64, Int

from urbe.deep.core.replay import Replay

if TYPE_CHECKING:
    from urbe.deep.core.settings import Settings


class Visits(NamedTuple):
    """m steps as input of a head, each with the next observation and action."""

    obs: Float[Array, "m D"]
    phi: Float[Array, "m F"]
    action: Int[Array, " m"]
    last: Bool[Array, " m"]
    next_obs: Float[Array, "m D"]
    next_phi: Float[Array, "m F"]
    next_action: Int[Array, " m"]


Remembered = Callable[[int], Visits]
"""Draws this number of steps from the replay, with current features."""


@runtime_checkable
class Variance(Protocol):
    """Estimates the uncertainty of Q-values and perturbs actions. Variances must be hashable; see `check_variance`.

    All methods are traceable and pure. A head has the same shapes and types at all times.
    """

    def init(self, settings: Settings, key: jax.Array, obs_size: int, n_actions: int) -> Any:
        """A head without data, or None. The key is consumed."""

    def acting(self, head: Any) -> Any:
        """The part of a head that acting needs; None if actions are never perturbed."""

    def variances(
        self, settings: Settings, weights: Any, obs: Float[Array, "n D"], phi: Float[Array, "n F"]
    ) -> Float[Array, "n A"] | None:
        """w(s, .), from the result of `acting`; None without one."""

    def perturbed(
        self,
        settings: Settings,
        weights: Any,
        noise: Float[Array, "n A"],
        obs: Float[Array, "n D"],
        phi: Float[Array, "n F"],
        q: Float[Array, "n A"],
    ) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
        """The perturbed values to maximise, equal to Q without noise; and w."""

    def learn(
        self, settings: Settings, head: Any, visits: Visits, remembered: Remembered, step: Int[Array, ""]
    ) -> tuple[Any, Float64[Array, ""]]:
        """The head after new steps, and the mean local uncertainty nu of these steps."""

    def track(self, head: Any, action: Int[Array, " B"], td: Float[Array, " B"]) -> Any:
        """The head after a minibatch of the Q-network with these TD errors."""

    def refresh(
        self, settings: Settings, head: Any, q: Any, replay: Replay, before: Int[Array, ""], step: Int[Array, ""]
    ) -> Any:
        """The head after the updates due between two counts of steps; q are the weights of the Q-network."""


@dataclass(frozen=True)
class NoVariance:
    """No uncertainty head: the agent explores only by epsilon."""

    def init(self, settings: Settings, key: jax.Array, obs_size: int, n_actions: int) -> None:
        """Returns None: there is no head."""

    def acting(self, head: None) -> None:
        """Returns None: there are no weights."""

    def variances(self, settings: Settings, weights: None, obs: Array, phi: Array) -> None:
        """Returns None: there are no variances."""

    def perturbed(
        self, settings: Settings, weights: None, noise: Array, obs: Array, phi: Array, q: Float[Array, "n A"]
    ) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
        """Returns q unchanged, and variances of zero."""
        return q, jnp.zeros_like(q)

    def learn(
        self, settings: Settings, head: None, visits: Visits, remembered: Remembered, step: Array
    ) -> tuple[None, Float64[Array, ""]]:
        """Returns no head, and a loss of zero."""
        return None, jnp.float64(0.0)

    def track(self, head: None, action: Array, td: Array) -> None:
        """Returns None: there is no head."""

    def refresh(self, settings: Settings, head: None, q: Any, replay: Replay, before: Array, step: Array) -> None:
        """Returns None: there is no head."""
