"""Moment constraints on nature: expected sums of features under a reference policy, over a horizon [Tirinzoni2018].

    | E_{tau, reference}[ sum_{t < T} phi_j(s_t, a_t, s_{t+1}) ] - moments_j |  <=  slack_j,      j = 1 .. d

Dynamics tau may depend on the whole history. The sums are means over the trajectories of a log of that policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP, check_model
from urbe.mdp.transitions import Transitions, check_transitions
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class MomentConstraints:
    """The dynamics that agree with expected sums of features under a reference policy.

    Args:
      features: phi, `(E, d)` for the entries of the model's rows, `(S, A, d)` or `(S, A, S, d)`; d may be 0.
      moments: `(d,)` expected sums over the horizon.
      reference: `(S, A)` probabilities of the policy of the moments.
      horizon: T, number of steps.
      slack: tolerance of each sum: a number or `(d,)`, at least 0.
      penalty: of squared differences, `penalty > 0` lets sums be off by `penalty` times their multiplier.

    >>> import numpy as np, urbe
    >>> river = urbe.library.riverswim(3, discount=1.0)
    >>> even = np.full((3, 2), 0.5)
    >>> MomentConstraints.of(river, np.ones((3, 2, 1)), even, 5)
    MomentConstraints(1 moments over 5 steps)
    """

    features: Any
    moments: ArrayLike
    reference: ArrayLike
    horizon: int
    slack: ArrayLike = 0.0
    penalty: float = 0.0

    def __post_init__(self) -> None:
        moments, slack = checks.float_array("moments", self.moments, ndim=1), checks.float_array("slack", self.slack)
        if slack.shape not in ((), moments.shape):
            raise ValueError(
                f"slack has shape {slack.shape}, expected a number or one for each of {len(moments)} moments."
            )
        checks.non_negative("slack", slack)
        object.__setattr__(self, "moments", moments)
        object.__setattr__(self, "slack", np.broadcast_to(slack, moments.shape))
        checks.whole_number("horizon", self.horizon, 1)
        checks.number("penalty", self.penalty, 0.0, np.inf, closed=False) if self.penalty else None

    @staticmethod
    def of(mdp: MDP, features: Any, reference: ArrayLike, horizon: int, **options: Any) -> MomentConstraints:
        """Makes constraints with the exact moments of the reference policy in `mdp` itself.

        Args:
          mdp: the model, with an initial distribution.
          features, reference, horizon: see the class.
          options: `slack` and `penalty`.
        """
        check_model("mdp", mdp)
        phi = entry_features(mdp, features)
        weights = policy_rows(mdp, reference)
        mass, moments = initial_weights(mdp), np.zeros(phi.shape[1])
        rows = mdp.rows
        for _ in range(checks.whole_number("horizon", horizon, 1)):
            flow = (mass[mdp.row_state] * weights)[rows.entry_row] * rows.probability
            moments += flow @ phi
            mass = np.bincount(rows.successor, flow, minlength=mdp.n_states).astype(np.float64, copy=False)
        return MomentConstraints(features, moments, reference, horizon, **options)

    @staticmethod
    def fit(
        log: Transitions,
        mdp: MDP,
        features: Any,
        horizon: int,
        *,
        reference: ArrayLike | None = None,
        confidence: float | None = None,
        penalty: float = 0.0,
    ) -> MomentConstraints:
        """Makes constraints from logged trajectories of a policy: the mean over trajectories of their sums.

        Args:
          log: with the column `episode`; `terminated` where trajectories may end early.
          mdp: its pairs and feasible successors; probabilities are not read.
          features, horizon, penalty: see the class. Steps of a trajectory beyond the horizon are not read.
          reference: the acting policy; by default each state's frequencies of actions, uniform without data.
          confidence: gives each of d moments the slack z deviation / sqrt(N) + log(1 / q) range / N, where q is half of
            (1 - confidence) / d, z the normal quantile, and range that of the feature: the second term covers features
            that N trajectories rarely or never show. None gives no slack.

        Raises:
          ValueError: a trajectory ends before the horizon without terminating, or leaves the listed successors.
        """
        check_model("mdp", mdp)
        check_transitions("log", log)
        steps = checks.whole_number("horizon", horizon, 1)
        if log.episode is None:
            raise ValueError(
                "log has no column episode, expected one: moments are means over trajectories. Build the log with "
                "episode=, the number of each row's trajectory."
            )
        phi = entry_features(mdp, features)
        entry = _located(mdp, log := log.in_terms_of(mdp.labels))
        number, step = _places(np.asarray(log.episode), log.step)
        _check_lengths(log, number, step, steps)
        n, inside = int(number.max()) + 1, step < steps
        sums = np.zeros((n, phi.shape[1]))
        np.add.at(sums, number[inside], phi[entry[inside]])
        slack: FloatArray | float = 0.0
        if confidence is not None and phi.shape[1]:
            from scipy.stats import norm

            if n < 2:
                raise ValueError("log has one trajectory, expected at least two for a standard error.")
            each = (1.0 - checks.confidence(confidence)) / (2.0 * phi.shape[1])
            rare = np.maximum(phi.max(axis=0), 0.0) - np.minimum(phi.min(axis=0), 0.0)
            slack = norm.isf(each) * sums.std(axis=0, ddof=1) / np.sqrt(n) - np.log(each) * rare / n
        acted = _frequencies(mdp, log) if reference is None else reference
        return MomentConstraints(features, sums.mean(axis=0), acted, steps, slack, penalty)

    def __repr__(self) -> str:
        return f"MomentConstraints({np.size(self.moments)} moments over {self.horizon} steps)"


def initial_weights(mdp: MDP) -> FloatArray:
    """`(S,)` the distribution of initial states; raises if the model has none."""
    if mdp.initial is None:
        raise ValueError("The model has no initial distribution, so no trajectory can start; build it with initial=.")
    return mdp.initial


def entry_features(mdp: MDP, features: Any) -> FloatArray:
    """`(E, d)` the features of the entries of the model's rows."""
    rows = mdp.rows
    array = checks.float_array("features", features)
    state, action = mdp.row_state[rows.entry_row], mdp.action[rows.entry_row]
    pairs, n = (mdp.n_states, mdp.n_actions), rows.n_entries
    if array.ndim == 4 and array.shape[:3] == (*pairs, mdp.n_states):
        return np.ascontiguousarray(array[state, action, rows.successor])
    if array.ndim == 3 and array.shape[:2] == pairs:
        return np.ascontiguousarray(array[state, action])
    if array.ndim == 2 and len(array) == n:
        return np.ascontiguousarray(array)
    raise ValueError(
        f"features has shape {array.shape}, expected ({n}, d) for the entries of the rows, ({pairs[0]}, {pairs[1]}, d) "
        f"for states and actions, or ({pairs[0]}, {pairs[1]}, {pairs[0]}, d) with the next state."
    )


def _located(mdp: MDP, log: Transitions) -> IntArray:
    """`(N,)` the entry of each transition."""
    rows = mdp.rows
    most = max(int(log.state.max()), int(log.next_state.max()))
    if most >= mdp.n_states:
        raise ValueError(f"log has the state {most}, expected one of the model's {mdp.n_states}.")
    n = mdp.n_states
    key = (mdp.row_state.astype(np.int64) * mdp.n_actions + mdp.action)[rows.entry_row] * n + rows.successor
    wanted = (log.state.astype(np.int64) * mdp.n_actions + log.action) * n + log.next_state
    at: IntArray = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    wrong = (key[at] != wanted) | (log.action >= mdp.n_actions)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"log[{k}] goes from state {log.state[k]} by action {log.action[k]} to state {log.next_state[k]}, which "
            f"the model does not list. {checks.some(int(wrong.sum()), len(wrong), 'row', 'rows')} like it; list every "
            "successor that may occur."
        )
    return at


def _places(episode: IntArray, step: IntArray | None) -> tuple[IntArray, IntArray]:
    """`(N,)` the trajectory of each row, from 0, and its position in it."""
    number = np.unique(episode, return_inverse=True)[1]
    when = np.arange(len(episode)) if step is None else step
    order = np.lexsort((when, number))
    first = np.searchsorted(number[order], np.arange(int(number.max()) + 1))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - first[number[order]]
    return number, place


def _check_lengths(log: Transitions, number: IntArray, step: IntArray, horizon: int) -> None:
    """Raises if a trajectory is truncated before the horizon."""
    last = np.zeros(int(number.max()) + 1, dtype=np.int64)
    np.maximum.at(last, number, step)
    ended = np.zeros(len(last), dtype=bool)
    if log.terminated is not None:
        ended[number[log.terminated]] = True
    short = (last + 1 < horizon) & ~ended
    if short.any():
        k = int(np.argmax(short))
        assert log.episode is not None
        name = log.episode[np.argmax(number == k)]
        raise ValueError(
            f"log has {last[k] + 1} steps of episode {name}, which did not terminate, expected horizon={horizon}. "
            f"{checks.some(int(short.sum()), len(short), 'episode', 'episodes')} too short; use a shorter horizon, or "
            "mark the steps that ended the process as terminated."
        )


def _frequencies(mdp: MDP, log: Transitions) -> FloatArray:
    """`(S, A)` frequencies of the actions in each state; uniform over its actions without data."""
    there = mdp.by_action(np.ones(mdp.n_rows), fill=0.0)
    seen = np.zeros_like(there)
    np.add.at(seen, (log.state, log.action), 1.0)
    table = np.where(seen.sum(axis=1, keepdims=True) > 0.0, seen, there)
    total = table.sum(axis=1, keepdims=True)
    out: FloatArray = table / np.where(total > 0.0, total, 1.0)
    return out
