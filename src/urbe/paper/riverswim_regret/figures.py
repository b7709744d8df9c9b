"""Figures and tables of the regret on RiverSwim."""

from __future__ import annotations

from collections.abc import Sequence

from urbe.paper.riverswim_regret.cells import HORIZON
from urbe.paper.riverswim_regret.results import Curve
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import styled
from urbe.report.numbers import interval_column
from urbe.report.panels import panels
from urbe.statistics.estimates import Interval, mean_interval


def sections(curves: Sequence[Curve]) -> list[Section]:
    """All curves, best last regret first in the table."""
    seeds = len(curves[0].regret)
    episodes = int(curves[0].episode[-1])
    with styled():
        figure, axes = panels(height=4.6, right=2.1)
        panel = axes[0][0]
        draw_bands(panel, curves[0].episode, {curve.agent: curve.band for curve in curves})
        panel.set_xlabel("episode")
        panel.set_ylabel("regret")
        ordered = sorted(curves, key=lambda curve: _last(curve).estimate)
        dots, places = panels(height=ROW * (rows_of(len(curves)) + 1), left=2.1, right=0.3)
        draw_dots(places[0][0], [curve.agent for curve in ordered], {"": [_last(curve) for curve in ordered]})
        places[0][0].set_xlabel(f"regret after {episodes} episodes")
    last = interval_column([_last(curve) for curve in ordered])
    rows = tuple((c.agent, text, c.setting or "nothing to choose") for c, text in zip(ordered, last, strict=True))
    table = Table(f"Regret after {episodes} episodes, least first", ("agent", "regret", "setting"), rows)
    text = (
        f"Six states, episodes of {HORIZON} steps from the left bank. Agents know the states and actions alone: any "
        "state may follow, rewards are uncertain (OLRM must know them, and is told). Regret adds up what each action "
        "taken falls short of the best one in value. The world does not change.",
    )
    return [
        Section(
            "Regret",
            text,
            (
                Exhibit(
                    "regret",
                    figure,
                    "Regret of every agent over the episodes, with bands. "
                    + ", ".join(f"{c.agent}: {_last(c).estimate:.0f}" for c in ordered),
                    "Mean regret and its 95 % interval, point by point.",
                ),
                Exhibit("last", dots, "Last regret of every agent, with intervals.", "The same at the end.", (table,)),
            ),
            facts=(("Replicates", f"{seeds} fresh seeds for each agent; Student's intervals at 95 %"),),
        )
    ]


def _last(curve: Curve) -> Interval:
    return mean_interval(curve.regret[:, -1])
