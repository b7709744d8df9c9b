"""Certified bounds on the robust value from one Bellman sweep.

With d = T v - v, lo = min d and hi = max d over all states (d = 0 where terminal),

    T v + lo gamma / (1 - gamma)  <=  V*  <=  T v + hi gamma / (1 - gamma)                  [MacQueen1966]

holds for every rectangular set, since T is monotone and T(v + c) = T v + gamma c; the lower one also bounds the value
of the greedy policy. Without discounting, gamma / (1 - gamma) is replaced in each state by the longest expected time
to termination after the first step (`urbe.solvers.duration`). All bounds are widened by the rounding error of the
sweep, relative to exact arithmetic on the floating-point model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe.ambiguity.operator import ROUNDING, Iterated, underflow
from urbe.mdp.model import MDP
from urbe.types import FloatArray


class Bounds(NamedTuple):
    """State-wise bounds after a sweep.

    Attributes:
      value: `(S,)` the estimate in the middle.
      lower, upper: `(S,)`.
      shift: `value` - T v (a number, or `(S,)` without discounting).
      spread: hi - lo, which determines the gap.
      floor: the part of the gap due to rounding.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    shift: FloatArray | float
    spread: float
    floor: float

    @property
    def gap(self) -> float:
        """max over states of upper - lower."""
        return float((self.upper - self.lower).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class BoundRule:
    """Turns sweeps into bounds.

    Args:
      operator: T, for its rounding error.
      later: `(S,)` longest expected time to termination after the first step; None with discounting.
      rule: "span" as above, or "residual": |V* - T v| <= gamma/(1-gamma) max |d|.
      modulus: L < 1 of an operator that is a contraction but not monotone: |V* - T v| <= L / (1 - L) max |d|.
    """

    operator: Iterated
    later: FloatArray | None = None
    rule: str = "span"
    modulus: float | None = None

    def __call__(self, v: FloatArray, new: FloatArray) -> Bounds:
        """Computes bounds from v and T v."""
        error = self.operator.error(v)
        lo, hi = spread_of(v, new, self.operator.mdp.terminal)
        if self.rule == "residual" or self.modulus is not None:
            lo, hi = -max(-lo, hi), max(-lo, hi)
        spread = hi - lo
        lo, hi = lo - error, hi + error
        below, above = self._remaining(inward=lo > 0), self._remaining(inward=hi < 0)
        low, high = lo * below, hi * above
        # the additions below round once more
        size = float(np.abs(new).max(initial=0.0)) + float(np.abs(low).max()) + float(np.abs(high).max())
        slack = error + 4.0 * ROUNDING * size + underflow(size)
        terminal = self.operator.mdp.terminal
        lower, upper = new + low - slack, new + high + slack
        shift = 0.5 * (low + high)
        value = new + shift
        for bound in (lower, upper, value):
            bound[terminal] = 0.0
        floor = 2.0 * float(np.max(error * below)) + 2.0 * float(slack)
        return Bounds(value, lower, upper, shift, spread, floor)

    def _remaining(self, *, inward: bool) -> FloatArray | float:
        """Bounds how often a change is repeated: from above, or from below if the change narrows the bounds."""
        if self.later is not None:
            return np.zeros_like(self.later) if inward else self.later
        if self.modulus is not None:
            return self.modulus / (1.0 - self.modulus)
        mass = self.operator.mdp.rows.mass_error
        gamma = self.operator.mdp.discount * (1.0 - mass if inward else 1.0 + mass)
        if gamma >= 1.0:
            raise ValueError(
                f"discount is {self.operator.mdp.discount!r}: too near 1 for certified bounds, since rows sum to one "
                f"only within {mass:.1e}. Use discount=1 (total reward; the model must end) or a smaller discount."
            )
        return gamma / (1.0 - gamma)


LARGEST = 1e306
"""Sums of values up to this size do not overflow in a sweep."""


def require_finite_values(mdp: MDP, steps: float) -> None:
    """Raises if the sum of rewards over this many steps may overflow."""
    largest = mdp.rows.largest_reward
    if largest > LARGEST / max(steps, 1.0):
        raise ValueError(
            f"Rewards of up to {largest:.3g} over {steps:.3g} steps add up to more than {LARGEST:g}, the largest "
            "supported value. Divide the rewards by a constant, and multiply the values by it."
        )


def spread_of(v: FloatArray, new: FloatArray, terminal: FloatArray | np.ndarray) -> tuple[float, float]:
    """Returns the least and the largest change; terminal states count as zero."""
    change = new - v
    if terminal.any():
        change[terminal] = 0.0
    return (float(change.min()), float(change.max())) if len(change) else (0.0, 0.0)
