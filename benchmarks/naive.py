"""A straightforward implementation of an agent: NumPy, one replicate, planned from scratch before each episode."""

from __future__ import annotations

import numpy as np

import urbe

Array = np.ndarray


def padded(mdp: urbe.MDP) -> tuple[Array, Array, Array]:
    """`(R, n)` successors of each row, their rewards and which of them are there, n that of the longest row."""
    rows = mdp.rows
    there = np.arange(rows.longest) < np.diff(rows.entry_start)[:, None]
    successor, reward = np.zeros(there.shape, dtype=int), np.zeros(there.shape)
    successor[there] = rows.successor
    reward[there] = rows.reward if rows.rewards_successors else rows.reward[rows.entry_row]
    return successor, reward, there


def plan(
    mdp: urbe.MDP, successor: Array, reward: Array, alpha: Array, horizon: int, radius: float, scale: float
) -> tuple[Array, Array]:
    """Robust values and count-based variances `(H, R)`: every step sorts the successors of every row."""
    total = alpha.sum(axis=1, keepdims=True)
    p, nu, there = alpha / total, scale**2 / total[:, 0], alpha > 0.0
    q, u = np.zeros((2, horizon, mdp.n_rows))
    v, w = np.zeros((2, mdp.n_states))
    each = np.arange(mdp.n_rows)
    for h in range(horizon - 1, -1, -1):
        z = np.where(there, reward + mdp.discount * v[successor], np.inf)
        order = np.argsort(-np.where(there, z, -np.inf), axis=1)
        down = np.take_along_axis(p, order, axis=1)
        taken = np.clip(radius / 2.0 - (np.cumsum(down, axis=1) - down), 0.0, down)
        x = p.copy()
        np.put_along_axis(x, order, down - taken, axis=1)
        x[each, z.argmin(axis=1)] += taken.sum(axis=1)
        q[h] = (x * np.where(there, z, 0.0)).sum(axis=1)
        u[h] = nu + mdp.discount**2 * (x * w[successor]).sum(axis=1)
        for s in range(mdp.n_states):
            first, last = mdp.row_start[s], mdp.row_start[s + 1]
            if first < last:
                best = first + int(q[h, first:last].argmax())
                v[s], w[s] = q[h, best], u[h, best]
    return q, u


def episodes(mdp: urbe.MDP, n: int, horizon: int, radius: float, scale: float, rng: np.random.Generator) -> float:
    """Runs one learner for n episodes; its mean reward."""
    successor, reward, there = padded(mdp)
    probability, alpha = np.zeros(there.shape), there.astype(float)
    probability[there] = mdp.rows.probability
    total = 0.0
    for _ in range(n):
        q, u = plan(mdp, successor, reward, alpha, horizon, radius, scale)
        state = int(rng.choice(mdp.n_states, p=mdp.initial))
        for h in range(horizon):
            first, last = mdp.row_start[state], mdp.row_start[state + 1]
            if first == last:
                break
            score = q[h, first:last] + rng.standard_normal(last - first) * np.sqrt(u[h, first:last])
            row = first + int(score.argmax())
            j = int(rng.choice(probability.shape[1], p=probability[row]))
            alpha[row, j] += 1.0
            total += reward[row, j]
            state = int(successor[row, j])
    return total / n
