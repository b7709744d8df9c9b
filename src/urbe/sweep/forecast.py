"""How long a sweep will take: what cells say they cost, corrected by what finished ones took."""

from __future__ import annotations

from collections.abc import Sequence

from urbe.sweep.cells import Job


class Pace:
    """What finished cells took, and so what others will.

    A cell that knows its cost is expected to take it times the ratio of seconds to cost seen so far, in its experiment
    or, before one of those is finished, in all. One that does not is expected to take the mean of those seen so far.
    """

    def __init__(self) -> None:
        self._finished: list[tuple[str, float | None, float]] = []

    def saw(self, job: Job, seconds: float) -> None:
        """A cell is finished, and took so long."""
        self._finished.append((job.experiment, job.cost, seconds))

    def expected(self, job: Job) -> float | None:
        """Seconds a cell takes; None when nothing is known yet."""
        for seen in ([each for each in self._finished if each[0] == job.experiment], self._finished):
            costs = [(cost, seconds) for _, cost, seconds in seen if cost]
            if job.cost is None and seen:
                return sum(seconds for _, _, seconds in seen) / len(seen)
            if job.cost is not None and costs:
                return job.cost * sum(seconds for _, seconds in costs) / sum(cost for cost, _ in costs)
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
