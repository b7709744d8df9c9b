"""Parameters to evaluate a policy under: sets, products of values, or lists of parameters, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from urbe import checks
from urbe.simulators import Simulator, UncertaintySet
from urbe.simulators.limits import param_dict, with_params

Point = dict[str, float]
"""Parameters by name."""

Grid = UncertaintySet | Mapping[str, Sequence[float]] | Sequence[Any]


class Points(NamedTuple):
    """P sets of parameters, in the order given.

    Attributes:
      points: the parameters of each by name; every point has the same names.
      varied: names of the parameters that vary, the columns of tables.
    """

    points: tuple[Point, ...]
    varied: tuple[str, ...]

    @property
    def fixed(self) -> Point:
        """The parameters that are the same at all points, by name."""
        return {name: value for name, value in self.points[0].items() if name not in self.varied}


def points_of(grid: Grid, simulator: Simulator | None, known: Mapping[str, float] | None = None) -> Points:
    """The grid as a table.

    Args:
      grid: an uncertainty set; or values for each parameter by name, in all combinations, the last name varying
        fastest; or a sequence of parameters, each a NamedTuple or a mapping from names to numbers.
      simulator: the simulator; parameters that are not named are nominal. None accepts any names.
      known: without a simulator, the environment's own parameters by name; None if they are unknown.
    """
    named, varied = _named(grid)
    if simulator is not None:
        nominal = jax.device_get(simulator.nominal())
        named = _each(named, lambda point: param_dict(with_params(simulator, nominal, point)))
    elif known is not None:
        named = _each(named, lambda point: {**known, **_among(point, known)})
    names = list(named[0])
    for k, point in enumerate(named):
        if set(point) != set(names):
            raise ValueError(
                f"Parameters {k} have the names {', '.join(point) or 'none'}, expected {', '.join(names) or 'none'}, "
                "as the first."
            )
    if varied is None:
        varied = tuple(name for name in names if len({point[name] for point in named}) > 1)
    return Points(tuple({name: point[name] for name in names} for point in named), varied)


def _named(grid: Grid) -> tuple[list[Point], tuple[str, ...] | None]:
    """The points as given, and the names that vary if the form of the grid determines them."""
    if isinstance(grid, UncertaintySet):
        return [param_dict(member) for member in grid.members()], grid.varied
    if isinstance(grid, Mapping):
        return _product(grid)
    if isinstance(grid, str) or not isinstance(grid, Sequence):
        raise ValueError(
            f"grid is {grid!r}, expected an UncertaintySet, values by name such as {{'half_length': (0.5, 1.0)}}, or a "
            "list of parameters."
        )
    if hasattr(grid, "_fields"):
        raise ValueError(
            f"grid is {grid!r}, one set of parameters, expected a list of them: [{type(grid).__name__}(...)]."
        )
    if not grid:
        raise ValueError("grid is empty, expected at least one set of parameters.")
    return [_point(k, each) for k, each in enumerate(grid)], None


def _product(values: Mapping[str, Sequence[float]]) -> tuple[list[Point], tuple[str, ...]]:
    if not values:
        raise ValueError("grid is empty, expected at least one parameter by name; for the nominal ones give [{}].")
    lists = {name: np.atleast_1d(checks.float_array(name, each)) for name, each in values.items()}
    for name, each in lists.items():
        if each.ndim != 1 or not each.size:
            raise ValueError(f"{name} has shape {each.shape}, expected one or more values, such as (0.5, 0.75).")
    combinations = product(*(each.tolist() for each in lists.values()))
    return [dict(zip(lists, point, strict=True)) for point in combinations], tuple(lists)


def _point(k: int, given: Any) -> Point:
    named = given._asdict() if hasattr(given, "_asdict") else given
    if not isinstance(named, Mapping):
        raise ValueError(
            f"grid[{k}] is {given!r}, expected a NamedTuple of parameters or a mapping from names to numbers."
        )
    return {
        str(name): _decimal(checks.finite_number(f"grid[{k}].{name}", value), value) for name, value in named.items()
    }


def _decimal(number: float, given: Any) -> float:
    """A float32 number as its shortest decimal; other numbers unchanged."""
    return float(str(np.float32(number))) if np.asarray(given).dtype == np.float32 else number


def _among(point: Point, known: Mapping[str, float]) -> Point:
    unknown = [name for name in point if name not in known]
    if unknown:
        raise ValueError(
            f"{checks.listing([repr(name) for name in unknown])} is not among the parameters of the environment, which "
            f"are {checks.listing([*known], 20)}."
        )
    return point


def _each(points: list[Point], complete: Callable[[Point], Point]) -> list[Point]:
    completed = []
    for k, point in enumerate(points):
        try:
            completed.append(complete(point))
        except ValueError as error:
            raise ValueError(f"Parameters {k}: {error}") from None
    return completed
