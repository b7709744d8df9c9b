"""Beliefs that follow a stream of transitions, as online agents need them, for many replicates at once.

A belief is described by a value (`Stationary()`, `Forgetting(0.98)`, `Window(50)`, `ChangePoint(...)`) and started on a
prior. All of them provide Dirichlet concentrations, so that every agent can use every belief:

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
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.posteriors.dirichlet import Posterior
from urbe.types import BoolArray, FloatArray, IntArray


class Visit(NamedTuple):
    """One step of some of the replicates.

    Attributes:
      replicate: `(K,)` the replicates that took the step.
      row, entry: `(K,)` the pair and the successor, as positions in the model's rows and entries.
      step: `(K,)` step within the episode, from 0.
    """

    replicate: IntArray
    row: IntArray
    entry: IntArray
    step: IntArray


class OnlinePosterior(Protocol):
    """Dirichlet concentrations that are updated by data.

    Attributes:
      prior: before any data.
      alpha: `(B, L, E)` concentrations, with L = 1 layer (pooled over steps) or one layer per step; read-only.
      total: `(B, L, R)` their sums over each row.
      touched: `(B, R)` rows whose concentrations changed since this was last set to False.
    """

    prior: Posterior
    alpha: FloatArray
    total: FloatArray
    touched: BoolArray

    def observe(self, visit: Visit) -> None:
        """Updates the belief with one step."""

    def end_episode(self) -> None:
        """Records the end of an episode, for all replicates."""

    def state(self) -> dict[str, Any]:
        """Everything needed to resume, as arrays and plain values."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Resumes from the result of `state`."""


class PosteriorConfig(Protocol):
    """A description of a belief."""

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> OnlinePosterior:
        """The belief before any data, for `replicates` replicates."""


@dataclass(frozen=True)
class Stationary:
    """Constant dynamics: every transition has the same weight."""

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> Counts:
        return Counts(prior, replicates, layers, np.ones(replicates))


@dataclass(frozen=True)
class Forgetting:
    """Counts shrink by `factor` after each episode; they are worth at most 1 / (1 - factor) episodes.

    Args:
      factor: in [0, 1]; a number, or one per replicate.
    """

    factor: ArrayLike

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> Counts:
        return Counts(prior, replicates, layers, checks.per_replicate("factor", self.factor, replicates, 0.0, 1.0))


@dataclass(frozen=True)
class Window:
    """Only the last `episodes` episodes count, and the current one.

    Args:
      episodes: a whole number of at least 1, or one per replicate.
    """

    episodes: ArrayLike

    def start(self, prior: Posterior, replicates: int, layers: int = 1) -> SlidingCounts:
        length = checks.per_replicate("episodes", self.episodes, replicates, 1.0, 2.0**31)
        if (length % 1.0).any():
            raise ValueError(f"episodes is {length[np.argmax(length % 1.0 > 0.0)]:g}, expected whole numbers.")
        return SlidingCounts(prior, replicates, layers, length.astype(np.int64))


class Counts:
    """Concentrations by counts. Counts are stored separately from the prior, so that they can be forgotten exactly."""

    def __init__(self, prior: Posterior, replicates: int, layers: int, factor: FloatArray) -> None:
        self.prior = prior
        self.alpha = np.tile(prior.concentration, (replicates, layers, 1))
        self.total = np.tile(prior.total, (replicates, layers, 1))
        self.touched = np.ones((replicates, prior.model.n_rows), dtype=np.bool_)
        self._seen, self._visits = np.zeros_like(self.alpha), np.zeros_like(self.total)
        self._factor = factor
        self._fading = np.flatnonzero(factor < 1.0)

    def observe(self, visit: Visit) -> None:
        self.add(visit, 1.0)

    def add(self, visit: Visit, amount: float) -> None:
        """Adds `amount` to the counts of observed transitions."""
        b, row, entry, step = visit
        _add(b, entry, step, amount, self.prior.concentration, self._seen, self.alpha)
        _add(b, row, step, amount, self.prior.total, self._visits, self.total)
        self.touched[b, row] = True

    def end_episode(self) -> None:
        if len(self._fading):
            _fade(self._fading, self._factor, self.prior.concentration, self._seen, self.alpha)
            _fade(self._fading, self._factor, self.prior.total, self._visits, self.total)
            self.touched[self._fading] = True

    def state(self) -> dict[str, Any]:
        return {name.lstrip("_"): getattr(self, name).copy() for name in _KEPT}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            getattr(self, name)[:] = state[name.lstrip("_")]


_KEPT = ("alpha", "total", "touched", "_seen", "_visits")


class SlidingCounts:
    def __init__(self, prior: Posterior, replicates: int, layers: int, length: IntArray) -> None:
        self._counts = Counts(prior, replicates, layers, np.ones(replicates))
        self.prior = prior
        self.alpha, self.total, self.touched = self._counts.alpha, self._counts.total, self._counts.touched
        self._length = length
        self._episodes: deque[list[Visit]] = deque([[]])

    def observe(self, visit: Visit) -> None:
        self._episodes[-1].append(visit)
        self._counts.add(visit, 1.0)

    def end_episode(self) -> None:
        for length in np.unique(self._length):  # replicates of a shorter window forget earlier
            if len(self._episodes) > length:
                for visit in self._episodes[-int(length) - 1]:
                    due = self._length[visit.replicate] == length
                    self._counts.add(Visit(*(column[due] for column in visit)), -1.0)
        if len(self._episodes) > self._length.max():
            self._episodes.popleft()
        self._episodes.append([])

    def state(self) -> dict[str, Any]:
        visits = [visit for episode in self._episodes for visit in episode]
        columns = {
            name: np.concatenate([getattr(visit, name) for visit in visits] or [np.zeros(0, dtype=np.int64)])
            for name in Visit._fields
        }
        return {
            "counts": self._counts.state(),
            "episodes": np.array([len(episode) for episode in self._episodes]),
            "sizes": np.array([len(visit.row) for visit in visits], dtype=np.int64),
            **columns,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self._counts.load(state["counts"])
        cuts = np.cumsum(state["sizes"])[:-1]
        columns = [np.split(np.asarray(state[name]), cuts) for name in Visit._fields]
        visits = iter([Visit(*each) for each in zip(*columns, strict=True)])
        self._episodes = deque([next(visits) for _ in range(int(n))] for n in state["episodes"])


@njit(cache=True, nogil=True)
def _add(replicate, at, step, amount, prior, seen, alpha):
    for k in range(len(replicate)):
        b, layer, j = replicate[k], min(step[k], seen.shape[1] - 1), at[k]
        seen[b, layer, j] += amount
        alpha[b, layer, j] = prior[j] + seen[b, layer, j]


@njit(cache=True, nogil=True)
def _fade(fading, factor, prior, seen, alpha):
    for b in fading:
        for layer in range(seen.shape[1]):
            for j in range(seen.shape[2]):
                seen[b, layer, j] *= factor[b]
                alpha[b, layer, j] = prior[j] + seen[b, layer, j]
