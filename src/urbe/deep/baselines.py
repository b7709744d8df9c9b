"""Baselines for robust DQN: domain randomisation, with and without a memory, EWoK and IWOCS. All learn by DQN; they
differ in the training dynamics and in the observations.

                      | dynamics in training                          | acts on
domain_randomised_dqn | drawn for every episode                       | the observation
stacked_dqn           | drawn for some episodes, or nominal           | the observation and the last steps
recurrent_dqn         | drawn for some episodes, or nominal           | the observation and a hidden state
ewok_dqn              | the worst of several draws, in every step     | the observation
iwocs_dqn             | one member, then the worst one, ...           | the observation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from urbe import checks
from urbe.deep.agent import DQNAgent
from urbe.deep.core.minimum import Minimum
from urbe.deep.core.natures import Average
from urbe.deep.core.recurrent import Memory
from urbe.deep.core.settings import Settings
from urbe.deep.core.variances import NoVariance
from urbe.deep.loops.ewok import WorstKernel
from urbe.deep.loops.iwocs import WorstCaseSearch
from urbe.deep.loops.make import Environment, make_trainer, require_set
from urbe.deep.loops.recurrent import RecurrentTraining
from urbe.deep.loops.trainer import Training
from urbe.deep.presets import DEFAULT, LOG_EVERY
from urbe.gym.kinds import KINDS
from urbe.gym.randomised_params import Parameters, RandomisedParams
from urbe.gym.stacked_history import StackedHistory
from urbe.simulators import (
    Distribution,
    RandomJumps,
    RandomMember,
    Schedule,
    Simulator,
    Stacked,
    UncertaintySet,
)

MEMORY = Memory()

Randomisation = UncertaintySet | Mapping[str, Distribution] | Parameters
"""The source of parameters: the members of a set, all equally likely, or a distribution for each name."""


def domain_randomised_dqn(
    env: Environment,
    parameters: Randomisation,
    *,
    seed: int,
    hazard: float = 1.0,
    settings: Settings = DEFAULT,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes a domain randomisation agent [Tobin2017]: DQN whose dynamics are drawn for every episode.

    It learns one policy that is best on average over the draws, which it does not observe.

    Args:
      env: a simulator of `urbe.simulators`, or a single Gymnasium environment whose parameters an adapter can set.
      parameters: an `UncertaintySet`, or for a Gymnasium environment `EnvMembers` or a list of parameters by name, all
        equally likely; or for either a distribution for each name, `{"half_length": Uniform(0.25, 1.0)}`.
      seed: seed of all random numbers.
      hazard: the probability that an episode has new parameters; otherwise it keeps the previous ones.
      settings, log_every, changes: as for `urbe.deep.dqn`.

    >>> from urbe.simulators import CartPole, Uniform
    >>> pole = {"half_length": Uniform(0.25, 1.0)}
    >>> domain_randomised_dqn(CartPole(), pole, seed=0, capacity=500, warm_up=100, batch=16).learn(200).step
    200
    """
    env, schedule = _randomised(env, parameters, hazard, seed)
    return _agent("domain-randomised-dqn", env, None, schedule, None, seed, settings, log_every, changes)


def stacked_dqn(
    env: Environment,
    parameters: Randomisation | None = None,
    *,
    seed: int,
    length: int = 8,
    survives: bool = True,
    hazard: float = 0.1,
    settings: Settings = DEFAULT,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes a DQN agent that also observes the last steps, under domain randomisation.

    A step is remembered as observation, action, reward, whether the episode ended, and the change of the observation;
    see `urbe.simulators.stacked`. The agent can thus identify the dynamics, if a few steps suffice.

    Args:
      env: as for `domain_randomised_dqn`.
      parameters: as for `domain_randomised_dqn`; None keeps the nominal ones.
      seed: seed of all random numbers.
      length: number of remembered steps, zeros before the first ones.
      survives: whether they are remembered beyond the end of an episode.
      hazard: the probability that an episode has new parameters. With 1, earlier episodes are of no use in training,
        and the agent learns to ignore them.
      settings, log_every, changes: as for `urbe.deep.dqn`.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> gains = UncertaintySet.grid(CartPole(), force=(-10.0,))
    >>> agent = stacked_dqn(CartPole(), gains, seed=0, length=4, capacity=500, warm_up=100, batch=16).learn(200)
    >>> agent.policy.obs_size  # 4 + 4 (2 4 + 2 + 2)
    52
    """
    env, schedule = _randomised(env, parameters, hazard, seed)
    seen: Environment
    seen = StackedHistory(env, length, survives) if isinstance(env, KINDS) else Stacked(env, length, survives)
    return _agent("stacked-dqn", seen, None, schedule, None, seed, settings, log_every, changes)


def recurrent_dqn(
    env: Simulator,
    parameters: UncertaintySet | Mapping[str, Distribution] | None = None,
    *,
    seed: int,
    memory: Memory = MEMORY,
    hazard: float = 0.1,
    settings: Settings = DEFAULT,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes a DQN agent with a recurrent memory [Hausknecht2015], under domain randomisation: a GRU reads every step.

    It is trained through time on replayed windows with burn-in, as R2D2 [Kapturowski2019]; see
    `urbe.deep.core.recurrent`.

    Args:
      env: a simulator of `urbe.simulators`.
      parameters: as for `domain_randomised_dqn`; None keeps the nominal ones.
      seed: seed of all random numbers.
      memory: its size, the windows it is trained on, and whether it survives the end of an episode.
      hazard: as for `stacked_dqn`.
      settings: as for `urbe.deep.dqn`; the Q-network also receives the hidden state, and a gradient step
        uses `batch // memory.length` windows. There is no uncertainty head.
      log_every, changes: as for `urbe.deep.dqn`.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> gains = UncertaintySet.grid(CartPole(), force=(-10.0,))
    >>> agent = recurrent_dqn(CartPole(), gains, seed=0, capacity=500, warm_up=100, batch=16).learn(200)
    >>> type(agent.memory_policy).__name__
    'RecurrentPolicy'
    """
    env, schedule = _randomised(env, parameters, hazard, seed)
    training = RecurrentTraining(memory)
    return _agent("recurrent-dqn", env, None, schedule, training, seed, settings, log_every, changes)


def ewok_dqn(
    env: Simulator,
    uncertainty_set: UncertaintySet | None = None,
    *,
    seed: int,
    kappa: float = 1.0,
    draws: int = 5,
    settings: Settings = DEFAULT,
    schedule: Schedule | None = None,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes an EWoK agent [Gadot2024]: DQN in a simulator that draws several successors and mostly keeps a bad one.

    Args:
      env: a simulator of `urbe.simulators`.
      uncertainty_set: successors are drawn from its members, each equally likely. None draws them from the simulator
        itself, which must then be random: with a single possible successor, nothing changes.
      seed: seed of all random numbers.
      kappa: the temperature, in units of the return. A small one is robust; infinity gives `urbe.deep.dqn`. No value
        suits all problems.
      draws: successors per step, one of which is kept. The worst case is over at most this many draws.
      settings, schedule, log_every, changes: as for `urbe.deep.dqn`.

    >>> from urbe.simulators import MarsRover
    >>> ewok_dqn(MarsRover(), seed=0, kappa=0.1, capacity=500, warm_up=100, batch=16).learn(200).step
    200
    """
    training = WorstKernel(kappa, draws)
    return _agent("ewok-dqn", env, uncertainty_set, schedule, training, seed, settings, log_every, changes)


def iwocs_dqn(
    env: Simulator,
    uncertainty_set: UncertaintySet,
    *,
    seed: int,
    round_steps: int = 20_000,
    episodes: int = 20,
    settings: Settings = DEFAULT,
    log_every: int = LOG_EVERY,
    **changes: Any,
) -> DQNAgent:
    """Makes an IWOCS agent [Zouitine2024]: DQN under one member after another, each the worst for the current policy.

    The policy is greedy in the lowest of the Q-functions of the members that were trained for; see
    `urbe.deep.loops.iwocs` for the algorithm and its departures from the paper.

    Args:
      env: a simulator of `urbe.simulators`.
      uncertainty_set: the members; training starts with the nominal one, if it is a member.
      seed: seed of all random numbers.
      round_steps: environment steps under a member before the next worst one is chosen. Exploration, learning rate and
        replay restart with each: `epsilon.steps` and `decay.steps` count from there.
      episodes: test episodes under each member, to find the worst.
      settings, log_every, changes: as for `urbe.deep.dqn`.

    >>> from urbe.simulators import CartPole, UncertaintySet
    >>> poles = UncertaintySet.grid(CartPole(), half_length=(0.25, 1.0))
    >>> small = dict(capacity=500, warm_up=100, batch=16)
    >>> iwocs_dqn(CartPole(), poles, seed=0, round_steps=150, episodes=2, **small).learn(200).step
    200
    """
    require_set(env, uncertainty_set)
    chosen = checks.changed(settings, "settings", "Settings(...)", changes)
    network = chosen.network if isinstance(chosen.network, Minimum) else Minimum(len(uncertainty_set), chosen.network)
    training = WorstCaseSearch(round_steps, episodes, uncertainty_set.nominal or 0)
    return _agent(
        "iwocs-dqn", env, uncertainty_set, None, training, seed, replace(chosen, network=network), log_every, {}
    )


def _randomised(env: Any, parameters: Randomisation | None, hazard: float, seed: int) -> tuple[Any, Schedule | None]:
    """The environment and the schedule of its parameters; a Gymnasium environment sets them itself."""
    if parameters is None:
        return env, None
    if isinstance(env, KINDS):
        if isinstance(parameters, UncertaintySet):
            parameters = [_by_name(member) for member in parameters.members()]
        return RandomisedParams(env, parameters, seed, hazard=hazard), None
    schedule: Schedule
    if isinstance(parameters, UncertaintySet):
        schedule = RandomMember(parameters.members(), hazard)
    elif isinstance(parameters, Mapping):
        schedule = RandomJumps(env.nominal(), parameters, hazard)
    else:
        raise ValueError(
            f"parameters is of type {type(parameters).__name__}, expected an UncertaintySet of the simulator "
            f"{type(env).__name__}, or a distribution for each name; members of other kinds are for Gymnasium "
            "environments."
        )
    return env, schedule


def _by_name(member: Any) -> dict[str, float]:
    return {name: float(value) for name, value in member._asdict().items()}


def _agent(
    name: str,
    env: Environment,
    uncertain: UncertaintySet | None,
    schedule: Schedule | None,
    training: Training | None,
    seed: int,
    settings: Settings,
    log_every: int,
    changes: dict[str, Any],
) -> DQNAgent:
    parts: dict[str, Any] = {"nature": Average(), "variance": NoVariance()}
    chosen = checks.changed(settings, "settings", "Settings(...)", parts | changes)
    trainer = make_trainer(env, uncertain, chosen, schedule, seed, log_every, training=training)
    return DQNAgent(name, trainer, seed, log_every)
