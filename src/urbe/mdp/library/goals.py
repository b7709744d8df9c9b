"""Models that end: gambles, a game of many stakes, a chain that fools value iteration, a grid with a goal."""

from __future__ import annotations

from typing import Literal

import numpy as np

from urbe import checks
from urbe.mdp.build import from_dense, from_rows, from_transitions
from urbe.mdp.model import MDP

Reading = Literal["direct", "chain"]
SAFE, PRIZE = 0.14, 1.0
ENDS = {1: SAFE, 3: PRIZE, 6: 0.0}
"""Terminal states, and the rewards of reaching them."""

BETS = ((100_000.0, -100_000.0), (5_000.0, -500.0), (2_000.0, 0.0))
"""What each action pays on success and on failure."""

BET_CHANCES, BET_SHARES = (0.1, 0.7, 0.8, 0.3, 0.5), (0.47, 0.22, 0.10, 0.09, 0.12)
"""Five chances of success and their weights; 0.8 is the nominal one."""


def gambler(goal: int = 100, heads: float = 0.4, *, discount: float = 1.0) -> MDP:
    """The gambler's problem: stakes on a coin until the capital is gone or the goal is reached.

    The state is the capital, action a the stake, 1 <= a <= min(s, goal - s); heads wins it, tails loses it. States 0
    and `goal` are terminal and reaching the goal pays 1, so without discount the value is the probability of reaching
    it. For heads < 1/2 bold play, a = min(s, goal - s), is optimal [DubinsSavage1965]; the task is Example 4.3 of
    [SuttonBarto2018].

    Args:
      goal: capital at which the gambler stops, at least 2.
      heads: probability of winning a stake, in [0, 1].
      discount: in [0, 1]; 1 by default.

    >>> gambler()
    MDP(101 states (2 terminal), 2500 rows, 5000 entries, discount 1)
    """
    n = checks.whole_number("goal", goal, 2)
    p = checks.number("heads", heads, 0.0, 1.0)
    capital = np.arange(1, n)
    most = np.minimum(capital, n - capital)
    state = np.repeat(capital, most)
    stake = np.concatenate([np.arange(1, m + 1) for m in most])
    won = state + stake
    return from_rows(
        state=state,
        action=stake,
        length=np.full(len(state), 2),
        successor=np.column_stack((state - stake, won)).ravel(),
        probability=np.tile([1.0 - p, p], len(state)),
        row_reward=None,
        entry_reward=np.column_stack((np.zeros(len(state)), won == n)).ravel(),
        n_states=n + 1,
        discount=discount,
    )


def haddad_monmege(n: int, *, discount: float = 1.0) -> MDP:
    """The chain on which value iteration stops far too early if it stops at small changes.

    Two branches of n steps leave the start, state n: up to the goal 2 n, down to the sink 0, both terminal. From the
    start the first step goes up or down with 1/2 each; every other step goes one further with 1/2, or back to the
    start. There is one action. Entering the goal pays 1, so without discount the values are

        v(n) = 1/2,    v(n + k) = (1 + 2^(k - n)) / 2,    v(n - k) = 1 - v(n + k)

    while sweeps from zero change by at most 2^-n after the first n, and about 2^n are needed to come close.
    [HaddadMonmege2018] Sec. 3.

    Args:
      n: steps from the start to each end, at least 1. Above 52 the chain is out of reach of double precision.
      discount: in [0, 1]; 1 by default.

    >>> haddad_monmege(20)
    MDP(41 states (2 terminal), 39 rows, 78 entries, discount 1)
    """
    n = checks.whole_number("n", n, 1)
    state = np.arange(1, 2 * n)
    further = np.where(state > n, state + 1, state - 1)
    back = np.where(state == n, n + 1, n)
    successor = np.sort(np.column_stack((further, back)), axis=1).ravel()
    initial = np.zeros(2 * n + 1)
    initial[n] = 1.0
    return from_rows(
        state=state,
        action=np.zeros(len(state), dtype=np.int32),
        length=np.full(len(state), 2),
        successor=successor,
        probability=np.full(2 * len(state), 0.5),
        row_reward=None,
        entry_reward=(successor == 2 * n).astype(np.float64),
        n_states=2 * n + 1,
        discount=discount,
        initial=initial,
    )


def grid_world(
    rows: int,
    columns: int,
    slip: float = 0.1,
    *,
    step_cost: float = 1.0,
    goal: tuple[int, int] | None = None,
    discount: float = 0.99,
) -> MDP:
    """A grid world: a walk on a slippery rectangle to a goal.

    State s is the cell (s // columns, s % columns). Actions 0, 1, 2, 3 go up, right, down, left: in that direction with
    probability 1 - slip, to each side with slip / 2; a step against the border stays. Every step costs `step_cost`
    until the goal, which is terminal. The walk starts in the top left cell. The dynamics are those of
    [RussellNorvig2020] Sec. 17.1 without walls. Information travels one cell a step: large grids mix slowly.

    Args:
      rows, columns: size, at least two cells together.
      slip: probability of leaving that direction, in [0, 1].
      step_cost: cost of each step, at least 0.
      goal: (row, column) of the goal; by default the bottom right cell.
      discount: in [0, 1].

    >>> grid_world(3, 4)
    MDP(12 states (1 terminal), 44 rows, 126 entries, discount 0.99)
    """
    height = checks.whole_number("rows", rows, 1)
    width = checks.whole_number("columns", columns, 1)
    size = height * width
    if size < 2:
        raise ValueError("rows and columns are both 1, expected at least two cells: a start and a goal.")
    slip = checks.number("slip", slip, 0.0, 1.0)
    cost = checks.number("step_cost", step_cost, 0.0, np.inf, closed=False)
    row, column = (height - 1, width - 1) if goal is None else goal
    if not (row in range(height) and column in range(width)):
        raise ValueError(f"goal is ({row}, {column}), expected a cell of the {height} x {width} grid.")

    end = int(row * width + column)
    cell = np.delete(np.arange(size, dtype=np.int32), end)
    at_row, at_column = cell // width, cell % width
    target = np.stack(
        [
            cell - width * (at_row > 0),
            cell + (at_column < width - 1),
            cell + width * (at_row < height - 1),
            cell - (at_column > 0),
        ]
    )
    turns = [turn for turn, likely in ((0, 1.0 - slip), (1, slip), (3, slip)) if likely > 0.0]
    chance = np.array([1.0 - slip, 0.5 * slip, 0.0, 0.5 * slip])[turns]
    successor = np.stack([target[(np.arange(4) + turn) % 4] for turn in turns], axis=-1).transpose(1, 0, 2)
    order = np.argsort(successor, axis=-1, kind="stable")
    shape = successor.shape
    initial = np.zeros(size)
    initial[0] = 1.0
    return from_transitions(
        np.repeat(cell, shape[1] * shape[2]),
        np.tile(np.repeat(np.arange(4, dtype=np.int32), shape[2]), shape[0]),
        np.take_along_axis(successor, order, axis=-1).ravel(),
        chance[order].ravel(),
        -cost,
        discount=discount,
        n_states=size,
        terminal=[end],
        initial=initial,
    )


def distance_grid(size: int, slip: float = 0.3) -> MDP:
    """An N x N grid from corner to corner whose steps cost the distance to the goal [Tirinzoni2018]; undiscounted.

    State s is the cell (s // N, s % N); actions 0, 1, 2, 3 go up, right, down, left. A step pays minus the distance of
    the next cell to the goal, which is not terminal: give a horizon.

    Every row lists the neighbours of its cell, and the cell itself at a border, even with probability zero.

    Args:
      size: N, at least 2.
      slip: probability with which a move goes to one of the other three sides instead.
    """
    n = checks.whole_number("size", size, 2)
    chance = checks.number("slip", slip, 0.0, 1.0)
    cell = np.arange(n * n)
    place = np.stack([cell // n, cell % n], axis=1)
    to = place[:, None] + np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [0, 0]])  # (S, 5, 2); the last stays
    inside = ((to >= 0) & (to < n)).all(axis=2)
    target = np.where(inside, to[..., 0] * n + to[..., 1], cell[:, None])
    p = np.full((4, 5), chance / 3.0)
    p[:, 4] = 0.0
    p[np.arange(4), np.arange(4)] = 1.0 - chance
    state, action, move = (x.ravel() for x in np.indices((n * n, 4, 5)))
    goal_distance = (2 * (n - 1) - place.sum(axis=1)).astype(np.float64)
    stay = np.where(inside[:, None, :], 0.0, p).sum(axis=2)  # (S, 4) moves against the border
    inside[:, 4] = ~inside.all(axis=1)
    keep = inside[state, move]
    probability = np.where(move == 4, stay[state, action], p[action, move])
    initial = np.zeros(n * n)
    initial[0] = 1.0
    next_state = target[state, move][keep]
    return from_transitions(
        state[keep], action[keep], next_state, probability[keep], -goal_distance[next_state],
        discount=1.0, n_states=n * n, initial=initial,
    )  # fmt: skip


def seven_states(success: float, reading: Reading = "direct", *, discount: float = 1.0) -> MDP:
    """The seven-state model of [Derman2019] Fig. 2a: a small safe reward, or a gamble with uncertain success.

    In state 0 action 0 leads to state 1, and actions 1, 2, 3 to states 2, 4, 5, which have one action, 0:

        states 2, 4, 5    to state 3 with probability `success`, else see below
        states 1, 3, 6    terminal; reaching them pays 0.14, 1 and 0

    Departure: the paper draws dashed edges 2 -> 4 -> 5 -> 6 without saying when they are taken. In the "direct" reading
    a failure leads to state 6 at once, so that every gamble succeeds with probability `success`; in the "chain" reading
    it leads along the dashed edges, so that the gambles succeed with 1 - (1 - p)^3, 1 - (1 - p)^2 and p. Episodes end
    on reaching states 1, 3 and 6, whereas the paper goes back to state 0.

    Args:
      success: p, in [0, 1].
      reading: interpretation of the dashed edges.
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


def bets(success: float) -> MDP:
    """The single-step domain of [Derman2018]: three bets on one event; states 1 and 2 are success and failure.

    At chance 0.8 the first bet is best, in the mean over `BET_CHANCES` with weights `BET_SHARES`, 0.368, the second,
    and in the worst case, 0.1, the third.

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
