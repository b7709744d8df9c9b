"""Format numbers as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from urbe.statistics.estimates import ConfidenceInterval

FIGURE_SPACE = "\N{FIGURE SPACE}"
"""As wide as a digit."""


def number(value: float, digits: int = 6) -> str:
    """Formats a number with this many significant digits, and never minus zero.

    >>> number(3179.16214), number(-0.0000000001), number(0.000123456789)
    ('3179.16', '0', '0.000123457')
    """
    if abs(value) < 1e-7:  # below the accuracy of any solve here
        return "0"
    return f"{value:.{digits}g}"


def percent(share: float, places: int = 0) -> str:
    """Formats a share in percent, with this many decimals; no line breaks before the sign.

    >>> percent(0.803), percent(0.0125, 1)
    ('80\\xa0%', '1.2\\xa0%')
    """
    return f"{100.0 * share:.{places}f}\N{NO-BREAK SPACE}%"


def duration(seconds: float) -> str:
    """Formats a duration in words, with about two digits.

    >>> duration(3.21), duration(75.0), duration(500.0), duration(9000.0), duration(300000.0)
    ('3.2 s', '75 s', '8 min', '2.5 h', '83 h')
    """
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    if seconds < 99.5 * 60.0:
        return f"{seconds / 60.0:.0f} min"
    return f"{seconds / 3600.0:.1f} h" if seconds < 9.95 * 3600.0 else f"{seconds / 3600.0:.0f} h"


def decimals(intervals: Sequence[ConfidenceInterval]) -> int:
    """Returns the number of decimals that shows two digits of a typical half width.

    >>> decimals([ConfidenceInterval(12.3456, 12.0, 12.7)])
    2
    """
    widths = [0.5 * (x.high - x.low) for x in intervals]
    positive = [width for width in widths if 0.0 < width < math.inf]
    if not positive:
        return 3
    return min(max(1 - math.floor(math.log10(float(np.median(positive)))), 0), 9)


def interval_text(interval: ConfidenceInterval, places: int) -> str:
    """Formats the estimate and the ends with this many decimals.

    >>> interval_text(ConfidenceInterval(0.5, 0.25, 0.75), 2)
    '0.50 [0.25, 0.75]'
    """
    return f"{_fixed(interval.estimate, places)} [{_fixed(interval.low, places)}, {_fixed(interval.high, places)}]"


def interval_column(intervals: Sequence[ConfidenceInterval | None], most: int = 9) -> tuple[str, ...]:
    """Cells of a table, aligned by padding: the same decimals in all (`most` at most), estimates below estimates.

    None is shown as `-`.

    >>> interval_column([ConfidenceInterval(9.5, 9.0, 10.0), ConfidenceInterval(10.5, 10.0, 11.0)])
    ('9.50 [\\u20079.00, 10.00]', '10.50 [10.00, 11.00]')
    """
    present = [interval for interval in intervals if interval is not None]
    places = min(decimals(present), most)
    lows, highs = (max((len(_fixed(x[i], places)) for x in present), default=0) for i in (1, 2))

    def cell(x: ConfidenceInterval) -> str:
        low, high = _fixed(x.low, places), _fixed(x.high, places)
        return f"{_fixed(x.estimate, places)} [{low.rjust(lows, FIGURE_SPACE)}, {high.rjust(highs, FIGURE_SPACE)}]"

    return tuple("-" if interval is None else cell(interval) for interval in intervals)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and float(text) == 0.0 else text
