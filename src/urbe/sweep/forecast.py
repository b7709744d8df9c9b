"""How long a sweep will take: what cells say they cost, corrected by what finished ones took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from urbe.sweep.cells import Job


class _Seen(NamedTuple):
    """Finished cells: how many, their seconds; of those that knew their cost, that and their seconds."""

    cells: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    cost_seconds: float = 0.0

    def plus(self, cost: float | None, seconds: float) -> _Seen:
        known = (self.cost + cost, self.cost_seconds + seconds) if cost else (self.cost, self.cost_seconds)
        return _Seen(self.cells + 1, self.seconds + seconds, *known)


class Pace:
    """What finished cells took, and so what others will.

    A cell that knows its cost is expected to take it times the ratio of seconds to cost seen so far, in its experiment
    or, before one of those is finished, in all. One that does not is expected to take the mean of those seen so far.
    """

    def __init__(self) -> None:
        self._of: dict[str, _Seen] = {}
        self._all = _Seen()

    def saw(self, job: Job, seconds: float) -> None:
        """A cell is finished, and took so long."""
        self._of[job.experiment] = self._of.get(job.experiment, _Seen()).plus(job.cost, seconds)
        self._all = self._all.plus(job.cost, seconds)

    def expected(self, job: Job) -> float | None:
        """Seconds a cell takes; None when nothing is known yet."""
        for seen in (self._of.get(job.experiment, _Seen()), self._all):
            if job.cost is None and seen.cells:
                return seen.seconds / seen.cells
            if job.cost is not None and seen.cost:
                return job.cost * seen.cost_seconds / seen.cost
        return job.cost


def remaining(expected: float | None, seconds: float, fraction: float | None) -> float | None:
    """Seconds a running cell still takes: by the part it says is done, or else by what was expected of it.

    >>> remaining(100.0, 30.0, None), remaining(100.0, 30.0, 0.5), remaining(100.0, 200.0, None)
    (70.0, 30.0, 0.0)
    """
    if fraction is not None and fraction > 0.0:
        return seconds * (1.0 - fraction) / fraction
    return None if expected is None else max(expected - seconds, 0.0)


def seconds_left(waiting: Sequence[float | None], running: Sequence[float | None], at_once: int) -> float | None:
    """Seconds until all is done: the work by the number of workers, and no less than the longest cell.

    Args:
      waiting: seconds each waiting cell takes.
      running: seconds each running cell still takes.
      at_once: how many run at once.

    Returns:
      None when of some cell nothing is known.

    >>> seconds_left([10.0, 10.0, 10.0], [5.0, 1.0], 2)
    18.0
    >>> seconds_left([30.0], [5.0, 1.0], 2)
    30.0
    """
    known = [each for each in (*waiting, *running) if each is not None]
    if len(known) < len(waiting) + len(running):
        return None
    return max(sum(known) / max(at_once, 1), *known, 0.0) if known else 0.0
