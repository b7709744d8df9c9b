"""Exact solutions of small models, in rational numbers or plain loops."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np


def exact_policy_value(transition: Any, reward: Any, discount: Any, policy: Sequence[int]) -> list[Fraction]:
    """v = r_pi + discount P_pi v, solved by Gaussian elimination over the rationals.

    Args:
      transition: `[s][a][s_next]`; floats are taken at their exact binary value, Fractions as they are.
      reward: `[s][a]` or `[s][a][s_next]`.
      discount: a number in [0, 1].
      policy: an action for each state, -1 where the process has ended.
    """
    gamma = Fraction(discount)
    system = []
    for s, a in enumerate(policy):
        row = [Fraction(p) for p in transition[s][a]] if a >= 0 else [Fraction(0)] * len(policy)
        gains = np.broadcast_to(np.asarray(reward[s][a] if a >= 0 else 0, dtype=object), len(row))
        gain = sum((p * Fraction(r) for p, r in zip(row, gains, strict=True)), Fraction(0))
        system.append([int(t == s) - gamma * p for t, p in enumerate(row)] + [gain])
    return solve_exactly(system)


def solve_exactly(system: list[list[Fraction]]) -> list[Fraction]:
    """The solution of a square system given as rows (coefficients..., right side); ZeroDivisionError if singular."""
    system, n = [list(line) for line in system], len(system)
    for k in range(n):
        pivot = next((i for i in range(k, n) if system[i][k] != 0), k)
        system[k], system[pivot] = system[pivot], system[k]
        head = system[k][k]
        system[k] = [x / head for x in system[k]]
        for i in range(n):
            factor = system[i][k]
            if i != k and factor != 0:
                system[i] = [x - factor * y for x, y in zip(system[i], system[k], strict=True)]
    return [line[n] for line in system]


def table_value_iteration(table: Any, discount: float, sweeps: int) -> np.ndarray:
    """Optimal values of a Gymnasium table `P[s][a] = [(p, next, reward, ended)]`, in plain Python loops."""
    v = [0.0] * len(table)
    for _ in range(sweeps):
        v = [
            max(
                sum(p * (r + (0.0 if ended else discount * v[int(t)])) for p, t, r, ended in outcomes)
                for outcomes in table[s].values()
            )
            for s in range(len(table))
        ]
    return np.array(v)


def value_iteration(mdp: Any, sweeps: int) -> np.ndarray:
    """Optimal values of a model after `sweeps` sweeps from zero, reading its arrays entry by entry."""
    rows, v = mdp.rows, np.zeros(mdp.n_states)
    for _ in range(sweeps):
        new = np.full(mdp.n_states, -np.inf)
        for s in range(mdp.n_states):
            for k in range(mdp.row_start[s], mdp.row_start[s + 1]):
                entries = range(rows.entry_start[k], rows.entry_start[k + 1])
                r = [rows.reward[j] if rows.rewards_successors else rows.reward[k] for j in entries]
                q = sum(
                    rows.probability[j] * (x + mdp.discount * v[rows.successor[j]])
                    for j, x in zip(entries, r, strict=True)
                )
                new[s] = max(new[s], q)
        v = np.where(np.isneginf(new), 0.0, new)
    return v


def same_model(one: Any, other: Any) -> bool:
    """Whether two models have equal arrays, equal types, equal discounts and starts."""
    names = ("row_start", "action", "rows.entry_start", "rows.successor", "rows.probability", "rows.reward")
    pairs = [tuple(reduce(getattr, name.split("."), mdp) for mdp in (one, other)) for name in names]
    starts_alike = (one.initial is None) == (other.initial is None)
    if one.initial is not None and other.initial is not None:
        pairs.append((one.initial, other.initial))
    alike = all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs)
    return alike and starts_alike and one.discount == other.discount and one.rows.n_states == other.rows.n_states
