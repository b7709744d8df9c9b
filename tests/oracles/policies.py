"""Policies small enough to be read, for evaluations."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class LinearRule:
    """argmax_a obs . matrix[:, a] + spread noise_a."""

    def __call__(self, weights, obs, noise):
        matrix, spread = weights
        values = obs @ matrix
        return (values if noise is None else values + spread * noise).argmax(axis=-1).astype(jnp.int32)


@dataclass(frozen=True)
class Traced:
    """A traceable policy of any rule and weights."""

    rule: Any
    weights: Any
    obs_size: int
    n_actions: int
    is_noisy: bool = False


def linear(columns, spread=0.0):
    """Acts by a matrix `(D, A)`; with a spread also noisily."""
    matrix = np.array(columns, np.float32)
    return Traced(LinearRule(), (matrix, np.float32(spread)), *matrix.shape, is_noisy=spread > 0.0)


@dataclass(frozen=True)
class TableRule:
    """The action of the state whose place in the observation holds a one; any action where there is none."""

    def __call__(self, weights, obs, noise):  # noqa: ARG002
        return weights[obs.argmax(axis=-1)]


def table(actions, n_actions):
    """Acts by a table of one action per state, seen one-hot."""
    return Traced(TableRule(), np.array(actions, np.int32), len(actions), n_actions)
