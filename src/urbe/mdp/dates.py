"""Dates as people write them: one notation for a column, recognised from all of its values.

ISO 8601 is tried first; then day, month and year in the orders and with the marks that are in use. 03/04/2026 may be in
March or in April: the other values of the column decide, and if they do not, the column is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

DAYS = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d",
        "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y")  # fmt: skip
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
LENGTH_OF_A_DAY = len("2026-03-31")
_UTC = re.compile(r" ?(UTC|GMT)$")
EXPECTED = "expected a number or a date such as 2026-03-31, 2026-03-31T08:15:00 or 31.03.2026"

ZONES = "which has no time zone, but other values have one; expected one in all values, or in none."


def instants(values: Sequence[Any]) -> tuple[np.ndarray, int, str]:
    """Times as `datetime64[us]`, in UTC if they have a time zone.

    Args:
      values: texts, dates and datetimes.

    Returns:
      the times; and the first value that is none with what is wrong with it, or -1.

    >>> instants(["1.2.2026", "28.2.2026"])[0].astype(str).tolist()
    ['2026-02-01T00:00:00.000000', '2026-02-28T00:00:00.000000']
    """
    known = {value: _iso(value) for value in dict.fromkeys(values)}
    if all(found is not None for found in known.values()):
        zones = {value: _has_zone(value) for value in known}
        if len(set(zones.values())) > 1:
            bare = next(at for at, value in enumerate(values) if not zones[value])
            return np.zeros(0, dtype="datetime64[us]"), bare, ZONES
        return np.array([known[value] for value in values], dtype="datetime64[us]"), -1, ""
    texts = {value: value.strip() if isinstance(value, str) else "" for value in known}
    patterns = [day + clock for day, clock in product(DAYS, CLOCKS)]
    for text in texts.values():
        patterns = [pattern for pattern in patterns if _by(text, pattern) is not None] or patterns
    read = {value: [_by(text, pattern) for pattern in patterns] for value, text in texts.items()}
    nothing = np.zeros(0, dtype="datetime64[us]")
    for value, found in read.items():
        if None in found:
            return nothing, values.index(value), f"{EXPECTED}."
    for value, found in read.items():
        if len(set(found)) > 1:
            both = " or ".join(sorted({f"{each:%Y-%m-%d}" for each in found}))
            message = f"which may be {both}, and no other value decides. Write dates as 2026-03-31."
            return nothing, values.index(value), message
    return np.array([read[value][0] for value in values], dtype="datetime64[us]"), -1, ""


def _iso(value: Any) -> np.datetime64 | None:
    """A date, or a text in ISO 8601."""
    try:
        if isinstance(value, str):
            text = _stripped(value)
            if not text[:1].isdecimal():  # NumPy reads "today"
                return None
            if len(text) <= LENGTH_OF_A_DAY:
                return np.datetime64(text, "us")
            value = datetime.datetime.fromisoformat(text)
        elif not isinstance(value, np.datetime64) and not hasattr(value, "year"):
            return None
        if getattr(value, "tzinfo", None) is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return np.datetime64(value, "us")
    except (ValueError, TypeError):
        return None


def _stripped(text: str) -> str:
    """The text without blanks around it, with Z for UTC and GMT."""
    text = text.strip()
    return _UTC.sub("Z", text) if text[-1:] in ("C", "T") else text


def _has_zone(value: Any) -> bool:
    if isinstance(value, str):
        text = _stripped(value)
        return text[-1] in "zZ" or not set("+-").isdisjoint(text[LENGTH_OF_A_DAY:])
    return getattr(value, "tzinfo", None) is not None


def _by(text: str, pattern: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, pattern)
    except ValueError:
        return None
