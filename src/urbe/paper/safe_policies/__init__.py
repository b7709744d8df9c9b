"""Safe policies from logged data: the guarantee and the true value of each planner, and how often guarantees fail.

A data set is a log of the uniform policy, from the model's start, of a true model that is

    drawn    from the prior (Dirichlet, one on every feasible successor), as the Bayesian guarantee assumes
    fixed    the classic model itself in all data sets, for which the Bayesian planners guarantee nothing

Longer logs of a data set continue the shorter ones. A guarantee fails where, in some state, the policy's value under
the true model, an exact linear solve, is below the guaranteed one. The policy of the mean model is a
baseline: its stated value is its value under the mean model.

To add a planner to the chart, add a line to `METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import Chapter, drawn_by, everywhere, highlighted_by
from urbe.planners import BCI, RSVF, HoeffdingSets, PlanningMethod, VaRBellman

NAME = "safe_policies"
"""The name of the chapter and of its random streams."""

METHODS: dict[str, PlanningMethod] = {
    "VaR": VaRBellman(),
    "RSVF": RSVF(),
    "BCI": BCI(),
    "Hoeffding": HoeffdingSets(),
}

NOMINAL = "nominal"

WORLDS = ("riverswim", "machine_replacement")

TRUTHS = ("drawn", "fixed")

TRANSITIONS = (100, 1000, 10_000)

DATA_SETS = {"drawn": 40, "fixed": 16}

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


class Row(NamedTuple):
    """One planner on one data set.

    Attributes:
      guaranteed: guaranteed value from the start (for the nominal policy, its value under the mean model).
      value: from the start, under the true model.
      optimum: the best value from the start under the true model.
      failed: 1 when the true value is below the guaranteed one in some state.
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


CELLS = everywhere(
    SafeCell(model, truth, n, DATA_SETS[truth]) for model in WORLDS for truth in TRUTHS for n in TRANSITIONS
)


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
