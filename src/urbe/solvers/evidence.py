"""Evidence for certificates: bounds on every row's worst case from nature's own kernel and from weak duality.

Plain NumPy in extended precision, sharing nothing with the sweeps; the rounding left over widens each bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.ambiguity.base import AmbiguitySet, Nature
from urbe.ambiguity.exact import Exact, ExactNature
from urbe.ambiguity.optimistic import Optimistic, OptimisticNature
from urbe.ambiguity.s_rectangular import SRectangular, StateNature
from urbe.ambiguity.scenario_nature import QUANTILE, ScenarioNature
from urbe.ambiguity.scenarios import Scenarios, ValueAtRisk
from urbe.ambiguity.transport import LEFT_BEHIND
from urbe.bellman.operators import UNDERFLOW
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.duration import longest_duration
from urbe.types import FloatArray
from urbe.workers import SERIAL

LARGEST_EXCESS = 1e-9
"""Distance from the set, in the set's own terms, up to which a kernel counts as rounded rather than wrong."""

Extended = NDArray[np.longdouble] | FloatArray
RowBound = Callable[[FloatArray], Extended]
StepBound = Callable[[FloatArray, FloatArray], Extended]


class Problem(NamedTuple):
    """A model, its bound set, the set itself if known, and whether the policy is given rather than chosen."""

    mdp: MDP
    nature: Nature | StateNature
    set: AmbiguitySet | SRectangular | None
    fixed: bool

    def size(self, *values: FloatArray) -> float:
        """max |r| + gamma max |v|."""
        largest = float(np.max([np.abs(v).max(initial=0.0) for v in values]))  # unlike max, passes NaN on
        return self.mdp.rows.largest_reward + self.mdp.discount * largest


class Evidence(NamedTuple):
    """Bounds on one step backwards, from nature's kernel and from duality.

    Attributes:
      above: `(v, weights) -> (S,)` at least T v, or T_pi v where the policy is given.
      below: `(v, weights) -> (S,)` at most T_pi v for the policy with these `(R,)` weights.
      excess: the farthest that the kernel is outside the set.
      failure: what is wrong with the kernel, or None.
    """

    above: StepBound
    below: StepBound
    excess: float
    failure: str | None


def evidence_of(problem: Problem, kernel: Rows) -> Evidence:
    """Bounds from nature's answer, refused as evidence where it is no member of the set."""
    mdp, nature = problem.mdp, problem.nature

    def over_policies(rows: RowBound) -> StepBound:
        if problem.fixed:
            return lambda v, weights: mean(mdp, rows(v), weights)
        return lambda v, weights: greatest(mdp, rows(v))  # noqa: ARG005

    def over_rows(rows: RowBound) -> StepBound:
        return lambda v, weights: mean(mdp, rows(v), weights)

    if isinstance(nature, StateNature):
        failure, excess, answer = _answer(problem, kernel, 1.0)
        return Evidence(over_policies(answer), _shared_dual(problem, nature), excess, failure)
    helps, inner = False, nature
    while isinstance(inner, OptimisticNature):
        helps, inner = not helps, inner.inner
    below, above = _dual(problem, nature, -1.0), _dual(problem, nature, 1.0)
    if isinstance(inner, ScenarioNature) and inner.rule is QUANTILE:
        # a quantile is no minimum over a set; its `dual_bound` is the quantile itself, hence a bound on both sides
        return Evidence(over_policies(above), over_rows(below), -np.inf, None)
    failure, excess, answer = _answer(problem, kernel, -1.0 if helps else 1.0)
    above, below = (above, answer) if helps else (answer, below)
    return Evidence(over_policies(above), over_rows(below), excess, failure)


def _answer(problem: Problem, kernel: Rows, side: float) -> tuple[str | None, float, RowBound]:
    """What is wrong with a kernel, if anything, how far it is outside the set, and what it proves of the rows."""
    failure, excess = _membership(problem, kernel)
    largest = float(excess.max(initial=-np.inf))
    if failure is not None:
        return failure, largest, lambda v: np.full(problem.mdp.n_rows, side * np.inf, dtype=np.longdouble)  # noqa: ARG005
    return None, largest, _under(problem, kernel, np.maximum(excess, 0.0), side)


def _membership(problem: Problem, kernel: Rows) -> tuple[str | None, FloatArray]:
    """What is wrong with a kernel, if anything, and how far each of its rows is outside the set."""
    mdp = problem.mdp
    if kernel.n_rows != mdp.n_rows or kernel.n_states != mdp.n_states:
        found = f"nature's kernel has {kernel.n_rows} rows over {kernel.n_states} states"
        return f"{found}, expected {mdp.n_rows} over {mdp.n_states}.", np.full(mdp.n_rows, np.inf)
    q = kernel.probability.astype(np.longdouble)
    mass = _row_sums(kernel, q)
    wrong = ~(np.abs(mass - 1.0) <= LARGEST_EXCESS)  # also where the sum is no number
    wrong |= _row_sums(kernel, np.minimum(q, 0.0)) < 0.0
    excess = problem.nature.excess(kernel)
    if isinstance(problem.nature, StateNature):  # one number per state
        excess = excess[mdp.row_state]
    excess = np.where(wrong, np.inf, excess)
    if mdp.rows.rewards_successors:
        stray = ~np.isin(_keys(kernel), _keys(mdp.rows))
        excess[kernel.entry_row[stray]] = np.inf  # where the model has no reward
    outside = ~(excess <= LARGEST_EXCESS * np.fmax(1.0, _radius(problem)))
    if not outside.any():
        return None, excess
    row = int(np.argmax(outside))
    found = f"nature's kernel leaves the set in {mdp.row_name(row)} by {excess[row]:.3g}"
    return f"{found} ({int(outside.sum())} of {mdp.n_rows} rows do).", excess


def _radius(problem: Problem) -> FloatArray:
    """`(R,)` the radii of balls around the rows, or the budgets of their states; NaN for sets without a centre."""
    nature = problem.nature
    if isinstance(nature, StateNature):
        return nature.budget[problem.mdp.row_state]
    radius = nature.ball_radius
    return np.full(problem.mdp.n_rows, np.nan) if radius is None else radius


def _under(problem: Problem, kernel: Rows, excess: FloatArray, side: float) -> RowBound:
    """Q under a fixed kernel with the model's own rewards, widened by rounding and by what it is outside the set.

    In a ball around the row p, q at distance radius + excess is brought inside by mixing it with p, in a share
    excess / (radius + excess); in any other set of distributions by moving `excess` from each entry to another.
    """
    mdp, radius = problem.mdp, _radius(problem)
    centred = np.isfinite(radius)
    share = np.where(excess > 0.0, excess / np.where(excess > 0.0, np.where(centred, radius, 0.0) + excess, 1.0), 0.0)
    # what a row's sum is short of one by, and what a membership leaves out, may stand at any successor
    eps = _mass_error(mdp.rows) + 2.0 * (_mass_error(kernel) + LEFT_BEHIND)
    eps += (kernel.longest + mdp.rows.longest + 8) * float(np.finfo(np.longdouble).eps)
    own = _expectation(mdp, mdp.rows)
    answer = _expectation(mdp, kernel)

    def bound(v: FloatArray) -> Extended:
        size = problem.size(v)
        value = answer(v)
        mixed = np.where(centred, value + share * (own(v) - value), value + side * 2.0 * kernel.longest * excess * size)
        return mixed + side * eps * size

    return bound


def _expectation(mdp: MDP, kernel: Rows) -> RowBound:
    """Q under the kernel's rows, each divided by its sum, with the model's own rewards."""
    row_reward, entry_reward = mdp.rows.row_reward, np.zeros(1)
    if mdp.rows.rewards_successors:
        keys = _keys(mdp.rows)
        entry_reward = mdp.rows.reward[np.minimum(np.searchsorted(keys, _keys(kernel)), len(keys) - 1)]
    q = kernel.probability.astype(np.longdouble)
    mass = _row_sums(kernel, q)

    def value(v: FloatArray) -> Extended:
        z = entry_reward + np.longdouble(mdp.discount) * v.astype(np.longdouble)[kernel.successor]
        return row_reward + _row_sums(kernel, q * z) / mass

    return value


def _dual(problem: Problem, nature: Nature, side: float) -> RowBound:
    """`dual_bound`, widened by its rounding to double precision and by rows that do not sum to one exactly."""
    rows = nature.rows
    mass = _mass_error(rows)
    eps = 6.0 * 2.0**-53 + (rows.longest + 4) * float(np.finfo(np.longdouble).eps)

    def bound(v: FloatArray) -> Extended:
        return nature.dual_bound(v).astype(np.longdouble) + side * ((eps + mass) * problem.size(v) + UNDERFLOW)

    return bound


def _shared_dual(problem: Problem, nature: StateNature) -> StepBound:
    """`StateNature.policy_bound`, widened by its rounding."""
    rows = nature.rows
    eps = _mass_error(rows) + (rows.longest + problem.mdp.n_actions + 16) * float(np.finfo(np.longdouble).eps)

    def bound(v: FloatArray, weights: FloatArray) -> Extended:
        lowest = nature.policy_bound(v, weights) - eps * problem.size(v)
        return np.where(problem.mdp.terminal, 0.0, lowest)

    return bound


def geometric(problem: Problem) -> FloatArray:
    """`(S,)` 1 / (1 - gamma), with gamma as large as rows that do not quite sum to one make it."""
    gamma = problem.mdp.discount * (1.0 + _mass_error(problem.mdp.rows) + 2.0**-50)
    if gamma >= 1.0:
        raise ValueError(f"discount is {problem.mdp.discount!r}, too near 1 for rows that sum to one up to rounding.")
    return np.full(problem.mdp.n_states, 1.0 / (1.0 - gamma))


def duration(problem: Problem) -> FloatArray:
    """`(S,)` w >= 1 + max_a max_q q . w, the expected time to the end: the solver's, checked against duality."""
    mdp, chosen = problem.mdp, problem.set
    if chosen is None and isinstance(problem.nature, ExactNature):
        chosen = Exact()
    if isinstance(chosen, SRectangular):
        chosen = chosen.relaxed(mdp)
    if chosen is None:
        raise ValueError("discount is 1: give nature=, the set of the solution, to bound how long the process lasts.")
    own = mdp.rows
    clock = mdp.with_rows(Rows(mdp.n_states, own.entry_start, own.successor, own.probability, np.ones(mdp.n_rows)))
    clock = replace(clock, bounds=mdp.bounds)
    kernels = chosen
    while isinstance(kernels, Optimistic):
        kernels = kernels.set
    if isinstance(kernels, ValueAtRisk):  # the quantile may be any scenario
        kernels = Scenarios(kernels.kernels)
    longest = Optimistic(kernels).bind(clock)
    w = np.where(mdp.terminal, 0.0, longest_duration(mdp, chosen, SERIAL))
    above = _dual(Problem(clock, longest, None, False), longest, 1.0)
    left = float((greatest(mdp, above(w)) - w).max(initial=0.0))
    if not left < 0.5:
        raise ValueError(
            f"discount is 1 and the time w to the end is not proven: 1 + max q . w is {left:.3g} above it."
        )
    steps: FloatArray = w / (1.0 - left)
    return steps


def greatest(mdp: MDP, q: Extended) -> Extended:
    """`(S,)` the largest row of each state, zero where terminal."""
    out = np.zeros(mdp.n_states, dtype=np.longdouble)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        out[live] = np.maximum.reduceat(q, mdp.row_start[live])
    return out


def mean(mdp: MDP, q: Extended, weights: FloatArray) -> Extended:
    """`(S,)` the rows' mean under a policy, zero where terminal."""
    out = np.zeros(mdp.n_states, dtype=np.longdouble)
    taken = weights > 0.0
    np.add.at(out, mdp.row_state[taken], weights[taken] * q[taken])
    return out


def _row_sums(rows: Rows, entries: Extended) -> Extended:
    return np.add.reduceat(entries, rows.entry_start[:-1]) if rows.n_rows else entries[:0]


def _mass_error(rows: Rows) -> float:
    """max |sum of a row - 1|."""
    return float(np.abs(_row_sums(rows, rows.probability.astype(np.longdouble)) - 1.0).max(initial=0.0))


def _keys(rows: Rows) -> np.ndarray[Any, Any]:
    """`(E,)` one increasing number for each (row, successor)."""
    return rows.entry_row.astype(np.int64) * rows.n_states + rows.successor
