"""Keys of random numbers: one root per seed, and plain arrays in their place where states are saved."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from urbe.rng import stream

_KIND = "threefry2x32"


def root_key(seed: int) -> jax.Array:
    """The key all random numbers of a run follow from; any whole number of at least 0, the same under all settings."""
    words = stream(seed, "deep").integers(2**32, size=2, dtype="uint32")
    key: jax.Array = jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl=_KIND)
    return key


def key_data(tree: Any) -> Any:
    """The tree with each key's words in its place."""
    return jax.tree.map(lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, tree)


def with_keys(tree: Any, like: Any) -> Any:
    """The tree with keys again where `like` has them."""
    return jax.tree.map(
        lambda leaf, old: jax.random.wrap_key_data(leaf, impl=_KIND) if _is_key(old) else leaf, tree, like
    )


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
