"""Learning with pauses at the steps at which a row is added to the log or a callback measures.

Everything that belongs to such a step is recorded before it is yielded, so that an agent which is saved then has all of
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.deep.callbacks import Callback, Decision, Row

if TYPE_CHECKING:
    from urbe.deep.agent import Agent


class Recorded(NamedTuple):
    """What was recorded at a step.

    Attributes:
      row: of the log; None if none is due.
      episodes: those that ended since the row before; None if no row is due.
      members: which members decided the targets since the row before; None if no row is due, or there is one alone.
      measured: a row of each callback that was due, by its name.
      best: the callbacks to which this agent is the best so far.
      stop: why learning stops here; None when it goes on.
    """

    row: Row | None
    episodes: Mapping[str, np.ndarray] | None
    members: Row | None
    measured: dict[str, Row]
    best: tuple[Callback, ...]
    stop: str | None

    def rows(self) -> list[Row]:
        """All rows as functions receive them; columns of callbacks are called `evaluation/mean` and so on."""
        named = [
            {"step": row["step"], **{f"{name}/{key}": value for key, value in row.items() if key != "step"}}
            for name, row in self.measured.items()
        ]
        return ([] if self.row is None else [self.row]) + named


def learn_and_record(agent: Agent, end: int, measuring: Sequence[Callback]) -> Iterator[Recorded]:
    """Has the agent learn until step `end` or until a callback stops it, and yields what was recorded.

    Args:
      agent: whose history has the tables of all callbacks.
      end: the step to stop at.
      measuring: callbacks; each is due at the multiples of its `every`.
    """
    while agent.step < end:
        logged = _next(agent.step, agent.log_every)
        due = [_next(agent.step, each.every) for each in measuring]
        agent.trainer.advance(min(logged, end, *due) - agent.step)
        row, episodes, members = agent.history.add(agent.trainer) if agent.step >= logged else (None, None, None)
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
        if row is not None or measured:
            yield Recorded(row, episodes, members, measured, best, stop)
        if stop is not None:
            return


def _next(step: int, every: int) -> int:
    """The first multiple after a step."""
    return (step // every + 1) * every
