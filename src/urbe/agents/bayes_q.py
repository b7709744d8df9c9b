"""Bayesian Q-learning: a normal-gamma belief about the return of each pair; see `urbe.agents.bayes_q_rules`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Steps, Streams, Task
from urbe.agents.bayes_q_rules import ActionChoice, Moments, QSampling, Update
from urbe.agents.choose import Chooser, Noise
from urbe.agents.locate import Locator
from urbe.posteriors.rewards import RewardPosterior
from urbe.rng import Draws
from urbe.types import BoolArray, FloatArray, IntArray

FIELDS = ("mean", "weight", "shape", "rate")


@dataclass(frozen=True)
class BayesianQ:
    """The agent's parameters [Dearden1998]; numbers may be given one per replicate.

    Args:
      mean, weight, shape, rate: the prior belief about each pair's return, as in `NormalGamma`: its mean, its weight in
        returns, and `rate / (shape - 1)` the expected variance of one return. `shape` is above 1.
      update: the update by a step, `Moments()` or `Mixture()`.
      choice: the choice of actions, `QSampling()` or `ValueOfInformation()`.
    """

    mean: ArrayLike = 0.0
    weight: ArrayLike = 1.0
    shape: ArrayLike = 2.0
    rate: ArrayLike = 1.0
    update: Update = field(default_factory=Moments)
    choice: ActionChoice = field(default_factory=QSampling)

    def start(self, task: Task, streams: Streams) -> ReturnBeliefs:
        n = len(streams.replicates)
        mean = checks.per_replicate("mean", self.mean, n, -np.inf, np.inf)
        rest = [
            checks.per_replicate(name, getattr(self, name), n, float(name == "shape"), np.inf, above=True)
            for name in FIELDS[1:]
        ]
        return ReturnBeliefs(task, streams, np.stack([mean, *rest]), self.update, self.choice)


class ReturnBeliefs:
    """An `Agent`.

    Attributes:
      belief: `(4, B, R)` mean, weight, shape and rate of each pair.
    """

    def __init__(self, task: Task, streams: Streams, prior: FloatArray, update: Update, choice: ActionChoice) -> None:
        self._model = task.prior.model
        self._locate = Locator(self._model)
        self._choose = Chooser(self._model, Noise.NONE, streams)
        self._most = int(np.diff(self._model.row_start).max(initial=1))
        self._uniform = Draws(streams("values"), "uniform", max(512, 2 * self._most))
        self._update, self._choice = update, choice
        self.belief: FloatArray = np.repeat(prior[:, :, None], self._model.n_rows, axis=2)
        self._score: FloatArray = np.zeros((len(streams.replicates), 1, self._model.n_rows))

    def act(self, replicate: IntArray, state: IntArray, step: int) -> IntArray:
        rows, listed = self._menu(state)
        draws, who = self._uniform.need(self._most), replicate[:, None]
        uniform = draws.values[who, draws.at[who] + np.arange(self._most)]
        draws.at[replicate] += self._most
        scores = self._choice(RewardPosterior(*self.belief[:, who, rows]), listed, uniform)
        at = np.nonzero(listed)
        self._score[replicate[at[0]], 0, rows[at]] = scores[at]
        actions: IntArray = self._model.action[self._choose(replicate, state, self._score, None, 0)]
        return actions

    def observe(self, steps: Steps, step: int) -> None:
        pair = self._locate.rows(steps)
        rows, listed = self._menu(steps.next_state)
        who, each = steps.replicate, np.arange(len(pair))
        best = rows[each, self.belief[0, who[:, None], rows].argmax(axis=1)]
        gamma = np.where(steps.terminated | ~listed[:, 0], 0.0, self._model.discount)
        ahead = RewardPosterior(*self.belief[:, who, best])
        after = self._update(RewardPosterior(*self.belief[:, who, pair]), steps.reward, gamma, ahead)
        self.belief[:, who, pair] = after.mean, after.weight, after.shape, after.rate

    def end_episode(self) -> None:
        """Does nothing: each step is learned from immediately."""

    def state(self) -> dict[str, Any]:
        return {"belief": self.belief.copy(), "choose": self._choose.state(), "uniform": self._uniform.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.belief = np.array(state["belief"])
        self._choose.load(state["choose"])
        self._uniform.load(state["uniform"])

    def _menu(self, state: IntArray) -> tuple[IntArray, BoolArray]:
        """`(K, A)` rows of the states, and whether they exist (the others repeat the first)."""
        first = self._model.row_start[state].astype(np.int64)
        offset = np.arange(self._most)
        listed: BoolArray = offset < (self._model.row_start[state + 1] - first)[:, None]
        rows: IntArray = np.minimum(np.where(listed, first[:, None] + offset, first[:, None]), self._model.n_rows - 1)
        return rows, listed
