"""Convert an uncertainty set of a simulator to members of its environment, or say what to give instead."""

from __future__ import annotations

from urbe import checks
from urbe.gym.adapters import adapter_of, no_members
from urbe.gym.kinds import AnyEnv, innermost
from urbe.gym.members.base import Members, SimulatorMembers
from urbe.gym.rows import host_env
from urbe.gym.simulator_env import SimulatorEnv
from urbe.gym.wrapping import transforming
from urbe.simulators import UncertaintySet


def fitting_members(env: AnyEnv, uncertain: UncertaintySet | Members) -> Members:
    """Returns given members, or those of a set for an environment that wraps a simulator of urbe.

    Raises:
      ValueError: a set is given for another environment, or for one with wrappers that the simulator lacks.
    """
    if not isinstance(uncertain, UncertaintySet):
        example = "members of the environment, such as EnvMembers.grid(env, name=values)"
        checks.kind("uncertainty_set", uncertain, hasattr(uncertain, "successors"), example)
        return uncertain
    behind = host_env(env).behind() or []
    inner = [innermost(each) for each in behind]
    if not inner or not all(isinstance(each, SimulatorEnv) for each in inner):
        raise ValueError(
            "uncertainty_set is an UncertaintySet, which holds parameters of a simulator of urbe, expected members of "
            f"this environment. {what_to_give(env)}"
        )
    for each in behind:
        if wrapper := transforming(each):
            raise ValueError(
                f"env has the wrapper {wrapper}, which the simulator behind it lacks; give "
                "EnvMembers.grid(env, ...), copies of the environment with its wrappers, as uncertainty_set."
            )
    return SimulatorMembers(inner[0].simulator, uncertain)


def what_to_give(env: AnyEnv) -> str:
    """Says what to give a robust agent on an environment."""
    behind = host_env(env).behind()
    adapter = None if behind is None else adapter_of(behind[0])
    if behind is None or adapter is None:
        return no_members(env)
    names = ", ".join(list(adapter.get_params(behind[0]))[:6])
    return f"Give EnvMembers.grid(env, name=values, ...) with some of its parameters: {names}."
