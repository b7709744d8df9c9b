"""value_variance: robust values under a posterior, and their posterior variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, extras
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.operator import AmbiguitySet, PolicyRows
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.posteriors.dirichlet import Posterior, check_posterior
from urbe.solvers.linear import DENSE_STATES, SolvePlan, plan, solve_system
from urbe.solvers.methods import Method, check_problem
from urbe.solvers.solve import evaluate_policy, given_steps, solve
from urbe.tables import TableResult
from urbe.types import FloatArray, IntArray
from urbe.variance.local import Calibrated, LocalForm, LocalStep, LocalTerm, Problem
from urbe.variance.recursion import Ahead, squared_answer, variance_step


@dataclass(frozen=True, eq=False, repr=False)
class ValueVariance(TableResult):
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

    def table(self) -> dict[str, np.ndarray]:
        """One row for each state and action, as columns: `state`, `action`, `q`, `deviation`, `variance`, `local`.

        States and actions are called by their labels, if they have any; with a horizon there is a column `step`, too.
        """
        labels, steps = self.model.labels, len(np.atleast_2d(self.q))
        step = {"step": np.repeat(np.arange(steps), self.model.n_rows)} if self.q.ndim > 1 else {}
        return step | {
            "state": np.tile(labels.state_column(self.model.row_state), steps),
            "action": np.tile(labels.action_column(self.model.action), steps),
            "q": self.q.ravel(),
            "deviation": self.deviation.ravel(),
            "variance": self.variance.ravel(),
            "local": self.local.ravel(),
        }

    def plot(self) -> Any:
        """Draws the value of each state, plus and minus its deviation. Needs `pip install urbe[plots]`."""
        return extras.drawings().draw_variance(self)

    def __str__(self) -> str:
        table = {name: column[: self.model.n_rows] for name, column in self.table().items() if name != "step"}
        head = ("state", "action", "q", "deviation")
        lines = [repr(self), "".join(f"{name:>14}" for name in head)]
        shown = min(self.model.n_rows, 24)
        for row in range(shown):
            texts = [str(table["state"][row]), str(table["action"][row]), *(f"{table[k][row]:.6g}" for k in head[2:])]
            lines.append("".join(f"{text:>14}" for text in texts))
        if shown < self.model.n_rows:
            lines.append(f"    ... {self.model.n_rows - shown} more rows")
        return "\n".join(lines)

    def __repr__(self) -> str:
        steps = f"{len(self.q)} steps, " if self.q.ndim > 1 else ""
        return f"ValueVariance({steps}{self.model.n_states} states, {self.model.n_rows} rows)"


def value_variance(
    posterior: Posterior,
    nature: AmbiguitySet | None = None,
    *,
    horizon: int | None = None,
    local: LocalForm | None = None,
    policy: ArrayLike | None = None,
    sharp: bool = False,
    method: Method | None = None,
) -> ValueVariance:
    """Computes values against nature under a posterior, and their posterior variance u = nu + gamma^2 P* u.

    The set is centred at the posterior mean; the variance is that of the value when the centre is a posterior draw.
    With a horizon the values are those of `solve(..., BackwardInduction(horizon))`, bit for bit. A set of radius 0
    is the model itself: values and variances are then those of the uncertainty Bellman equation, bit for bit.

    Args:
      posterior: the posterior of the model.
      nature: the ambiguity set around the mean, such as `L1Ball(0.2)`; None trusts the mean. A set that does not depend
        on the model (scenarios, given intervals) has no local uncertainty.
      horizon: number of steps; None for the infinite horizon of the model's discount.
      local: the local uncertainty nu, `Calibrated()` by default; also `Count`, `DirichletForm`, `Bound`,
        `MonteCarlo`, `ExactUBE`.
      policy: as for `evaluate_policy`, with a horizon also one for each step; None takes the greedy one.
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
    if horizon is not None:
        checks.whole_number("horizon", horizon, 1)
    chosen = Exact() if nature is None else nature
    centre = posterior.mean()
    operator = chosen.operator(centre)
    if operator.singleton:  # so that a set of radius 0 gives the bits of the model itself
        operator = Exact().operator(centre)
    problem = Problem(posterior, centre, chosen, operator, horizon)
    term = (Calibrated() if local is None else local).bind(problem)
    if horizon is None:
        return _infinite(problem, term, policy, sharp, method)
    given = None if policy is None else given_steps(centre, policy, horizon)
    return _finite(problem, term, given, horizon, sharp)


def _finite(
    problem: Problem, term: LocalTerm, given: list[PolicyRows] | None, horizon: int, sharp: bool
) -> ValueVariance:
    centre = problem.centre
    q, variance, local = (np.empty((horizon, centre.n_rows)) for _ in range(3))
    value, value_variance = (np.zeros((horizon + 1, centre.n_states)) for _ in range(2))
    policies: list[PolicyRows] = []
    ahead = Ahead(value[horizon], value_variance[horizon])
    for h in range(horizon - 1, -1, -1):
        step = variance_step(problem, term, ahead, None if given is None else given[h], sharp)
        q[h], local[h], variance[h] = step.q, step.local, step.variance
        value[h], value_variance[h] = step.value, step.value_variance
        policies.append(step.policy)
        ahead = Ahead(value[h], value_variance[h], step.policy, step.memory)
    policy = np.array([each.actions(centre) for each in policies[::-1]])
    return ValueVariance(q, variance, local, value, value_variance, policy, centre)


def _infinite(
    problem: Problem, term: LocalTerm, policy: ArrayLike | None, sharp: bool, method: Method | None
) -> ValueVariance:
    centre, operator = problem.centre, problem.operator
    if policy is None:
        solution = solve(centre, problem.set, method)
    else:
        solution = evaluate_policy(centre, policy, problem.set, method)
    v, following = solution.value, solution.policies[0]
    memory = None if operator.singleton else solution.memory  # of the same operator
    _, q, _, scatter, _, memory = operator.moments(v, np.zeros(centre.n_states), following, memory)
    nu = term(LocalStep(scatter, v, following))

    taken = following.rows
    if sharp:
        answers = squared_answer(problem, v, following)
        answer = answers.take(taken)
    else:
        answer = operator.against(following)[0].kernel(v)
    share = following.share**2 if sharp else following.share
    u = _of_states(centre, taken, share, answer, nu[taken])
    carried = _expected(answers, u) if sharp else operator.moments(v, u, following, memory, q).carried
    variance = nu + centre.discount**2 * carried
    # where successors tie, nature has several answers: the policy's rows keep the one that was solved for
    variance[taken] = nu[taken] + centre.discount**2 * _expected(answer, u)
    return ValueVariance(q, variance, nu, v, u, following.actions(centre), centre)


def _of_states(centre: MDP, taken: IntArray, share: FloatArray, answer: Rows, nu: FloatArray) -> FloatArray:
    """u = nu_pi + gamma^2 P*_pi u, solved for the states."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.linalg import spsolve

    n_states, factor = centre.n_states, centre.discount**2
    right = np.bincount(centre.row_state[taken], share * nu, minlength=n_states)
    size = float(np.abs(right).max(initial=0.0))
    if size == 0.0:
        return np.zeros(n_states)
    cheap = SolvePlan("krylov", 0.0, taken, 0)
    if answer.is_dense and np.array_equal(centre.row_state[taken], np.arange(n_states)):  # one row for each state
        u = solve_system(answer.probability.reshape(n_states, n_states), right / size, factor, cheap)
        if u is not None:
            return size * (np.maximum(u, 0.0) if right.min() >= 0.0 else u)
    first = answer.entry_start[np.searchsorted(centre.row_state[taken], np.arange(n_states + 1))]
    chance = np.repeat(share, answer.length) * answer.probability
    matrix = csr_array((chance, answer.successor, first), shape=(n_states, n_states), copy=True)
    matrix.sum_duplicates()  # if a state takes several rows
    u = None
    if n_states > DENSE_STATES:  # cheap if it works
        u = solve_system(matrix, right / size, factor, cheap)
    if u is None:
        u = solve_system(matrix, right / size, factor, plan(matrix))
    if u is None:
        u = spsolve((eye_array(n_states, format="csc") - factor * matrix).tocsc(), right / size)
    return size * (np.maximum(u, 0.0) if right.min() >= 0.0 else u)


def _expected(rows: Rows, u: FloatArray) -> FloatArray:
    return rows.row_sums(rows.probability * u[rows.successor])
