"""Exact soft robustness: the mean model, and values of a policy under both ways of drawing models.

    drawn in every step       J = value in pbar = sum_k shares_k p_k
    drawn once per episode    J = sum_k shares_k J_k

The first is an ordinary model, whose Bellman equation the soft-robust value satisfies [Derman2018]. The second is not:
if states recur, the past is evidence about the model, and the two values differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.evaluate import policy_rows, policy_value, start_weights
from urbe.mdp.model import MDP, check_model, check_same_pairs
from urbe.mdp.rows import Rows
from urbe.types import FloatArray


def soft_robust_model(models: Sequence[MDP], shares: ArrayLike) -> MDP:
    """The model with mean rows and mean rewards r(s, a), equivalent to models that are drawn in every step.

    `urbe.solve(soft_robust_model(models, shares))` is the soft-robust optimum.

    Args:
      models: with the same pairs; successors may differ. Discount, labels and first states are those of the first.
      shares: `(K,)` weight of each, summing to one.

    >>> import urbe
    >>> calm, wild = urbe.library.riverswim(3), urbe.library.riverswim(3, discount=0.95)
    >>> soft_robust_model([calm, wild], [0.5, 0.5])
    MDP(3 states, 6 rows, 10 entries, discount 0.95)
    """
    weights, first = check_members(models, shares), models[0]
    matrix = sum(weight * model.matrix() for weight, model in zip(weights, models, strict=True)).tocsr()
    reward = np.sum([w * model.rows.expected_reward() for w, model in zip(weights, models, strict=True)], axis=0)
    return first.with_rows(Rows.of_matrix(matrix, reward))


def soft_robust_value(
    models: Sequence[MDP],
    shares: ArrayLike,
    policy: ArrayLike,
    *,
    draw: Literal["step", "episode"] = "step",
) -> float:
    """Computes the discounted value of a policy from the start, exactly.

    Args:
      models, shares: see `soft_robust_model`.
      policy: `(S,)` actions, -1 at terminal states, or `(S, A)` probabilities.
      draw: whether the model is drawn in every step, or once per episode.
    """
    weights = check_members(models, shares)
    if checks.one_of("draw", draw, ("step", "episode")) == "step":
        model = soft_robust_model(models, weights)
        return float(start_weights(model) @ policy_value(model, policy))
    each = [float(start_weights(models[0]) @ policy_value(model, policy)) for model in models]
    return float(weights @ each)


def average_reward(mdp: MDP, policy: ArrayLike) -> float:
    """Computes the exact long-run reward per step of a policy; a terminal state is a restart that takes no time.

    Args:
      mdp: with one recurrent class under the policy; with an initial distribution if there are terminal states.
      policy: `(S,)` actions, -1 at terminal states, or `(S, A)` probabilities.

    >>> import urbe
    >>> round(average_reward(urbe.library.riverswim(3), [1, 1, 1]), 4)
    0.4468
    """
    weights = policy_rows(mdp, policy)
    p = np.zeros((mdp.n_states, mdp.n_states))
    rows = mdp.rows
    state = mdp.row_state[rows.entry_row]
    np.add.at(p, (state, rows.successor), weights[rows.entry_row] * rows.probability)
    reward = np.bincount(mdp.row_state, weights * rows.expected_reward(), minlength=mdp.n_states)
    live, ends = np.flatnonzero(~mdp.terminal), np.flatnonzero(mdp.terminal)
    chain = p[np.ix_(live, live)]
    if len(ends):
        if mdp.initial is None:
            raise ValueError("The model has terminal states but no initial distribution; build it with initial=.")
        chain = chain + np.outer(p[np.ix_(live, ends)].sum(axis=1), mdp.initial[live])
    # stationary: d P = d, sum d = 1
    n = len(live)
    system = np.vstack([chain.T - np.eye(n), np.ones(n)])
    stationary = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    if np.abs(system @ stationary - np.append(np.zeros(n), 1.0)).max() > 1e-8 or np.linalg.matrix_rank(system) < n:
        raise ValueError("The policy has several recurrent classes of states, so there is no single average reward.")
    return float(stationary @ reward[live])


def check_members(models: Sequence[MDP], shares: ArrayLike) -> FloatArray:
    """Returns the weights `(K,)`; raises unless the models have the same pairs."""
    checks.sequence("models", models, "a list of at least one model")
    for k, model in enumerate(models):
        check_model(f"models[{k}]", model)
        check_same_pairs(f"models[{k}]", model, "models[0]", models[0])
    return checks.distribution("shares", shares, len(models))
