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
TRIAL_SWEEPS = 4
LEAST_SWEEPS = 25.0
"""Sweeps made, and sweeps still expected, before anything else is considered: planning costs some too."""
MOST_SWEEPS = 1_000_000
MOST_AT_ONCE = 10_000
"""Sweeps of one adaptive evaluation, after which another improvement is due in any case."""
MOST_NEWTON_STEPS = 50
MOST_SMOOTHING = 64
LITTLE_GAIN = 0.8
LONGEST_PAUSE = 256
"""Improvements between two attempts at Newton steps where they have not paid."""
NEWTON_SHRINK = 0.2
"""Share of the improvement's spread at which Newton steps may end: dear steps are better spent on better policies."""
IDLE_SWEEPS = 16
"""Sweeps in a row without a new least spread after which more are of no use, once it is down to noise."""
NOISE = 1e-11
"""Spread, relative to the values, below which a Newton step that gains nothing is the last."""
FADING = 2.0**-1010
"""Spread that rounding accounts for whatever the values: next to the smallest number digits get lost."""


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

    def __call__(
        self, evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting
    ) -> Evaluated:
        """From v, whose spread is known, until it is at most `target`."""


def fixed_sweeps(sweeps: int) -> Evaluation:
    """`sweeps` applications of T_pi, whatever they reach (modified policy iteration)."""

    def evaluate(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
        done, best, idle = 0, spread, 0
        while done < sweeps:
            new = evaluator.apply(v, setting.workers)
            done += 1
            lo, hi = spread_of(v, new, setting.terminal)
            v, spread = new, hi - lo
            best, idle = (spread, 0) if spread < best else (best, idle + 1)
            if spread <= target or _rounding_wins(idle, spread, v):
                break
        return Evaluated(v, spread, done)

    return evaluate


def adaptive() -> Evaluation:
    """Sweeps while they pay; Newton steps once solving systems is cheaper than the sweeps still expected.

    Whether a chain mixes slowly shows only after a while, and is much the same for the next policy: once Newton steps
    have paid, the following evaluations begin with them. As long as each improvement halves the spread, a single step
    is enough: policy and nature then move together, which alone could cycle; when it does not, the policy is evaluated
    in full. Where even that gains little from one improvement to the next, as on the way to a distant goal, where all
    policies are poor until the goal has been heard of, Newton steps pause for a while, longer each time.
    """
    known: Plan | None = None
    least = math.inf
    stepped, last = False, math.inf  # whether the last evaluation took Newton steps, and the spread before it if so
    pause, longer = 0, 1

    def evaluate(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
        nonlocal known, least, stepped, last, pause, longer
        if stepped:  # a spread that sweeps left behind says nothing: theirs may be small far from the end
            if spread > LITTLE_GAIN * last:
                pause, longer = longer, min(2 * longer, LONGEST_PAUSE)
            last = spread
        stepped = False
        if pause > 0:
            pause, last = pause - 1, math.inf
            return quick(evaluator, v, spread, target, setting)
        if known is not None:
            stepped = True
            bold = spread <= 0.5 * least
            least = min(least, spread)
            enough = max(target, NEWTON_SHRINK * spread)
            reached = _newton(evaluator, v, spread, enough, setting, known, 1 if bold else MOST_NEWTON_STEPS)
            if reached.spread <= enough or (bold and reached.value is not v):
                return reached
        else:
            reached = Evaluated(v, spread, 0)
        how: Plan | None = None
        best, idle = reached.spread, 0
        while (
            reached.spread > target
            and reached.sweeps < MOST_AT_ONCE
            and not _rounding_wins(idle, reached.spread, reached.value)
        ):
            new = evaluator.apply(reached.value, setting.workers)
            lo, hi = spread_of(reached.value, new, setting.terminal)
            left = _sweeps_left(reached.spread, hi - lo, target)
            reached = Evaluated(new, hi - lo, reached.sweeps + 1)
            best, idle = (reached.spread, 0) if reached.spread < best else (best, idle + 1)
            if known is not None or reached.sweeps < TRIAL_SWEEPS or left < LEAST_SWEEPS:
                continue
            how = how or plan(live_system(evaluator.freeze(new), setting).matrix)
            if how.work < left * SWEEP_WORK * evaluator.entries:
                known, stepped = how, True
                solved = _newton(evaluator, new, reached.spread, target, setting, how, 1)
                return solved._replace(sweeps=reached.sweeps + solved.sweeps)
        return reached

    quick = fixed_sweeps(TRIAL_SWEEPS)
    return evaluate


def newton() -> Evaluation:
    """Newton steps from the start; sweeps only where they do not get there."""
    known: Plan | None = None
    sweeps = fixed_sweeps(MOST_SWEEPS)

    def evaluate(evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting) -> Evaluated:
        nonlocal known
        known = known or plan(live_system(evaluator.freeze(v), setting).matrix)
        reached = _newton(evaluator, v, spread, target, setting, known, MOST_NEWTON_STEPS)
        if reached.spread <= target:
            return reached
        rest = sweeps(evaluator, reached.value, reached.spread, target, setting)
        return rest._replace(sweeps=reached.sweeps + rest.sweeps)

    return evaluate


def _newton(
    evaluator: Evaluator, v: FloatArray, spread: float, target: float, setting: Setting, how: Plan, most: int
) -> Evaluated:
    live = ~setting.terminal
    # sweeps after each solve, worth about as much: nature's next answer is frozen at smoother values, and there are
    # far fewer solves
    smooth = int(min(how.work / (SWEEP_WORK * evaluator.entries), MOST_SMOOTHING))
    done = 0
    for _ in range(most):
        system = live_system(evaluator.freeze(v), setting)
        solved = solve_system(system.matrix, system.reward, setting.discount, how)
        if solved is None:
            return Evaluated(v, spread, done)
        candidate = np.zeros_like(v)
        candidate[live] = solved
        v = evaluator.apply(candidate, setting.workers)
        lo, hi = spread_of(candidate, v, setting.terminal)
        done += 1
        for _ in range(smooth):
            if hi - lo <= target:
                break
            candidate, v = v, evaluator.apply(v, setting.workers)
            lo, hi = spread_of(candidate, v, setting.terminal)
            done += 1
        # on the way the spread may exceed the one it started from: slow mixing is small spreads far from the end
        before, spread = spread, hi - lo
        stalled = spread >= before and spread <= NOISE * float(np.abs(v).max(initial=1.0))
        if spread <= target or stalled:
            break
    return Evaluated(v, spread, done)


def _rounding_wins(idle: int, spread: float, v: FloatArray) -> bool:
    """Whether sweeps have stopped gaining at a spread that rounding can account for."""
    return idle >= IDLE_SWEEPS and spread <= NOISE * float(np.abs(v).max(initial=0.0)) + FADING


def live_system(frozen: Frozen, setting: Setting) -> Frozen:
    """The system over the states that are not terminal (where the value is zero)."""
    if not setting.terminal.any():
        return frozen
    live = np.flatnonzero(~setting.terminal)
    return Frozen(frozen.matrix[live][:, live], frozen.reward[live])


def _sweeps_left(last: float, spread: float, target: float) -> float:
    """Sweeps until `target` if the spread goes on shrinking as it did."""
    if spread <= target:
        return 0.0
    if spread >= last:
        return math.inf
    return math.log(target / spread) / math.log(spread / last)
