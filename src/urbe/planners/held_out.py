"""How policies fare on models drawn from the posterior that no plan has seen.

    v_m = r_m + gamma P_m v_m        for every drawn model m at once

Small models are solved as a stack of dense systems. Larger ones are swept together until the bounds of [MacQueen1966]
meet, which takes few sweeps where chains mix fast; where they do not, elimination fills little, and each model left is
solved by sparse LU. Without discounting that is done from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from urbe import checks
from urbe.mdp.evaluate import chosen_rows, policy_value
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.posteriors.dirichlet import Posterior
from urbe.types import BoolArray, FloatArray, IntArray

MOST_NUMBERS = 4_000_000
"""Probabilities drawn at a time; the draws depend on it, so it is fixed."""

ROUNDING = 1e-9
"""Of the largest value: below a promise by less than this is not below it."""

DENSE_STATES = 64
MOST_SWEEPS = 300
ACCURACY = 1e-10
"""Of the largest value: what sweeps leave between their bounds."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The values of one policy under M models drawn afresh.

    Attributes:
      values: `(M,)` from the start.
      below: share of the draws in which some state is worth less than was promised for it; NaN without draws.
    """

    values: FloatArray
    below: float

    @property
    def mean(self) -> float:
        """Mean over the draws, NaN without any."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    def percentile(self, share: float) -> float:
        """The lower quantile of the values at `share` in (0, 1), NaN without draws.

        The k-th lowest of M values with k = share (M + 1) rounded down, so that a new draw is below it with probability
        `share` at most; the lowest of them where M is too small for that.
        """
        checks.number("share", share, 0.0, 1.0)
        if not len(self.values):
            return float("nan")
        at = min(max(int(share * (len(self.values) + 1) + 1e-9), 1), len(self.values))
        return float(np.sort(self.values)[at - 1])

    def __repr__(self) -> str:
        return f"HeldOut({len(self.values)} draws, mean {self.mean:.6g}, 5% quantile {self.percentile(0.05):.6g})"


def hold_out(
    posterior: Posterior,
    policies: Sequence[IntArray],
    promised: Sequence[FloatArray],
    start: FloatArray,
    rng: np.random.Generator,
    draws: int,
) -> list[HeldOut]:
    """Values of each policy under the same `draws` models.

    Args:
      posterior: what the models are drawn from, rewards included where they are uncertain.
      policies: `(S,)` action ids each, -1 at terminal states.
      promised: `(S,)` each, compared with the values drawn.
      start: `(S,)` distribution of the first state.
      rng: generator used for nothing else.
      draws: how many models.
    """
    model = posterior.model
    size = max(MOST_NUMBERS // max(model.rows.n_entries, 1), 1)
    values: list[list[FloatArray]] = [[] for _ in policies]
    below = [0] * len(policies)
    for first in range(0, draws, size):
        n = min(size, draws - first)
        probability = posterior.draws(rng, n)
        reward = None if posterior.rewards is None else np.stack([posterior.rewards.sample(rng) for _ in range(n)])
        for k, policy in enumerate(policies):
            v = values_under_models(model, policy, probability, reward)
            values[k].append(v @ start)
            short = v < promised[k] - ROUNDING * np.abs(v).max(initial=0.0)
            below[k] += int(np.count_nonzero(short.any(axis=1)))
    return [
        HeldOut(np.concatenate([np.empty(0), *each]), count / draws if draws else float("nan"))
        for each, count in zip(values, below, strict=True)
    ]


def values_under_models(
    mdp: MDP, policy: IntArray, probability: FloatArray, reward: FloatArray | None = None
) -> FloatArray:
    """`(M, S)` values of a policy, zero at terminal states.

    Args:
      mdp: the pairs, successors, discount, and rewards if they are the same in every model.
      policy: `(S,)` action ids, -1 at terminal states.
      probability: `(M, E)` of the entries of `mdp.rows`.
      reward: `(M, R)` of the rows, where they differ.

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
    inside = successor < n_live
    system = np.zeros((n_models, n_live, n_live))
    system[:, row[inside], successor[inside]] = -discount * p[inside].T
    system[:, np.arange(n_live), np.arange(n_live)] += 1.0
    return np.asarray(np.linalg.solve(system, r.T[..., None])[..., 0], dtype=np.float64)


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
    """new = r + discount P v for every model, and the least and largest change; models side by side in memory."""
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
