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
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.duration import longest_duration
from urbe.types import FloatArray
from urbe.workers import SERIAL

LARGEST_EXCESS = 1e-9
"""Distance from the set, in the set's own terms, up to which a kernel counts as rounded rather than wrong."""

Extended = NDArray[np.longdouble] | FloatArray
RowBound = Callable[[FloatArray], Extended]


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
    """Bounds on Q(k), one number per row, from nature's kernel and from duality."""

    above: RowBound
    below: RowBound
    excess: float
    failure: str | None


def evidence_of(problem: Problem, kernel: Rows) -> Evidence:
    """Row bounds from nature's answer, refused as evidence where it is no member of the set."""
    nature = problem.nature
    if isinstance(nature, StateNature):
        failure, excess = _membership(problem, kernel)
        answer = _under(problem, kernel, np.maximum(excess, 0.0), 1.0) if failure is None else _nothing(problem, 1.0)
        return Evidence(answer, _nothing(problem, -1.0), float(excess.max(initial=-np.inf)), failure)
    helps, inner = False, nature
    while isinstance(inner, OptimisticNature):
        helps, inner = not helps, inner.inner
    below, above = _dual(problem, nature, -1.0), _dual(problem, nature, 1.0)
    if isinstance(inner, ScenarioNature) and inner.rule is QUANTILE:
        # a quantile is no minimum over a set; its `dual_bound` is the quantile itself, hence a bound on both sides
        return Evidence(above, below, -np.inf, None)
    failure, excess = _membership(problem, kernel)
    answer = _under(problem, kernel, np.maximum(excess, 0.0), -1.0 if helps else 1.0)
    if failure is not None:
        answer = _nothing(problem, 1.0 if not helps else -1.0)
    largest = float(excess.max(initial=-np.inf))
    return Evidence(above, answer, largest, failure) if helps else Evidence(answer, below, largest, failure)


def _membership(problem: Problem, kernel: Rows) -> tuple[str | None, FloatArray]:
    """What is wrong with a kernel, if anything, and how far each of its rows is outside the set."""
    mdp = problem.mdp
    if kernel.n_rows != mdp.n_rows or kernel.n_states != mdp.n_states:
        told = f"nature's kernel has {kernel.n_rows} rows over {kernel.n_states} states"
        return f"{told}, expected {mdp.n_rows} over {mdp.n_states}.", np.full(mdp.n_rows, np.inf)
    mass = _row_sums(kernel, kernel.probability.astype(np.longdouble))
    wrong = (np.abs(mass - 1.0) > LARGEST_EXCESS) | ~np.isfinite(mass)
    wrong |= _row_sums(kernel, np.minimum(kernel.probability, 0.0).astype(np.longdouble)) < -LARGEST_EXCESS
    excess = problem.nature.excess(kernel)
    if isinstance(problem.nature, StateNature):  # one number per state
        excess = excess[mdp.row_state]
    excess = np.where(wrong, np.inf, excess)
    if mdp.rows.rewards_successors:
        stray = ~np.isin(_keys(kernel), _keys(mdp.rows))
        excess[kernel.entry_row[stray]] = np.inf  # where the model has no reward
    outside = ~(excess <= LARGEST_EXCESS)
    if not outside.any():
        return None, excess
    row = int(np.argmax(outside))
    told = f"nature's kernel leaves the set in {mdp.row_name(row)} by {excess[row]:.3g}"
    return f"{told} ({int(outside.sum())} of {mdp.n_rows} rows do).", excess


def _under(problem: Problem, kernel: Rows, excess: FloatArray, side: float) -> RowBound:
    """Q under a fixed kernel with the model's own rewards, widened by rounding and by what it is outside the set."""
    mdp = problem.mdp
    row_reward, entry_reward = mdp.rows.row_reward, np.zeros(1)
    if mdp.rows.rewards_successors:
        keys = _keys(mdp.rows)
        entry_reward = mdp.rows.reward[np.minimum(np.searchsorted(keys, _keys(kernel)), len(keys) - 1)]
    eps = float(np.finfo(np.longdouble).eps)

    def bound(v: FloatArray) -> Extended:
        z = entry_reward + np.longdouble(mdp.discount) * v.astype(np.longdouble)[kernel.successor]
        value = row_reward + _row_sums(kernel, kernel.probability * z)
        return value + side * ((kernel.longest + 4) * eps + 2.0 * kernel.longest * excess) * problem.size(v)

    return bound


def _dual(problem: Problem, nature: Nature, side: float) -> RowBound:
    """`dual_bound`, widened by its rounding to double precision and by rows that do not sum to one exactly."""
    rows = nature.rows
    mass = _mass_error(rows)
    eps = 6.0 * 2.0**-53 + (rows.longest + 4) * float(np.finfo(np.longdouble).eps)

    def bound(v: FloatArray) -> Extended:
        return nature.dual_bound(v).astype(np.longdouble) + side * (eps + mass) * problem.size(v)

    return bound


def _nothing(problem: Problem, side: float) -> RowBound:
    return lambda v: np.full(problem.mdp.n_rows, side * np.inf, dtype=np.longdouble)  # noqa: ARG005


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
