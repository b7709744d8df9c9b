"""Regret on RiverSwim: how soon each agent finds the far bank, and at what price.

    regret(t) = sum over the first t episodes of sum_h [V*_h(s_h) - Q*_h(s_h, a_h)]

which has the same expectation as what the best policy earns more, without the noise of the rewards. The world does not
change. Agents know neither which states may follow nor the rewards: knowing what is feasible, they would need no
exploration, since swimming right looks good to whoever expects the unknown to be even. Settings are chosen on tuning
seeds by their regret and reported on fresh ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.riverswim_regret.cells import CELLS, CONTENDERS, Row, choose

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.riverswim_regret.figures import sections

    return sections(results)


CHAPTER = Chapter(
    "riverswim_regret",
    "RiverSwim: regret of every agent",
    CELLS,
    Row,
    "urbe.paper.riverswim_regret.run",
    _sections,
    agents=tuple(CONTENDERS),
    choose=choose,
)
