"""Convert nested containers of arrays to one flat dict of named arrays, and back.

    {"net": (w, b), "step": 3}   <->   {"net/0": w, "net/1": b, "step": 3}

Names consist of the keys of dicts, the fields of named tuples, and the indices of tuples and lists; None and empty
containers are skipped. Anything else is an array: whatever `numpy.asarray` accepts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from urbe import checks
from urbe.runs.errors import CheckpointError


@runtime_checkable
class Shaped(Protocol):
    """An array, or the description of one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of nested dicts, tuples, lists and named tuples, by path.

    Arrays are copied only if `numpy.asarray` copies them.

    >>> flatten({"net": (np.zeros(2), [np.ones(1)]), "none": None})
    {'net/0': array([0., 0.]), 'net/1/0': array([1.])}
    """
    return {name: _array(name, leaf) for name, leaf in _leaves(tree).items()}


def unflatten(tensors: Mapping[str, np.ndarray], like: Any, source: str | os.PathLike[str] = "tensors") -> Any:
    """Puts named arrays in the places of `like`.

    Args:
      tensors: the result of `flatten`, in any order.
      like: a tree of the same structure; only types and shapes of its arrays are used.
      source: the origin of the arrays, for messages.

    Returns:
      a tree like `like`, with NumPy arrays, and plain Python numbers where `like` has those.

    Raises:
      CheckpointError: an array is missing, left over, or of another type or shape.
    """
    leaves = _leaves(like)
    lost, extra = [name for name in leaves if name not in tensors], [name for name in tensors if name not in leaves]
    if lost or extra:
        problems = [f"lacks {checks.listing([repr(name) for name in lost])}"] if lost else []
        problems += [f"has the unexpected {checks.listing([repr(name) for name in extra])}"] if extra else []
        raise CheckpointError(source, f"{' and '.join(problems)}; expected the {len(leaves)} arrays of that structure.")
    for name, leaf in leaves.items():
        found, expected = _kind(tensors[name]), _kind(_shaped(name, leaf))
        if found != expected:
            raise CheckpointError(source, f"holds {name!r} as {found}, expected {expected}.")
    return _rebuild("", like, lambda name, leaf: _restored(tensors[name], leaf))


class _Children(NamedTuple):
    names: list[str]
    values: list[Any]
    make: Callable[[list[Any]], Any]


def _children(path: str, node: Any) -> _Children | None:
    """The parts of a container and how to build it from others; None when `node` is an array."""
    if node is None:
        return _Children([], [], lambda _: None)
    if isinstance(node, Mapping):
        for key in node:
            if type(key) is not str or not key or "/" in key:
                raise TypeError(f"{path or 'tree'} has the key {key!r}, expected a text, not empty and without '/'.")
        return _Children(list(node), list(node.values()), lambda values: dict(zip(node, values, strict=True)))
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return _Children(list(node._fields), list(node), type(node)._make)  # type: ignore[attr-defined]
    if isinstance(node, (tuple, list)):
        return _Children(list(map(str, range(len(node)))), list(node), type(node))
    return None


def _leaves(tree: Any) -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    if _children("", tree) is None:
        raise TypeError(f"tree is of type {type(tree).__name__}, expected a dict, a tuple or a list of arrays.")
    _rebuild("", tree, lambda name, leaf: leaves.setdefault(name, leaf))
    return leaves


def _rebuild(path: str, node: Any, leaf: Callable[[str, Any], Any]) -> Any:
    """The same tree with `leaf(path, array)` in place of each array."""
    parts = _children(path, node)
    if parts is None:
        return leaf(path, node)
    named = zip(parts.names, parts.values, strict=True)
    return parts.make([_rebuild(f"{path}/{name}" if path else name, value, leaf) for name, value in named])


def _array(name: str, leaf: Any) -> np.ndarray:
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is of type {type(leaf).__name__}, expected an array: {error}") from None
    if array.dtype.hasobject:
        raise TypeError(f"{name} is of type {type(leaf).__name__}, expected an array of numbers.")
    return array


def _shaped(name: str, leaf: Any) -> Shaped:
    return leaf if isinstance(leaf, Shaped) else _array(name, leaf)


def _kind(array: Shaped) -> str:
    return f"{array.dtype} of shape {tuple(array.shape)}"


def _restored(array: np.ndarray, leaf: Any) -> Any:
    return array.item() if type(leaf) in (bool, int, float) else array
