"""Verify a solution's bounds by separate code, which shares no sweep, bound or linear system with the solvers.

With nature's kernel q, checked to lie in the set, and the policy pi of the solution,

    upper + max(0, max_s (T_q upper - upper)) / (1 - gamma)   >=  V*,      T_q u = max_a  r + gamma q . u
    lower + min(0, min_s (D_pi lower - lower)) / (1 - gamma)  <=  V_pi <= V*

where D_pi bounds T_pi from below by weak duality. The first holds because q is only one of nature's choices, the second
because T_pi is monotone. The set provides both bounds on one step (`Operator.evidence`). Without discounting,
1 / (1 - gamma) is replaced by a bound on the expected time to termination, which is verified as well.
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
from urbe.solvers.solution import Solution
from urbe.solvers.solve import given_policy
from urbe.types import FloatArray

TOLERANCE = 1e-12
"""Tolerance of each claim per step of the horizon, relative to max |r| + gamma max |v|."""


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

    A certificate covers the bounds, the value between them, the policy that attains the lower one and nature's kernel;
    it says nothing about `Solution.q`, `status` and the other fields.
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
    """Verifies a solution's bounds from its arrays `lower`, `upper`, `policy` and nature's kernel.

    Args:
      solution: from `solve` or `evaluate_policy`.
      mdp: the model for which the bounds should hold; by default that of the solution.
      nature: the set; by default that of the solution.

    Raises:
      ValueError: a model is given without a set, or an undiscounted process may not terminate.

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
    if nature is not None:
        operator = nature.operator(model)
    return _certify_horizon(solution, operator) if solution.value.ndim > 1 else _certify_stationary(solution, operator)


def _certify_stationary(solution: Solution, operator: Operator) -> Certificate:
    mdp = operator.mdp
    evidence = _evidence(operator, solution.kernel.rows, solution.optimal)
    steps = _duration(operator) if mdp.discount == 1.0 else _geometric(mdp)
    policy = given_policy(mdp, solution.policy)
    lower, upper = (np.where(mdp.terminal, 0.0, bound) for bound in (solution.lower, solution.upper))
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
    return _judge(solution, proven_lower, proven_upper, tolerance, evidence.excess, [evidence.failure], blame)


def _certify_horizon(solution: Solution, operator: Operator) -> Certificate:
    """Recomputes the bounds backwards from V_H = 0."""
    mdp, horizon = operator.mdp, len(solution.policy)
    lower, upper = np.zeros((horizon + 1, mdp.n_states)), np.zeros((horizon + 1, mdp.n_states))
    excess = -np.inf
    failures: list[str | None] = []
    for step in range(horizon - 1, -1, -1):
        evidence = _evidence(operator, solution.kernel_at(step).rows, solution.optimal)
        policy = given_policy(mdp, solution.policy[step])
        below, above = evidence.below(lower[step + 1], policy), evidence.above(upper[step + 1], policy)
        lower[step] = _outward(below, 0.0, np.zeros(1), -np.inf)
        upper[step] = _outward(above, 0.0, np.zeros(1), np.inf)
        excess = max(excess, evidence.excess)
        if evidence.failure is not None:
            failures.append(f"Step {step}: {evidence.failure}")
    tolerance = _tolerance(solution, mdp, float(horizon))
    return _judge(solution, lower, upper, tolerance, excess, failures)


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
    above = operator.clock().evidence(None, optimal=True).above(w, PolicyRows(np.zeros(0, dtype=np.int64)))
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
    """`blame`: the states whose own backward step fails most; such a state spoils the bounds of all others."""
    found = [failure for failure in failures if failure is not None]
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
