"""L1 balls around rows of our own choosing that may hold zeros."""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.l1 import L1Ball
from urbe.mdp.model import MDP
from urbe.posteriors.dirichlet import Posterior
from urbe.types import FloatArray

TRACE = 1e-9
"""Share of the posterior mean mixed into rows with zeros: an L1 ball reaches only successors its centre has."""


def ball_around(posterior: Posterior, centre: FloatArray, radius: FloatArray) -> tuple[MDP, L1Ball]:
    """The model with the rows `centre`, `(E,)`, and a ball that contains all feasible q with ||q - centre|| <= radius.

    Rows in which a feasible successor has probability zero get a trace of it, and their radius as much more.
    """
    rows = posterior.model.rows
    missing = rows.row_sums(((centre <= 0.0) & (posterior.concentration > 0.0)).astype(np.float64)) > 0.0
    share = np.where(missing, TRACE, 0.0)
    entry_share = share[rows.entry_row]
    mixed = (1.0 - entry_share) * centre + entry_share * posterior.probability
    return posterior.model_with(mixed), L1Ball(np.minimum(radius + 2.0 * share, 2.0))
