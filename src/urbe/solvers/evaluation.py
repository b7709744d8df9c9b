"""Robust evaluation of a policy, to a given spread: by sweeps, or by Newton steps where chains mix slowly.

A Newton step freezes nature's answer and solves the linear system of policy and nature together. For a fixed policy
this is policy iteration of nature, which converges monotonically from above; no cycling can occur.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from urbe.bellman.operators import Evaluator, Frozen
from urbe.solvers.bounds import spread_of
from urbe.solvers.linear import Plan, plan, solve_system
from urbe.types import BoolArray, FloatArray
from urbe.workers import Workers

SWEEP_WORK = 6.0
"""Work of a policy sweep per entry, in the units of `Plan.work`."""
MOST_NEWTON_STEPS = 50
PATIENCE = 6
"""Newton steps without a smaller spread after which rounding has the last word."""


class Evaluated(NamedTuple):
    """Where an evaluation ended: values, the spread of the last change, and policy sweeps used."""

    value: FloatArray
    spread: float
    sweeps: int


class Setting(NamedTuple):
    """What an evaluation needs to know of the model."""

    discount: float
    terminal: BoolArray
    workers: Workers


class Evaluation(Protocol):
    """A way to move `v` towards the fixed point of T_pi."""

    def __call__(self, evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
        """From v, whose spread is known, until it is at most `target`."""


def fixed_sweeps(sweeps: int) -> Evaluation:
    """`sweeps` applications of T_pi, whatever they reach (modified policy iteration)."""

    def evaluate(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:  # noqa: ARG001
        done = 0
        while done < sweeps:
            new = evaluator.apply(v, setting.workers)
            done += 1
            lo, hi = spread_of(v, new, setting.terminal)
            v, spread = new, hi - lo
            if spread <= target:
                break
        return Evaluated(v, spread, done)

    return evaluate


def adaptive(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
    """Sweeps while they pay, Newton steps once solving a system is cheaper than the sweeps still expected."""
    trial = 4
    done, how = 0, None
    last = spread
    frozen_plan_tried = False
    while spread > target:
        new = evaluator.apply(v, setting.workers)
        done += 1
        lo, hi = spread_of(v, new, setting.terminal)
        v, last, spread = new, spread, hi - lo
        if done < trial or spread <= target or frozen_plan_tried:
            continue
        expected = _sweeps_left(last, spread, target) * SWEEP_WORK * evaluator.entries
        if expected < 2e5:
            continue
        frozen_plan_tried = True
        system = live_system(evaluator.freeze(v), setting)
        how = plan(system.matrix)
        if how.work < expected:
            reached = _newton(evaluator, v, spread, target, setting, how)
            v, spread, done = reached.value, reached.spread, done + reached.sweeps
            frozen_plan_tried = how.kind == "krylov" or spread > target
    return Evaluated(v, spread, done)


def newton(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
    """Newton steps from the start; sweeps only if a system cannot be solved."""
    how = plan(live_system(evaluator.freeze(v), setting).matrix)
    reached = _newton(evaluator, v, spread, target, setting, how)
    if reached.spread <= target:
        return reached
    rest = adaptive(evaluator, reached.value, reached.spread, target, setting)
    return Evaluated(rest.value, rest.spread, reached.sweeps + rest.sweeps)


def _newton(
    evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting, how: Plan
) -> Evaluated:
    live = ~setting.terminal
    best = Evaluated(v, spread, 0)
    for step in range(1, MOST_NEWTON_STEPS + 1):
        system = live_system(evaluator.freeze(v), setting)
        solved = solve_system(system.matrix, system.reward, setting.discount, how)
        if solved is None:
            break
        candidate = np.zeros_like(v)
        candidate[live] = solved
        v = evaluator.apply(candidate, setting.workers)
        lo, hi = spread_of(candidate, v, setting.terminal)
        # the spread may rise before it falls: a small one far from the fixed point is what slow mixing means
        if hi - lo < best.spread:
            best = Evaluated(v, hi - lo, step)
        elif step > best.sweeps + PATIENCE:
            break
        if hi - lo <= target:
            break
    return best._replace(sweeps=step)


def live_system(frozen: Frozen, setting: Setting) -> Frozen:
    """The system over the states that are not terminal (where the value is zero)."""
    if not setting.terminal.any():
        return frozen
    live = np.flatnonzero(~setting.terminal)
    return Frozen(frozen.matrix[live][:, live], frozen.reward[live])


def _sweeps_left(last: float, spread: float, target: float) -> float:
    """Sweeps until `target` if the spread goes on shrinking as it did."""
    if not 0.0 < spread < last:
        return math.inf
    return math.log(target / spread) / math.log(spread / last)
