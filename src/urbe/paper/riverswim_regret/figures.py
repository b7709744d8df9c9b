"""The results, figures and tables of the regret on RiverSwim."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from urbe.paper.results import Results
from urbe.paper.riverswim_regret import HORIZON
from urbe.report.content import Exhibit, Section, Table
from urbe.report.curves import draw_bands
from urbe.report.dots import ROW, draw_dots, rows_of
from urbe.report.figures import panels, styled
from urbe.report.numbers import interval_column
from urbe.statistics.estimates import Band, ConfidenceInterval, mean_band, mean_interval
from urbe.types import FloatArray


def sections(results: Results) -> list[Section]:
    """All curves, least regret first in the table."""
    curves = {agent: curve for (agent,), curve in results.groups("agent")}
    seeds, points = len(results.unique("seed")), episodes(results)
    with styled():
        figure, axes = panels(height=4.6, right=2.1)
        panel = axes[0][0]
        bands = {agent: mean_band(regret(curve)) for agent, curve in curves.items()}
        panel.set_yscale("log", nonpositive="clip")  # the best agents are a hundred times better than the worst
        panel.set_ylim(*_ends(bands.values()))
        draw_bands(panel, points, bands)
        panel.set(xlabel="episode", ylabel="regret")
        ends = {agent: last(curve) for agent, curve in curves.items()}
        ordered = sorted(ends, key=lambda agent: ends[agent].estimate)
        dots, places = panels(height=ROW * (rows_of(len(curves)) + 1), left=2.1, right=0.3)
        places[0][0].set_xscale("log", nonpositive="clip")
        draw_dots(places[0][0], ordered, {"": [ends[agent] for agent in ordered]})
        places[0][0].set_xlabel(f"regret after {points[-1]:.0f} episodes")
    texts = interval_column([ends[agent] for agent in ordered])
    rows = tuple(
        (agent, text, curves[agent].one("setting") or "nothing to choose")
        for agent, text in zip(ordered, texts, strict=True)
    )
    table = Table(f"Regret after {points[-1]:.0f} episodes, least first", ("agent", "regret", "setting"), rows)
    text = (
        f"Six states, episodes of {HORIZON} steps from the left bank. Agents know only the states and actions: any "
        "state may follow, and rewards are uncertain (except for OLRM, which must know them). Regret is the sum of "
        "the losses in value of the actions taken. The dynamics do not change.",
        "URBE plans against L1 balls; URBE (KL) and URBE (chi-square) differ from it only in the balls: to each "
        "radius psi among its settings correspond psi^2 / 2 and psi^2 among theirs.",
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
                    + ", ".join(f"{agent}: {ends[agent].estimate:.0f}" for agent in ordered),
                    "Mean regret and its 95 % interval, point by point, on a logarithmic axis.",
                ),
                Exhibit("last", dots, "Last regret of every agent, with intervals.", "The same at the end.", (table,)),
            ),
            facts=(("Replicates", f"{seeds} fresh seeds for each agent; Student's intervals at 95 %"),),
        )
    ]


def _ends(bands: Iterable[Band]) -> tuple[float, float]:
    """The ends of a logarithmic axis for positive estimates; intervals that reach 0 end at the axis."""
    estimates = np.concatenate([band.estimate for band in bands])
    positive = estimates[estimates > 0.0]
    return (0.7 * float(positive.min()), 1.4 * float(positive.max())) if len(positive) else (0.1, 1.0)


def episodes(results: Results) -> FloatArray:
    """`(points,)` the episodes at which the regret is known."""
    return np.array(sorted(results.unique("episode")), dtype=np.float64)


def regret(curve: Results) -> FloatArray:
    """`(seeds, points)` the regret of one agent."""
    return curve.pivot("seed", "episode", value="regret")


def last(curve: Results) -> ConfidenceInterval:
    """The regret after all episodes, with its 95 % interval."""
    return mean_interval(regret(curve)[:, -1])
