"""Robust approximate dynamic programming: values linear in features, for state spaces too large for tables.

    Phi w  =  Pi_d T_pi (Phi w),      Pi_d the projection on the features, weighted by the visit distribution d

is iterated; each step is one weighted least-squares fit [TamarMannorXu2014]. Convergence is known for optimal stopping:
with V = max(payoff, Phi w), T of the continuing action is then iterated. The projection may expand what T contracts;
it does not if nature and the policy stay close to the exploration,

    gamma p(s'|s, pi(s)) <= beta phat(s'|s, explore(s))   for every p of the set,      beta < sqrt(gamma),

since then ||T u - T v||_d <= beta / sqrt(gamma) ||u - v||_d for d the discounted visits of the exploration. The
condition is checked, and growing changes are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.operator import AmbiguitySet, Operator, PolicyOperator, PolicyRows
from urbe.mdp.evaluate import occupancy, policy_rows, start_weights
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.solvers.methods import check_problem
from urbe.solvers.solve import given_policy
from urbe.types import BoolArray, FloatArray, IntArray

GROWTH, LOOK_BACK = 100.0, 10
"""The iteration diverges if a change exceeds GROWTH times the first and still grows over LOOK_BACK steps."""


class Diverged(ArithmeticError):
    """The projected iteration does not converge; the message says what was checked and what to do."""


@dataclass(frozen=True, eq=False, repr=False)
class ApproximateSolution:
    """The result of `approximate_values`.

    Attributes:
      weights: `(k,)` w.
      value: `(S,)` Phi w, or the payoff where stopping is better; zero where terminal.
      policy: `(S,)` the given policy, or the stopping policy; `urbe.evaluate_policy` certifies its value.
      modulus: beta / sqrt(gamma) as in the module: below 1 the limit exists and is unique, and its error in ||.||_d is
        at most `amplification` times that of the best fit. At 1 or more there is no guarantee.
      steps: number of fits.
      changes: `(steps,)` ||Phi (w_new - w_old)||_d of each.
    """

    weights: FloatArray
    value: FloatArray
    policy: IntArray | FloatArray
    modulus: float
    steps: int
    changes: FloatArray

    @property
    def amplification(self) -> float:
        """1 / (1 - modulus): ||Phi w - V||_d is at most this many times ||Pi_d V - V||_d; infinite without a proof."""
        return 1.0 / (1.0 - self.modulus) if self.modulus < 1.0 else np.inf

    def __repr__(self) -> str:
        error = (
            f"error at most {self.amplification:.3g} times that of the best fit" if self.modulus < 1.0 else "no bound"
        )
        return (
            f"ApproximateSolution({len(self.weights)} features of {len(self.value)} states, {self.steps} fits, {error})"
        )


def approximate_values(
    mdp: MDP,
    features: ArrayLike,
    nature: AmbiguitySet | None = None,
    *,
    policy: ArrayLike | None = None,
    explore: ArrayLike | None = None,
    samples: int | None = None,
    seed: int | np.random.Generator | None = None,
    tolerance: float = 1e-8,
    max_steps: int = 10_000,
) -> ApproximateSolution:
    """Approximates the robust values of a policy, or of optimal stopping, by linear functions of features.

    Args:
      mdp: the model; visits start from its `initial`, or uniformly over states without one.
      features: `(S, k)` features of each state.
      nature: the ambiguity set, e.g. `L1Ball(0.1)`; None for the nominal model.
      policy: the policy to evaluate, `(S,)` actions or `(S, A)` probabilities. None for optimal stopping: every state
        then has at most one action that continues, and the others lead only to terminal states.
      explore: the policy whose visits weight the fit; by default the evaluated policy, or always continuing.
      samples: number of visits drawn for the fit; None weights all states by their expected visits.
      seed: seed of the draws.
      tolerance: largest last change, relative to the values.
      max_steps: maximum number of fits.

    Raises:
      Diverged: the changes grow, or exceed the tolerance after `max_steps`.

    >>> import numpy as np, urbe
    >>> put = urbe.library.american_put(20, discount=0.999)
    >>> exact = urbe.solve(put, urbe.L1Ball(0.1))
    >>> found = urbe.approximate_values(put, np.eye(put.n_states), urbe.L1Ball(0.1))
    >>> bool(abs(found.value - exact.value).max() < 1e-6)
    True
    """
    check_problem(mdp, nature, None)
    phi = checks.float_array("features", features, ndim=2)
    if len(phi) != mdp.n_states:
        raise ValueError(f"features has {len(phi)} rows, expected one for each of {mdp.n_states} states.")
    memory.require({"the fit": 24.0 * phi.size}, "Use fewer features.")
    set_ = Exact() if nature is None else nature
    operator = set_.operator(mdp)
    if policy is None:
        taken, payoff, stop = _stopping(mdp)
    else:
        taken, payoff, stop = given_policy(mdp, policy), np.full(mdp.n_states, -np.inf), None
    visited = policy_rows(mdp, explore) if explore is not None else taken.weights(mdp.n_rows)
    if stop is not None and explore is None:
        visited[stop[np.isin(mdp.row_state[stop], mdp.row_state[taken.rows], invert=True)]] = 1.0
    weights = _visits(mdp, visited)
    modulus = _modulus(mdp, set_, taken, visited)
    if samples is not None:
        drawn = np.random.default_rng(seed).choice(mdp.n_states, checks.whole_number("samples", samples, 1), p=weights)
        weights = np.bincount(drawn, minlength=mdp.n_states) / len(drawn)
    live = np.isin(np.arange(mdp.n_states), mdp.row_state[taken.rows])
    facing, _ = operator.against(taken)
    w, changes = _fit(facing, phi, weights, live, payoff, modulus, tolerance, max_steps)
    value = _value(phi, w, live, payoff)
    if stop is None:
        return ApproximateSolution(w, value, taken.actions(mdp), modulus, len(changes), changes)
    actions = np.full(mdp.n_states, -1, dtype=mdp.action.dtype)
    actions[mdp.row_state[taken.rows]] = mdp.action[taken.rows]
    first = stop[::-1]  # among equally good stopping actions, the first is kept
    worth = mdp.rows.expected_reward()[first]
    best = (worth >= payoff[mdp.row_state[first]]) & (worth >= value[mdp.row_state[first]])
    actions[mdp.row_state[first[best]]] = mdp.action[first[best]]
    return ApproximateSolution(w, value, actions, modulus, len(changes), changes)


def _fit(
    facing: PolicyOperator,
    phi: FloatArray,
    weights: FloatArray,
    live: BoolArray,
    payoff: FloatArray,
    modulus: float,
    tolerance: float,
    max_steps: int,
) -> tuple[FloatArray, FloatArray]:
    """Iterates the fit; returns w and the change of each step."""
    at = np.flatnonzero(live & (weights > 0.0))
    if not len(at):
        raise ValueError("No visited state has an action that continues: give explore=, or more samples.")
    share = np.sqrt(weights[at])
    solver = np.linalg.pinv(share[:, None] * phi[at])
    w, memory_ = np.zeros(phi.shape[1]), None
    changes: list[float] = []
    for _ in range(max_steps):
        target, memory_ = facing.apply(_value(phi, w, live, payoff), memory_)
        new = solver @ (share * target[at])
        with np.errstate(over="ignore", invalid="ignore"):
            changes.append(float(np.linalg.norm(share * (phi[at] @ (new - w)))))
            size = float(np.linalg.norm(share * (phi[at] @ new)))
        w = new
        if changes[-1] <= tolerance * max(size, np.finfo(float).tiny):
            return w, np.array(changes)
        grown = len(changes) > LOOK_BACK and changes[-1] > max(GROWTH * changes[0], changes[-LOOK_BACK])
        if grown or not np.isfinite(changes[-1]):
            break
    found = f"After {len(changes)} fits the values still change by {changes[-1]:.3g}, {changes[0]:.3g} at first."
    if modulus < 1.0:
        raise Diverged(f"{found} The modulus is {modulus:.6g}: give a larger tolerance or max_steps, or more samples.")
    raise Diverged(
        f"{found} The contraction condition does not hold here: its modulus is {modulus:.3g}, expected below 1. "
        "Explore with the policy itself, use a smaller radius or discount, or one-hot features, which do not need it."
    )


def _value(phi: FloatArray, w: FloatArray, live: BoolArray, payoff: FloatArray) -> FloatArray:
    """`(S,)` the values represented by the weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.maximum(np.where(live, phi @ w, -np.inf), payoff)
    return np.where(np.isneginf(value), 0.0, value)


def _stopping(mdp: MDP) -> tuple[PolicyRows, FloatArray, IntArray]:
    """Returns the rows that continue, at most one per state; `(S,)` the best payoff of stopping; the rows that stop."""
    ends = mdp.rows.row_sums((~mdp.terminal[mdp.rows.successor] & (mdp.rows.probability > 0.0)).astype(float)) == 0.0
    going, stop = np.flatnonzero(~ends), np.flatnonzero(ends)
    counts = np.bincount(mdp.row_state[going], minlength=mdp.n_states)
    if (counts > 1).any():
        state = int(np.argmax(counts > 1))
        raise ValueError(
            f"State {state} has {counts[state]} actions that continue, expected at most one for optimal stopping. "
            "Give policy= to evaluate a policy instead."
        )
    if mdp.rows.rewards_successors and len(stop) and (mdp.rows.length[stop] > 1).any():
        raise ValueError("Rewards of stopping depend on the successor; give the expected reward r(s, a) there.")
    payoff = np.full(mdp.n_states, -np.inf)
    np.maximum.at(payoff, mdp.row_state[stop], mdp.rows.expected_reward()[stop])
    return PolicyRows(going), payoff, stop


def _visits(mdp: MDP, visited: FloatArray) -> FloatArray:
    """`(S,)` the share of discounted visits to each non-terminal state."""
    d = np.where(mdp.terminal, 0.0, occupancy(mdp, mdp.by_action(visited, fill=0.0), start_weights(mdp)))
    d = np.maximum(d, 0.0)
    return np.asarray(d / d.sum())


def _modulus(mdp: MDP, nature: AmbiguitySet, taken: PolicyRows, visited: FloatArray) -> float:
    """beta / sqrt(gamma): the largest gamma p / phat over the successors of the policy's rows, in the worst case."""
    rows = mdp.rows
    largest = largest_probabilities(mdp, nature)
    share = taken.weights(mdp.n_rows)
    key = mdp.row_state[rows.entry_row].astype(np.int64) * mdp.n_states + rows.successor
    counts = ~mdp.terminal[rows.successor] & (share > 0.0)[rows.entry_row] & (largest > 0.0)
    pairs, at = np.unique(key, return_inverse=True)
    target = np.bincount(at[counts], (share[rows.entry_row] * largest)[counts], minlength=len(pairs))
    explored = np.bincount(at, visited[rows.entry_row] * rows.probability, minlength=len(pairs))
    needed = target > 0.0
    if not needed.any():
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.sqrt(mdp.discount) * (target[needed] / explored[needed]).max())


def largest_probabilities(mdp: MDP, nature: AmbiguitySet) -> FloatArray:
    """`(E,)` the largest probability that nature can give to each listed successor of a row.

    Entries of all rows are renamed by their position, and nature then prefers one position at a time. This is
    equivalent for sets that depend only on probabilities, not on a metric between states.
    """
    rows = mdp.rows
    position = (np.arange(rows.n_entries) - rows.entry_start[:-1][rows.entry_row]).astype(rows.successor.dtype)
    renamed = Rows(mdp.n_states, rows.entry_start, position, rows.probability, np.zeros(rows.n_rows))
    live = np.full(mdp.n_states, False)
    clock: Operator = nature.operator(replace(mdp, rows=renamed, discount=1.0)).clock()
    out = np.zeros(rows.n_entries)
    for k in range(rows.longest):
        v = live.astype(np.float64)
        v[k] = 1.0
        at = np.flatnonzero(position == k)
        out[at] = clock.improve(v).q[rows.entry_row[at]] - 1.0
    return np.clip(out, 0.0, 1.0)
