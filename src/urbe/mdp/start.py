"""Convert initial states given by users to a distribution, and describe a distribution in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe import checks
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray


def first_states(mdp: MDP, name: str, start: Any) -> FloatArray:
    """Converts a state, probabilities by state, or an array to a distribution, `(S,)`.

    Args:
      mdp: the model, whose labels name the states.
      name: name of the argument.
      start: a state by label or id, `{state: probability}`, or `(S,)` probabilities.
    """
    labels = mdp.labels
    weights = np.zeros(mdp.n_states)
    if isinstance(start, Mapping):
        ids = labels.state_ids(name, list(start))
        _below(name, ids, mdp)
        weights[ids] = [checks.finite_number(f"{name}[{key!r}]", value) for key, value in start.items()]
        return checks.distribution(name, weights, mdp.n_states)
    if isinstance(start, str) or np.ndim(start) == 0:
        ids = labels.state_ids(name, [start])
        _below(name, ids, mdp)
        weights[ids] = 1.0
        return weights
    return checks.distribution(name, start, mdp.n_states)


def _below(name: str, ids: IntArray, mdp: MDP) -> None:
    checks.int_array(name, ids, 0, mdp.n_states, "state")


def start_text(mdp: MDP, start: FloatArray) -> str:
    """Describes a distribution of the first state in words.

    >>> import urbe
    >>> from urbe.mdp.evaluate import start_weights
    >>> mdp = urbe.library.riverswim(3)
    >>> start_text(mdp, start_weights(mdp)), start_text(mdp, np.full(3, 1 / 3))
    ('state 0', 'all 3 states that are not terminal, with equal weight')
    """
    states = np.flatnonzero(start)
    names = mdp.labels.state_texts(states[:5])
    if len(states) == 1:
        return f"state {names[0]}"
    if np.array_equal(states, np.flatnonzero(~mdp.terminal)) and np.ptp(start[states]) < 1e-12:
        return f"all {len(states)} states that are not terminal, with equal weight"
    listed = ", ".join(f"{name} {start[s]:.3g}" for name, s in zip(names, states, strict=False))
    return f"states by probability: {listed}{f' and {len(states) - 5} more' if len(states) > 5 else ''}"
