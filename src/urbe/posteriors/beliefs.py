"""Beliefs that follow a stream of transitions: what an online agent knows, for many replicates at once.

A belief is described by a value (`Stationary()`, `Forgetting(0.98)`, `Window(50)`, `ChangePoint(...)`) and started on a
prior. All of them answer with Dirichlet concentrations, so that every agent can use every belief:

    Stationary      alpha = prior + counts
    Forgetting      alpha = prior + sum_e factor^(episodes since e) counts of episode e
    Window          alpha = prior + counts of the last episodes
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.posteriors.dirichlet import Posterior
from urbe.types import BoolArray, FloatArray, IntArray


class Visit(NamedTuple):
    """One step of the replicates that took one.

    Attributes:
      replicate: `(K,)` who.
      row, entry: `(K,)` the pair and the successor, as positions in the model's rows and entries.
      step: `(K,)` step within the episode, from 0.
    """

    replicate: IntArray
    row: IntArray
    entry: IntArray
    step: IntArray


class Belief(Protocol):
    """Dirichlet concentrations that follow the data.

    Attributes:
      prior: what was known before.
      alpha: `(B, L, E)` concentrations, of the layers L = 1 (pooled over steps) or one per step; do not write.
      total: `(B, L, R)` their sums over each row.
      touched: `(B, R)` rows whose concentrations changed since someone last set this to False.
    """

    prior: Posterior
    alpha: FloatArray
    total: FloatArray
    touched: BoolArray

    def observe(self, visit: Visit) -> None:
        """Takes in one step."""

    def end_episode(self) -> None:
        """Takes note that an episode is over, for all replicates."""

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as arrays and plain values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""


class BeliefKind(Protocol):
    """A description of a belief."""

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> Belief:
        """The belief before any data, for `replicates` side by side."""


@dataclass(frozen=True)
class Stationary:
    """The world does not change: every transition counts the same, for ever."""

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> Counts:
        """See `BeliefKind`."""
        return Counts(prior, replicates, layers, np.ones(replicates))


@dataclass(frozen=True)
class Forgetting:
    """Counts shrink by `factor` after each episode; they are worth at most 1 / (1 - factor) episodes.

    Args:
      factor: in [0, 1]; a number, or one per replicate.
    """

    factor: ArrayLike

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> Counts:
        """See `BeliefKind`."""
        return Counts(prior, replicates, layers, checks.per_replicate("factor", self.factor, replicates, 0.0, 1.0))


@dataclass(frozen=True)
class Window:
    """Only the last `episodes` episodes count.

    Args:
      episodes: a whole number of at least 1, or one per replicate.
    """

    episodes: ArrayLike

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> SlidingCounts:
        """See `BeliefKind`."""
        length = checks.per_replicate("episodes", self.episodes, replicates, 1.0, 2.0**31)
        return SlidingCounts(prior, replicates, layers, length.astype(np.int64))


class Counts:
    """See `Stationary` and `Forgetting`."""

    def __init__(self, prior: Posterior, replicates: int, layers: int, factor: FloatArray) -> None:
        self.prior = prior
        self.alpha = np.tile(prior.concentration, (replicates, layers, 1))
        self.total = np.tile(prior.total, (replicates, layers, 1))
        self.touched = np.ones((replicates, prior.model.n_rows), dtype=np.bool_)
        self._factor = factor
        self._fading = np.flatnonzero(factor < 1.0)

    def observe(self, visit: Visit) -> None:
        """See `Belief`."""
        add(self, visit, 1.0)

    def end_episode(self) -> None:
        """See `Belief`."""
        if not len(self._fading):
            return
        b, keep = self._fading, self._factor[self._fading][:, None, None]
        self.alpha[b] = self.prior.concentration + keep * (self.alpha[b] - self.prior.concentration)
        self.total[b] = self.prior.total + keep * (self.total[b] - self.prior.total)
        self.touched[b] = True

    def state(self) -> dict[str, Any]:
        """See `Belief`."""
        return {"alpha": self.alpha.copy(), "total": self.total.copy(), "touched": self.touched.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Belief`."""
        self.alpha, self.total = np.array(state["alpha"]), np.array(state["total"])
        self.touched = np.array(state["touched"])


class SlidingCounts:
    """See `Window`."""

    def __init__(self, prior: Posterior, replicates: int, layers: int, length: IntArray) -> None:
        self.prior = prior
        self.alpha = np.tile(prior.concentration, (replicates, layers, 1))
        self.total = np.tile(prior.total, (replicates, layers, 1))
        self.touched = np.ones((replicates, prior.model.n_rows), dtype=np.bool_)
        self._length = length
        self._episodes: deque[list[Visit]] = deque([[]])

    def observe(self, visit: Visit) -> None:
        """See `Belief`."""
        self._episodes[-1].append(visit)
        add(self, visit, 1.0)

    def end_episode(self) -> None:
        """See `Belief`."""
        for length in np.unique(self._length):  # replicates of a shorter window forget earlier
            if len(self._episodes) > length:
                for visit in self._episodes[-int(length) - 1]:
                    due = self._length[visit.replicate] == length
                    add(self, Visit(*(column[due] for column in visit)), -1.0)
        if len(self._episodes) > self._length.max():
            self._episodes.popleft()
        self._episodes.append([])

    def state(self) -> dict[str, Any]:
        """See `Belief`."""
        visits = [visit for episode in self._episodes for visit in episode]
        sizes = [len(visit.row) for visit in visits]
        columns = {
            name: np.concatenate([getattr(visit, name) for visit in visits] or [np.zeros(0, dtype=np.int64)])
            for name in Visit._fields
        }
        return {
            "alpha": self.alpha.copy(),
            "total": self.total.copy(),
            "touched": self.touched.copy(),
            "episodes": np.array([len(episode) for episode in self._episodes]),
            "sizes": np.array(sizes, dtype=np.int64),
            **columns,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Belief`."""
        self.alpha, self.total = np.array(state["alpha"]), np.array(state["total"])
        self.touched = np.array(state["touched"])
        cuts = np.cumsum(state["sizes"])[:-1]
        columns = [np.split(np.asarray(state[name]), cuts) for name in Visit._fields]
        visits = iter([Visit(*each) for each in zip(*columns, strict=True)])
        self._episodes = deque([next(visits) for _ in range(int(n))] for n in state["episodes"])


def add(belief: Belief, visit: Visit, amount: float) -> None:
    """Adds `amount` to the concentration of what was seen; a replicate appears at most once in a visit."""
    layer = np.minimum(visit.step, belief.alpha.shape[1] - 1)
    belief.alpha[visit.replicate, layer, visit.entry] += amount
    belief.total[visit.replicate, layer, visit.row] += amount
    belief.touched[visit.replicate, visit.row] = True
