"""Compare agents by one number for all parameters and seeds, with intervals over seeds.

With scores x_it of seed i under the parameters theta_t:

    mean         mean_i mean_t x_it
    IQM          the mean of the middle half of all x_it
    worst case   mean_i min_t x_it
    CVaR         mean_i (mean of the lowest share of x_i1, ..., x_iP)

The scores of one seed depend on each other, so whole seeds are resampled: intervals of mean, worst case and CVaR are
Student's over seeds; those of the IQM and of the performance profile are bootstraps of whole seeds.
With few seeds both kinds are rough, and bootstrap intervals too narrow; with one seed there are none.

The worst case of estimated means is biased downwards: play many episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks, extras
from urbe.evaluation.policies import Acting
from urbe.evaluation.seeds import SeedEvaluation, same_points, seeds_of
from urbe.evaluation.table import Evaluation
from urbe.rng import stream
from urbe.statistics.aggregates import iqm
from urbe.statistics.bootstrap import RESAMPLES
from urbe.statistics.comparisons import Comparison, paired_comparisons
from urbe.statistics.estimates import Band, ConfidenceInterval, cvar, mean_interval
from urbe.tables import TableResult, text_table
from urbe.types import FloatArray

AGGREGATES = ("iqm", "mean", "worst case", "cvar")
THRESHOLDS = 101
"""Number of thresholds of a performance profile."""

Compared = SeedEvaluation | Evaluation | Sequence[Evaluation]


@dataclass(frozen=True, eq=False, repr=False)
class AgentComparison(TableResult):
    """A comparison of agents that were evaluated over the same parameters.

    Args:
      agents: their evaluations, by name.
      acting: the way of acting that is compared.
      share: share of the parameters for the CVaR.
      confidence: confidence level of the intervals.
      seed: seed of the bootstraps.
    """

    agents: Mapping[str, SeedEvaluation]
    acting: Acting
    share: float
    confidence: float
    seed: int

    def scores(self, agent: str) -> FloatArray:
        """`(S, P)` mean returns of each seed under each set of parameters."""
        return self.agents[agent].scores(self.acting)

    def aggregates(self, agent: str) -> dict[str, ConfidenceInterval]:
        """The aggregates by their names in `AGGREGATES`; ends are NaN for one seed."""
        scores = self.scores(agent)
        per_seed = {
            "mean": scores.mean(axis=1),
            "worst case": scores.min(axis=1),
            "cvar": cvar(scores.T, self.share),
        }
        found = {"iqm": self._iqm(agent, scores)}
        for name, values in per_seed.items():
            found[name] = (
                mean_interval(values, confidence=self.confidence)
                if len(values) > 1
                else ConfidenceInterval(float(values[0]), np.nan, np.nan)
            )
        return found

    def profile(self, agent: str, thresholds: FloatArray | None = None) -> tuple[FloatArray, Band]:
        """The share of a seed's scores above each threshold, with a band that holds at all thresholds at once.

        Args:
          agent: its name.
          thresholds: `(T,)` increasing; by default from the lowest to the highest score of all agents.
        """
        levels = self._thresholds() if thresholds is None else np.asarray(thresholds, np.float64)
        above = (self.scores(agent)[:, :, None] > levels).mean(axis=1)
        share = above.mean(axis=0)
        if len(above) == 1:
            return levels, Band(share, share, share)
        rng = stream(self.seed, "profile", agent)
        drawn = rng.multinomial(len(above), np.full(len(above), 1.0 / len(above)), RESAMPLES) / len(above)
        width = np.quantile(np.abs(drawn @ above - share).max(axis=1), self.confidence, method="higher")
        return levels, Band(share, np.maximum(share - width, 0.0), np.minimum(share + width, 1.0))

    def differences(self, aggregate: str = "worst case") -> tuple[Comparison, ...]:
        """Compares all pairs of agents, seed by seed, in mean, worst case or CVaR; intervals hold jointly.

        Raises:
          ValueError: fewer than two agents have several seeds, or their seeds differ.
        """
        checks.one_of("aggregate", aggregate, AGGREGATES[1:])
        seeds = {name: each.seeds for name, each in self.agents.items() if len(each.seeds) > 1}
        common = set.intersection(*map(set, seeds.values())) if seeds else set()
        if len(seeds) < 2 or any(set(each) != common for each in seeds.values()):
            listed = "; ".join(f"{name}: {', '.join(map(str, each.seeds))}" for name, each in self.agents.items())
            raise ValueError(
                f"The agents have the seeds {listed}; expected the same, at least two, for at least two agents."
            )
        statistic = {"mean": np.mean, "worst case": np.min, "cvar": lambda x: float(cvar(x, self.share))}[aggregate]
        values = {
            name: np.array([statistic(self.scores(name)[each.index(s)]) for s in sorted(common)])  # type: ignore[operator]
            for name, each in seeds.items()
        }
        return paired_comparisons(values, stream(self.seed, "differences"), confidence=self.confidence)

    def table(self) -> dict[str, np.ndarray]:
        """One row per agent and aggregate, as columns: `agent`, `seeds`, `aggregate`, `estimate`, `low`, `high`."""
        rows = [
            (name, len(each.seeds), aggregate, *interval)
            for name, each in self.agents.items()
            for aggregate, interval in self.aggregates(name).items()
        ]
        names = ("agent", "seeds", "aggregate", "estimate", "low", "high")
        return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    def plot(self) -> Any:
        """Draws returns over the parameter, performance profiles and aggregates. Needs `urbe[plots]`."""
        return extras.drawings().draw_comparison(self)

    def __repr__(self) -> str:
        return f"AgentComparison({', '.join(self.agents)}; {self.acting})"

    def __str__(self) -> str:
        found = {name: self.aggregates(name) for name in self.agents}
        columns = {"agent": np.array(list(found)), "seeds": np.array([len(e.seeds) for e in self.agents.values()])}
        for aggregate in AGGREGATES:
            columns[f"cvar {self.share:g}" if aggregate == "cvar" else aggregate] = np.array(
                [_text(each[aggregate]) for each in found.values()]
            )
        lines = text_table(columns)
        lines.append(
            f"Acting {'greedily' if self.acting == 'greedy' else 'noisily'}, over "
            f"{len(next(iter(self.agents.values())).evaluations[0].points)} sets of parameters; "
            f"{100 * self.confidence:g} % intervals over seeds."
        )
        try:
            for each in self.differences():
                interval = _text(each.simultaneous)
                lines.append(f"Worst case of {each.first} - {each.second}: {interval}, p = {each.p_holm:.3f} (Holm).")
        except ValueError:
            lines.append("Differences are tested only between agents that share at least two seeds.")
        return "\n".join(lines)

    def _thresholds(self) -> FloatArray:
        scores = [self.scores(name) for name in self.agents]
        low, high = min(map(np.min, scores)), max(map(np.max, scores))
        room = 0.02 * (high - low) or 1.0
        return np.linspace(low - room, high + room, THRESHOLDS)

    def _iqm(self, agent: str, scores: FloatArray) -> ConfidenceInterval:
        estimate = float(iqm([scores.ravel()]))
        if len(scores) == 1:
            return ConfidenceInterval(estimate, np.nan, np.nan)
        rng, tail = stream(self.seed, "iqm", agent), 0.5 - 0.5 * self.confidence
        blocks = [rng.integers(len(scores), size=(100, len(scores))) for _ in range(RESAMPLES // 100)]
        drawn = np.concatenate([iqm([scores[rows].reshape(len(rows), -1)]) for rows in blocks])
        return ConfidenceInterval(estimate, *map(float, np.quantile(drawn, (tail, 1.0 - tail))))


def compare(
    agents: Mapping[str, Compared],
    *,
    acting: Acting = "greedy",
    share: float = 0.25,
    confidence: float = 0.95,
    seed: int = 0,
) -> AgentComparison:
    """Compares agents that were evaluated over the same parameters.

    Args:
      agents: by name, the results of `urbe.evaluate` for the training seeds: one, a list, or a `SeedEvaluation`.
      acting: "greedy" or "noisy".
      share: share of the parameters, those with the lowest scores, for the CVaR.
      confidence: confidence level of the intervals.
      seed: seed of the bootstraps.

    Raises:
      ValueError: parameters or episodes differ between agents, or an agent did not act that way.

    >>> from types import SimpleNamespace
    >>> from urbe import evaluate
    >>> from urbe.simulators import CartPole
    >>> def leaning(c): return SimpleNamespace(predict=lambda o: (o[..., 2] + c * o[..., 3] > 0).astype(int))
    >>> poles = {"half_length": (0.25, 1.0)}
    >>> play = lambda c: evaluate(leaning(c), poles, env=CartPole(time_limit=50), episodes=5)
    >>> found = compare({"ahead": [play(0.3), play(0.4)], "leaning": [play(0.0), play(0.01)]})
    >>> found.aggregates("ahead")["worst case"].estimate
    50.0
    """
    if not isinstance(agents, Mapping) or not agents:
        raise ValueError(
            "agents is empty or not a mapping, expected evaluations by name: {'dqn': [...], 'mine': [...]}."
        )
    found = {name: seeds_of(each) for name, each in agents.items()}
    first_name, first = next(iter(found.items()))
    for name, each in found.items():
        if not same_points(each.evaluations[0], first.evaluations[0]):
            raise ValueError(f"{name!r} was evaluated over other parameters or episodes than {first_name!r}.")
        each.scores(acting)
    checks.number("share", checks.positive("share", share), 0.0, 1.0)
    return AgentComparison(found, acting, share, checks.confidence(confidence), checks.whole_number("seed", seed, 0))


def _text(interval: ConfidenceInterval) -> str:
    if np.isnan(interval.low):
        return f"{interval.estimate:.4g}"
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
