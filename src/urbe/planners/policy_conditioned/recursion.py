"""Solve the inner problem for given multipliers, nature's dynamics and the policy's answer, by dynamic programming.

With b the belief in a state, b' = b / Z the belief after the policy's action, 0 after any other, and

    Q(s, a, b', s') = b' r(s, a, s') + (1 - b') omega . phi(s, a, s') + V_{t+1}(s', b')
    V_t(s, b)       = sum_a Z_a softmin_{s'} Q(s, a, b'_a, s'),     Z_a = b 1[a = pi(s, b)] + (1 - b) reference(a | s)
    tau(s')         proportional to exp(-sharpness Q)

2 V_0(start, 1/2) is the least of E_{tau, pi}[return] + omega . E_{tau, reference}[features], softened by the causal
entropy of tau; with an infinite sharpness it is the minimum itself. Values between beliefs are interpolated linearly.

A forward pass propagates mass with the same weights, so that its result is the exact derivative of the backward pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from urbe.mdp.model import MDP
from urbe.planners.policy_conditioned.beliefs import Beliefs
from urbe.types import FloatArray, IntArray

BY_RETURN, BY_TOTAL, AS_GIVEN = 0, 1, 2
"""The choice of actions: by the return under nature's dynamics, by V itself, or given."""


class InnerProblem(NamedTuple):
    """The data of the passes.

    Attributes:
      row_start, row_state, entry_start, successor: arrays of the model.
      reward: `(E,)` rewards of the entries.
      reference: `(R,)` probabilities of the rows.
      discount: discount of rewards.
    """

    row_start: IntArray
    row_state: IntArray
    entry_start: IntArray
    successor: IntArray
    reward: FloatArray
    reference: FloatArray
    discount: float


class BackwardPass(NamedTuple):
    """The result of `backward`; the policy takes row `row[t, s, g]` at belief g.

    Attributes:
      value: `(T + 1, S, G)` V.
      gain: `(T + 1, S, G)` expected return of the policy under nature's dynamics.
      row: `(T, S, G)`, -1 at terminal states.
    """

    value: FloatArray
    gain: FloatArray
    row: IntArray


def inner_problem(mdp: MDP, reference: FloatArray) -> InnerProblem:
    """Collects the arrays of a model, with the probabilities of rows under the reference policy."""
    rows = mdp.rows
    reward = np.ascontiguousarray(rows.reward_per_entry)
    return InnerProblem(
        mdp.row_start, mdp.row_state, rows.entry_start, rows.successor, reward, reference, float(mdp.discount)
    )


def backward(
    problem: InnerProblem, beliefs: Beliefs, bonus: FloatArray, sharpness: float, rule: int, row: IntArray
) -> BackwardPass:
    """Computes values from the last step to the first.

    Args:
      problem: the model.
      beliefs: of each step.
      bonus: `(E,)` omega . phi.
      sharpness: sharpness of the softmin, above 0; may be infinite.
      rule: the choice of actions.
      row: `(T, S, G)`, read if actions are given, and written otherwise.
    """
    n_steps, n_states, n_beliefs = row.shape
    value = np.zeros((n_steps + 1, n_states, n_beliefs))
    gain = np.zeros_like(value)
    _backward(problem, *beliefs[:2], beliefs.rest, bonus, sharpness, rule, row, value, gain)
    return BackwardPass(value, gain, row)


def forward(
    problem: InnerProblem, beliefs: Beliefs, bonus: FloatArray, sharpness: float, initial: FloatArray, at: BackwardPass
) -> FloatArray:
    """`(E,)` the expected number of times the reference policy takes each entry, under nature's dynamics.

    Args:
      problem, beliefs, bonus, sharpness: as for `backward`.
      initial: `(S,)` distribution of the first state.
      at: the backward pass.
    """
    taken = np.zeros(len(problem.successor))
    _forward(problem, *beliefs[:2], beliefs.rest, bonus, sharpness, initial, at.row, at.value, taken)
    return taken


@njit(cache=True, nogil=True)
def _locate(rest, count, wanted):
    """Returns i and w with wanted = (1 - w) rest[i] + w rest[i + 1], for `rest` = 1 - b, decreasing in i."""
    if wanted >= 1.0:
        return 0, 0.0
    low, high = 1, count - 1  # belief 0 is never interpolated
    if wanted >= rest[low]:
        return low, 0.0
    if wanted <= rest[high]:
        return high, 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if rest[middle] >= wanted:
            low = middle
        else:
            high = middle
    return low, (rest[low] - wanted) / (rest[low] - rest[high])


@njit(cache=True, nogil=True)
def _nature(first, last, b, c, scale, successor, reward, bonus, ahead, i, w, sharpness, q, tau):
    """Returns the softmin of Q in one row at belief b = 1 - c; writes nature's answer to tau[: last - first]."""
    low = np.inf
    for e in range(first, last):
        s = successor[e]
        x = b * scale * reward[e] + c * bonus[e] + ahead[s, i]
        if w > 0.0:
            x += w * (ahead[s, i + 1] - ahead[s, i])
        q[e - first] = x
        low = min(low, x)
    total = 0.0
    for k in range(last - first):
        if np.isinf(sharpness):
            tau[k] = 1.0 if q[k] == low and total == 0.0 else 0.0
        else:
            tau[k] = np.exp(-sharpness * (q[k] - low))
        total += tau[k]
    for k in range(last - first):
        tau[k] /= total
    return low if np.isinf(sharpness) else low - np.log(total) / sharpness


@njit(cache=True, nogil=True)
def _after(odds, p):
    """Odds after the policy's action, which the reference takes with probability p."""
    return odds / p if p > 0.0 else np.inf


@njit(cache=True, nogil=True)
def _backward(problem, odds, count, rest, bonus, sharpness, rule, row, value, gain):
    row_start, _, entry_start, successor, reward, reference, discount = problem
    n_steps, n_states, _ = row.shape
    longest = 1
    for k in range(len(entry_start) - 1):
        longest = max(longest, entry_start[k + 1] - entry_start[k])
    q, tau = np.empty(longest), np.empty(longest)
    other = np.empty(len(reference))
    for t in range(n_steps - 1, -1, -1):
        scale = discount**t
        ahead, later, next_rest, next_count = value[t + 1], gain[t + 1], rest[t + 1], count[t + 1]
        for k in range(len(reference)):  # nature's answer to actions other than the policy's
            other[k] = _nature(entry_start[k], entry_start[k + 1], 0.0, 1.0, scale, successor, reward, bonus, ahead, 0,
                               0.0, sharpness, q, tau)  # fmt: skip
        for s in range(n_states):
            if row_start[s] == row_start[s + 1]:
                row[t, s, :] = -1
                continue
            for g in range(count[t]):
                c = rest[t, g]
                b, rest_of_all = 1.0 - c, 0.0
                for k in range(row_start[s], row_start[s + 1]):
                    rest_of_all += c * reference[k] * other[k]
                if g == 0:
                    value[t, s, 0] = rest_of_all
                    if rule != AS_GIVEN:
                        row[t, s, 0] = row_start[s]
                    continue
                best, best_row, best_value, best_gain = -np.inf, -1, 0.0, 0.0
                for k in range(row_start[s], row_start[s + 1]):
                    if rule == AS_GIVEN and row[t, s, g] != k:
                        continue
                    z = b + c * reference[k]
                    behind = 1.0 / (1.0 + _after(odds[t, g], reference[k]))
                    i, w = _locate(next_rest, next_count, behind)
                    soft = _nature(entry_start[k], entry_start[k + 1], 1.0 - behind, behind, scale, successor, reward,
                                   bonus, ahead, i, w, sharpness, q, tau)  # fmt: skip
                    total = rest_of_all - c * reference[k] * other[k] + z * soft
                    mean = 0.0
                    for e in range(entry_start[k], entry_start[k + 1]):
                        x = later[successor[e], i]
                        if w > 0.0:
                            x += w * (later[successor[e], i + 1] - later[successor[e], i])
                        mean += tau[e - entry_start[k]] * (scale * reward[e] + x)
                    score = mean if rule == BY_RETURN else total
                    if score > best or best_row < 0:
                        best, best_row, best_value, best_gain = score, k, total, mean
                row[t, s, g], value[t, s, g], gain[t, s, g] = best_row, best_value, best_gain
            for g in range(count[t], value.shape[2]):
                value[t, s, g], gain[t, s, g] = value[t, s, count[t] - 1], gain[t, s, count[t] - 1]
                row[t, s, g] = row[t, s, count[t] - 1]


@njit(cache=True, nogil=True)
def _forward(problem, odds, count, rest, bonus, sharpness, initial, row, value, taken):
    row_start, _, entry_start, successor, reward, reference, discount = problem
    n_steps, n_states, n_beliefs = row.shape
    longest = 1
    for k in range(len(entry_start) - 1):
        longest = max(longest, entry_start[k + 1] - entry_start[k])
    q, tau = np.empty(longest), np.empty(longest)
    mass, following = np.zeros((n_states, n_beliefs)), np.zeros((n_states, n_beliefs))
    other = np.empty(len(reference))  # mass of only the reference on each row
    mass[:, 1] = 2.0 * initial
    for t in range(n_steps):
        scale, ahead, next_rest, next_count = discount**t, value[t + 1], rest[t + 1], count[t + 1]
        following[:] = 0.0
        other[:] = 0.0
        for s in range(n_states):
            for g in range(count[t]):
                m = mass[s, g]
                if m == 0.0 or row_start[s] == row_start[s + 1]:
                    continue
                c = rest[t, g]
                for k in range(row_start[s], row_start[s + 1]):
                    if g == 0 or k != row[t, s, g]:
                        other[k] += m * c * reference[k]
                        continue
                    share = m * ((1.0 - c) + c * reference[k])
                    behind = 1.0 / (1.0 + _after(odds[t, g], reference[k]))
                    i, w = _locate(next_rest, next_count, behind)
                    _nature(entry_start[k], entry_start[k + 1], 1.0 - behind, behind, scale, successor, reward, bonus,
                            ahead, i, w, sharpness, q, tau)  # fmt: skip
                    for e in range(entry_start[k], entry_start[k + 1]):
                        flow = share * tau[e - entry_start[k]]
                        taken[e] += flow * behind
                        following[successor[e], i] += flow * (1.0 - w)
                        if w > 0.0:
                            following[successor[e], i + 1] += flow * w
        for k in range(len(reference)):
            if other[k] > 0.0:
                _nature(entry_start[k], entry_start[k + 1], 0.0, 1.0, scale, successor, reward, bonus, ahead, 0, 0.0,
                        sharpness, q, tau)  # fmt: skip
                for e in range(entry_start[k], entry_start[k + 1]):
                    flow = other[k] * tau[e - entry_start[k]]
                    taken[e] += flow
                    following[successor[e], 0] += flow
        mass, following = following, mass
