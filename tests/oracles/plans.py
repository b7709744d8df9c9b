"""Finite-horizon plans in plain Python, from the row problems of ambiguity sets; and random problems."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from urbe import MDP, L1Ball
from urbe.ambiguity.optimistic import Optimistic
from urbe.mdp.rows import Rows


class Problem(NamedTuple):
    """What one replicate plans with: `alpha` is (L, E), `reward` and `radius` are (R,)."""

    model: MDP
    alpha: np.ndarray
    reward: np.ndarray
    radius: np.ndarray

    @property
    def total(self):
        return np.add.reduceat(self.alpha, self.model.rows.entry_start[:-1], axis=-1)


class Planned(NamedTuple):
    q: np.ndarray
    u: np.ndarray
    v: np.ndarray
    w: np.ndarray


def random_model(rng: np.random.Generator, *, dense=False, rewards_successors=False, ends=True, states=6, longest=4):
    """Ties in rewards, single successors, states with different numbers of actions; dense rows list every state."""
    n, terminal = states, {states - 1} if ends and states > 1 else set()
    lists: dict[str, list[Any]] = {name: [] for name in ("state", "action", "next_state", "probability", "reward")}
    for s in sorted(set(range(n)) - terminal):
        for a in range(int(rng.integers(1, 4))):
            size = n if dense else int(rng.integers(1, min(longest, n) + 1))
            support = np.sort(rng.choice(n, size, replace=False))
            of_pair = float(rng.integers(-2, 3))
            for t in support:
                row = (s, a, int(t), 1.0 / size, float(rng.integers(-2, 3)) if rewards_successors else of_pair)
                for column, x in zip(lists.values(), row, strict=True):
                    column.append(x)
    return MDP.from_transitions(
        *lists.values(), discount=float(rng.choice([0.0, 0.5, 0.9, 1.0])), n_states=n, terminal=sorted(terminal)
    )


def random_problem(rng, model, layers=1, *, whole=False):
    """Concentrations from tiny to large, some of them zero; `whole` makes masses that meet radii exactly."""
    rows, shape = model.rows, (layers, model.rows.n_entries)
    if whole:
        alpha, radius = rng.integers(0, 5, shape).astype(float), rng.choice([0.0, 0.25, 0.5, 1.0, 2.0], rows.n_rows)
    else:
        alpha, radius = rng.gamma(0.5, 4.0, shape) * (rng.random(shape) < 0.9), 2.0 * rng.random(rows.n_rows) ** 2
        radius[rng.random(rows.n_rows) < 0.2] = rng.choice([0.0, 2.0])
    alpha[:, rows.entry_start[:-1]] += 1.0
    reward = rng.integers(-2, 3, rows.n_rows).astype(float)
    return Problem(model, alpha, reward, radius)


def slow_plan(
    problem: Problem, horizon: int, form=None, scale=1.0, reward_variance=None, bonus=None, cap=None, optimistic=False
):
    """The recursion of `urbe.agents.l1_plan`, step by step, from `Nature.worst_case`."""
    model, rows, gamma = problem.model, problem.model.rows, problem.model.discount
    q, u = np.zeros((2, horizon, rows.n_rows))
    v, w = np.zeros((2, horizon + 1, model.n_states))
    for h in range(horizon - 1, -1, -1):
        layer = h if len(problem.alpha) > 1 else 0
        alpha, total = problem.alpha[layer], problem.total[layer]
        p = alpha / total[rows.entry_row]
        reward = rows.reward if rows.rewards_successors else problem.reward
        centred = replace(model, rows=Rows(model.n_states, rows.entry_start, rows.successor, p, reward))
        ball = L1Ball(problem.radius)
        nature = (Optimistic(ball) if optimistic else ball).bind(centred)
        worst, own = nature.worst_case(v[h + 1]), nature.rows  # without successors of probability zero
        for k in range(rows.n_rows):
            at = slice(rows.entry_start[k], rows.entry_start[k + 1])
            kernel = slice(worst.rows.entry_start[k], worst.rows.entry_start[k + 1])
            carried = sum(worst.rows.probability[kernel] * w[h + 1][worst.rows.successor[kernel]])
            listed = slice(own.entry_start[k], own.entry_start[k + 1])
            x, m, n = own.probability[listed], worst.sensitivity[listed], total[k]
            nu = {
                None: 0.0,
                "count": 1.0 / n,
                "dirichlet": (np.count_nonzero(alpha[at]) - 1) / (n + 1),
                "calibrated": (sum(x * m**2) - sum(x * m) ** 2) / (n + 1),
            }[form]
            q[h, k] = worst.value[k] + (0.0 if bonus is None else bonus[k])
            q[h, k] = q[h, k] if cap is None else min(q[h, k], cap[h])
            noise = 0.0 if reward_variance is None or form is None else reward_variance[k]
            u[h, k] = scale**2 * (nu + noise) + gamma**2 * carried
        for s in range(model.n_states):
            first, last = model.row_start[s], model.row_start[s + 1]
            if first < last:
                best = first + int(np.argmax(q[h, first:last]))
                v[h, s], w[h, s] = q[h, best], u[h, best]
    return Planned(q, u, v, w)
