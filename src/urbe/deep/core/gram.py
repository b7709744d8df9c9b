"""Inverse visit counts with features: Sigma_a = (I / mu + sum phi phi')^-1 for each action, updated as data arrive.

One-hot features give Sigma_a[s, s] = mu / (1 + mu n(s, a)): phi' Sigma_a phi generalises the inverse of a count. The
precision Lambda_a = Sigma_a^-1 is kept, too: forgetting is stable there, and Sigma_a is recomputed from it at
intervals, so that rounding never accumulates. Both are float64, whatever the type of the network.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float64, Int

from urbe.deep.core import tricks


class Gram(NamedTuple):
    """Precision and its inverse, per action."""

    precision: Float64[Array, "A G G"]
    sigma: Float64[Array, "A G G"]


def init_gram(n_actions: int, n_features: int, mu: float) -> Gram:
    """Before any data: Sigma_a = mu I."""
    eye = jnp.broadcast_to(jnp.eye(n_features, dtype=jnp.float64), (n_actions, n_features, n_features))
    return Gram(eye / mu, eye * mu)


def inverse_count(gram: Gram, action: Int[Array, ""], phi: Float[Array, " G"]) -> Float64[Array, ""]:
    """phi' Sigma_a phi, at least 0."""
    x, v = _along(gram, action, phi)
    return jnp.maximum(x @ v, 0.0)


def absorb(gram: Gram, action: Int[Array, ""], phi: Float[Array, " G"]) -> Gram:
    """Adds one visit of `action` at features phi, by the Sherman-Morrison formula.

    Sigma_a <- Sigma_a - (Sigma_a phi)(Sigma_a phi)' / (1 + phi' Sigma_a phi); symmetric in floating point too.
    """
    x, v = _along(gram, action, phi)
    u = v / jnp.sqrt(1.0 + x @ v)
    return Gram(_added(gram.precision, action, x, x), _added(gram.sigma, action, u, -u))


def _along(
    gram: Gram, action: Int[Array, ""], phi: Float[Array, " G"]
) -> tuple[Float64[Array, " G"], Float64[Array, " G"]]:
    """phi in double precision, and Sigma_a phi: both functions above need it, and the compiler computes it once."""
    x = tricks.written(phi.astype(jnp.float64))  # otherwise the features are computed again for every entry of x x'
    return x, jax.lax.dynamic_index_in_dim(gram.sigma, action, 0, keepdims=False) @ x


def _added(of_all: Float64[Array, "A G G"], action: Int[Array, ""], x: Array, y: Array) -> Float64[Array, "A G G"]:
    """Adds x y' for one action, in place if the compiler can."""
    one = jax.lax.dynamic_index_in_dim(of_all, action, 0, keepdims=False)
    changed: Array = jax.lax.dynamic_update_index_in_dim(of_all, one + x[:, None] * y[None, :], action, 0)
    return changed


def refresh(gram: Gram, mu: float, forget: float) -> Gram:
    """Lambda_a <- forget Lambda_a + (1 - forget) I / mu, and Sigma_a its exact inverse."""
    prior = jnp.eye(gram.precision.shape[-1], dtype=jnp.float64) / mu
    return invert(forget * gram.precision + (1.0 - forget) * prior)


def rebuild(
    phi: Float[Array, "N G"], action: Int[Array, " N"], real: Float[Array, " N"], n_actions: int, mu: float
) -> Gram:
    """Computes Sigma_a from the features of N transitions; those with `real` 0 do not count."""
    x = phi.astype(jnp.float64)
    taken = jax.nn.one_hot(action, n_actions, dtype=jnp.float64) * real[:, None]
    prior = jnp.eye(x.shape[-1], dtype=jnp.float64) / mu
    return invert(jnp.stack([prior + (x * taken[:, a : a + 1]).T @ x for a in range(n_actions)]))


def invert(precision: Float64[Array, "A G G"]) -> Gram:
    """Inverts every precision exactly, by Cholesky factorisation.

    It factorises the transpose, which is the same matrix: LAPACK expects columns first, and XLA would copy the matrix.
    """
    eye = jnp.broadcast_to(jnp.eye(precision.shape[-1], dtype=jnp.float64), precision.shape)
    sigma = jax.vmap(
        lambda p, i: jax.scipy.linalg.cho_solve((jax.lax.linalg.cholesky(p.T, symmetrize_input=False), True), i)
    )(precision, eye)
    return Gram(precision, 0.5 * (sigma + sigma.swapaxes(-1, -2)))
