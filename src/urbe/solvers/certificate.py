"""Re-checks a solution's bounds by separate code: no sweep, no bound and no system of the solvers is used again.

With nature's kernel q, checked to lie in the set, and the policy pi of the solution,

    upper + max(0, max_s (T_q upper - upper)) / (1 - gamma)   >=  V*,      T_q u = max_a  r + gamma q . u
    lower + min(0, min_s (D_pi lower - lower)) / (1 - gamma)  <=  V_pi <= V*

where D_pi bounds T_pi from below by weak duality (`Nature.dual_bound`). The first holds because q is only one of
nature's choices, the second because T_pi is monotone. Where nature helps instead (`Optimistic`), kernel and dual change
sides. Where the actions of a state share a budget, the kernel must hold every action to the level of its state, and
D_pi is the Lagrangian of the budget (`StateNature.policy_bound`). Without discounting 1 / (1 - gamma) becomes a bound
on the expected time to the end, itself re-checked. `urbe.solvers.evidence` has the bounds on one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.base import AmbiguitySet, Nature
from urbe.ambiguity.s_rectangular import SRectangular, StateNature
from urbe.bellman.operators import UNDERFLOW, FixedPolicyBellman, RectangularBellman
from urbe.bellman.state_rectangular import StateBellman
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP
from urbe.solvers.arguments import check_problem
from urbe.solvers.evidence import Extended, Problem, duration, evidence_of, geometric
from urbe.solvers.solution import Solution
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
    checks.kind("solution", solution, isinstance(solution, Solution), "a solution of solve or evaluate_policy")
    if mdp is not None or nature is not None:
        check_problem(solution.bellman.mdp if mdp is None else mdp, nature, None)
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
    problem = Problem(model, bound, nature, isinstance(bellman, FixedPolicyBellman))
    return _certify_horizon(solution, problem) if solution.value.ndim > 1 else _certify_stationary(solution, problem)


def _certify_stationary(solution: Solution, problem: Problem) -> Certificate:
    mdp = problem.mdp
    evidence = evidence_of(problem, solution.kernel.rows)
    steps = duration(problem) if mdp.discount == 1.0 else geometric(problem)
    weights = policy_rows(mdp, solution.policy)
    lower, upper = (np.where(mdp.terminal, 0.0, bound) for bound in (solution.lower, solution.upper))
    with np.errstate(invalid="ignore"):
        fall = evidence.below(lower, weights) - lower
        rise = evidence.above(upper, weights) - upper
    # a NaN proves nothing; in double precision the smallest of these differences would vanish
    down, up = (x.max(initial=0.0) if not np.isnan(x).any() else np.longdouble(np.inf) for x in (-fall, rise))
    tolerance = _tolerance(solution, problem, float(steps.max(initial=1.0)))
    with np.errstate(invalid="ignore"):
        proven_lower, proven_upper = _outward(lower, -down, steps), _outward(upper, up, steps)
    for proven in (proven_lower, proven_upper):
        proven[mdp.terminal] = 0.0
    blame = (int(np.argmax(-fall)), int(np.argmax(rise)))
    return _judge(solution, proven_lower, proven_upper, tolerance, evidence.excess, [evidence.failure], blame)


def _certify_horizon(solution: Solution, problem: Problem) -> Certificate:
    """V_H = 0 and step by step backwards: nothing has to be guessed, so the bounds are rebuilt from the end."""
    mdp, horizon = problem.mdp, len(solution.policy)
    lower, upper = np.zeros((horizon + 1, mdp.n_states)), np.zeros((horizon + 1, mdp.n_states))
    excess = -np.inf
    failures: list[str | None] = []
    for step in range(horizon - 1, -1, -1):
        evidence = evidence_of(problem, solution.kernel_at(step).rows)
        weights = policy_rows(mdp, solution.policy[step])
        below, above = evidence.below(lower[step + 1], weights), evidence.above(upper[step + 1], weights)
        lower[step], upper[step] = _outward(below, 0.0, np.zeros(1)), _outward(above, 0.0, np.zeros(1))
        excess = max(excess, evidence.excess)
        if evidence.failure is not None:
            failures.append(f"Step {step}: {evidence.failure}")
    tolerance = _tolerance(solution, problem, float(horizon))
    return _judge(solution, lower, upper, tolerance, excess, failures)


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


def _tolerance(solution: Solution, problem: Problem, steps: float) -> float:
    """TOLERANCE for values of the size claimed, though of no more than rewards can add up to; NaN for NaN."""
    size = problem.size(solution.lower, solution.upper, solution.value)
    return steps * (TOLERANCE * min(size, (1.0 + steps) * problem.mdp.rows.largest_reward) + 4.0 * UNDERFLOW)


def _outward(bound: Extended | FloatArray, by: Any, steps: FloatArray) -> FloatArray:
    """bound + by * steps in double precision; the one rounding is far below TOLERANCE."""
    moved = bound + np.longdouble(by) * steps if by else bound + np.zeros(1)
    return np.asarray(moved, dtype=np.float64)
