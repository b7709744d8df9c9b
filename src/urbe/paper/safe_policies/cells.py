"""The cells of the study of safe policies: to add a planner to the chart, add a line to `METHODS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import everywhere
from urbe.planners import BCI, RSVF, HoeffdingSets, PlanningMethod, VaRBellman

NAME = "safe_policies"
"""Names the chapter, and its random streams."""

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
      transitions: in each log.
      data_sets: how many logs.
      seed: of everything random.
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
      guaranteed: value from the start, as guaranteed (of the nominal policy: as the mean model has it).
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
