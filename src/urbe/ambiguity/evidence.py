"""Bound every row's worst case from nature's own kernel and from weak duality, for certificates.

The code is plain NumPy in extended precision and shares nothing with the sweeps; each bound is widened by its rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.ambiguity.entries import entry_keys
from urbe.ambiguity.operator import UNDERFLOW, PolicyRows, StepBound, StepEvidence, midrange
from urbe.ambiguity.transport import LEFT_BEHIND
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from urbe.ambiguity.nature import Nature

LARGEST_EXCESS = 1e-9
"""A kernel within this distance of the set, in the set's own terms, counts as rounded rather than wrong."""

Extended = NDArray[np.longdouble] | FloatArray
RowBound = Callable[[FloatArray], Extended]


class RowEvidence(NamedTuple):
    """Bounds on Q(k) = min_{q in U(k)} q . z for every row.

    Attributes:
      above, below: `v -> (R,)` upper and lower bounds on Q.
      excess: `(R,)` how far the kernel is outside the set, at most 0 inside.
      outside: `(R,)` rows of the kernel that are too far outside to be evidence.
    """

    above: RowBound
    below: RowBound
    excess: FloatArray
    outside: BoolArray


def of_minimum(nature: Nature, kernel: Rows | None) -> RowEvidence:
    """Bounds the minimum from above by a kernel in the set, and from below by weak duality."""
    below = dual_bound(nature, -1.0)
    if kernel is None:
        nothing = np.full(nature.rows.n_rows, -np.inf)
        return RowEvidence(unproven(nature.rows.n_rows, 1.0), below, nothing, np.zeros(len(nothing), dtype=np.bool_))
    radius = nature.ball_radius
    allowed = np.full(nature.rows.n_rows, np.nan) if radius is None else radius
    excess, outside = membership(nature.rows, kernel, nature.excess(kernel), allowed)
    if outside.any():
        return RowEvidence(unproven(nature.rows.n_rows, 1.0), below, excess, outside)
    above = under_kernel(nature.rows, nature.discount, kernel, np.maximum(excess, 0.0), allowed)
    return RowEvidence(above, below, excess, outside)


def of_value(nature: Nature, kernel: Rows | None) -> RowEvidence:
    """Bounds both sides by `dual_bound` if it is the value itself, as for a quantile, and by what a kernel attains."""
    below, above = dual_bound(nature, -1.0), dual_bound(nature, 1.0)
    if kernel is None:
        nothing = np.full(nature.rows.n_rows, -np.inf)
        return RowEvidence(above, below, nothing, np.zeros(len(nothing), dtype=np.bool_))
    excess, outside = membership(nature.rows, kernel, nature.excess(kernel), np.full(nature.rows.n_rows, np.nan))
    answer = expectation(nature.rows, nature.discount, kernel)
    return RowEvidence(attained(above, answer, 1.0), attained(below, answer, -1.0), excess, outside)


def attained(bound: RowBound, answer: RowBound, side: float) -> RowBound:
    """The outer of a bound and of a kernel's value: a kernel that is not nature's answer spoils it."""
    outer = np.maximum if side > 0.0 else np.minimum
    return lambda v: outer(bound(v), answer(v))


def from_below(nature: Nature, members: bool = True) -> RowBound:
    """Lower bounds on Q: by duality or, for a nature that maximises, by its own answer at the values if `members`."""
    dual = nature.evidence(None).below
    return _completed(nature, dual, -1.0) if members else dual


def from_above(nature: Nature, members: bool = True) -> RowBound:
    """Upper bounds on Q: by duality or, for a nature that minimises, by its own answer at the values if `members`."""
    dual = nature.evidence(None).above
    return _completed(nature, dual, 1.0) if members else dual


def _completed(nature: Nature, dual: RowBound, side: float) -> RowBound:
    """Where duality says nothing, bounds by nature's answer at the values, once it is shown to lie in the set."""

    def bound(v: FloatArray) -> Extended:
        known = dual(v)
        unknown = known == side * np.inf
        if not unknown.any() or not np.isfinite(v).all():
            return known
        found = nature.evidence(nature.worst_case(v - midrange(v)).rows)
        return np.where(unknown, (found.above if side > 0.0 else found.below)(v), known)

    return bound


def over_rows(mdp: MDP, rows: RowEvidence, optimal: bool) -> StepEvidence:
    """The evidence of an operator that is rectangular in (s, a)."""
    lowest, highest = _remembered(rows.below), _remembered(rows.above)

    def follow(bound: RowBound) -> StepBound:
        return lambda v, policy: mean(mdp, bound(v), policy)

    def best(bound: RowBound) -> StepBound:
        return lambda v, policy: greatest(mdp, bound(v))

    above = best(highest) if optimal else follow(highest)
    largest = float(rows.excess.max(initial=-np.inf))
    wrong = refusal(mdp, rows.excess, rows.outside)
    return StepEvidence(above, follow(lowest), largest, wrong, (lowest, highest))


def _remembered(bound: RowBound) -> RowBound:
    """Keeps the last answer: bounds on states and on actions are requested at the same values."""
    known: list[tuple[FloatArray, Extended]] = []

    def remember(v: FloatArray) -> Extended:
        if not known or not np.array_equal(known[0][0], v):
            known[:] = [(v.copy(), bound(v))]
        return known[0][1]

    return remember


def refusal(mdp: MDP, excess: FloatArray, outside: BoolArray) -> str | None:
    """Describes the error of a kernel; None if there is none."""
    if not outside.any():
        return None
    row = int(np.argmax(outside))
    found = f"nature's kernel leaves the set in {mdp.row_name(row)} by {excess[row]:.3g}"
    return f"{found} ({int(outside.sum())} of {mdp.n_rows} rows do)."


def membership(own: Rows, kernel: Rows, excess: FloatArray, radius: FloatArray) -> tuple[FloatArray, BoolArray]:
    """`(R,)` how far each row of a kernel is outside the set, infinite if it is not a distribution, and which are.

    Args:
      own: the nominal rows, with the rewards of their successors.
      kernel: nature's answer.
      excess: `(R,)` how far each row of `kernel` leaves the set.
      radius: `(R,)` of balls around the rows, NaN if the set has no centre.
    """
    q = kernel.probability.astype(np.longdouble)
    mass = row_sums(kernel, q)
    wrong = ~(np.abs(mass - 1.0) <= LARGEST_EXCESS)  # also if the sum is NaN
    wrong |= row_sums(kernel, np.minimum(q, 0.0)) < 0.0
    excess = np.where(wrong, np.inf, excess)
    if own.rewards_successors:
        stray = ~np.isin(entry_keys(kernel), entry_keys(own))
        excess[kernel.entry_row[stray & (kernel.probability != 0.0)]] = np.inf  # the model has no reward there
    return excess, ~(excess <= LARGEST_EXCESS * np.fmax(1.0, radius))


def under_kernel(own: Rows, discount: float, kernel: Rows, excess: FloatArray, radius: FloatArray) -> RowBound:
    """Bounds the minimum from above: Q under a fixed kernel, widened by rounding and by its excess.

    In a ball around the row p, q at distance radius + excess is brought inside by mixing it with p, with weight
    excess / (radius + excess) on p; in any other set of distributions by moving `excess` from each entry to another,
    which changes the value by no more than that times the range of values.
    """
    centred = np.isfinite(radius)
    share = np.where(excess > 0.0, excess / np.where(excess > 0.0, np.where(centred, radius, 0.0) + excess, 1.0), 0.0)
    eps = _rounding(own, kernel)
    nominal, answer = expectation(own, discount, own), expectation(own, discount, kernel)

    def bound(v: FloatArray) -> Extended:
        value, moved = answer(v), kernel.longest * excess * _value_range(own, discount, v)
        mixed = np.where(centred, value + share * (nominal(v) - value), value + moved)
        return mixed + eps * largest_value(own, discount, v)

    return bound


def around_kernel(own: Rows, discount: float, kernel: Rows) -> tuple[RowBound, RowBound]:
    """Bounds Q under a fixed kernel from below and from above, by rounding."""
    eps, answer = _rounding(own, kernel), expectation(own, discount, kernel)

    def bound(side: float) -> RowBound:
        return lambda v: answer(v) + side * eps * largest_value(own, discount, v)

    return bound(-1.0), bound(1.0)


def _rounding(own: Rows, kernel: Rows) -> float:
    """Rounding of values under a kernel, relative to the largest one.

    The error of a row's sum and the tolerance of membership may be at any successor.
    """
    lost = mass_error(own) + 2.0 * (mass_error(kernel) + LEFT_BEHIND)
    return lost + (kernel.longest + own.longest + 8) * float(np.finfo(np.longdouble).eps)


def expectation(own: Rows, discount: float, kernel: Rows) -> RowBound:
    """Q under the kernel's rows, each divided by its sum, with the model's own rewards."""
    row_reward, entry_reward = own.row_reward, np.zeros(1)
    if own.rewards_successors:
        keys = entry_keys(own)
        entry_reward = own.reward[np.minimum(np.searchsorted(keys, entry_keys(kernel)), len(keys) - 1)]
    q = kernel.probability.astype(np.longdouble)
    mass = row_sums(kernel, q)

    def value(v: FloatArray) -> Extended:
        z = entry_reward + np.longdouble(discount) * v.astype(np.longdouble)[kernel.successor]
        return row_reward + row_sums(kernel, q * z) / mass

    return value


def dual_bound(nature: Nature, side: float) -> RowBound:
    """`Nature.dual_bound`, widened by its rounding to double precision and by the rounding of row sums."""
    rows = nature.rows
    eps = 6.0 * 2.0**-53 + (rows.longest + 4) * float(np.finfo(np.longdouble).eps) + mass_error(rows)

    def bound(v: FloatArray) -> Extended:
        slack = eps * largest_value(rows, nature.discount, v) + UNDERFLOW
        return nature.dual_bound(v).astype(np.longdouble) + side * slack

    return bound


def unproven(n_rows: int, side: float) -> RowBound:
    """The trivial bound."""
    return lambda v: np.full(n_rows, side * np.inf, dtype=np.longdouble)


def largest_value(rows: Rows, discount: float, *values: FloatArray) -> np.longdouble:
    """max |r| + gamma max |v|; in extended precision a share of it does not vanish."""
    largest = np.max([np.abs(v).max(initial=0.0) for v in values])  # unlike max, passes NaN on
    return np.longdouble(rows.largest_reward + np.longdouble(discount) * largest)


def _value_range(rows: Rows, discount: float, v: FloatArray) -> np.longdouble:
    """max z - min z, z = r + gamma v, over all states and the rewards of all successors; rewards of pairs cancel."""
    out = np.longdouble(discount) * np.ptp(v.astype(np.longdouble))
    return np.longdouble(out + np.ptp(rows.reward.astype(np.longdouble)) if rows.rewards_successors else out)


def greatest(mdp: MDP, q: Extended) -> Extended:
    """`(S,)` the largest row of each state, zero where terminal."""
    out = np.zeros(mdp.n_states, dtype=np.longdouble)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        out[live] = np.maximum.reduceat(q, mdp.row_start[live])
    return out


def mean(mdp: MDP, q: Extended, policy: PolicyRows) -> Extended:
    """`(S,)` the mean over the rows under a policy, zero where terminal."""
    out = np.zeros(mdp.n_states, dtype=np.longdouble)
    np.add.at(out, mdp.row_state[policy.rows], policy.share * q[policy.rows])
    return out


def row_sums(rows: Rows, entries: Extended) -> Extended:
    """`(R,)` sums over the entries of each row."""
    return np.add.reduceat(entries, rows.entry_start[:-1]) if rows.n_rows else entries[:0]


def mass_error(rows: Rows) -> float:
    """max |sum of a row - 1|."""
    return float(np.abs(row_sums(rows, rows.probability.astype(np.longdouble)) - 1.0).max(initial=0.0))
