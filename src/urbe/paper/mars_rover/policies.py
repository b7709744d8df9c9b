"""Test policies as tables of probabilities, so that their returns can be computed instead of sampled.

Acting with the noise of an uncertainty head is a stationary random policy, since noise is drawn at every step:

    pi(a | s) = P( q_a + sigma_a z_a > q_b + sigma_b z_b for all b /= a ),   sigma = beta sqrt(max(w, 0)),   z ~ N(0, 1)
              = int phi((x - q_a) / sigma_a) / sigma_a  prod_{b /= a} Phi((x - q_b) / sigma_b) dx

one integral over the line for each pair, by Gauss-Legendre rules between the points q_b + k sigma_b, k = -9, ..., 9,
where everything is smooth.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import special

from urbe.deep import LastLayer
from urbe.deep.policies.policy import Policy
from urbe.simulators import MarsRover
from urbe.types import FloatArray, IntArray

Acting = Literal["greedy", "noisy", "epsilon"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)

_REACH = 9
"""Number of standard deviations; a normal distribution has a mass of 1e-19 beyond."""


def observations(rover: MarsRover) -> np.ndarray:
    """`(S, D)` the observation of every state."""
    import jax
    import jax.numpy as jnp

    return np.asarray(jax.vmap(rover.observe)(jnp.arange(rover.n_states, dtype=jnp.int32)))


def table(policy: Policy, rover: MarsRover, acting: Acting, epsilon: float) -> FloatArray:
    """`(S, A)` probabilities of a test policy.

    Args:
      policy: policy of an agent.
      rover: the simulator.
      acting: "greedy"; "noisy", for policies with an uncertainty head; or "epsilon", greedy except for random actions.
      epsilon: share of random actions.
    """
    seen = observations(rover)
    greedy = one_hot(policy.predict(seen), rover.n_actions)
    if acting == "greedy":
        return greedy
    if acting == "epsilon":
        random: FloatArray = (1.0 - epsilon) * greedy + epsilon / rover.n_actions
        return random
    q, w = policy.values(seen)
    variance = policy.settings.variance
    if w is None or not isinstance(variance, LastLayer):
        raise ValueError("acting is 'noisy', but the policy has no uncertainty head; expected 'greedy' or 'epsilon'.")
    sigma = np.float32(variance.beta) * np.sqrt(np.maximum(w, np.float32(0.0)))
    return winning(q.astype(np.float64), sigma.astype(np.float64))


def one_hot(actions: IntArray, n_actions: int) -> FloatArray:
    """`(S, A)` a one for the action of each state."""
    chosen: FloatArray = (np.asarray(actions)[:, None] == np.arange(n_actions)).astype(np.float64)
    return chosen


def winning(q: FloatArray, sigma: FloatArray) -> FloatArray:
    """`(S, A)` the probability that q_a + sigma_a z_a is the largest; z independent standard normal.

    Among equally good actions without noise the first one counts, as in `argmax`. Exact to 1e-12.

    Args:
      q: `(S, A)` values.
      sigma: `(S, A)` standard deviations, at least 0.

    >>> winning(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])).round(4)
    array([[0.5   , 0.5   ],
           [0.8413, 0.1587]])
    """
    return np.stack([_winning(*pair) for pair in zip(q, sigma, strict=True)])


def _winning(q: FloatArray, sigma: FloatArray) -> FloatArray:
    found = np.zeros(len(q))
    noisy = np.flatnonzero(sigma > 0.0)
    still = np.flatnonzero(sigma == 0.0)
    floor = -np.inf
    if len(still):
        best = still[np.argmax(q[still])]
        floor = q[best]
        found[best] = special.ndtr((floor - q[noisy]) / sigma[noisy]).prod()
    if len(noisy):
        m, s = q[noisy], sigma[noisy]
        knots = np.unique(np.maximum(m[:, None] + s[:, None] * np.arange(-_REACH, _REACH + 1), floor))
        half, middle = 0.5 * np.diff(knots), 0.5 * (knots[1:] + knots[:-1])
        x = (middle[:, None] + half[:, None] * _NODES).ravel()
        weight = (half[:, None] * _WEIGHTS).ravel()
        z = (x[:, None] - m) / s
        below = special.ndtr(z)
        density = np.exp(-0.5 * z**2) / (s * np.sqrt(2.0 * np.pi))
        for i, action in enumerate(noisy):
            found[action] = weight @ (density[:, i] * np.delete(below, i, axis=1).prod(axis=1))
    total: float = found.sum()
    return found / total
