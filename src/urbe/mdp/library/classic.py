"""Models without terminal states: a river, an ageing machine, a stock of goods."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.build import from_dense, from_rows
from urbe.mdp.model import MDP
from urbe.types import FloatArray


def riverswim(n_states: int = 6, *, discount: float = 0.95) -> MDP:
    """RiverSwim: a swimmer between a small reward downstream and a large one far upstream.

    Action 0 swims left, with the current: one state left for certain, staying at the left bank. Action 1 swims right:

        first state      0.6 right, 0.4 stay
        between          0.35 right, 0.6 stay, 0.05 left
        last state       0.6 stay, 0.4 left

    Rewards: 5/1000 for swimming left in the first state, 1 for swimming right in the last, otherwise 0. The swimmer
    starts in the first state. The task is from [StrehlLittman2008], who use 0.3 / 0.6 / 0.1 and rewards 5 and 10000;
    probabilities and rewards here are those of [Osband2013] Fig. 1, which later work took over.

    Args:
      n_states: length of the river, at least 2.
      discount: in [0, 1].

    >>> riverswim()
    MDP(6 states, 12 rows, 22 entries, discount 0.95)
    """
    n = checks.whole_number("n_states", n_states, 2)
    transition, reward, initial = np.zeros((n, 2, n)), np.zeros((n, 2)), np.zeros(n)
    s = np.arange(n)
    transition[s, 0, np.maximum(s - 1, 0)] = 1.0
    middle = s[1:-1]
    transition[middle, 1, middle + 1] = 0.35
    transition[middle, 1, middle] = 0.6
    transition[middle, 1, middle - 1] = 0.05
    transition[0, 1, :2] = 0.4, 0.6
    transition[-1, 1, -2:] = 0.4, 0.6
    reward[0, 0] = 5.0 / 1000.0
    reward[-1, 1] = 1.0
    initial[0] = 1.0
    return from_dense(transition, reward, discount=discount, initial=initial)


def machine_replacement(n_states: int = 10, *, discount: float = 0.95) -> MDP:
    """Machine replacement: a machine that wears out, and repairs that may take long.

    States 0, ..., n - 3 are the machine's age, state n - 2 is a normal repair (R1), state n - 1 a long one (R2).
    Action 0 does nothing, action 1 repairs:

        state                do nothing            repair
        age i                0.8 i + 1, 0.2 i      0.6 R1, 0.1 R2, 0.3 i + 1
        oldest age n - 3     1 stay                0.6 R1, 0.1 R2, 0.3 stay
        R1                   0.8 age 0, 0.2 R1     1 R1
        R2                   1 R2                  0.6 R1, 0.4 R2

    Each step costs 20 at the oldest age, 2 in R1 and 10 in R2, whatever the action; rewards are minus the costs.
    The machine starts new. From [DelageMannor2010] Fig. 3, there with ten states, and used again in [Wiesemann2013].
    The cost belongs to the state one is in, so rewards are r(s).

    Args:
      n_states: ages plus the two repair states, at least 3.
      discount: in [0, 1].

    >>> machine_replacement()
    MDP(10 states, 20 rows, 45 entries, discount 0.95)
    """
    n = checks.whole_number("n_states", n_states, 3)
    transition, reward, initial = np.zeros((n, 2, n)), np.zeros(n), np.zeros(n)
    oldest, normal, long = n - 3, n - 2, n - 1
    age = np.arange(n - 2)
    older = np.minimum(age + 1, oldest)
    transition[age, 0, older] += 0.8
    transition[age, 0, age] += 0.2
    transition[age, 1, older] = 0.3
    transition[age, 1, normal] = 0.6
    transition[age, 1, long] = 0.1
    transition[normal, 0, [0, normal]] = 0.8, 0.2
    transition[normal, 1, normal] = 1.0
    transition[long, 0, long] = 1.0
    transition[long, 1, [normal, long]] = 0.6, 0.4
    reward[[oldest, normal, long]] = -20.0, -2.0, -10.0
    initial[0] = 1.0
    return from_dense(transition, reward, discount=discount, initial=initial)


def inventory(
    capacity: int = 20,
    *,
    demand: ArrayLike = 8.0,
    price: float = 8.0,
    fixed_order: float = 4.0,
    unit_order: float = 2.0,
    holding: float = 1.0,
    lost_sale: float = 0.0,
    discount: float = 0.99,
) -> MDP:
    """Inventory: a shop orders each evening and sells its stock the next day, with lost sales and no delay.

    The state is the stock s, the action the order a <= capacity - s. With y = s + a goods and demand D,

        next stock   max(y - D, 0)
        reward       price E min(D, y) - fixed_order [a > 0] - unit_order a - holding y - lost_sale E max(D - y, 0)

    the expected reward r(s, a) of [Puterman1994] Sec. 3.2, which has no cost of lost sales; the default prices are
    those of its Sec. 3.2.2, there with capacity 3 and demand (1/4, 1/2, 1/4).

    Args:
      capacity: largest stock, at least 1.
      demand: the mean of a Poisson demand, or the probabilities of demands 0, 1, 2, ... It is not truncated.
      price: paid for each piece sold.
      fixed_order, unit_order: cost of placing an order, and of each piece ordered.
      holding: cost of each piece in the shop after the order came.
      lost_sale: cost of each piece that could not be sold.
      discount: in [0, 1].

    >>> mdp = inventory(3, demand=[0.25, 0.5, 0.25])
    >>> mdp.by_action(mdp.rows.expected_reward())
    array([[ 0., -1., -2., -5.],
           [ 5.,  0., -3., nan],
           [ 6., -1., nan, nan],
           [ 5., nan, nan, nan]])
    """
    c = checks.whole_number("capacity", capacity, 1)
    prices = {"price": price, "fixed_order": fixed_order, "unit_order": unit_order}
    for name, value in (prices | {"holding": holding, "lost_sale": lost_sale}).items():
        checks.number(name, value, 0.0, np.inf, closed=False)
    pmf, at_least, mean = _demand(demand, c)
    level = np.arange(c + 1)
    # left[y, t]: probability that y goods become t; everything that asks for y or more empties the shop
    left = np.tril(pmf[np.maximum(level[:, None] - level, 0)])
    left[:, 0] = at_least
    sold = level - left @ level
    worth = price * sold - holding * level - lost_sale * (mean - sold)

    state = np.repeat(level, c + 1 - level)
    order = np.concatenate([level[: c + 1 - s] for s in level])
    probability = left[state + order]
    listed = probability > 0.0
    return from_rows(
        state=state,
        action=order,
        length=listed.sum(axis=1),
        successor=np.broadcast_to(level, listed.shape)[listed],
        probability=probability[listed],
        row_reward=worth[state + order] - fixed_order * (order > 0) - unit_order * order,
        entry_reward=None,
        n_states=c + 1,
        discount=discount,
    )


def _demand(demand: ArrayLike, capacity: int) -> tuple[FloatArray, FloatArray, float]:
    """Pr(D = k) and Pr(D >= k) for k = 0, ..., capacity, and the mean of D."""
    from scipy.stats import poisson

    if np.ndim(demand) == 0:
        mean = checks.number("demand", demand, 0.0, np.inf, closed=False)
        k = np.arange(capacity + 1)
        return poisson.pmf(k, mean), poisson.sf(k - 1, mean), mean
    given = checks.distribution("demand", demand, np.size(demand))
    pmf = np.zeros(max(len(given), capacity + 1))
    pmf[: len(given)] = given
    at_least = np.cumsum(pmf[::-1])[::-1]
    return pmf[: capacity + 1], at_least[: capacity + 1], float(np.arange(len(given)) @ given)
