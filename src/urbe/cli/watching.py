"""A run on the terminal: cells done, running and failed, and the time left."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_MOST = 8
"""Running cells and failures shown."""


class Screen:
    """Shows a status (see `urbe.sweep.status`) in place; without a terminal, a line whenever its counts change.

    Args:
      page: that is written meanwhile.
    """

    def __init__(self, page: Path) -> None:
        self._page = page
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._last = ""

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, status: dict[str, Any] | None, alive: bool, counts: tuple[int, int]) -> None:
        """Shows how things are.

        Args:
          status: of the run, None when there is none.
          alive: whether somebody works on it.
          counts: cells on the page, and all.
        """
        line = headline(status, alive)
        if self._live is not None:
            self._live.update(layout(line, status, alive, self._page, counts), refresh=True)
        elif line != self._last:
            print(line, file=self._console.file, flush=True)
        self._last = line


def headline(status: dict[str, Any] | None, alive: bool) -> str:
    """One line: counts, and the time left.

    >>> headline(None, False)
    'waiting for a run to begin'
    """
    from urbe.report.content import State
    from urbe.report.page import state_text

    if status is None:
        return "waiting for a run to begin"
    total = status["done"] + status["failed"] + status["running"] + status["waiting"]
    running, left = (status["running"], status["left"]) if alive else (0, None)
    line = state_text(State(status["done"], total, running, status["failed"], left))
    return line if alive or status["state"] == "done" else f"{line}; the run is not under way"


def layout(line: str, status: dict[str, Any] | None, alive: bool, page: Path, counts: tuple[int, int]) -> Group:
    lines: list[Any] = [Text(line, style="bold")]
    if status is not None:
        total = status["done"] + status["failed"] + status["running"] + status["waiting"]
        lines += [ProgressBar(total=max(total, 1), completed=status["done"]), _experiments(status)]
        for cell in status["cells"][:_MOST] if alive else []:
            part = "" if cell["fraction"] is None else f"  {cell['fraction']:.0%}"
            lines.append(Text(f"{cell['experiment']}/{cell['cell']}{part}", style="cyan"))
        lines += [
            Text(f"{each['experiment']}/{each['cell']} failed: {each['text']}", style="red")
            for each in status["failures"][:_MOST]
        ]
    if counts[1] >= 0:
        lines.append(Text(f"{page} shows {counts[0]} of {counts[1]} cells", style="dim"))
    return Group(*lines)


def _experiments(status: dict[str, Any]) -> Table:
    table = Table("experiment", "done", "running", "waiting", "failed", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, part in status["experiments"].items():
        table.add_row(name, *(str(part[key]) for key in ("done", "running", "waiting", "failed")))
    return table
