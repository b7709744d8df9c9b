"""Compute the posterior of a model from a log of transitions.

    alpha(s, a, s') = prior + sum_k w_k [transition k is (s, a, s')],    w_k = forget^(episodes since that of k)

Only counts are computed: 1e7 transitions take a few seconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.model import MDP, check_model
from urbe.mdp.rows import Rows
from urbe.mdp.transitions import Transitions, check_transitions
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.locate import locate
from urbe.posteriors.rewards import NormalGamma, RewardPosterior
from urbe.posteriors.skeleton import Feasible, infer
from urbe.types import FloatArray, IntArray


class RandomRewards(ValueError):
    """The same transition paid different rewards, so rewards cannot be taken as known."""


def fit(transitions: Transitions, prior: ArrayLike, rewards: NormalGamma | None, **log: Any) -> Posterior:
    """Computes the posterior after a log; see `Posterior.fit` for the arguments."""
    data = _read(transitions, rewards=rewards, **log)
    counts = np.bincount(data.entry, data.weight, minlength=data.model.rows.n_entries)
    known = None if rewards is None else _reward_posterior(rewards.before(data.model.n_rows), data)
    return Posterior.after(data.model, prior, counts, known)


def fit_per_step(
    transitions: Transitions,
    horizon: int,
    *,
    discount: float | None = None,
    model: MDP | None = None,
    n_states: int | None = None,
    n_actions: int | None = None,
    prior: ArrayLike = 1.0,
    feasible: Feasible = "observed",
    terminal: ArrayLike = (),
    rewards: NormalGamma | None = None,
    forget: float = 1.0,
    window: int | None = None,
) -> tuple[Posterior, ...]:
    """Computes one posterior for each step 0, ..., horizon - 1, for transitions that depend on time.

    All share the pairs and feasible successors of the whole log; a pair not seen at a step has only the prior. For
    the arguments see `Posterior.fit`; the column `step` is needed.
    """
    horizon = checks.whole_number("horizon", horizon, 1)
    check_transitions("transitions", transitions)
    if transitions.step is None:
        raise ValueError("The log has no column step, expected one: the step within the episode, from 0.")
    if transitions.step.max() >= horizon:
        at = int(np.argmax(transitions.step >= horizon))
        raise ValueError(f"step[{at}] is {transitions.step[at]}, expected steps below the horizon {horizon}.")
    data = _read(
        transitions, discount=discount, model=model, n_states=n_states, n_actions=n_actions,
        feasible=feasible, terminal=terminal, rewards=rewards, forget=forget, window=window,
    )  # fmt: skip
    n_entries = data.model.rows.n_entries
    counts = np.bincount(data.step * n_entries + data.entry, data.weight, minlength=horizon * n_entries)
    out = []
    for h, of_step in enumerate(counts.reshape(horizon, n_entries)):
        known = None
        if rewards is not None:
            at = data.step == h
            known = _reward_posterior(rewards.before(data.model.n_rows), data.select(at))
        out.append(Posterior.after(data.model, prior, of_step, known))
    return tuple(out)


def update(posterior: Posterior, transitions: Transitions) -> Posterior:
    """Updates the posterior by more transitions, all among its pairs and feasible successors.

    The result equals fitting both logs at once, except that nothing is forgotten. Known rewards do not change.
    """
    check_transitions("transitions", transitions)
    data = _weighted(posterior.model, transitions.in_terms_of(posterior.model.labels), None)
    counts = np.bincount(data.entry, data.weight, minlength=posterior.model.rows.n_entries)
    known = None if posterior.rewards is None else _reward_posterior(posterior.rewards, data)
    return replace(posterior, concentration=posterior.concentration + counts, rewards=known)


class _Data(NamedTuple):
    """A log with the ids of a model; all but the model `(N,)`."""

    model: MDP
    entry: IntArray
    reward: FloatArray
    step: IntArray
    weight: FloatArray | None

    def select(self, which: np.ndarray) -> _Data:
        weight = None if self.weight is None else self.weight[which]
        return _Data(self.model, self.entry[which], self.reward[which], self.step[which], weight)


def _read(
    transitions: Transitions,
    *,
    discount: float | None,
    model: MDP | None,
    n_states: int | None,
    n_actions: int | None,
    feasible: Feasible,
    terminal: ArrayLike,
    rewards: NormalGamma | None,
    forget: float,
    window: int | None,
) -> _Data:
    check_transitions("transitions", transitions)
    if rewards is not None:
        fits = isinstance(rewards, NormalGamma)
        checks.kind(
            "rewards", rewards, fits, "a prior such as NormalGamma.around(log.reward), or None if rewards are known"
        )
    weight = _weights(transitions, forget, window)
    if model is not None:
        check_model("model", model)
        if (n_states, n_actions, feasible) != (None, None, "observed") or np.size(terminal):
            raise ValueError(
                "n_states, n_actions, feasible and terminal describe a log without a model, but model= is given and "
                "determines all of them; leave them out."
            )
        known = model if discount is None else model.with_discount(discount)
        return _weighted(known, transitions.in_terms_of(known.labels), weight)
    if discount is None:
        raise ValueError("discount is missing: a log does not hold one. Give it, as in discount=0.95.")
    model = infer(
        transitions, discount=discount, n_states=n_states, n_actions=n_actions, feasible=feasible, terminal=terminal
    )
    entry = locate(model, transitions)
    if rewards is None:
        rows = model.rows
        reward = _known_reward(model, transitions, entry)
        model = model.with_rows(Rows(rows.n_states, rows.entry_start, rows.successor, rows.probability, reward))
    return _kept(model, transitions, entry, weight)


def _weighted(model: MDP, transitions: Transitions, weight: FloatArray | None) -> _Data:
    return _kept(model, transitions, locate(model, transitions), weight)


def _kept(model: MDP, transitions: Transitions, entry: IntArray, weight: FloatArray | None) -> _Data:
    """Drops transitions after termination."""
    step = np.zeros(len(entry), dtype=np.int64) if transitions.step is None else transitions.step
    data = _Data(model, entry, transitions.reward, step, weight)
    return data if entry.min() >= 0 else data.select(entry >= 0)


def _weights(transitions: Transitions, forget: float, window: int | None) -> FloatArray | None:
    """`(N,)` the weight of each transition; None if all weights are one."""
    if not checks.number("forget", forget, 0.0, 1.0) > 0.0:
        raise ValueError("forget is 0, expected a factor in (0, 1]; to keep only the last episode, use window=1.")
    if window is not None:
        checks.whole_number("window", window, 1)
    if forget == 1.0 and window is None:
        return None
    if transitions.episode is None:
        raise ValueError("The log has no column episode, expected one: forget and window count episodes.")
    ids, at = np.unique(transitions.episode, return_inverse=True)
    age = len(ids) - 1 - np.arange(len(ids))
    of_episode = np.where(age < (window or len(ids)), float(forget) ** age, 0.0)
    weights: FloatArray = of_episode[at]
    return weights


def _known_reward(model: MDP, transitions: Transitions, entry: IntArray) -> FloatArray:
    """`(R,)` or `(E,)` the constant reward of each pair or successor; raises if it is not constant."""
    rows, paid = model.rows, np.zeros(model.rows.n_entries)
    seen = np.zeros(rows.n_entries, dtype=bool)
    lasting = slice(None) if entry.min() >= 0 else np.flatnonzero(entry >= 0)
    paid[entry[lasting]] = transitions.reward[lasting]
    seen[entry[lasting]] = True
    differs = transitions.reward[lasting] != paid[entry[lasting]]
    if differs.any():
        at = int(np.arange(len(entry))[lasting][np.argmax(differs)])
        other, labels = int(np.flatnonzero(entry == entry[at])[-1]), transitions.labels
        raise RandomRewards(
            f"Transition {at} from state {labels.state(transitions.state[at])} by action "
            f"{labels.action(transitions.action[at])} to state {labels.state(transitions.next_state[at])} paid "
            f"{transitions.reward[at]:.12g}, transition {other} for the same {transitions.reward[other]:.12g}; "
            "expected one reward to take as known. If rewards are random, give their prior: rewards=NormalGamma()."
        )
    if not rows.n_rows:
        return np.zeros(0)
    first = rows.entry_start[:-1]
    low = np.minimum.reduceat(np.where(seen, paid, np.inf), first)
    high = np.maximum.reduceat(np.where(seen, paid, -np.inf), first)
    if (low == high).all():
        return low
    unknown = ~seen & (low != high)[rows.entry_row]
    if unknown.any():
        at = int(np.argmax(unknown))
        row = int(rows.entry_row[at])
        why = "was never tried" if low[row] > high[row] else f"paid from {low[row]:g} to {high[row]:g} elsewhere"
        successor = model.labels.state(rows.successor[at])
        raise ValueError(
            f"What {model.row_name(row)} pays on reaching state {successor} is not known: the pair {why}. "
            "Give the rewards' prior, rewards=NormalGamma(), or a model= with known rewards, or feasible='observed'."
        )
    return np.where(seen, paid, low[rows.entry_row])


def _reward_posterior(before: RewardPosterior, data: _Data) -> RewardPosterior:
    """The posterior of the mean reward of each pair."""
    n_rows = data.model.n_rows
    row = data.model.rows.entry_row[data.entry]
    n = np.bincount(row, data.weight, minlength=n_rows).astype(np.float64)
    weight = 1.0 if data.weight is None else data.weight
    mean = np.bincount(row, weight * data.reward, minlength=n_rows) / np.where(n > 0.0, n, 1.0)
    squares = np.bincount(row, weight * (data.reward - mean[row]) ** 2, minlength=n_rows).astype(np.float64)
    return before.after(n, mean, squares)
