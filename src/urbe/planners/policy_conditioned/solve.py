"""Policy-conditioned robust planning: nature must agree with data of a reference policy [Tirinzoni2018].

    max_pi  min_tau  E_{tau, pi}[return]     over all tau, also history-dependent, that satisfy the constraints

Rectangular sets treat every pair separately. Here one vector of multipliers couples all states, so that data on some
states are evidence about others. With multipliers omega,

    max_omega  max_pi  softmin_tau ( E_{tau, pi}[return] + E_{tau, reference}[omega . phi] )  -  omega . moments
               - slack . |omega| - penalty / 2 |omega|^2

The inner problem is a dynamic program over beliefs (`recursion`). Its derivative is the difference between nature's
moments and the given ones; multipliers are improved by limited-memory quasi-Newton ascent, and by subgradient steps
where the maximum has a kink.

Softening: nature pays 1 / sharpness times the causal entropy for dynamics far from uniform. A low sharpness makes
nature nearly uniform where it is not constrained, which is not the worst case. For any sharpness, `lower` is a bound
for nature without softening.

For one policy the dual is concave in omega; its maximum over deterministic policies is not, and may have several local
maxima. The ascent therefore starts from several multipliers, and with softer natures first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from urbe import checks, memory
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP, check_model
from urbe.planners.policy_conditioned.beliefs import listed, reachable
from urbe.planners.policy_conditioned.constraints import MomentConstraints, entry_features, initial_weights
from urbe.planners.policy_conditioned.policy import BeliefPolicy
from urbe.planners.policy_conditioned.recursion import (
    AS_GIVEN,
    BY_RETURN,
    BY_TOTAL,
    BackwardPass,
    InnerProblem,
    backward,
    forward,
    inner_problem,
)
from urbe.rng import stream
from urbe.types import FloatArray

Progress = Callable[[int, float], None]
"""Called with the number of inner problems solved and the largest violation of a moment."""

MOST_BELIEFS = 5000
"""The lower bound is computed up to this many beliefs per step."""

ROUNDS, STEPS = 5, 300
"""Number of consecutive quasi-Newton ascents, and of subgradient steps after them."""


@dataclass(frozen=True, eq=False, repr=False)
class PolicyConditionedSolution:
    """A policy over beliefs, and its value against the dynamics that satisfy the constraints.

    Attributes:
      policy: `reset`, `act`, `observe`, and its exact `value` in a model.
      value: its expected return under nature's final dynamics; not a bound.
      lower: lower bound on its return under all dynamics that satisfy the constraints, including history-dependent
        ones; -inf if the policy reaches too many beliefs.
      dual: the softened objective that was maximised.
      multipliers: `(d,)` omega.
      moments: `(d,)` expected sums of features under nature's dynamics and the reference policy.
      violation: the largest violation of a moment, beyond its slack and penalty.
      converged: whether the violation is below the tolerance.
      solves: number of inner problems solved.
      status: the result in words.
    """

    policy: BeliefPolicy
    value: float
    lower: float
    dual: float
    multipliers: FloatArray
    moments: FloatArray
    violation: float
    converged: bool
    solves: int
    status: str

    def __repr__(self) -> str:
        return f"PolicyConditionedSolution(value {self.value:.6g}, at least {self.lower:.6g}; {self.status})"


def solve_policy_conditioned(
    mdp: MDP,
    constraints: MomentConstraints,
    *,
    sharpness: float = 100.0,
    select: Literal["return", "total"] = "total",
    beliefs: int = 40,
    starts: int = 4,
    seed: int = 0,
    tolerance: float = 1e-4,
    most_solves: int = 2000,
    progress: Progress | None = None,
) -> PolicyConditionedSolution:
    """Computes the best policy against all dynamics that satisfy moment constraints, and a bound on its return.

    Args:
      mdp: pairs, successors that nature may use, rewards, discount and first states. Its probabilities are not read.
      constraints: the constraints on nature.
      sharpness: sharpness of nature's choice per unit of return, above 0; larger is closer to the worst case.
      select: "total" takes the action that is best after nature's answer; "return", as published, the best answer to
        nature's current dynamics.
      beliefs: largest number of beliefs per step. If fewer can be reached, there is no approximation.
      starts: number of ascents, the best of which counts: from 0, from multipliers of softer natures, and random ones.
      seed: seed of random multipliers.
      tolerance: tolerance of moments, as a share of 1 + |moment|.
      most_solves: largest number of inner problems in each ascent.
      progress: called after each inner problem.

    Raises:
      ValueError: no dynamics on the listed successors satisfy the constraints.

    >>> import numpy as np, urbe
    >>> from urbe.planners import MomentConstraints
    >>> river = urbe.library.riverswim(4, discount=1.0)
    >>> moved = np.zeros((4, 2, 4, 3))  # under "right": moved up, stayed, moved down, wherever that was
    >>> for s in range(4):
    ...     for k, to in enumerate((s + 1, s, s - 1)):
    ...         if 0 <= to < 4:
    ...             moved[s, 1, to, k] = 1.0
    >>> seen = MomentConstraints.of(river, moved, np.full((4, 2), 0.5), 12, slack=0.05)
    >>> solution = solve_policy_conditioned(river, seen, sharpness=50.0)
    >>> solution.converged, bool(solution.lower <= solution.policy.value(river))
    (True, True)
    """
    check_model("mdp", mdp)
    checks.kind(
        "constraints",
        constraints,
        isinstance(constraints, MomentConstraints),
        "constraints, such as MomentConstraints.of(...)",
    )
    lam = checks.positive("sharpness", sharpness)
    rule = BY_RETURN if checks.one_of("select", select, ("return", "total")) == "return" else BY_TOTAL
    within = checks.positive("tolerance", tolerance), checks.whole_number("most_solves", most_solves, 1)
    ascent = _Ascent(mdp, constraints, rule, checks.whole_number("beliefs", beliefs, 2), progress)
    return ascent.solution(lam, *within, checks.whole_number("starts", starts, 1), stream(seed, "multipliers"))


@dataclass(frozen=True)
class _Point:
    """The dual at some multipliers."""

    omega: FloatArray
    dual: float
    moments: FloatArray
    at: BackwardPass
    fits: bool


class _Ascent:
    """The ascent of the multipliers."""

    def __init__(
        self, mdp: MDP, constraints: MomentConstraints, rule: int, most: int, progress: Progress | None
    ) -> None:
        self._mdp, self._rule = mdp, rule
        self._phi = entry_features(mdp, constraints.features)
        self._wanted = np.asarray(constraints.moments, dtype=np.float64)
        if self._phi.shape[1] != len(self._wanted):
            raise ValueError(
                f"moments has {len(self._wanted)} numbers, expected one for each of {self._phi.shape[1]} features."
            )
        self._slack, self._penalty = np.asarray(constraints.slack), float(constraints.penalty)
        self._problem: InnerProblem = inner_problem(mdp, policy_rows(mdp, constraints.reference))
        self._initial = initial_weights(mdp)
        self._beliefs = reachable(self._problem.reference, constraints.horizon, most)
        shape = (constraints.horizon, mdp.n_states, self._beliefs.odds.shape[1])
        memory.require(
            {f"values of {shape[1]} states at {shape[2]} beliefs in {shape[0]} steps": 24.0 * float(np.prod(shape))},
            "Use fewer beliefs (beliefs=...), or a shorter horizon.",
        )
        self._shape, self._progress = shape, progress
        gamma = mdp.discount ** np.arange(constraints.horizon)
        self._most = float(max(self._problem.reward.max(initial=0.0), 0.0) * gamma.sum())
        self.solves = 0

    def solution(
        self, sharpness: float, tolerance: float, most: int, starts: int, rng: np.random.Generator
    ) -> PolicyConditionedSolution:
        """Runs several ascents and returns the best."""
        self._tolerance = tolerance * (1.0 + np.abs(self._wanted))
        nothing = np.zeros(len(self._wanted))
        scale = np.ptp(self._problem.reward) / np.maximum(np.abs(self._phi).max(axis=0, initial=0.0), 1e-12)
        best = self._climb(nothing, sharpness, most)
        for number in range(1, starts if len(nothing) else 1):
            omega = rng.normal(size=len(nothing)) * scale
            if number == 1:
                for softer in (0.01, 0.1):
                    omega = self._climb(nothing if softer == 0.01 else omega, softer * sharpness, most).omega
            other = self._climb(omega, sharpness, most)
            best = max(best, other, key=lambda point: (point.fits, point.dual))
        return self._solution(best)

    def _climb(self, omega: FloatArray, sharpness: float, most: int) -> _Point:
        """Improves multipliers until the moments fit or there is no progress; returns the best point."""
        d, budget = len(self._wanted), self.solves + most
        best = self._solve(omega, sharpness)

        def downhill(both: FloatArray) -> tuple[float, FloatArray]:
            """Minus the dual, of multipliers given as positive and negative parts."""
            nonlocal best
            point = self._solve(both[:d] - both[d:], sharpness)
            best = max(best, point, key=lambda point: point.dual)
            slope = point.moments - self._wanted - self._penalty * point.omega
            # both parts pay the slack, so that one of them is zero at the maximum
            paid = float(self._slack @ (both[:d] + both[d:] - np.abs(point.omega)))
            return paid - point.dual, np.concatenate([self._slack - slope, self._slack + slope])

        for _ in range(ROUNDS):
            if best.fits or self.solves >= budget:
                return best
            start = np.concatenate([np.maximum(best.omega, 0.0), np.maximum(-best.omega, 0.0)])
            before = best.dual
            minimize(
                downhill, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * (2 * d),
                options={"maxfun": max(budget - self.solves, 1), "maxiter": most, "ftol": 1e-15, "gtol": 1e-12},
            )  # fmt: skip
            if best.dual <= before + 1e-12 * (1.0 + abs(before)):
                break
        return self._subgradient(best, sharpness, budget)

    def _subgradient(self, best: _Point, sharpness: float, budget: int) -> _Point:
        """Takes subgradient steps with decreasing sizes, scaled by past slopes, for kinks of the dual."""
        point, past = best, np.zeros(len(self._wanted))
        length = 0.1 * max(1.0, float(np.abs(best.omega).max(initial=0.0)))
        budget = min(budget, self.solves + STEPS)
        while self.solves < budget and not best.fits:
            slope = point.moments - self._wanted - self._penalty * point.omega
            past += slope**2
            rate = length / np.sqrt(np.maximum(past, 1e-300))
            moved = point.omega + rate * slope
            point = self._solve(np.sign(moved) * np.maximum(np.abs(moved) - rate * self._slack, 0.0), sharpness)
            best = max(best, point, key=lambda point: point.dual)
        return best

    def _solution(self, best: _Point) -> PolicyConditionedSolution:
        """Makes the solution of a point."""
        most = float(self._violation(best.omega, best.moments).max(initial=0.0))
        policy = BeliefPolicy(self._mdp, self._problem.reference, self._beliefs, best.at.row)
        words = "all moments fit" if best.fits else f"a moment still differs by {most:.3g}"
        return PolicyConditionedSolution(
            policy=policy,
            value=float(self._initial @ best.at.gain[0, :, 1]),
            lower=self._lower(policy, best.omega),
            dual=best.dual,
            multipliers=best.omega,
            moments=best.moments,
            violation=most,
            converged=best.fits,
            solves=self.solves,
            status=f"{words} after {self.solves} inner problems",
        )

    def _solve(self, omega: FloatArray, sharpness: float) -> _Point:
        """Computes the dual and nature's moments."""
        bonus = self._phi @ omega
        at = backward(self._problem, self._beliefs, bonus, sharpness, self._rule, np.zeros(self._shape, dtype=np.int64))
        moments = forward(self._problem, self._beliefs, bonus, sharpness, self._initial, at) @ self._phi
        dual = 2.0 * float(self._initial @ at.value[0, :, 1]) - self._owed(omega)
        self.solves += 1
        off = self._violation(omega, moments)
        if dual > self._most + 1e-6 * (1.0 + abs(self._most)):
            j = int(np.argmax(off))
            raise ValueError(
                f"No dynamics on the successors of the model satisfy the constraints: moments[{j}] is "
                f"{self._wanted[j]:.6g}, but nature reaches only {moments[j]:.6g}. Give slack= or penalty= "
                "for estimation errors, or list more successors."
            )
        if self._progress is not None:
            self._progress(self.solves, float(off.max(initial=0.0)))
        return _Point(omega.copy(), dual, moments, at, bool((off <= self._tolerance).all()))

    def _owed(self, omega: FloatArray) -> float:
        return float(omega @ self._wanted + self._slack @ np.abs(omega) + 0.5 * self._penalty * omega @ omega)

    def _violation(self, omega: FloatArray, moments: FloatArray) -> FloatArray:
        """`(d,)` the remaining slope of the dual."""
        slope = moments - self._wanted - self._penalty * omega
        free: FloatArray = np.maximum(np.abs(slope) - self._slack, 0.0)
        return np.where(omega == 0.0, free, np.abs(slope - np.sign(omega) * self._slack))

    def _lower(self, policy: BeliefPolicy, omega: FloatArray) -> float:
        """Computes the dual of this policy without softening, at the beliefs it reaches: a bound by weak duality."""
        layers = policy.reached(MOST_BELIEFS)
        if layers is None:
            return -np.inf
        at = listed(layers, exact=True)
        given = np.full((policy.horizon, self._mdp.n_states, at.odds.shape[1]), -1, dtype=np.int64)
        for t in range(policy.horizon):
            given[t, :, 1:] = policy.rows_at(t, at.odds[t, 1:])
        bonus = self._phi @ omega
        hard = backward(self._problem, at, bonus, np.inf, AS_GIVEN, given).value
        found = 2.0 * float(self._initial @ hard[0, :, 1]) - self._owed(omega)
        size = (np.abs(self._problem.reward).max(initial=0.0) + np.abs(bonus).max(initial=0.0)) * policy.horizon
        rounding = 2.0**-52 * (policy.horizon + 8.0) * (size + float(np.abs(omega) @ np.abs(self._wanted)))
        return found - 10.0 * float(rounding)
