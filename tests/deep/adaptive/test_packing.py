"""Trees packed into one vector of words are restored bit for bit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from urbe.deep.adaptive.packing import Packing


class Tree(NamedTuple):
    """Every kind of leaf, an empty one and a scalar among them."""

    empty: jax.Array
    floats: jax.Array
    count: jax.Array
    words: jax.Array
    flags: jax.Array


TREE = Tree(
    jnp.zeros(0, jnp.float32),
    jnp.asarray(np.array([[-0.0, np.inf], [np.nan, 1e-45]], np.float32)),
    jnp.int32(-(2**31)),
    jnp.asarray([0, 2**32 - 1], jnp.uint32),
    jnp.asarray([True, False, True]),
)


def test_the_same_bits_come_back_inside_programs_and_outside():
    packing = Packing.of(TREE)
    vector = jax.jit(packing.pack)(TREE)
    assert vector.shape == (0 + 4 + 1 + 2 + 3,)
    for found in (packing.unpack(np.asarray(vector)), jax.jit(packing.unpack)(vector)):
        for one, other in zip(found, TREE, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_other_dtypes_are_refused():
    with pytest.raises(ValueError, match="dtype float16, expected bool or a dtype of 32 bits"):
        Packing.of(Tree(jnp.zeros(2, jnp.float16), *TREE[1:]))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
def test_neither_wider_nor_narrower_numbers_are_taken(dtype):
    with pytest.raises(ValueError, match=f"dtype {np.dtype(dtype)}, expected bool or a dtype of 32 bits"):
        Packing.of((jax.ShapeDtypeStruct((2,), np.float32), np.zeros(2, dtype)))
