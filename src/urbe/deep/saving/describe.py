"""Describe settings, simulators, sets and schedules as plain JSON data, and build them again.

Only kinds listed in `KNOWN` are built from a file, and parts of settings from other modules that are already imported;
each from its own fields. No name in a file is imported and no code in it is executed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from urbe import simulators
from urbe.belief.state import Watch
from urbe.belief.switching import Switching
from urbe.deep.actor_critic.settings import ActorCriticSettings
from urbe.deep.adaptive import natures as belief_natures
from urbe.deep.adaptive import rules
from urbe.deep.adaptive.settings import AdaptiveSettings
from urbe.deep.core import (
    dueling,
    kalman,
    last_layer,
    minimum,
    natures,
    networks,
    optimisers,
    recurrent,
    settings,
    variances,
)
from urbe.deep.loops import ewok, iwocs
from urbe.deep.loops import recurrent as recurrent_loop
from urbe.deep.settings import named_part, part_name
from urbe.simulators import mars_rover, schedules

_CLASSES = (
    natures.Average,
    natures.Worst,
    natures.Soft,
    natures.CVaR,
    variances.NoVariance,
    last_layer.LastLayer,
    networks.Network,
    dueling.DuelingNetwork,
    minimum.Minimum,
    settings.Epsilon,
    settings.CopyEvery,
    optimisers.Adam,
    kalman.KalmanLastLayer,
    settings.Decay,
    settings.Settings,
    belief_natures.BeliefMean,
    belief_natures.BeliefCVaR,
    belief_natures.EpisodeCVaR,
    belief_natures.CredibleWorst,
    rules.OnBelief,
    rules.Thompson,
    rules.OnMembers,
    AdaptiveSettings,
    ActorCriticSettings,
    Switching,
    Watch,
    recurrent.Memory,
    recurrent_loop.RecurrentTraining,
    ewok.WorstKernel,
    iwocs.WorstCaseSearch,
    simulators.Acrobot,
    simulators.AcrobotParams,
    simulators.CartPole,
    simulators.CartPoleParams,
    simulators.DeepSea,
    simulators.DeepSeaParams,
    simulators.MarsRover,
    simulators.MarsRoverParams,
    simulators.MountainCar,
    simulators.MountainCarParams,
    simulators.SevenStates,
    simulators.SevenStatesParams,
    simulators.Constant,
    simulators.StepChange,
    simulators.Drift,
    simulators.Cyclic,
    simulators.Sawtooth,
    simulators.RandomWalk,
    simulators.DomainRandomisation,
    simulators.RandomMember,
    simulators.Stacked,
    simulators.RandomJumps,
    simulators.Uniform,
    simulators.Normal,
    simulators.LogUniform,
)
_FUNCTIONS = (
    mars_rover.any_approach,
    mars_rover.vertical_approach,
    mars_rover.horizontal_approach,
    mars_rover.diagonal_approach,
    mars_rover.xy,
    mars_rover.one_hot,
    schedules.reflect,
    jnp.clip,
)
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # JSON has no others
KNOWN: Mapping[str, Any] = MappingProxyType({known.__name__: known for known in (*_CLASSES, *_FUNCTIONS)})
"""All kinds that a file may name."""


class Unknown(ValueError):
    """A value cannot be described: its kind is not listed in `KNOWN`."""


def describe(name: str, value: Any) -> Any:
    """Describes `value` by dicts, lists, numbers, strings and None.

    Raises:
      Unknown: a part of it is of a user-defined kind.

    >>> describe("copy", settings.CopyEvery(episodes=10))
    {'kind': 'CopyEvery', 'episodes': 10, 'updates': None, 'tau': 1.0}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"number": repr(float(value))}
    if hasattr(value, "dtype") and np.ndim(value) == 0:
        return describe(name, float(str(np.float32(value))) if value.dtype == np.float32 else value.item())
    if _is_named_tuple(value):
        return _known(name, type(value)) | {
            field: describe(f"{name}.{field}", item) for field, item in zip(value._fields, value, strict=True)
        }
    if isinstance(value, (tuple, list)):
        return [describe(f"{name}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {"kind": "Mapping", "items": {key: describe(f"{name}[{key!r}]", item) for key, item in value.items()}}
    if is_dataclass(value) and not isinstance(value, type):
        return _known(name, type(value)) | {
            field.name: describe(f"{name}.{field.name}", getattr(value, field.name)) for field in fields(value)
        }
    if callable(value):
        return {"function": _known(name, value)["kind"]}
    raise Unknown(f"{name} is {value!r}, which cannot be described in a file.")


def describe_or_why(name: str, value: Any) -> Any:
    """The description, or `{"why": ...}` if there is none: the value must then be given again when loading."""
    try:
        return describe(name, value)
    except Unknown as error:
        return {"why": str(error)}


def describe_world(world: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a trainer's environment, with its simulator, schedule and training as plain data."""
    values = ("simulator", "schedule", "training")
    return {name: describe_or_why(name, part) if name in values else part for name, part in world.items()}


def build(name: str, data: Any) -> Any:
    """Builds the value from the result of `describe`.

    Raises:
      ValueError: a kind is unknown, or its fields are wrong.
    """
    if isinstance(data, list):
        return tuple(build(f"{name}[{i}]", item) for i, item in enumerate(data))
    if not isinstance(data, dict):
        return data
    if "function" in data:
        return _lookup(name, data["function"], _FUNCTIONS)
    if "number" in data:
        return _number(name, data["number"])
    if data.get("kind") == "Mapping":
        return {key: build(f"{name}[{key!r}]", item) for key, item in _items(name, data).items()}
    kind = _lookup(name, data.get("kind"), _CLASSES)
    given = {key: build(f"{name}.{key}", item) for key, item in data.items() if key != "kind"}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(
            f"{name} has the fields {sorted(given)}, which are not those of {kind.__name__}: {error}"
        ) from None


def _number(name: str, text: object) -> float:
    if not isinstance(text, str) or text not in _NUMBERS:
        raise ValueError(f"{name} is the number {text!r}, expected one of {', '.join(_NUMBERS)}.")
    return _NUMBERS[text]


def _items(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    items = data.get("items")
    if not isinstance(items, dict):
        raise ValueError(f"{name} has the items {items!r}, expected values by name.")
    return items


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _known(name: str, kind: Any) -> dict[str, Any]:
    kind_name = getattr(kind, "__name__", repr(kind))
    if KNOWN.get(kind_name) is kind:
        return {"kind": kind_name}
    part = part_name(kind) if isinstance(kind, type) else None
    if part is None:
        raise Unknown(
            f"{name} is of the kind {kind_name}, which is not one of urbe's own and cannot be described in a file; "
            "give it again when loading."
        )
    return {"kind": part}


def _lookup(name: str, kind_name: object, among: tuple[Any, ...]) -> Any:
    if isinstance(kind_name, str) and ":" in kind_name and among is _CLASSES:
        return named_part(name, kind_name)
    for known in among:
        if known.__name__ == kind_name:
            return known
    raise ValueError(f"{name} is of the kind {kind_name!r}, which is not known here; read it with a newer urbe.")
