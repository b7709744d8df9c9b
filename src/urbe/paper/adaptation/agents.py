"""How each agent of the chapter is made, trained and handed over as a policy with a memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from urbe import deep
from urbe.evaluation.adaptation import MemoryPolicy, Step
from urbe.paper.adaptation import (
    BELIEF,
    CAUTIOUS,
    GAIN,
    LEVEL,
    NOMINAL,
    RANDOMISED,
    ROBUST,
    ROVER,
    SOFT,
    STACKED,
    THOMPSON,
    WARY,
)
from urbe.paper.adaptation.tuning import BOUNDARY, FAILURES, prior_of
from urbe.paper.adaptation.worlds import Domain
from urbe.paper.choice import is_own, load_own
from urbe.simulators import MarsRoverParams, scenarios, to_mdp
from urbe.simulators.base import Key
from urbe.solvers import solve

DISCOUNT = 0.995
"""Of exact plans: near 1, since a lower one makes even the oracle wait."""

BENIGN = 0.3
"""Belief of the pessimistic prior in the members that are worth travelling with."""

STEPS = {ROVER: 1_000_000, GAIN: 1_500_000}
"""Of simulated experience over beliefs."""

DQN_STEPS = 150_000
"""Of experience of agents of the DQN family."""

OVER_BELIEFS: dict[str, dict[str, Any]] = {
    ROVER: {"boundary": BOUNDARY, "gap": 0.0},
    GAIN: {
        "boundary": 0.5,
        "trace": 0.9,
        "reward_scale": 100.0,
        "gap": 0.3,
        "average": 0.998,
        "between": 0.8,
        "tempers": (1.0, 0.3),
        "restart": 0.05,
        "hold": 3,
    },
}
"""Where settings differ from the defaults, by domain."""

DQN = deep.Settings(
    discount=0.99,
    learning_rate=1e-3,
    batch=128,
    capacity=50_000,
    warm_up=1_000,
    train_every=4,
    double=True,
    network=deep.Network(hidden=(64, 64)),
    epsilon=deep.Epsilon(1.0, 0.02, DQN_STEPS // 4),
    copy=deep.CopyEvery(updates=250),
    decay=deep.Decay(last=0.05, steps=DQN_STEPS),
)


class Planned(NamedTuple):
    """A table of actions by the place of the one in a one-hot observation; remembers nothing."""

    actions: Any

    def start(self, key: Key) -> tuple[()]:  # noqa: ARG002
        return ()

    def act(self, memory: tuple[()], observation: Float[Array, " D"]) -> tuple[Int32[Array, ""], tuple[()]]:
        return self.actions[observation.argmax()], memory

    def observe(self, memory: tuple[()], step: Step) -> tuple[()]:  # noqa: ARG002
        return memory

    def report(self, memory: tuple[()]) -> dict[str, Array]:  # noqa: ARG002
        return {}


def policy_of(domain: str, agent: str, world: Domain, seed: int) -> MemoryPolicy[Any]:
    """The trained or planned agent of a cell; one of your own is a function of the domain and the seed."""
    if is_own(agent):
        own: MemoryPolicy[Any] = load_own(agent)(world, seed)
        return own
    known = _planned if domain == ROVER else _of_dqn_family
    if agent in known:
        return known[agent](world, seed)
    return over_beliefs(domain, agent, world, seed).learn(STEPS[domain]).policy


def over_beliefs(domain: str, agent: str, world: Domain, seed: int) -> deep.AdaptiveAgent:
    """An agent that believes, before it has learned."""
    steps, switching = STEPS[domain], world.switching
    changes = OVER_BELIEFS[domain] | {
        "decay": deep.Decay(last=0.02, steps=steps),
        "epsilon": deep.Epsilon(0.3, 0.02, steps // 2),
    }
    make: Callable[..., deep.AdaptiveAgent] = deep.bayes_adaptive_dqn
    if agent == THOMPSON:
        make = deep.thompson_dqn
    elif agent == CAUTIOUS:
        changes["caution"] = deep.BeliefCVaR(LEVEL)
    elif agent == WARY:
        switching = replace(switching, prior=prior_of(BENIGN))
    else:
        assert agent == BELIEF
    return make(world.simulator, world.members, switching=switching, seed=seed, **changes)


def _table(policy: Any) -> Planned:
    return Planned(jnp.asarray(np.maximum(policy, 0), jnp.int32))


def _best_for(world: Domain, failure: float) -> Planned:
    return _table(solve(to_mdp(world.simulator, MarsRoverParams(failure), discount=DISCOUNT)).policy)


_Make = Callable[[Domain, int], MemoryPolicy[Any]]

_planned: dict[str, _Make] = {
    NOMINAL: lambda world, _: _best_for(world, world.simulator.nominal().failure),
    ROBUST: lambda world, _: _table(solve(*scenarios(world.simulator, world.members, discount=DISCOUNT)).policy),
    SOFT: lambda world, _: _best_for(world, float(np.mean(FAILURES))),
}

_of_dqn_family: dict[str, _Make] = {
    NOMINAL: lambda world, seed: _learned(deep.dqn(world.simulator, seed=seed, settings=DQN)),
    ROBUST: lambda world, seed: _learned(deep.robust_dqn(world.simulator, world.members, seed=seed, settings=DQN)),
    RANDOMISED: lambda world, seed: _learned(
        deep.domain_randomised_dqn(world.simulator, world.members, seed=seed, settings=DQN)
    ),
    STACKED: lambda world, seed: _learned(deep.stacked_dqn(world.simulator, world.members, seed=seed, settings=DQN)),
}


def _learned(agent: deep.Agent) -> MemoryPolicy[Any]:
    return agent.learn(DQN_STEPS).memory_policy
