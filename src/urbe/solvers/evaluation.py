"""Evaluate a policy robustly, to a given spread: by sweeps, or by Newton steps if the chain mixes slowly.

A Newton step holds nature's answer fixed and solves the linear system of policy and nature together. For a fixed policy
this is policy iteration of nature, which converges monotonically from above and cannot cycle.
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
"""Newton steps are considered after TRIAL_SWEEPS if at least LEAST_SWEEPS more are expected: planning has a cost."""
MOST_SWEEPS = 1_000_000
MOST_AT_ONCE = 10_000
"""Maximum sweeps of one adaptive evaluation before the next improvement."""
MOST_NEWTON_STEPS = 50
MOST_SMOOTHING = 64
LITTLE_GAIN = 0.8
LONGEST_PAUSE = 256
"""Maximum number of improvements between two attempts at Newton steps that have not paid off."""
NEWTON_SHRINK = 0.2
"""Newton steps may end at this share of the improvement's spread: they are expensive, and better policies gain more."""
IDLE_SWEEPS = 16
"""Stop after this many sweeps in a row without a smaller spread, once the spread is down to rounding."""
NOISE = 1e-11
"""Below this spread, relative to the values, Newton steps end when one does not reduce it."""
FADING = 2.0**-1010
"""Spread due to rounding at any size of values: numbers near the smallest lose digits."""


class Evaluated(NamedTuple):
    """The result of an evaluation: values, the spread of the last change, number of policy sweeps, and their memory."""

    value: FloatArray
    spread: float
    sweeps: int
    memory: Memory


class Setting(NamedTuple):
    """The properties of the model that an evaluation needs."""

    discount: float
    terminal: BoolArray
    workers: Workers


class PolicyEvaluation(Protocol):
    """A method that moves `v` towards the fixed point of T_pi."""

    def __call__(self, operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        """Evaluates from `start` until the spread is at most `target`."""


def fixed_sweeps(sweeps: int) -> PolicyEvaluation:
    """Evaluates by at most `sweeps` applications of T_pi (modified policy iteration)."""

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
    """Evaluates by sweeps, and by Newton steps once linear systems are cheaper than the sweeps still expected.

    Slow mixing shows only after some sweeps, and is similar for the next policy: once Newton steps have paid off, later
    evaluations begin with them. While each improvement halves the spread, a single step is enough: policy and nature
    then change together. Since this could cycle, the policy is evaluated in full if the spread is not halved. Before a
    distant reward has propagated, all policies are poor, and even full evaluations gain little from one improvement to
    the next: Newton steps are then suspended, with exponential back-off.
    """
    known: SolvePlan | None = None
    least = math.inf
    stepped, last = False, math.inf  # whether the last evaluation took Newton steps, and the spread before it if so
    pause, longer = 0, 1

    def evaluate(operator: PolicyOperator, start: Evaluated, target: float, setting: Setting) -> Evaluated:
        nonlocal known, least, stepped, last, pause, longer
        at, spread = start._replace(sweeps=0), start.spread
        if stepped:  # the spread after sweeps is no evidence: it may be small far from the fixed point
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
    """Evaluates by Newton steps from the start; by sweeps only if these do not reach the target."""
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
    """Applies T_pi once."""
    new, memory = operator.apply(at.value, at.memory, setting.workers)
    lo, hi = spread_of(at.value, new, setting.terminal)
    return Evaluated(new, hi - lo, at.sweeps + 1, memory)


def _newton(
    operator: PolicyOperator, at: Evaluated, target: float, setting: Setting, how: SolvePlan, most: int
) -> Evaluated:
    live = ~setting.terminal
    # sweeps after each solve, at about the same cost: nature's answer is then updated at smoother values, which needs
    # far fewer solves
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
        # the spread may temporarily exceed the initial one: slow mixing means small spreads far from the fixed point
        stalled = at.spread >= before and at.spread <= NOISE * float(np.abs(at.value).max(initial=1.0))
        if at.spread <= target or stalled:
            break
    return at


def _rounding_wins(idle: int, at: Evaluated) -> bool:
    """Whether sweeps no longer reduce a spread that rounding can explain."""
    return idle >= IDLE_SWEEPS and at.spread <= NOISE * float(np.abs(at.value).max(initial=0.0)) + FADING


def live_system(system: LinearSystem, setting: Setting) -> LinearSystem:
    """Restricts the system to non-terminal states (terminal values are zero)."""
    if not setting.terminal.any():
        return system
    return system.among(np.flatnonzero(~setting.terminal))


def _sweeps_left(last: float, spread: float, target: float) -> float:
    """Predicts the sweeps until `target` if the spread keeps shrinking at the same rate."""
    if spread <= target:
        return 0.0
    left = target / spread
    if spread >= last or left <= 0.0:  # also if the target is zero, or out of reach
        return math.inf
    return math.log(left) / math.log(max(spread / last, math.ulp(0.0)))
