"""Evaluate a policy robustly to a given spread: by sweeps, or by Newton steps if chains mix slowly.

A Newton step holds nature's answer fixed and solves the linear system of policy and nature together. For a fixed policy
this is policy iteration of nature, which converges monotonically from above; no cycling can occur.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from urbe.ambiguity.operator import LinearSystem, Memory, PolicyOperator
from urbe.solvers.bounds import spread_of
from urbe.solvers.linear import SolvePlan, plan, solve_system
from urbe.types import BoolArray, FloatArray
from urbe.workers import Workers

SWEEP_WORK = 6.0
"""Work of a policy sweep per entry, in the units of `Plan.work`."""
TRIAL_SWEEPS = 4
LEAST_SWEEPS = 25.0
"""Sweeps made, and sweeps still expected, before Newton steps are considered, since planning them has a cost."""
MOST_SWEEPS = 1_000_000
MOST_AT_ONCE = 10_000
"""Largest number of sweeps of one adaptive evaluation, before the next improvement."""
MOST_NEWTON_STEPS = 50
MOST_SMOOTHING = 64
LITTLE_GAIN = 0.8
LONGEST_PAUSE = 256
"""Improvements between two attempts at Newton steps after a failed one."""
NEWTON_SHRINK = 0.2
"""Share of the improvement's spread at which Newton steps may end, since improving the policy gains more."""
IDLE_SWEEPS = 16
"""Stop after this many sweeps in a row without a smaller spread, once the spread is down to rounding."""
NOISE = 1e-11
"""Spread, relative to the values, below which a Newton step that gains nothing is the last."""
FADING = 2.0**-1010
"""Absolute spread from rounding next to the smallest number, where digits are lost."""


class Evaluated(NamedTuple):
    """The result of an evaluation: values, the spread of the last change, policy sweeps, and the memory."""

    value: FloatArray
    spread: float
    sweeps: int
    memory: Memory


class Setting(NamedTuple):
    """The data of the model for an evaluation."""

    discount: float
    terminal: BoolArray
    workers: Workers


class PolicyEvaluation(Protocol):
    """A method that moves `v` towards the fixed point of T_pi."""

    def __call__(self, operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        """From `start`, whose spread is known, until it is at most `target`."""


def fixed_sweeps(sweeps: int) -> PolicyEvaluation:
    """A fixed number of applications of T_pi (modified policy iteration)."""

    def evaluate(operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        at, best, idle = start._replace(sweeps=0), start.spread, 0
        while at.sweeps < sweeps:
            at = _sweep(operator, at, setting)
            best, idle = (at.spread, 0) if at.spread < best else (best, idle + 1)
            if at.spread <= target or _rounding_wins(idle, at):
                break
        return at

    return evaluate


def adaptive() -> PolicyEvaluation:
    """Sweeps first, then Newton steps when solving linear systems is cheaper than the remaining sweeps.

    Slow mixing shows only after some sweeps, and is similar for the next policy: after successful Newton steps, the
    following evaluations begin with them. As long as each improvement halves the spread, a single step
    is enough: policy and nature then move together, which alone could cycle; when it does not, the policy is evaluated
    in full. Before a distant reward has propagated all policies are poor, and even full evaluations gain little from
    one improvement to the next: Newton steps are then suspended, with exponential back-off.
    """
    known: SolvePlan | None = None
    least = math.inf
    stepped, last = False, math.inf  # whether the last evaluation took Newton steps, and the spread before it if so
    pause, longer = 0, 1

    def evaluate(operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        nonlocal known, least, stepped, last, pause, longer
        at, spread = start._replace(sweeps=0), start.spread
        if stepped:  # a spread that sweeps left behind says nothing: theirs may be small far from the end
            if spread > LITTLE_GAIN * last:
                pause, longer = longer, min(2 * longer, LONGEST_PAUSE)
            last = spread
        stepped = False
        if pause > 0:
            pause, last = pause - 1, math.inf
            return quick(operator, at, target, setting)
        if known is not None:
            stepped = True
            bold = spread <= 0.5 * least
            least = min(least, spread)
            enough = max(target, NEWTON_SHRINK * spread)
            reached = _newton(operator, at, enough, setting, known, 1 if bold else MOST_NEWTON_STEPS)
            if reached.spread <= enough or (bold and reached.value is not at.value):
                return reached
            at = reached
        how: SolvePlan | None = None
        best, idle = at.spread, 0
        while at.spread > target and at.sweeps < MOST_AT_ONCE and not _rounding_wins(idle, at):
            before, at = at.spread, _sweep(operator, at, setting)
            left = _sweeps_left(before, at.spread, target)
            best, idle = (at.spread, 0) if at.spread < best else (best, idle + 1)
            if known is not None or at.sweeps < TRIAL_SWEEPS or left < LEAST_SWEEPS:
                continue
            how = how or plan(live_system(operator.linear_system(at.value, at.memory), setting).matrix)
            if how.work < left * SWEEP_WORK * operator.entries:
                known, stepped = how, True
                return _newton(operator, at, target, setting, how, 1)
        return at

    quick = fixed_sweeps(TRIAL_SWEEPS)
    return evaluate


def newton() -> PolicyEvaluation:
    """Newton steps from the start; sweeps only where they do not get there."""
    known: SolvePlan | None = None
    sweeps = fixed_sweeps(MOST_SWEEPS)

    def evaluate(operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        nonlocal known
        at = start._replace(sweeps=0)
        known = known or plan(live_system(operator.linear_system(at.value, at.memory), setting).matrix)
        reached = _newton(operator, at, target, setting, known, MOST_NEWTON_STEPS)
        if reached.spread <= target:
            return reached
        rest = sweeps(operator, reached, target, setting)
        return rest._replace(sweeps=reached.sweeps + rest.sweeps)

    return evaluate


def _sweep(operator: PolicyOperator, at: Evaluated, setting: Setting) -> Evaluated:
    """One application of T_pi."""
    new, memory = operator.apply(at.value, at.memory, setting.workers)
    lo, hi = spread_of(at.value, new, setting.terminal)
    return Evaluated(new, hi - lo, at.sweeps + 1, memory)


def _newton(
    operator: PolicyOperator, at: Evaluated, target: float, setting: Setting, how: SolvePlan, most: int
) -> Evaluated:
    live = ~setting.terminal
    # sweeps after each solve, worth about as much: nature's next answer is held fixed at smoother values, and there
    # are far fewer solves
    smooth = int(min(how.work / (SWEEP_WORK * operator.entries), MOST_SMOOTHING))
    for _ in range(most):
        system = live_system(operator.linear_system(at.value, at.memory), setting)
        solved = solve_system(system.matrix, system.reward, setting.discount, how)
        if solved is None:
            return at
        candidate = np.zeros_like(at.value)
        candidate[live] = solved
        before, at = at.spread, _sweep(operator, at._replace(value=candidate), setting)
        for _ in range(smooth):
            if at.spread <= target:
                break
            at = _sweep(operator, at, setting)
        # on the way the spread may exceed the one it started from: slow mixing is small spreads far from the end
        stalled = at.spread >= before and at.spread <= NOISE * float(np.abs(at.value).max(initial=1.0))
        if at.spread <= target or stalled:
            break
    return at


def _rounding_wins(idle: int, at: Evaluated) -> bool:
    """Whether sweeps have stopped gaining at a spread that rounding can account for."""
    return idle >= IDLE_SWEEPS and at.spread <= NOISE * float(np.abs(at.value).max(initial=0.0)) + FADING


def live_system(system: LinearSystem, setting: Setting) -> LinearSystem:
    """The system over the states that are not terminal (where the value is zero)."""
    if not setting.terminal.any():
        return system
    return system.among(np.flatnonzero(~setting.terminal))


def _sweeps_left(last: float, spread: float, target: float) -> float:
    """Sweeps until `target` if the spread goes on shrinking as it did."""
    if spread <= target:
        return 0.0
    if spread >= last:
        return math.inf
    return math.log(target / spread) / math.log(spread / last)
