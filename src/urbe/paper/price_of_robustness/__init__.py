"""The price of robustness: what a robust policy gives up if the model is right, and gains if it is wrong.

For each model and set U let pi_N be optimal for the nominal model P, and pi_R against the worst model of U:

    price      J(pi_N; P) - J(pi_R; P)                            >= 0
    insurance  min_{Q in U} J(pi_R; Q) - min_{Q in U} J(pi_N; Q)  >= 0

J is the expected discounted reward from the model's start. All four numbers carry certified bounds, and the worst-case
ones are read off as lower bounds. Several policies are often optimal against nature; pi_R is the one that keeps pi_N's
action wherever that is still optimal, so that it changes only where it must. Nothing is random: the one random model
has a fixed seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.price_of_robustness.cells import CELLS, Row

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.price_of_robustness.figures import sections

    return sections(results)


CHAPTER = Chapter(
    "price_of_robustness", "The price of robustness", CELLS, Row, "urbe.paper.price_of_robustness.run", _sections
)
