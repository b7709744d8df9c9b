"""Check interval probabilities of transitions, and compute the model at their centre.

P(s, a) = {p : lower <= p <= upper, sum p = 1}, not empty when sum lower <= 1 <= sum upper
"""

from __future__ import annotations

import numpy as np

from urbe import checks
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray


class PairError(ValueError):
    """An error about the row of one (state, action) pair; file readers use it to name a line."""

    def __init__(self, state: int, action: int, message: str) -> None:
        super().__init__(int(state), int(action), message)
        self.state, self.action, self.message = int(state), int(action), message

    def __str__(self) -> str:
        return self.message


def check_ends(s: IntArray, a: IntArray, t: IntArray, lower: FloatArray, upper: FloatArray) -> None:
    """Raises unless 0 <= lower <= upper <= 1 for each transition."""
    wrong = ~((lower >= 0.0) & (lower <= upper) & (upper <= 1.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise PairError(
            s[at],
            a[at],
            f"The interval from state {s[at]}, action {a[at]} to state {t[at]} is "
            f"[{lower[at]:.12g}, {upper[at]:.12g}], expected 0 <= lower <= upper <= 1. "
            f"{checks.some(int(wrong.sum()), len(s), 'interval', 'intervals')} wrong.",
        )


def check_no_repeats(s: IntArray, a: IntArray, t: IntArray) -> None:
    """Raises if a sorted list of transitions with intervals repeats one, since intervals do not add up."""
    repeat = (s[1:] == s[:-1]) & (a[1:] == a[:-1]) & (t[1:] == t[:-1])
    if repeat.any():
        at = int(np.argmax(repeat))
        raise PairError(
            s[at],
            a[at],
            f"The transition from state {s[at]}, action {a[at]} to state {t[at]} is listed more than once; "
            "expected one interval for each, since intervals of repeated transitions do not add up.",
        )


def fit_rows(
    rows: Rows, state: IntArray, action: IntArray, lower: FloatArray, upper: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Makes bounds satisfy sum lower <= 1 <= sum upper in each row; violations within `tolerance` are rescaled."""
    low, high = rows.row_sums(lower), rows.row_sums(upper)
    wrong = ~((low <= 1.0 + tolerance) & (high >= 1.0 - tolerance))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise PairError(
            state[at],
            action[at],
            f"The intervals of state {state[at]}, action {action[at]} hold no distribution: the lower bounds sum to "
            f"{low[at]:.12g}, expected at most 1, and the upper bounds to {high[at]:.12g}, expected at least 1. "
            f"{checks.some(int(wrong.sum()), rows.n_rows, 'row', 'rows')} empty.",
        )
    rounding = rows.length * 2.0**-52
    if (low > 1.0 + rounding).any():
        lower = lower / np.repeat(np.where(low > 1.0 + rounding, low, 1.0), rows.length)
    if (high < 1.0 - rounding).any():
        upper = upper / np.repeat(np.where(high < 1.0 - rounding, high, 1.0), rows.length)
    return lower, upper


def centre(rows: Rows, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """`(E,)` p = lower + (1 - sum lower) (upper - lower) / sum(upper - lower), over each row.

    The distribution at the same relative position between all its bounds; `lower` if all intervals have width 0.
    """
    width = upper - lower
    free = rows.row_sums(width)
    missing = np.maximum(1.0 - rows.row_sums(lower), 0.0)
    with np.errstate(over="ignore"):  # a subnormal `free`: all of it is needed
        share = np.minimum(np.divide(missing, free, out=np.zeros_like(free), where=free > 0.0), 1.0)
    return np.clip(lower + np.repeat(share, rows.length) * width, lower, upper)


def check_inside(
    rows: Rows, state: IntArray, action: IntArray, bounds: tuple[FloatArray, FloatArray], tolerance: float
) -> None:
    """Raises when a probability of `rows` lies outside its interval by more than `tolerance`."""
    (lower, upper), probability = bounds, rows.probability
    wrong = ~((probability >= lower - tolerance) & (probability <= upper + tolerance))
    if wrong.any():
        at = int(np.argmax(wrong))
        row = int(rows.entry_row[at])
        raise PairError(
            state[row],
            action[row],
            f"The probability from state {state[row]}, action {action[row]} to state {rows.successor[at]} is "
            f"{probability[at]:.12g}, expected within its interval [{lower[at]:.12g}, {upper[at]:.12g}]. "
            f"{checks.some(int(wrong.sum()), len(lower), 'probability', 'probabilities')} outside; "
            "leave the probabilities out to take the centre of the intervals.",
        )
