"""The results of an evaluation: every episode, and a long table of statistics."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import extras
from urbe.evaluation.episodes import Episodes
from urbe.evaluation.grids import Point
from urbe.evaluation.policies import WAYS, Acting
from urbe.statistics.estimates import cvar as mean_of_lowest
from urbe.statistics.estimates import mean_band
from urbe.types import FloatArray

SHOWN = 60
"""At most this many rows are printed."""

NUMBERS = ("mean", "low", "high", "worst", "cvar", "median", "std", "mean_length", "terminated")
"""The statistics of the episodes in a row."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Test episodes of one policy under P sets of parameters.

    Args:
      points: the parameters of each, by name.
      varied: names of the parameters that vary.
      greedy: E episodes under each, acting without noise; None if not played.
      noisy: likewise, acting with the noise of an uncertainty head.
      seed: seed of the episodes; evaluations with the same seed and E are paired.
      confidence: confidence level of the intervals of means.
      cvar: share of the lowest returns whose mean is reported.
    """

    points: tuple[Point, ...]
    varied: tuple[str, ...]
    greedy: Episodes | None
    noisy: Episodes | None
    seed: int
    confidence: float
    cvar: float

    @property
    def played(self) -> dict[Acting, Episodes]:
        """The episodes by way of acting."""
        both: dict[Acting, Episodes | None] = {"greedy": self.greedy, "noisy": self.noisy}
        return {way: episodes for way in WAYS if (episodes := both[way]) is not None}

    def param(self, name: str) -> FloatArray:
        """`(P,)` the values of a parameter."""
        if name not in self.points[0]:
            raise ValueError(f"name is {name!r}, expected one of {', '.join(self.points[0])}.")
        return np.array([point[name] for point in self.points])

    def table(self) -> dict[str, np.ndarray]:
        """One row per way of acting and set of parameters, as columns.

        Columns: the parameters that vary; `acting`; `episodes`; `mean` of the returns, with the ends `low` and `high`
        of Student's interval for it (NaN for one episode); `worst`, the lowest return; `cvar`, the mean of the lowest
        share; `median`; `std`, with n - 1; `mean_length`; `terminated`, the share of episodes that terminated.
        """
        parts = [self._part(way, episodes) for way, episodes in self.played.items()]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def episodes(self) -> dict[str, np.ndarray]:
        """One row per episode, as columns.

        Columns: the parameters that vary, `acting`, `episode`, `return`, `length`, `terminated`.
        """
        parts = []
        for way, (returns, lengths, terminated) in self.played.items():
            p, e = returns.shape
            parts.append(
                {name: np.repeat(self.param(name), e) for name in self.varied}
                | {
                    "acting": np.full(p * e, way),
                    "episode": np.tile(np.arange(e), p),
                    "return": returns.ravel(),
                    "length": lengths.ravel(),
                    "terminated": terminated.ravel(),
                }
            )
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def to_frame(self) -> Any:
        """`table()` as a pandas frame; needs `pip install urbe[frames]`."""
        return extras.data_frame(self.table())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes `table()` atomically as CSV or Parquet, according to the suffix."""
        from urbe.mdp.formats.tables import write_table

        write_table(path, self.table())

    def plot(self) -> Any:
        """Draws mean returns over the parameter that varies. Needs `pip install urbe[plots]`."""
        return extras.drawings().draw_evaluation(self)

    def worst(self, acting: Acting = "greedy") -> dict[str, Any]:
        """The row of the parameters with the lowest mean.

        The lowest of many estimates is biased downwards; evaluate there again with another seed for an unbiased one.
        """
        if acting not in self.played:
            raise ValueError(f"acting is {acting!r}, expected one of {', '.join(map(repr, self.played))}, as played.")
        rows = self._part(acting, self.played[acting])
        at = int(rows["mean"].argmin())
        return {name: column[at].item() for name, column in rows.items()}

    def _part(self, way: Acting, episodes: Episodes) -> dict[str, np.ndarray]:
        returns = episodes.returns
        p, e = returns.shape
        alone = np.full(p, np.nan)
        band = mean_band(returns.T, confidence=self.confidence) if e > 1 else (returns[:, 0], alone, alone)
        return {name: self.param(name) for name in self.varied} | {
            "acting": np.full(p, way),
            "episodes": np.full(p, e),
            "mean": band[0],
            "low": band[1],
            "high": band[2],
            "worst": returns.min(axis=1),
            "cvar": mean_of_lowest(returns.T, self.cvar),
            "median": np.median(returns, axis=1),
            "std": returns.std(axis=1, ddof=1) if e > 1 else alone,
            "mean_length": episodes.lengths.mean(axis=1),
            "terminated": episodes.terminated.mean(axis=1),
        }

    def __repr__(self) -> str:
        first = next(iter(self.played.values()))
        ways = " and ".join(self.played)
        return f"Evaluation({len(self.points)} x {first.returns.shape[1]} episodes, {ways})"

    def __str__(self) -> str:
        rows = self.table()
        texts = {name: _texts(name, rows[name]) for name in (*self.varied, "acting", *NUMBERS)}
        titles = {name: name.replace("mean_length", "length").replace("terminated", "ended") for name in texts}
        titles["cvar"] = f"cvar {self.cvar:g}"
        width = {name: max(len(titles[name]), *map(len, column)) for name, column in texts.items()}
        lines = ["  ".join(titles[name].rjust(width[name]) for name in texts)]
        n = len(rows["mean"])
        lines += ["  ".join(texts[name][i].rjust(width[name]) for name in texts) for i in range(min(n, SHOWN))]
        if n > SHOWN:
            lines.append(f"... {n - SHOWN} more rows")
        fixed = ", ".join(f"{name} {value:g}" for name, value in self.points[0].items() if name not in self.varied)
        lines.append(
            f"{rows['episodes'][0]} episodes each, seed {self.seed}; low and high are Student's "
            f"{100 * self.confidence:g} % interval of the mean."
        )
        if fixed:
            lines.append(f"All have {fixed}.")
        return "\n".join(lines)


def _texts(name: str, column: np.ndarray) -> list[str]:
    if name in NUMBERS:
        return [f"{value:.2f}" if name == "terminated" else f"{value:.4g}" for value in column]
    return [f"{value:g}" if column.dtype.kind == "f" else str(value) for value in column]
