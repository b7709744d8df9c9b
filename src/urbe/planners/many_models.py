"""Compute the value of one policy under many models that differ only in their probabilities and rewards.

    v_m = r_m + gamma P_m v_m        for every model m at once

Small models are solved as a stack of dense systems. Larger ones are swept together until the bounds of [MacQueen1966]
meet, which takes few sweeps if chains mix fast; otherwise elimination has little fill-in, and each remaining model is
solved by sparse LU. Without discounting, LU is used from the start.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from urbe.mdp.evaluate import chosen_rows, policy_value
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

DENSE_STATES = 64

MOST_NUMBERS = 1_000_000
"""Coefficients of dense systems at a time."""

MOST_SWEEPS = 300
ACCURACY = 1e-10
"""Sweeps stop when their bounds are this close, as a share of the largest value."""


def values_under_models(
    mdp: MDP, policy: IntArray, probability: FloatArray, reward: FloatArray | None = None
) -> FloatArray:
    """`(M, S)` values of a policy, zero at terminal states.

    Args:
      mdp: the pairs, successors, discount, and rewards if they are the same in every model.
      policy: `(S,)` action ids, -1 at terminal states.
      probability: `(M, E)` of the entries of `mdp.rows`.
      reward: `(M, R)` of the rows, if they differ.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=0.5)
    >>> values_under_models(mdp, np.array([0, 0]), np.array([[0.5, 0.5, 1.0], [1.0, 0.0, 1.0]]))[:, 0]
    array([1.33333333, 2.        ])
    """
    chosen = chosen_rows(mdp, policy)
    if mdp.discount == 1.0:
        return _one_by_one(mdp, policy, probability, reward, np.arange(len(probability)))
    p = np.ascontiguousarray(probability[:, mdp.rows.entries_of(chosen)].T)  # (entries of the policy, M)
    taken = mdp.rows.take(chosen)
    if reward is not None:
        r = np.ascontiguousarray(reward[:, chosen].T)
    elif taken.entry_reward is None:
        r = np.repeat(taken.reward[:, None], len(probability), axis=1)
    else:
        r = np.add.reduceat(p * taken.entry_reward[:, None], taken.entry_start[:-1], axis=0, dtype=np.float64)
    live = np.flatnonzero(~mdp.terminal)
    place = np.full(mdp.n_states, len(live))  # of a successor among the live states; terminal ones share the last
    place[live] = np.arange(len(live))
    successor = place[taken.successor]
    values = np.zeros((len(probability), mdp.n_states))
    if len(live) <= DENSE_STATES:
        values[:, live] = _dense(taken.entry_row, successor, p, r, mdp.discount)
        return values
    v, done = _sweeps(taken.entry_start, successor, p, r, mdp.discount, bool(mdp.terminal.any()))
    values[:, live] = v.T
    left = np.flatnonzero(~done)
    values[left] = _one_by_one(mdp, policy, probability, reward, left)
    return values


def _dense(row: IntArray, successor: IntArray, p: FloatArray, r: FloatArray, discount: float) -> FloatArray:
    n_live, n_models = r.shape
    inside, diagonal = successor < n_live, np.arange(n_live)
    values = np.empty((n_models, n_live))
    size = max(MOST_NUMBERS // max(n_live**2, 1), 1)
    for first in range(0, n_models, size):
        part = slice(first, first + size)
        system = np.zeros((len(values[part]), n_live, n_live))
        system[:, row[inside], successor[inside]] = -discount * p[inside, part].T
        system[:, diagonal, diagonal] += 1.0
        values[part] = np.linalg.solve(system, r[:, part].T[..., None])[..., 0]
    return values


def _one_by_one(
    mdp: MDP, policy: IntArray, probability: FloatArray, reward: FloatArray | None, models: IntArray
) -> FloatArray:
    rows = mdp.rows
    out = np.empty((len(models), mdp.n_states))
    for at, m in enumerate(models):
        r = rows.reward if reward is None else reward[m]
        drawn = Rows(rows.n_states, rows.entry_start, rows.successor, probability[m], r)
        out[at] = policy_value(mdp.with_rows(drawn), policy)
    return out


def _sweeps(
    start: IntArray, successor: IntArray, p: FloatArray, r: FloatArray, discount: float, ends: bool
) -> tuple[FloatArray, BoolArray]:
    """`(live, M)` values in the middle of their bounds, and which models' bounds have met."""
    n_live, n_models = r.shape
    v, new = np.zeros((n_live + 1, n_models)), np.zeros((n_live + 1, n_models))
    lo, hi = np.empty(n_models), np.empty(n_models)
    later = discount / (1.0 - discount)
    for _ in range(MOST_SWEEPS):
        lo[:], hi[:] = (0.0, 0.0) if ends else (np.inf, -np.inf)
        _sweep(start, successor, p, r, discount, v, new, lo, hi)
        v, new = new, v
        done = later * (hi - lo) <= ACCURACY * np.abs(v).max(axis=0)
        if done.all():
            break
    return v[:-1] + 0.5 * later * (lo + hi), done


@njit(cache=True, nogil=True)
def _sweep(start, successor, p, r, discount, v, new, lo, hi):
    """new = r + discount P v for every model, and the least and largest change; models are contiguous in memory."""
    n_models = v.shape[1]
    total = np.empty(n_models)
    for i in range(len(start) - 1):
        total[:] = 0.0
        for e in range(start[i], start[i + 1]):
            j = successor[e]
            for m in range(n_models):
                total[m] += p[e, m] * v[j, m]
        for m in range(n_models):
            new[i, m] = r[i, m] + discount * total[m]
            change = new[i, m] - v[i, m]
            lo[m] = min(lo[m], change)
            hi[m] = max(hi[m], change)
