"""How far a sweep has come, in the words of the page and of the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from urbe.sweep.status import Status

if TYPE_CHECKING:
    from urbe.report.content import State


SILENCE = 60.0
"""Seconds after which a status that is not renewed means that nobody works there."""

_MOST = 5
"""Failures that are listed."""


def is_alive(status: Status | None) -> bool:
    """Whether somebody works on the sweep now."""
    if status is None or status["state"] != "running":
        return False
    return (datetime.now(UTC) - datetime.fromisoformat(status["updated"])).total_seconds() < SILENCE


def run_state(done: int, total: int, status: Status | None, resume: str, refresh: int = 0) -> State | None:
    """For the head of the page; None when all is finished.

    Args:
      done, total: cells that are finished, and all there are.
      status: see `urbe.sweep.status`.
      resume: the command that goes on with the run.
      refresh: seconds after which the page reads itself again; 0 for never.
    """
    from urbe.report.content import State

    if done == total:
        return None
    alive = is_alive(status)
    notes = ["This page is of an unfinished run: what is missing is said in its place, and verdicts may change."]
    if not alive:
        notes.append(f"The run is not under way; it goes on with: {resume}")
    failures = status["failures"] if status else []
    notes += [f"{each['experiment']}/{each['cell']} failed: {each['text']}" for each in failures[:_MOST]]
    notes += [f"{len(failures) - _MOST} more failed."] if len(failures) > _MOST else []
    return State(
        done,
        total,
        status["running"] if status and alive else 0,
        len(failures),
        status["left"] if status and alive else None,
        tuple(notes),
        refresh,
    )
