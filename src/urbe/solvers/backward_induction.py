"""Finite horizon: V_H = 0, V_t = T V_{t+1}; errors of rounding add up backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from urbe.bellman.operators import Bellman
from urbe.solvers.bounds import require_finite_values
from urbe.solvers.iterate import Progress
from urbe.solvers.policies import policy_of
from urbe.solvers.solution import Solution
from urbe.types import FloatArray
from urbe.workers import Workers


def backward_induction(bellman: Bellman, horizon: int, workers: Workers, progress: Progress | None) -> Solution:
    """Values `(H + 1, S)`, policies and action values `(H, ...)` of the robust problem with `horizon` decisions."""
    mdp = bellman.mdp
    require_finite_values(mdp, float(horizon))
    value = np.zeros((horizon + 1, mdp.n_states))
    error = np.zeros(horizon + 1)
    growth = mdp.discount * (1.0 + mdp.rows.mass_error)
    q: list[FloatArray] = []
    policy: list[Any] = []
    weights: list[Any] = []
    for step in range(horizon - 1, -1, -1):
        improvement = bellman.improve(value[step + 1], workers)
        value[step] = improvement.value
        error[step] = bellman.error(value[step + 1]) + growth * error[step + 1]
        q.append(mdp.by_action(improvement.q, fill=-np.inf) if len(improvement.q) else np.empty((0, 0)))
        weights.append(improvement.weights)
        policy.append(policy_of(mdp, improvement.weights))
        if progress is not None:
            progress(horizon - step, float(error[step]))
    margin = np.where(mdp.terminal, 0.0, error[:, None])
    return Solution(
        value=value,
        q=np.array(q[::-1]),
        policy=np.array(policy[::-1]),
        lower=value - margin,
        upper=value + margin,
        converged=True,
        status=f"Solved exactly over {horizon} steps, up to rounding of at most {error.max():.3g}.",
        steps=horizon,
        sweeps=0,
        bellman=bellman,
        weights=np.array(weights[::-1]),
        at=value[1],
    )
