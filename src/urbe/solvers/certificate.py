"""Re-checks a solution's bounds by separate code: no sweep, no bound and no system of the solvers is used again.

With nature's kernel q, checked to lie in the set, and the policy pi of the solution,

    upper + max(0, max_s (T_q upper - upper)) / (1 - gamma)   >=  V*,      T_q u = max_a  r + gamma q . u
    lower + min(0, min_s (D_pi lower - lower)) / (1 - gamma)  <=  V_pi <= V*

where D_pi bounds T_pi from below by weak duality. The first holds because q is only one of nature's choices, the second
because T_pi is monotone. Both bounds on one step are the set's own (`Operator.evidence`). Without discounting
1 / (1 - gamma) becomes a bound on the expected time to the end, itself re-checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urbe import checks
from urbe.ambiguity.evidence import largest_value, mass_error
from urbe.ambiguity.operator import UNDERFLOW, AmbiguitySet, Evidence, Operator, PolicyRows
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.duration import longest_duration
from urbe.solvers.methods import check_problem
from urbe.solvers.solution import Solution
from urbe.solvers.solve import given_policy
from urbe.types import FloatArray

TOLERANCE = 1e-12
"""What a claim may be short of, relative to max |r| + gamma max |v|, for each step of the horizon."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What has been proven about a solution, independently of how it was found.

    Attributes:
      lower, upper: shaped like the solution's: proven, lower <= V_pi <= V* <= upper (lower <= V_pi <= upper for a
        solution of `evaluate_policy`); infinite where there is no proof.
      holds: whether the solution's own bounds follow, up to `tolerance`, with its value between them.
      tolerance: TOLERANCE times the size of the values, times the expected number of steps.
      excess: the farthest that nature's kernel is outside its set, at most 0 when inside.
      failures: one sentence for each claim that does not follow, with its state; empty when it holds.

    Nothing is claimed of `Solution.q`, `status` and the other fields: what holds is the bounds, the value between them,
    the policy that attains the lower one and nature's kernel.
    """

    lower: FloatArray
    upper: FloatArray
    holds: bool
    tolerance: float
    excess: float
    failures: tuple[str, ...]

    @property
    def statement(self) -> str:
        """One sentence on what follows from the check."""
        if not self.holds:
            return f"Not verified: {' '.join(self.failures)}"
        gap = float((self.upper - self.lower).max(initial=0.0))
        return f"Verified: the values lie within bounds that are {gap:.3g} apart or less, proven by separate code."

    def __str__(self) -> str:
        return self.statement


def certify(solution: Solution, mdp: MDP | None = None, nature: AmbiguitySet | None = None) -> Certificate:
    """Proves a solution's bounds anew, from its arrays `lower`, `upper`, `policy` and nature's kernel.

    Args:
      solution: from `solve` or `evaluate_policy`.
      mdp: the model the bounds should hold for; by default the one the solution carries.
      nature: the set; by default the one the solution carries.

    Raises:
      ValueError: a model is given without a set, or the process need not end without discounting.

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
            raise ValueError("mdp is given but nature is not: give the set too, or neither.")
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
    # a NaN proves nothing; in double precision the smallest of these differences would vanish
    down, up = (x.max(initial=0.0) if not np.isnan(x).any() else np.longdouble(np.inf) for x in (-fall, rise))
    tolerance = _tolerance(solution, mdp, float(steps.max(initial=1.0)))
    with np.errstate(invalid="ignore"):
        proven_lower, proven_upper = _outward(lower, -down, steps, -np.inf), _outward(upper, up, steps, np.inf)
    for proven in (proven_lower, proven_upper):
        proven[mdp.terminal] = 0.0
    blame = (int(np.argmax(-fall)), int(np.argmax(rise)))
    return _judge(solution, proven_lower, proven_upper, tolerance, evidence.excess, [evidence.failure], blame)


def _certify_horizon(solution: Solution, operator: Operator) -> Certificate:
    """V_H = 0 and step by step backwards: nothing has to be guessed, so the bounds are rebuilt from the end."""
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


def _evidence(operator: Operator, kernel: Rows, optimal: bool) -> Evidence:
    """The operator's evidence, once the kernel is one of the model's shape."""
    mdp = operator.mdp
    if kernel.n_rows == mdp.n_rows and kernel.n_states == mdp.n_states:
        return operator.evidence(kernel, optimal)
    found = f"nature's kernel has {kernel.n_rows} rows over {kernel.n_states} states"
    failure = f"{found}, expected {mdp.n_rows} over {mdp.n_states}."
    return operator.evidence(None, optimal)._replace(excess=np.inf, failure=failure)


def _geometric(mdp: MDP) -> FloatArray:
    """`(S,)` 1 / (1 - gamma), with gamma as large as rows that do not quite sum to one make it."""
    gamma = mdp.discount * (1.0 + mass_error(mdp.rows) + 2.0**-50)
    if gamma >= 1.0:
        raise ValueError(f"discount is {mdp.discount!r}, too near 1 for rows that sum to one up to rounding.")
    return np.full(mdp.n_states, 1.0 / (1.0 - gamma))


def _duration(operator: Operator) -> FloatArray:
    """`(S,)` w >= 1 + max_a max_q q . w, the expected time to the end: the solver's, checked against duality."""
    terminal = operator.mdp.terminal
    w = np.where(terminal, 0.0, longest_duration(operator))
    above = operator.clock().evidence(None, optimal=True).above(w, PolicyRows(np.zeros(0, dtype=np.int64)))
    left = float((above - w).max(initial=0.0))
    if not left < 0.5:
        raise ValueError(
            f"discount is 1 and the time w to the end is not proven: 1 + max q . w is {left:.3g} above it."
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
    """`blame`: the states whose own step backwards fails most; one of them spoils the bounds of all."""
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
