"""Pack a tree of small arrays into one vector, bit for bit.

Calling a compiled program costs microseconds for each input and output array, more than the computation of a small
program. A deployment therefore passes its memory as one array of 32-bit words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32


class Packing(NamedTuple):
    """The position of each leaf of a tree in the vector.

    Attributes:
      tree: the structure.
      shapes, dtypes: one per leaf; dtypes are bool or have 32 bits.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]

    @staticmethod
    def of(tree: Any) -> Packing:
        """The packing of trees like this one, of arrays or their shapes."""
        leaves, structure = jax.tree.flatten(tree)
        dtypes = tuple(np.dtype(leaf.dtype) for leaf in leaves)
        for dtype in dtypes:
            if dtype != np.bool_ and dtype.itemsize != 4:
                raise ValueError(f"a leaf has dtype {dtype}, expected bool or a dtype of 32 bits.")
        return Packing(structure, tuple(leaf.shape for leaf in leaves), dtypes)

    def pack(self, tree: Any) -> UInt32[Array, " N"]:
        """The vector of a tree; traceable."""
        return jnp.concatenate([_as_words(leaf).ravel() for leaf in self.tree.flatten_up_to(tree)])

    def unpack(self, vector: Any) -> Any:
        """The tree of a vector, NumPy's or a traced one."""
        leaves, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + int(np.prod(shape))
            words = vector[start:stop].reshape(shape)
            leaves.append(words.astype(np.bool_) if dtype == np.bool_ else words.view(dtype))
            start = stop
        return jax.tree.unflatten(self.tree, leaves)


def _as_words(leaf: Array) -> UInt32[Array, " ..."]:
    return leaf.astype(jnp.uint32) if leaf.dtype == jnp.bool_ else leaf.view(jnp.uint32)
