"""Bound the expected time to termination, for total reward without discounting.

    w(s) >= 1 + max_a max_{q in U(s, a)} q . w        over the non-terminal states

bounds the expected time to termination under every policy and every choice of nature. It replaces 1 / (1 - gamma) in
certified bounds. If no finite w exists, some policy and model never terminate, and an error is raised.
"""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.operator import Operator
from urbe.mdp.model import MDP
from urbe.solvers.evaluation import Setting, live_system
from urbe.solvers.linear import plan, solve_system
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers

LONGEST = 1e13
MOST_STEPS = 1000


def longest_duration(operator: Operator, workers: Workers = SERIAL) -> FloatArray:
    """`(S,)` w as above, checked by one sweep; raises ValueError if the process may never terminate."""
    clock, mdp, memory = operator.clock(), operator.mdp, None
    setting = Setting(1.0, mdp.terminal, workers)
    live = ~mdp.terminal
    w = np.zeros(mdp.n_states)
    for _ in range(MOST_STEPS):
        improvement = clock.improve(w, memory, workers)
        memory = improvement.memory
        # w = 1 + (q w) up to a thousandth is enough: dividing by 1 - growth makes it a bound
        growth = float((improvement.value - w)[live].max(initial=0.0))
        if growth <= 1e-3:
            bound: FloatArray = w / (1.0 - growth - 2.0 * clock.error(w))
            return bound
        following, known = clock.against(improvement.policy, memory)
        system = live_system(following.linear_system(w, known), setting)
        solved = solve_system(system.matrix, system.reward, 1.0, plan(system.matrix))
        if solved is None or not (solved >= 1.0 - 1e-6).all() or solved.max() > LONGEST:
            raise ValueError(_endless(mdp, solved, live))
        w = np.zeros(mdp.n_states)
        w[live] = solved
    raise ValueError(_endless(mdp, None, live))


def _endless(mdp: MDP, solved: FloatArray | None, live: np.ndarray) -> str:
    where = ""
    if solved is not None:
        state = int(np.flatnonzero(live)[int(np.argmax(~(solved >= 1.0 - 1e-6) | (solved > LONGEST)))])
        where = f" (from state {state}, for one)"
    ends = "the model has no terminal states" if not mdp.terminal.any() else f"some policy and model never end{where}"
    return (
        f"discount is 1, but {ends}: the total reward need not be finite. Expected every policy to reach a terminal "
        "state under every model nature may choose. Declare goals that loop with with_terminal([...]), or use a "
        "discount below 1, BackwardInduction(horizon=...), or a smaller set."
    )
