"""Draw a deployment: the belief and the surprise at every step, and the return of every episode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from urbe.report import style
from urbe.report.figures import Figure, panels, styled
from urbe.report.maps import draw_shares

if TYPE_CHECKING:
    from urbe.deep.adaptive.session import Session


def draw_session(session: Session) -> Figure:
    """Draws the belief over the members and the surprise after each step, and the returns of episodes."""
    if not session.log:
        raise ValueError("The session has no steps, expected at least one to draw: act and observe first.")
    columns, names = session.columns(), session.member_names
    ended = columns["terminated"] | columns["truncated"]
    total = np.cumsum(columns["reward"])[ended]
    limit = session.policy.watch.limit
    with styled():
        figure, ((above,), (between,), (below,)) = panels(3, height=1.9, left=1.7, right=0.4)
        draw_shares(above, columns["belief"].T)
        above.set_yticks(range(len(names)), names, fontsize=6.5)
        above.set_title("belief over the members after each step, used for decisions")
        between.plot(columns["surprise"], color=style.ROBUST, linewidth=1.2)
        between.axhline(limit, color=style.MUTED, linewidth=0.8, linestyle=style.DASHED)
        between.set_title("surprise in nats; above the dashed line no member explains the observations")
        between.set_ylim(top=min(max(1.2 * limit, float(columns["surprise"].max())), 3.0 * limit))
        below.plot(np.flatnonzero(ended), np.diff(total, prepend=0.0), ".", markersize=4.0, color=style.ROBUST)
        below.set_title("return of each episode, at its last step")
        below.set_xlabel("step")
        for panel in (between, below):
            panel.set_xlim(above.get_xlim())
    figure.set_facecolor("white")
    return figure
