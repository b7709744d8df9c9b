"""Draw returns of policies over a parameter: means with intervals, and the worst episodes below them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from urbe.evaluation.policies import WAYS
from urbe.evaluation.table import Evaluation
from urbe.report import style
from urbe.report.curves import draw_bands
from urbe.report.figures import Figure, panels, styled
from urbe.statistics.estimates import Band

TITLES = {"greedy": "acting greedily", "noisy": "acting with the uncertainty head's noise"}


def draw_robustness(evaluations: Mapping[str, Evaluation]) -> Figure:
    """Draws a panel for each way of acting: means as lines with intervals, the worst episode as a thin line.

    Args:
      evaluations: by name, which determines the colour; all over the same one parameter.
    """
    name = _parameter(evaluations)
    ways = [way for way in WAYS if any(way in each.played for each in evaluations.values())]
    longest = max(map(len, evaluations))
    with styled():
        figure, axes = panels(len(ways), height=2.7, right=max(1.35, 0.45 + 0.085 * longest))
        for way, (panel,) in zip(ways, axes, strict=True):
            shown = {label: each for label, each in evaluations.items() if way in each.played}
            _draw(panel, shown, way, name, style.looks(list(evaluations)))
    return figure


def _draw(
    axes: Axes, evaluations: Mapping[str, Evaluation], way: str, name: str, looks: Mapping[str, style.Look]
) -> None:
    bands, worst = {}, {}
    for label, each in evaluations.items():
        table = each.table()
        mine = table["acting"] == way
        x = table[name][mine]
        order = np.argsort(x)
        mean, low, high, lowest = (table[column][mine][order] for column in ("mean", "low", "high", "worst"))
        bands[label] = Band(mean, np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high))
        worst[label] = lowest
    at = np.sort(x)
    for label, lowest in worst.items():
        axes.plot(at, lowest, color=looks[label].colour, linestyle=looks[label].dash, linewidth=0.8, alpha=0.75)
    draw_bands(axes, at, bands)
    for label, band in bands.items():
        axes.plot(at, band.estimate, looks[label].marker, color=looks[label].colour, markersize=4.0, clip_on=False)
    first = next(iter(evaluations.values()))
    episodes = first.table()["episodes"][0]
    axes.set_title(
        f"{TITLES[way]}: mean of {episodes} episodes within its {100 * first.confidence:g} % interval; thin, the worst "
        "episode"
    )
    axes.set(xlabel=name, ylabel="return")


def _parameter(evaluations: Mapping[str, Evaluation]) -> str:
    """Checks that one parameter varies, with the same values for all, and returns its name."""
    if not evaluations:
        raise ValueError("evaluations is empty, expected at least one.")
    first_label, first = next(iter(evaluations.items()))
    for label, each in evaluations.items():
        if len(each.varied) != 1:
            found = ", ".join(each.varied) or "none"
            raise ValueError(f"In {label!r} the parameters that vary are {found}, expected one to draw over.")
        name = each.varied[0]
        if len(set(each.param(name))) < 2:
            raise ValueError(
                f"In {label!r} {name} has {len(set(each.param(name)))} value, expected at least 2 to draw a line."
            )
        if name != first.varied[0] or not np.array_equal(each.param(name), first.param(name)):
            raise ValueError(f"{label!r} and {first_label!r} are over different parameters, expected the same.")
    return first.varied[0]
