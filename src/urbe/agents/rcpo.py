"""Reward-constrained policy optimisation: critics, an actor and a Lagrange multiplier, on three time scales.

    critics   Q(s, a) += eta_c [ r + gamma sum_b pi(b|s') Q(s', b) - Q(s, a) ],    and Q_C with the cost in place of r
    actor     theta(s, .) += eta_a H (Q - lambda Q_C)(s, .),                       pi = softmax(theta)
    price     lambda <- min(max(lambda + eta_p (J_C - limit), 0), most)            after each episode

with eta_p much smaller than eta_a, and eta_a than eta_c [Tessler2019]; J_C is the discounted cost of the episode, and H
the horizon, at most 1 / (1 - gamma). What is constrained is J_C. The price tends to the multiplier of the linear
program (`urbe.solve_constrained`), and the mean discounted visits of pairs to its occupancies. With a fixed price it is
an actor-critic.

Departure: the paper's critic estimates values of r - lambda c. Here reward and cost are kept apart, so that a change of
the price requires no learning. The actor follows the natural gradient with probabilities of at least exp(-8) of the
largest: steps of the plain gradient are proportional to the probability of an action, so that a policy that is nearly
deterministic ignores the price, which then rises far beyond the multiplier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.decay import PolynomialDecay, as_decay, rate_after
from urbe.agents.locate import Locator
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray

KEPT = ("theta", "q", "cost_q", "price", "mean_price", "episode_cost", "_visits", "_discount")

FLOOR = -8.0
"""The least preference of an action, relative to the largest in its state."""


@dataclass(frozen=True, eq=False)
class RCPO:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      cost: c(s, a): a number, `(R,)`, `(S, A)` or `{(s, a): number}`.
      limit: limit of the expected discounted cost of an episode.
      critic, actor, price: step sizes of the critics, the actor (for returns of about one) and the price, by the number
        of episodes.
      initial_price, most: the initial and the largest price.
      initial: initial Q; above all values it makes the agent try everything. Actions that seem worse are soon rare, so
        that an initial Q below them may hide better ones.
    """

    cost: Any
    limit: ArrayLike
    critic: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(0.1, power=0.5, delay=2000.0))
    actor: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(0.1, power=0.5, delay=2000.0))
    price: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(0.02, power=0.4, delay=500.0))
    initial_price: ArrayLike = 0.0
    most: ArrayLike = 100.0
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> RCPOLearner:
        return RCPOLearner(task, streams, self)


class RCPOLearner:
    """An `Agent` that learns as in the module.

    Attributes:
      theta: `(B, R)` preferences of pairs.
      q, cost_q: `(B, R)` values of reward and cost of pairs.
      price: `(B,)` lambda.
      mean_price: `(B,)` its mean, less noisy: that of episode k has the weight k^2.
      episode_cost: `(B,)` discounted cost of the episode so far.
    """

    def __init__(self, task: Task, streams: Streams, settings: RCPO) -> None:
        n, model = len(streams.replicates), task.prior.model
        self._model, self._locate = model, Locator(model)
        self._uniform = Draws(streams("policy"), "uniform")
        self._cost = model.per_row("cost", settings.cost)
        self._limit = checks.per_replicate("limit", settings.limit, n, -np.inf, np.inf)
        self._most = checks.per_replicate("most", settings.most, n, 0.0, np.inf)
        self._rates = [
            as_decay(getattr(settings, name)).for_replicates(name, n) for name in ("critic", "actor", "price")
        ]
        self._reach = min(float(task.horizon), 1.0 / max(1.0 - model.discount, 1e-300))
        self.theta, self.q, self.cost_q, self._visits = (np.zeros((n, model.n_rows)) for _ in range(4))
        self.q += checks.per_replicate("initial", settings.initial, n, -np.inf, np.inf)[:, None]
        self.price: FloatArray = checks.per_replicate("initial_price", settings.initial_price, n, 0.0, np.inf)
        self.mean_price: FloatArray = self.price.copy()
        self.episode_cost: FloatArray = np.zeros(n)
        self._discount: FloatArray = np.ones(n)  # gamma^t
        self._episodes = 0
        self._set_rates()

    @property
    def policy(self) -> FloatArray:
        """`(B, R)` the probability of each row in its state, of the latest policy."""
        start, states = self._places()
        weight = np.exp(self.theta - np.maximum.reduceat(self.theta, start, axis=1)[:, states])
        return np.asarray(weight / np.add.reduceat(weight, start, axis=1)[:, states])

    @property
    def mean_policy(self) -> FloatArray:
        """`(B, R)` the policy with the mean discounted visits of all past ones, weighted as `mean_price`.

        The latest policy alternates between actions of equal worth; this one mixes them, as the linear program does.
        States that were never visited follow the latest policy.
        """
        start, states = self._places()
        total = np.add.reduceat(self._visits, start, axis=1)[:, states]
        return np.where(total > 0.0, self._visits / np.where(total > 0.0, total, 1.0), self.policy)

    def _places(self) -> tuple[IntArray, IntArray]:
        """The first row of each state with actions, and each row's index among these states."""
        start = self._model.row_start[:-1][~self._model.terminal]
        return start, np.cumsum(np.isin(np.arange(self._model.n_rows), start)) - 1

    def _set_rates(self) -> None:
        """The step sizes of the episode."""
        self._critic, self._actor, self._step = (
            np.array([rate_after(float(self._episodes), line) for line in lines]) for lines in self._rates
        )

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """Draws from the policy."""
        draws = self._uniform.need(1)
        rows = np.empty(len(state), dtype=np.int64)
        _draw(replicate, state, self._model.row_start, self.theta, draws.values, draws.at, rows)
        actions: IntArray = self._model.action[rows]
        return actions

    def observe(self, steps: Steps, step: int) -> None:
        row = self._locate.rows(steps)
        _learn(
            steps.replicate, steps.state, row, steps.reward, steps.next_state, steps.terminated, self._model.row_start,
            self._model.discount, self._cost, self.price, self._critic, self._reach * self._actor, self.theta, self.q,
            self.cost_q, self._visits, (self._episodes + 1.0) ** 2, self.episode_cost, self._discount,
        )  # fmt: skip

    def end_episode(self) -> None:
        """The price follows the cost."""
        self.price = np.clip(self.price + self._step * (self.episode_cost - self._limit), 0.0, self._most)
        self._episodes += 1
        k = self._episodes
        share = 6.0 * k / ((k + 1.0) * (2.0 * k + 1.0))  # k^2 / (1 + 4 + ... + k^2)
        self.mean_price = self.mean_price + share * (self.price - self.mean_price)
        self.episode_cost, self._discount = np.zeros_like(self.price), np.ones_like(self.price)
        self._set_rates()

    def state(self) -> dict[str, Any]:
        own = {name: np.array(getattr(self, name)) for name in KEPT}
        return {**own, "episodes": self._episodes, "policy": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in KEPT:
            setattr(self, name, np.array(state[name]))
        self._episodes = int(state["episodes"])
        self._uniform.load(state["policy"])
        self._set_rates()


@njit(cache=True, nogil=True)
def _probabilities(theta, first, last):
    top = theta[first:last].max()
    weight = np.exp(theta[first:last] - top)
    return weight / weight.sum()


@njit(cache=True, nogil=True)
def _draw(replicate, state, row_start, theta, uniform, at, rows):
    for k in range(len(replicate)):
        b, first, last = replicate[k], row_start[state[k]], row_start[state[k] + 1]
        left, row = uniform[b, at[b]], first
        pi = _probabilities(theta[b], first, last)
        while row < last - 1 and left >= pi[row - first]:
            left -= pi[row - first]
            row += 1
        rows[k] = row
        at[b] += 1


@njit(cache=True, nogil=True)
def _learn(
    replicate, state, row, reward, next_state, terminated, row_start, gamma, cost, price, critic, actor, theta, q,
    cost_q, visits, importance, episode_cost, discount,
):  # fmt: skip
    for k in range(len(replicate)):
        b, s, i = replicate[k], state[k], row[k]
        first, last = row_start[s], row_start[s + 1]
        pi = _probabilities(theta[b], first, last)
        for j in range(first, last):
            visits[b, j] += importance * discount[b] * pi[j - first]
        episode_cost[b] += discount[b] * cost[i]
        discount[b] *= gamma
        ahead, cost_ahead = 0.0, 0.0
        if not terminated[k]:
            begin, end = row_start[next_state[k]], row_start[next_state[k] + 1]
            following = _probabilities(theta[b], begin, end)
            for j in range(begin, end):
                ahead += following[j - begin] * q[b, j]
                cost_ahead += following[j - begin] * cost_q[b, j]
        q[b, i] += critic[b] * (reward[k] + gamma * ahead - q[b, i])
        cost_q[b, i] += critic[b] * (cost[i] + gamma * cost_ahead - cost_q[b, i])
        for j in range(first, last):
            theta[b, j] += actor[b] * (q[b, j] - price[b] * cost_q[b, j])
        top = theta[b, first:last].max()
        for j in range(first, last):
            theta[b, j] = max(theta[b, j] - top, FLOOR)
