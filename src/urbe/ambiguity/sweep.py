"""The loops over rows that all sets share; a set provides functions of one row.

A set's inner problem on one row is written once, as a plain function marked with `row_function`:

    minimiser(p, z, low, radius, data, work, q, m)     -> mass sent outside the row; fills q and m

All loops can be made from it: sweeps, worst-case kernels, sensitivities and moments. A set may add a faster function
for the value, which tests compare with the first:

    worst(p, z, low, radius, data, hint, work)         -> value, hint

    p      (n,)    nominal probabilities                z     (n,)   value of each successor
    low    scalar  lowest value that may receive mass, in the row or outside
    data   (n, k)  further numbers per entry            hint  scalar result of the last `worst` on this row
    work   (4, n)  scratch                              q, m  (n,)   minimiser and sensitivity

`worst` may start from `hint` (a threshold, a multiplier) but its value must not depend on it beyond rounding: hints
only make a sweep faster. A set may also provide its own sweep with the same arguments (`l1`, `block_sweep`).

Compiled code is cached on disk, under a name that depends on the text of the file that defines the row functions.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.types import FloatArray, IntArray

RowFunction = Callable[..., Any]

FAST = {"reassoc", "contract", "nsz", "arcp", "nnan"}
"""Sums may be reordered (values are finite); the certified bounds hold for any order."""

row_function = register_jitable(fastmath=FAST)
"""Marks a function of one row whose sums may be reordered."""

in_order = register_jitable(fastmath={"nsz", "nnan"})
"""Marks a function whose operations are neither reordered nor fused, even if its caller's are.

A function without options inherits those of its caller.
"""


@dataclass(frozen=True)
class WhenCalled:
    """A compiled loop that is made on its first call; other compiled code gets it from `compiled`."""

    compiled: Callable[[], Callable[..., Any]]

    def __call__(self, *arguments: Any) -> Any:
        """Calls the loop."""
        return self.compiled()(*arguments)


def when_called(make: Callable[..., Callable[..., Any]]) -> Callable[..., WhenCalled]:
    """Delays making a compiled loop until its first call, so that importing a set costs nothing."""
    return lambda *functions: WhenCalled(cache(lambda: make(*functions)))


class RowProblem(NamedTuple):
    """The inputs of every loop over rows, except r: `(E,)` rewards of successors, or None if there are none.

    r is a separate argument, so that the compiler can remove its branches.

    Attributes:
      start, successor, p: rows as in `Rows`: `(R + 1,)`, `(E,)`, `(E,)`.
      data: `(E, k)` further numbers per entry.
      radius: `(R,)` the set's parameter.
      outside: the lowest value outside a row that may receive mass; infinite if mass may not leave the row.
      w: `(S,)` discounted state values.
    """

    start: IntArray
    successor: IntArray
    p: FloatArray
    data: FloatArray
    radius: FloatArray
    outside: float
    w: FloatArray


@cache
def generated_sweep(minimiser: RowFunction) -> Callable[..., None]:
    """Makes a sweep from the minimiser: q . z of every row."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(minimiser)
    def generated(first, last, problem, r, reward, shift, hint, work, out):
        start, successor, p, data, radius, outside, w = problem
        q, m = np.empty(work.shape[1]), np.empty(work.shape[1])
        for row in range(first, last):
            a = np.int64(start[row])
            n = np.int64(start[row + 1]) - a
            z, low = gather(a, n, successor, r, w, outside, work)
            sent = minimiser(p[a : a + n], z, low, radius[row], data[a : a + n], work[1:, :n], q[:n], m[:n])
            value = sent * low if sent > 0.0 else 0.0
            for j in range(n):
                value += q[j] * z[j]
            out[row] = whole(value, shift, 0.0 if r is not None else reward[row])

    return generated


@when_called
def make_sweep(worst: RowFunction) -> Callable[..., None]:
    """Makes a compiled sweep over the rows `first .. last` that writes `out` and updates `hint`."""

    @njit(cache=True, nogil=True, fastmath=FAST)
    @named_after(worst)
    def sweep(first, last, problem, r, reward, shift, hint, work, out):
        start, successor, p, data, radius, outside, w = problem
        for row in range(first, last):
            a = np.int64(start[row])
            n = np.int64(start[row + 1]) - a
            z, low = gather(a, n, successor, r, w, outside, work)
            value, hint[row] = worst(p[a : a + n], z, low, radius[row], data[a : a + n], hint[row], work[1:, :n])
            out[row] = whole(value, shift, 0.0 if r is not None else reward[row])

    return sweep


@in_order
def whole(value, shift, reward):
    """Sums the value of a row in a fixed order, so that all loops give the same bits."""
    return value + shift + reward


@row_function
def gather(a, n, successor, r, w, outside, work):
    """Returns the values z of a row's successors, in `work[0]`, and the lowest value that may receive mass."""
    z = work[0, :n]
    low = outside
    for j in range(n):
        z[j] = w[np.uint32(successor[a + j])]
        if r is not None:
            z[j] += r[a + j]
        low = min(low, z[j])
    return z, low


@when_called
def make_minimiser(minimiser: RowFunction, distance: RowFunction | None = None) -> Callable[..., None]:
    """Makes a compiled loop that writes the worst-case kernel `q`, the mass sent outside its rows, and sensitivities.

    It does not read `hint`, the memory of an earlier sweep; a loop written by hand may.

    If the set is the ball of a convex `distance(q, p, sent)` around the row, an answer that rounding moved outside is
    mixed with the row: q + (1 - radius / d) (p - q) has a distance of at most `radius`.
    """

    @njit(cache=True, nogil=True)
    @named_after(*(minimiser,) if distance is None else (minimiser, distance))
    def loop(problem, r, hint, work, q, m, sent):
        start, successor, p, data, radius, outside, w = problem
        for row in range(len(start) - 1):
            a = np.int64(start[row])
            n = np.int64(start[row + 1]) - a
            z, low = gather(a, n, successor, r, w, outside, work)
            row_p, row_q = p[a : a + n], q[a : a + n]
            sent[row] = minimiser(row_p, z, low, radius[row], data[a : a + n], work[1:, :n], row_q, m[a : a + n])
            if distance is not None:
                far = distance(row_q, row_p, sent[row])
                if far > radius[row]:
                    back = 1.0 - radius[row] / far
                    sent[row] *= 1.0 - back
                    for j in range(n):
                        row_q[j] += back * (row_p[j] - row_q[j])

    return loop


@cache
def generated_minimiser(minimiser: RowFunction) -> Callable[..., None]:
    """Returns the loop of `make_minimiser` without a distance; made once for each minimiser."""
    return make_minimiser(minimiser)


def named_after(*functions: RowFunction) -> Callable[[RowFunction], RowFunction]:
    """Gives a loop made for row functions a unique name that depends on the texts of their files.

    Compiled code is cached and linked by name. With equal names, a process that loads code compiled by two others could
    confuse them, and outdated code could be loaded after a change.
    """
    names = "_".join(f"{function.__module__}_{function.__name__}" for function in functions).replace(".", "_")
    texts = sum(map(fingerprint, functions))

    def name(loop: RowFunction) -> RowFunction:
        loop.__qualname__ = f"{loop.__name__}_{names}_{texts:x}"
        return loop

    return name


def fingerprint(function: RowFunction) -> int:
    """A hash of the file of `function`, so that stale machine code is never loaded."""
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    return zlib.crc32(Path(file).read_bytes()) if file else 0
