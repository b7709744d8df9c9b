"""Compare agents: returns over a parameter with intervals over seeds, performance profiles, and aggregates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from urbe.evaluation.compare import AGGREGATES, AgentComparison
from urbe.evaluation.policies import Acting
from urbe.evaluation.seeds import SeedEvaluation
from urbe.report import style
from urbe.report.curves import draw_bands
from urbe.report.dots import draw_dots
from urbe.report.figures import Figure, panels, styled
from urbe.report.robustness import TITLES
from urbe.statistics.estimates import Band, ConfidenceInterval


def draw_seeds(agents: Mapping[str, SeedEvaluation]) -> Figure:
    """Draws a panel for each way of acting: mean over seeds with its interval, and a thin line for each seed.

    Args:
      agents: by name; all over the same one parameter.
    """
    first = next(iter(agents.values()))
    if len(first.varied) != 1:
        raise ValueError(
            f"The parameters that vary are {', '.join(first.varied) or 'none'}, expected one to draw over."
        )
    ways = [way for way in first.played if all(way in each.played for each in agents.values())]
    with styled():
        figure, axes = panels(len(ways), height=2.7, right=_right(agents))
        for way, (panel,) in zip(ways, axes, strict=True):
            _over_parameter(panel, agents, way)
    return figure


def draw_comparison(comparison: AgentComparison) -> Figure:
    """Draws returns over the parameter if one varies, then performance profiles, then aggregates with intervals."""
    agents = comparison.agents
    one = len(next(iter(agents.values())).varied) == 1
    with styled():
        figure, axes = panels(2 + one, height=2.5, left=1.1, right=_right(agents), top=0.55)
        if one:
            _over_parameter(axes[0][0], agents, comparison.acting)
        _profiles(axes[-2][0], comparison)
        rows = {name: comparison.aggregates(name) for name in agents}
        dots: dict[str, list[ConfidenceInterval | None]] = {
            name: [_drawable(each[aggregate]) for aggregate in AGGREGATES] for name, each in rows.items()
        }
        titles = [name if name != "cvar" else f"CVaR {comparison.share:g}" for name in AGGREGATES]
        draw_dots(axes[-1][0], ["IQM" if title == "iqm" else title for title in titles], dots)
        axes[-1][0].set_xlabel(f"return, {100 * comparison.confidence:g} % interval over seeds")
    return figure


def _over_parameter(axes: Axes, agents: Mapping[str, SeedEvaluation], way: Acting) -> None:
    looks, bands = style.looks(list(agents)), {}
    first = next(iter(agents.values()))
    name = first.varied[0]
    order = np.argsort(first.param(name))
    at = first.param(name)[order]
    for label, each in agents.items():
        table = each.table()
        mine = table["acting"] == way
        mean, low, high = (table[column][mine][order] for column in ("mean", "low", "high"))
        bands[label] = Band(mean, np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high))
        for scores in each.scores(way):
            axes.plot(at, scores[order], color=looks[label].colour, linewidth=0.6, alpha=0.45)
    draw_bands(axes, at, bands)
    counts = sorted({len(each.seeds) for each in agents.values()})
    seeds = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    axes.set_title(
        f"{TITLES[way]}: mean of {seeds} within its {100 * first.confidence:g} % interval; thin, each seed", loc="left"
    )
    axes.set(xlabel=name, ylabel="return")


def _profiles(axes: Axes, comparison: AgentComparison) -> None:
    levels, bands = np.zeros(0), {}
    for name in comparison.agents:
        levels, bands[name] = comparison.profile(name)
    axes.set_xlim(levels[0], levels[-1])
    axes.set_ylim(-0.02, 1.02)
    draw_bands(axes, levels, bands)
    axes.set_title("performance profiles: share of parameters, over seeds, with a higher return", loc="left")
    axes.set(xlabel="return", ylabel="share above")


def _drawable(interval: ConfidenceInterval) -> ConfidenceInterval:
    """Replaces a missing interval by one of zero width."""
    return ConfidenceInterval(*[interval.estimate] * 3) if np.isnan(interval.low) else interval


def _right(agents: Mapping[str, SeedEvaluation]) -> float:
    return max(1.35, 0.45 + 0.085 * max(map(len, agents)))
