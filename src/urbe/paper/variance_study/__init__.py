"""The posterior variance of robust values: the equations, compared with posterior draws solved one by one.

Random layered models (4 layers of 3 states, 2 actions; every state leads to the next layer) have known posteriors:
`count` pseudo-observations of each row. For every set and radius the true variance of a pair's robust value is the
variance over draws of the centre, under the policy of the mean model. It is compared, over the same draws, with

    Jensen       calibrated local term, u = nu + gamma^2 q* u
    sharp        the same, with uncorrelated successors
    published    nu = Qmax^2 sum_j Var[q_j] / E[q_j] of the worst-case rows of the draws
    bound        nu = Qmax^2 (K - 1) / (N + 1), the same at the centre
    counted      nu = 1 / N: its scale is arbitrary, its spread is not

and the published bound of the local term, Qmax^2 K / N, against the local term itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe.ambiguity import (
    Chi2Ball,
    Contamination,
    Exact,
    KLBall,
    L1Ball,
    L2Ball,
    LikelihoodRegion,
    LInfBall,
    WassersteinBall,
    WeightedL1Ball,
)
from urbe.ambiguity.rectangular import RectangularSet
from urbe.paper.chapter import Chapter, drawn_by, everywhere
from urbe.types import IntArray

NAME = "variance_study"
"""The name of the chapter and of its random streams."""

LAYERS, WIDTH, ACTIONS = 4, 3, 2

DISCOUNT = 0.9

COUNTS = (5, 20, 50, 200, 500)

MODELS = 6

DRAWS = 150

SEED = 2019

MakeSet = Callable[[float, int], RectangularSet]


def _place(n_states: int) -> IntArray:
    """`(S,)` the index of each state within its copy of the model."""
    return np.arange(n_states) % (LAYERS * WIDTH + 1)


def _weighted(radius: float, n_states: int) -> RectangularSet:
    return WeightedL1Ball(radius, 0.5 + _place(n_states) % WIDTH / 2.0)


def _transport(radius: float, n_states: int) -> RectangularSet:
    place = _place(n_states)
    return WassersteinBall(radius, np.abs(np.subtract.outer(place, place)) / WIDTH)


SETS: dict[str, tuple[MakeSet, tuple[float, ...]]] = {
    "nominal": (lambda radius, n_states: Exact(), (0.0,)),
    "L1": (lambda radius, n_states: L1Ball(radius), (0.2, 0.6)),
    "weighted L1": (_weighted, (0.2, 0.6)),
    "L2": (lambda radius, n_states: L2Ball(radius), (0.1, 0.3)),
    "L-infinity": (lambda radius, n_states: LInfBall(radius), (0.07, 0.2)),
    "KL": (lambda radius, n_states: KLBall(radius), (0.02, 0.2)),
    "reverse KL": (lambda radius, n_states: LikelihoodRegion(radius), (0.02, 0.2)),
    "chi-square": (lambda radius, n_states: Chi2Ball(radius), (0.04, 0.4)),
    "Wasserstein": (_transport, (0.05, 0.2)),
    "contamination": (lambda radius, n_states: Contamination(radius), (0.1, 0.3)),
}
"""Functions from a radius and a number of states to a set, and a small and a large radius."""

FORMS = ("jensen", "sharp", "published", "bound", "counted")


@dataclass(frozen=True)
class VarianceCell:
    """One set, one radius, one amount of data; several models.

    Attributes:
      set: key of `SETS`.
      radius: radius of the set, the same for every pair.
      count: pseudo-observations of each row.
      models: number of random models.
      draws: number of draws of each posterior.
      seed: seed of all random numbers.
    """

    set: str
    radius: float
    count: int
    models: int = MODELS
    draws: int = DRAWS
    seed: int = SEED

    @property
    def name(self) -> str:
        """E.g. `KL-0.2-50`."""
        return f"{self.set.replace(' ', '_')}-{self.radius:g}-{self.count}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 0.3


class Row(NamedTuple):
    """One pair at the first step.

    Attributes:
      truth: variance of its robust value over the draws.
      jensen, sharp, published, bound, counted: the variances by the equations.
      local: the published local term of the pair.
      limit: the published bound on the local term, Qmax^2 K / N.
    """

    set: str
    radius: float
    observations: int
    model: int
    pair: int
    truth: float
    jensen: float
    sharp: float
    published: float
    bound: float
    counted: float
    local: float
    limit: float


CELLS = everywhere(
    VarianceCell(name, radius, n) for name, (_, radii) in SETS.items() for radius in radii for n in COUNTS
)


CHAPTER = Chapter(
    NAME,
    "How uncertain is a robust value?",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="How close do the equations for the posterior variance of a value come to the truth?",
)
