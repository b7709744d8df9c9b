"""The seven-state model: a small safe reward, or a gamble whose odds may change."""

from __future__ import annotations

from typing import Literal

import numpy as np

from urbe import checks
from urbe.mdp.build import from_dense
from urbe.mdp.model import MDP

Reading = Literal["direct", "chain"]
SAFE, PRIZE = 0.14, 1.0
END = 7


def seven_states(success: float, reading: Reading = "direct", *, discount: float = 1.0) -> MDP:
    """The seven-state model of [Derman2019] Fig. 2a.

    In state 0 action 0 leads to state 1, and actions 1, 2, 3 to states 2, 4, 5; every other state has one action, 0:

        state 1           pays 0.14 and ends              state 3      pays 1 and ends
        states 2, 4, 5    to state 3 with probability     state 6      pays 0 and ends
                          `success`, else see below

    Departure: the paper draws dashed edges 2 -> 4 -> 5 -> 6 without saying when they are taken. In the "direct" reading
    a failure leads to state 6 at once, so that every gamble succeeds with probability `success`; in the "chain" reading
    it leads along the dashed edges, so that the gambles succeed with 1 - (1 - p)^3, 1 - (1 - p)^2 and p. Rewards are
    paid on leaving; state 7 is the end.

    Args:
      success: p, in [0, 1].
      reading: of the dashed edges.
      discount: in [0, 1].

    >>> seven_states(0.8)
    MDP(8 states (1 terminal), 10 rows, 13 entries, discount 1)
    """
    p = checks.number("success", success, 0.0, 1.0)
    checks.one_of("reading", reading, ("direct", "chain"))
    transition, reward, available = np.zeros((8, 4, 8)), np.zeros((8, 4)), np.zeros((8, 4), dtype=bool)
    available[0], available[1:END, 0] = True, True
    transition[0, range(4), (1, 2, 4, 5)] = 1.0
    for state, failure in ((2, 4), (4, 5), (5, 6)):
        transition[state, 0, 3] = p
        transition[state, 0, failure if reading == "chain" else 6] += 1.0 - p
    for state, pays in ((1, SAFE), (3, PRIZE), (6, 0.0)):
        transition[state, 0, END], reward[state, 0] = 1.0, pays
    initial = np.zeros(8)
    initial[0] = 1.0
    return from_dense(transition, reward, discount=discount, terminal=[END], available=available, initial=initial)
