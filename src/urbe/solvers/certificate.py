"""Verify a solution's bounds by separate code, which shares no sweep, bound or linear system with the solvers.

With nature's kernel q, checked to lie in the set, and the policy pi of the solution,

    upper + max(0, max_s (T_q upper - upper)) / (1 - gamma)   >=  V*,      T_q u = max_a  r + gamma q . u
    lower + min(0, min_s (D_pi lower - lower)) / (1 - gamma)  <=  V_pi <= V*

where D_pi bounds T_pi from below by weak duality. The first holds because q is only one of nature's choices, the second
because T_pi is monotone. The set provides both bounds on one step (`Operator.evidence`), also row by row, which bounds
the values of actions. Without discounting, 1 / (1 - gamma) is replaced by a bound on the expected time to termination,
which is verified as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urbe import checks
from urbe.ambiguity.evidence import largest_value, mass_error
from urbe.ambiguity.operator import UNDERFLOW, AmbiguitySet, Operator, PolicyRows, StepEvidence
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.duration import longest_duration
from urbe.solvers.methods import check_problem
from urbe.solvers.solution import Solution, gave_up, solved, solved_over, stopped
from urbe.solvers.solve import given_policy
from urbe.types import FloatArray

TOLERANCE = 1e-12
"""Tolerance of each claim per step of the horizon, relative to max |r| + gamma max |v|."""


BEYOND = 10.0
"""Bounds are cut to this many times the largest sum of rewards."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proven bounds on a solution, independent of how it was computed.

    Attributes:
      lower, upper: proven bounds, shaped like the solution's: lower <= V_pi <= V* <= upper (lower <= V_pi <= upper
        for a solution of `evaluate_policy`); infinite where there is no proof.
      holds: whether the proof confirms the solution's own bounds, up to `tolerance`, and its value between them.
      tolerance: TOLERANCE times the size of the values, times the expected number of steps.
      excess: the largest distance of nature's kernel outside its set; at most 0 inside.
      failures: one sentence for each unproven claim, with its state; empty if all are proven.

    A certificate covers the bounds, the value between them, the policy that attains the lower one, nature's kernel,
    the action values `q`, which lie within the gap of their own bounds, and what `status` and `converged` say of the
    gap. It does not cover the number of sweeps, or the requested tolerance.
    """

    lower: FloatArray
    upper: FloatArray
    holds: bool
    tolerance: float
    excess: float
    failures: tuple[str, ...]

    @property
    def statement(self) -> str:
        """Summarises the check in one sentence."""
        if not self.holds:
            return f"Not verified: {' '.join(self.failures)}"
        gap = float((self.upper - self.lower).max(initial=0.0))
        return f"Verified: separate code proves bounds on the values that are at most {gap:.3g} apart."

    def __str__(self) -> str:
        return self.statement


def certify(solution: Solution, mdp: MDP | None = None, nature: AmbiguitySet | None = None) -> Certificate:
    """Verifies a solution's bounds, action values and status from its arrays and nature's kernel.

    Args:
      solution: from `solve` or `evaluate_policy`.
      mdp: the model for which the bounds should hold; by default that of the solution.
      nature: the set; by default that of the solution.

    Raises:
      ValueError: a model is given without a set, an undiscounted process may not terminate, or shapes do not fit.

    >>> import urbe
    >>> solution = urbe.solve(urbe.library.riverswim(6, discount=0.95), urbe.L1Ball(0.1))
    >>> certify(solution).holds
    True
    """
    checks.kind("solution", solution, isinstance(solution, Solution), "a solution of solve or evaluate_policy")
    model = solution.operator.mdp if mdp is None else mdp
    operator = solution.operator
    if mdp is not None or nature is not None:
        check_problem(model, nature, None)
        if nature is None:
            raise ValueError("mdp is given but nature is not; give both or neither.")
    if model.n_states != np.shape(solution.value)[-1]:
        raise ValueError(f"mdp has {model.n_states} states, but the solution has {np.shape(solution.value)[-1]}.")
    shape = np.shape(solution.value)
    for name, bound in (("lower", solution.lower), ("upper", solution.upper)):
        if np.shape(bound) != shape:
            raise ValueError(f"solution.{name} has shape {np.shape(bound)}, expected that of solution.value, {shape}.")
    if nature is not None:
        operator = nature.operator(model)
    return _certify_horizon(solution, operator) if solution.value.ndim > 1 else _certify_stationary(solution, operator)


def _certify_stationary(solution: Solution, operator: Operator) -> Certificate:
    mdp = operator.mdp
    evidence = _evidence(operator, solution.kernel.rows, solution.optimal)
    steps = _duration(operator) if mdp.discount == 1.0 else _geometric(mdp)
    policy = given_policy(mdp, solution.policy)
    lower, upper = (_plausible(bound, evidence, policy, mdp, steps) for bound in (solution.lower, solution.upper))
    with np.errstate(invalid="ignore"):
        fall = evidence.below(lower, policy) - lower
        rise = evidence.above(upper, policy) - upper
    # NaN proves nothing; in double precision the smallest differences would vanish
    down, up = (x.max(initial=0.0) if not np.isnan(x).any() else np.longdouble(np.inf) for x in (-fall, rise))
    tolerance = _tolerance(solution, mdp, float(steps.max(initial=1.0)))
    with np.errstate(invalid="ignore"):
        proven_lower, proven_upper = _outward(lower, -down, steps, -np.inf), _outward(upper, up, steps, np.inf)
    for proven in (proven_lower, proven_upper):
        proven[mdp.terminal] = 0.0
    blame = (int(np.argmax(-fall)), int(np.argmax(rise)))
    failures = [evidence.failure, _wrong_actions(solution, mdp, evidence, solution.q, lower, upper, tolerance)]
    return _judge(solution, proven_lower, proven_upper, tolerance, evidence.excess, failures, blame)


def _certify_horizon(solution: Solution, operator: Operator) -> Certificate:
    """Recomputes the bounds backwards from V_H = 0."""
    mdp, horizon = operator.mdp, len(solution.policy)
    lower, upper = np.zeros((horizon + 1, mdp.n_states)), np.zeros((horizon + 1, mdp.n_states))
    excess = -np.inf
    tolerance = _tolerance(solution, mdp, float(horizon))
    failures: list[str | None] = []
    for step in range(horizon - 1, -1, -1):
        evidence = _evidence(operator, solution.kernel_at(step).rows, solution.optimal)
        policy = given_policy(mdp, solution.policy[step])
        with np.errstate(invalid="ignore"):  # where a later step proves nothing, nor does this one
            below, above = evidence.below(lower[step + 1], policy), evidence.above(upper[step + 1], policy)
        lower[step] = _outward(np.where(np.isnan(below), -np.inf, below), 0.0, np.zeros(1), -np.inf)
        upper[step] = _outward(np.where(np.isnan(above), np.inf, above), 0.0, np.zeros(1), np.inf)
        excess = max(excess, evidence.excess)
        if evidence.failure is not None:
            failures.append(f"Step {step}: {evidence.failure}")
        q, later = solution.q[step], (lower[step + 1], upper[step + 1])
        wrong = _wrong_actions(solution, mdp, evidence, q, *later, tolerance)
        failures.append(None if wrong is None else f"Step {step}: {wrong}")
    return _judge(solution, lower, upper, tolerance, excess, failures)


def _wrong_actions(
    solution: Solution,
    mdp: MDP,
    evidence: StepEvidence,
    q: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
) -> str | None:
    """Says which action value is farther than the gap from its bounds, at the bounds on the values; None if none is."""
    if np.shape(q) != (mdp.n_states, mdp.n_actions):
        return f"q has shape {np.shape(q)}, expected a value for each action, {(mdp.n_states, mdp.n_actions)}."
    nowhere = np.isfinite(mdp.by_action(np.zeros(mdp.n_rows), fill=-np.inf)) | (q == -np.inf)
    if not nowhere.all():
        state, action = (int(i) for i in np.argwhere(~nowhere)[0])
        return f"q of state {state}, action {action} is {q[state, action]:.12g}, but the action does not exist."
    found, slack = q[mdp.row_state, mdp.action], solution.gap + tolerance
    with np.errstate(invalid="ignore"):  # NaN where a later step proves nothing, which is no bound
        below, above = (bound(v) for bound, v in zip(evidence.rows, (lower, upper), strict=True))
        wrong = ~((found >= below - slack) & (found <= above + slack))
    if not wrong.any():
        return None
    row = int(np.argmax(wrong))
    return (
        f"q of {mdp.row_name(row)} is {found[row]:.12g}, but a value between {float(below[row]):.12g} and "
        f"{float(above[row]):.12g} follows ({int(wrong.sum())} of {mdp.n_rows} do not hold)."
    )


def _wrong_status(solution: Solution) -> str | None:
    """Says how the status differs from the bounds, or returns None."""
    gap, steps = solution.gap, solution.steps
    sentences = [solved(gap) if solution.value.ndim == 1 else solved_over(len(solution.value) - 1, gap)]
    if not solution.converged:
        sentences = [stopped(gap), gave_up(steps, gap)]
    if solution.status.startswith(tuple(sentences)):
        return None
    return (
        f"the status is {solution.status!r}, but the gap is {gap:.3g} after {steps} steps, and the solver "
        f"{'converged' if solution.converged else 'did not converge'}."
    )


def _plausible(
    bound: FloatArray, evidence: StepEvidence, policy: PolicyRows, mdp: MDP, steps: FloatArray
) -> FloatArray:
    """A bound cut to what rewards can add up to, if it is far beyond.

    Bounds of an unfinished solve may be, and rounding of such numbers is large next to that of the values. Cutting is
    no loss: r + gamma most <= most.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = mdp.rows.largest_reward
        if (np.abs(bound) > BEYOND * largest * steps).any():  # in some sets nature also lowers rewards
            largest = max(largest, -float(evidence.below(np.zeros(mdp.n_states), policy).min(initial=0.0)))
            bound = np.clip(bound, -BEYOND * largest * steps, BEYOND * largest * steps)
    return np.where(mdp.terminal, 0.0, bound)


def _evidence(operator: Operator, kernel: Rows, optimal: bool) -> StepEvidence:
    """The operator's evidence, once the kernel is one of the model's shape."""
    mdp = operator.mdp
    if kernel.n_rows == mdp.n_rows and kernel.n_states == mdp.n_states:
        return operator.evidence(kernel, optimal)
    found = f"nature's kernel has {kernel.n_rows} rows over {kernel.n_states} states"
    failure = f"{found}, expected {mdp.n_rows} over {mdp.n_states}."
    return operator.evidence(None, optimal)._replace(excess=np.inf, failure=failure)


def _geometric(mdp: MDP) -> FloatArray:
    """`(S,)` 1 / (1 - gamma), with gamma enlarged by the rounding of row sums."""
    gamma = mdp.discount * (1.0 + mass_error(mdp.rows) + 2.0**-50)
    if gamma >= 1.0:
        raise ValueError(f"discount is {mdp.discount!r}, too near 1 for rows that sum to one up to rounding.")
    return np.full(mdp.n_states, 1.0 / (1.0 - gamma))


def _duration(operator: Operator) -> FloatArray:
    """`(S,)` w >= 1 + max_a max_q q . w, the expected time to termination: the solver's, verified by duality."""
    terminal = operator.mdp.terminal
    w = np.where(terminal, 0.0, longest_duration(operator))
    first = PolicyRows(operator.mdp.row_start[:-1][~terminal])  # the bound holds for every policy
    above = operator.clock().evidence(None, optimal=True).above(w, first)
    left = float((above - w).max(initial=0.0))
    if not left < 0.5:
        raise ValueError(
            f"discount is 1 and the time w to termination is not proven: 1 + max q . w exceeds it by {left:.3g}."
        )
    steps: FloatArray = w / (1.0 - left)
    return steps


def _judge(
    solution: Solution,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    excess: float,
    failures: list[str | None],
    blame: tuple[int, int] | None = None,
) -> Certificate:
    """Collects what does not hold.

    Args:
      solution: its claims.
      lower, upper: what is proven.
      tolerance, excess: as in `Certificate`.
      failures: sentences of other checks.
      blame: the states whose own backward step fails most; such a state spoils the bounds of all others.
    """
    found = [failure for failure in (*failures, _wrong_status(solution)) if failure is not None]
    claims = (
        ("lower bound", solution.lower, "at least", lower, lower >= solution.lower - tolerance),
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
            claim = f"the {name} of {where} is {claimed[at]:.12g}, but {side} {proven[at]:.12g} follows"
            found.append(f"{claim} ({int((~fine).sum())} of {fine.size} do not hold).")
    return Certificate(lower, upper, not found, tolerance, excess, tuple(found))


def _tolerance(solution: Solution, mdp: MDP, steps: float) -> float:
    """TOLERANCE for values of the size claimed, though of no more than rewards can add up to; NaN for NaN."""
    size = float(largest_value(mdp.rows, mdp.discount, solution.lower, solution.upper, solution.value))
    return steps * (TOLERANCE * min(size, (1.0 + steps) * mdp.rows.largest_reward) + 4.0 * UNDERFLOW)


def _outward(bound: NDArray[np.longdouble] | FloatArray, by: Any, steps: FloatArray, side: float) -> FloatArray:
    """bound + by * steps in double precision, rounded towards `side`."""
    moved = np.asarray(bound + np.longdouble(by) * steps if by else bound, dtype=np.longdouble)
    rounded = moved.astype(np.float64)
    inward = rounded < moved if side > 0.0 else rounded > moved
    return np.where(inward, np.nextafter(rounded, side), rounded)
