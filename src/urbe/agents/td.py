"""Learning values of pairs from single steps, whatever the target; compiled, for many replicates at once.

After a step from s by a to s' with reward r:

    Q(s, a) += eta [ r + gamma (V(s') + penalty(V)) - Q(s, a) ],    V(s) = max_a Q(s, a)

V(s') is 0 when the process ended there; when it was merely cut off, V(s') counts like any other. The penalties, with
`size` R or rho:

    NONE            0                              Q-learning
    CONTAMINATION   R (min_x V(x) - V(s'))         nature moves with probability R
    L1              -rho (max V - min V) / 2       the row may be off by x with sum x = 0 and sum |x| <= rho,
    L2              -rho || V - mean V ||_2        ... || x ||_2 <= rho,
    LINF            -rho || V - median V ||_1      ... max |x| <= rho: in each case -rho min_c || V - c || dually
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.agents.decay import Decay, as_decay, rate_after
from urbe.agents.locate import Locator
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray

NONE, CONTAMINATION, L1, L2, LINF = range(5)


class QLearner:
    """An `Agent` that learns as in the module and explores by chance.

    Args:
      task: pairs and discount; its prior is not read.
      streams: of the agent.
      penalty: one of the numbers of this module.
      size: `(B,)` of the penalty.
      rate: eta, by the number of times the pair was tried before.
      exploration: probability of an action at random, by the number of times the state was seen before.
      initial: Q before any step.

    Attributes:
      q: `(B, 1, R)` values of pairs.
      v: `(B, S)` values of states.
      tried: `(B, R)` how often each pair was.
    """

    def __init__(
        self,
        task: Task,
        streams: Streams,
        penalty: int,
        size: FloatArray,
        rate: ArrayLike | Decay,
        exploration: ArrayLike | Decay,
        initial: ArrayLike,
    ) -> None:
        n, model = len(streams.replicates), task.prior.model
        self._model = model
        self._locate = Locator(model)
        self._choose = Chooser(model, Noise.NONE, streams)
        self._uniform = Draws(streams("exploration"), "uniform")
        self._penalty, self._size = penalty, size
        self._rate = as_decay(rate).for_replicates("rate", n)
        self._exploration = as_decay(exploration).for_replicates("exploration", n)
        start = checks.per_replicate("initial", initial, n, -np.inf, np.inf)
        self.q: FloatArray = np.repeat(start[:, None, None], model.n_rows, axis=2)
        self.v: FloatArray = np.where(model.terminal, 0.0, start[:, None])
        self.tried: FloatArray = np.zeros((n, model.n_rows))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:  # noqa: ARG002
        """The values serve all steps."""
        rows = self._choose(replicate, state, self.q, self.q, 0)
        draws = self._uniform.need(2)
        start, decay = self._model.row_start, self._exploration
        _explore(replicate, state, start, self.tried, decay, draws.values, draws.at, rows)
        actions: IntArray = self._model.action[rows]
        return actions

    def observe(self, steps: Steps, step: int) -> None:  # noqa: ARG002
        model, row = self._model, self._locate.rows(steps)
        _learn(
            steps.replicate, steps.state, row, steps.reward, steps.next_state, steps.terminated, model.row_start,
            model.discount, self._penalty, self._size, self._rate, self.q, self.v, self.tried,
        )  # fmt: skip

    def end_episode(self) -> None:
        """Every step was learnt from when it came."""

    def state(self) -> dict[str, Any]:
        arrays = {"q": self.q.copy(), "v": self.v.copy(), "tried": self.tried.copy()}
        return {**arrays, "choose": self._choose.state(), "exploration": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.q, self.v, self.tried = (np.array(state[name]) for name in ("q", "v", "tried"))
        self._choose.load(state["choose"])
        self._uniform.load(state["exploration"])


@njit(cache=True, nogil=True)
def penalty_of(kind, v, ahead, size):
    """What nature takes away from V(s') = `ahead`; see the module."""
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
def _learn(replicate, state, row, reward, next_state, terminated, row_start, gamma, kind, size, rate, q, v, tried):
    for k in range(len(replicate)):
        b, s, i = replicate[k], state[k], row[k]
        ahead = 0.0 if terminated[k] else v[b, next_state[k]]
        target = reward[k] + gamma * (ahead + penalty_of(kind, v[b], ahead, size[b]))
        q[b, 0, i] += rate_after(tried[b, i], rate[b]) * (target - q[b, 0, i])
        tried[b, i] += 1.0
        best = -np.inf
        for j in range(row_start[s], row_start[s + 1]):
            best = max(best, q[b, 0, j])
        v[b, s] = best


@njit(cache=True, nogil=True)
def _explore(replicate, state, row_start, tried, decay, uniform, at, rows):
    """Puts a row at random in the place of some of `rows`."""
    for k in range(len(replicate)):
        b, first, last = replicate[k], row_start[state[k]], row_start[state[k] + 1]
        seen = 0.0
        for j in range(first, last):
            seen += tried[b, j]
        if uniform[b, at[b]] < rate_after(seen, decay[b]):
            rows[k] = first + int(uniform[b, at[b] + 1] * (last - first))
        at[b] += 2
