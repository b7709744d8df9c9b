"""Show the progress of learning, with the latest measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan, nan
from typing import TYPE_CHECKING

from urbe.deep.training.callbacks import Row
from urbe.progress import progress

if TYPE_CHECKING:
    from urbe.deep.agent import DQNAgent

ShowRows = Callable[[Sequence[Row]], None]

_SHOWN = {"mean_return": "return {:.4g}", "td_error": "TD {:.3g}", "evaluation/mean": "evaluation {:.4g}"}


@contextmanager
def learning(agent: DQNAgent, end: int, *, shown: bool) -> Iterator[ShowRows]:
    """Yields a function that shows new rows; the latest value of each number stays visible.

    Args:
      agent: the agent whose steps are counted.
      end: the final step.
      shown: whether to show anything.
    """
    last: dict[str, str] = {}
    with progress(agent.name, end, start=agent.step, unit="steps", shown=shown) as show:

        def show_rows(rows: Sequence[Row]) -> None:
            for row in rows:
                last.update(
                    {key: text.format(row[key]) for key, text in _SHOWN.items() if not isnan(row.get(key, nan))}
                )
            show(agent.step, ", ".join(last.values()))

        yield show_rows
        show_rows([])  # the last steps have no row
