"""Small models and posteriors, given by the lengths or the concentrations of their rows."""

import numpy as np

from urbe import MDP, Posterior


def skeleton(*lengths):
    """A model with one row for each length: state k, action 0, its first successors."""
    n = max(*lengths, len(lengths))
    state = np.repeat(np.arange(len(lengths)), lengths)
    successor = np.concatenate([np.arange(length) for length in lengths])
    p = np.repeat(1.0 / np.array(lengths), lengths)
    terminal = range(len(lengths), n)
    return MDP.from_transitions(
        state, np.zeros(len(state)), successor, p, 0.0, discount=0.9, n_states=n, terminal=list(terminal)
    )


def row_posterior(*rows):
    """The posterior whose rows have these concentrations."""
    return Posterior.before(skeleton(*map(len, rows)), np.concatenate(rows))
