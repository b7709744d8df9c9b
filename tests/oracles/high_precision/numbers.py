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
"""Guard digits."""

_wanted = [60]

FEW = 18
"""Digits in which roots are first sought."""

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
    """Requires `count` correct decimal places, relative to the largest value of a row; the default is 60."""
    _wanted.append(count)
    try:
        with precise():
            yield
    finally:
        _wanted.pop()


@contextmanager
def few_digits() -> Iterator[None]:
    """Like `digits_right(FEW)`, with the guard digits of the current context: for starting points and clear signs."""
    spared = max(_wanted[-1] - FEW, 0)
    _wanted.append(_wanted[-1] - spared)
    try:
        with localcontext() as context:
            context.prec -= spared
            yield
    finally:
        _wanted.pop()


def extra_digits(radius: D) -> int:
    """The number of digits lost to cancellation when terms of order one sum to a divergence of size `radius`."""
    return 0 if radius <= NEGLIGIBLE else max(0, -radius.adjusted())


def tolerance(count: int | None = None) -> D:
    """Relative error of answers of `count` right digits, by default of those asked for."""
    return D(10) ** -(_wanted[-1] if count is None else count)


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
    """e^x: the integer part and two digits of base 256 from tables, a Taylor series for what is left."""
    if not x:
        return D(1)
    if abs(x) > 10_000:
        return x.exp()
    places, coefficients = _series(digits())
    units = round(x * 65536)
    whole, part = divmod(units, 65536)
    left = x - D(units) / 65536
    total = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * left + coefficient
    if part:
        total *= _power_of_e(part >> 8, 256, places) * _power_of_e(part & 255, 65536, places)
    return total * _power_of_e(whole, 1, places) if whole else +total


def ln(a: D) -> D:
    """The natural logarithm: a series near one, Halley's iteration on `exp` elsewhere; minus infinity at zero."""
    if a <= 0:
        return D("-Infinity")
    if abs(a - 1) < D("0.003"):
        return _ln_near_one(a)
    exponent = a.adjusted()
    mantissa = a.scaleb(-exponent)
    y = D(math.log(float(mantissa)))
    right, wanted = 15, digits()
    while right < wanted:
        right *= 3
        with localcontext() as context:
            context.prec = min(wanted, right + 2)
            e = exp(y)
            y += 2 * (mantissa - e) / (mantissa + e)
    return y + exponent * _ln_ten(digits())


STEP = 32
"""Tables are made for numbers of digits that are multiples of this."""


@cache
def _series(precision: int) -> tuple[int, list[D]]:
    """Digits of the tables, and 1 / n! from the last n that matters for arguments below 2^-17, to n = 0."""
    places = -(-precision // STEP) * STEP
    with localcontext(Context(prec=places, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])):
        terms = [D(1)]
        while terms[-1] * D(2) ** (-17 * len(terms)) > D(10) ** (-precision - 2):
            terms.append(terms[-1] / len(terms))
        return places, terms[::-1]


@cache
def _power_of_e(count: int, parts: int, places: int) -> D:
    """e^(count / parts)."""
    with localcontext(Context(prec=places + 8, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])):
        return (D(count) / parts).exp()


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


def root(function, low: D, high: D, start: D | None = None) -> tuple[D, D]:
    """Two neighbouring points where an increasing function changes its sign, a relative `tolerance() / 100` apart.

    One point, twice, where the function is zero in the digits at hand. Few digits find the place, all of them the sign.

    Args:
      function: `t -> (value, slope)`, the slope zero where it is not known.
      low, high: value(low) <= 0 <= value(high).
      start: where to begin, if a point close to the root is known.
    """
    if start is None:
        start = (low + high) / 2
        with few_digits():
            start = sum(_bracket(function, low, high, start)) / 2
    return _bracket(function, low, high, start)


def _bracket(function, low: D, high: D, t: D) -> tuple[D, D]:
    """Newton's steps from t while they halve, bisection otherwise."""
    close = tolerance() / 100
    beyond, last = close / 4, high - low
    while high - low > close * max(D(1), abs(high)):
        value, slope = function(t)
        if not value:  # the root as far as these digits tell
            return t, t
        if value <= 0:
            low = t
        else:
            high = t
        step = -value / slope if slope > 0 else last
        if 2 * abs(step) < last:
            last = abs(step)
            if last < close:  # near the root: step past it, farther each time, until the sign changes
                step += beyond.copy_sign(step) * max(D(1), abs(t))
                beyond *= 16
                last = high - low
            t += step
        else:
            t, last = (low + high) / 2, (high - low) / 2
        t = t if low < t < high else (low + high) / 2
    return low, high
