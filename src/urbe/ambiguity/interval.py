"""Boxes: every probability lies between its own lower and upper bound.

    minimise  q . z   subject to  l <= q <= u,  q in the simplex

starts from l and fills the successors in increasing order of z until the mass is one. With tau the value at which
the filling stops, the dual is

    max_tau  tau + sum_j l_j max(z_j - tau, 0) - sum_j u_j max(tau - z_j, 0).

A sweep first tries the entry at which the row's filling stopped last time, and sorts only if it is no longer right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.entries import entry_keys, widened_rows
from urbe.ambiguity.moments import make_moments
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, gather, make_sweep
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, Support


@dataclass(frozen=True, eq=False)
class Interval(RectangularSet):
    """U(s, a) = {q in simplex : lower <= q <= upper}, entry by entry; the bounds do not depend on pbar.

    Args:
      lower, upper: in [0, 1]: a number for every successor the model lists, `(E,)` one per entry of `mdp.rows`, or
        dense `(S, A, S)`. A dense `upper` above zero where the model has no transition allows one there. None takes
        the model's own `mdp.bounds`.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.interval import Interval
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> Interval(0.3, 1.0).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.3, 2. ])
    """

    lower: ArrayLike | None = None
    upper: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is not None:
                checks.numbers(name, bound)

    def bind(self, mdp: MDP) -> RowNature:
        lower, upper = _given(mdp, "lower", self.lower, 0), _given(mdp, "upper", self.upper, 1)
        rows = mdp.rows
        if upper.ndim == 3:
            row, successor = np.nonzero(upper[mdp.row_state, mdp.action] > 0.0)
            rows = widened_rows(mdp, row.astype(np.int64) * mdp.n_states + successor)
        data = np.column_stack([_on_entries(lower, mdp, rows), _on_entries(upper, mdp, rows)])
        _check_boxes(mdp, rows, data)
        return RowNature(INTERVAL, rows, mdp.discount, np.zeros(rows.n_rows), data, False)


@dataclass(frozen=True, eq=False)
class LInfBall(RectangularSet):
    """U(s, a) = {q in simplex : |q_j - pbar_j(s, a)| <= radius(s, a) for every j}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, in [0, 1].
      support: successors that may receive mass: the row's own ("nominal"), or every state ("all"; rows then list
        every state).

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.interval import LInfBall
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> LInfBall(0.2).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.3, 2. ])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        return bind_balls(LINF, mdp, self.radius, self.support, most=1.0)


def _given(mdp: MDP, name: str, value: ArrayLike | None, side: int) -> FloatArray:
    if value is None:
        if mdp.bounds is None:
            raise ValueError(
                f"{name} is None, but the model has no bounds of its own. Give Interval(lower=..., upper=...), "
                "read the model from a file with intervals, or use LInfBall(radius)."
            )
        return mdp.bounds[side]
    array = checks.float_array(name, value)
    entries, dense = (mdp.rows.n_entries,), (mdp.n_states, mdp.n_actions, mdp.n_states)
    if array.shape not in ((), entries, dense):
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number, one per entry of mdp.rows {entries} or {dense}."
        )
    return array


def _on_entries(bound: FloatArray, mdp: MDP, rows: Rows) -> FloatArray:
    """`(E,)` the bound on each entry of `rows`; zero on entries that a bound per entry does not cover."""
    if bound.ndim == 3:
        return bound[mdp.row_state[rows.entry_row], mdp.action[rows.entry_row], rows.successor]
    if bound.ndim == 0:
        bound = np.full(mdp.rows.n_entries, float(bound))
    if rows is mdp.rows:
        return bound
    out = np.zeros(rows.n_entries)
    out[np.searchsorted(entry_keys(rows), entry_keys(mdp.rows))] = bound
    return out


def _check_boxes(mdp: MDP, rows: Rows, data: FloatArray) -> None:
    lower, upper = data[:, 0], data[:, 1]
    wrong = ~((lower >= 0.0) & (lower <= upper) & (upper <= 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"The bounds of {mdp.row_name(int(rows.entry_row[at]))} on successor {rows.successor[at]} are "
            f"[{lower[at]:g}, {upper[at]:g}], expected 0 <= lower <= upper <= 1. "
            f"{checks.some(int(wrong.sum()), len(wrong), 'entry', 'entries')} not an interval."
        )
    least, most = rows.row_sums(lower), rows.row_sums(upper)
    slack = np.maximum(1e-12, rows.length * 2.0**-52)  # rounding error of the sums
    empty = (least > 1.0 + slack) | (most < 1.0 - slack)
    if empty.any():
        at = int(np.argmax(empty))
        raise ValueError(
            f"No distribution lies within the bounds of {mdp.row_name(at)}: the lower ones sum to {least[at]:.12g} "
            f"(expected at most 1), the upper ones to {most[at]:.12g} (expected at least 1). "
            f"{checks.some(int(empty.sum()), rows.n_rows, 'row', 'rows')} empty; widen the bounds there."
        )


@register_jitable
def _sort(z, order):
    """Writes the entries in increasing order of z into `order`: Shell sort, insertion for short rows, in place."""
    n = z.shape[0]
    for j in range(n):
        order[j] = j
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            entry = order[i]
            level = z[int(entry)]
            k = i
            while k >= gap and z[int(order[k - gap])] > level:
                order[k] = order[k - gap]
                k -= gap
            order[k] = entry
        gap //= 3


@register_jitable
def _stopping_entry(lower, upper, z, free, order):
    _sort(z, order)
    for k in range(z.shape[0]):
        j = int(order[k])
        free -= upper[j] - lower[j]
        if free <= 0.0:
            return j
    return int(order[z.shape[0] - 1])


@register_jitable
def _value_at(lower, upper, z, marginal):
    """Returns the value if filling stops at the level of `marginal`, the free mass, and the mass filled below it."""
    tau = z[marginal]
    total = 0.0
    free = 1.0
    below = 0.0
    for j in range(z.shape[0]):
        filled = z[j] < tau
        total += (upper[j] if filled else lower[j]) * z[j]
        below += upper[j] - lower[j] if filled else 0.0
        free -= lower[j]
    return total + (free - below) * tau, free, below


@register_jitable
def _worst_in_box(lower, upper, z, hint, order):
    marginal = int(hint)
    value, free, below = _value_at(lower, upper, z, marginal)
    if below > free or below + upper[marginal] - lower[marginal] < free:
        marginal = _stopping_entry(lower, upper, z, free, order)
        value, free, below = _value_at(lower, upper, z, marginal)
    return value, float(marginal)


@register_jitable
def _fill(lower, upper, z, order, q):
    """Writes the minimiser into `q`; returns the level at which the filling stops."""
    _sort(z, order)
    free = 1.0
    for j in range(z.shape[0]):
        q[j] = lower[j]
        free -= lower[j]
    for k in range(z.shape[0]):
        j = int(order[k])
        room = upper[j] - lower[j]
        if room >= free:
            q[j] = lower[j] + max(free, 0.0)
            return z[j]
        q[j] = upper[j]
        free -= room
    return z[int(order[z.shape[0] - 1])]


@register_jitable
def _carried(lower, upper, z, u, marginal):
    """q . u for the box filled up to the level of `marginal`, where ties share the remaining mass."""
    tau = z[marginal]
    free, room, carried, carried_at = 1.0, 0.0, 0.0, 0.0
    for j in range(z.shape[0]):
        width = upper[j] - lower[j]
        free -= upper[j] if z[j] < tau else lower[j]
        carried += (upper[j] if z[j] < tau else lower[j]) * u[j]
        room += width if z[j] == tau else 0.0
        carried_at += width * u[j] if z[j] == tau else 0.0
    return carried + (min(max(free, 0.0), room) / room * carried_at if room > 0.0 else 0.0)


@register_jitable
def _interval_worst(p, z, low, radius, data, hint, work):
    return _worst_in_box(data[:, 0], data[:, 1], z, hint, work[0])


@register_jitable
def _interval_minimiser(p, z, low, radius, data, work, q, m):
    _fill(data[:, 0], data[:, 1], z, work[0], q)
    m[:] = 0.0  # the bounds do not depend on the model
    return 0.0


@register_jitable
def _interval_answer(p, z, u, low, u_low, radius, data, hint, work, m):
    m[:] = 0.0
    return _carried(data[:, 0], data[:, 1], z, u, int(hint))


@register_jitable
def _linf_box(p, radius, lower, upper):
    for j in range(p.shape[0]):
        lower[j] = max(p[j] - radius, 0.0)
        upper[j] = p[j] + radius  # a bound above one acts like one: the mass is at most one


@register_jitable
def _linf_worst(p, z, low, radius, data, hint, work):
    _linf_box(p, radius, work[1], work[2])
    return _worst_in_box(work[1], work[2], z, hint, work[0])


@register_jitable
def _linf_minimiser(p, z, low, radius, data, work, q, m):
    _linf_box(p, radius, work[1], work[2])
    tau = _fill(work[1], work[2], z, work[0], q)
    for j in range(p.shape[0]):
        # the upper bound counts below tau, the lower one above; a lower bound clipped at 0 stays there when p_j moves,
        # and an upper bound of 1 is never filled below tau
        m[j] = z[j] - tau if z[j] < tau or p[j] >= radius else 0.0
    return 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def _linf_moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments` with m as in `_linf_minimiser` and q as in `_carried`, without storing them."""
    start, successor, p, data, radius, outside, w = problem
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor, reach = p[a : a + n], successor[a : a + n], radius[row]
        z, _ = gather(a, n, successor, r, w, outside, work)
        tau, mean = z[int(hint[row])], 0.0
        for j in range(n):
            mean += row_p[j] * (z[j] - tau) if z[j] < tau or row_p[j] >= reach else 0.0
        square, free, filled, room, room_u = 0.0, 1.0, 0.0, 0.0, 0.0
        for j in range(n):
            u_j = u[np.uint32(row_successor[j])]
            m = z[j] - tau if z[j] < tau or row_p[j] >= reach else 0.0
            lower, upper = max(row_p[j] - reach, 0.0), row_p[j] + reach
            q = upper if z[j] < tau else lower
            width = upper - lower if z[j] == tau else 0.0
            square += row_p[j] * (m - mean) * (m - mean)
            free -= q
            filled += q * u_j
            room += width
            room_u += width * u_j
        scatter[row] = square
        carried[row] = filled + (min(max(free, 0.0), room) / room * room_u if room > 0.0 else 0.0)


def _interval_distance(q: Any, p: Any, data: FloatArray) -> Any:
    return np.maximum(data[..., 0] - q, q - data[..., 1]).max(axis=1)


def _linf_distance(q: Any, p: Any, data: FloatArray) -> Any:
    return np.abs(q - p).max(axis=1)


def _box_dual(lower: Any, upper: Any, z: Any, low: Any) -> Any:
    """max over tau among the z_j of tau + sum_j l_j max(z_j - tau, 0) - sum_j u_j max(tau - z_j, 0)."""
    order = np.argsort(z, axis=1)
    lower, upper, tau = (np.take_along_axis(x, order, axis=1) for x in (lower, upper, z - low[:, None]))
    above, above_mass = (np.cumsum(x[:, ::-1], axis=1)[:, ::-1] for x in (lower * tau, lower))
    below, below_mass = (np.cumsum(x, axis=1) for x in (upper * tau, upper))
    return low + (tau + (above - above_mass * tau) + (below - below_mass * tau)).max(axis=1)


def _interval_dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    return _box_dual(data[..., 0], data[..., 1], z, low)


def _linf_dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    return _box_dual(np.maximum(p - radius[:, None], 0.0), np.minimum(p + radius[:, None], 1.0), z, low)


# the free mass 1 - sum l and the mass filled before tau are sums of n terms too, each times tau
ACCURACY, PER_ENTRY = 8.0 * 2.0**-53, 2.0 * 2.0**-53

INTERVAL = RowKernel(
    _interval_minimiser,
    _interval_distance,
    _interval_dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=make_sweep(_interval_worst),
    moments=make_moments(_interval_answer),
    linear=True,
)
LINF = RowKernel(
    _linf_minimiser,
    _linf_distance,
    _linf_dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=make_sweep(_linf_worst),
    moments=_linf_moments,
    centred=True,
    linear=True,
)
