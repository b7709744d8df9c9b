"""First bounds on the value of a pair of state and belief, from ordinary models.

above   sum_k b_k V(s, k)       of an agent that sees the true model, jumps included (level 1 at most)
below   the best of a few policies that ignore observations; at lower levels the worst case over models, chosen
        anew at each step
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe.ambiguity.scenarios import Scenarios
from urbe.belief.switching import Switching
from urbe.mdp.model import MDP
from urbe.solvers.solve import evaluate_policy, solve
from urbe.types import FloatArray


class Leaves(NamedTuple):
    """Bounds at any belief b over hazards and members: `upper @ b`, and the best of `lowers @ b` and `worst`."""

    upper: FloatArray  # (S, H K)
    lowers: FloatArray  # (policies, S, H K); none at lower levels
    worst: FloatArray  # (S,)


def first_bounds(mdp: MDP, switching: Switching, level: float, probability: FloatArray, reward: FloatArray) -> Leaves:
    """Solves the models that bound the value of the belief MDP, for `(K, R, S)` probabilities and `(R, S)` rewards."""
    informed = _informed(mdp, switching, probability, reward)
    shape = (mdp.n_states, informed.n_states // mdp.n_states)
    mean = _model(mdp, probability.mean(axis=0), reward)  # with every successor that some member reaches
    on_entries = probability[:, mean.rows.entry_row, mean.rows.successor].T
    best, worst = solve(informed), solve(mean, Scenarios(on_entries))
    lowers = []
    if level == 1.0:
        own = (solve(_model(mdp, of_member, reward)).policy for of_member in probability)
        chosen = np.unique([worst.policy, *own], axis=0)
        lowers = [evaluate_policy(informed, np.repeat(policy, shape[1])).lower.reshape(shape) for policy in chosen]
    return Leaves(best.upper.reshape(shape), np.array(lowers).reshape(-1, *shape), worst.lower)


def _model(mdp: MDP, probability: FloatArray, reward: FloatArray) -> MDP:
    """The pairs of `mdp` with other probabilities and rewards, `(R, S)`."""
    row, successor = np.nonzero(probability)
    return MDP.from_transitions(
        mdp.row_state[row],
        mdp.action[row],
        successor,
        probability[row, successor],
        reward[row, successor],
        discount=mdp.discount,
        n_states=mdp.n_states,
        terminal=np.flatnonzero(mdp.terminal),
    )


def _informed(mdp: MDP, switching: Switching, probability: FloatArray, reward: FloatArray) -> MDP:
    """The model of an agent that sees the hazard i and the true member k: states (s, i, k), numbered in that order."""
    n_members, hazards = len(probability), switching.hazards
    n = len(hazards) * n_members
    jump = np.zeros((n, n))
    for i, hazard in enumerate(hazards):
        here = slice(i * n_members, (i + 1) * n_members)
        jump[here, here] = (1.0 - hazard) * np.eye(n_members) + hazard * np.exp(switching.log_prior(n_members))
    before, after = np.nonzero(jump)
    row, successor = np.nonzero(probability.any(axis=0))
    p = jump[before, after][:, None] * probability[after % n_members][:, row, successor]  # (jumps, entries)
    move, entry = np.nonzero(p)
    return MDP.from_transitions(
        mdp.row_state[row[entry]] * n + before[move],
        mdp.action[row[entry]],
        successor[entry] * n + after[move],
        p[move, entry],
        reward[row[entry], successor[entry]],
        discount=mdp.discount,
        n_states=mdp.n_states * n,
        terminal=np.flatnonzero(np.repeat(mdp.terminal, n)),
    )
