"""What compiled plans of many replicates read and write, as tuples of arrays that travel together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray

COUNT, DIRICHLET, CALIBRATED = 0, 1, 2

NOTHING = np.zeros((0, 0))


class LocalUncertainty(NamedTuple):
    """The local uncertainty nu of a row.

    Attributes:
      form: COUNT is scale^2 / N, DIRICHLET scale^2 (K - 1) / (N + 1) for K feasible successors, CALIBRATED
        scale^2 Var[p . m] with m the sensitivity of the worst case to its centre.
      scale: `(B,)`.
      reward: `(B, R)` variance of the reward, times scale^2 part of nu; None when rewards are known.
    """

    form: int
    scale: FloatArray
    reward: FloatArray | None = None


class PlanModel(NamedTuple):
    """The rows of a model, as in `MDP` and `Rows`, but for the rewards of entries."""

    entry_start: IntArray
    successor: IntArray
    row_start: IntArray
    row_state: IntArray
    gamma: float
    longest: int


class PlanData(NamedTuple):
    """What is known of the model.

    Attributes:
      alpha: `(B, L, E)` concentrations; L is 1, or H when each step has its own.
      total: `(B, L, R)` their sums.
      reward: `(B, R)` expected rewards; not read where the model's rewards depend on the successor.
      radius: `(B, R)`.
    """

    alpha: FloatArray
    total: FloatArray
    reward: FloatArray
    radius: FloatArray


class PlanValues(NamedTuple):
    """Values q and variances u of rows, `(B, H, R)`, and those of the greedy actions, v and w, `(B, H + 1, S)`."""

    q: FloatArray
    u: FloatArray
    v: FloatArray
    w: FloatArray


def plan_model(model: MDP) -> PlanModel:
    """What compiled plans read of a model."""
    rows = model.rows
    return PlanModel(
        rows.entry_start, rows.successor, model.row_start, model.row_state, float(model.discount), rows.longest
    )


def local_arrays(local: LocalUncertainty | None, replicates: int) -> tuple[int, FloatArray, FloatArray]:
    """Form, scale and variance of rewards as compiled plans take them: -1 and empty arrays for what is not there."""
    if local is None:
        return -1, np.zeros(replicates), NOTHING
    return local.form, local.scale, NOTHING if local.reward is None else local.reward
