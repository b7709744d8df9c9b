"""CartPole: tests over pole lengths, states visited, and a pole that changes in training [Derman2019] Figs. 5 and 6.

Agents are trained with a pole of half length 0.75. One trained agent serves all figures; see `cells` for what is run
and `run` for what is kept of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.cartpole.cells import ALL, CELLS, Row, choose
from urbe.paper.chapter import Chapter

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.cartpole.figures import sections

    return sections(results)


CHAPTER = Chapter(
    "cartpole",
    "CartPole with poles of other lengths",
    CELLS,
    Row,
    "urbe.paper.cartpole.run",
    _sections,
    agents=ALL,
    choose=choose,
)
