"""Deep robust Kalman filter [Shashua2017] on the last layer: its weights are a random walk, targets are observations.

    theta_t = theta_{t-1} + noise of variance P_v,        y = Q(s, a; theta) + noise of variance P_n

With phi the features of s and a one for the bias, and y nature's mixture of the members' targets,

    P   <- P + P_v
    K    = P phi / (phi' P phi + P_n)
    theta_a <- theta_a + K (y - Q(s, a)),        P <- (I - K phi') P (I - K phi')' + K P_n K'

for the action a that was taken; each action has its own weights and its own P. Earlier layers are trained by gradient
steps. The filter processes a whole mini-batch at once, with the same result as one transition after another. With
P_v = 0 and fixed features it is ridge regression on all targets so far.

Departures: the original filters all weights, at a cost that is quadratic in their number. Its P_v is a fraction of P,
which lets P grow without bound in directions that no feature has; here P_v = drift (prior I - P). A replayed transition
counts each time it is drawn; choose `observation_noise` accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64, Int

from urbe import checks
from urbe.deep.core.networks import Layer, QNetwork
from urbe.deep.core.optimisers import Adam, Optimiser, optimise


@runtime_checkable
class SeesErrors(Protocol):
    """An optimiser of Q-networks that uses the transitions and their TD errors in addition to the gradient."""

    def step(
        self,
        network: QNetwork,
        weights: Any,
        state: Any,
        obs: Float[Array, "B D"],
        action: Int[Array, " B"],
        td: Float[Array, " B"],
        gradient: Any,
        rate: Float[Array, ""],
        clip_norm: float | None,
    ) -> tuple[Any, Any]:
        """Weights and state after one mini-batch."""


class Filter(NamedTuple):
    """The state of the other layers' optimiser, and P of the last layer's weights for each action."""

    rest: Any
    covariance: Float64[Array, "A G G"]


@dataclass(frozen=True)
class KalmanLastLayer:
    """Updates the last layer by the Kalman filter, and earlier layers by another optimiser.

    It needs TD errors and a network whose last layer is linear, so it works only for DQN and its robust variants.

    Args:
      observation_noise: P_n, variance of a target around the Q-value.
      drift: the fraction by which P returns towards prior I in each step; 0 never forgets.
      prior: P before any data is prior I.
      rest: optimiser of the earlier layers, with the learning rate of the settings.
    """

    observation_noise: float = 100.0
    drift: float = 1e-4
    prior: float = 0.1
    rest: Optimiser = field(default_factory=Adam)

    def __post_init__(self) -> None:
        checks.positive("observation_noise", self.observation_noise)
        checks.number("drift", self.drift, 0.0, 1.0)
        checks.positive("prior", self.prior)
        if isinstance(self.rest, type) or not isinstance(self.rest, Optimiser):
            raise ValueError(f"rest is {self.rest!r}, expected an Adam(...).")

    def init(self, weights: Any) -> Filter:
        """P = prior I for every action."""
        if type(weights) is not tuple or not all(isinstance(layer, Layer) for layer in weights):  # no NamedTuple
            raise ValueError(
                f"optimiser is KalmanLastLayer(...), but the weights are of {type(weights).__name__}, expected those "
                "of Network(...), whose last layer is linear in its features."
            )
        n_features, n_actions = weights[-1].weight.shape
        eye = jnp.eye(n_features + 1, dtype=jnp.float64)
        return Filter(self.rest.init(weights), jnp.broadcast_to(self.prior * eye, (n_actions, *eye.shape)))

    def update(self, gradient: Any, state: Filter, weights: Any, rate: Float[Array, ""]) -> tuple[Any, Filter]:
        """Raises an error: a gradient does not contain the observations."""
        raise ValueError(
            "optimiser is KalmanLastLayer(...), which needs TD errors, not only gradients; expected an Adam(...) here. "
            "Use it in dqn, robust_dqn and soft_robust_dqn with a plain Network."
        )

    def step(
        self,
        network: QNetwork,
        weights: Any,
        state: Filter,
        obs: Float[Array, "B D"],
        action: Int[Array, " B"],
        td: Float[Array, " B"],
        gradient: Any,
        rate: Float[Array, ""],
        clip_norm: float | None,
    ) -> tuple[Any, Filter]:
        """Updates the last layer by the filter, and the others by `rest`, without the last layer's gradient."""
        phi = network.features(weights, obs).astype(jnp.float64)
        taken = jax.nn.one_hot(action, state.covariance.shape[0], dtype=jnp.float64)
        changes, covariance = self.filtered(state.covariance, phi, taken, td.astype(jnp.float64))
        weight, bias = weights[-1]
        still = (*gradient[:-1], jax.tree.map(jnp.zeros_like, gradient[-1]))
        followed, rest = optimise(self.rest, rate, weights, state.rest, still, clip_norm)
        moved = Layer(weight + changes[:, :-1].T.astype(weight.dtype), bias + changes[:, -1].astype(bias.dtype))
        return (*followed[:-1], moved), Filter(rest, covariance)

    def filtered(
        self,
        covariance: Float64[Array, "A G G"],
        phi: Float64[Array, "B F"],
        taken: Float64[Array, "B A"],
        td: Float64[Array, " B"],
    ) -> tuple[Float64[Array, "A G"], Float64[Array, "A G G"]]:
        """The change of each action's weights, and P after the mini-batch."""
        eye, noise = jnp.eye(covariance.shape[-1], dtype=jnp.float64), self.observation_noise
        x = jnp.concatenate([phi, jnp.ones((len(phi), 1), jnp.float64)], axis=1)

        def one(p: Array, counts: Array) -> tuple[Array, Array]:
            p = p + self.drift * (self.prior * eye - p)
            seen = x * counts[:, None]  # rows of other actions are zero and change nothing
            along = p @ seen.T
            spread = seen @ along + noise * jnp.eye(len(x), dtype=jnp.float64)
            gain = jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(spread), True), along.T).T
            left = eye - gain @ seen
            p = left @ p @ left.T + noise * gain @ gain.T
            return gain @ (td * counts), 0.5 * (p + p.T)

        changes, after = jax.vmap(one, in_axes=(0, 1))(covariance, taken)
        return changes, after
