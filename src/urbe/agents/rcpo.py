"""Reward-constrained policy optimisation: an actor, a critic and a Lagrange multiplier, on three time scales.

    critic    V(s) += eta_c delta,     delta = r - lambda c(s, a) + gamma V(s') - V(s)
    actor     theta(s, a') += eta_a delta (1[a' = a] - pi(a'|s)),       pi = softmax(theta)
    price     lambda <- min(max(lambda + eta_p (J_C - limit), 0), most)   after each episode, J_C its discounted cost

with eta_p much smaller than eta_a, and eta_a than eta_c [Tessler2019]. The penalty guides; what is constrained is J_C.
The price tends to the multiplier of the linear program (`urbe.solve_constrained`). With a fixed price it is an
actor-critic.
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


@dataclass(frozen=True, eq=False)
class RCPO:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      cost: c(s, a): a number, `(R,)`, `(S, A)` or `{(s, a): number}`.
      limit: of the expected discounted cost of an episode.
      critic, actor: step sizes, by the number of times the state was seen.
      price: step size of the price, by the number of episodes.
      initial_price, most: where the price begins, and its largest value.
    """

    cost: Any
    limit: ArrayLike
    critic: ArrayLike | PolynomialDecay = 0.1
    actor: ArrayLike | PolynomialDecay = 0.05
    price: ArrayLike | PolynomialDecay = field(default_factory=lambda: PolynomialDecay(0.02, power=0.4, delay=500.0))
    initial_price: ArrayLike = 0.0
    most: ArrayLike = 100.0

    def start(self, task: Task, streams: Streams) -> RCPOLearner:
        return RCPOLearner(task, streams, self)


class RCPOLearner:
    """An `Agent` that learns as in the module.

    Attributes:
      theta: `(B, R)` preferences of pairs.
      v: `(B, S)` values of the penalised reward.
      price: `(B,)` lambda.
      mean_price: `(B,)` its mean over the second half of the episodes so far, less noisy.
      episode_cost: `(B,)` discounted cost of the episode so far.
    """

    def __init__(self, task: Task, streams: Streams, settings: RCPO) -> None:
        n, model = len(streams.replicates), task.prior.model
        self._model, self._locate = model, Locator(model)
        self._uniform = Draws(streams("policy"), "uniform")
        self._cost = model.per_row("cost", settings.cost)
        self._limit = checks.per_replicate("limit", settings.limit, n, -np.inf, np.inf)
        self._most = checks.per_replicate("most", settings.most, n, 0.0, np.inf)
        self._critic, self._actor, self._step = (
            as_decay(getattr(settings, name)).for_replicates(name, n) for name in ("critic", "actor", "price")
        )
        self.theta: FloatArray = np.zeros((n, model.n_rows))
        self.v: FloatArray = np.zeros((n, model.n_states))
        self._seen: FloatArray = np.zeros((n, model.n_states))
        self.price: FloatArray = checks.per_replicate("initial_price", settings.initial_price, n, 0.0, np.inf)
        self.episode_cost: FloatArray = np.zeros(n)
        self._weight: FloatArray = np.ones(n)
        self._sums: FloatArray = np.zeros((1, n))  # of the price, episode by episode
        self._episodes = 0

    @property
    def mean_price(self) -> FloatArray:
        if self._episodes == 0:
            return self.price
        half = self._episodes // 2
        return np.asarray((self._sums[self._episodes] - self._sums[half]) / (self._episodes - half))

    @property
    def policy(self) -> FloatArray:
        """`(B, R)` the probability of each row in its state."""
        start = self._model.row_start[:-1][~self._model.terminal]
        states = np.cumsum(np.isin(np.arange(self._model.n_rows), start)) - 1
        weight = np.exp(self.theta - np.maximum.reduceat(self.theta, start, axis=1)[:, states])
        return np.asarray(weight / np.add.reduceat(weight, start, axis=1)[:, states])

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
            self._model.discount, self._cost, self.price, self._critic, self._actor, self.theta, self.v, self._seen,
            self.episode_cost, self._weight,
        )  # fmt: skip

    def end_episode(self) -> None:
        """The price follows the cost."""
        rate = np.array([rate_after(float(self._episodes), line) for line in self._step])
        self.price = np.clip(self.price + rate * (self.episode_cost - self._limit), 0.0, self._most)
        self._episodes += 1
        if self._episodes == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        self._sums[self._episodes] = self._sums[self._episodes - 1] + self.price
        self.episode_cost, self._weight = np.zeros_like(self.price), np.ones_like(self.price)

    def state(self) -> dict[str, Any]:
        arrays = {name: np.array(getattr(self, f"_{name}")) for name in ("seen", "weight", "sums")}
        own = {name: np.array(getattr(self, name)) for name in ("theta", "v", "price", "episode_cost")}
        return {**arrays, **own, "episodes": self._episodes, "policy": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self._seen, self._weight, self._sums = (np.array(state[name]) for name in ("seen", "weight", "sums"))
        self.theta, self.v, self.price = (np.array(state[name]) for name in ("theta", "v", "price"))
        self.episode_cost, self._episodes = np.array(state["episode_cost"]), int(state["episodes"])
        self._uniform.load(state["policy"])


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
    replicate, state, row, reward, next_state, terminated, row_start, gamma, cost, price, critic, actor, theta, v, seen,
    episode_cost, weight,
):  # fmt: skip
    for k in range(len(replicate)):
        b, s, i = replicate[k], state[k], row[k]
        episode_cost[b] += weight[b] * cost[i]
        weight[b] *= gamma
        ahead = 0.0 if terminated[k] else v[b, next_state[k]]
        delta = reward[k] - price[b] * cost[i] + gamma * ahead - v[b, s]
        first, last = row_start[s], row_start[s + 1]
        pi = _probabilities(theta[b], first, last)
        step = rate_after(seen[b, s], actor[b]) * delta
        for j in range(first, last):
            theta[b, j] += step * ((1.0 if j == i else 0.0) - pi[j - first])
        v[b, s] += rate_after(seen[b, s], critic[b]) * delta
        seen[b, s] += 1.0
