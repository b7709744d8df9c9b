"""Choose the trainer for an environment."""

from __future__ import annotations

from urbe import checks
from urbe.deep.core.settings import Settings
from urbe.deep.loops.compiled_trainer import CompiledTrainer
from urbe.deep.loops.host.trainer import HostTrainer
from urbe.deep.loops.trainer import Trainer, Training
from urbe.gym.kinds import KINDS, AnyEnv
from urbe.gym.members.base import Members
from urbe.gym.members.fitting import fitting_members, what_to_give
from urbe.simulators import Schedule, Simulator, UncertaintySet
from urbe.simulators.limits import check_schedule

Environment = Simulator | AnyEnv
Uncertain = UncertaintySet | Members


def make_trainer(
    env: Environment,
    uncertain: Uncertain | None,
    settings: Settings,
    schedule: Schedule | None,
    seed: int,
    record_every: int,
    keep_states: bool = False,
    training: Training | None = None,
) -> Trainer:
    """Makes the compiled loop for a simulator of urbe, or the host loop for a Gymnasium environment.

    An environment that wraps a simulator also gets the host loop, since the user may change its parameters during
    training. `training` replaces DQN in the compiled loop.

    Raises:
      ValueError: env, uncertainty set and schedule do not fit each other.
    """
    if isinstance(env, KINDS):
        if training is not None:
            raise ValueError(
                f"env is a Gymnasium environment, expected a simulator of urbe.simulators: {type(training).__name__} "
                "is part of the compiled loop. On Gymnasium environments use domain_randomised_dqn or robust_dqn."
            )
        if schedule is not None:
            raise ValueError(
                "schedule was given with a Gymnasium environment, expected None: its parameters are its own. Wrap it, "
                "urbe.gym.ChangingParams(env, schedule, seed), or give the simulator in place of env."
            )
        members = None if uncertain is None else fitting_members(env, uncertain)
        return HostTrainer(settings, env, members, seed, record_every, keep_states)
    checks.kind("env", env, True, "a simulator such as CartPole(), or a Gymnasium environment")
    if not isinstance(env, Simulator):
        raise ValueError(
            f"env is {env!r}, expected a simulator of urbe.simulators or a Gymnasium environment: "
            'gymnasium.make("CartPole-v1").'
        )
    if uncertain is not None and not isinstance(uncertain, UncertaintySet):
        raise ValueError(
            f"uncertainty_set is of type {type(uncertain).__name__}, expected UncertaintySet for the simulator "
            f"{type(env).__name__}; members of other kinds are for Gymnasium environments."
        )
    if schedule is not None:
        check_schedule(env, schedule)
    return CompiledTrainer(settings, env, uncertain, schedule, seed, record_every, keep_states, training)


def require_set(env: Environment, uncertain: Uncertain | None) -> None:
    """Raises ValueError, saying what to give, if an agent that needs an uncertainty set has none."""
    if uncertain is not None:
        return
    if isinstance(env, KINDS):
        raise ValueError(f"uncertainty_set is None, expected members. {what_to_give(env)}")
    raise ValueError("uncertainty_set is None, expected an UncertaintySet: UncertaintySet.grid(simulator, ...).")
