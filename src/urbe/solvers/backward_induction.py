"""Solve finite horizons: V_H = 0, V_t = T V_{t+1}, or T of a given policy; rounding errors add up backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from urbe.ambiguity.operator import Operator, PolicyRows
from urbe.solvers.bounds import require_finite_values
from urbe.solvers.iterate import FixedPolicy, Progress
from urbe.solvers.solution import Solution, solved_over
from urbe.types import FloatArray
from urbe.workers import Workers


def backward_induction(
    operator: Operator,
    horizon: int,
    workers: Workers,
    progress: Progress | None,
    given: Sequence[PolicyRows] | None = None,
) -> Solution:
    """Solves `horizon` decisions, or evaluates a policy `given` for each: values `(H + 1, S)`, policies `(H, ...)`."""
    mdp = operator.mdp
    require_finite_values(mdp, float(horizon))
    value = np.zeros((horizon + 1, mdp.n_states))
    error = np.zeros(horizon + 1)
    growth = operator.modulus or mdp.discount * (1.0 + mdp.rows.mass_error)
    q: list[FloatArray] = []
    policies: list[PolicyRows] = []
    memory = None
    for step in range(horizon - 1, -1, -1):
        if given is None:
            value[step], of_rows, policy, memory = operator.improve(value[step + 1], memory, workers)
            error[step] = operator.error(value[step + 1])
        else:
            policy = given[step]
            following, known = operator.against(policy, memory)  # the memory of all rows, since each step has its own
            value[step], _ = following.apply(value[step + 1], known, workers)
            of_rows, memory = operator.action_values(value[step + 1], value[step + 1], policy, memory)
            error[step] = FixedPolicy(operator, policy).error(value[step + 1])
        error[step] += growth * error[step + 1]
        q.append(mdp.by_action(of_rows, fill=-np.inf))
        policies.append(policy)
        if progress is not None:
            progress(horizon - step, float(error[step]))
    margin = np.where(mdp.terminal, 0.0, error[:, None])
    lower, upper = value - margin, value + margin
    return Solution(
        value=value,
        q=np.array(q[::-1]),
        policy=np.array([policy.actions(mdp) for policy in policies[::-1]]),
        lower=lower,
        upper=upper,
        converged=True,
        status=solved_over(horizon, float((upper - lower).max(initial=0.0))),
        steps=horizon,
        sweeps=0,
        operator=operator,
        policies=tuple(policies[::-1]),
        at=value[1:],
        memory=memory,
        optimal=given is None,
    )
