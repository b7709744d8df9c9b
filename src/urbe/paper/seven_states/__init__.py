"""Seven states under changing dynamics: what learners earn when the odds of a gamble jump [Derman2019] Fig. 2b.

Each learner's parameters are chosen on tuning seeds, by what they earn in all, and reported on fresh ones. All learners
of a cell share the same belief about the dynamics, the same prior (one on every feasible successor) and, seed by seed,
the same world. A total is four times the mean reward per episode: with four phases of equal length, the sum of what an
episode earns in each. The best action of each phase earns 1.98 then, in the direct reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.seven_states.cells import CELLS, CONTENDERS, Row, choose

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.seven_states.figures import sections

    return sections(results)


CHAPTER = Chapter(
    "seven_states",
    "Seven states under changing dynamics",
    CELLS,
    Row,
    "urbe.paper.seven_states.run",
    _sections,
    agents=tuple(CONTENDERS),
    choose=choose,
)
