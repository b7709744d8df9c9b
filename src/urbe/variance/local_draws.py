"""Local uncertainties from posterior draws of the centre: the paper's own term, and the exact one.

Each draw k is a model with values V_k of the plan's policy (against nature around that draw) and rows q_k, nature's
answer to them. Both forms compute these for all draws during the recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.ambiguity.operator import Operator, PolicyRows, midrange
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray
from urbe.variance.local import LocalStep, LocalTerm, Problem

MOST_ROUNDS = 1000
"""Rounds of policy iteration by nature; it ends after a handful, as each strictly lowers some value."""


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """nu = Qmax^2 sum_j Var[q_j] / E[q_j] over the worst-case rows q of posterior draws [Derman2019], Lemma 4.1.

    Terms with E[q_j] = 0 are left out: the lemma divides by them, yet worst cases often leave a successor no mass.
    The variance of an uncertain reward is added [ODonoghue2018].

    Args:
      centres: `(K, E)` posterior draws of all rows, K at least 2: `posterior.draws(rng, 200)`.
    """

    centres: ArrayLike

    def bind(self, problem: Problem) -> LocalTerm:
        walk = _walk(problem, _draws(problem, self.centres))
        scale, reward = problem.largest_value**2, problem.reward_variance
        n_states, n_rows = problem.centre.n_states, problem.centre.n_rows

        def term(step: LocalStep) -> FloatArray:
            answers = [answer for _, answer in walk(step)]
            key = np.concatenate([rows.entry_row.astype(np.int64) * n_states + rows.successor for rows in answers])
            successor, at = np.unique(key, return_inverse=True)  # draws may lead to different successors
            q = np.concatenate([rows.probability for rows in answers])
            mean = np.bincount(at, q, len(successor)) / len(answers)
            listed = np.bincount(at, minlength=len(successor))
            squares = np.bincount(at, (q - mean[at]) ** 2, len(successor)) + (len(answers) - listed) * mean**2
            ratio = np.divide(squares / (len(answers) - 1), mean, out=np.zeros(len(mean)), where=mean > 0.0)
            nu: FloatArray = scale * np.bincount(successor // n_states, ratio, n_rows).astype(np.float64) + reward
            return nu

        return term


@dataclass(frozen=True, eq=False)
class ExactUBE:
    """nu = gamma^2 Var[p . V] - gamma^2 E[Var_{s' ~ p}(V_p(s') - V(s'))], plus the variance of an uncertain reward.

    With it u is the posterior variance itself, not a bound, if rows are independent and no state is met twice
    [Luis2023]. V is the value at the posterior mean, V_p that of a draw p. nu may be negative. Nature must have no
    choice (None, or a set of radius 0).

    Args:
      centres: `(K, E)` equally likely kernels on the entries of the model: `posterior.draws(rng, 1000)`, or all of
        them if there are finitely many.
    """

    centres: ArrayLike

    def bind(self, problem: Problem) -> LocalTerm:
        if not problem.operator.singleton:
            raise ValueError(
                f"local=ExactUBE(...) is for a nature without a choice, but nature is {problem.set}. Give nature=None, "
                "or local=Calibrated()."
            )
        walk = _walk(problem, _draws(problem, self.centres))
        gamma, reward = problem.centre.discount, problem.reward_variance
        rows = problem.centre.rows

        def term(step: LocalStep) -> FloatArray:
            z = rows.successor_values(gamma * (step.v - midrange(step.v)))
            means, doubts = [], []
            for value, answer in walk(step):
                away = (gamma * (value - step.v))[answer.successor]
                means.append(answer.row_sums(answer.probability * z))
                first = answer.row_sums(answer.probability * away)
                doubts.append(answer.row_sums(answer.probability * away**2) - first**2)
            nu: FloatArray = np.var(means, axis=0) - np.mean(doubts, axis=0) + reward
            return nu

        return term


Walk = Callable[[LocalStep], list[tuple[FloatArray, Rows]]]
"""Maps a step to the successor values of each draw and to nature's answer to them."""


def _walk(problem: Problem, models: list[MDP]) -> Walk:
    """The values of each draw under the plan's policy, carried from one step to the one before."""
    operators = [problem.set.operator(model) for model in models]
    after: list[FloatArray] = []

    def walk(step: LocalStep) -> list[tuple[FloatArray, Rows]]:
        policy = step.policy
        if policy is None:
            values = [np.zeros(problem.centre.n_states) for _ in models]
        elif problem.horizon is None:
            values = [_worst_value(operator, policy, step.v) for operator in operators]
        else:
            values = [operator.against(policy)[0].apply(v)[0] for operator, v in zip(operators, after, strict=True)]
        after[:] = values
        return [
            (v, operator.kernel(v, operator.improve(v).policy if policy is None else policy))
            for operator, v in zip(operators, values, strict=True)
        ]

    return walk


def _worst_value(operator: Operator, policy: PolicyRows, v: FloatArray) -> FloatArray:
    """`(S,)` the policy's value against nature, by policy iteration of nature from v: exact up to rounding."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import spsolve

    following, memory = operator.against(policy)
    for _ in range(MOST_ROUNDS):
        system = following.linear_system(v, memory)
        matrix = eye_array(len(v), format="csc") - operator.mdp.discount * system.listed()
        new: FloatArray = spsolve(matrix.tocsc(), system.reward)
        done = np.abs(new - v).max(initial=0.0) <= 1e-11 * max(1.0, float(np.abs(new).max(initial=0.0)))
        v = new
        if done:
            break
    return v


def _draws(problem: Problem, centres: ArrayLike) -> list[MDP]:
    array = checks.float_array("centres", centres)
    expected = problem.posterior.model.rows.n_entries
    if array.ndim != 2 or array.shape[1] != expected or len(array) < 2:
        raise ValueError(
            f"centres has shape {array.shape}, expected at least two draws of ({expected},) probabilities, one per "
            "successor of the model: posterior.draws(rng, 200)."
        )
    checks.non_negative("centres", array)
    reward = None if problem.posterior.rewards is None else problem.posterior.rewards.mean
    return [problem.posterior.model_with(each, reward) for each in array]
