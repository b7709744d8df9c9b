"""Evaluate and optimise the conditional value at risk of the total reward over a horizon, exactly.

    CVaR_level(Z) = max_tau  tau - E[max(tau - Z, 0)] / level  =  the mean of the lowest `level` of the outcomes of Z

For a fixed tau, dynamic programming on (state, x) finds the policy that minimises E[max(tau - Z, 0)]; x is the missing
reward, tau minus the reward so far [Bauerle2011]:

    f_H(s, x) = max(x, 0),        f_t(s, x) = min_a sum_s' p(s') f_{t+1}(s', x - r(s, a, s'))

One pass solves for all tau. If rewards are multiples of a unit, so are x and the outcomes of Z, and the best tau is one
of these outcomes: the result is exact up to rounding, for policies that may depend on the reward so far.

The decomposition over states (s, y), with y the remaining share of the worst outcomes, evaluates a given policy
exactly, but does not optimise: its policies may have a lower CVaR than it reports [Hau2023]. It is not used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP, check_model
from urbe.types import FloatArray, IntArray

WHOLE = 1e-9
"""Allowed distance of a reward from a multiple of the unit."""


@dataclass(frozen=True, eq=False, repr=False)
class ReturnCVaR:
    """The result of `cvar_of_return`.

    Attributes:
      value: `(S,)` the CVaR of the total reward from each state.
      threshold: `(S,)` the best tau: the value at risk of the total reward.
      level: the level of the CVaR.
      unit: the unit of rewards.
      lowest: `(H,)` the lowest x, in units, of each step's table.
      actions: for each step `(S, X)` the action at the missing reward x = (lowest + column) unit; -1 where terminal.
        Empty if a policy was given.
    """

    value: FloatArray
    threshold: FloatArray
    level: float
    unit: float
    lowest: IntArray
    actions: tuple[IntArray, ...]

    def action(self, step: int, state: int, missing: float) -> int:
        """Returns the action at a step and state; `missing` is the start's threshold minus the reward so far."""
        if not self.actions:
            raise ValueError(
                "A policy was given, so there are no actions to look up. Leave policy= out for the best ones."
            )
        table = self.actions[checks.index("step", step, len(self.actions))]
        checks.index("state", state, len(table))
        at = round(checks.finite_number("missing", missing) / self.unit) - int(self.lowest[step])
        return int(table[state, min(max(at, 0), table.shape[1] - 1)])

    def __repr__(self) -> str:
        return f"ReturnCVaR(level {self.level:g}, {len(self.value)} states over {len(self.lowest)} steps)"


def cvar_of_return(mdp: MDP, level: float, horizon: int, *, unit: float, policy: ArrayLike | None = None) -> ReturnCVaR:
    """Computes the best CVaR of the total reward over `horizon` steps, or the CVaR of a given policy.

    The cost of a step is the number of successors times the number of values of x, up to H times the range of rewards
    in units.

    Args:
      mdp: the model, with discount 1: discounted rewards are not multiples of a unit.
      level: in (0, 1]; 1 is the expectation, and near 0 it is the worst outcome.
      horizon: H, number of decisions.
      unit: all rewards are multiples of this number.
      policy: `(S,)` action ids or `(S, A)` probabilities to evaluate; None for the best policy.

    >>> import numpy as np, urbe
    >>> draw = np.array([[[0.0, 0.1, 0.2, 0.3, 0.4]]] + [np.eye(5)[[s]] for s in range(1, 5)])
    >>> reward = np.zeros((5, 1, 5))
    >>> reward[0, 0, 1:] = [0.0, 1.0, 2.0, 10.0]
    >>> lottery = urbe.MDP.from_dense(draw, reward, discount=1.0, terminal=[1, 2, 3, 4])
    >>> [round(float(urbe.cvar_of_return(lottery, y, 1, unit=1.0).value[0]), 4) for y in (0.1, 0.3, 0.5, 1.0)]
    [0.0, 0.6667, 1.2, 4.8]
    """
    check_model("mdp", mdp)
    if mdp.discount != 1.0:
        raise ValueError(f"discount is {mdp.discount:g}, expected 1: use mdp.with_discount(1.0).")
    share = checks.number("level", level, 0.0, 1.0)
    if share == 0.0:
        raise ValueError("level is 0, expected a number in (0, 1]; the worst outcome is a level near 0.")
    steps = checks.whole_number("horizon", horizon, 1)
    each = checks.positive("unit", unit)
    units = _units(mdp, each)
    low, high = int(units.min(initial=0)), int(units.max(initial=0))
    memory.require(
        {f"{steps} tables of actions for up to {steps * (high - low) + 1} rewards": 4.0 * mdp.n_states * steps
         * (steps * (high - low) + 1), "values": 8.0 * (mdp.n_rows + 2 * mdp.n_states) * (steps * (high - low) + 1)},
        "Use a larger unit, or a shorter horizon.",
    )  # fmt: skip
    weights = None if policy is None else policy_rows(mdp, policy)
    parts = _by_reward(mdp, units)
    f = np.zeros((mdp.n_states, 1))  # only x = 0; outside the table f is max(x, 0)
    tables: list[IntArray] = []
    for left in range(1, steps + 1):  # decisions left
        q = _backward(mdp, parts, f, low, high, left)
        f, rows = _choose(mdp, q, weights, low, high, left)
        tables.append(rows)
    tau = np.arange(steps * low, steps * high + 1)
    tail = tau * each - f * (each / share)
    best = tail.argmax(axis=1)
    at = np.arange(mdp.n_states)
    return ReturnCVaR(
        value=np.where(mdp.terminal, 0.0, tail[at, best]),
        threshold=np.where(mdp.terminal, 0.0, each * tau[best]),
        level=share,
        unit=each,
        lowest=low * np.arange(steps, 0, -1),
        actions=tuple(tables[::-1]) if policy is None else (),
    )


def _units(mdp: MDP, unit: float) -> IntArray:
    """`(E,)` the reward of each entry in units."""
    rows = mdp.rows
    reward = rows.reward_per_entry
    units = np.rint(reward / unit)
    off = np.abs(reward / unit - units) > WHOLE * np.maximum(1.0, np.abs(units))
    if off.any():
        at = int(np.argmax(off))
        where = f"{mdp.row_name(int(rows.entry_row[at]))}, successor {rows.successor[at]}"
        raise ValueError(
            f"The reward of {where} is {reward[at]:.12g}, expected a multiple of unit {unit:g}. "
            f"{checks.some(int(off.sum()), len(off), 'reward', 'rewards')} not; use a smaller unit, or round them."
        )
    return units.astype(np.int64)


def _by_reward(mdp: MDP, units: IntArray) -> list[tuple[int, Any]]:
    """Returns for each reward the `(R, S)` probabilities of the successors with this reward."""
    from scipy.sparse import csr_array

    rows, shape, out = mdp.rows, (mdp.n_rows, mdp.n_states), []
    for reward in np.unique(units):
        bring = (units == reward) & (rows.probability > 0.0)
        at = (rows.entry_row[bring], rows.successor[bring])
        out.append((int(reward), csr_array((rows.probability[bring], at), shape=shape)))
    return out


def _backward(mdp: MDP, parts: list[tuple[int, Any]], f: FloatArray, low: int, high: int, left: int) -> FloatArray:
    """`(R, X)` sum_s' p(s') f(s', x - r) in units, for x from left low to left high.

    Below its table f is 0, since even the lowest rewards exceed x; above it f increases with x.
    """
    width = high - low
    # x - r goes from (left - 1) low - width to (left - 1) high + width
    above = f[:, -1:] + np.arange(1, width + 1)
    wide = np.concatenate([np.zeros((len(f), width)), f, above], axis=1)
    size = left * width + 1
    q = np.zeros((mdp.n_rows, size))
    for reward, part in parts:
        first = left * low - reward - ((left - 1) * low - width)
        q += part @ wide[:, first : first + size]
    return q


def _choose(
    mdp: MDP, q: FloatArray, weights: FloatArray | None, low: int, high: int, left: int
) -> tuple[FloatArray, IntArray]:
    """`(S, X)` the minimum over each state's rows and its action, or the mean under a policy."""
    x = np.arange(left * low, left * high + 1)
    f = np.tile(np.maximum(x, 0.0), (mdp.n_states, 1))
    actions = np.full(f.shape, -1, dtype=np.int32)
    live = np.flatnonzero(~mdp.terminal)
    if not len(live):
        return f, actions
    if weights is not None:
        f[live] = np.add.reduceat(weights[:, None] * q, mdp.row_start[live], axis=0)
        return f, actions
    f[live] = np.minimum.reduceat(q, mdp.row_start[live], axis=0)
    least = q <= f[mdp.row_state]
    place = np.where(least, np.arange(mdp.n_rows)[:, None], mdp.n_rows)
    actions[live] = mdp.action[np.minimum.reduceat(place, mdp.row_start[live], axis=0)]
    return f, actions
