"""Models that are hard to explore: a deep sea with one treasure, and a chain whose reward is at its end."""

from __future__ import annotations

import numpy as np

from urbe import checks
from urbe.mdp.build import from_transitions
from urbe.mdp.model import MDP

MOVE_COST = 0.01


def deep_sea(depth: int = 10, *, seed: int | np.random.Generator | None = None, discount: float = 1.0) -> MDP:
    """Deep sea: a diver sinks one row per step, with a treasure in the last corner [Osband2019].

    The cell (row, column), column <= row < depth, is state row (row + 1) / 2 + column. Of the two actions one goes left
    (staying at column 0) and one right, at a cost of 0.01 / depth; each step sinks by one row, and after the last row
    the dive is over. Going right in the last cell of the last row pays 1. Always going right is worth 0.99 without
    discount, every other dive at most 0: only one of 2^depth sequences of actions is good, and each of its steps costs.

    Args:
      depth: number of rows, at least 1.
      seed: draws which action goes right in each cell; with None, action 1 does everywhere.
      discount: in [0, 1]; 1 by default.

    >>> deep_sea(10)
    MDP(56 states (1 terminal), 110 rows, 110 entries, discount 1)
    """
    n = checks.whole_number("depth", depth, 1)
    row, column = np.tril_indices(n)
    end = len(row)
    cell = np.arange(end)
    right = np.ones(end, dtype=int) if seed is None else np.random.default_rng(seed).integers(2, size=end)
    below, last = cell + row + 1, row == n - 1
    initial = np.zeros(end + 1)
    initial[0] = 1.0
    return from_transitions(
        np.tile(cell, 2),
        np.concatenate((1 - right, right)),
        np.concatenate((np.where(last, end, below - (column > 0)), np.where(last, end, below + 1))),
        np.ones(2 * end),
        np.concatenate((np.zeros(end), (last & (column == n - 1)) - MOVE_COST / n)),
        discount=discount,
        n_states=end + 1,
        terminal=[end],
        initial=initial,
    )


def chain(n_states: int = 5, slip: float = 0.2, *, discount: float = 0.99) -> MDP:
    """The chain of [Dearden1998]: move without a reward until the end pays, or go back for a small reward.

    Action 0 moves to the next state and pays 0; in the last state it stays and pays 10. Action 1 goes back to state 0
    and pays 2. With probability `slip` the other action is carried out. Always moving is optimal for the defaults and
    earns 10 (1 - slip)^n_states + 2 slip = 3.6768 per step in the long run.

    Args:
      n_states: length, at least 2.
      slip: in [0, 1].
      discount: in [0, 1].

    >>> chain()
    MDP(5 states, 10 rows, 20 entries, discount 0.99)
    """
    n = checks.whole_number("n_states", n_states, 2)
    slip = checks.number("slip", slip, 0.0, 1.0)
    s = np.arange(n)
    initial = np.zeros(n)
    initial[0] = 1.0
    successor = np.concatenate((np.minimum(s + 1, n - 1), np.zeros(n, dtype=int)))
    reward = np.concatenate((np.where(s == n - 1, 10.0, 0.0), np.full(n, 2.0)))
    return from_transitions(
        np.tile(s, 4),
        np.repeat([0, 1], 2 * n),
        np.tile(successor, 2),
        np.repeat([1.0 - slip, slip, slip, 1.0 - slip], n),
        np.tile(reward, 2),
        discount=discount,
        initial=initial,
    )
