"""Callbacks of learning: plain functions that receive rows, and objects that measure the agent.

A callback has no memory. Its measurement is a function of the agent; its decisions (which agent was the best, whether
to stop) are a function of all rows measured so far. The rows are saved with the agent, so that a run that is killed and
resumed measures, keeps and stops exactly as an uninterrupted one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from urbe import checks

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

Row = Mapping[str, float]
"""Numbers by name, `step` among them."""

OnRow = Callable[[Row], None]
"""A plain function that receives every row: those of the log, and those measured by callbacks."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TAKEN = ("log", "episodes", "members", "checkpoints", "tensorboard")  # names of other files in a run's folder


class Decision(NamedTuple):
    """The decision from the rows that a callback has measured.

    Attributes:
      best: index of the row of the best agent; None before the first row, or if there is no best one.
      stop: why learning stops here; None if it continues.
    """

    best: int | None = None
    stop: str | None = None


@runtime_checkable
class Callback(Protocol):
    """Measures an agent at fixed intervals, such as `urbe.deep.Evaluate`."""

    @property
    def name(self) -> str:
        """The name of its table in `agent.history.measured`, and of its file in a run's folder."""

    @property
    def every(self) -> int:
        """Steps between measurements, which are at its multiples."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the measured numbers."""

    @property
    def keep(self) -> str | None:
        """Name, without `.safetensors`, of the file in which `train` keeps the best agent; or None."""

    def describe(self, agent: DQNAgent) -> dict[str, Any]:
        """Describes the measurement as plain data: a run can be resumed only with the same.

        Raises:
          ValueError: it cannot measure this agent.
        """

    def measure(self, agent: DQNAgent) -> Mapping[str, float]:
        """Returns a number for each column. It changes nothing, and depends only on the agent."""

    def verdict(self, rows: Mapping[str, np.ndarray]) -> Decision:
        """Decides from all rows so far: `step` and its columns, `(N,)` each."""


AnyCallback = Callback | OnRow


class Watchers(NamedTuple):
    """Callbacks by kind."""

    functions: tuple[OnRow, ...]
    measuring: tuple[Callback, ...]

    def stop(self, agent: DQNAgent) -> str | None:
        """Why the measurements stop the agent; None if it continues."""
        found = (each.verdict(agent.history.measured[each.name]).stop for each in self.measuring)
        return next((why for why in found if why is not None), None)

    def give(self, *rows: Row) -> None:
        """Calls every function with every row."""
        for row in rows:
            for function in self.functions:
                function(row)


def watchers(callbacks: Sequence[AnyCallback], agent: DQNAgent) -> Watchers:
    """Checks the callbacks, sorts them by kind, and begins their tables in the agent's history.

    Raises:
      ValueError: one of them is not a callback, or two of them share a name or a folder.
    """
    checks.kind("callbacks", callbacks, isinstance(callbacks, Sequence), "a list of callbacks")
    measuring = tuple(each for each in callbacks if isinstance(each, Callback))
    used: set[str] = set(_TAKEN)
    for i, each in enumerate(callbacks):
        if isinstance(each, Callback):
            checks.whole_number(f"callbacks[{i}].every", each.every, 1)
            for part, name in (("name", each.name), ("keep", each.keep)):
                if name is not None:
                    _require_free(f"callbacks[{i}].{part}", name, used)
                    used.add(name)
            agent.history.begin(each.name, each.columns)
        elif not callable(each):
            raise ValueError(
                f"callbacks[{i}] is of type {type(each).__name__}, expected a function of one row, or a callback such "
                "as urbe.deep.Evaluate(every=5000)."
            )
    return Watchers(tuple(each for each in callbacks if not isinstance(each, Callback)), measuring)


def _require_free(argument: str, name: str, used: set[str]) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{argument} is {name!r}, expected a letter, then letters, digits, '_' and '-'.")
    if name in used:
        raise ValueError(f"{argument} is {name!r}, which is already in use; expected another name.")
