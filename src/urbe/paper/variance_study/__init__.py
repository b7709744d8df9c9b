"""The posterior variance of robust values: what the equations say, against posterior draws solved one by one.

Random layered models (4 layers of 3 states, 2 actions; every state leads to the next layer) have known posteriors:
`count` pseudo-observations of each row. For every set and radius the true variance of a pair's robust value is that
over draws of the centre, under the policy of the mean model. Held against it, over the same draws:

    Jensen       calibrated local term, u = nu + gamma^2 q* u
    sharp        the same, successors taken to be uncorrelated
    published    nu = Qmax^2 sum_j Var[q_j] / E[q_j] of the worst-case rows of the draws
    bound        nu = Qmax^2 (K - 1) / (N + 1), the same at the centre
    counted      nu = 1 / N: its scale is arbitrary, its spread is not

and the published bound of the local term, Qmax^2 K / N, against the local term itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.variance_study.cells import CELLS, NAME, Row

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.variance_study.figures import sections

    return sections(results)


CHAPTER = Chapter(NAME, "How uncertain is a robust value?", CELLS, Row, "urbe.paper.variance_study.run", _sections)
