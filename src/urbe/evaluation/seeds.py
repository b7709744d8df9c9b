"""Combine evaluations of several training seeds of one agent over the same parameters.

    score(i, theta) = mean over test episodes of the return of seed i under theta

The number of episodes determines the precision of a score; seeds show how much training varies. Conclusions about an
algorithm need the latter, so intervals are Student's over the S scores, whatever the number of episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks, extras
from urbe.evaluation.policies import WAYS, Acting
from urbe.evaluation.table import Evaluation
from urbe.statistics.estimates import mean_band
from urbe.tables import TableResult, text_table
from urbe.types import FloatArray

NUMBERS = ("seeds", "mean", "low", "high", "worst_seed", "best_seed", "cvar")


@dataclass(frozen=True, eq=False, repr=False)
class SeedEvaluation(TableResult):
    """Evaluations of S training seeds.

    Args:
      evaluations: one per seed, over the same parameters and numbers of episodes.
      seeds: training seeds, all different.

    >>> from types import SimpleNamespace
    >>> from urbe import evaluate
    >>> from urbe.simulators import CartPole
    >>> def leaning(c): return SimpleNamespace(predict=lambda o: (o[..., 2] + c * o[..., 3] > 0).astype(int))
    >>> both = [evaluate(leaning(c), [{}], env=CartPole(time_limit=30), episodes=5) for c in (0.0, 0.1)]
    >>> SeedEvaluation(tuple(both), (0, 1)).scores().shape
    (2, 1)
    """

    evaluations: tuple[Evaluation, ...]
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.evaluations) != len(self.seeds) or not self.seeds:
            raise ValueError(
                f"evaluations has {len(self.evaluations)} entries and seeds {len(self.seeds)}, expected one of each "
                "per training."
            )
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds is {list(self.seeds)}, expected each once: two runs of a seed are one run.")
        first = self.evaluations[0]
        for i, each in enumerate(self.evaluations):
            if not same_points(each, first):
                raise ValueError(f"evaluations[{i}] is over other parameters or episodes than evaluations[0].")

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the parameters that vary."""
        return self.evaluations[0].varied

    @property
    def played(self) -> tuple[Acting, ...]:
        """Ways of acting that all seeds played."""
        return tuple(way for way in WAYS if all(way in each.played for each in self.evaluations))

    @property
    def confidence(self) -> float:
        """The confidence level of the intervals."""
        return self.evaluations[0].confidence

    def param(self, name: str) -> FloatArray:
        """`(P,)` the values of a parameter."""
        return self.evaluations[0].param(name)

    def scores(self, acting: Acting = "greedy") -> FloatArray:
        """`(S, P)` mean returns of each seed under each set of parameters."""
        if acting not in self.played:
            raise ValueError(f"acting is {acting!r}, expected one of {', '.join(map(repr, self.played))}, as played.")
        return np.array([each.played[acting].returns.mean(axis=1) for each in self.evaluations])

    def table(self) -> dict[str, np.ndarray]:
        """One row per way of acting and set of parameters, as columns.

        Columns: the parameters that vary; `acting`; `seeds`; `mean` over seeds with the ends `low` and `high` of
        Student's interval (NaN for one seed); `worst_seed` and `best_seed`, the lowest and highest score; `cvar`, the
        mean over seeds of the CVaR over episodes.
        """
        parts = [self._part(way) for way in self.played]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def plot(self) -> Any:
        """Draws means with intervals over the parameter that varies. Needs `urbe[plots]`."""
        return extras.drawings().draw_seeds({f"{len(self.seeds)} seeds": self})

    def _part(self, way: Acting) -> dict[str, np.ndarray]:
        scores = self.scores(way)
        s, p = scores.shape
        alone = np.full(p, np.nan)
        band = mean_band(scores, confidence=self.confidence) if s > 1 else (scores[0], alone, alone)
        tables = [each.table() for each in self.evaluations]
        return {name: self.param(name) for name in self.varied} | {
            "acting": np.full(p, way),
            "seeds": np.full(p, s),
            "mean": band[0],
            "low": band[1],
            "high": band[2],
            "worst_seed": scores.min(axis=0),
            "best_seed": scores.max(axis=0),
            "cvar": np.mean([table["cvar"][table["acting"] == way] for table in tables], axis=0),
        }

    def __repr__(self) -> str:
        return f"SeedEvaluation({len(self.seeds)} seeds x {len(self.evaluations[0].points)} sets of parameters)"

    def __str__(self) -> str:
        lines = text_table(self.table(), {"cvar": f"cvar {self.evaluations[0].cvar:g}"})
        episodes = next(iter(self.evaluations[0].played.values())).returns.shape[1]
        lines.append(
            f"{len(self.seeds)} seeds ({', '.join(map(str, self.seeds))}), {episodes} episodes each; low and high are "
            f"Student's {100 * self.confidence:g} % interval of the mean over seeds."
        )
        return "\n".join(lines)


def same_points(one: Evaluation, other: Evaluation) -> bool:
    """Whether two evaluations have the same parameters and the same number of episodes."""
    sizes = {each.returns.shape for found in (one, other) for each in found.played.values()}
    return one.points == other.points and one.varied == other.varied and len(sizes) == 1


def seeds_of(evaluations: SeedEvaluation | Evaluation | Sequence[Evaluation]) -> SeedEvaluation:
    """Combines one evaluation or several, whose seeds are then counted from 0."""
    if isinstance(evaluations, SeedEvaluation):
        return evaluations
    found = (evaluations,) if isinstance(evaluations, Evaluation) else evaluations
    checks.sequence("evaluations", found, "one or more results of urbe.evaluate, one for each seed")
    for k, each in enumerate(found):
        checks.kind(f"evaluations[{k}]", each, isinstance(each, Evaluation), "a result of urbe.evaluate")
    return SeedEvaluation(tuple(found), tuple(range(len(found))))
