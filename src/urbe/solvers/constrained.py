"""Solve constrained MDPs by linear programming: the best return of policies whose expected cost is within a limit.

    max_x sum x(s, a) r(s, a)   subject to   sum x(s, a) c(s, a) <= limit,
                                             sum_a x(s', a) - gamma sum x(s, a) p(s'|s, a) = mu(s')

over occupancies x >= 0, with mu the distribution of the first state [Altman1999]. The best policy,
x(s, a) / sum_a x(s, a), may randomise in one state; with lambda the multiplier of the limit, it is optimal for
r - lambda c.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import csr_array

from urbe import checks, memory
from urbe.mdp.evaluate import policy_value, start_weights
from urbe.mdp.model import MDP, check_model
from urbe.types import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedSolution:
    """The result of `solve_constrained`.

    Attributes:
      policy: `(S, A)` probabilities; in states that are never reached, those of the best policy for r - lambda c.
      value, cost: expected discounted reward and cost of `policy` from the start, by a separate linear solve.
      multiplier: lambda >= 0, the value of one more unit of the limit; 0 if the limit does not bind.
    """

    policy: FloatArray
    value: float
    cost: float
    multiplier: float

    def __repr__(self) -> str:
        return f"ConstrainedSolution(value {self.value:.6g}, cost {self.cost:.6g}, multiplier {self.multiplier:.6g})"


def solve_constrained(mdp: MDP, cost: ArrayLike, limit: float) -> ConstrainedSolution:
    """Computes the best policy whose expected discounted cost from the start is at most `limit`.

    Args:
      mdp: the model, with a discount below 1 or certain termination; starts from its `initial`, or uniformly over
        states without one.
      cost: c(s, a): a number, `(R,)`, `(S, A)` or `{(s, a): number}`.
      limit: largest expected cost.

    Raises:
      ValueError: no policy satisfies the limit; the message states the least possible cost.

    >>> import numpy as np, urbe
    >>> one = urbe.MDP.from_dense([[[1.0], [1.0]]], [[0.0, 1.0]], discount=0.5)
    >>> found = urbe.solve_constrained(one, [[0.0, 1.0]], 0.5)
    >>> found.policy.round(6), round(found.multiplier, 6)
    (array([[0.75, 0.25]]), 1.0)
    """
    check_model("mdp", mdp)
    c, most = mdp.per_row("cost", cost), checks.finite_number("limit", limit)
    memory.require({"the linear program": 60.0 * (mdp.rows.n_entries + mdp.n_rows)}, "Use a smaller model.")
    if not mdp.n_rows and most >= 0.0:  # all states are terminal
        return ConstrainedSolution(np.zeros((mdp.n_states, mdp.n_actions)), 0.0, 0.0, 0.0)
    reward = mdp.rows.expected_reward()
    solution = _program(mdp, reward, c, most)
    if solution.status == 2:
        least = _program(mdp, -c, c, np.inf)
        found = f"; the least possible cost is {least.fun:.6g}" if least.status == 0 else ""
        raise ValueError(f"limit is {most:g}, and no policy costs that little{found}. Raise the limit.")
    if solution.status != 0:
        raise ValueError(
            f"The linear program has no solution: {solution.message} Without discounting, all policies must terminate."
        )
    multiplier = max(-float(solution.ineqlin.marginals[0]), 0.0)
    x = np.maximum(solution.x, 0.0)
    visits = np.bincount(mdp.row_state, x, minlength=mdp.n_states)[mdp.row_state]
    # the duals are the values of r - lambda c; unreached states take the first action that is greedy for them
    live, values, best = np.flatnonzero(~mdp.terminal), np.zeros(mdp.n_states), np.zeros(mdp.n_rows)
    values[live] = -np.asarray(solution.eqlin.marginals)
    q = reward - multiplier * c + mdp.discount * (mdp.matrix() @ values)
    table = mdp.by_action(q, fill=-np.inf)[live].argmax(axis=1)
    best[[mdp.row_of(int(s), int(a)) for s, a in zip(live, table, strict=True)]] = 1.0
    policy = mdp.by_action(np.where(visits > 1e-12, x / np.where(visits > 0.0, visits, 1.0), best), fill=0.0)
    start = start_weights(mdp)
    costs = replace(mdp, rows=replace(mdp.rows, reward=c))
    return ConstrainedSolution(
        policy, float(start @ policy_value(mdp, policy)), float(start @ policy_value(costs, policy)), multiplier
    )


def _program(mdp: MDP, reward: FloatArray, cost: FloatArray, limit: float) -> Any:
    """Solves the linear program over occupancies of pairs, with one balance for each non-terminal state."""
    live = np.flatnonzero(~mdp.terminal)
    taken = csr_array((np.ones(mdp.n_rows), (mdp.row_state, np.arange(mdp.n_rows))), shape=(mdp.n_states, mdp.n_rows))
    balance = (taken - mdp.discount * mdp.matrix().T)[live]
    within = {} if limit == np.inf else {"A_ub": cost[None, :], "b_ub": [limit]}
    return linprog(-reward, A_eq=balance, b_eq=start_weights(mdp)[live], bounds=(0, None), method="highs", **within)
