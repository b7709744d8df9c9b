"""Randomised least-squares value iteration with one feature per step and pair [Osband2016] Algorithm 1.

Before each episode values are drawn, backward from the last step, from the posteriors of a linear regression on the
targets b = r + gamma max_a' Q_{h+1}(s', a'), with noise sigma and a Normal(0, 1 / lam) prior. For one-hot features

    Q_h(s, a) ~ Normal( sum b / (n + lam sigma^2),  1 / (n / sigma^2 + lam) ),    n targets seen at (h, s, a)

and the episode follows argmax_a Q_h(s, a). The n targets enter through their sums: rewards, and how often each
successor came. Values after the last step of the task are 0: the horizon is part of the problem, as in every
finite-horizon plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.choose import Chooser, Noise
from urbe.agents.locate import Locator
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True)
class RLSVI:
    """The agent's parameters; numbers may be given one per replicate.

    Args:
      noise: sigma, the standard deviation of one target; 0 leaves noise only where nothing was seen.
      precision: lam, of the prior of each value; its standard deviation should not be below that of the values.
      forget: the factor of old data after each episode, in [0, 1]; 1 forgets nothing.
      per_step: whether each step of an episode learns only from data at that step; if dynamics do not depend on time,
        pooling learns faster.

    >>> import urbe
    >>> from urbe.agents import Task, run
    >>> from urbe.envs.finite import FiniteEnv
    >>> sea = urbe.library.deep_sea(6)
    >>> record = run(RLSVI(0.1), FiniteEnv.of(sea), Task(urbe.Posterior.before(sea), 6), episodes=200, seed=0)
    >>> bool(record.reward[0, -20:].mean() > 0.9)
    True
    """

    noise: ArrayLike = 1.0
    precision: ArrayLike = 1.0
    forget: ArrayLike = 1.0
    per_step: bool = True

    def start(self, task: Task, streams: Streams) -> RandomValues:
        n = len(streams.replicates)
        noise = checks.per_replicate("noise", self.noise, n, 0.0, np.inf)
        precision = checks.per_replicate("precision", self.precision, n, 0.0, np.inf, above=True)
        forget = checks.per_replicate("forget", self.forget, n, 0.0, 1.0)
        return RandomValues(task, streams, noise, precision, forget, task.horizon if self.per_step else 1)


class RandomValues:
    """An `Agent` that acts greedily on values drawn from the posterior of a regression.

    Attributes:
      q: `(B, H, R)` the values drawn for the current episode.
      n, reward: `(B, L, R)` targets seen and the sum of their rewards, for L = H steps or 1.
      led: `(B, L, E)` how often each successor came without ending the process.
    """

    def __init__(
        self, task: Task, streams: Streams, noise: FloatArray, precision: FloatArray, forget: FloatArray, layers: int
    ) -> None:
        b, model = len(streams.replicates), task.prior.model
        self._model = model
        self._locate = Locator(model)
        self._choose = Chooser(model, Noise.NONE, streams)
        self._normal = Draws(streams("values"), "normal", 2 * task.horizon * model.n_rows)
        self._noise, self._precision, self._forget = noise, precision, forget
        self.q: FloatArray = np.zeros((b, task.horizon, model.n_rows))
        self.n: FloatArray = np.zeros((b, layers, model.n_rows))
        self.reward: FloatArray = np.zeros((b, layers, model.n_rows))
        self.led: FloatArray = np.zeros((b, layers, model.rows.n_entries))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        """New values are drawn when an episode begins."""
        if step == 0:
            model, rows, draws = self._model, self._model.rows, self._normal.need(self.q[0].size)
            _draw_values(
                replicate, rows.entry_start, rows.successor, model.row_start, model.discount, self._noise**2,
                self._precision, self.n, self.reward, self.led, draws.values, draws.at, self.q,
            )  # fmt: skip
        actions: IntArray = self._model.action[self._choose(replicate, state, self.q, self.q, step)]
        return actions

    def observe(self, steps: Steps, step: int) -> None:
        row, entry = self._locate(steps)
        layer = min(step, self.n.shape[1] - 1)
        self.n[steps.replicate, layer, row] += 1.0
        self.reward[steps.replicate, layer, row] += steps.reward
        self.led[steps.replicate, layer, entry] += ~steps.terminated

    def end_episode(self) -> None:
        if (self._forget < 1.0).any():
            for sums in (self.n, self.reward, self.led):
                sums *= self._forget[:, None, None]

    def state(self) -> dict[str, Any]:
        sums = {name: getattr(self, name).copy() for name in ("q", "n", "reward", "led")}
        return {**sums, "choose": self._choose.state(), "normal": self._normal.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in ("q", "n", "reward", "led"):
            setattr(self, name, np.array(state[name]))
        self._choose.load(state["choose"])
        self._normal.load(state["normal"])


@njit(cache=True, nogil=True)
def _draw_values(which, entry_start, successor, row_start, gamma, variance, precision, n, reward, led, normal, at, q):
    horizon, n_states = q.shape[1], len(row_start) - 1
    v = np.empty(n_states)
    for b in which:
        v[:] = 0.0
        for h in range(horizon - 1, -1, -1):
            layer = h if n.shape[1] > 1 else 0
            for row in range(q.shape[2]):
                targets = reward[b, layer, row]
                for j in range(entry_start[row], entry_start[row + 1]):
                    targets += gamma * led[b, layer, j] * v[successor[j]]
                # both formulas of the module times sigma^2, so that sigma = 0 needs no limit
                weight = n[b, layer, row] + precision[b] * variance[b]
                mean = targets / weight if weight > 0.0 else 0.0
                spread = variance[b] / weight if weight > 0.0 else 1.0 / precision[b]
                q[b, h, row] = mean + np.sqrt(spread) * normal[b, at[b]]
                at[b] += 1
            for s in range(n_states):
                if row_start[s] < row_start[s + 1]:
                    v[s] = q[b, h, row_start[s] : row_start[s + 1]].max()
