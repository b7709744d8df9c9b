"""The price of robustness: the loss of a robust policy if the model is right, and its gain if it is wrong.

For each model and set U let pi_N be optimal for the nominal model P, and pi_R against the worst model of U:

    price      J(pi_N; P) - J(pi_R; P)                            >= 0
    insurance  min_{Q in U} J(pi_R; Q) - min_{Q in U} J(pi_N; Q)  >= 0

J is the expected discounted reward from the model's start. All four numbers carry certified bounds, and the worst-case
ones are lower bounds. Several policies are often optimal against nature; pi_R is the one that keeps pi_N's
action wherever that is still optimal, so that it changes only where it must. Nothing is random: the one random model
has a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from urbe.paper.chapter import Chapter, drawn_by, everywhere, highlighted_by
from urbe.paper.models import MODELS

N_RADII = 21


@dataclass(frozen=True)
class PriceCell:
    """One model, one set, one radius.

    Attributes:
      model: key of `MODELS`.
      set: key of `SETS`.
      radius: radius of the set, the same for every state and action.
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


CHAPTER = Chapter(
    "price_of_robustness",
    "The price of robustness",
    CELLS,
    Row,
    f"{__name__}.run",
    drawn_by(f"{__name__}.figures"),
    summary="What does it cost to be robust, and what does it buy, in models that can be solved exactly?",
    highlight=highlighted_by(f"{__name__}.front"),
)
