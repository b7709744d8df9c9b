"""Mars Rover: test returns over the failure probability, and where rovers go [Derman2019] Fig. 3, Fig. 4.

Agents learn at a failure probability of 0.005, with the paper's networks and hyper-parameters, and are tested at
others. Their test returns, chances and visits are computed, not played: the model has 101 states, and every test policy
is a table of probabilities (`policies`). Greedy, noisy and epsilon-greedy test policies are distinguished. Beside
them stand 200 played episodes of the noisy ones, as in the paper, and what exact planning says that nothing can beat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.mars_rover.cells import CELLS, CONTROLS, MAIN, Row, choose

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.mars_rover.figures import sections

    return sections(results)


CHAPTER = Chapter(
    "mars_rover",
    "Mars Rover",
    CELLS,
    Row,
    "urbe.paper.mars_rover.run",
    _sections,
    agents=(*MAIN, *CONTROLS),
    choose=choose,
)
