"""The settings of an agent.

Nature, variance, network, optimiser and acting rule are extensible: any frozen dataclass with the methods of the
protocol fits, from any module. Files and the command line name classes outside of urbe as `module:attribute`.
"""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from typing import Any

from urbe import checks
from urbe.deep.adaptive.rules import BeliefRule
from urbe.deep.core.natures import MemberNature as MemberNature
from urbe.deep.core.networks import Network as Network
from urbe.deep.core.networks import QNetwork as QNetwork
from urbe.deep.core.optimisers import Adam as Adam
from urbe.deep.core.optimisers import Optimiser as Optimiser
from urbe.deep.core.optimisers import Transformation as Transformation
from urbe.deep.core.schedules import CopyEvery as CopyEvery
from urbe.deep.core.schedules import Decay as Decay
from urbe.deep.core.schedules import Epsilon as Epsilon
from urbe.deep.core.settings import Settings as Settings
from urbe.deep.core.variances import Variance as Variance

PARTS: dict[str, type[Any]] = {
    "nature": MemberNature,
    "variance": Variance,
    "network": QNetwork,
    "optimiser": Optimiser,
    "rule": BeliefRule,
}
"""The extensible parts of agents, with their protocols; natures over a belief have the methods of other natures."""


def part_name(kind: type[Any]) -> str | None:
    """`module:attribute` of a class whose instances may be a part; None if a file cannot name it."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    return name if _is_part(kind) and _imported(name) is kind else None


def named_part(field: str, name: str) -> type[Any]:
    """Finds the class `module:attribute` in a module that is already imported, since files import nothing.

    Raises:
      ValueError: there is no such class, or it is not a part of settings.
    """
    module = name.partition(":")[0]
    if module not in sys.modules:
        raise ValueError(
            f"{field} is {name}, but the module {module} is not imported, and a file imports nothing by itself. "
            f"Import {module} before loading, or give settings=."
        )
    found = _imported(name)
    if not isinstance(found, type) or not _is_part(found):
        listed = "; ".join(f"{part}: {', '.join(_methods(protocol))}" for part, protocol in PARTS.items())
        raise ValueError(
            f"{field} is {name}, which is {checks.shown(found)}, expected a dataclass with the methods of a part "
            f"({listed})."
        )
    return found


def _imported(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for attribute in path.split("."):
        found = getattr(found, attribute, None)
    return found


def _is_part(kind: type[Any]) -> bool:
    return is_dataclass(kind) and any(
        all(callable(getattr(kind, name, None)) for name in _methods(protocol)) for protocol in PARTS.values()
    )


def _methods(protocol: type[Any]) -> list[str]:
    return [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]
