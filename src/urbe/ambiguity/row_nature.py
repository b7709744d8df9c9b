"""Nature for sets that solve each row independently, with the same functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from urbe import checks
from urbe.ambiguity.entries import on_entries, row_blocks
from urbe.ambiguity.moments import RowMoments, answers_with_itself, moments_of_kernel
from urbe.ambiguity.nature import PlainNature, RowMemory, WorstCase, exponent, rescaled
from urbe.ambiguity.sweep import RowFunction, RowProblem, generated_minimiser, generated_sweep
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray, Support
from urbe.workers import SERIAL, Workers


class RowKernel(NamedTuple):
    """The functions of one set. Only the first three are needed; the others are faster, and tests compare them.

    Attributes:
      minimiser: the row function from which all loops are made, see `urbe.ambiguity.sweep`.
      distance: `(q, p, data) -> (k,)`, the distance that defines the balls; plain NumPy on k rows at once.
      dual: `(p, z, low, radius, data) -> (k,)`, lower bounds on the values of k rows by weak duality; plain NumPy in
        extended precision, written independently of the minimiser. As for `distance`, rows of one length n come
        together: p, q and z are `(k, n)`, low and radius `(k,)`, data `(k, n, ...)`.
      accuracy, per_entry: bound on the error of a row's value as a multiple of max |z|, beyond that of a sum of n
        terms: accuracy + per_entry n.
      centred: whether `distance` is convex in q and zero at the row itself, so that mixing a kernel with the row brings
        it inside; certificates are tighter then.
      linear: whether the functions only add and compare values, so that values may have any size.
      unit: `(data) -> (k,)`, the largest distance that a unit of mass can move, if it is not about one.
      sweep: from `make_sweep`, or written by hand.
      minimise: from `make_minimiser`, if rounded answers must be brought back into the set; or written by hand.
      moments: from `make_moments`.
      sweep_and_moments: from `make_sweep_and_moments`; without this and `moments`, the minimiser gives the moments.
    """

    minimiser: RowFunction
    distance: Callable[[Any, Any, FloatArray], Any]
    dual: Callable[[Any, Any, Any, Any, FloatArray], Any]
    accuracy: float = 0.0
    sweep: Callable[..., None] | None = None
    minimise: Callable[..., None] | None = None
    moments: Callable[..., None] | None = None
    sweep_and_moments: Callable[..., None] | None = None
    centred: bool = False
    linear: bool = False
    per_entry: float = 0.0
    unit: Callable[[FloatArray], FloatArray] | None = None


@dataclass(frozen=True, eq=False)
class RowNature(PlainNature):
    """Nature that solves each row by a `RowKernel`; build one with `bind_rows`.

    Args:
      kernel: the set's functions.
      rows: rows in which every entry may receive mass.
      discount: the model's discount.
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
        longest = self.rows.longest
        return self.kernel.accuracy + self.kernel.per_entry * longest + (longest + 8) * 2.0**-53

    @property
    def singleton(self) -> bool:
        return self.kernel.centred and not self.radius.any() and answers_with_itself(self)

    def fresh(self) -> FloatArray | None:
        return np.zeros(self.rows.n_rows)

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
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

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        rows, w = self.rows, self.discount * v
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            _, kernel, m = rescaled(self, -k).worst_case(np.ldexp(w, -k), memory)
            kernel = replace(kernel, reward=rows.reward)
            return WorstCase(values_under(kernel, w), kernel, np.ldexp(m, k))
        q, m, sent = np.empty(rows.n_entries), np.empty(rows.n_entries), np.zeros(rows.n_rows)
        minimise = self.kernel.minimise or generated_minimiser(self.kernel.minimiser)
        hint = np.zeros(rows.n_rows) if memory is None else memory
        minimise(self._problem(w), rows.entry_reward, hint, np.empty((5, rows.longest)), q, m, sent)
        kernel = Rows(rows.n_states, rows.entry_start, rows.successor, q, rows.reward)
        if sent.any():
            kernel = with_receiver(kernel, int(np.argmin(w)), sent)
        return WorstCase(values_under(kernel, w), kernel, m)

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
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
        data = self.data[self.rows.entries_of(chosen)] if self.data.shape[1] else self.data
        return replace(self, rows=self.rows.take(chosen), radius=self.radius[chosen], data=data)

    @property
    def ball_radius(self) -> FloatArray | None:
        return self.radius / self._unit() if self.kernel.centred else None

    def excess(self, kernel: Rows) -> FloatArray:
        out, unit, (q, stray) = np.empty(self.rows.n_rows), self._unit(), on_entries(self.rows, kernel)
        for some, entries in row_blocks(self.rows):
            own, p, data = q[entries], self.rows.probability[entries], self._data(entries)
            if self.everywhere:  # mass that leaves the row is one more entry
                own, p = np.column_stack([own, stray[some]]), np.column_stack([p, np.zeros(len(some))])
                data = np.concatenate([data, np.zeros_like(data[:, :1])], axis=1)
            mass = own.sum(axis=1)
            with np.errstate(all="ignore"):
                apart = (self.kernel.distance(own, p, data) - self.radius[some]) / unit[some]
            simplex = np.maximum(-own.min(axis=1), np.abs(mass - 1.0) - 1e-12)
            out[some] = np.where(mass > 0.0, np.maximum(np.maximum(apart, simplex), 0.0), np.inf)
        return out if self.everywhere else np.where(stray > 0.0, np.inf, out)

    def dual_bound(self, v: FloatArray) -> FloatArray:
        rows, w = self.rows, self.discount * v
        k = 0 if self.kernel.linear else exponent(w, rows.entry_reward)
        if k:
            return np.ldexp(rescaled(self, -k).dual_bound(np.ldexp(w, -k)), k) + rows.row_reward
        out = rows.row_reward.astype(np.longdouble)
        z = rows.successor_values(w)
        for some, entries in row_blocks(rows):
            p, own = rows.probability[entries].astype(np.longdouble), z[entries].astype(np.longdouble)
            low = np.minimum(own.min(axis=1), self._outside(w))
            with np.errstate(all="ignore"):
                out[some] += self.kernel.dual(p, own, low, self.radius[some].astype(np.longdouble), self._data(entries))
        return out.astype(np.float64)

    def _problem(self, w: FloatArray) -> RowProblem:
        rows = self.rows
        arrays = rows.entry_start, rows.successor, rows.probability, self.data, self.radius
        return RowProblem(*arrays, self._outside(w), w)

    def _outside(self, w: FloatArray) -> float:
        return float(w.min()) if self.everywhere else np.inf

    def _data(self, entries: IntArray) -> FloatArray:
        return self.data[entries] if self.data.shape[1] else np.empty((*entries.shape, 0))

    def _unit(self) -> FloatArray:
        """`(R,)` the unit of distances in each row."""
        out = np.ones(self.rows.n_rows)
        if self.kernel.unit is not None:
            for some, entries in row_blocks(self.rows):
                out[some] = self.kernel.unit(self._data(entries))
        return out


def bind_balls(
    kernel: RowKernel,
    mdp: MDP,
    radius: Any,
    support: Support,
    *,
    most: float = np.inf,
    name: str = "radius",
    receiver: bool = False,
) -> RowNature:
    """Calls `bind_rows` after checking `support` and that `radius`, `name` in errors, is in [0, most] on all rows."""
    checks.one_of("support", support, ("nominal", "all"))
    of_rows = mdp.per_row(name, radius)
    checks.row_range(name, of_rows, 0.0, most, mdp.row_name)
    return bind_rows(kernel, mdp, of_rows, support=support, receiver=receiver)


def bind_rows(
    kernel: RowKernel,
    mdp: MDP,
    radius: FloatArray,
    *,
    support: Support = "nominal",
    receiver: bool = False,
    data: Callable[[Rows], FloatArray] | None = None,
) -> RowNature:
    """Makes a `RowNature` on `mdp` with the successors that `support` allows.

    Args:
      kernel: the set's functions.
      mdp: the model.
      radius: `(R,)` the set's parameter on each row.
      support: "nominal" or "all".
      receiver: whether, of the states outside a row, only the lowest one ever receives mass. Rows then stay
        sparse; otherwise `support="all"` lists every state in every row.
      data: further `(E, k)` numbers per entry of the final rows.
    """
    rows, everywhere = allowed_rows(mdp, support, receiver=receiver)
    extra = np.empty((rows.n_entries, 0)) if data is None else np.ascontiguousarray(data(rows))
    return RowNature(kernel, rows, mdp.discount, radius, extra, everywhere)


def allowed_rows(mdp: MDP, support: Support, *, receiver: bool) -> tuple[Rows, bool]:
    """Returns the rows with the allowed successors, and whether the lowest other state may receive mass, too."""
    rows, everywhere = mdp.rows.without_zeros, False
    if support == "all" and not mdp.rows.is_dense:
        require_all_rewards(mdp)
        everywhere = receiver
        rows = rows if receiver else mdp.rows.with_all_states()
    elif support == "all":
        rows = mdp.rows
    return rows, everywhere


def require_all_rewards(mdp: MDP) -> None:
    """Raises if rewards depend on the successor and some row does not list every state."""
    if mdp.rows.rewards_successors and not mdp.rows.is_dense:
        short = int(np.argmax(mdp.rows.length < mdp.n_states))
        raise ValueError(
            f'support="all" needs a reward for every successor, but {mdp.row_name(short)} lists '
            f"{mdp.rows.length[short]} of {mdp.n_states}. Rewards depend on the successor: list all successors "
            "(MDP.from_dense(..., keep_zeros=True)), or use rewards r(s, a)."
        )


def values_under(kernel: Rows, w: FloatArray) -> FloatArray:
    """`(R,)` sum_j q_j z_j of a kernel for discounted state values w."""
    if kernel.is_dense and not kernel.rewards_successors:
        return kernel.probability.reshape(kernel.n_rows, kernel.n_states) @ w + kernel.reward
    return kernel.row_sums(kernel.probability * kernel.successor_values(w)) + kernel.row_reward


def with_receiver(kernel: Rows, state: int, sent: FloatArray) -> Rows:
    """`kernel` with `sent[k] > 0` added to the probability of `state` in row k."""
    chosen = np.flatnonzero(sent > 0.0)
    # successors increase within a row, so (row, successor) increases over all entries
    key = kernel.entry_row.astype(np.int64) * kernel.n_states + kernel.successor
    at = np.searchsorted(key, chosen.astype(np.int64) * kernel.n_states + state)
    successor = np.insert(kernel.successor, at, state)
    probability = np.insert(kernel.probability, at, sent[chosen])
    entry_start = kernel.entry_start.copy()
    entry_start[1:] += np.cumsum(sent > 0.0)
    return Rows(kernel.n_states, entry_start, successor, probability, kernel.reward)
