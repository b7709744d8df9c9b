"""Extended value iteration: the best gain over L1 balls and policies, for average reward; compiled.

    u <- u + STEP (T u - u),    (T u)(s) = max_a [ r(s, a) + bonus(s, a) + max_{||x - p||_1 <= psi} x . u ]

until the spread of T u - u over the states is below a tolerance; max (T u - u) then exceeds the best gain by at most
this tolerance. A STEP below one makes every chain aperiodic, which balls around listed successors do not. Subtracting
their minimum keeps values near zero. A terminal state is a restart that takes no time: its value is the mean value over
the initial distribution.

Doubted rows take the worst case in place of the best. Nature may then keep the process in a state, and states differ in
their gains; a discount just below one, under which the process occasionally falls back into the state of least value,
gives every model one gain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from urbe.agents.l1_rows import L1Answers, L1Rows, sparse_sweep
from urbe.agents.set_plan import PlanData, plan_model
from urbe.ambiguity.operator import AmbiguitySet
from urbe.ambiguity.sweep import named_after
from urbe.mdp.model import MDP
from urbe.types import BoolArray, FloatArray, IntArray

STEP = 0.9

MOST_SWEEPS = 100_000


def check_restarts(model: MDP) -> None:
    """Raises if the model has terminal states, which are restarts for average reward, but no first states."""
    if model.terminal.any() and model.initial is None:
        raise ValueError(
            "The model has terminal states but no initial distribution, so what follows them is not known; build "
            "it with initial=, or use Criterion.EPISODE."
        )


def extended_value_iteration(
    model: MDP,
    which: IntArray,
    alpha: FloatArray,
    total: FloatArray,
    reward: FloatArray,
    radius: FloatArray,
    tolerance: FloatArray,
    u: FloatArray,
    q: FloatArray,
    gain: FloatArray,
    doubted: BoolArray | None = None,
    discount: float = 1.0,
) -> None:
    """Writes `q` and `gain` of the replicates `which`.

    Args:
      model: pairs, successors; its discount is not read.
      which: `(K,)` replicates.
      alpha, total: `(B, 1, E)` and `(B, 1, R)`, the centres are `alpha / total`.
      reward: `(B, R)` including any bonus; rewards of successors are those of the model.
      radius: `(B, R)` psi.
      tolerance: `(B,)`.
      u: `(B, S)` initial values, overwritten with the final ones.
      q: `(B, R)` T u of each pair.
      gain: `(B,)` max (T u - u).
      doubted: `(B, R)` rows with the worst case; None for none.
      discount: one or just below.

    Raises:
      RuntimeError: the spread does not shrink, for instance because some states are unreachable from others.
    """
    initial = np.zeros(model.n_states) if model.initial is None else model.initial
    data = PlanData(alpha, total, reward, radius)
    worst = np.zeros(radius.shape, dtype=np.bool_) if doubted is None else doubted
    patient = plan_model(replace(model, discount=discount))
    stuck = _iterate(which, patient, model.rows.entry_reward, initial, data, worst, tolerance, u, q, gain)
    if stuck >= 0:
        raise RuntimeError(_stuck(stuck, float(tolerance[stuck])))


def best_gain(
    centre: MDP, nature: AmbiguitySet, tolerance: float, u: FloatArray, replicate: int, discount: float = 1.0
) -> tuple[FloatArray, float]:
    """Computes `(R,)` T u of each pair and max (T u - u), for any set, by the same iteration with the set's operator.

    Args:
      centre: the model around which nature chooses; its discount is not read.
      nature: the ambiguity set, such as `Optimistic(KLBall(0.1))`.
      tolerance: tolerance of the spread of T u - u.
      u: `(S,)` initial values, overwritten with the final ones.
      replicate: its number, for the error if the spread does not shrink.
      discount: one or just below.
    """
    model, memory = replace(centre, discount=discount), None
    operator = nature.operator(model)
    live = ~model.terminal
    for _ in range(MOST_SWEEPS):
        if model.initial is not None:
            u[model.terminal] = model.initial @ u
        improvement = operator.improve(u, memory)
        memory, change = improvement.memory, (improvement.value - u)[live]
        low, high = float(change.min(initial=np.inf)), float(change.max(initial=-np.inf))
        u[live] += STEP * change
        u -= u.min()
        if high - low <= tolerance:
            return improvement.q, high
    raise RuntimeError(_stuck(replicate, tolerance))


def _stuck(replicate: int, tolerance: float) -> str:
    return (
        f"After {MOST_SWEEPS} sweeps the optimistic gain of replicate {replicate} still differs between states by more "
        f"than {tolerance:g}. Average reward needs every state to be reachable from every other; for episodes of a "
        "known length, plan for that horizon instead."
    )


@njit(cache=True, nogil=True)
@named_after(sparse_sweep)
def _iterate(which, model, entry_reward, initial, data, doubted, tolerance, u, q, gain):
    entry_start, successor, row_start, _, gamma, longest = model
    alpha, total, reward, radius = data
    n_rows, n_states = len(entry_start) - 1, len(row_start) - 1
    p, z, hint = np.empty(len(successor)), np.empty(longest), np.zeros(n_rows, dtype=np.int64)
    value = np.empty(n_rows)
    answers = L1Answers(value, np.zeros(n_rows), np.zeros(n_rows))
    nothing, change = np.zeros(n_states), np.zeros(n_states)
    for b in which:
        for row in range(n_rows):
            for j in range(entry_start[row], entry_start[row + 1]):
                p[j] = alpha[b, 0, j] / total[b, 0, row]
        rows = L1Rows(entry_start, successor, p, radius[b], hint, z)
        sweep, spread = 0, np.inf
        while spread > tolerance[b]:
            if sweep == MOST_SWEEPS:
                return b
            sweep += 1
            again = 0.0
            for s in range(n_states):
                again += initial[s] * u[b, s]
            for s in range(n_states):
                if row_start[s] == row_start[s + 1]:
                    u[b, s] = again
            sparse_sweep(~doubted[b], rows, entry_reward, gamma, u[b], nothing, -1.0, False, answers)
            sparse_sweep(doubted[b], rows, entry_reward, gamma, u[b], nothing, 1.0, False, answers)
            low, high, bottom = np.inf, -np.inf, np.inf
            for s in range(n_states):
                best = -np.inf
                for row in range(row_start[s], row_start[s + 1]):
                    q[b, row] = value[row] + reward[b, row] if entry_reward is None else value[row]
                    best = max(best, q[b, row])
                if row_start[s] < row_start[s + 1]:
                    change[s] = best - u[b, s]
                    low, high = min(low, change[s]), max(high, change[s])
            for s in range(n_states):
                u[b, s] += STEP * change[s]
                bottom = min(bottom, u[b, s])
            for s in range(n_states):
                u[b, s] -= bottom
            spread, gain[b] = high - low, high
    return -1
