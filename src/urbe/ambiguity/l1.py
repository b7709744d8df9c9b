"""L1 balls around a model's own rows.

    minimise  q . z   subject to  ||q - p||_1 <= radius,  q in the simplex

moves mass radius / 2 from the highest successors to the lowest one. With tau the value at which the removal stops,
the dual is

    max_tau  sum_j p_j min(z_j, tau) - radius / 2 (tau - low),

attained where the mass above tau is at most radius / 2 and the mass at or above tau at least radius / 2. A sweep first
tests the entry at which the row's removal stopped before, in one pass without branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from urbe import checks
from urbe.ambiguity.l1_dense import with_shared_order
from urbe.ambiguity.l1_search import move_mass, stopping_value
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, gather, row_function
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support


@dataclass(frozen=True, eq=False)
class L1Ball(RectangularSet):
    """U(s, a) = {q in simplex : ||q - pbar(s, a)||_1 <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, in [0, 2]; twice the total-variation distance.
      support: successors that may receive mass: the row's own ("nominal"), or every state ("all").

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> urbe.L1Ball(0.4).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.3, 2. ])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        nature = bind_balls(KERNEL, mdp, self.radius, self.support, most=2.0, receiver=True)
        return with_shared_order(nature) if nature.rows.is_dense and not nature.rows.rewards_successors else nature


BITS = 26
MARGINAL = (1 << BITS) - 1
"""A row's hint packs two entries: where the removal stopped, and the lowest one, shifted by BITS."""

BLOCK = 4096
"""Rows per call; a call for each row would cost as much as the row."""


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep(first, last, problem, r, reward, shift, hint, work, out):
    """Sweeps in blocks: a first attempt on all rows, then a search on the failed ones while they are in the cache."""
    stale = np.empty(BLOCK, dtype=np.bool_)
    for at in range(first, last, BLOCK):
        end = min(at + BLOCK, last)
        if hint[at:end].any():
            _attempt(at, end, problem, r, reward, shift, hint, stale, out)
        else:  # there is no memory yet
            stale[: end - at] = True
        _settle(at, end, stale, problem, r, reward, shift, hint, work, out)


@row_function
def _attempt(first, last, problem, r, reward, shift, hint, stale, out):
    """Makes one pass without branches at each row's last stopping entry; marks rows where it moved in `stale`."""
    start, successor, p, _, radius, outside, w = problem
    for row in range(first, last):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor = p[a : a + n], successor[a : a + n]
        code = np.int64(hint[row])
        marginal, lowest = np.uint32(code & MARGINAL), np.uint32(code >> BITS)
        tau, least = w[np.uint32(row_successor[marginal])], w[np.uint32(row_successor[lowest])]
        if r is not None:
            tau += r[a + marginal]
            least += r[a + lowest]
        total, above, below = 0.0, 0.0, 0.0
        for j in range(n):
            z = w[np.uint32(row_successor[j])]
            if r is not None:
                z += r[a + j]
            total += row_p[j] * min(z, tau)
            above += row_p[j] if z > tau else 0.0
            below += 1.0 if z < least else 0.0
        moved = 0.5 * radius[row]
        low = min(least, outside)
        stale[row - first] = (above > moved) | (above + row_p[marginal] < moved) | (below > 0.0)
        out[row] = total - moved * (tau - low) + shift
        if r is None:
            out[row] += reward[row]


@row_function
def _settle(first, last, stale, problem, r, reward, shift, hint, work, out):
    """Finds where the removal stops on the stale rows."""
    start, successor, p, _, radius, outside, w = problem
    for row in range(first, last):
        if not stale[row - first]:
            continue
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        values = work[0, :n]
        row_p, row_successor = p[a : a + n], successor[a : a + n]
        for j in range(n):
            values[j] = w[np.uint32(row_successor[j])]
            if r is not None:
                values[j] += r[a + j]
        moved = 0.5 * radius[row]
        guess = values[np.int64(hint[row]) & MARGINAL]
        tau, least = stopping_value(row_p, values, moved, guess, work[1, :n])
        total, stop, bottom = 0.0, 0, 0
        for j in range(n):
            total += row_p[j] * min(values[j], tau)
            stop = j if values[j] == tau else stop
            bottom = j if values[j] == least else bottom
        hint[row] = stop + (bottom << BITS)
        out[row] = total - moved * (tau - min(least, outside)) + shift
        if r is None:
            out[row] += reward[row]


@row_function
def _minimiser(p, z, low, radius, data, work, q, m):
    """Moves mass radius / 2 from the highest successors to the first of the lowest; see `urbe.ambiguity.sweep`."""
    tau, _ = stopping_value(p, z, 0.5 * radius, z[0], work[0])
    return move_mass(p, z, low, 0.5 * radius, tau, q, m)


@njit(cache=True, nogil=True)
def _minimise(problem, r, hint, work, q, m, sent):
    """The loop of `make_minimiser`: a sweep over all rows finds where each removal stops, then mass is moved."""
    start, successor, p, data, radius, outside, w = problem
    n_rows = len(start) - 1
    unused = np.zeros(n_rows)
    _sweep(0, n_rows, problem, r, unused, 0.0, hint, work, unused)
    for row in range(n_rows):
        a, b = np.int64(start[row]), np.int64(start[row + 1])
        z, low = gather(a, b - a, successor, r, w, outside, work)
        tau = z[np.int64(hint[row]) & MARGINAL]
        sent[row] = move_mass(p[a:b], z, low, 0.5 * radius[row], tau, q[a:b], m[a:b])


@njit(cache=True, nogil=True, fastmath=FAST)
def _moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments` in one pass over each row: m = min(z, tau), whose mean follows from the row's value.

    The mass above tau moves to the lowest successor, and so does the rest of radius / 2 from the mass at tau.
    """
    start, successor, p, data, radius, outside, w = problem
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        code = np.int64(hint[row])
        marginal, lowest = code & MARGINAL, code >> BITS
        tau, least = w[np.int64(successor[a + marginal])], w[np.int64(successor[a + lowest])]
        low, u_low = outside, u_outside
        if r is not None:
            tau += r[a + marginal]
            least += r[a + lowest]
        if least <= outside:
            low, u_low = least, u[np.int64(successor[a + lowest])]
        moved = 0.5 * radius[row]
        mean = bare[row] + moved * (tau - low)
        first, square, above, kept_u = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            state = np.uint32(successor[a + j])
            z = w[state]
            if r is not None:
                z += r[a + j]
            m = min(z, tau) - mean
            first += p[a + j] * m
            square += p[a + j] * m * m
            over = p[a + j] if z > tau else 0.0
            above += over
            kept_u += (p[a + j] - over) * u[state]
        left = max(moved - above, 0.0) if tau > low else 0.0
        at, at_u = p[a + marginal], u[np.int64(successor[a + marginal])]
        if left > at:  # several successors at tau share the removal
            at, at_u = 0.0, 0.0
            for j in range(n):
                state = np.uint32(successor[a + j])
                z = w[state]
                if r is not None:
                    z += r[a + j]
                at += p[a + j] if z == tau else 0.0
                at_u += p[a + j] * u[state] if z == tau else 0.0
            at_u /= at
            left = min(left, at)
        scatter[row] = max(square - first * first, 0.0)
        carried[row] = kept_u - left * at_u + (above + left) * u_low


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    return np.abs(q - p).sum(axis=1)


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """max over tau among `low` and the successors' values of sum_j p_j min(z_j, tau) - radius / 2 (tau - low)."""
    order = np.argsort(z, axis=1)
    p, tau = (np.take_along_axis(x, order, axis=1) for x in (p, z - low[:, None]))
    above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1] - p
    value = np.cumsum(p * tau, axis=1) + (above - radius[:, None] / 2.0) * tau
    return low + np.maximum(value.max(axis=1), 0.0)


KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    sweep=_sweep,
    minimise=_minimise,
    moments=_moments,
    centred=True,
    linear=True,
)
