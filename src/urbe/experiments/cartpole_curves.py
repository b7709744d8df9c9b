"""Curves of the CartPole comparison: one row per seed, on common abscissae."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from urbe.experiments.cartpole import Found
from urbe.statistics.estimates import Band, mean_band
from urbe.types import FloatArray


class Curves(NamedTuple):
    """`(m,)` abscissae, and for each agent a `(seeds, m)` array."""

    x: FloatArray
    of: dict[str, FloatArray]


def over_lengths(found: Found, inputs: str, acting: str, agents: Sequence[str]) -> Curves:
    """Test returns over half lengths."""
    lengths = found.at(inputs, "return")
    told = {
        agent: np.stack(
            [
                found.scores(inputs, agent, "return", acting, seeds=found.seeds(inputs, [agent]), at=length)
                for length in lengths
            ],
            axis=1,
        )
        for agent in agents
    }
    return Curves(np.array(lengths), told)


def around_change(found: Found, inputs: str, metric: str, change: float, agents: Sequence[str]) -> Curves:
    """Training returns around a change of the pole, over steps ("curve") or episodes ("episodes") since then.

    Points that some agent or seed lacks are left out.
    """
    of_agents = {agent: _around(found, inputs, metric, change, agent) for agent in agents}
    points = [set(line) for lines in of_agents.values() for line in lines]
    x = sorted(set.intersection(*points)) if points else []
    return Curves(
        np.array(x), {agent: np.array([[line[at] for at in x] for line in lines]) for agent, lines in of_agents.items()}
    )


def _around(found: Found, inputs: str, metric: str, change: float, agent: str) -> list[dict[float, float]]:
    """For each seed, returns by time since the change."""
    trained = found.by_seed(inputs, agent, "steps")
    lines: dict[int, dict[float, float]] = {seed: {} for seed in found.by_seed(inputs, agent, "late", change=change)}
    for at in found.at(inputs, metric, change, agent):
        for seed, value in found.by_seed(inputs, agent, metric, change=change, at=at).items():
            lines[seed][at] = value
    if metric == "curve":
        for at in found.at(inputs, metric, 0.0, agent):
            for seed, value in found.by_seed(inputs, agent, metric, at=at).items():
                if seed in lines:
                    lines[seed][at - trained[seed]] = value
    return list(lines.values())


def bands(curves: Curves) -> dict[str, Band]:
    """Means with their 95 % intervals over seeds; without width for a single seed."""
    return {
        agent: mean_band(values) if len(values) > 1 else Band(values[0], values[0], values[0])
        for agent, values in curves.of.items()
    }
