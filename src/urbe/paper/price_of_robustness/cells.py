"""The cells of the price of robustness: a model, a set and a radius each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import everywhere
from urbe.paper.models import MODELS

N_RADII = 21


@dataclass(frozen=True)
class PriceCell:
    """One model, one set, one radius.

    Attributes:
      model: key of `MODELS`.
      set: key of `SETS`.
      radius: of the set, the same for every state and action.
    """

    model: str
    set: str
    radius: float

    @property
    def name(self) -> str:
        """E.g. `garnet-L1-0.3`."""
        return f"{self.model}-{self.set}-{self.radius:g}"

    @property
    def cost(self) -> float:
        """An estimate, in seconds."""
        return 0.03


class Row(NamedTuple):
    """One number of a cell: of the robust or the nominal policy; `run` lists the metrics."""

    model: str
    set: str
    radius: float
    policy: str
    metric: str
    value: float


CELLS = everywhere(
    PriceCell(model, name, round(largest * i / (N_RADII - 1), 9))
    for model, demo in MODELS.items()
    for name, largest in (("L1", demo.l1), ("KL", demo.kl))
    for i in range(N_RADII)
)
