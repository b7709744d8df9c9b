"""The figure of the front page: the belief of an agent before and after changes, and its returns."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from urbe.paper.adaptation import BELIEF, ROVER
from urbe.paper.adaptation.members import FAILURES
from urbe.paper.results import Results
from urbe.report import style
from urbe.report.content import Exhibit, Highlight
from urbe.report.figures import name_ends, small, styled
from urbe.report.maps import draw_shares
from urbe.report.numbers import number
from urbe.types import FloatArray

AVERAGED = 10
"""Episodes in the moving average of the return."""


def highlight(results: Results) -> Highlight | None:
    """Belief and return in one life on Mars Rover; None if it was not run, or nothing changes in it."""
    life = results.where(domain=ROVER, agent=BELIEF, metric=("belief", "true", "episode"))
    if not life:
        return None
    belief = life.where(metric="belief").pivot("member", "at")
    true, earned = (life.where(metric=metric).pivot("at") for metric in ("true", "episode"))
    changes = np.flatnonzero(np.diff(true)) + 1
    if not len(changes):
        return None
    with styled():
        figure, (above, below) = small(rows=2, height=1.35, right=0.75)
        _draw_belief(above, belief, true)
        smooth = np.convolve(earned, np.ones(AVERAGED) / AVERAGED, mode="valid")
        below.plot(np.arange(len(earned)), earned, ".", markersize=3.0, color=style.ROBUST, alpha=0.5)
        below.plot(np.arange(AVERAGED - 1, len(earned)), smooth, color=style.ROBUST, linewidth=1.8)
        below.set(xlabel="episode", title="return, and its moving average", xlim=above.get_xlim())
        for panel in (above, below):
            for change in changes:
                panel.axvline(change - 0.5, color=style.MUTED, linewidth=0.8, linestyle=style.DASHED, zorder=3.0)
    noticed = [_episodes_until_noticed(belief, true, int(change)) for change in changes]
    found = [n for n in noticed if n is not None]
    message = "An agent with a belief adapts to a changing environment without further training."
    if len(found) == len(changes):
        most = max(found)
        message = (
            f"An agent with a belief notices every change of its environment within "
            f"{most} episode{'s' * (most > 1)}, without further training."
        )
    caption = (
        "Mars Rover, one life of the belief agent: above, its belief over the failure probability after every episode "
        "(stronger colours mean higher probabilities) and the true one; below, its returns, with the mean of the last "
        f"{AVERAGED} episodes. Dashed lines mark changes. A change is noticed when the expected failure probability is "
        "nearer to the new value than to the old one."
    )
    return Highlight(message, Exhibit("front", figure, caption, caption))


def _draw_belief(axes: Axes, belief: FloatArray, true: FloatArray) -> None:
    draw_shares(axes, belief)
    members = np.array(FAILURES)
    shown = np.arange(0, len(members), 3)
    axes.set_yticks(shown, [number(members[k], 2) for k in shown], fontsize=8.0)
    heights = np.interp(true, members, np.arange(len(members)))
    axes.step(np.arange(len(true)), heights, where="mid", color=style.NOMINAL, linewidth=1.8)
    axes.set(title="belief over the failure probability")
    name_ends(axes, [("truth", style.NOMINAL, float(heights[-1]))])


def _episodes_until_noticed(belief: FloatArray, true: FloatArray, change: int) -> int | None:
    """Episodes after a change until the mean of the belief is nearer to the new value; None before the next change."""
    old, new = true[change - 1], true[change]
    mean = np.array(FAILURES) @ belief
    after = np.flatnonzero(true[change:] != new)
    until = change + int(after[0]) if len(after) else len(true)
    nearer = np.flatnonzero(np.abs(mean[change:until] - new) < np.abs(mean[change:until] - old))
    return int(nearer[0]) + 1 if len(nearer) else None
