"""What an agent can be trained on, and which way of training fits it."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.envs.adapters import adapter_of, no_members, wrappers
from urbe.deep.loops.envs.rows import AnyEnv, host_env, innermost
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.deep.loops.members.base import Members, SimulatorMembers
from urbe.deep.loops.trainer import Trainer
from urbe.simulators import ChangingParams, Schedule, Simulator, SimulatorEnv, UncertaintySet

Environment = Simulator | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
Uncertain = UncertaintySet | Members


def make_trainer(
    env: Environment,
    uncertain: Uncertain | None,
    settings: Settings,
    schedule: Schedule | None,
    seed: int,
    record_every: int,
    keep_states: bool = False,
) -> Trainer:
    """The compiled loop for a simulator of ours, the host loop for a Gymnasium environment.

    An environment made from a simulator takes the host loop too: it was given as an environment, and whoever holds it
    may change its parameters meanwhile.

    Raises:
      ValueError: env, uncertainty set and schedule do not fit each other.
    """
    if isinstance(env, (gymnasium.Env, VectorEnv)):
        if schedule is not None:
            raise ValueError(
                "schedule was given with a Gymnasium environment, expected None: its parameters are its own. Wrap it, "
                "urbe.simulators.ChangingParams(env, schedule, seed), or give the simulator in place of env."
            )
        members = None if uncertain is None else _members(env, uncertain)
        return HostTrainer(settings, env, members, seed, record_every)
    if not hasattr(env, "outcomes"):
        raise ValueError(
            f"env is {env!r}, expected a simulator of urbe.simulators or a Gymnasium environment: "
            'gymnasium.make("CartPole-v1").'
        )
    if uncertain is not None and not isinstance(uncertain, UncertaintySet):
        raise ValueError(
            f"uncertainty_set is of type {type(uncertain).__name__}, expected UncertaintySet for the simulator "
            f"{type(env).__name__}; members of other kinds are for Gymnasium environments."
        )
    return CompiledTrainer(settings, env, uncertain, schedule, seed, record_every, keep_states)


def require_set(env: Environment, uncertain: Uncertain | None) -> None:
    """Raises ValueError, saying what to give, when an agent that cannot be without an uncertainty set has none."""
    if uncertain is not None:
        return
    if isinstance(env, (gymnasium.Env, VectorEnv)):
        raise ValueError(f"uncertainty_set is None, expected members. {_what_to_give(env)}")
    raise ValueError("uncertainty_set is None, expected an UncertaintySet: UncertaintySet.grid(simulator, ...).")


def _members(env: AnyEnv, uncertain: Uncertain) -> Members:
    if not isinstance(uncertain, UncertaintySet):
        return uncertain
    behind = host_env(env).behind() or []
    inner = [innermost(each) for each in behind]
    if not inner or not all(isinstance(each, SimulatorEnv) for each in inner):
        raise ValueError(
            "uncertainty_set is an UncertaintySet, which holds parameters of a simulator of ours, expected members of "
            f"this environment. {_what_to_give(env)}"
        )
    plain = (
        gymnasium.wrappers.TimeLimit,
        gymnasium.wrappers.OrderEnforcing,
        gymnasium.wrappers.PassiveEnvChecker,
        gymnasium.wrappers.RecordEpisodeStatistics,
        ChangingParams,
    )
    for wrapper in (wrapper for each in behind for wrapper in wrappers(each)):
        if not isinstance(wrapper, plain):
            raise ValueError(
                f"env has the wrapper {type(wrapper).__name__}, which the simulator behind it does not know of; give "
                "EnvMembers.grid(env, ...), copies of the environment with its wrappers, as uncertainty_set."
            )
    return SimulatorMembers(inner[0].simulator, uncertain)


def _what_to_give(env: AnyEnv) -> str:
    behind = host_env(env).behind()
    adapter = None if behind is None else adapter_of(behind[0])
    if behind is None or adapter is None:
        return no_members(env)
    names = ", ".join(list(adapter.get_params(behind[0]))[:6])
    return f"Give EnvMembers.grid(env, name=values, ...) with some of its parameters: {names}."
