"""Solve and evaluate: a policy for a model and a set, its certified worst-case value and nature's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.operator import AmbiguitySet, Iterated, Operator, PolicyRows
from urbe.mdp.evaluate import chosen_rows, policy_dimensions, policy_rows
from urbe.mdp.model import MDP
from urbe.solvers.backward_induction import backward_induction
from urbe.solvers.bounds import BoundRule, require_finite_values, spread_of
from urbe.solvers.duration import longest_duration
from urbe.solvers.evaluation import Evaluated, PolicyEvaluation, Setting
from urbe.solvers.iterate import FixedPolicy, IterationOutcome, Progress, iterate
from urbe.solvers.methods import BackwardInduction, Method, PartialPolicyIteration, check_problem
from urbe.solvers.solution import NotConverged, Solution
from urbe.types import FloatArray
from urbe.workers import Workers

NOMINAL_SHRINK = 0.1
"""The evaluation of the first policy ends at this share of the nominal improvement's spread."""


def solve(
    mdp: MDP,
    nature: AmbiguitySet | None = None,
    method: Method | BackwardInduction | None = None,
    *,
    start: ArrayLike | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    throw: bool = True,
) -> Solution:
    """Computes V*(s) = max_pi min_{P in U} E[sum_t gamma^t r_t], a policy that attains it, and certified bounds.

    Args:
      mdp: the model.
      nature: the ambiguity set, e.g. `L1Ball(0.5)`; None solves the nominal model.
      method: `PartialPolicyIteration()` by default; also `ModifiedPolicyIteration`, `ValueIteration`, and
        `BackwardInduction(horizon)` for a finite horizon.
      start: `(S,)` initial values, such as those of a similar problem.
      threads: used on large models; the result is the same, bit for bit.
      progress: called as `progress(step, gap)` after each sweep over all rows.
      throw: whether to raise `NotConverged` if the tolerance is not reached; else see `Solution.status`.

    Returns:
      a `Solution`; `solution.lower <= V* <= solution.upper` in every state, rounding included.

    >>> import urbe
    >>> solution = urbe.solve(urbe.library.riverswim(6, discount=0.95), urbe.L1Ball(0.1))
    >>> solution.policy
    array([1, 1, 1, 1, 1, 1], dtype=int32)
    >>> bool(solution.gap < 1e-6)
    True
    """
    check_problem(mdp, nature, method, progress)
    checks.flag("throw", throw)
    if start is not None and isinstance(method, BackwardInduction):
        raise ValueError(
            "start is given, but over a finite horizon the values after the last step are 0: leave it out."
        )
    operator = (Exact() if nature is None else nature).operator(mdp)
    with Workers(threads) as workers:
        if isinstance(method, BackwardInduction):
            return backward_induction(operator, method.horizon, workers, progress)
        return _iterate(operator, None, method, start, workers, progress, throw)


def evaluate_policy(
    mdp: MDP,
    policy: ArrayLike,
    nature: AmbiguitySet | None = None,
    method: Method | BackwardInduction | None = None,
    *,
    threads: int = 1,
    throw: bool = True,
) -> Solution:
    """Computes the worst-case value of a given policy, with bounds and nature's answer.

    Args:
      mdp: the model.
      policy: `(S,)` actions by id or label (-1 where terminal), `{state: action}`, or `(S, A)` probabilities;
        over a finite horizon H also one of these for each step, such as `(H, S)` actions.
      nature: what nature may do; None evaluates under the model as it is.
      method: as for `solve`.
      threads: as for `solve`.
      throw: as for `solve`.

    >>> import urbe
    >>> mdp = urbe.library.riverswim(6, discount=0.95)
    >>> left = urbe.evaluate_policy(mdp, [0] * 6, urbe.L1Ball(0.1))
    >>> bool((left.value <= urbe.solve(mdp, urbe.L1Ball(0.1)).value).all())
    True
    """
    check_problem(mdp, nature, method)
    checks.flag("throw", throw)
    operator = (Exact() if nature is None else nature).operator(mdp)
    with Workers(threads) as workers:
        if isinstance(method, BackwardInduction):
            steps = given_steps(mdp, policy, method.horizon)
            return backward_induction(operator, method.horizon, workers, None, steps)
        if _of_steps(mdp, policy):
            raise ValueError(
                f"policy has shape {np.shape(policy)}, expected ({mdp.n_states},) actions or ({mdp.n_states}, "
                f"{mdp.n_actions}) probabilities. For a policy of each step give "
                f"method=BackwardInduction({np.shape(policy)[0]})."
            )
        return _iterate(operator, given_policy(mdp, policy), method, None, workers, None, throw)


def given_policy(mdp: MDP, policy: ArrayLike) -> PolicyRows:
    """Converts `(S,)` actions, `{state: action}` or `(S, A)` probabilities to the form that operators take."""
    if policy_dimensions(mdp, policy) == 1:
        return PolicyRows(chosen_rows(mdp, policy))
    return PolicyRows.of_weights(policy_rows(mdp, policy))


def _of_steps(mdp: MDP, policy: Any, horizon: int | None = None) -> bool:
    """Whether there is a policy for each step: dicts, `(H, S)` ids or labels, or `(H, S, A)` probabilities."""
    if not isinstance(policy, (Sequence, np.ndarray)) or not len(policy):
        return False
    if isinstance(policy[0], Mapping):
        return True
    try:
        array = np.asarray(policy)
    except ValueError:  # lists of several lengths
        return False
    if array.ndim == 2 and array.shape == (mdp.n_states, mdp.n_actions) != (horizon, mdp.n_states):
        return False  # probabilities, which may be whole numbers
    return array.ndim == 3 or (array.ndim == 2 and array.dtype.kind in "iuU")


def given_steps(mdp: MDP, policy: Any, horizon: int) -> list[PolicyRows]:
    """Converts a policy of all steps, or one of each, to the form that operators take."""
    if not _of_steps(mdp, policy, horizon):
        return [given_policy(mdp, policy)] * horizon
    if len(policy) != horizon:
        raise ValueError(f"policy has {len(policy)} steps, expected {horizon}, as many as the horizon.")
    found = []
    for step, each in enumerate(policy):
        try:
            found.append(given_policy(mdp, each))
        except ValueError as error:
            raise ValueError(f"At step {step}: {error}") from None
    return found


def _iterate(
    operator: Operator,
    given: PolicyRows | None,
    method: Method | None,
    start: ArrayLike | None,
    workers: Workers,
    progress: Progress | None,
    throw: bool,
) -> Solution:
    mdp = operator.mdp
    how = PartialPolicyIteration() if method is None else method
    later = None if mdp.discount < 1.0 else np.maximum(longest_duration(operator, workers) - 1.0, 0.0)
    steps = 1.0 / (1.0 - mdp.discount) if later is None else 1.0 + float(later.max(initial=0.0))
    require_finite_values(mdp, steps)
    iterated = operator if given is None else FixedPolicy(operator, given)
    evaluation, setting = how.evaluation(), Setting(mdp.discount, mdp.terminal, workers)
    if start is not None:
        v = _start(start, mdp, steps * mdp.rows.largest_reward)
    elif operator.singleton:
        v = _reward_alone(mdp)
    else:
        v = _warm_start(iterated, Exact().operator(mdp), evaluation, setting)
    rule = BoundRule(iterated, later, how.rule, operator.modulus)
    outcome = iterate(iterated, how, evaluation, rule, v, setting, progress or _silent)
    solution = _solution(operator, outcome, given is None)
    if throw and not outcome.reached:
        raise NotConverged(solution)
    return solution


def _solution(operator: Operator, outcome: IterationOutcome, optimal: bool) -> Solution:
    mdp, bounds, policy = operator.mdp, outcome.bounds, outcome.improvement.policy
    q, memory = outcome.improvement.q, outcome.improvement.memory
    if q is None:  # a policy was evaluated, on its own rows
        q, memory = operator.action_values(bounds.value, outcome.v, policy)
    elif isinstance(bounds.shift, float):
        q = q + bounds.shift
    return Solution(
        value=bounds.value,
        q=mdp.by_action(q, fill=-np.inf),
        policy=policy.actions(mdp),
        lower=bounds.lower,
        upper=bounds.upper,
        converged=outcome.reached,
        status=outcome.reason,
        steps=outcome.steps,
        sweeps=outcome.sweeps,
        operator=operator,
        policies=(policy,),
        at=outcome.v,
        memory=memory,
        optimal=optimal,
    )


def _start(start: ArrayLike, mdp: MDP, most: float) -> FloatArray:
    """The values given, cut to what rewards can add up to: beyond, sums of a sweep would overflow."""
    v = checks.float_array("start", start, ndim=1)
    if len(v) != mdp.n_states:
        raise ValueError(f"start has {len(v)} entries, expected one for each of {mdp.n_states} states.")
    v = np.clip(v, -most, most)
    v[mdp.terminal] = 0.0
    return v


def _reward_alone(mdp: MDP) -> FloatArray:
    """`(S,)` T 0 for the nominal model: the best expected reward of one step."""
    v = np.zeros(mdp.n_states)
    live = np.flatnonzero(~mdp.terminal)
    if len(live):
        v[live] = np.maximum.reduceat(mdp.rows.expected_reward(), mdp.row_start[live])
    return v


def _warm_start(operator: Iterated, nominal: Iterated, evaluation: PolicyEvaluation, setting: Setting) -> FloatArray:
    """`(S,)` the approximate robust value of a policy that is nearly optimal for the nominal model.

    The first robust sweep over all rows is expensive: no row has a warm start. A nominal sweep is cheap, and its
    policies are close enough for a start.
    """
    v = _reward_alone(operator.mdp)
    improvement = nominal.improve(v, None, setting.workers)
    lo, hi = spread_of(v, improvement.value, setting.terminal)
    following, memory = operator.against(improvement.policy)
    start = Evaluated(improvement.value, hi - lo, 0, memory)
    return evaluation(following, start, NOMINAL_SHRINK * (hi - lo), setting).value


def _silent(step: int, gap: float) -> None:
    pass
