"""Q-learning, plain and robust against a nature, for many replicates at once and without a model.

After a step from s by a to s' with reward r:

    Q(s, a) += eta [ r + gamma (V(s') + penalty(V)) - Q(s, a) ],    V(s) = max_a Q(s, a)

V(s') is 0 at terminal states, but not after truncation. The penalties, with `size` R or rho:

    NONE            0                              Q-learning
    CONTAMINATION   R (min_x V(x) - V(s'))         nature moves with probability R
    L1              -rho (max V - min V) / 2       the row may differ by x with sum x = 0 and sum |x| <= rho,
    L2              -rho || V - mean V ||_2        ... || x ||_2 <= rho,
    LINF            -rho || V - median V ||_1      ... max |x| <= rho: in each case -rho min_c || V - c || dually

A step costs O(actions), and O(states) if nature depends on all values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.agents.decay import PolynomialDecay, as_decay, rate_after
from urbe.agents.locate import Locator
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray

NONE, CONTAMINATION, L1, L2, LINF = range(5)


def _rate() -> PolynomialDecay:
    return PolynomialDecay(1.0, power=0.7)


def _exploration() -> PolynomialDecay:
    return PolynomialDecay(1.0, power=0.5, delay=10.0)


@dataclass(frozen=True)
class QLearning:
    """Q(s, a) += eta [ r + gamma V(s') - Q(s, a) ]  [WatkinsDayan1992]; numbers may be given one per replicate.

    Args:
      rate: eta, in [0, 1]; a `PolynomialDecay` depends on the number of times the pair was tried.
      exploration: probability of a random action; a `PolynomialDecay` depends on the number of visits to the state.
      initial: initial Q; above all values it makes the agent try everything.

    >>> import urbe
    >>> from urbe.agents import Single, Task
    >>> task = Task(urbe.Posterior.before(urbe.library.riverswim(6)), horizon=20)
    >>> agent = Single(QLearning(rate=0.5), task, seed=0)
    >>> agent.observe(state=0, action=0, reward=0.005, next_state=0)
    >>> float(agent.agent.q[0, 0, 0])
    0.0025
    """

    rate: ArrayLike | PolynomialDecay = field(default_factory=_rate)
    exploration: ArrayLike | PolynomialDecay = field(default_factory=_exploration)
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = np.zeros(len(streams.replicates))
        return QLearner(task, streams, NONE, size, self.rate, self.exploration, self.initial)


@dataclass(frozen=True)
class ContaminationQ:
    """Q(s, a) += eta [ r + gamma ((1 - R) V(s') + R min_x V(x)) - Q(s, a) ]  [WangZou2021].

    With probability R nature chooses the next state, among all states. With rewards r(s, a) and a discount below
    1 it converges to the robust values of `Contamination(R, support="all")`, as fast as Q-learning to the plain ones.

    Args:
      fraction: R, in [0, 1]; 0 is Q-learning.
      rate, exploration, initial: as for `QLearning`.
    """

    fraction: ArrayLike = 0.1
    rate: ArrayLike | PolynomialDecay = field(default_factory=_rate)
    exploration: ArrayLike | PolynomialDecay = field(default_factory=_exploration)
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = checks.per_replicate("fraction", self.fraction, len(streams.replicates), 0.0, 1.0)
        return QLearner(task, streams, CONTAMINATION, size, self.rate, self.exploration, self.initial)


class Shape(Enum):
    """The set X of differences x between the true row and the one that is sampled; all have sum x = 0."""

    L1 = L1
    """sum |x| <= radius."""

    ELLIPSOID = L2
    """x . x <= radius^2."""

    BOX = LINF
    """max |x| <= radius."""


@dataclass(frozen=True)
class MismatchQ:
    """Q(s, a) += eta [ r + gamma (V(s') + min_{x in X} x . V) - Q(s, a) ]  [RoyXuPokutta2017].

    The steps come from a row p, and the values are for the worst of p + X. Since p is unknown, p + x may have entries
    below 0: this is the fixed point of a slightly larger set, and the values are at most the robust ones. It converges
    if discount (1 + radius L) < 1, with L = 1, sqrt(S), S for L1, ellipsoid and box, and also if p + X stays within the
    simplex.

    Args:
      radius: radius of X, at least 0; 0 is Q-learning.
      shape: shape of X.
      rate, exploration, initial: as for `QLearning`.
    """

    radius: ArrayLike = 0.05
    shape: Shape = Shape.L1
    rate: ArrayLike | PolynomialDecay = field(default_factory=_rate)
    exploration: ArrayLike | PolynomialDecay = field(default_factory=_exploration)
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = checks.per_replicate("radius", self.radius, len(streams.replicates), 0.0, np.inf)
        return QLearner(task, streams, self.shape.value, size, self.rate, self.exploration, self.initial)


class QLearner:
    """An `Agent` that learns as in the module and explores by random actions.

    Args:
      task: pairs and discount; its prior is not used.
      streams: random streams of the agent.
      penalty: one of the constants of this module.
      size: `(B,)` size of the penalty.
      rate: eta, by the number of times the pair was tried before.
      exploration: probability of a random action, by the number of earlier visits to the state.
      initial: initial Q.
      on_policy: whether the value of a state is the mean over its actions, including exploration, rather than the best.

    Attributes:
      q: `(B, 1, R)` values of pairs.
      v: `(B, S)` values of states.
      tried: `(B, R)` number of times each pair was tried.
    """

    def __init__(
        self,
        task: Task,
        streams: Streams,
        penalty: int,
        size: FloatArray,
        rate: ArrayLike | PolynomialDecay,
        exploration: ArrayLike | PolynomialDecay,
        initial: ArrayLike,
        *,
        on_policy: bool = False,
    ) -> None:
        n, model = len(streams.replicates), task.prior.model
        self._model = model
        self._locate = Locator(model)
        self._choose = Chooser(model, Noise.NONE, streams)
        self._uniform = Draws(streams("exploration"), "uniform")
        self._penalty, self._size, self._on_policy = penalty, size, on_policy
        self._rate = as_decay(rate).for_replicates("rate", n)
        self._exploration = as_decay(exploration).for_replicates("exploration", n)
        start = checks.per_replicate("initial", initial, n, -np.inf, np.inf)
        self.q: FloatArray = np.repeat(start[:, None, None], model.n_rows, axis=2)
        self.v: FloatArray = np.where(model.terminal, 0.0, start[:, None])
        self.tried: FloatArray = np.zeros((n, model.n_rows))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """The values serve all steps."""
        rows = self._choose(replicate, state, self.q, None, 0)
        draws = self._uniform.need(2)
        start, decay = self._model.row_start, self._exploration
        _explore(replicate, state, start, self.tried, decay, draws.values, draws.at, rows)
        actions: IntArray = self._model.action[rows]
        return actions

    def observe(self, steps: Steps, step: int) -> None:
        model, row = self._model, self._locate.rows(steps)
        _learn(
            steps.replicate, steps.state, row, steps.reward, steps.next_state, steps.terminated, model.row_start,
            model.discount, self._penalty, self._size, self._rate, self._exploration, self._on_policy,
            self.q, self.v, self.tried,
        )  # fmt: skip

    def end_episode(self) -> None:
        """Does nothing: each step is learned from immediately."""

    def state(self) -> dict[str, Any]:
        arrays = {"q": self.q.copy(), "v": self.v.copy(), "tried": self.tried.copy()}
        return {**arrays, "choose": self._choose.state(), "exploration": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.q, self.v, self.tried = (np.array(state[name]) for name in ("q", "v", "tried"))
        self._choose.load(state["choose"])
        self._uniform.load(state["exploration"])


@njit(cache=True, nogil=True)
def penalty_of(kind, v, ahead, size):
    """Computes the penalty of nature on V(s') = `ahead`; see the module."""
    if kind == NONE or size == 0.0:
        return 0.0
    if kind == CONTAMINATION:
        return size * (v.min() - ahead)
    if kind == L1:
        return -size * 0.5 * (v.max() - v.min())
    total = 0.0
    if kind == L2:
        mean = v.mean()
        for x in v:
            total += (x - mean) ** 2
        return -size * np.sqrt(total)
    ordered = np.sort(v)
    for i in range(len(v) // 2):
        total += ordered[len(v) - 1 - i] - ordered[i]
    return -size * total


@njit(cache=True, nogil=True)
def _learn(
    replicate, state, row, reward, next_state, terminated, row_start, gamma, kind, size, rate, decay, on_policy,
    q, v, tried,
):  # fmt: skip
    for k in range(len(replicate)):
        b, s, i = replicate[k], state[k], row[k]
        ahead = 0.0 if terminated[k] else v[b, next_state[k]]
        target = reward[k] + gamma * (ahead + penalty_of(kind, v[b], ahead, size[b]))
        q[b, 0, i] += rate_after(tried[b, i], rate[b]) * (target - q[b, 0, i])
        tried[b, i] += 1.0
        best, mean, seen, n = -np.inf, 0.0, 0.0, row_start[s + 1] - row_start[s]
        for j in range(row_start[s], row_start[s + 1]):
            best = max(best, q[b, 0, j])
            mean += q[b, 0, j] / n
            seen += tried[b, j]
        v[b, s] = best
        if on_policy:
            share = rate_after(seen, decay[b])
            v[b, s] = (1.0 - share) * best + share * mean


@njit(cache=True, nogil=True)
def _explore(replicate, state, row_start, tried, decay, uniform, at, rows):
    """Replaces some of `rows` by random rows."""
    for k in range(len(replicate)):
        b, first, last = replicate[k], row_start[state[k]], row_start[state[k] + 1]
        seen = 0.0
        for j in range(first, last):
            seen += tried[b, j]
        if uniform[b, at[b]] < rate_after(seen, decay[b]):
            rows[k] = first + int(uniform[b, at[b] + 1] * (last - first))
        at[b] += 2
