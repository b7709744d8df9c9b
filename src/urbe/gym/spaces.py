"""The spaces of an environment: observations as rows of numbers, and numbers of actions as actions.

They are saved with an agent, so that it can predict without its environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces as kinds
from jaxtyping import Float

from urbe import checks
from urbe.gym.rows import Observations

Space = gymnasium.Space[Any]


class _Leaf(NamedTuple):
    """A space without subspaces, the value observed in it, and its name."""

    name: str
    space: Space
    found: np.ndarray


@dataclass(frozen=True)
class Spaces:
    """The observation space and the actions of an environment.

    Args:
      observation: the space of one observation.
      n_actions: number of actions.
      start: number of the first action.

    >>> stairs = Spaces(kinds.Discrete(3), n_actions=2, start=5)
    >>> stairs.rows(1)
    (array([[0., 1., 0.]], dtype=float32), True)
    >>> stairs.actions(np.array([1]), single=True)
    6
    """

    observation: Space
    n_actions: int
    start: int = 0

    @staticmethod
    def flat(size: int, n_actions: int) -> Spaces:
        """The spaces of a simulator: observations are `(size,)` numbers, and actions are numbered from 0."""
        return Spaces(_box((size,), "float32"), n_actions)

    def rows(self, observation: Any) -> tuple[Float[np.ndarray, "B D"], bool]:
        """One observation, or a batch of B, as network input; and whether it is a single one.

        Raises:
          ValueError: it does not belong to the space; the message says where.
        """
        leaves = list(_leaves("observation", self.observation, observation))
        single = leaves[0].found.shape == (leaves[0].space.shape or ())
        count = 1 if single else leaves[0].found.shape[0] if leaves[0].found.ndim else 0
        for leaf in leaves:
            _require(leaf, None if single else count)
        seen = Observations(self.observation)
        return (seen.row(observation)[None] if single else seen.rows(observation, count)), single

    def actions(self, numbers: np.ndarray, single: bool) -> Any:
        """Actions for the environment: an int for one observation, int64 `(B,)` for B of them."""
        actions = np.asarray(numbers, np.int64) + self.start
        return int(actions[0]) if single else actions

    def describe(self) -> dict[str, Any]:
        """Describes the spaces as plain data, for `of`."""
        return {"observation": _described(self.observation), "n_actions": self.n_actions, "start": self.start}

    @staticmethod
    def of(description: Mapping[str, Any]) -> Spaces:
        """Restores the result of `describe`.

        Raises:
          ValueError: it is not a description of spaces.
        """
        try:
            space = _built(description["observation"])
            start, n_actions = int(description["start"]), checks.whole_number("n_actions", description["n_actions"], 1)
        except (KeyError, TypeError, AttributeError, AssertionError, OverflowError) as error:
            raise ValueError(f"spaces cannot be read ({type(error).__name__}: {error}).") from None
        return Spaces(space, n_actions, start)


def _leaves(name: str, space: Space, found: Any) -> Iterator[_Leaf]:
    """Yields the parts of an observation without further parts."""
    if isinstance(space, kinds.Dict):
        if not isinstance(found, Mapping) or set(found) != set(space.spaces):
            problem = f"has the keys {sorted(map(str, found))}" if isinstance(found, Mapping) else f"is {found!r:.100}"
            raise ValueError(f"{name} {problem}, expected a mapping with the keys {sorted(map(str, space.spaces))}.")
        for key, inner in space.spaces.items():
            yield from _leaves(f"{name}[{key!r}]", inner, found[key])
    elif isinstance(space, kinds.Tuple):
        if not isinstance(found, (tuple, list)) or len(found) != len(space.spaces):
            raise ValueError(f"{name} is {found!r:.100}, expected a tuple of {len(space.spaces)}, as {space} gives.")
        for i, inner in enumerate(space.spaces):
            yield from _leaves(f"{name}[{i}]", inner, found[i])
    else:
        try:
            array = np.asarray(found)
        except ValueError as error:
            raise ValueError(f"{name} is not an array ({error}), expected an element of {_text(space)}.") from None
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} has type {array.dtype}, expected numbers, as {_text(space)} gives.")
        yield _Leaf(name, space, array)


def _require(leaf: _Leaf, count: int | None) -> None:
    """Raises unless a part belongs to its space, or consists of `count` such values."""
    name, space, found = leaf
    one = space.shape or ()
    if found.shape != (one if count is None else (count, *one)):
        batch = f"(B, {', '.join(map(str, one))})" if one else "(B,)"
        raise ValueError(
            f"{name} has shape {found.shape}, expected {one} as {_text(space)} gives, or {batch} for B observations."
        )
    whole = np.dtype(space.dtype).kind in "biu"
    bad = ~(np.abs(found) <= np.finfo(np.float32).max) if not whole else found != np.floor(found)
    expected = "a finite number of single precision" if not whole else f"a whole number, as {_text(space)} gives"
    if isinstance(space, (kinds.Discrete, kinds.MultiDiscrete)):
        low, size = np.asarray(space.start), np.asarray(space.n if isinstance(space, kinds.Discrete) else space.nvec)
        bad = bad | (found < low) | (found >= low + size)
        expected = f"one of {_text(space)}"
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        at = checks.index_text(name, np.array(where)) if where else name
        raise ValueError(f"{at} is {found[where]}, expected {expected}.")


def _text(space: Space) -> str:
    """Describes a space, without the bounds of every number."""
    return f"Box({space.shape}, {space.dtype})" if isinstance(space, kinds.Box) else str(space)


def _described(space: Space) -> dict[str, Any]:
    if isinstance(space, kinds.Dict):
        return {"kind": "Dict", "spaces": [[str(key), _described(inner)] for key, inner in space.spaces.items()]}
    if isinstance(space, kinds.Tuple):
        return {"kind": "Tuple", "spaces": [_described(inner) for inner in space.spaces]}
    if isinstance(space, kinds.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, kinds.MultiDiscrete):
        return {"kind": "MultiDiscrete", "n": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, kinds.MultiBinary):
        return {"kind": "MultiBinary", "shape": list(space.shape)}
    return {"kind": "Box", "shape": list(space.shape or ()), "dtype": str(space.dtype)}


def _built(description: Mapping[str, Any]) -> Space:
    kind = description["kind"]
    if kind == "Dict":
        return kinds.Dict([(key, _built(inner)) for key, inner in description["spaces"]])
    if kind == "Tuple":
        return kinds.Tuple([_built(inner) for inner in description["spaces"]])
    if kind == "Discrete":
        return kinds.Discrete(description["n"], start=description["start"])
    if kind == "MultiDiscrete":
        return kinds.MultiDiscrete(description["n"], start=description["start"])
    if kind == "MultiBinary":
        return kinds.MultiBinary(description["shape"])
    if kind == "Box":
        return _box(tuple(description["shape"]), description["dtype"])
    raise ValueError(f"the space is of the kind {kind!r:.100}, which is unknown; read it with a newer urbe.")


def _box(shape: tuple[int, ...], dtype: str) -> kinds.Box:
    """A box of which only shape and type matter."""
    number: Any = np.dtype(dtype)
    low, high = (np.iinfo(number).min, np.iinfo(number).max) if number.kind in "iu" else (-np.inf, np.inf)
    return kinds.Box(low, high, shape, number.type)
