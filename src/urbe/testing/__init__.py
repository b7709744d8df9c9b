"""Contracts that extensions can be held to.

`check_ambiguity_set` asks of a set all that solvers and certificates rely on, `check_agent` of an agent all that runs
and saved files do, `check_simulator` of a simulator all that deep agents and environments do, `check_nature`,
`check_variance`, `check_network` and `check_optimiser` of a part of a deep agent all that its learner does. They raise
AssertionError with the law that is broken, the model and the numbers; they say nothing when all laws hold.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urbe.simulators.uncertainty_check import check_uncertainty_set as check_uncertainty_set
    from urbe.testing.agent_probes import Probe as Probe
    from urbe.testing.agent_probes import probes as probes
    from urbe.testing.agents import check_agent as check_agent
    from urbe.testing.deep_parts import check_nature as check_nature
    from urbe.testing.deep_parts import check_network as check_network
    from urbe.testing.deep_parts import check_optimiser as check_optimiser
    from urbe.testing.deep_parts import check_variance as check_variance
    from urbe.testing.sets import check_ambiguity_set as check_ambiguity_set
    from urbe.testing.sets import small_models as small_models
    from urbe.testing.simulators import check_simulator as check_simulator

_HOME = {
    "Probe": "urbe.testing.agent_probes",
    "check_agent": "urbe.testing.agents",
    "check_ambiguity_set": "urbe.testing.sets",
    "check_nature": "urbe.testing.deep_parts",
    "check_network": "urbe.testing.deep_parts",
    "check_optimiser": "urbe.testing.deep_parts",
    "check_simulator": "urbe.testing.simulators",
    "check_uncertainty_set": "urbe.simulators.uncertainty_check",
    "check_variance": "urbe.testing.deep_parts",
    "probes": "urbe.testing.agent_probes",
    "small_models": "urbe.testing.sets",
}


def __getattr__(name: str) -> Any:
    """Imports a contract when it is first asked for: one of sets needs no agents, and JAX is for simulators alone."""
    if name in _HOME:
        found = globals()[name] = getattr(import_module(_HOME[name]), name)
        return found
    raise AttributeError(f"module 'urbe.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
