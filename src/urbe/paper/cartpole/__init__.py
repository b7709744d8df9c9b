"""CartPole: tests over pole lengths, states visited, and a pole that changes in training [Derman2019] Figs. 5 and 6.

Agents are trained with a pole of half length 0.75. One trained agent serves all figures; see `cells` for what is run
and `run` for what is kept of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from urbe.paper.cartpole.cells import CELLS, Row
from urbe.paper.chapter import Chapter

if TYPE_CHECKING:
    from urbe.report.content import Section


def _sections(rows: Sequence[Row]) -> list[Section]:
    from urbe.paper.cartpole.figures import sections
    from urbe.paper.cartpole.results import analyse

    return sections(analyse(rows))


CHAPTER = Chapter("cartpole", "CartPole with poles of other lengths", CELLS, Row, "urbe.paper.cartpole.run", _sections)
