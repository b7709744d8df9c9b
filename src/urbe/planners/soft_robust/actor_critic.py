"""Soft-robust actor-critic [Derman2018]: a policy that is good on average over a few models, learned from draws.

With delta the error of the critic v . f(s), softmax preferences theta . psi(s, a), and s' from a model drawn by its
share,

    average reward   delta = r - J + v . f(s') - v . f(s),      J += gain alpha_t (r - J)
    discounted       delta = r + gamma v . f(s') - v . f(s)
    critic           v     += alpha_t delta f(s)
    actor            theta += beta_t  delta grad log pi(a | s)

and beta_t / alpha_t -> 0, so that the critic tracks the actor. If the model is drawn in every step, s' has the
distribution of the mean model, and the policy ascends its average reward or discounted value. If the model is drawn
once per episode, states do not reveal it; if they recur, the critic averages over models, so the objective is close
to the mean over models, but not equal. `mixture` computes both values exactly.

Rewards are divided by the largest |reward| while learning, so that rates do not depend on their scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks, rng
from urbe.mdp.evaluate import start_weights
from urbe.mdp.model import MDP
from urbe.planners.soft_robust.mixture import check_members
from urbe.types import FloatArray, IntArray

BLOCK = 100_000
"""Random numbers are drawn for this many steps at a time; the numbers do not depend on it."""


@dataclass(frozen=True)
class ActorCriticRates:
    """alpha_t = critic / (1 + t / delay)^critic_power,  beta_t = actor / (1 + t / delay)^actor_power.

    Args:
      critic, actor: initial rates, above 0.
      critic_power, actor_power: in (1/2, 1], that of the actor larger: its steps must become small beside the critic's.
      delay: steps before rates decay noticeably.
      gain: the rate of the average reward, as a share of the critic's.
    """

    critic: float = 0.1
    actor: float = 0.1
    critic_power: float = 0.55
    actor_power: float = 0.7
    delay: float = 1000.0
    gain: float = 0.1

    def __post_init__(self) -> None:
        for name in ("critic", "actor", "delay", "gain"):
            checks.positive(name, getattr(self, name))
        for name in ("critic_power", "actor_power"):
            checks.number(name, getattr(self, name), 0.5, 1.0)
        if self.actor_power <= self.critic_power:
            raise ValueError(
                f"actor_power is {self.actor_power:g}, expected more than critic_power, {self.critic_power:g}: the "
                "steps of the actor must become small relative to those of the critic."
            )


class SoftRobustActorCritic:
    """Learns a policy for models that are drawn by their shares.

    `urbe.save_agent` and `urbe.load_agent` save and resume it, bit for bit.

    Args:
      models: with the same states and actions; discount and first states are those of the first.
      shares: `(K,)` weight of each model, summing to one.
      criterion: "average" reward over an infinite horizon, in which a terminal state is a restart, or "discounted".
      draw: whether the model is drawn in every "step", or once per "episode".
      horizon: steps after which an episode is truncated and restarts; None for never, which needs draw="step".
      state_features: `(S, m)` f of the critic; one for each state by default.
      pair_features: `(R, n)` psi of the actor for the rows of the models; one for each pair by default.
      rates: step sizes.
      seed: seed of all random numbers.

    Attributes:
      gain: J, the average reward, or 0.

    >>> import urbe
    >>> rivers = [urbe.library.riverswim(3), urbe.library.riverswim(3)]
    >>> learner = SoftRobustActorCritic(rivers, [0.5, 0.5], seed=0).learn(50_000)
    >>> learner.policy.argmax(axis=1)
    array([1, 1, 1])
    """

    def __init__(
        self,
        models: Sequence[MDP],
        shares: ArrayLike,
        *,
        criterion: Literal["average", "discounted"] = "average",
        draw: Literal["step", "episode"] = "step",
        horizon: int | None = None,
        state_features: ArrayLike | None = None,
        pair_features: ArrayLike | None = None,
        rates: ActorCriticRates | None = None,
        seed: int,
    ) -> None:
        weights, first = check_members(models, shares), models[0]
        self._weights = weights
        self._average = checks.one_of("criterion", criterion, ("average", "discounted")) == "average"
        self._per_step = checks.one_of("draw", draw, ("step", "episode")) == "step"
        self._horizon = 0 if horizon is None else checks.whole_number("horizon", horizon, 1)
        if not self._per_step and horizon is None and not first.terminal.any():
            raise ValueError(
                "draw is 'episode', but episodes of these models never end, so the model would be drawn only once. "
                "Give horizon=, or use draw='step'."
            )
        if first.terminal.any() and first.initial is None:
            raise ValueError("The models have terminal states but no initial distribution; build them with initial=.")
        self._model, self._rates = first, ActorCriticRates() if rates is None else rates
        self._f = _features("state_features", state_features, first.n_states)
        self._psi = _features("pair_features", pair_features, first.n_rows)
        self._world = _world(models, weights)
        self._generator = rng.stream(checks.whole_number("seed", seed, 0), "soft-robust actor-critic")
        self._v, self._theta = np.zeros(self._f.size), np.zeros(self._psi.size)
        # state, member, steps of the episode; -1 begins
        self._now, self._numbers = np.array([-1, 0, 0], dtype=np.int64), np.zeros(2)  # steps taken, J
        self.parts: Mapping[str, object] = {
            "models": tuple(models), "shares": weights, "criterion": criterion, "draw": draw, "horizon": horizon,
            "state_features": state_features, "pair_features": pair_features, "rates": self._rates, "seed": seed,
        }  # fmt: skip

    def learn(self, steps: int) -> SoftRobustActorCritic:
        """Takes `steps` more steps."""
        left, r = checks.whole_number("steps", steps, 0), self._rates
        rates = np.array([r.critic, r.critic_power, r.actor, r.actor_power, r.delay, r.gain])
        discount = 1.0 if self._average else float(self._model.discount)
        while left:
            draws = self._generator.random((min(left, BLOCK), 4))
            _learn(
                draws, self._world, self._f, self._psi, self._average, self._per_step, self._horizon, discount, rates,
                self._v, self._theta, self._now, self._numbers,
            )  # fmt: skip
            left -= len(draws)
        return self

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self._numbers[0])

    @property
    def gain(self) -> float:
        """J, the running average reward; 0 for discounted rewards."""
        return float(self._numbers[1] * self._world.scale)

    @property
    def policy(self) -> FloatArray:
        """`(S, A)` probabilities."""
        model = self._model
        preference = _product(self._psi, self._theta, model.n_rows)
        best = np.full(model.n_states, -np.inf)
        np.maximum.at(best, model.row_state, preference)
        weight = np.exp(preference - best[model.row_state])
        total = np.bincount(model.row_state, weight, minlength=model.n_states)
        return model.by_action(weight / total[model.row_state], fill=0.0)

    @property
    def value(self) -> FloatArray:
        """`(S,)` the critic, of average reward up to a constant."""
        v = _product(self._f, self._v, self._model.n_states) * self._world.scale
        return np.where(self._model.terminal, 0.0, v)

    def __repr__(self) -> str:
        return f"SoftRobustActorCritic({len(self._weights)} models like {self._model}, {self.steps} steps)"

    def state(self) -> dict[str, Any]:
        """Everything needed to resume."""
        arrays = {"v": self._v, "theta": self._theta, "now": self._now, "numbers": self._numbers}
        return {name: x.copy() for name, x in arrays.items()} | {"generator": rng.positions([self._generator])}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""
        rng.go_to([self._generator], np.asarray(state["generator"]))
        self._v, self._theta = np.array(state["v"]), np.array(state["theta"])
        self._now, self._numbers = np.array(state["now"]), np.array(state["numbers"])


class _Features(NamedTuple):
    """Sparse rows of features."""

    start: IntArray
    column: IntArray
    value: FloatArray
    size: int


class _World(NamedTuple):
    """The models' rows concatenated, those of model k from k R on, and the distributions of draws."""

    row_start: IntArray
    entry_start: IntArray
    successor: IntArray
    probability: FloatArray
    reward: FloatArray
    below: FloatArray
    initial: FloatArray
    scale: float


def _features(name: str, given: ArrayLike | None, n: int) -> _Features:
    if given is None:
        return _Features(np.arange(n + 1), np.arange(n), np.ones(n), n)
    table = checks.float_array(name, given, ndim=2)
    if len(table) != n:
        raise ValueError(f"{name} has {len(table)} rows, expected {n}.")
    row, column = np.nonzero(table)
    return _Features(np.searchsorted(row, np.arange(n + 1)), column.copy(), table[row, column], table.shape[1])


def _product(features: _Features, weights: FloatArray, n: int) -> FloatArray:
    row = np.repeat(np.arange(n), np.diff(features.start))
    return np.bincount(row, features.value * weights[features.column], minlength=n).astype(np.float64, copy=False)


def _world(models: Sequence[MDP], shares: FloatArray) -> _World:
    starts, successors, probabilities, rewards, offset = [], [], [], [], 0
    for model in models:
        rows = model.rows
        starts.append(rows.entry_start[:-1].astype(np.int64) + offset)
        successors.append(rows.successor)
        probabilities.append(rows.probability)
        rewards.append(rows.reward_per_entry)
        offset += rows.n_entries
    reward = np.concatenate(rewards)
    scale = float(np.abs(reward).max(initial=0.0)) or 1.0
    initial = np.cumsum(start_weights(models[0]))
    below = np.cumsum(shares)
    return _World(
        models[0].row_start, np.append(np.concatenate(starts), offset), np.concatenate(successors),
        np.concatenate(probabilities), reward / scale, below / below[-1], initial / initial[-1], scale,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _dot(features, i, weights):
    total = 0.0
    for j in range(features.start[i], features.start[i + 1]):
        total += features.value[j] * weights[features.column[j]]
    return total


@njit(cache=True, nogil=True)
def _learn(draws, world, f, psi, average, per_step, horizon, discount, rates, v, theta, now, numbers):
    row_start, entry_start, successor, probability, reward, below, initial, _ = world
    critic, critic_power, actor, actor_power, delay, gain = rates
    n_rows = row_start[-1]
    most = 1
    for s in range(len(row_start) - 1):
        most = max(most, row_start[s + 1] - row_start[s])
    pi = np.empty(most)
    for i in range(len(draws)):
        beginning = now[0] < 0
        if beginning:
            now[0], now[2] = np.searchsorted(initial, draws[i, 3], side="right"), 0
        if per_step or beginning:
            now[1] = np.searchsorted(below, draws[i, 1], side="right")
        s, first = now[0], row_start[now[0]]
        n = row_start[s + 1] - first
        high, total = -np.inf, 0.0
        for a in range(n):
            pi[a] = _dot(psi, first + a, theta)
            high = max(high, pi[a])
        for a in range(n):
            pi[a] = np.exp(pi[a] - high)
            total += pi[a]
        chosen, x = 0, draws[i, 0] * total
        while chosen < n - 1 and x >= pi[chosen]:
            x -= pi[chosen]
            chosen += 1
        row = now[1] * n_rows + first + chosen
        e, x = entry_start[row], draws[i, 2]
        while e < entry_start[row + 1] - 1 and x >= probability[e]:
            x -= probability[e]
            e += 1
        while probability[e] <= 0.0 and e > entry_start[row]:  # rounding may carry past the last possible successor
            e -= 1
        following, r = successor[e], reward[e]
        now[2] += 1
        ended = row_start[following] == row_start[following + 1]
        again = np.int64(-1)
        if ended and average:  # the restart takes no time
            again = np.searchsorted(initial, draws[i, 3], side="right")
            ahead = _dot(f, again, v)
        else:
            ahead = 0.0 if ended else discount * _dot(f, following, v)
        delta = r - (numbers[1] if average else 0.0) + ahead - _dot(f, s, v)
        late = 1.0 + numbers[0] / delay
        alpha, beta = critic * late**-critic_power, actor * late**-actor_power
        if average:
            numbers[1] += gain * alpha * (r - numbers[1])
        for j in range(f.start[s], f.start[s + 1]):
            v[f.column[j]] += alpha * delta * f.value[j]
        for a in range(n):
            push = beta * delta * ((1.0 if a == chosen else 0.0) - pi[a] / total)
            for j in range(psi.start[first + a], psi.start[first + a + 1]):
                theta[psi.column[j]] += push * psi.value[j]
        numbers[0] += 1.0
        if ended or (horizon > 0 and now[2] == horizon):
            now[0] = -1
            if again >= 0 and per_step:  # the next state is the one whose value was used
                now[0], now[2] = again, 0
        else:
            now[0] = following
