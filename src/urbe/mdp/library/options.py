"""The American put option: an optimal stopping problem."""

from __future__ import annotations

import math

import numpy as np

from urbe import checks
from urbe.mdp.build import from_rows
from urbe.mdp.model import MDP


def american_put(
    steps: int = 20,
    *,
    price: float = 1.0,
    strike: float = 1.0,
    volatility: float = 0.2,
    rate: float = 0.0,
    years: float = 1.0,
    rise: float | None = None,
    discount: float | None = None,
) -> MDP:
    """An American put: the right to sell at the strike at any of `steps` + 1 times, on a binomial tree of prices.

    State t (t + 1) / 2 + k is time t after k rises, where the price is `price` u^(2 k - t) with u = exp(volatility
    sqrt(years / steps)); the last state is terminal. Action 0 holds: the price rises with probability `rise`. Action 1
    sells and ends, for max(strike - price, 0); at the last time it is the only one. An interval around `rise` is an
    `L1Ball` of twice the half-width.

    Args:
      steps: number of moves, at least 1.
      price, strike: the initial price and the strike price; positive.
      volatility, rate, years: volatility of the price, interest rate, and term.
      rise: probability of a rise; by default the risk-neutral one, (exp(rate dt) - 1 / u) / (u - 1 / u).
      discount: discount of one step; by default exp(-rate dt).

    >>> american_put(20)
    MDP(232 states (1 terminal), 441 rows, 651 entries, discount 1)
    """
    n = checks.whole_number("steps", steps, 1)
    spot, paid = checks.positive("price", price), checks.positive("strike", strike)
    step = checks.positive("years", years) / n
    up = math.exp(checks.positive("volatility", volatility) * math.sqrt(step))
    growth = math.exp(checks.finite_number("rate", rate) * step)
    p = checks.number("rise", (growth - 1.0 / up) / (up - 1.0 / up) if rise is None else rise, 0.0, 1.0)
    gamma = checks.number("discount", min(1.0 / growth, 1.0) if discount is None else discount, 0.0, 1.0)
    time = np.repeat(np.arange(n + 1), np.arange(1, n + 2))
    rises = np.arange(len(time)) - time * (time + 1) // 2
    end, last = len(time), time == n
    length = np.where(last, 1, 2)  # rows of each state
    state = np.repeat(np.arange(end), length)
    sells = np.append(state[1:] != state[:-1], True)  # the last row of each state
    after = np.arange(end) + time + 1
    successor = np.full((len(state), 2), -1)
    successor[~sells, 0], successor[~sells, 1] = after[state[~sells]], after[state[~sells]] + 1
    successor[sells, 0] = end
    probability = np.where(successor < 0, np.nan, np.where(sells[:, None], 1.0, np.array([1.0 - p, p])))
    payoff = np.maximum(paid - spot * up ** (2.0 * rises - time), 0.0)
    initial = np.zeros(end + 1)
    initial[0] = 1.0
    listed = successor >= 0
    return from_rows(
        state=state,
        action=sells.astype(np.int32),
        length=listed.sum(axis=1),
        successor=successor[listed],
        probability=probability[listed],
        row_reward=np.where(sells, payoff[state], 0.0),
        entry_reward=None,
        n_states=end + 1,
        discount=gamma,
        initial=initial,
    )
