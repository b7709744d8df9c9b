"""What an agent has learned, apart from how: weights that map observations to actions."""

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
from urbe.deep.core.explore import noisy_values
from urbe.deep.core.last_layer import head_input
from urbe.deep.core.learner import Learner
from urbe.deep.core.networks import Layers, head_values, hidden, output, scaled
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import LastLayer


class Weights(NamedTuple):
    """All that acting needs; a pytree, to be handed to compiled functions."""

    q: Layers
    head: Layers | None


class Values(NamedTuple):
    """What an agent thinks of each action: value and its variance (None without an uncertainty head)."""

    q: np.ndarray
    w: np.ndarray | None


@dataclass(frozen=True)
class Rule:
    """How weights become actions, as a value that compiled functions are cached by; see `act`."""

    settings: Settings

    def __call__(
        self, weights: Weights, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None
    ) -> Int32[Array, " B"]:
        """The actions, without noise the greedy ones; traceable."""
        return act(self.settings, weights, obs, noise)


class Policy:
    """Acts by fixed weights.

    Args:
      settings: of the agent the weights are of.
      weights: what it learned.
    """

    def __init__(self, settings: Settings, weights: Weights) -> None:
        self.settings, self.weights = settings, weights

    @staticmethod
    def of(settings: Settings, learner: Learner) -> Policy:
        """By what a learner knows now."""
        return Policy(settings, Weights(learner.q, None if learner.head is None else learner.head.layers))

    @property
    def rule(self) -> Rule:
        """How it acts, traceable: `rule(weights, obs, noise)`."""
        return Rule(self.settings)

    @property
    def is_noisy(self) -> bool:
        """Whether it has an uncertainty head to act noisily by."""
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
        """How many actions there are."""
        return int(self.weights.q[-1].bias.shape[0])

    @property
    def obs_size(self) -> int:
        """D, the length of an observation."""
        return int(self.weights.q[0].weight.shape[0])

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
    """argmax_a Q(s, a) + beta noise_a sqrt(max(w(s, a), 0)), traceable; noise 0 or None is the greedy policy."""
    phi = hidden(weights.q, scaled(settings.network, obs))
    q = output(weights.q, phi)
    if noise is not None and weights.head is not None and isinstance(settings.variance, LastLayer):
        q, _ = noisy_values(settings, settings.variance, weights.head, noise, obs, phi, q)
    return q.argmax(axis=-1).astype(jnp.int32)


_act = partial(jax.jit, static_argnums=0)(act)


@partial(jax.jit, static_argnums=0)
def _values(settings: Settings, weights: Weights, obs: Float[Array, "B D"]) -> tuple[Array, Array | None]:
    phi = hidden(weights.q, scaled(settings.network, obs))
    w = None
    if weights.head is not None and isinstance(settings.variance, LastLayer):
        w = head_values(settings.variance, weights.head, head_input(settings, settings.variance, obs, phi))
    return output(weights.q, phi), w
