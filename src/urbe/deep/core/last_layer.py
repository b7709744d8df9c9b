"""The paper's uncertainty head: it learns the variance of the Q-values from the last layer's features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64, Int

from urbe import checks
from urbe.deep.core import tricks
from urbe.deep.core.gram import Gram, absorb, init_gram, inverse_count, rebuild, refresh
from urbe.deep.core.networks import Layers, hidden, init_layers, output
from urbe.deep.core.optimisers import optimise
from urbe.deep.core.replay import Replay
from urbe.deep.core.schedules import due, rate_at
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import Remembered, Visits


class Head(NamedTuple):
    """The head's network, the inverse counts, and the running squared TD error of each action with its weight."""

    layers: Layers
    optimiser: Any
    gram: Gram
    residual: Float64[Array, " A"]
    residual_weight: Float64[Array, " A"]


@dataclass(frozen=True)
class LastLayer:
    """A second head that learns the posterior variance w of the Q-values [Derman2019] (second algorithm).

        nu(s, a) = scale_a phi(s)' Sigma_a phi(s)                 uncertainty about this step alone
        w(s, a) <- nu(s, a) + gamma^2 w(s', a')                   one gradient step per transition
        act: argmax_b Q(s, b) + beta zeta_b sqrt(max(w(s, b), 0)),   zeta_b ~ N(0, 1)

    phi are the Q-network's last hidden units, and Sigma_a = (I / mu + sum phi phi')^-1 over the states where a was
    taken. Neither head's loss changes the other's weights. The last step of an episode has no successor in the
    recursion, whether it was terminal or truncated, as in the paper's listing.

    The defaults are exactly the paper's CartPole agent. Options remedy its weaknesses:
    `non_negative`, `forget`, `rebuild_every`, `normalise`, `constant`, and `calibrated` below.

    Args:
      beta: standard deviations of noise per standard deviation of the Q-value.
      mu: Sigma_a before any data is mu I: the inverse of the ridge regulariser.
      hidden: units of the head's own ReLU layers.
      learning_rate: learning rate of the head.
      raw_input: the head is a separate network on observations, instead of on phi. The figure that would decide is
        missing from the paper; "a sub-network of the robust Q-network" suggests phi.
      non_negative: softplus on the head's output; otherwise linear, and clipped where its root is taken.
      residual_decay: None for scale_a = 1 (paper); otherwise scale_a is the squared TD error of action a, averaged
        exponentially with this decay, which makes nu the posterior variance of Bayesian linear regression.
      forget: lam in Lambda_a <- lam Lambda_a + (1 - lam) I / mu, per step, for Sigma_a = Lambda_a^-1; 1 never forgets.
      refresh_every: steps between exact inversions of Lambda_a, where forgetting is applied, too (lam to that power);
        in between, Sigma_a has rank-one updates.
      rebuild_every: steps between rebuilding Lambda_a from the replay with current features; 0 never.
      normalise: divide phi by its root mean square, so that its scale does not affect beta.
      constant: append a one to phi, so that a layer of dead units does not imply certainty.
      replayed: replayed transitions in each step of the head, in addition to the new one; 0 as in the listing.
    """

    beta: float = 0.5
    mu: float = 1e-2
    hidden: tuple[int, ...] = (100,)
    learning_rate: float = 1e-4
    raw_input: bool = False
    non_negative: bool = False
    residual_decay: float | None = None
    forget: float = 1.0
    refresh_every: int = 10_000
    rebuild_every: int = 0
    normalise: bool = False
    constant: bool = False
    replayed: int = 0

    def __post_init__(self) -> None:
        checks.number("beta", self.beta, 0.0, float("inf"), closed=False)
        for name in ("mu", "learning_rate", "forget"):
            checks.positive(name, getattr(self, name))
        checks.number("forget", self.forget, 0.0, 1.0)
        if self.residual_decay is not None:
            checks.probability("residual_decay", self.residual_decay)
        object.__setattr__(self, "hidden", tuple(self.hidden))  # settings are hashed, lists are not
        for i, units in enumerate(self.hidden):
            checks.whole_number(f"hidden[{i}]", units, 1)
        checks.whole_number("refresh_every", self.refresh_every, 1)
        for name in ("rebuild_every", "replayed"):
            checks.whole_number(name, getattr(self, name), 0)

    def init(self, settings: Settings, key: jax.Array, obs_size: int, n_actions: int) -> Head:
        """A head without data. The key is consumed."""
        inputs = obs_size if self.raw_input else settings.network.n_features
        layers = init_layers(key, (inputs, *self.hidden, n_actions))
        zeros = jnp.zeros(n_actions, jnp.float64)
        gram = init_gram(n_actions, settings.network.n_features + int(self.constant), self.mu)
        return Head(layers, settings.optimiser.init(layers), gram, zeros, zeros)

    def acting(self, head: Head) -> Layers:
        """Returns the weights of the head's network."""
        return head.layers

    def variances(
        self, settings: Settings, weights: Layers, obs: Float[Array, "n D"], phi: Float[Array, "n F"]
    ) -> Float[Array, "n A"]:
        """w(s, .), the variances of all actions."""
        return head_values(self, weights, head_input(settings, self, obs, phi))

    def perturbed(
        self,
        settings: Settings,
        weights: Layers,
        noise: Float[Array, "n A"],
        obs: Float[Array, "n D"],
        phi: Float[Array, "n F"],
        q: Float[Array, "n A"],
    ) -> tuple[Float[Array, "n A"], Float[Array, "n A"]]:
        """Q + beta zeta sqrt(max(w, 0)), and w."""
        w = self.variances(settings, weights, obs, phi)
        return q + jnp.float32(self.beta) * noise * jnp.sqrt(jnp.maximum(w, 0.0)), w

    def learn(
        self, settings: Settings, head: Head, visits: Visits, remembered: Remembered, step: Int[Array, ""]
    ) -> tuple[Head, Float64[Array, ""]]:
        """Takes a gradient step on the new steps and one on replayed ones, then updates the inverse counts."""
        head, nu = learn_head(settings, self, head, visits, step)
        if self.replayed:
            head, _ = learn_head(settings, self, head, remembered(self.replayed), step)
        return absorb_visits(self, head, visits.action, visits.phi), nu

    def track(self, head: Head, action: Int[Array, " B"], td: Float[Array, " B"]) -> Head:
        """The mean squared TD error of each action in a minibatch enters its running average."""
        return track_residual(self, head, action, td)

    def refresh(
        self, settings: Settings, head: Head, q: Any, replay: Replay, before: Int[Array, ""], step: Int[Array, ""]
    ) -> Head:
        """Inverts exactly, and rebuilds the counts with current features, when due."""
        head = tricks.run_if(due(step, before, self.refresh_every), lambda _, h: refresh_head(self, h), head)
        if self.rebuild_every:
            again = jnp.minimum(due(step, before, self.rebuild_every), 1)
            head = tricks.run_if(again, lambda _, h: rebuild_head(settings, self, h, q, replay), head)
        return head


def calibrated(
    beta: float = 1.0,
    *,
    hidden: tuple[int, ...] = (100,),
    learning_rate: float = 1e-4,
    residual_decay: float = 0.999,
    forget: float = 0.999,
) -> LastLayer:
    """A last-layer variance with a scale: `beta=1` is one posterior standard deviation.

    nu = s2_a phi' Sigma_a phi with s2_a the running squared TD error, features of unit root mean square and a
    constant, a prior of unit variance, a non-negative head, and forgetting, so that it can react to a change.
    """
    return LastLayer(
        beta=beta,
        mu=1.0,
        hidden=hidden,
        learning_rate=learning_rate,
        non_negative=True,
        residual_decay=residual_decay,
        forget=forget,
        refresh_every=100,
        normalise=True,
        constant=True,
    )


def head_values(variance: LastLayer, layers: Layers, x: Float[Array, "*B I"]) -> Float[Array, "*B A"]:
    """w(s, .), from phi or, with `raw_input`, from the scaled observation."""
    w = output(layers, hidden(layers, x))
    return jax.nn.softplus(w) if variance.non_negative else w


def features(variance: LastLayer, phi: Float[Array, "*B F"]) -> Float[Array, "*B G"]:
    """The features of Sigma: phi, normalised and with a constant if wanted."""
    if variance.normalise:
        phi = phi * jax.lax.rsqrt(jnp.mean(phi * phi, axis=-1, keepdims=True) + jnp.float32(1e-8))
    if variance.constant:
        phi = jnp.concatenate([phi, jnp.ones((*phi.shape[:-1], 1), jnp.float32)], axis=-1)
    return phi


def head_input(
    settings: Settings, variance: LastLayer, obs: Float[Array, "*B D"], phi: Float[Array, "*B F"]
) -> Float[Array, "*B I"]:
    """The input of the head's first layer, without a gradient."""
    return jax.lax.stop_gradient(settings.network.inputs(obs) if variance.raw_input else phi)


def local_variance(
    variance: LastLayer, head: Head, action: Int[Array, " m"], phi: Float[Array, "m F"]
) -> Float64[Array, " m"]:
    """nu = scale_a phi' Sigma_a phi for each row."""
    seen = features(variance, phi)
    counts = tricks.map_rows(lambda a, x: inverse_count(head.gram, a, x), action, seen)
    return residual_scale(variance, head)[action] * counts


def residual_scale(variance: LastLayer, head: Head) -> Float64[Array, " A"]:
    """scale_a: one in the paper's form and before any TD error, else their running mean square."""
    if variance.residual_decay is None:
        return jnp.ones_like(head.residual)
    known = head.residual_weight > 0.0
    return jnp.where(known, head.residual / jnp.where(known, head.residual_weight, 1.0), 1.0)


def head_loss(
    settings: Settings,
    variance: LastLayer,
    layers: Layers,
    visits: Visits,
    wanted: Float[Array, " m"],
) -> Float[Array, ""]:
    """mean (y - w(s, a))^2, as a function of the head's weights."""
    w = head_values(variance, layers, head_input(settings, variance, visits.obs, visits.phi))
    chosen = jnp.take_along_axis(w, visits.action[:, None], axis=-1)[:, 0]
    return ((jax.lax.stop_gradient(wanted) - chosen) ** 2).mean()


def learn_head(
    settings: Settings, variance: LastLayer, head: Head, visits: Visits, step: Int[Array, ""]
) -> tuple[Head, Float64[Array, ""]]:
    """Takes one gradient step towards y = nu(s, a) + gamma^2 max(w(s', a'), 0); also returns the mean nu.

    w is clipped, as for its square root, since a negative variance is meaningless.
    """
    nu = local_variance(variance, head, visits.action, visits.phi)
    next_w = head_values(variance, head.layers, head_input(settings, variance, visits.next_obs, visits.next_phi))
    follow = jnp.maximum(jnp.take_along_axis(next_w, visits.next_action[:, None], axis=-1)[:, 0], 0.0)
    wanted = nu.astype(jnp.float32) + jnp.where(visits.last, 0.0, jnp.float32(settings.discount**2) * follow)
    gradient = jax.grad(lambda layers: head_loss(settings, variance, layers, visits, wanted))(head.layers)
    rate = rate_at(settings.decay, variance.learning_rate, step)
    layers, optimiser = optimise(settings.optimiser, rate, head.layers, head.optimiser, gradient, settings.clip_norm)
    return head._replace(layers=layers, optimiser=optimiser), nu.mean()


def track_residual(variance: LastLayer, head: Head, action: Int[Array, " B"], td: Float[Array, " B"]) -> Head:
    """The mean squared TD error of each action in a minibatch enters its running average."""
    if variance.residual_decay is None:
        return head
    taken = jax.nn.one_hot(action, len(head.residual), dtype=jnp.float64)
    count = taken.sum(axis=0)
    mean = (taken * (td.astype(jnp.float64) ** 2)[:, None]).sum(axis=0) / jnp.maximum(count, 1.0)
    keep = jnp.where(count > 0.0, variance.residual_decay, 1.0)
    return head._replace(
        residual=keep * head.residual + (1.0 - keep) * mean,
        residual_weight=keep * head.residual_weight + (1.0 - keep),
    )


def absorb_visits(variance: LastLayer, head: Head, action: Int[Array, " n"], phi: Float[Array, "n F"]) -> Head:
    """Updates the inverse counts by n visits."""
    seen = features(variance, phi)
    gram = head.gram
    for i in range(len(action)):
        gram = absorb(gram, action[i], seen[i])
    return head._replace(gram=gram)


def refresh_head(variance: LastLayer, head: Head) -> Head:
    """Applies the forgetting of `refresh_every` steps, and inverts exactly."""
    return head._replace(gram=refresh(head.gram, variance.mu, variance.forget**variance.refresh_every))


def rebuild_head(settings: Settings, variance: LastLayer, head: Head, q: Layers, replay: Replay) -> Head:
    """Rebuilds the inverse counts from the replay, with current features."""
    phi = features(variance, settings.network.features(q, replay.obs))
    real = (jnp.arange(len(replay.stamp)) < replay.inserted).astype(jnp.float64)
    return head._replace(gram=rebuild(phi, replay.action, real, len(head.residual), variance.mu))
