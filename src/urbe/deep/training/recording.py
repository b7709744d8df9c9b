"""Learn in segments, which end where a row is added to the log or a callback measures.

All records of such a step are complete before it is yielded, so that an agent saved then includes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from urbe.deep.training.callbacks import Callback, Decision, Row
from urbe.deep.training.history import LogRows

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent


class Recorded(NamedTuple):
    """The records of a step.

    Attributes:
      logged: the rows of the log, its episodes and its members since the previous ones; None if none are due.
      measured: a row of each callback that was due, by its name.
      best: the callbacks for which this agent is the best so far.
      stop: why learning stops here; None if it continues.
    """

    logged: LogRows | None
    measured: dict[str, Row]
    best: tuple[Callback, ...]
    stop: str | None

    def rows(self) -> list[Row]:
        """All rows for function callbacks; columns of other callbacks have names such as `evaluation/mean`."""
        named = [
            {"step": row["step"], **{f"{name}/{key}": value for key, value in row.items() if key != "step"}}
            for name, row in self.measured.items()
        ]
        return [*([] if self.logged is None else [self.logged.row]), *named]


def learn_and_record(agent: DQNAgent, end: int, measuring: Sequence[Callback]) -> Iterator[Recorded]:
    """Lets the agent learn until step `end` or until a callback stops it, and yields the records.

    Args:
      agent: an agent whose history has the tables of all callbacks.
      end: the step to stop at.
      measuring: callbacks; each is due at multiples of its `every`.
    """
    while agent.step < end:
        logged = _next(agent.step, agent.log_every)
        due = [_next(agent.step, each.every) for each in measuring]
        agent.trainer.advance(min(logged, end, *due) - agent.step)
        rows = agent.history.add(agent.trainer) if agent.step >= logged else None
        measured: dict[str, Row] = {}
        verdicts: list[tuple[Callback, Decision]] = []
        for each, at in zip(measuring, due, strict=True):
            if agent.step >= at:
                measured[each.name] = agent.history.add_measured(each.name, agent.step, each.measure(agent))
                verdicts.append((each, each.verdict(agent.history.measured[each.name])))
        best = tuple(
            each for each, verdict in verdicts if verdict.best == len(agent.history.measured[each.name]["step"]) - 1
        )
        stop = next((verdict.stop for _, verdict in verdicts if verdict.stop is not None), None)
        if rows is not None or measured:
            yield Recorded(rows, measured, best, stop)
        if stop is not None:
            return


def _next(step: int, every: int) -> int:
    """The first multiple after a step."""
    return (step // every + 1) * every
