"""A single decision in which nominal, soft-robust and robust policies differ."""

from __future__ import annotations

import numpy as np

from urbe import checks
from urbe.mdp.build import from_dense
from urbe.mdp.model import MDP

BETS = ((100_000.0, -100_000.0), (5_000.0, -500.0), (2_000.0, 0.0))
"""The reward of each action on success and on failure."""

BET_CHANCES, BET_SHARES = (0.1, 0.7, 0.8, 0.3, 0.5), (0.47, 0.22, 0.10, 0.09, 0.12)
"""Five probabilities of success and their weights; 0.8 is the nominal one."""


def bets(success: float) -> MDP:
    """The single-step domain of [Derman2018]: three bets on one event; states 1 and 2 are success and failure.

    At probability 0.8 the first bet is best, in the mean over `BET_CHANCES` with weights `BET_SHARES`, 0.368,
    the second, and in the worst case, 0.1, the third.

    Args:
      success: probability of success, in [0, 1].

    >>> import urbe
    >>> [int(urbe.solve(bets(p)).policy[0]) for p in (0.8, 0.368, 0.1)]
    [0, 1, 2]
    """
    p = checks.number("success", success, 0.0, 1.0)
    transition, reward = np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    transition[0, :, 1], transition[0, :, 2] = p, 1.0 - p
    reward[0, :, 1:] = BETS
    return from_dense(
        transition, reward, discount=1.0, terminal=[1, 2], initial=[1.0, 0.0, 0.0], keep_zeros=True,
        available=np.array([[True] * 3, [False] * 3, [False] * 3]),
    )  # fmt: skip
