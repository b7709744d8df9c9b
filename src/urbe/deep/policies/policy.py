"""The policy of an agent: weights that map observations to actions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32
from numpy.typing import ArrayLike

from urbe import checks
from urbe.deep.core.learner import Learned
from urbe.deep.core.settings import Settings


class Weights(NamedTuple):
    """The weights for acting, a pytree for compiled functions."""

    q: Any
    head: Any  # None if actions are never perturbed


class Values(NamedTuple):
    """The estimated value of each action, and its variance (None without an uncertainty head)."""

    q: np.ndarray
    w: np.ndarray | None


@dataclass(frozen=True)
class NetworkRule:
    """The rule from weights to actions, a hashable key of compiled functions; see `act`."""

    settings: Settings

    def __call__(
        self, weights: Weights, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None
    ) -> Int32[Array, " B"]:
        """The actions, greedy without noise; traceable."""
        return act(self.settings, weights, obs, noise)


class Policy:
    """Acts with fixed weights.

    Args:
      settings: settings of the agent with these weights.
      weights: the weights.
    """

    def __init__(self, settings: Settings, weights: Weights) -> None:
        self.settings, self.weights = settings, weights

    @staticmethod
    def of(settings: Settings, learner: Learned) -> Policy:
        """The current policy of a learner."""
        return Policy(settings, Weights(learner.q, settings.variance.acting(learner.head)))

    @property
    def rule(self) -> NetworkRule:
        """The acting rule, traceable: `rule(weights, obs, noise)`."""
        return NetworkRule(self.settings)

    @property
    def is_noisy(self) -> bool:
        """Whether it has an uncertainty head and can act noisily."""
        return self.weights.head is not None

    def predict(self, obs: ArrayLike, rng: np.random.Generator | None = None) -> Any:
        """The best action, or with `rng` the best of perturbed values; a number, or one per row."""
        rows, single = self._rows(obs)
        noise = np.zeros((len(rows), self.n_actions), np.float32)
        if rng is not None:
            noise = rng.standard_normal(noise.shape, dtype=np.float32)
        actions = np.asarray(_act(self.settings, self.weights, rows, noise))
        return int(actions[0]) if single else actions

    def values(self, obs: ArrayLike) -> Values:
        """Q and w of every action, `(A,)` or `(B, A)`."""
        rows, single = self._rows(obs)
        q, w = jax.device_get(_values(self.settings, self.weights, rows))
        return Values(q[0] if single else q, None if w is None else (w[0] if single else w))

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.settings.network.sizes(self.weights.q)[1]

    @property
    def obs_size(self) -> int:
        """D, the length of an observation."""
        return self.settings.network.sizes(self.weights.q)[0]

    def _rows(self, obs: ArrayLike) -> tuple[np.ndarray, bool]:
        array, size = np.asarray(obs, np.float32), self.obs_size
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise ValueError(f"obs has shape {array.shape}, expected ({size},) or (B, {size}).")
        if not np.isfinite(array).all():
            where = checks.index_text("obs", np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"{where} is not finite, expected a number: no action follows from it.")
        return np.atleast_2d(array), array.ndim == 1


def act(
    settings: Settings, weights: Weights, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None
) -> Int32[Array, " B"]:
    """argmax_a of the values that the variance perturbs by the noise, traceable; noise 0 or None is greedy."""
    phi = settings.network.features(weights.q, obs)
    q = settings.network.values(weights.q, phi)
    if noise is not None and weights.head is not None:
        q, _ = settings.variance.perturbed(settings, weights.head, noise, obs, phi, q)
    return q.argmax(axis=-1).astype(jnp.int32)


_act = partial(jax.jit, static_argnums=0)(act)


@partial(jax.jit, static_argnums=0)
def _values(settings: Settings, weights: Weights, obs: Float[Array, "B D"]) -> tuple[Array, Array | None]:
    phi = settings.network.features(weights.q, obs)
    w = None if weights.head is None else settings.variance.variances(settings, weights.head, obs, phi)
    return settings.network.values(weights.q, phi), w
