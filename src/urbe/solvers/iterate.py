"""The one loop of every infinite-horizon method: improve, bound, stop or evaluate."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from urbe.bellman.operators import Bellman, Improvement
from urbe.solvers.bounds import Bounds, Bracket
from urbe.solvers.evaluation import Evaluation, Setting
from urbe.solvers.methods import Method
from urbe.types import FloatArray

Progress = Callable[[int, float], None]
"""Called after each improvement with its number and the certified gap."""

PATIENCE = 12
"""Improvements without a smaller gap, once rounding is a good part of it, after which more would be of no use."""


class Outcome(NamedTuple):
    """Where the loop ended.

    Attributes:
      v: `(S,)` the values the last improvement was made at.
      improvement: T v, its rows and its policy.
      bounds: certified by that improvement.
      steps: improvements made; sweeps: policy sweeps between them.
      reason: a sentence.
      reached: whether the gap is within the tolerance.
    """

    v: FloatArray
    improvement: Improvement
    bounds: Bounds
    steps: int
    sweeps: int
    reason: str
    reached: bool


def iterate(
    bellman: Bellman,
    method: Method,
    evaluation: Evaluation,
    bracket: Bracket,
    start: FloatArray,
    setting: Setting,
    progress: Progress,
) -> Outcome:
    """Runs `method` from `start` until the bounds are within its tolerance, rounding wins, or steps run out."""
    v, sweeps = start, 0
    best, since_best = np.inf, 0
    q = np.empty(bellman.mdp.n_rows)
    for step in range(1, method.max_steps + 1):
        improvement = bellman.improve(v, setting.workers, q)
        bounds = bracket(v, improvement.value)
        gap = bounds.gap
        progress(step, gap)
        if gap <= method.tolerance:
            told = f"Solved: the bounds are within {gap:.3g} of each other in every state."
            return Outcome(v, improvement, bounds, step, sweeps, told, True)
        since_best = 0 if gap < best else since_best + 1
        best = min(best, gap)
        if since_best >= PATIENCE and gap <= 4.0 * bounds.floor + method.tolerance:
            told = (
                f"Stopped at a gap of {gap:.3g}: rounding in double precision accounts for {bounds.floor:.3g}, "
                f"so the tolerance {method.tolerance:.3g} cannot be certified. Ask for {4 * gap:.1g} or more."
            )
            return Outcome(v, improvement, bounds, step, sweeps, told, False)
        at = v
        # a constant changes no spread, but it moves values away from those of terminal states
        v = improvement.value if setting.terminal.any() else bounds.value
        # a spread below this certifies the tolerance
        enough = 0.5 * bounds.spread * method.tolerance / gap
        target = max(method.shrink * bounds.spread, enough) if method.rule == "span" else 0.0
        if bounds.spread > target:
            reached = evaluation(bellman.policy(improvement.weights), v, bounds.spread, target, setting)
            v, sweeps = reached.value, sweeps + reached.sweeps
    told = (
        f"Gave up after {method.max_steps} steps at a gap of {gap:.3g}, wanted {method.tolerance:.3g}. "
        "Raise max_steps, or use PartialPolicyIteration()."
    )
    return Outcome(at, improvement, bounds, method.max_steps, sweeps, told, False)
