"""Uncertainty sets: finitely many parameters of one simulator, all run in parallel by `jax.vmap`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from urbe import checks
from urbe.rng import stream
from urbe.simulators.base import Params, Simulator
from urbe.simulators.distributions import Distribution
from urbe.simulators.limits import Checked, param_dict, with_params

SHOWN = 20
"""At most this many members are printed."""

ROUNDING = 1e-5
"""Tolerance for sums of probabilities: float32, some outcomes."""


@dataclass(frozen=True, eq=False, repr=False)
class UncertaintySet:
    """K possible parameters of a simulator; a robust agent plans for the worst of them.

    Build one with `grid`, `samples`, `single` or `from_description`, which check names and ranges. With the nominal
    parameters among the members, worst cases are never better than the nominal case.

    Args:
      params: the simulator's NamedTuple with a `(K,)` float32 array in each place.
      nominal: index of the nominal parameters, or None if they are not a member.

    >>> from urbe.simulators import CartPole
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 0.5, 1.0), masspole=(0.1, 0.3))
    >>> print(poles)
    6 members of CartPoleParams; the nominal one is member 0.
     member  half_length  masspole
          0          0.5       0.1  nominal
          1         0.25       0.1
          2         0.25       0.3
          3          0.5       0.3
          4          1.0       0.1
          5          1.0       0.3
    All have masscart 1.0, gravity 9.8, force 10.0.
    """

    params: Params
    nominal: int | None

    def __post_init__(self) -> None:
        fits = hasattr(self.params, "_asdict")
        checks.kind("params", self.params, fits, "parameters of a simulator with one number per member; see grid")
        shapes = {np.shape(leaf) for leaf in self.params}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1 or not np.size(self.params[0]):
            text = ", ".join(f"{name} {np.shape(leaf)}" for name, leaf in self.params._asdict().items())
            raise ValueError(
                f"params has the shapes {text}, expected (K,) for all with one K of at least 1: one number per member."
            )
        for name, leaf in self.params._asdict().items():
            if leaf.dtype != jnp.float32:
                raise ValueError(f"params.{name} is of type {leaf.dtype}, expected float32.")
        if self.nominal is not None and not 0 <= self.nominal < len(self):
            raise ValueError(f"nominal is {self.nominal}, expected a member below {len(self)}, or None.")

    @staticmethod
    def grid(simulator: Simulator, *, include_nominal: bool = True, **values: Sequence[float]) -> UncertaintySet:
        """Makes a set of all combinations of the given values; other parameters are nominal.

        Args:
          simulator: the simulator with these parameters.
          include_nominal: whether the nominal parameters are the first member; they are not repeated later.
          values: for each parameter that varies, by name, its values. The last name varies fastest.
        """
        lists = {name: checks.float_array(name, each) for name, each in _some(values).items()}
        for name, each in lists.items():
            if each.ndim != 1 or not each.size:
                raise ValueError(f"{name} has shape {each.shape}, expected one or more values, such as (0.5, 0.75).")
        points = [
            dict(zip(lists, point, strict=True)) for point in product(*(each.tolist() for each in lists.values()))
        ]
        return _build(simulator, points, include_nominal)

    @staticmethod
    def samples(
        simulator: Simulator,
        seed: int,
        *,
        count: int = 15,
        include_nominal: bool = True,
        **distributions: Distribution,
    ) -> UncertaintySet:
        """Makes a set of independent draws; parameters without a distribution are nominal.

        Args:
          simulator: the simulator with these parameters.
          seed: seed of the draws, a whole number of at least 0. A parameter's draws depend only on its name: varying
            other parameters, or drawing more, does not change them.
          count: number of draws, in addition to the nominal parameters.
          include_nominal: whether the nominal parameters are a member, the first.
          distributions: the distribution of each parameter that varies, by name: `Uniform`, `Normal`, `LogUniform`.

        >>> from urbe.simulators import CartPole, Normal
        >>> len(UncertaintySet.samples(CartPole(), seed=0, half_length=Normal(0.75, 0.25, low=0.1)))
        16
        """
        return _build(simulator, drawn_points(distributions, seed, count), include_nominal)

    @staticmethod
    def single(simulator: Simulator) -> UncertaintySet:
        """Only the nominal parameters: no uncertainty."""
        return _build(simulator, [], True)

    @staticmethod
    def from_description(simulator: Simulator, description: Mapping[str, Any]) -> UncertaintySet:
        """Restores the result of `describe` bit for bit; raises ValueError if it does not fit the simulator.

        Args:
          simulator: the simulator with these parameters; its nominal parameters may have changed since.
          description: {"parameters": {name: [value of each member]}, "nominal": index or None}.
        """
        if set(description) != {"parameters", "nominal"}:
            raise ValueError(f"description has the keys {sorted(description)}, expected 'nominal' and 'parameters'.")
        columns, names = description["parameters"], simulator.nominal()._fields
        if not isinstance(columns, Mapping) or set(columns) != set(names):
            raise ValueError(f"description has the parameters {list(columns)}, expected {', '.join(names)}.")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                f"description has {sorted(lengths)} values, expected as many for each parameter, at least 1."
            )
        points = [dict(zip(columns, point, strict=True)) for point in zip(*columns.values(), strict=True)]
        return UncertaintySet(_build(simulator, points, False).params, description["nominal"])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(self.params._fields)

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the parameters that differ between members."""
        return tuple(name for name, leaf in self.params._asdict().items() if len(np.unique(leaf)) > 1)

    def members(self) -> tuple[Params, ...]:
        """The parameters of each member, float32 numbers."""
        leaves = [np.asarray(leaf) for leaf in self.params]
        return tuple(type(self.params)(*point) for point in zip(*leaves, strict=True))

    def only(self, places: Sequence[int]) -> UncertaintySet:
        """Selects some members, in the given order."""
        chosen = jnp.asarray(places, jnp.int32)
        nominal = places.index(self.nominal) if self.nominal in places else None
        return UncertaintySet(jax.tree.map(lambda leaf: leaf[chosen], self.params), nominal)

    def describe(self) -> dict[str, Any]:
        """Describes the set as plain data for JSON, with the shortest decimals of the float32 numbers."""
        members = [param_dict(member) for member in self.members()]
        return {"parameters": {name: [each[name] for each in members] for name in self.names}, "nominal": self.nominal}

    def __len__(self) -> int:
        return int(np.size(self.params[0]))

    def __repr__(self) -> str:
        column = self.describe()["parameters"]
        text = ", ".join(f"{name} {min(column[name])} to {max(column[name])}" for name in self.varied)
        return f"UncertaintySet({_members(len(self))}{': ' if text else ''}{text})"

    def __str__(self) -> str:
        nominal = "none is nominal" if self.nominal is None else f"the nominal one is member {self.nominal}"
        lines = [f"{_members(len(self))} of {type(self.params).__name__}; {nominal}."]
        members, varied = [param_dict(member) for member in self.members()], self.varied
        if varied:
            lines.append(f"{'member':>7}" + "".join(f"{name:>{max(len(name), 8) + 2}}" for name in varied))
            for k, each in enumerate(members[:SHOWN]):
                row = "".join(f"{each[name]:>{max(len(name), 8) + 2}}" for name in varied)
                lines.append(f"{k:>7}{row}" + ("  nominal" if k == self.nominal else ""))
            if len(members) > SHOWN:
                lines.append(f"    ... {len(members) - SHOWN} more members")
        same = ", ".join(f"{name} {value}" for name, value in members[0].items() if name not in varied)
        return "\n".join(lines + ([f"All have {same}."] if same else []))


def _members(count: int) -> str:
    return f"{count} member{'s' if count != 1 else ''}"


def drawn_points(distributions: Mapping[str, Distribution], seed: int, count: int) -> list[dict[str, float]]:
    """Parameters by name for each of `count` independent draws, as `UncertaintySet.samples` makes them."""
    checks.whole_number("count", count, 1)
    draws = {name: _draws(name, law, seed, count) for name, law in _some(dict(distributions)).items()}
    return [{name: float(draw[k]) for name, draw in draws.items()} for k in range(count)]


def _some(named: dict[str, Any]) -> dict[str, Any]:
    if not named:
        raise ValueError("No parameter varies, expected at least one by name; for no uncertainty use single().")
    return named


def _draws(name: str, law: Distribution, seed: int, count: int) -> Float[np.ndarray, " K"]:
    if not isinstance(law, Distribution):
        raise ValueError(f"{name} is {law!r}, expected a distribution such as Uniform(low, high); for a list use grid.")
    words = stream(seed, "uncertainty set", name).integers(2**32, size=2, dtype=np.uint32)
    key = jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")
    # one key per draw, so that a longer set begins like a shorter one
    drawn = jax.vmap(lambda k: law.sample(jax.random.fold_in(key, k)))(jnp.arange(count, dtype=jnp.uint32))
    return np.asarray(drawn)


def _build(simulator: Simulator, points: list[dict[str, float]], include_nominal: bool) -> UncertaintySet:
    """Makes a set from differences to the nominal parameters, checked by the simulator."""
    checks.kind("simulator", simulator, isinstance(simulator, Simulator), "a simulator such as CartPole()")
    nominal = jax.device_get(simulator.nominal())
    nominal_params = param_dict(nominal)
    members, place = ([nominal_params], 0) if include_nominal else ([], None)
    for k, point in enumerate(points):
        try:
            member = param_dict(with_params(simulator, nominal, point))
        except ValueError as error:
            raise ValueError(f"Parameters {k}: {error}") from None
        if member != nominal_params:
            members.append(member)
        elif not include_nominal:
            place = len(members) if place is None else place
            members.append(member)
    columns = ([np.float32(member[name]) for member in members] for name in nominal_params)
    made = UncertaintySet(type(nominal)(*(jnp.asarray(np.array(column)) for column in columns)), place)
    if not isinstance(simulator, Checked):
        _require_distributions(simulator, made)
    return made


def _require_distributions(simulator: Simulator, made: UncertaintySet) -> None:
    """Raises unless the outcomes in a first state have probabilities under every member."""

    def at_first(params: Params) -> Float[Array, "A J"]:
        state = simulator.start(jax.random.key(0), params)
        actions = jnp.arange(simulator.n_actions, dtype=jnp.int32)
        return jax.vmap(lambda action: simulator.outcomes(state, action, params).probability)(actions)

    if jax.eval_shape(jax.vmap(at_first), made.params).shape[-1] == 1:
        return  # certain outcomes
    found = np.asarray(jax.jit(jax.vmap(at_first))(made.params))
    wrong = ~((found >= 0.0).all(axis=-1) & (np.abs(found.sum(axis=-1) - 1.0) <= ROUNDING))
    if wrong.any():
        k, action = np.argwhere(wrong)[0].tolist()
        params = checks.listing([f"{name} {value}" for name, value in param_dict(made.members()[k]).items()], 20)
        raise ValueError(
            f"Member {k} ({params}) has outcomes of action {action} with the probabilities "
            f"{checks.listing(found[k, action].tolist())}, expected a distribution. Give parameters in their range; "
            f"{type(simulator).__name__} can check it by a method check_params(params)."
        )
