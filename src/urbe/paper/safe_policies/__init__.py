"""Safe policies from logged data: what each planner guarantees, what its policy is worth, and how often it is wrong.

A data set is a log of the uniform policy, from the model's start, of a true model that is

    drawn    from the prior (Dirichlet, one on every feasible successor): what the Bayesian guarantee is about
    fixed    the classic model itself, data set after data set: nothing promised by the Bayesian planners

Longer logs of a data set continue the shorter ones. A guarantee fails where, in some state, the policy's value under
the true model, an exact linear solve, is below the guaranteed one. The policy of the mean model is there for
comparison: what it states is its value under the mean model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urbe.paper.chapter import Chapter
from urbe.paper.safe_policies.cells import CELLS, NAME, Row

if TYPE_CHECKING:
    from urbe.paper.results import Results
    from urbe.report.content import Section


def _sections(results: Results) -> list[Section]:
    from urbe.paper.safe_policies.figures import sections

    return sections(results)


CHAPTER = Chapter(NAME, "Safe policies from logged data", CELLS, Row, "urbe.paper.safe_policies.run", _sections)
