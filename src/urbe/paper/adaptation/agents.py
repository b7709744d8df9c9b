"""Make and train each agent of the chapter; the result is a policy with a memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from urbe import deep
from urbe.evaluation.adaptation import MemoryPolicy
from urbe.paper.adaptation import (
    ACROBOT,
    ADAPTIVE,
    BELIEF,
    CAR,
    CAUTIOUS,
    DQN_STEPS,
    EPISODE,
    EVEN,
    EWOK,
    FEWER,
    GAIN,
    IWOCS,
    LEARNING,
    LEARNING_BELIEF,
    LENGTH,
    LEVEL,
    NOMINAL,
    ORACLE,
    PENDULUM,
    RANDOMISED,
    RECURRENT,
    ROBUST,
    ROVER,
    SOFT,
    STACKED,
    STEPS,
    THOMPSON,
    WARY,
)
from urbe.paper.adaptation.tuning import BOUNDARY, prior_of
from urbe.paper.adaptation.worlds import Domain
from urbe.paper.choice import is_own, load_own

BENIGN = 0.3
"""Probability that the pessimistic prior gives to members under which travelling pays."""

KAPPA = 10.0
"""The temperature of EWoK, a tenth of the largest discounted return on CartPole; not tuned."""

ROUND = 30_000
"""Environment steps of IWOCS under each member it trains for, so that five members are trained for; not tuned."""

_TRAVELLING: dict[str, Any] = {"boundary": BOUNDARY, "gap": 0.0}
_BALANCING: dict[str, Any] = {
    "boundary": 0.5,
    "trace": 0.9,
    "reward_scale": 100.0,
    "gap": 0.3,
    "average": 0.998,
    "between": 0.8,
    "tempers": (1.0, 0.3),
    "restart": 0.05,
    "hold": 3,
}
_SWINGING: dict[str, Any] = _BALANCING | {"trace": 0.95, "hold": 20, "boundary": 0.0}

OVER_BELIEFS: dict[str, dict[str, Any]] = {
    ROVER: _TRAVELLING,
    EVEN: _TRAVELLING,
    GAIN: _BALANCING,
    LENGTH: _BALANCING,
    ACROBOT: _SWINGING,
    CAR: _SWINGING,
    PENDULUM: _BALANCING | {"lives": 8, "average": 0.99},
}
"""Settings that differ from the defaults, by domain."""


def dqn_settings(steps: int) -> deep.Settings:
    """Settings of agents of the DQN family that learn for this many steps."""
    return deep.Settings(
        discount=0.99,
        learning_rate=1e-3,
        batch=128,
        capacity=50_000,
        warm_up=1_000,
        train_every=4,
        double=True,
        network=deep.Network(hidden=(64, 64)),
        epsilon=deep.Epsilon(1.0, 0.02, steps // 4),
        copy=deep.CopyEvery(updates=250),
        decay=deep.Decay(last=0.05, steps=steps),
    )


def _in_rounds(settings: deep.Settings) -> deep.Settings:
    """Settings of IWOCS, whose exploration and learning rate begin anew in every round."""
    return replace(settings, epsilon=deep.Epsilon(1.0, 0.02, ROUND // 4), decay=deep.Decay(last=0.05, steps=ROUND))


def policy_of(domain: str, agent: str, world: Domain, seed: int) -> MemoryPolicy[Any]:
    """Trains the agent of a cell; your own agent is a function of the domain and the seed."""
    if is_own(agent):
        own: MemoryPolicy[Any] = load_own(agent)(world, seed)
        return own
    if agent == LEARNING_BELIEF:
        return over_beliefs(domain, BELIEF, world, seed).learn(STEPS[domain]).learning_policy()
    steps = FEWER.get(domain, DQN_STEPS)
    if agent == LEARNING:
        return _OF_DQN_FAMILY[NOMINAL](world, seed, dqn_settings(steps)).learn(steps).learning_policy()
    if agent in _OF_DQN_FAMILY:
        learned: MemoryPolicy[Any] = _OF_DQN_FAMILY[agent](world, seed, dqn_settings(steps)).learn(steps).memory_policy
        return learned
    return over_beliefs(domain, agent, world, seed).learn(STEPS[domain]).policy


def over_beliefs(domain: str, agent: str, world: Domain, seed: int) -> deep.AdaptiveAgent:
    """Makes an agent with a belief, before training."""
    steps, switching = STEPS[domain], world.switching
    changes = OVER_BELIEFS[domain] | {
        "decay": deep.Decay(last=0.02, steps=steps),
        "epsilon": deep.Epsilon(0.3, 0.02, steps // 2),
    }
    make: Callable[..., deep.AdaptiveAgent] = deep.bayes_adaptive_dqn
    if agent == THOMPSON:
        make = deep.thompson_dqn
    elif agent == ADAPTIVE:
        make = deep.adaptive_dqn
        del changes["boundary"]  # it assigns no value to later episodes
    elif agent == CAUTIOUS:
        changes["caution"] = deep.BeliefCVaR(LEVEL)
    elif agent == EPISODE:
        changes["caution"] = deep.EpisodeCVaR(LEVEL)
    elif agent == WARY:
        switching = replace(switching, prior=prior_of(BENIGN))
    else:
        assert agent == BELIEF
    return make(world.simulator, world.members, switching=switching, seed=seed, **changes)


_OF_DQN_FAMILY: dict[str, Callable[[Domain, int, deep.Settings], deep.DQNAgent]] = {
    NOMINAL: lambda world, seed, settings: deep.dqn(world.simulator, seed=seed, settings=settings),
    ORACLE: lambda world, seed, settings: deep.dqn(world.simulator, seed=seed, settings=settings),
    ROBUST: lambda world, seed, settings: deep.robust_dqn(world.simulator, world.members, seed=seed, settings=settings),
    SOFT: lambda world, seed, settings: deep.soft_robust_dqn(
        world.simulator, world.members, seed=seed, settings=settings
    ),
    EWOK: lambda world, seed, settings: deep.ewok_dqn(
        world.simulator, world.members, seed=seed, kappa=KAPPA, settings=settings
    ),
    IWOCS: lambda world, seed, settings: deep.iwocs_dqn(
        world.simulator, world.members, seed=seed, round_steps=ROUND, settings=_in_rounds(settings)
    ),
    RANDOMISED: lambda world, seed, settings: deep.domain_randomised_dqn(
        world.simulator, world.members, seed=seed, settings=settings
    ),
    STACKED: lambda world, seed, settings: deep.stacked_dqn(
        world.simulator, world.members, seed=seed, settings=settings
    ),
    RECURRENT: lambda world, seed, settings: deep.recurrent_dqn(
        world.simulator, world.members, seed=seed, settings=settings
    ),
}
"""How agents of the DQN family are made. The oracle among them is for mirrored domains: there it need not know which
way the motor turns."""
