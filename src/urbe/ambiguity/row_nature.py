"""Nature for every set whose rows are solved one by one with the same functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from urbe.ambiguity.evidence import RowEvidence, of_minimum
from urbe.ambiguity.moments import RowMoments, answers_with_itself, moments_of_kernel
from urbe.ambiguity.nature import WorstCase
from urbe.ambiguity.scale import exponent, rescaled
from urbe.ambiguity.sweep import RowFunction, RowProblem, generated_minimiser, generated_sweep
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray, Support
from urbe.workers import SERIAL, Workers


class RowKernel(NamedTuple):
    """The functions of one set. The first three are all it needs; the others are faster, and tested equal.

    Attributes:
      minimiser: the row function all loops are made from, see `urbe.ambiguity.sweep`.
      distance: `(q, p, data) -> float`, the distance whose balls the set is made of; plain NumPy on one row.
      dual: `(p, z, low, radius, data) -> float`, a lower bound on the row's value by weak duality; plain NumPy in
        extended precision, written independently of the minimiser.
      accuracy: bound on the error of a row's value as a multiple of max |z|, beyond that of a sum of n terms.
      centred: whether `distance` is convex in q and zero at the row itself, so that mixing a kernel with the row brings
        it inside; certificates are tighter then.
      linear: whether the functions only add and compare values, so that these may be of any size.
      unit: `(data) -> float`, the distance over which a unit of mass moves at most, where that is not about one.
      sweep: from `make_sweep`, or written by hand.
      minimise: from `make_minimiser`, where rounding has to be kept inside the set; or written by hand.
      moments: from `make_moments`.
      sweep_and_moments: from `make_sweep_and_moments`; without either the minimiser is asked for the moments.
    """

    minimiser: RowFunction
    distance: Callable[[FloatArray, FloatArray, FloatArray], float]
    dual: Callable[[FloatArray, FloatArray, float, float, FloatArray], float]
    accuracy: float = 0.0
    sweep: Callable[..., None] | None = None
    minimise: Callable[..., None] | None = None
    moments: Callable[..., None] | None = None
    sweep_and_moments: Callable[..., None] | None = None
    centred: bool = False
    linear: bool = False
    unit: Callable[[FloatArray], float] | None = None


@dataclass(frozen=True, eq=False)
class RowNature:
    """Nature that solves each row by a `RowKernel`; build one with `bind_rows`.

    Args:
      kernel: the set's functions.
      rows: rows whose every entry may receive mass.
      discount: the model's.
      radius: `(R,)` the set's parameter on each row.
      data: `(E, k)` further numbers per entry.
      everywhere: whether mass may also go to the lowest state outside a row.
    """

    kernel: RowKernel
    rows: Rows
    discount: float
    radius: FloatArray
    data: FloatArray
    everywhere: bool

    @property
    def accuracy(self) -> float:
        """See `Nature`."""
        return self.kernel.accuracy + (self.rows.longest + 8) * 2.0**-53

    @property
    def singleton(self) -> bool:
        """See `Nature`."""
        return self.kernel.centred and not self.radius.any() and answers_with_itself(self)

    def fresh(self) -> FloatArray | None:
        """See `Nature`."""
        return np.zeros(self.rows.n_rows)

    def values(
        self,
        v: FloatArray,
        shift: float = 0.0,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> FloatArray:
        """See `Nature`."""
        rows, w = self.rows, self.discount * v
        out = np.empty(rows.n_rows) if out is None else out
        constant = self.discount * shift
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            small = rescaled(self, -k).values(np.ldexp(w, -k), 0.0, workers, None, memory)
            out[:] = np.ldexp(small, k) + constant + rows.row_reward
            return out
        hint = np.zeros(rows.n_rows) if memory is None else memory
        problem, sweep = self._problem(w), self.kernel.sweep or generated_sweep(self.kernel.minimiser)

        def task(first: int, last: int) -> None:
            sweep(
                first, last, problem, rows.entry_reward, rows.reward, constant, hint, np.empty((5, rows.longest)), out
            )

        workers.run(rows.entry_start, task)
        return out

    def worst_case(self, v: FloatArray, memory: FloatArray | None = None) -> WorstCase:  # noqa: ARG002
        """See `Nature`."""
        rows, w = self.rows, self.discount * v
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            _, kernel, m = rescaled(self, -k).worst_case(np.ldexp(w, -k))
            kernel = replace(kernel, reward=rows.reward)
            return WorstCase(values_under(kernel, w), kernel, np.ldexp(m, k))
        q, m, sent = np.empty(rows.n_entries), np.empty(rows.n_entries), np.zeros(rows.n_rows)
        minimise = self.kernel.minimise or generated_minimiser(self.kernel.minimiser)
        minimise(self._problem(w), rows.entry_reward, np.empty((5, rows.longest)), q, m, sent)
        kernel = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        if sent.any():
            kernel = with_receiver(kernel, int(np.argmin(w)), sent)
        return WorstCase(values_under(kernel, w), kernel, m)

    def moments(
        self,
        v: FloatArray,
        shift: float,
        u: FloatArray,
        value: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> RowMoments:
        """See `Nature`."""
        kernel, rows, w = self.kernel, self.rows, self.discount * v
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            value = self.values(v, shift) if value is None else value
            small = rescaled(self, -k).moments(np.ldexp(w, -k), 0.0, u)
            return RowMoments(value, np.ldexp(small.scatter, 2 * k), small.carried)
        hint = np.zeros(rows.n_rows) if memory is None else memory
        scatter, carried = np.empty(rows.n_rows), np.empty(rows.n_rows)
        u_outside = float(u[np.argmin(w)]) if self.everywhere else 0.0
        work, problem = np.empty((6, rows.longest)), self._problem(w)
        if kernel.sweep_and_moments is not None:
            value = np.empty(rows.n_rows)
            kernel.sweep_and_moments(
                problem,
                rows.entry_reward,
                rows.reward,
                self.discount * shift,
                u,
                u_outside,
                hint,
                work,
                value,
                scatter,
                carried,
            )
        elif kernel.moments is not None:
            value = self.values(v, shift, memory=hint) if value is None or memory is None else value
            bare = value - self.discount * shift - rows.row_reward
            kernel.moments(problem, rows.entry_reward, u, u_outside, bare, hint, work, scatter, carried)
        else:
            return moments_of_kernel(self, v, shift, u, value)
        return RowMoments(value, scatter, carried)

    def take(self, chosen: IntArray) -> RowNature:
        """See `Nature`."""
        data = self.data[self.rows.entries_of(chosen)] if self.data.shape[1] else self.data
        return replace(self, rows=self.rows.take(chosen), radius=self.radius[chosen], data=data)

    @property
    def ball_radius(self) -> FloatArray | None:
        """See `Nature`."""
        return self.radius / self._unit() if self.kernel.centred else None

    def excess(self, kernel: Rows) -> FloatArray:
        """See `Nature`."""
        out, unit = np.empty(self.rows.n_rows), self._unit()
        for row in range(self.rows.n_rows):
            a, b = self.rows.entry_start[row : row + 2]
            c, d = kernel.entry_start[row : row + 2]
            q = dict(zip(kernel.successor[c:d].tolist(), kernel.probability[c:d], strict=True))
            known = self.rows.successor[a:b].tolist()
            inside = np.array([q.pop(j, 0.0) for j in known], dtype=kernel.probability.dtype)
            stray = sum(q.values(), kernel.probability.dtype.type(0.0))
            p, data = self.rows.probability[a:b], self.data[a:b]
            if stray > 0.0 and self.everywhere:
                inside, p = np.append(inside, stray), np.append(p, 0.0)
                data = np.vstack([data, np.zeros((1, data.shape[1]))])
                stray = 0.0
            if stray > 0.0 or not inside.sum() > 0.0:
                out[row] = np.inf
                continue
            simplex = max(-inside.min(), abs(inside.sum() - 1.0) - 1e-12, 0.0)
            out[row] = max((self.kernel.distance(inside, p, data) - self.radius[row]) / unit[row], simplex)
        return out

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """See `Nature`."""
        rows, w = self.rows, self.discount * v
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            return np.ldexp(rescaled(self, -k).dual_bound(np.ldexp(w, -k)), k) + rows.row_reward
        outside, entry_reward = self._outside(w), rows.entry_reward
        out = np.array(rows.row_reward, dtype=np.float64)
        for row in range(rows.n_rows):
            a, b = rows.entry_start[row : row + 2]
            z = w[rows.successor[a:b]] + (0.0 if entry_reward is None else entry_reward[a:b])
            low = min(outside, float(z.min()))
            out[row] += self.kernel.dual(rows.probability[a:b], z, low, float(self.radius[row]), self.data[a:b])
        return out

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """See `Nature`."""
        return of_minimum(self, kernel)

    def _problem(self, w: FloatArray) -> RowProblem:
        rows = self.rows
        arrays = rows.entry_start, rows.successor, rows.probability, self.data, self.radius
        return RowProblem(*arrays, self._outside(w), w)

    def _outside(self, w: FloatArray) -> float:
        return float(w.min()) if self.everywhere else np.inf

    def _unit(self) -> FloatArray:
        """`(R,)` the unit of distances in each row."""
        start, unit = self.rows.entry_start, self.kernel.unit
        if unit is None:
            return np.ones(self.rows.n_rows)
        return np.array([unit(self.data[a:b]) for a, b in pairwise(start)])


def bind_rows(
    kernel: RowKernel,
    mdp: MDP,
    radius: FloatArray,
    *,
    support: Support = "nominal",
    receiver: bool = False,
    data: Callable[[Rows], FloatArray] | None = None,
) -> RowNature:
    """Nature on `mdp` with the rows that `support` allows.

    Args:
      kernel: the set's functions.
      mdp: the model.
      radius: `(R,)` the set's parameter on each row.
      support: "nominal" or "all".
      receiver: whether, of the states outside a row, only the lowest one ever receives mass. Rows then stay
        sparse; otherwise `support="all"` lists every state in every row.
      data: further `(E, k)` numbers per entry of the rows as finally listed.
    """
    rows, everywhere = mdp.rows.without_zeros, False
    if support == "all" and not mdp.rows.is_dense:
        if mdp.rows.rewards_successors:
            short = int(np.argmax(mdp.rows.length < mdp.n_states))
            raise ValueError(
                f'support="all" needs a reward for every successor, but {mdp.row_name(short)} lists '
                f"{mdp.rows.length[short]} of {mdp.n_states}. Rewards here depend on the successor: list them all "
                "(MDP.from_dense(..., keep_zeros=True)), or use rewards r(s, a)."
            )
        everywhere = receiver
        rows = rows if receiver else mdp.rows.with_all_states()
    elif support == "all":
        rows = mdp.rows
    extra = np.empty((rows.n_entries, 0)) if data is None else np.ascontiguousarray(data(rows))
    return RowNature(kernel, rows, mdp.discount, radius, extra, everywhere)


def values_under(kernel: Rows, w: FloatArray) -> FloatArray:
    """`(R,)` sum_j q_j z_j of a kernel for discounted state values w."""
    z = w[kernel.successor]
    entry_reward = kernel.entry_reward
    if entry_reward is not None:
        return kernel.row_sums(kernel.probability * (z + entry_reward))
    return kernel.row_sums(kernel.probability * z) + kernel.reward


def with_receiver(kernel: Rows, state: int, sent: FloatArray) -> Rows:
    """`kernel` with `sent[k] > 0` added to the probability of `state` in row k."""
    chosen = np.flatnonzero(sent > 0.0)
    # successors increase within a row, so (row, successor) does over all entries
    key = kernel.entry_row.astype(np.int64) * kernel.n_states + kernel.successor
    at = np.searchsorted(key, chosen.astype(np.int64) * kernel.n_states + state)
    successor = np.insert(kernel.successor, at, state)
    probability = np.insert(kernel.probability, at, sent[chosen])
    entry_start = kernel.entry_start.copy()
    entry_start[1:] += np.cumsum(sent > 0.0)
    return Rows(kernel.n_states, entry_start, successor, probability, kernel.reward)
