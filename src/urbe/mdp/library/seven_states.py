"""The seven-state model: a small safe reward, or a gamble whose odds may change."""

from __future__ import annotations

from typing import Literal

import numpy as np

from urbe import checks
from urbe.mdp.build import from_dense
from urbe.mdp.model import MDP

Reading = Literal["direct", "chain"]
SAFE, PRIZE = 0.14, 1.0
ENDS = {1: SAFE, 3: PRIZE, 6: 0.0}
"""Terminal states, and what reaching them pays."""


def seven_states(success: float, reading: Reading = "direct", *, discount: float = 1.0) -> MDP:
    """The seven-state model of [Derman2019] Fig. 2a.

    In state 0 action 0 leads to state 1, and actions 1, 2, 3 to states 2, 4, 5, which have one action, 0:

        states 2, 4, 5    to state 3 with probability `success`, else see below
        states 1, 3, 6    the end; reaching them pays 0.14, 1 and 0

    Departure: the paper draws dashed edges 2 -> 4 -> 5 -> 6 without saying when they are taken. In the "direct" reading
    a failure leads to state 6 at once, so that every gamble succeeds with probability `success`; in the "chain" reading
    it leads along the dashed edges, so that the gambles succeed with 1 - (1 - p)^3, 1 - (1 - p)^2 and p. Episodes end
    on reaching states 1, 3 and 6, where the paper goes back to state 0.

    Args:
      success: p, in [0, 1].
      reading: of the dashed edges.
      discount: in [0, 1].

    >>> seven_states(0.8)
    MDP(7 states (3 terminal), 7 rows, 10 entries, discount 1)
    """
    p = checks.number("success", success, 0.0, 1.0)
    checks.one_of("reading", reading, ("direct", "chain"))
    transition, available = np.zeros((7, 4, 7)), np.zeros((7, 4), dtype=bool)
    available[0], available[[2, 4, 5], 0] = True, True
    transition[0, range(4), (1, 2, 4, 5)] = 1.0
    for state, failure in ((2, 4), (4, 5), (5, 6)):
        transition[state, 0, 3] = p
        transition[state, 0, failure if reading == "chain" else 6] += 1.0 - p
    reward = np.zeros((7, 4, 7))
    for state, pays in ENDS.items():
        reward[:, :, state] = pays
    initial = np.zeros(7)
    initial[0] = 1.0
    return from_dense(transition, reward, discount=discount, terminal=list(ENDS), available=available, initial=initial)
