"""The plans of `urbe.agents.set_plan` for KL and chi-square balls, many replicates in one compiled loop.

Each replicate has its own radii and is planned for separately: its plan does not depend, bit for bit, on the other
replicates in the call. It equals the general plan up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from urbe.agents.set_plan import (
    CALIBRATED,
    COUNT,
    DIRICHLET,
    LocalUncertainty,
    Plan,
    PlanData,
    PlanValues,
    local_arrays,
    plan_model,
)
from urbe.ambiguity import chi2, kl
from urbe.ambiguity.nature import LEAST, MOST
from urbe.ambiguity.operator import AmbiguitySet
from urbe.ambiguity.sweep import RowProblem, WhenCalled, named_after
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray

KINDS: tuple[type[kl.KLBall | chi2.Chi2Ball], ...] = (kl.KLBall, chi2.Chi2Ball)


class Balls(NamedTuple):
    """Balls of one kind, which depend only on the rows of the model around which they are put.

    Attributes:
      kind: index into `KINDS`.
      radius: `(B, R)`.
    """

    kind: int
    radius: FloatArray


def balls_of(sets: Sequence[AmbiguitySet], model: MDP) -> Balls | None:
    """Returns the radii of one set per replicate, if all are balls of one of the `KINDS`; else None."""
    for kind, ball in enumerate(KINDS):
        balls = [each for each in sets if isinstance(each, ball)]
        if len(balls) == len(sets):
            return Balls(kind, np.stack([each.bind(model).radius for each in balls]))
    return None


def plan_with_balls(
    plan: Plan,
    balls: Balls,
    which: IntArray,
    alpha: FloatArray,
    total: FloatArray,
    reward: FloatArray,
    local: LocalUncertainty | None = None,
) -> IntArray:
    """Plans again for the replicates `which`; arguments as in `Plan.update`.

    Returns:
      the replicates that need the general plan, because of zero probabilities or values of extreme size.
    """
    left = np.zeros(len(which), dtype=np.bool_)
    data, values = PlanData(alpha, total, reward, balls.radius), PlanValues(plan.q, plan.u, plan.v, plan.w)
    model, uncertain = plan_model(plan.model), local_arrays(local, reward.shape)
    _plan(which, balls.kind, model, plan.model.rows.entry_reward, data, uncertain, values, plan.share, left)
    return which[left]


def _compiled(loop: Callable[..., None] | None) -> Any:
    """Returns the loop in a form that compiled code can call."""
    return loop.compiled() if isinstance(loop, WhenCalled) else loop


KL_SWEEP, KL_MOMENTS = _compiled(kl.KERNEL.sweep), _compiled(kl.KERNEL.moments)
CHI2_SWEEP, CHI2_MOMENTS = _compiled(chi2.KERNEL.sweep), _compiled(chi2.KERNEL.moments)


@njit(cache=True, nogil=True)
@named_after(kl.KERNEL.minimiser, chi2.KERNEL.minimiser)
def _plan(which, kind, model, entry_reward, data, uncertain, values, share, left):
    entry_start, successor, row_start, _, gamma, longest = model
    alpha, total, reward, radius = data
    form, scale, reward_variance = uncertain
    q, u, v, w = values
    horizon, n_rows, n_states = q.shape[1], q.shape[2], v.shape[2]
    p, data, work, z = (
        np.empty(len(successor)),
        np.empty((len(successor), 0)),
        np.empty((6, longest)),
        np.empty(n_states),
    )
    hint, bare, scatter, carried = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    layers = alpha.shape[1]
    for i in range(len(which)):
        b = which[i]
        for h in range(horizon - 1, -1, -1):
            layer = h if layers > 1 else 0
            if h == horizon - 1 or layers > 1:
                hint[:] = 0.0
                left[i] = not _mean(entry_start, alpha[b, layer], total[b, layer], p)
            middle = 0.5 * (v[b, h + 1].min() + v[b, h + 1].max())
            shift = gamma * middle
            for s in range(n_states):
                z[s] = gamma * (v[b, h + 1, s] - middle)
            if left[i] or _extreme(z, entry_reward):
                left[i] = True
                break
            problem = RowProblem(entry_start, successor, p, data, radius[b], np.inf, z)
            value, ahead = q[b, h], w[b, h + 1]
            if kind == 0:
                KL_SWEEP(0, n_rows, problem, entry_reward, reward[b], shift, hint, work, value)
            else:
                CHI2_SWEEP(0, n_rows, problem, entry_reward, reward[b], shift, hint, work, value)
            if form >= 0:
                for row in range(n_rows):
                    bare[row] = value[row] - shift - (reward[b, row] if entry_reward is None else 0.0)
                if kind == 0:
                    KL_MOMENTS(problem, entry_reward, ahead, 0.0, bare, hint, work, scatter, carried)
                else:
                    CHI2_MOMENTS(problem, entry_reward, ahead, 0.0, bare, hint, work, scatter, carried)
            for row in range(n_rows):
                n = total[b, layer, row]
                if form == COUNT:
                    nu = 1.0 / n
                elif form == DIRICHLET:
                    nu = (entry_start[row + 1] - entry_start[row] - 1.0) / (n + 1.0)
                elif form == CALIBRATED:
                    nu = scatter[row] / (n + 1.0)
                else:
                    u[b, h, row] = 0.0
                    continue
                u[b, h, row] = scale[b] ** 2 * (nu + reward_variance[b, row]) + gamma**2 * carried[row]
            for s in range(n_states):
                v[b, h, s], w[b, h, s], best = 0.0, 0.0, row_start[s]
                for row in range(row_start[s], row_start[s + 1]):
                    share[b, h, row] = 0.0
                    best = row if value[row] > value[best] else best
                if row_start[s] < row_start[s + 1]:
                    v[b, h, s], w[b, h, s], share[b, h, best] = value[best], u[b, h, best], 1.0


@njit(cache=True, nogil=True)
def _mean(entry_start, alpha, total, p):
    """Writes the mean probabilities; returns whether all are positive."""
    positive = True
    for row in range(len(total)):
        for j in range(entry_start[row], entry_start[row + 1]):
            p[j] = alpha[j] / total[row]
            positive &= p[j] > 0.0
    return positive


@njit(cache=True, nogil=True)
def _extreme(z, entry_reward):
    """Whether a sweep would rescale values first (`urbe.ambiguity.nature.exponent`)."""
    largest = np.abs(z).max()
    if entry_reward is not None:
        largest = max(largest, np.abs(entry_reward).max())
    return largest > 0.0 and not LEAST <= largest <= MOST
