"""Nature on a bound model, rectangular in (s, a): each row's worst case is computed separately.

For state values v nature solves the inner problem of every row k = (s, a)

    Q(k) = min_{q in U(k)} sum_j q_j z_j,        z_j = r(s, a, s'_j) + gamma v(s'_j),

and returns its value, a minimiser (the worst-case kernel) and the derivative with respect to the centre of the set (the
sensitivity). Q is monotone in v and Q(v + c) = Q(v) + gamma c.

Kernels work on values of moderate size: `exponent` and `rescaled` divide them by a power of two, which is multiplied
back afterwards. Multiplying by a power of two is exact, so a sweep over values near 1e300 or 1e-300 loses no accuracy,
and kernels need not protect squares and quotients against overflow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from urbe.ambiguity.evidence import RowEvidence, of_minimum
from urbe.ambiguity.moments import RowMoments, moments_of_kernel
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers

RowMemory = FloatArray | None
"""The warm start that a sweep leaves for the next one: `(R,)` numbers, or `(R, k)` if rows need several; or None."""


class WorstCase(NamedTuple):
    """Nature's answer to a value function.

    Attributes:
      value: `(R,)` Q(k).
      rows: the minimising kernel, one distribution per row of the model.
      sensitivity: `(E,)` m with dQ(k) = sum_j m_j dp_j when the centre p of the set moves by dp; defined up to a
        constant per row, since p stays a distribution.
    """

    value: FloatArray
    rows: Rows
    sensitivity: FloatArray


class Nature(Protocol):
    """The adversary of a bound model, which answers each row independently.

    The argument `memory` holds the numbers of an earlier sweep at which each row's search starts; it is updated
    in place and never changes a value beyond rounding. None means no warm start.
    """

    @property
    def rows(self) -> Rows:
        """The nominal rows."""

    @property
    def discount(self) -> float:
        """The model's discount."""

    @property
    def accuracy(self) -> float:
        """Bound on |values(v) - Q(v)| as a multiple of max |z| over all rows; certified bounds include it."""

    @property
    def singleton(self) -> bool:
        """Whether every row's set contains only the row itself."""

    def fresh(self) -> FloatArray | None:
        """Returns a fresh memory, with one row for each of `rows`; None if sweeps use no memory."""

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        """`(R,)` Q at the state values `v + shift`, by one sweep; `shift` is added after the inner problem.

        The result is written into `out` if given, which saves large models a fresh allocation at every sweep.
        """

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        """Computes value, kernel and sensitivity at `v`; slower than `values`, and needed once."""

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
        """Computes value, scatter and carried variance of every row at `v + shift` with variances u.

        `value` is the result of `values` at the same values and with the same `memory`; it may save a sweep.
        """

    def take(self, chosen: IntArray) -> Nature:
        """Restricts the adversary to the rows `chosen`, in this order."""

    @property
    def ball_radius(self) -> FloatArray | None:
        """`(R,)` radii if the set is {q : d(q, p) <= radius} with d convex in q and d(p, p) = 0; else None.

        Only certificates use them, in units in which moving all mass of a row is a distance of about one. Mixing a
        distribution at distance d > radius with the row, with weight 1 - radius / d, brings it into the set.
        """

    def excess(self, kernel: Rows) -> FloatArray:
        """`(R,)` how far a kernel leaves the set, in the distance of `ball_radius`; at most 0 inside.

        Moving all mass of a row must be a distance of about one: sets with weights or a metric divide by the largest.
        The excess is infinite if a row has mass on a forbidden successor.
        """

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """`(R,)` lower bounds on Q by weak duality, from code that shares nothing with `values`."""

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        """Bounds on Q from both sides: `urbe.ambiguity.evidence.of_minimum` for a nature that minimises."""


class PlainNature:
    """The common part of most natures: inherit from it, and write the methods that are missing or different.

    By default there is no warm start, the set is not a ball, moments come from the kernel, and nature minimises.
    """

    def fresh(self) -> FloatArray | None:
        return None

    def moments(
        self: Nature,
        v: FloatArray,
        shift: float,
        u: FloatArray,
        value: FloatArray | None = None,
        memory: RowMemory = None,
    ) -> RowMoments:
        return moments_of_kernel(self, v, shift, u, value, memory)

    @property
    def ball_radius(self) -> FloatArray | None:
        return None

    def evidence(self: Nature, kernel: Rows | None) -> RowEvidence:
        return of_minimum(self, kernel)


def width(memory: RowMemory) -> int:
    """How many numbers a memory has for each row."""
    return 0 if memory is None else int(np.prod(memory.shape[1:], dtype=np.int64))


def recalled(nature: Nature, memory: RowMemory, at: IntArray, first: int = 0) -> RowMemory:
    """The memory of a part of a composite nature.

    Args:
      nature: the part.
      memory: the composite's, `(R, k)`; None if it has none.
      at: the part's rows in it.
      first: the part's first column in it.
    """
    own = nature.fresh()
    if memory is not None and own is not None:
        own[...] = memory[at, first : first + width(own)].reshape(own.shape)
    return own


def keep(memory: RowMemory, part: RowMemory, at: IntArray, first: int = 0) -> None:
    """Writes the memory of a part, from `recalled`, back into that of the composite."""
    if memory is not None and part is not None:
        memory[at, first : first + width(part)] = part.reshape(len(part), width(part))


Adversary = TypeVar("Adversary", bound=Any)

LEAST, MOST = 1e-30, 1e30
"""Values within these sizes are not rescaled."""


def exponent(*values: FloatArray | None) -> int:
    """Returns k such that the largest |value| times 2^-k is near one; 0 for values of moderate size or none."""
    given = [x for x in values if x is not None and x.size]
    largest = max((max(float(x.max()), -float(x.min())) for x in given), default=0.0)
    return 0 if largest == 0.0 or LEAST <= largest <= MOST else int(np.frexp(largest)[1])


def rescaled(nature: Adversary, k: int) -> Adversary:
    """Rescales nature to discounted state values times 2^k, with only the rewards of successors; memory stays valid."""
    rows, entry_reward = nature.rows, nature.rows.entry_reward
    reward = np.zeros(rows.n_rows) if entry_reward is None else np.ldexp(entry_reward, k)
    return replace(nature, rows=replace(rows, reward=reward), discount=1.0)
