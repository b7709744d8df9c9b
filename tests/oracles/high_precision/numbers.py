"""Decimal arithmetic of any precision and any exponent, and roots of increasing functions.

Floating-point numbers enter at their exact binary value. `decimal` is used rather than a library of arbitrary
precision because its operations are compiled and its exponents reach 10^18; its exponential and logarithm are slow, so
both are written out here.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache
from typing import NamedTuple

D = Decimal

GUARD = 16
"""Places beyond those asked for, which rounding may spoil."""

_wanted = [60]

NEGLIGIBLE = D(10) ** -126
"""Radii of divergence balls below this move a value by less than 1e-62 of its range (Pinsker's inequality)."""


class Answer(NamedTuple):
    """The least value over a set, enclosed: weak duality gives `low`, the member `q` of the set gives `high`.

    Attributes:
      low, high: `low <= min_q q . z <= high`.
      q: the distribution that attains `high`, one number for each receiver of the row.
    """

    low: D
    high: D
    q: list[D]

    @staticmethod
    def around(low: D, high: D, q: list[D], z: list[D]) -> "Answer":
        """Bounds moved apart by what rounding may have spoilt."""
        slack = max(abs(b) for b in z) * tolerance() / 1000
        return Answer(low - slack, high + slack, q)

    def plus(self, constant: D) -> "Answer":
        """The same distribution with `constant` added to its value."""
        return Answer(self.low + constant, self.high + constant, self.q)


@contextmanager
def precise(extra: int = 0) -> Iterator[None]:
    """A context of the digits asked for, and `extra`, without limits on exponents."""
    with localcontext(Context(prec=_wanted[-1] + GUARD + extra, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])):
        yield


@contextmanager
def digits_right(count: int) -> Iterator[None]:
    """How many decimal places of an answer are to be right, relative to the largest value of its row; 60 otherwise."""
    _wanted.append(count)
    try:
        with precise():
            yield
    finally:
        _wanted.pop()


def extra_digits(radius: D) -> int:
    """Digits that cancel where a divergence of the size of `radius` is a sum of terms of order one."""
    return 0 if radius <= NEGLIGIBLE else max(0, -radius.adjusted())


def tolerance() -> D:
    """Relative error of answers."""
    return D(10) ** -_wanted[-1]


def digits() -> int:
    """The precision of the context."""
    return getcontext().prec


def rescaled(weights: list[D]) -> list[D]:
    """Weights divided by their sum."""
    total = sum(weights, D(0))
    return [w / total for w in weights]


def dot(q: list[D], z: list[D]) -> D:
    """sum_j q_j z_j."""
    return sum((a * b for a, b in zip(q, z, strict=True)), D(0))


def exp(x: D) -> D:
    """e^x: a Taylor series of x / 2^k, squared k times."""
    if not x:
        return D(1)
    if abs(x) > 10_000:
        return x.exp()
    halvings = max(0, math.frexp(float(x))[1] + 12)
    small = x / (1 << halvings)
    limit = D(10) ** (-digits() - 2)
    total, term, n = D(1), D(1), 0
    while abs(term) > limit:
        n += 1
        term = term * small / n
        total += term
    for _ in range(halvings):
        total *= total
    return total


def ln(a: D) -> D:
    """The natural logarithm: a series near one, Halley's iteration on `exp` elsewhere; minus infinity at zero."""
    if a <= 0:
        return D("-Infinity")
    if abs(a - 1) < D("0.003"):
        return _ln_near_one(a)
    exponent = a.adjusted()
    mantissa = a.scaleb(-exponent)
    y = D(math.log(float(mantissa)))
    right = 15
    while right < digits():
        e = exp(y)
        y += 2 * (mantissa - e) / (mantissa + e)
        right *= 3
    return y + exponent * _ln_ten(digits())


@cache
def _ln_ten(precision: int) -> D:  # noqa: ARG001  the key of the cache
    return D(10).ln()


def _ln_near_one(a: D) -> D:
    s = (a - 1) / (a + 1)
    square, term, total, n = s * s, s, s, 1
    limit = abs(s) * D(10) ** (-digits() - 2)
    while abs(term) > limit:
        term *= square
        n += 2
        total += term / n
    return 2 * total


def root(function, low: D, high: D) -> tuple[D, D]:
    """Two neighbouring points where an increasing function changes its sign, a relative `tolerance() / 100` apart.

    One point, twice, where the function is zero in the digits at hand.

    Args:
      function: `t -> (value, slope)`.
      low, high: value(low) <= 0 <= value(high).
    """
    t, steps = (low + high) / 2, 0
    close = tolerance() / 100
    beyond = close / 4
    while high - low > close * max(D(1), abs(high)):
        value, slope = function(t)
        if not value:  # the root as far as these digits tell
            return t, t
        if value <= 0:
            low = t
        else:
            high = t
        steps += 1
        following = t - value / slope if slope > 0 and steps % 4 else (low + high) / 2
        step = following - t
        if abs(step) < (high - low) / 8:
            # cross the root, so that both ends of the bracket move: farther each time, until rounding is overcome
            following += step / 1000 + (beyond if value < 0 else -beyond)
            beyond *= 16
        t = following if low < following < high else (low + high) / 2
    return low, high
