"""Table 1 of the paper by measurement: its systems on common tasks.

The table ticks three properties of each approach: that it mitigates the conservativeness of robust MDPs, that it learns
its uncertainty set online, and that it scales. Here each property becomes a number.

    plans    a batch of ten transitions of every pair of a classic model; each system plans from the same batch. Its
             policy is evaluated under the posterior mean (the nominal model), in the worst case over the reference
             set (L1 balls of Hoeffding's radius around the observed frequencies, the rectangular set of the same
             confidence), under held-out posterior draws, and under the model from which the batch was drawn
    change   seven states whose gamble turns bad: how often a system changes its plan afterwards, and the gain over
             keeping its plan from before the change
    grid     an N x N grid and 50 trajectories of the uniform policy: policy-conditioned sets, whose moments all cells
             share, compared with L1 balls around each pair
    scale    sparse random models of 10 to 10,000 states: seconds to plan, until the limit

To add a system, add a line to `SYSTEMS` in `systems`; the lines of the paper's table are there too, in `PAPER`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import Chapter, Scale, drawn_by
from urbe.paper.table_one.systems import SYSTEMS, System

NAME = "table_one"

WORLDS = ("machine_replacement", "riverswim", "inventory", "grid_world", "seven_states")

DATA_SETS: dict[Scale, int] = {"quick": 20, "medium": 40, "paper": 100}

LIVES = 100
"""Lives of a learner in the changing environment; planners, which do not learn in it, plan from each batch once."""

GRIDS: dict[Scale, tuple[int, ...]] = {"quick": (6, 8, 10), "medium": (8, 10, 12, 14, 16), "paper": (8, 10, 12, 14, 16)}

GRID_LOGS: dict[Scale, int] = {"quick": 10, "medium": 10, "paper": 10}

SIZES = (10, 32, 100, 316, 1000, 3162, 10_000)

LIMIT: dict[Scale, float] = {"quick": 10.0, "medium": 60.0, "paper": 60.0}
"""Limit on the processor time of a plan, in seconds."""

EACH = 10
"""Number of transitions of every pair in a batch."""

HELD_OUT = 40

CONFIDENCE = 0.9

SEED = 190508


@dataclass(frozen=True)
class PlanCell:
    """All systems on the batches of one model.

    Attributes:
      world: a key of `WORLDS`.
      first, batches: the numbers of the batches: first, first + 1, ...
      seed: seed of all random numbers.
    """

    world: str
    first: int
    batches: int
    seed: int = SEED

    @property
    def name(self) -> str:
        return f"plans-{self.world}-{self.first}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return (2.0 if self.world == "inventory" else 0.7) * self.batches


@dataclass(frozen=True)
class ChangeCell:
    """One system in the seven states, whose gamble turns from good to bad.

    Attributes:
      system: key of `SYSTEMS`.
      replicates: independent lives.
      seed: seed of all random numbers.
    """

    system: str
    replicates: int
    seed: int = SEED

    @property
    def name(self) -> str:
        return f"change-{file_name(self.system)}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 1.0


@dataclass(frozen=True)
class ScaleCell:
    """One system on growing models.

    Attributes:
      system: key of `SYSTEMS`.
      limit: seconds for one plan.
      seed: seed of the models.
    """

    system: str
    limit: float
    seed: int = SEED

    @property
    def name(self) -> str:
        return f"scale-{file_name(self.system)}-{self.limit:g}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 0.5 * self.limit


@dataclass(frozen=True)
class GridCell:
    """Policy-conditioned and rectangular sets on a grid, from the same trajectories.

    Attributes:
      size: N.
      logs: number of logs; the seed of each is its number.
    """

    size: int
    logs: int

    @property
    def name(self) -> str:
        return f"grid-{self.size}-{self.logs}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 0.002 * self.size**2 * self.logs


AnyCell = PlanCell | ChangeCell | GridCell | ScaleCell


class Row(NamedTuple):
    """One number of one system.

    Attributes:
      kind: "plans", "change", "grid" or "scale".
      world: a key of `WORLDS`; empty for models of growing size.
      replicate: batch, life or repeat.
      metric: name of the metric; `run` lists them.
      at: number of states, for "scale", or N, for "grid".
    """

    kind: str
    world: str
    system: str
    replicate: int
    metric: str
    at: int
    value: float


def file_name(system: str) -> str:
    """The name of a system in that of a cell."""
    return "".join(c if c.isalnum() else "_" for c in system)


def _cells(scale: Scale) -> tuple[AnyCell, ...]:
    step = 3
    plans = [
        PlanCell(world, first, min(step, DATA_SETS[scale] - first))
        for world in WORLDS
        for first in range(0, DATA_SETS[scale], step)
    ]
    changes = [
        ChangeCell(name, DATA_SETS[scale] if system.agent is None else LIVES) for name, system in SYSTEMS.items()
    ]
    grids = [GridCell(size, GRID_LOGS[scale]) for size in GRIDS[scale]]
    return (*plans, *changes, *grids, *(ScaleCell(name, LIMIT[scale]) for name in SYSTEMS))


CELLS: dict[Scale, tuple[AnyCell, ...]] = {
    "quick": _cells("quick"),
    "medium": _cells("medium"),
    "paper": _cells("paper"),
}

CHAPTER = Chapter(
    NAME,
    "Table 1 by measurement",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="Are the ticks of the paper's Table 1 right if all approaches plan from the same data?",
)

__all__ = ["CHAPTER", "SYSTEMS", "AnyCell", "ChangeCell", "GridCell", "PlanCell", "Row", "ScaleCell", "System"]
