"""value_variance: robust values under a posterior, and how far the data still leave them open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.base import AmbiguitySet, Nature
from urbe.ambiguity.exact import Exact, ExactNature
from urbe.ambiguity.l1_dense import DenseL1Nature
from urbe.ambiguity.moments import moments
from urbe.ambiguity.row_nature import RowNature
from urbe.ambiguity.s_rectangular import SRectangular
from urbe.ambiguity.wasserstein import WassersteinNature
from urbe.bellman.local import Calibrated, Local, LocalTerm, Problem, Step
from urbe.bellman.operators import FixedPolicyBellman, RectangularBellman, greedy, midrange
from urbe.bellman.variance import Weights, check_acyclic, of_policy, second_moments, variance_step, weighted_rows
from urbe.mdp.evaluate import chosen_rows, policy_rows
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.solvers.arguments import check_problem
from urbe.solvers.linear import DENSE_STATES, Plan, plan, solve_system
from urbe.solvers.methods import Method
from urbe.solvers.policies import policy_of
from urbe.solvers.solution import Solution
from urbe.solvers.solve import evaluate_policy, solve
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class ValueVariance:
    """Robust values with their posterior variances.

    With a finite horizon H every array has a leading axis of steps: H of them, and H + 1 for `value` and
    `value_variance`, whose last is the end.

    Attributes:
      q: `(R,)` value of each row against nature, at the posterior mean.
      variance: `(R,)` its posterior variance u (an upper bound or an estimate, by form and local uncertainty).
      local: `(R,)` the part nu of it that the row itself adds.
      value: `(S,)` value of the policy, zero where terminal.
      value_variance: `(S,)` its variance.
      policy: `(S,)` the action of each state, -1 where terminal; or `(S, A)` probabilities.
      model: the posterior mean.
    """

    q: FloatArray
    variance: FloatArray
    local: FloatArray
    value: FloatArray
    value_variance: FloatArray
    policy: IntArray | FloatArray
    model: MDP

    @property
    def deviation(self) -> FloatArray:
        """`(R,)` standard deviations of q; 0 where the variance is not positive."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    def __repr__(self) -> str:
        steps = f"{len(self.q)} steps, " if self.q.ndim > 1 else ""
        return f"ValueVariance({steps}{self.model.n_states} states, {self.model.n_rows} rows)"


def value_variance(
    posterior: Posterior,
    nature: AmbiguitySet | None = None,
    *,
    horizon: int | None = None,
    local: Local | None = None,
    policy: ArrayLike | None = None,
    sharp: bool = False,
    method: Method | None = None,
) -> ValueVariance:
    """Values against nature under a posterior, and their posterior variance u = nu + gamma^2 P* u.

    The set is centred at the posterior mean; the variance is that of the value when the centre is a posterior draw.
    With a horizon the values are those of `solve(..., BackwardInduction(horizon))`, bit for bit. A set of radius 0
    is the model itself: values and variances are then those of the uncertainty Bellman equation, bit for bit.

    Args:
      posterior: what is known of the model.
      nature: what nature may do around the mean, e.g. `L1Ball(0.2)`; None trusts the mean. Any set rectangular in
        (s, a); one that does not move with the model (scenarios, given intervals) has no local uncertainty.
      horizon: number of steps; None for the infinite horizon of the model's discount.
      local: the local uncertainty nu, `Calibrated()` by default; also `Count`, `DirichletForm`, `Bound`,
        `MonteCarlo`, `ExactUBE`.
      policy: `(S,)` action ids or `(S, A)` probabilities; with a horizon also `(H, S)` whole numbers or `(H, S, A)`,
        one policy for each step. None takes the greedy one.
      sharp: treats the values of different successors as uncorrelated, in place of the upper bound; only for models
        in which no state is met twice.
      method: how to solve without a horizon, as for `solve`.

    Returns:
      a `ValueVariance`.

    >>> import urbe
    >>> posterior = urbe.Posterior.before(urbe.library.riverswim(4, discount=0.9), concentration=5.0)
    >>> plan = urbe.value_variance(posterior, urbe.L1Ball(0.1), horizon=8)
    >>> plan.q.shape, plan.policy[0]
    ((8, 8), array([1, 1, 1, 1], dtype=int32))
    >>> plan.deviation[0].round(3)
    array([0.097, 0.126, 0.097, 0.184, 0.15 , 0.292, 0.249, 0.323])
    """
    check_posterior("posterior", posterior)
    check_problem(posterior.model, nature, method)
    if local is not None:
        checks.kind("local", local, callable(getattr(local, "bind", None)), "a local uncertainty such as Calibrated()")
    if isinstance(nature, SRectangular):
        raise ValueError(
            "nature is rectangular in s: its worst case has no sensitivity to the rows on their own. Use the same set "
            "without SRectangular."
        )
    if horizon is not None:
        checks.whole_number("horizon", horizon, 1)
    chosen = Exact() if nature is None else nature
    centre = posterior.mean()
    problem = Problem(posterior, centre, chosen, _without_idle_choice(centre, chosen.bind(centre)), horizon)
    term = (Calibrated() if local is None else local).bind(problem)
    if horizon is None:
        return _infinite(problem, term, policy, sharp, method)
    return _finite(problem, term, _policies(centre, policy, horizon), horizon, sharp)


def _finite(problem: Problem, term: LocalTerm, given: list[Weights] | None, horizon: int, sharp: bool) -> ValueVariance:
    centre = problem.centre
    q, variance, local = (np.empty((horizon, centre.n_rows)) for _ in range(3))
    value, value_variance = (np.zeros((horizon + 1, centre.n_states)) for _ in range(2))
    policy: list[Any] = []
    weights: Weights | None = None
    for h in range(horizon - 1, -1, -1):
        q[h], local[h], variance[h] = variance_step(problem, term, value[h + 1], value_variance[h + 1], weights, sharp)
        if given is None:
            value[h], weights = greedy(centre, q[h])
        else:
            weights = given[h]
            value[h] = of_policy(centre, weights, q[h])
        value_variance[h] = of_policy(centre, weights, variance[h], sharp)
        policy.append(policy_of(centre, weights))
    return ValueVariance(q, variance, local, value, value_variance, np.array(policy[::-1]), centre)


def _infinite(
    problem: Problem, term: LocalTerm, policy: ArrayLike | None, sharp: bool, method: Method | None
) -> ValueVariance:
    centre, nature = problem.centre, problem.nature
    if policy is None:
        solution = solve(centre, problem.set, method)
    else:
        solution = evaluate_policy(centre, policy, problem.set, method)
    v, weights = solution.value, solution.weights
    nature = _swept(solution, nature)
    middle = midrange(v)
    q, scatter, _ = moments(nature, v - middle, middle, np.zeros(centre.n_states))
    nu = term(Step(scatter, v, weights))

    taken, share = weighted_rows(weights)
    if sharp:
        answers = _squared(problem, v - middle)
        answer = answers.take(taken)
    else:
        answer = nature.take(taken).worst_case(v - middle).rows
    u = _of_states(centre, taken, share**2 if sharp else share, answer, nu[taken])
    carried = _expected(answers, u) if sharp else moments(nature, v - middle, middle, u, q).carried
    variance = nu + centre.discount**2 * carried
    # where successors tie, nature has several answers: the policy's rows keep the one that was solved for
    variance[taken] = nu[taken] + centre.discount**2 * _expected(answer, u)
    return ValueVariance(q, variance, nu, v, u, policy_of(centre, weights), centre)


def _swept(solution: Solution, nature: Nature) -> Nature:
    """The solver's own nature of the same kind: it remembers where its rows stopped."""
    bellman = solution.bellman.bellman if isinstance(solution.bellman, FixedPolicyBellman) else solution.bellman
    swept = bellman.nature if isinstance(bellman, RectangularBellman) else nature
    return swept if type(swept) is type(nature) else nature


def _of_states(centre: MDP, taken: IntArray, share: FloatArray, answer: Rows, nu: FloatArray) -> FloatArray:
    """u = nu_pi + gamma^2 P*_pi u, solved for the states."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import spsolve

    n_states, factor = centre.n_states, centre.discount**2
    right = np.bincount(centre.row_state[taken], share * nu, minlength=n_states)
    size = float(np.abs(right).max(initial=0.0))
    if size == 0.0:
        return np.zeros(n_states)
    cheap = Plan("krylov", 0.0, taken, 0)
    if answer.is_dense and np.array_equal(centre.row_state[taken], np.arange(n_states)):  # one row for each state
        u = solve_system(answer.probability.reshape(n_states, n_states), right / size, factor, cheap)
        if u is not None:
            return size * (np.maximum(u, 0.0) if right.min() >= 0.0 else u)
    first = answer.entry_start[np.searchsorted(centre.row_state[taken], np.arange(n_states + 1))]
    chance = np.repeat(share, answer.length) * answer.probability
    matrix = csr_array((chance, answer.successor, first), shape=(n_states, n_states), copy=True)
    matrix.sum_duplicates()  # where a state takes several rows
    u = None
    if n_states > DENSE_STATES:  # cheap where it works
        u = solve_system(matrix, right / size, factor, cheap)
    if u is None:
        u = solve_system(matrix, right / size, factor, plan(matrix))
    if u is None:
        u = spsolve((eye_array(n_states, format="csc") - factor * matrix).tocsc(), right / size)
    return size * (np.maximum(u, 0.0) if right.min() >= 0.0 else u)


def _squared(problem: Problem, v: FloatArray) -> Rows:
    """Nature's answer with E[q^2] in the place of q."""
    answer = problem.nature.worst_case(v).rows
    check_acyclic(problem.centre, answer)
    weight = second_moments(problem.nature, answer, problem.posterior.total)
    return replace(answer, probability=weight)


def _expected(rows: Rows, u: FloatArray) -> FloatArray:
    return rows.row_sums(rows.probability * u[rows.successor])


def _without_idle_choice(centre: MDP, nature: Nature) -> Nature:
    """The nature of the model itself when every radius is 0, so that both give the same bits."""
    inner = nature.inner if isinstance(nature, DenseL1Nature) else nature
    if not isinstance(inner, RowNature | WassersteinNature) or inner.radius.any():
        return nature
    # not every set has a radius: this one is a point if two opposite directions without ties find the same kernel
    probe = np.sin(np.arange(1.0, centre.n_states + 1.0))
    idle = all(np.array_equal(inner.worst_case(v).rows.probability, inner.rows.probability) for v in (probe, -probe))
    return ExactNature(centre.rows, centre.discount) if idle else nature


def _policies(centre: MDP, policy: ArrayLike | None, horizon: int) -> list[Weights] | None:
    """One policy for each step, as rows or weights of rows."""
    if policy is None:
        return None
    array = np.asarray(policy)
    per_step = array.ndim == 3 or (array.ndim == 2 and np.issubdtype(array.dtype, np.integer))
    if per_step and len(array) != horizon:
        raise ValueError(f"policy has {len(array)} steps, expected one policy for each of {horizon}.")
    return [_one(centre, each) for each in array] if per_step else [_one(centre, array)] * horizon


def _one(centre: MDP, policy: Any) -> Weights:
    if policy.ndim != 1:
        return policy_rows(centre, policy)
    rows = np.full(centre.n_states, -1)
    rows[~centre.terminal] = chosen_rows(centre, policy)
    return rows
