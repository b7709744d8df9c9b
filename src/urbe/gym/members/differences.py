"""Find the first difference of two states."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import jax
import numpy as np

_NUMBERS = (bool, int, float, str, np.generic, np.ndarray, jax.Array)


def first_difference(a: Any, b: Any, path: str = "") -> str:
    """Describes the first difference of two nested containers, as `['x'][3] is 0.1 and 0.2`; empty if they are equal.

    Generators are compared by their states. Other objects are not compared.

    >>> first_difference({"x": [1, 2]}, {"x": [1, 3]})
    "['x'][1] is 2 and 3"
    """
    if isinstance(a, np.random.Generator) and isinstance(b, np.random.Generator):
        a, b = a.bit_generator.state, b.bit_generator.state
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        pairs = [(f"[{key!r}]", a.get(key), b.get(key)) for key in {**a, **b}]
    elif isinstance(a, (list, tuple, deque)) and isinstance(b, (list, tuple, deque)):
        pairs = [(f"[{i}]", x, y) for i, (x, y) in enumerate(zip_longest(a, b))]
    else:
        return _leaf_difference(a, b, path)
    return next((found for at, x, y in pairs if (found := first_difference(x, y, path + at))), "")


def _leaf_difference(a: Any, b: Any, path: str) -> str:
    if (a is None) != (b is None):
        return f"{path} is {a} and {b}"
    if not isinstance(a, _NUMBERS) or not isinstance(b, _NUMBERS):
        return ""
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape:
        return f"{path} has shape {x.shape} and {y.shape}"
    apart = np.atleast_1d((x != y) & ((x == x) | (y == y)))  # NaN equals NaN
    if not apart.any():
        return ""
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    if not x.ndim:
        return f"{path} is {a} and {b}"
    return f"{path}[{', '.join(map(str, at))}] is {x[at]} and {y[at]}"
