"""The agents of the CartPole comparison: the paper's four, two controls, and two of DQN-URBE's variants.

All share networks, hyper-parameters and replay, so that each differs from the next in one aspect. The controls also
take random actions in tests, which `urbe.evaluate` never does by itself. Its noise is a standard
normal number for each action; the distribution function turns two of them into a coin flip and a random action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe import checks
from urbe.deep import DQNAgent, Network, Settings, calibrated
from urbe.deep.paper import CARTPOLE, cartpole, cartpole_set
from urbe.evaluation.policies import ActingRule, Traceable
from urbe.overrides import override
from urbe.paper.cartpole import EPSILON, SCALE, CartPoleCell
from urbe.paper.deep_agents import explores, make_agent
from urbe.simulators import Constant

FORGET, REFRESH_EVERY = 0.999, 100

LOG_EVERY = 1_000


VARIANTS = {
    "dqn-urbe-forgetting": lambda head: replace(head, forget=FORGET, refresh_every=REFRESH_EVERY),
    "calibrated-dqn-urbe": lambda _: calibrated(forget=FORGET),
}


def make(cell: CartPoleCell) -> DQNAgent:
    """The agent of a cell before its first step. Agents of one seed share the uncertainty set and first weights."""
    return make_agent(
        cell.agent,
        cartpole(),
        cartpole_set(cell.seed),
        seed=cell.seed,
        settings=settings(cell),
        epsilon=EPSILON,
        variants=VARIANTS,
        log_every=LOG_EVERY,
    )


def settings(cell: CartPoleCell) -> Settings:
    """The published settings, with the inputs and sizes of the cell."""
    scale = SCALE if cell.inputs == "scaled" else (1.0,)
    return override(replace(CARTPOLE, network=Network(cell.hidden, scale), batch=cell.batch), cell.settings)


def in_tests(cell: CartPoleCell, agent: DQNAgent) -> DQNAgent | Exploring:
    """The tested policy: the agent, or for a control one whose noisy version takes random actions as in training."""
    return Exploring(agent.policy, EPSILON) if explores(cell.agent) else agent


@cache
def changed(half_length: float) -> Constant:
    """The schedule after the change; one object for each length, so that agents share compiled loops."""
    return Constant(cartpole().nominal()._replace(half_length=half_length))


@dataclass(frozen=True)
class EpsilonGreedy:
    """Takes a uniformly random action with probability epsilon, otherwise the rule's action; traceable.

    Args:
      rule: the greedy rule.
      epsilon: within [0, 1].
    """

    rule: ActingRule
    epsilon: float

    def __call__(self, weights: Any, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None) -> Int32[Array, " B"]:
        """The actions; without noise those of the rule."""
        greedy = self.rule(weights, obs, None)
        if noise is None:
            return greedy
        n_actions = noise.shape[-1]
        coin, which = (jax.scipy.stats.norm.cdf(noise[:, k]) for k in (0, 1))
        random = jnp.minimum((which * n_actions).astype(jnp.int32), n_actions - 1)
        return jnp.where(coin < self.epsilon, random, greedy)


class Exploring:
    """A policy that sometimes takes a random action if it is noisy; see `Traceable`. It needs at least two actions.

    Args:
      policy: the greedy policy.
      epsilon: share of random actions, within [0, 1].
    """

    def __init__(self, policy: Traceable, epsilon: float) -> None:
        checks.probability("epsilon", epsilon)
        if policy.n_actions < 2:
            raise ValueError(f"policy has {policy.n_actions} action, expected at least 2: there is nothing to explore.")
        self.rule: ActingRule = EpsilonGreedy(policy.rule, epsilon)
        self.weights = policy.weights
        self.obs_size, self.n_actions = policy.obs_size, policy.n_actions
        self.is_noisy = True
