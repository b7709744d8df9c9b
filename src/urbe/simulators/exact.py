"""Evaluate a policy on a finite simulator exactly, without playing episodes.

With P_pi the policy's transition matrix, empty at terminal states, and mu the distribution of the first state,

    discounted   mu . (I - gamma P_pi)^-1 r_pi                     the criterion agents plan for, without a time limit
    total        sum_{t < T} (mu P_pi^t) . r_pi                    the return of a test episode, truncated after T steps
    visits       sum_{t <= T} mu P_pi^t                            a heat map; the probability of each terminal state
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.simulators.base import Params
from urbe.simulators.finite import FiniteSimulator, to_mdp
from urbe.simulators.mars_rover import MarsRover, MarsRoverParams
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.mdp.model import MDP

SCAN = 100
"""Number of values at which `crossing` compares two policies before it refines."""


class Performance(NamedTuple):
    """The exact performance of a policy.

    Attributes:
      value: `(S,)` discounted value of each state, zero at terminal states.
      discounted: the value averaged over the starts.
      total: expected undiscounted return of an episode, truncated at the time limit.
      visits: `(S,)` expected visits within the time limit, including the state after the last step. A terminal state is
        visited once, so its number is the probability of ending there.
    """

    value: FloatArray
    discounted: float
    total: float
    visits: FloatArray


def performance(
    simulator: FiniteSimulator,
    params: Params,
    policy: ArrayLike,
    *,
    discount: float,
    steps: int | None = None,
    start: ArrayLike | None = None,
) -> Performance:
    """Computes the performance of a policy on a simulator with given parameters.

    Args:
      simulator: a finite simulator.
      params: its parameters; plain numbers are taken at full precision.
      policy: `(S,)` actions or `(S, A)` probabilities. It is ignored if there is no choice (terminal states, single
        actions).
      discount: discount of `value` and `discounted`, in [0, 1]; 1 only for policies that terminate.
      steps: T; by default the simulator's time limit.
      start: `(S,)` distribution of the first state; by default the simulator's.

    >>> from urbe.simulators import MarsRover, MarsRoverParams
    >>> rover = MarsRover()
    >>> ahead = [2 if cell // 10 < 9 else 1 for cell in range(rover.n_states)]
    >>> there = performance(rover, MarsRoverParams(0.005), ahead, discount=0.9)
    >>> round(float(there.visits[rover.goal]), 4), round(there.total, 4)
    (0.9229, 0.7767)
    """
    from urbe.mdp.evaluate import policy_value

    mdp = to_mdp(simulator, params, discount=discount)
    table = _readable(mdp, policy)
    total, visits = _played(mdp, table, simulator.time_limit if steps is None else steps, start)
    value = policy_value(mdp, table)
    return Performance(value, float(_start(mdp, start) @ value), total, visits)


def crossing(
    simulator: FiniteSimulator,
    params: Params,
    name: str,
    policies: tuple[ArrayLike, ArrayLike],
    *,
    low: float = 0.0,
    high: float = 1.0,
    start: ArrayLike | None = None,
) -> float | None:
    """The least value of a parameter at which the second policy's `total` exceeds the first's; None if it never does.

    Args:
      simulator: a finite simulator.
      params: the other parameters.
      name: name of the parameter that varies from `low` to `high`.
      policies: two policies, see `performance`.
      low, high: the searched range, scanned at 100 values and then refined to rounding.
      start: `(S,)` distribution of the first state; by default the simulator's.
    """
    from scipy.optimize import brentq

    if name not in params._fields:
        raise ValueError(f"name is {name!r}, expected one of {', '.join(map(repr, params._fields))}.")
    if not low < high:
        raise ValueError(f"low is {low:g} and high {high:g}, expected low below high.")

    def advantage(x: float) -> float:
        mdp = to_mdp(simulator, params._replace(**{name: x}), discount=0.0)
        first, second = (_played(mdp, _readable(mdp, policy), simulator.time_limit, start)[0] for policy in policies)
        return first - second

    at = np.linspace(low, high, SCAN + 1)
    before = advantage(low)
    for left, right in pairwise(at):
        after = advantage(right)
        if before > 0.0 >= after:
            return float(brentq(advantage, left, right))
        before = after
    return None


def break_even_rover(
    rover: MarsRover,
    policies: tuple[ArrayLike, ArrayLike],
    *,
    failure: float,
    start: ArrayLike | None = None,
) -> MarsRover:
    """Returns the rover with the step reward for which two policies have equal totals at a given failure probability.

    Totals are linear in the step reward: total(c) = b + c n, with n the expected number of steps that pay it.

    Args:
      rover: the rover whose other rewards, zone and rules are kept.
      policies: the two policies, such as travelling and waiting.
      failure: the failure probability at which totals are equal, in [0, 1].
      start: `(S,)` distribution of the first state; by default the rover's zone.

    >>> rover = MarsRover()
    >>> travel = [2 if cell // 10 < 9 else 1 for cell in range(rover.n_states)]
    >>> wait = [0 if cell % 10 else 3 for cell in range(rover.n_states)]
    >>> round(break_even_rover(rover, (travel, wait), failure=0.2).step_reward, 5)
    -0.0048
    """
    at = MarsRoverParams(checks.number("failure", failure, 0.0, 1.0))

    def totals(step_reward: float) -> FloatArray:
        paid = replace(rover, step_reward=step_reward)
        mdp = to_mdp(paid, at, discount=0.0)
        return np.array([_played(mdp, _readable(mdp, policy), rover.time_limit, start)[0] for policy in policies])

    fixed = totals(0.0)
    steps = totals(1.0) - fixed
    if abs(steps[0] - steps[1]) < 1e-9 * rover.time_limit:
        raise ValueError(
            f"Both policies pay for {steps[0]:g} steps, so no step reward makes their totals equal; expected policies "
            "with different numbers of steps, such as one that travels and one that waits."
        )
    return replace(rover, step_reward=float((fixed[1] - fixed[0]) / (steps[0] - steps[1])))


def _played(mdp: MDP, table: FloatArray, steps: int, start: ArrayLike | None) -> tuple[float, FloatArray]:
    """Total reward and visits of an episode of at most this many steps."""
    from urbe.mdp.evaluate import policy_matrix, policy_rows

    checks.whole_number("steps", steps, 0)
    weights = policy_rows(mdp, table)
    arrive = policy_matrix(mdp, weights).T.tocsr()
    reward = np.bincount(mdp.row_state, weights * mdp.rows.expected_reward(), minlength=mdp.n_states)
    here, total = _start(mdp, start), 0.0
    visits = here.copy()
    for _ in range(steps):
        total += float(here @ reward)
        here = arrive @ here
        visits += here
    return total, visits


def _start(mdp: MDP, start: ArrayLike | None) -> FloatArray:
    return checks.distribution("start", mdp.initial if start is None else start, mdp.n_states)  # type: ignore[arg-type]


def _readable(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """The policy, with ignored entries replaced by the available actions."""
    table = checks.float_array("policy", policy)
    if table.shape not in ((mdp.n_states,), (mdp.n_states, mdp.n_actions)):
        raise ValueError(
            f"policy has shape {table.shape}, expected ({mdp.n_states},) actions or ({mdp.n_states}, {mdp.n_actions}) "
            "probabilities."
        )
    table = table.copy()
    single = np.flatnonzero(np.diff(mdp.row_start) == 1)
    only = mdp.action[mdp.row_start[single]]
    if table.ndim == 1:
        table[mdp.terminal] = -1
        table[single] = only
    else:
        table[mdp.terminal] = 0.0
        table[single] = 0.0
        table[single, only] = 1.0
    return table
