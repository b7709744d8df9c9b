"""The moments of nature for the posterior variance of values: two sums for each row, in the same pass as its value.

    scatter(k)  = sum_j p_j (m_j - sum_i p_i m_i)^2         m the sensitivity of the row's worst case to its centre p
    carried(k) = sum_j q_j u(s'_j)                         q the worst-case row

Under a Dirichlet posterior of mean p and total N, scatter / (N + 1) is the variance of p . m; `carried` is the sum of
the successors' variances u. A set whose sweep stores its end (a level, a multiplier) provides

    answer(p, z, u, low, u_low, radius, data, hint, work, m) -> carried, fills m

which computes q and m from it, without another search or a stored kernel. `u_low` is the mean u of the successors at
`low`, `work` is (3, n) scratch, and the rest is as in `sweep`. A set whose search knows q and m only at its end
provides

    both(p, z, u, low, u_low, radius, data, hint, work, m) -> value, hint, carried, fills m

in its place, which replaces the sweep, too. All other natures compute their `worst_case`.
If successors tie, nature has several answers, and `carried` may belong to another one than `worst_case` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from urbe.ambiguity.sweep import FAST, RowFunction, gather, named_after, row_function, when_called, whole
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.ambiguity.nature import Nature


class RowMoments(NamedTuple):
    """Value, scatter and carried variance of every row, all `(R,)`; `value` equals `Nature.values`, bit for bit."""

    value: FloatArray
    scatter: FloatArray
    carried: FloatArray


def moments_of_kernel(
    nature: Nature,
    v: FloatArray,
    shift: float,
    u: FloatArray,
    value: FloatArray | None = None,
    memory: FloatArray | None = None,
) -> RowMoments:
    """Computes the moments of any nature from its kernel and sensitivity; arguments as in `Nature.moments`."""
    value = nature.values(v, shift, memory=memory) if value is None else value
    worst = nature.worst_case(v)
    rows, p, m = nature.rows, nature.rows.probability, worst.sensitivity
    deviation = m - rows.row_sums(p * m)[rows.entry_row]
    carried = worst.rows.row_sums(worst.rows.probability * u[worst.rows.successor])
    return RowMoments(value, rows.row_sums(p * deviation**2), carried)


def answers_with_itself(nature: Nature) -> bool:
    """Whether a set of radius 0 is a point: the minimisers in two opposite directions without ties are nominal."""
    probe = np.sin(np.arange(1.0, nature.rows.n_states + 1.0))
    own = nature.rows.probability
    return all(np.array_equal(nature.worst_case(v).rows.probability, own) for v in (probe, -probe))


@when_called
def make_moments(answer: RowFunction) -> Callable[..., None]:
    """Makes a compiled loop that writes `scatter` and `carried` of all rows, after a sweep at the same values."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(answer)
    def loop(problem, r, u, u_outside, bare, hint, work, scatter, carried):
        start, successor, p, data, radius, outside, w = problem
        for row in range(len(start) - 1):
            a = np.int64(start[row])
            n = np.int64(start[row + 1]) - a
            row_p, m = p[a : a + n], work[2, :n]
            z, low = gather(a, n, successor, r, w, outside, work)
            row_u, u_low = gather_u(a, n, successor, z, low, u, u_outside, work)
            carried[row] = answer(row_p, z, row_u, low, u_low, radius[row], data[a : a + n], hint[row], work[3:, :n], m)
            scatter[row] = spread_of(row_p, m)

    return loop


@when_called
def make_sweep_and_moments(both: RowFunction) -> Callable[..., None]:
    """Makes a compiled loop that sweeps over all rows like `make_sweep`, and also writes their moments."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(both)
    def loop(problem, r, reward, shift, u, u_outside, hint, work, out, scatter, carried):
        start, successor, p, data, radius, outside, w = problem
        for row in range(len(start) - 1):
            a = np.int64(start[row])
            n = np.int64(start[row + 1]) - a
            row_p, m = p[a : a + n], work[2, :n]
            z, low = gather(a, n, successor, r, w, outside, work)
            row_u, u_low = gather_u(a, n, successor, z, low, u, u_outside, work)
            value, hint[row], carried[row] = both(
                row_p, z, row_u, low, u_low, radius[row], data[a : a + n], hint[row], work[3:, :n], m
            )
            scatter[row] = spread_of(row_p, m)
            out[row] = whole(value, shift, 0.0 if r is not None else reward[row])

    return loop


@row_function
def gather_u(a, n, successor, z, low, u, u_outside, work):
    """Returns the u of a row's successors, in `work[1]`, and the mean u of the successors at `low`."""
    row_u = work[1, :n]
    ties, u_low = 0.0, 0.0
    for j in range(n):
        row_u[j] = u[np.uint32(successor[a + j])]
        lowest = 1.0 if z[j] == low else 0.0
        ties += lowest
        u_low += lowest * row_u[j]
    return row_u, u_low / ties if ties > 0.0 else u_outside


@row_function
def spread_of(p, m):
    """sum_j p_j (m_j - p . m)^2."""
    mean = 0.0
    for j in range(p.shape[0]):
        mean += p[j] * m[j]
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * (m[j] - mean) * (m[j] - mean)
    return total


@row_function
def unmoved(p, z, u, m):
    """The answer of a row without a choice: m = z, q = p."""
    carried = 0.0
    for j in range(p.shape[0]):
        m[j] = z[j]
        carried += p[j] * u[j]
    return carried
