"""Safe policies from logged data: the guarantee and the true value of each planner, and how often guarantees fail.

A data set is a log of the uniform policy, from the model's start, of a true model that is

    drawn    from the prior (Dirichlet, one on every feasible successor), as the Bayesian guarantee assumes
    fixed    the classic model itself in all data sets, for which the Bayesian planners guarantee nothing

Longer logs of a data set continue the shorter ones. A guarantee fails where, in some state, the policy's value under
the true model, an exact linear solve, is below the guaranteed one. The policy of the mean model is a
baseline: its stated value is its value under the mean model.

The same planners and `Percentile` are compared once more by what `plan` guarantees from the start, a quantile of the
policy's own value: how often it fails, also for a fixed model and under a wrong prior, and which planner's is highest.

To add a planner to the charts, add a line to `METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import SCALES, Chapter, Scale, drawn_by, highlighted_by
from urbe.planners import BCI, RSVF, HoeffdingSets, Percentile, PlanningMethod, VaRBellman

NAME = "safe_policies"
"""The name of the chapter and of its random streams."""

METHODS: dict[str, PlanningMethod] = {
    "VaR": VaRBellman(),
    "RSVF": RSVF(),
    "BCI": BCI(),
    "Hoeffding": HoeffdingSets(),
}

NOMINAL = "nominal"

PERCENTILE = "Percentile"

COMPARED: dict[str, PlanningMethod] = {
    PERCENTILE: Percentile(),
    **METHODS,
    "VaR of each row": VaRBellman(union=False),
}
"""The planners whose guarantees from the start are compared."""

FROM_START = "{}, from the start"
"""The name of a planner in the rows of this comparison."""

WORLDS = ("riverswim", "machine_replacement")

TRUTHS = ("drawn", "fixed")

TRANSITIONS = (100, 1000, 10_000)

DATA_SETS = {"drawn": 40, "fixed": 16}

START_TRANSITIONS = 1000

START_DATA_SETS = {
    "quick": {"riverswim": 4, "machine_replacement": 2, "inventory": 2, "garnet": 3},
    "full": {"riverswim": 300, "machine_replacement": 300, "inventory": 100, "garnet": 300},
}
"""Data sets with truths from the prior."""

UNPROMISED_DATA_SETS = {"quick": 2, "full": 100}
"""Data sets of RiverSwim and machine replacement for each case in which nothing is guaranteed."""

OVERCONFIDENT = 10.0
"""The concentration of the wrong prior on every feasible successor; truths are drawn with 1."""

MOST_DATA_SETS = 25
"""Data sets of one cell."""

CONFIDENCE = 0.9

DRAWS = 400

SEED = 2019


@dataclass(frozen=True)
class SafeCell:
    """All planners on the logs of one length.

    Attributes:
      model: key of `MODELS`.
      truth: "drawn" or "fixed".
      transitions: number of transitions in each log.
      data_sets: number of logs.
      seed: seed of all random numbers.
    """

    model: str
    truth: str
    transitions: int
    data_sets: int
    seed: int = SEED

    @property
    def name(self) -> str:
        """E.g. `riverswim-drawn-1000`."""
        return f"{self.model}-{self.truth}-{self.transitions}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 2.5


@dataclass(frozen=True)
class StartCell:
    """Guarantees from the start of all planners, on logs of `START_TRANSITIONS` transitions.

    Attributes:
      model: key of `MODELS`.
      truth: "drawn", "fixed", or "overconfident": drawn, and the prior of the planners is wrong.
      first: number of the first data set.
      data_sets: number of logs.
      seed: seed of all random numbers.
    """

    model: str
    truth: str
    first: int
    data_sets: int
    seed: int = SEED

    @property
    def name(self) -> str:
        """E.g. `riverswim-drawn-start-25`."""
        return f"{self.model}-{self.truth}-start-{self.first}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return {"inventory": 4.5, "riverswim": 0.7}.get(self.model, 1.3) * self.data_sets


class Row(NamedTuple):
    """One planner on one data set.

    Attributes:
      method: a planner; a name in the form of `FROM_START` for its guarantee from the start.
      guaranteed: worst case over the planner's set from the start (for the nominal policy, its value under the mean
        model), or its guarantee from the start.
      value: from the start, under the true model.
      optimum: the best value from the start under the true model.
      failed: 1 when the true value is below the guaranteed one in some state, or from the start.
    """

    model: str
    truth: str
    transitions: int
    data_set: int
    method: str
    guaranteed: float
    value: float
    optimum: float
    failed: int


def _start_cells(size: str) -> tuple[StartCell, ...]:
    wanted = [(model, "drawn", n) for model, n in START_DATA_SETS[size].items()]
    wanted += [(model, case, UNPROMISED_DATA_SETS[size]) for model in WORLDS for case in ("fixed", "overconfident")]
    return tuple(
        StartCell(model, truth, first, min(MOST_DATA_SETS, n - first))
        for model, truth, n in wanted
        for first in range(0, n, MOST_DATA_SETS)
    )


_SAFE_CELLS = tuple(
    SafeCell(model, truth, n, DATA_SETS[truth]) for model in WORLDS for truth in TRUTHS for n in TRANSITIONS
)

CELLS: dict[Scale, tuple[SafeCell | StartCell, ...]] = {
    scale: _SAFE_CELLS + _start_cells("quick" if scale == "quick" else "full") for scale in SCALES
}


CHAPTER = Chapter(
    NAME,
    "Safe policies from logged data",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="What value can be guaranteed for a policy computed from a log of transitions?",
    highlight=highlighted_by(f"{__name__}.front"),
)
