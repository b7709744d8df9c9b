"""The non-robust solvers of PyPI on the same nominal model, one thread, at their fastest settings.

Building models is not timed. State that would carry over from an earlier solve is rebuilt. Peers stop by their own
criteria, which guarantee less than certified bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import Task, task
from urbe import MDP


class Peer(NamedTuple):
    """A solver: `task` makes a fresh one, untimed, and solves; `value` reads its solution."""

    task: Task
    value: Callable[[Any], np.ndarray]


def peers(mdp: MDP, tolerance: float) -> dict[str, Peer]:
    """Solvers by name."""
    return {
        "mdpsolver": _mdpsolver(mdp, tolerance),
        "QuantEcon": _quantecon(mdp, tolerance),
        "pymdptoolbox": _pymdptoolbox(mdp, tolerance),
    }


def _mdpsolver(mdp: MDP, tolerance: float) -> Peer:
    import mdpsolver

    shape = (mdp.n_states, mdp.n_actions, -1)
    lists = {
        "rewards": mdp.by_action(mdp.rows.expected_reward()).tolist(),
        "tranMatProbs": mdp.rows.probability.reshape(shape).tolist(),
        "tranMatColumns": mdp.rows.successor.reshape(shape).tolist(),
    }

    def fresh() -> Any:  # a second solve would start from the first one's policy
        model = mdpsolver.model()
        model.mdp(discount=mdp.discount, **lists)
        return model

    def solve(model: Any) -> Any:
        model.solve(algorithm="mpi", tolerance=tolerance, parallel=False, makeFinalCheck=False)
        return model

    return Peer(Task(fresh, solve), lambda model: np.array(model.getValueVector()))


def _quantecon(mdp: MDP, tolerance: float) -> Peer:
    from quantecon.markov import DiscreteDP

    if mdp.rows.is_dense:
        transition, reward = mdp.to_dense()
        ddp = DiscreteDP(reward, transition, mdp.discount)
    else:
        from scipy.sparse import csr_matrix

        ddp = DiscreteDP(mdp.rows.expected_reward(), csr_matrix(mdp.matrix()), mdp.discount, mdp.row_state, mdp.action)
    solve = task(partial(ddp.solve, method="modified_policy_iteration", epsilon=tolerance))
    return Peer(solve, lambda result: result.v)


def _pymdptoolbox(mdp: MDP, tolerance: float) -> Peer:
    from mdptoolbox.mdp import PolicyIterationModified

    matrix = mdp.matrix()
    per_action = [matrix[mdp.action == a].tocsr() for a in range(mdp.n_actions)]
    if mdp.rows.is_dense:
        per_action = [m.toarray() for m in per_action]
    else:
        from scipy.sparse import csr_matrix

        per_action = [csr_matrix(m) for m in per_action]
    fresh = PolicyIterationModified(per_action, mdp.by_action(mdp.rows.expected_reward()), mdp.discount, tolerance)

    def run(solver: PolicyIterationModified) -> PolicyIterationModified:
        solver.run()
        return solver

    # run() goes on from its own last values
    return Peer(Task(lambda: copy(fresh), run), lambda solver: np.array(solver.V))
