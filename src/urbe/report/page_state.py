"""The head of a page whose run is under way: what is done, what runs, what failed, and how long it will take."""

from __future__ import annotations

from html import escape

from urbe.report.content import State
from urbe.report.numbers import duration


def state_html(state: State) -> str:
    """A bar, the counts in words, and a box to tick for following the run, which the script shows."""
    return "\n".join(
        [
            '<section class="state" aria-label="State of the run">',
            f"<p><strong>{escape(state_text(state))}</strong></p>",
            f'<progress max="{state.total}" value="{state.done}" aria-label="Cells done">{state.done} of {state.total}'
            "</progress>",
            *(f"<p>{escape(line)}</p>" for line in state.notes),
            *([_follow(state)] if state.refresh else []),
            "</section>",
        ]
    )


def state_text(state: State) -> str:
    """The counts in words.

    >>> state_text(State(3, 10, running=2, seconds_left=125.0))
    '3 of 10 cells done, 2 running, about 2 min left'
    """
    parts = [f"{state.done} of {state.total} cells done"]
    parts += [f"{state.running} running"] if state.running else []
    parts += [f"{state.failed} failed"] if state.failed else []
    parts += [f"about {duration(state.seconds_left)} left"] if state.seconds_left is not None else []
    return ", ".join(parts)


def refresh_html(state: State) -> str:
    """For the head of the page: reads it again every few seconds, where scripts do not run."""
    return f'<noscript><meta http-equiv="refresh" content="{state.refresh}"></noscript>'


def _follow(state: State) -> str:
    return (
        f'<p><label hidden><input type="checkbox" id="follow" checked data-seconds="{state.refresh}"> '
        f"Read the page again every {state.refresh} s</label></p>"
    )
