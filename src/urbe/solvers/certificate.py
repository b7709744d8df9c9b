"""Re-checks a solution's bounds by separate code: no sweep, no bound and no system of the solvers is used again.

With nature's kernel q, checked to lie in the set, and the policy pi of the solution,

    upper + max(0, max_s (T_q upper - upper)) / (1 - gamma)   >=  V*,      T_q u = max_a  r + gamma q . u
    lower + min(0, min_s (D_pi lower - lower)) / (1 - gamma)  <=  V_pi <= V*

where D_pi bounds T_pi from below by weak duality (`Nature.dual_bound`). The first holds because q is only one of
nature's choices, the second because T_pi is monotone. Where nature helps instead (`Optimistic`), kernel and dual change
sides. Sets whose budget is shared by the actions of a state have no such dual: only their upper bounds are proven, by
a kernel that holds every action to the level of its state. Without discounting 1 / (1 - gamma) becomes a bound on the expected time to the end, itself re-checked. All sums
are plain NumPy in extended precision, and the rounding left over is part of the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urbe.ambiguity.base import AmbiguitySet, Nature
from urbe.ambiguity.exact import Exact, ExactNature
from urbe.ambiguity.optimistic import Optimistic, OptimisticNature
from urbe.ambiguity.s_rectangular import SRectangular, StateNature
from urbe.ambiguity.scenario_nature import QUANTILE, ScenarioNature
from urbe.ambiguity.scenarios import Scenarios, ValueAtRisk
from urbe.bellman.operators import FixedPolicyBellman, RectangularBellman
from urbe.bellman.state_rectangular import StateBellman
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.duration import longest_duration
from urbe.solvers.solution import Solution
from urbe.types import FloatArray
from urbe.workers import SERIAL

TOLERANCE = 1e-12
"""What a claim may be short of, relative to max |r| + gamma max |v|, for each step of the horizon."""
LARGEST_EXCESS = 1e-9
"""Distance from the set, in the set's own terms, up to which a kernel counts as rounded rather than wrong."""

Extended = NDArray[np.longdouble] | FloatArray
RowBound = Callable[[FloatArray], Extended]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What has been proven about a solution, independently of how it was found.

    Attributes:
      lower, upper: shaped like the solution's: proven, lower <= V_pi <= V* <= upper (lower <= V_pi <= upper for a
        solution of `evaluate_policy`); infinite where there is no proof.
      holds: whether the solution's own bounds follow, up to `tolerance`, with its value between them.
      lower_checked: whether that includes the lower ones; not for sets rectangular in s.
      tolerance: TOLERANCE times the size of the values, times the expected number of steps.
      excess: the farthest that nature's kernel is outside its set, at most 0 when inside.
      failures: one sentence for each claim that does not follow, with its state; empty when it holds.
    """

    lower: FloatArray
    upper: FloatArray
    holds: bool
    tolerance: float
    excess: float
    failures: tuple[str, ...]
    lower_checked: bool = True

    @property
    def statement(self) -> str:
        """One sentence on what follows from the check."""
        if not self.holds:
            return f"Not verified: {' '.join(self.failures)}"
        if not self.lower_checked:
            return "Verified by separate code: the upper bounds. The lower ones of sets rectangular in s are not re-checked."
        gap = float((self.upper - self.lower).max(initial=0.0))
        return f"Verified: the values lie within bounds that are {gap:.3g} apart or less, proven by separate code."

    def __str__(self) -> str:
        return self.statement


def certify(
    solution: Solution, mdp: MDP | None = None, nature: AmbiguitySet | SRectangular | None = None
) -> Certificate:
    """Proves a solution's bounds anew, from its arrays `lower`, `upper`, `policy` and nature's kernel.

    Every row is visited in plain Python, so this is far slower than `solve`.

    Args:
      solution: from `solve` or `evaluate_policy`.
      mdp: the model the bounds should hold for; by default the one the solution carries.
      nature: the set; by default the one the solution carries. With discount 1 it has to be given, unless the model
        was solved as it is.

    Raises:
      ValueError: the set is needed but not given, or the process need not end without discounting.
      TypeError: the solution's operator is not one of this library.

    >>> import urbe
    >>> solution = urbe.solve(urbe.library.riverswim(6, discount=0.95), urbe.L1Ball(0.1))
    >>> certify(solution).holds
    True
    """
    bellman = solution.bellman
    base = bellman.bellman if isinstance(bellman, FixedPolicyBellman) else bellman
    model = bellman.mdp if mdp is None else mdp
    if model.n_states != np.shape(solution.value)[-1]:
        raise ValueError(f"mdp has {model.n_states} states, but the solution has {np.shape(solution.value)[-1]}.")
    bound: Nature | StateNature
    if nature is not None:
        bound = nature.bind(model)
    elif mdp is not None:
        raise ValueError("mdp is given but nature is not: give the set too, or neither.")
    elif isinstance(base, RectangularBellman | StateBellman):
        bound = base.nature
    else:
        raise TypeError(f"The solution is one of {type(base).__name__}, whose set is not known here: give nature=.")
    problem = _Problem(model, bound, nature, isinstance(bellman, FixedPolicyBellman))
    return _certify_horizon(solution, problem) if solution.value.ndim > 1 else _certify_stationary(solution, problem)


class _Problem(NamedTuple):
    """A model, its bound set, the set itself if known, and whether the policy is given rather than chosen."""

    mdp: MDP
    nature: Nature | StateNature
    set: AmbiguitySet | SRectangular | None
    fixed: bool

    def size(self, *values: FloatArray) -> float:
        """max |r| + gamma max |v|."""
        largest = max((float(np.abs(v).max(initial=0.0)) for v in values), default=0.0)
        return self.mdp.rows.largest_reward + self.mdp.discount * largest


class _Evidence(NamedTuple):
    """Bounds on Q(k), one number per row, from nature's kernel and from duality."""

    above: RowBound
    below: RowBound
    excess: float
    failure: str | None


def _certify_stationary(solution: Solution, problem: _Problem) -> Certificate:
    mdp = problem.mdp
    evidence = _evidence(problem, solution.kernel.rows)
    steps = _duration(problem) if mdp.discount == 1.0 else _geometric(problem)
    weights = policy_rows(mdp, solution.policy)
    lower, upper = (np.where(mdp.terminal, 0.0, bound) for bound in (solution.lower, solution.upper))
    with np.errstate(invalid="ignore"):
        fall = _mean(mdp, evidence.below(lower), weights) - lower
        best = _mean(mdp, evidence.above(upper), weights) if problem.fixed else _best(mdp, evidence.above(upper))
        rise = best - upper
    # a NaN proves nothing
    down, up = (float(x.max(initial=0.0)) if not np.isnan(x).any() else np.inf for x in (-fall, rise))
    size = problem.size(lower, upper)
    tolerance = TOLERANCE * size * float(steps.max(initial=1.0))
    with np.errstate(invalid="ignore"):
        proven_lower, proven_upper = _outward(lower, -down, steps), _outward(upper, up, steps)
    for proven in (proven_lower, proven_upper):
        proven[mdp.terminal] = 0.0
    blame = (int(np.argmax(-fall)), int(np.argmax(rise)))
    shown = not isinstance(problem.nature, StateNature)
    return _judge(solution, proven_lower, proven_upper, tolerance, evidence.excess, [evidence.failure], shown, blame)


def _certify_horizon(solution: Solution, problem: _Problem) -> Certificate:
    """V_H = 0 and step by step backwards: nothing has to be guessed, so the bounds are rebuilt from the end."""
    mdp, horizon = problem.mdp, len(solution.policy)
    lower, upper = np.zeros((horizon + 1, mdp.n_states)), np.zeros((horizon + 1, mdp.n_states))
    excess = -np.inf
    failures: list[str | None] = []
    for step in range(horizon - 1, -1, -1):
        evidence = _evidence(problem, solution.kernel_at(step).rows)
        weights = policy_rows(mdp, solution.policy[step])
        below = _mean(mdp, evidence.below(lower[step + 1]), weights)
        above = evidence.above(upper[step + 1])
        best = _mean(mdp, above, weights) if problem.fixed else _best(mdp, above)
        lower[step], upper[step] = _outward(below, 0.0, np.zeros(1)), _outward(best, 0.0, np.zeros(1))
        excess = max(excess, evidence.excess)
        if evidence.failure is not None:
            failures.append(f"Step {step}: {evidence.failure}")
    tolerance = TOLERANCE * problem.size(lower, upper) * horizon
    return _judge(solution, lower, upper, tolerance, excess, failures, not isinstance(problem.nature, StateNature))


def _judge(
    solution: Solution,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    excess: float,
    failures: list[str | None],
    lower_checked: bool,
    blame: tuple[int, int] | None = None,
) -> Certificate:
    """`blame`: the states whose own step backwards fails most; one of them spoils the bounds of all."""
    found = [failure for failure in failures if failure is not None]
    claims = (
        ("lower bound", solution.lower, "at least", lower, (lower >= solution.lower - tolerance) | (not lower_checked)),
        ("upper bound", solution.upper, "at most", upper, upper <= solution.upper + tolerance),
        ("value", solution.value, "at least", solution.lower, solution.value >= solution.lower - tolerance),
        ("value", solution.value, "at most", solution.upper, solution.value <= solution.upper + tolerance),
    )
    for k, (name, claimed, side, proven, fine) in enumerate(claims):
        if not fine.all():
            at = tuple(int(i) for i in np.argwhere(~fine)[0])
            if blame is not None and k < 2 and not fine[blame[k]]:
                at = (blame[k],)
            where = f"state {at[-1]}" + (f" at step {at[0]}" if len(at) > 1 else "")
            told = f"the {name} of {where} is {claimed[at]:.12g}, but {side} {proven[at]:.12g} follows"
            found.append(f"{told} ({int((~fine).sum())} of {fine.size} do not hold).")
    return Certificate(lower, upper, not found, tolerance, excess, tuple(found), lower_checked)


def _evidence(problem: _Problem, kernel: Rows) -> _Evidence:
    """Row bounds from nature's answer, refused as evidence where it is no member of the set."""
    nature = problem.nature
    if isinstance(nature, StateNature):
        failure, excess = _membership(problem, kernel)
        answer = _under(problem, kernel, np.maximum(excess, 0.0), 1.0) if failure is None else _nothing(problem, 1.0)
        return _Evidence(answer, _nothing(problem, -1.0), float(excess.max(initial=-np.inf)), failure)
    helps = isinstance(nature, OptimisticNature)
    inner = nature.inner if isinstance(nature, OptimisticNature) else nature
    below, above = _dual(problem, nature, -1.0), _dual(problem, nature, 1.0)
    if isinstance(inner, ScenarioNature) and inner.rule is QUANTILE:
        # a quantile is no minimum over a set; its `dual_bound` is the quantile itself, hence a bound on both sides
        return _Evidence(above, below, -np.inf, None)
    failure, excess = _membership(problem, kernel)
    answer = _under(problem, kernel, np.maximum(excess, 0.0), -1.0 if helps else 1.0)
    if failure is not None:
        answer = _nothing(problem, 1.0 if not helps else -1.0)
    largest = float(excess.max(initial=-np.inf))
    return _Evidence(above, answer, largest, failure) if helps else _Evidence(answer, below, largest, failure)


def _membership(problem: _Problem, kernel: Rows) -> tuple[str | None, FloatArray]:
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


def _under(problem: _Problem, kernel: Rows, excess: FloatArray, side: float) -> RowBound:
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


def _dual(problem: _Problem, nature: Nature, side: float) -> RowBound:
    """`dual_bound`, widened by its rounding to double precision and by rows that do not sum to one exactly."""
    rows = nature.rows
    mass = _mass_error(rows)
    eps = 6.0 * 2.0**-53 + (rows.longest + 4) * float(np.finfo(np.longdouble).eps)

    def bound(v: FloatArray) -> Extended:
        return nature.dual_bound(v).astype(np.longdouble) + side * (eps + mass) * problem.size(v)

    return bound


def _nothing(problem: _Problem, side: float) -> RowBound:
    return lambda v: np.full(problem.mdp.n_rows, side * np.inf, dtype=np.longdouble)  # noqa: ARG005


def _geometric(problem: _Problem) -> FloatArray:
    """`(S,)` 1 / (1 - gamma), with gamma as large as rows that do not quite sum to one make it."""
    gamma = problem.mdp.discount * (1.0 + _mass_error(problem.mdp.rows) + 2.0**-50)
    if gamma >= 1.0:
        raise ValueError(f"discount is {problem.mdp.discount!r}, too near 1 for rows that sum to one up to rounding.")
    return np.full(problem.mdp.n_states, 1.0 / (1.0 - gamma))


def _duration(problem: _Problem) -> FloatArray:
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
    kernels = chosen.set if isinstance(chosen, Optimistic) else chosen
    if isinstance(kernels, ValueAtRisk):  # the quantile may be any scenario
        kernels = Scenarios(kernels.kernels)
    longest = Optimistic(kernels).bind(clock)
    w = np.where(mdp.terminal, 0.0, longest_duration(mdp, chosen, SERIAL))
    above = _dual(_Problem(clock, longest, None, False), longest, 1.0)
    left = float((_best(mdp, above(w)) - w).max(initial=0.0))
    if not left < 0.5:
        raise ValueError(
            f"discount is 1 and the time w to the end is not proven: 1 + max q . w is {left:.3g} above it."
        )
    steps: FloatArray = w / (1.0 - left)
    return steps


def _outward(bound: Extended | FloatArray, by: float, steps: FloatArray) -> FloatArray:
    """bound + by * steps in double precision; the one rounding is far below TOLERANCE."""
    moved = bound + np.longdouble(by) * steps if by else bound + np.zeros(1)
    return np.asarray(moved, dtype=np.float64)


def _best(mdp: MDP, q: Extended) -> Extended:
    """`(S,)` the largest row of each state, zero where terminal."""
    out = np.zeros(mdp.n_states, dtype=np.longdouble)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        out[live] = np.maximum.reduceat(q, mdp.row_start[live])
    return out


def _mean(mdp: MDP, q: Extended, weights: FloatArray) -> Extended:
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
