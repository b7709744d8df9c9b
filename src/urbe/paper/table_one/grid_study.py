"""The study of [Tirinzoni2018] on a grid: moments shared by all states, compared with a set for each pair.

An N x N grid from corner to corner, 2N steps, each paying minus the distance of the next cell to the goal; a move slips
to one of the other neighbours with probability 0.3. The log has 50 trajectories of the uniform policy. Two planners use
the same log:

    policy-conditioned   features: for each action, the direction of a step, in any cell
    rectangular          a credible L1 ball around the posterior mean of each pair

The true returns of their policies, and their returns against nature, are compared with the best possible return.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from urbe import checks
from urbe.ambiguity.l1 import L1Ball
from urbe.mdp.build import from_transitions
from urbe.mdp.evaluate import chosen_rows
from urbe.mdp.model import MDP
from urbe.mdp.transitions import Transitions
from urbe.planners.policy_conditioned.constraints import MomentConstraints
from urbe.planners.policy_conditioned.solve import PolicyConditionedSolution, solve_policy_conditioned
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.radius import credible_l1
from urbe.rng import stream
from urbe.solvers.methods import BackwardInduction
from urbe.solvers.solve import solve
from urbe.types import FloatArray, IntArray

MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [0, 0]])
"""Up, right, down, left, and staying."""


@dataclass(frozen=True, eq=False)
class GridStudy:
    """Returns over 2N steps from the corner, by method.

    Attributes:
      size: N.
      optimal: the best return in the true grid.
      conditioned, rectangular: the true returns of the two planners' policies.
      conditioned_expected, rectangular_expected: their returns against their own natures.
      solution: solution of the policy-conditioned planner.
    """

    size: int
    optimal: float
    conditioned: float
    rectangular: float
    conditioned_expected: float
    rectangular_expected: float
    solution: PolicyConditionedSolution


def distance_grid(size: int, slip: float = 0.3) -> MDP:
    """Builds the grid: state s is the cell (s // N, s % N); actions 0, 1, 2, 3 go up, right, down, left.

    Every row lists the neighbours of its cell, and the cell itself at a border, even with probability zero.

    Args:
      size: N, at least 2.
      slip: probability with which a move goes to one of the other three sides instead.
    """
    n = checks.whole_number("size", size, 2)
    chance = checks.number("slip", slip, 0.0, 1.0)
    cell = np.arange(n * n)
    place = np.stack([cell // n, cell % n], axis=1)
    to = place[:, None] + MOVES  # (S, 5, 2)
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


def direction_features(mdp: MDP, size: int) -> FloatArray:
    """`(E, 20)` for each action, indicators of the four directions of a step, or of staying."""
    rows = mdp.rows
    state, action = mdp.row_state[rows.entry_row], mdp.action[rows.entry_row]
    change = np.stack([rows.successor // size - state // size, rows.successor % size - state % size], axis=1)
    phi = np.zeros((rows.n_entries, 20))
    for k in range(5):
        went = (change == MOVES[k]).all(axis=1)
        phi[went, 5 * action[went] + k] = 1.0
    return phi


def uniform_log(mdp: MDP, horizon: int, trajectories: int, rng: np.random.Generator) -> Transitions:
    """Draws trajectories of the uniform policy in parallel."""
    rows = mdp.rows
    total = np.cumsum(rows.probability)
    state = rng.choice(mdp.n_states, size=trajectories, p=mdp.initial)
    columns: list[tuple[IntArray, IntArray, FloatArray, IntArray]] = []
    for _ in range(horizon):
        row = rng.integers(mdp.row_start[state], mdp.row_start[state + 1])
        first = rows.entry_start[row]
        below = np.where(first > 0, total[first - 1], 0.0)
        at = np.searchsorted(
            total, below + rng.random(trajectories) * rows.row_sums(rows.probability)[row], side="right"
        )
        entry = np.minimum(np.maximum(at, first), rows.entry_start[row + 1] - 1)
        following = rows.successor[entry].astype(np.int64)
        columns.append((state, mdp.action[row], rows.reward[entry], following))
        state = following
    s, a, r, s_next = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Transitions(
        state=s, action=a, reward=r, next_state=s_next, episode=np.tile(np.arange(trajectories), horizon),
        step=np.repeat(np.arange(horizon), trajectories),
    )  # fmt: skip


def grid_study(
    size: int,
    *,
    seed: int = 0,
    trajectories: int = 50,
    slip: float = 0.3,
    sharpness: float = 0.3,
    select: Literal["return", "total"] = "total",
    confidence: float = 0.9,
) -> GridStudy:
    """Plans by both methods from one log, and evaluates the policies in the true grid.

    Args:
      size: N.
      seed: seed of the log.
      trajectories: number of trajectories of the uniform policy, 2N steps each.
      slip: slip probability of the true grid.
      sharpness, select: options of the policy-conditioned planner.
      confidence: confidence of the slack of moments, and of the credible ball of each pair.
    """
    grid, horizon = distance_grid(size, slip), 2 * size
    even = np.full((grid.n_states, 4), 0.25)
    log = uniform_log(grid, horizon, checks.whole_number("trajectories", trajectories, 2), stream(seed, "grid", size))
    seen = MomentConstraints.fit(
        log, grid, direction_features(grid, size), horizon, reference=even, confidence=confidence
    )
    solution = solve_policy_conditioned(grid, seen, sharpness=sharpness, select=select, starts=1, tolerance=1e-3)
    posterior = Posterior.before(grid).update(log)
    ball = L1Ball(credible_l1(posterior, confidence, stream(seed, "ball", size), draws=200, union=False))
    steps = BackwardInduction(horizon)
    careful, best = solve(posterior.mean(), ball, steps), solve(grid, method=steps)
    return GridStudy(
        size=size,
        optimal=float(best.value[0, 0]),
        conditioned=solution.policy.value(grid),
        rectangular=_return_of(grid, np.asarray(careful.policy)),
        conditioned_expected=solution.value,
        rectangular_expected=float(careful.value[0, 0]),
        solution=solution,
    )


def _return_of(mdp: MDP, policy: IntArray) -> float:
    """Computes the expected return of a `(T, S)` policy of steps and states."""
    assert mdp.initial is not None
    mass, total, reward = mdp.initial, 0.0, mdp.rows.expected_reward()
    for actions in policy:
        rows = chosen_rows(mdp, actions)
        total += float(mass @ reward[rows])
        part = mdp.rows.take(rows)
        flow = mass[part.entry_row] * part.probability
        mass = np.bincount(part.successor, flow, minlength=mdp.n_states).astype(np.float64, copy=False)
    return total
