"""Choose actions from the values of a plan, with noise and random ties; compiled.

    action = argmax_a  Q_h(s, a) + zeta_a sqrt(u_h(s, a)),    zeta ~ Normal(0, 1)

A plan may have to randomise, for example if the actions of a state share nature's budget. All actions of its mixture
then have the same value: if one of them is the best, the action is drawn from the mixture.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numba import njit

from urbe import checks
from urbe.agents.base import Streams
from urbe.mdp.model import MDP
from urbe.rng import Draws
from urbe.types import FloatArray, IntArray


class Noise(Enum):
    """When zeta is drawn: never, at each step, or once per pair and episode (consistent over its steps)."""

    NONE = "none"
    STEP = "step"
    EPISODE = "episode"


class Chooser:
    """Picks rows for B replicates; ties are broken at random.

    Args:
      model: the pairs.
      noise: when to draw.
      streams: of the agent.
    """

    def __init__(self, model: MDP, noise: Noise, streams: Streams) -> None:
        checks.choice("noise", noise, Noise)
        self._row_start = model.row_start
        self._noise = noise
        self._kind = (Noise.NONE, Noise.STEP, Noise.EPISODE).index(noise)
        self._most = int(np.diff(model.row_start).max(initial=1))
        ahead = max(512, 2 * model.n_rows) if noise is Noise.EPISODE else max(512, 2 * self._most)
        self._normal = Draws(streams("noise"), "normal", ahead)
        self._uniform = Draws(streams("ties"), "uniform", max(256, 2 * self._most))
        self._zeta = np.zeros((len(streams.replicates), model.n_rows))

    def begin_episode(self, replicate: IntArray) -> None:
        """Draws the noise of an episode."""
        if self._noise is Noise.EPISODE:
            normal, n_rows = self._normal.need(self._zeta.shape[1]), self._zeta.shape[1]
            ahead = normal.at[replicate][:, None] + np.arange(n_rows)
            self._zeta[replicate] = normal.values[replicate[:, None], ahead]
            normal.at[replicate] += n_rows

    def __call__(
        self,
        replicate: IntArray,
        state: IntArray,
        q: FloatArray,
        u: FloatArray | None,
        step: int,
        share: FloatArray | None = None,
    ) -> IntArray:
        """`(K,)` rows; `q` and `u`, None without noise, are `(B, H, R)`, the last layer serving all later steps.

        `share`, of the same shape, are the probabilities of a plan that randomises.
        """
        normal, uniform = self._normal.need(self._most), self._uniform.need(self._most + 1)
        rows = np.empty(len(replicate), dtype=np.int64)
        h = min(step, q.shape[1] - 1)
        _choose(
            replicate, state, h, self._row_start, q, q if u is None else u, self._kind, self._zeta, normal.values,
            normal.at, uniform.values, uniform.at, share, rows,
        )  # fmt: skip
        return rows

    def state(self) -> dict[str, Any]:
        """Returns the random numbers that were drawn but not used yet."""
        return {"normal": self._normal.state(), "uniform": self._uniform.state(), "zeta": self._zeta.copy()}

    def load(self, state: Any) -> None:
        """Restores the result of `state`."""
        self._normal.load(state["normal"])
        self._uniform.load(state["uniform"])
        self._zeta = np.array(state["zeta"])


@njit(cache=True, nogil=True)
def _choose(replicate, state, h, row_start, q, u, kind, zeta, normal, normal_at, uniform, uniform_at, share, rows):
    for k in range(len(replicate)):
        b, s = replicate[k], state[k]
        first, last = row_start[s], row_start[s + 1]
        pick, best, ties = first, -np.inf, 0
        for row in range(first, last):
            x = q[b, h, row]
            if kind == 1 and last - first > 1:
                x += normal[b, normal_at[b]] * np.sqrt(u[b, h, row])
                normal_at[b] += 1
            elif kind == 2:
                x += zeta[b, row] * np.sqrt(u[b, h, row])
            if x > best:
                pick, best, ties = row, x, 1
            elif x == best:
                ties += 1
                if uniform[b, uniform_at[b]] * ties < 1.0:
                    pick = row
                uniform_at[b] += 1
        if share is not None and 0.0 < share[b, h, pick] < 1.0:
            left = uniform[b, uniform_at[b]]
            uniform_at[b] += 1
            for row in range(first, last):
                if share[b, h, row] > 0.0:
                    pick = row
                    left -= share[b, h, row]
                    if left < 0.0:
                        break
        rows[k] = pick
