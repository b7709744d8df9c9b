"""A policy that, asked to be noisy, takes random actions: how an epsilon-greedy agent behaves in training.

`urbe.evaluate` never takes random actions by itself. What it calls noise is standard normal, one number per action;
through their distribution function two of them become a coin and an action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from urbe import checks
from urbe.evaluation.policies import Rule, Traceable


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability epsilon any action, all alike, otherwise that of the rule: traceable.

    Args:
      rule: the greedy one.
      epsilon: within [0, 1].
    """

    rule: Rule
    epsilon: float

    def __call__(self, weights: Any, obs: Float[Array, "B D"], noise: Float[Array, "B A"] | None) -> Int32[Array, " B"]:
        """The actions; without noise the rule's."""
        greedy = self.rule(weights, obs, None)
        if noise is None:
            return greedy
        n_actions = noise.shape[-1]
        coin, which = (jax.scipy.stats.norm.cdf(noise[:, k]) for k in (0, 1))
        random = jnp.minimum((which * n_actions).astype(jnp.int32), n_actions - 1)
        return jnp.where(coin < self.epsilon, random, greedy)


class Exploring:
    """A policy of at least two actions with random ones among them when it is noisy; see `Traceable`.

    Args:
      policy: the greedy one.
      epsilon: share of random actions, within [0, 1].
    """

    def __init__(self, policy: Traceable, epsilon: float) -> None:
        checks.probability("epsilon", epsilon)
        if policy.n_actions < 2:
            raise ValueError(f"policy has {policy.n_actions} action, expected at least 2: there is nothing to explore.")
        self.rule: Rule = EpsilonGreedy(policy.rule, epsilon)
        self.weights = policy.weights
        self.obs_size, self.n_actions = policy.obs_size, policy.n_actions
        self.is_noisy = True
