"""Evaluate a policy on a model exactly, by one sparse linear solve.

    value      v = r_pi + gamma P_pi v
    occupancy  d = mu   + gamma P_pi' d,   so that   mu . v = d . r_pi

P_pi has empty rows at terminal states. The factorisation is direct (sparse LU): exact up to rounding for any
discount, meant for models where it fits in memory (chains, grids, a few thousand states of a random graph).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.frames import RowError
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST_STEPS = 1e10
"""Solutions lose about log10(expected steps) of 16 digits; beyond this fewer than six would be left."""


def policy_value(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """Computes v = (I - gamma P_pi)^-1 r_pi.

    Args:
      mdp: the model.
      policy: `(S,)` action ids with -1 at terminal states, or `(S, A)` probabilities.

    Returns:
      `(S,)` values, zero at terminal states.

    Raises:
      ValueError: the policy does not fit the model, or the discount is 1 and the policy may never end.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0, terminal=[1])
    >>> policy_value(mdp, [0, -1])
    array([2., 0.])
    """
    weights = policy_rows(mdp, policy)
    taken = weights * mdp.rows.expected_reward()
    reward = np.bincount(mdp.row_state, taken, minlength=mdp.n_states).astype(np.float64, copy=False)
    return _solver(mdp, policy_matrix(mdp, weights))(reward)


def occupancy(mdp: MDP, policy: ArrayLike, initial: ArrayLike | None = None) -> FloatArray:
    """Computes d(s) = sum_t gamma^t Pr(s_t = s), the discounted number of visits.

    It sums to 1 / (1 - gamma) without terminal states. A terminal state is visited once, on entering it; with discount
    1 its occupancy is the probability of ending there.

    Args:
      mdp: the model.
      policy: `(S,)` action ids with -1 at terminal states, or `(S, A)` probabilities.
      initial: `(S,)` distribution of the first state; by default the model's own.

    Returns:
      `(S,)` occupancies.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]], discount=1.0, terminal=[1])
    >>> occupancy(mdp, [0, -1], initial=[1.0, 0.0])
    array([2., 1.])
    """
    first = mdp.initial if initial is None else initial
    if first is None:
        raise ValueError("The model has no initial distribution; give initial=, one probability per state.")
    start = checks.distribution("initial", first, mdp.n_states)
    return _solver(mdp, policy_matrix(mdp, policy_rows(mdp, policy)), transposed=True)(start)


def start_weights(mdp: MDP) -> FloatArray:
    """`(S,)` the model's initial distribution; without one, the same weight on every state that is not terminal."""
    if mdp.initial is not None:
        return mdp.initial
    return np.where(mdp.terminal, 0.0, 1.0 / max(int(np.count_nonzero(~mdp.terminal)), 1))


def policy_rows(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """`(R,)` the probability with which the policy takes each row; 0 or 1 for a deterministic policy.

    Args:
      mdp: the model.
      policy: `(S,)` actions by id or label, with -1 or anything at terminal states; `{state: action}`; or `(S, A)`
        probabilities, zero at terminal states.

    >>> import numpy as np, urbe
    >>> mdp = urbe.MDP.from_dense(np.full((2, 2, 2), 0.5), 0.0, discount=0.9)
    >>> policy_rows(mdp, [1, 0]), policy_rows(mdp, {0: 1, 1: 0})
    (array([0., 1., 1., 0.]), array([0., 1., 1., 0.]))
    """
    if policy_dimensions(mdp, policy) == 1:
        weights = np.zeros(mdp.n_rows)
        weights[chosen_rows(mdp, policy)] = 1.0
        return weights
    return _randomised(mdp, checks.float_array("policy", policy, ndim=2), checks.sum_tolerance(policy))


def policy_dimensions(mdp: MDP, policy: ArrayLike | Mapping[Any, Any]) -> int:
    """Returns 1 for actions, also by label or `{state: action}`, and 2 for probabilities; raises for anything else."""
    if isinstance(policy, Mapping):
        return 1
    try:
        ndim = np.ndim(policy)
    except ValueError:  # a list of lists of several lengths
        ndim = -1
    if ndim not in (1, 2):
        found = f"has {ndim} dimensions" if ndim > 2 else f"is {checks.shown(policy)}"
        own = " Of a solution, give its `policy`." if hasattr(policy, "policy") else ""
        raise ValueError(
            f"policy {found}, expected ({mdp.n_states},) action ids or ({mdp.n_states}, {mdp.n_actions}) "
            f"probabilities.{own}"
        )
    return ndim


def _action_ids(mdp: MDP, policy: Any) -> Any:
    """The policy, with ids in place of labels if it has any."""
    if isinstance(policy, Mapping):
        states = checks.int_array("policy", mdp.labels.state_ids("policy", list(policy)), 0, mdp.n_states, "state")
        ids = np.full(mdp.n_states, -1, dtype=np.int64)
        acting = ~mdp.terminal[states]  # anything may be given at terminal states
        ids[states[acting]] = mdp.labels.action_ids(
            "policy", [a for a, acted in zip(policy.values(), acting, strict=True) if acted]
        )
        left = np.setdiff1d(np.flatnonzero(~mdp.terminal), states)
        if len(left):
            raise ValueError(
                f"policy has no action for {checks.listing(mdp.labels.state_texts(left))}, expected one for each state."
            )
        return ids
    texts = np.ndim(policy) == 1 and any(isinstance(action, str) for action in policy)
    if not texts or mdp.labels.actions is None or len(policy) != mdp.n_states:
        return policy
    ids = np.full(mdp.n_states, -1, dtype=np.int64)
    acts = np.flatnonzero(~mdp.terminal)
    try:
        ids[acts] = mdp.labels.action_ids("policy", [policy[s] for s in acts])
    except RowError as error:
        raise RowError("policy", int(acts[error.row]), error.message) from None
    return ids


def chosen_rows(mdp: MDP, policy: ArrayLike) -> IntArray:
    """The row a deterministic policy takes in each state that is not terminal, in the order of the states."""
    ids = checks.int_array("policy", _action_ids(mdp, policy), -1, None, "action, -1 at terminal states")
    if len(ids) != mdp.n_states:
        raise ValueError(f"policy has {len(ids)} entries, expected one action for each of {mdp.n_states} states.")
    taken = np.flatnonzero(mdp.action == ids[mdp.row_state])
    found = np.zeros(mdp.n_states, dtype=bool)
    found[mdp.row_state[taken]] = True
    wrong = np.where(mdp.terminal, ids != -1, ~found)
    if wrong.any():
        state = int(np.argmax(wrong))
        name = mdp.labels.action(int(ids[state])) if 0 <= ids[state] < mdp.n_actions else ids[state]
        raise ValueError(f"policy[{state}] is {name}, but {_choices(mdp, state)}.")
    return taken


def policy_matrix(mdp: MDP, weights: FloatArray) -> csr_array:
    """`(S, S)` transition matrix P_pi of the policy that takes each row with probability `weights`; lists no zeros."""
    from scipy.sparse import csr_array

    chosen = np.flatnonzero(weights)
    start = np.searchsorted(chosen, mdp.row_start)
    return csr_array((weights[chosen], chosen, start), shape=(mdp.n_states, mdp.n_rows)) @ mdp.matrix()


def _randomised(mdp: MDP, policy: FloatArray, tolerance: float) -> FloatArray:
    shape = (mdp.n_states, mdp.n_actions)
    if policy.shape != shape:
        raise ValueError(f"policy has shape {policy.shape}, expected {shape} probabilities.")
    checks.non_negative("policy", policy)
    weights: FloatArray = policy[mdp.row_state, mdp.action]
    stray = policy.copy()
    stray[mdp.row_state, mdp.action] = 0.0
    if stray.any():
        state, action = (int(i) for i in np.argwhere(stray)[0])
        raise ValueError(f"policy[{state}, {action}] is {stray[state, action]:g}, but {_choices(mdp, state)}.")
    total = np.bincount(mdp.row_state, weights, minlength=mdp.n_states)
    wrong = ~mdp.terminal & (np.abs(total - 1.0) > tolerance)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise ValueError(
            f"policy[{state}] sums to {total[state]:.12g}, expected 1. "
            f"{checks.some(int(wrong.sum()), mdp.n_states, 'state', 'states')} without a distribution over actions."
        )
    return weights / total[mdp.row_state]


def _choices(mdp: MDP, state: int) -> str:
    """Describes the actions of a state, for the end of an error message."""
    if mdp.terminal[state]:
        name = mdp.labels.state(state)
        return f"state {name} is terminal: expected -1 in a list of actions, zeros in a table of probabilities"
    first, last = int(mdp.row_start[state]), int(mdp.row_start[state + 1])
    actions = mdp.labels.action_texts(mdp.action[first:last])
    return f"state {mdp.labels.state(state)} has the actions {checks.listing(actions, 20)}"


def _solver(mdp: MDP, matrix: csr_array, transposed: bool = False) -> Callable[[FloatArray], FloatArray]:
    """x -> (I - gamma P)^-1 x, or with P' in place of P."""
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    if mdp.discount == 1.0:
        _must_end(mdp, matrix)
    try:
        factors = splu((eye_array(mdp.n_states, format="csc") - mdp.discount * matrix).tocsc())
    except RuntimeError:  # SuperLU: the factor is exactly singular
        raise ValueError(_too_long("more steps than double precision can resolve")) from None
    if (1.0 - mdp.discount) * _MOST_STEPS < 1.0:
        steps = factors.solve(np.ones(mdp.n_states))
        if not (steps.min() > 0.0 and steps.max() < _MOST_STEPS):
            raise ValueError(_too_long(f"about {np.abs(steps).max():.0e} steps"))

    def solve(right_side: FloatArray) -> FloatArray:
        solution: FloatArray = factors.solve(right_side, "T" if transposed else "N")
        return solution

    return solve


def _too_long(steps: str) -> str:
    return (
        f"The policy runs for {steps} before it ends or is discounted away: the linear system is singular to "
        "double precision. Use a smaller discount."
    )


def _must_end(mdp: MDP, matrix: csr_array) -> None:
    """Raises if some state reaches no terminal state under the policy, since undiscounted sums may then diverge."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    # breadth-first search against the arrows, from one extra node that stands for every terminal state
    n_states = mdp.n_states
    arrows = matrix.tocoo()
    ends = np.flatnonzero(mdp.terminal)
    tail = np.concatenate((arrows.col, np.full(len(ends), n_states)))
    head = np.concatenate((arrows.row, ends))
    backward = coo_array((np.ones(len(tail)), (tail, head)), shape=(n_states + 1, n_states + 1)).tocsr()
    lost = np.ones(n_states + 1, dtype=bool)
    lost[breadth_first_order(backward, n_states, return_predecessors=False)] = False
    if lost.any():
        states = np.flatnonzero(lost).tolist()
        raise ValueError(
            f"With discount 1 the policy must reach a terminal state; from {len(states)} of {n_states} states it never "
            f"does: {checks.listing(states)}. Use a discount below 1 or another policy."
        )
