"""Plans that are optimistic in some rows and robust in others, over an episode or an infinite horizon.

    episode   V_h = max_a Q_h,  Q_h = worst case in the row's set, or p . z + bonus, at most a cap
    average   g + u = max_a Q,  Q = worst case in the row's set, or the best case in an L1 ball

For the infinite horizon, the best case in an L1 ball replaces a bonus in proportion to the span of u: a ball of radius
2 x adds at most x span(u). Unlike a bonus it keeps the operator monotone, so that its iteration converges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from urbe.agents.epochs import Epochs
from urbe.agents.extended import best_gain, check_restarts, extended_value_iteration
from urbe.agents.l1_plan import L1Plan
from urbe.agents.set_plan import Plan, SetPlan, centred
from urbe.ambiguity.l1 import L1Ball
from urbe.ambiguity.optimistic import Optimistic
from urbe.ambiguity.per_row import PerRow
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.types import FloatArray, IntArray

FALL = 1e-3
"""Probability per step of falling back into the state of least value, so that every model has one gain."""


class EpisodePlan:
    """Backward induction over H steps.

    Args:
      model: pairs, successors, rewards, discount.
      horizon: H.
      replicates: B.
      sets: sets of the levels, level 0 first; None for L1 balls, whose radii are given with each update.
      cap: `(H,)` upper limit of Q.

    Attributes:
      model: the model.
      q: `(B, H, R)`.
      v: `(B, H + 1, S)` values of each step, which the check compares with outcomes.
    """

    def __init__(
        self, model: MDP, horizon: int, replicates: int, sets: tuple[RectangularSet, ...] | None, cap: FloatArray
    ) -> None:
        self._plan: Plan = (L1Plan if sets is None else SetPlan)(model, horizon, replicates)
        self.model, self._sets, self._cap = model, sets, cap

    @property
    def q(self) -> FloatArray:
        return self._plan.q

    @property
    def v(self) -> FloatArray:
        return self._plan.v

    def layer(self, step: IntArray) -> IntArray:
        """Returns the index in `v` of the values after a step, minus one."""
        return step

    def update(
        self,
        which: IntArray,
        epochs: Epochs,
        reward: FloatArray,
        level: IntArray,
        radius: FloatArray,
        bonus: FloatArray,
    ) -> None:
        """Plans for the replicates `which`.

        Args:
          which: `(K,)`.
          epochs: give the frequencies.
          reward: `(B, R)`.
          level: `(B, R)`; rows of level 0 are optimistic.
          radius: `(B, R)` radii of the balls of robust rows.
          bonus: `(B, R)` bonus of optimistic rows, 0 for others.
        """
        sets, nature = self._sets, cast(Any, radius)
        if sets is not None:
            nature = lambda b: PerRow(sets, level[b].astype(np.float64))  # noqa: E731
        self._plan.update(which, epochs.alpha, epochs.total, reward, nature, bonus=bonus, cap=self._cap)

    def state(self) -> dict[str, Any]:
        """Returns the state that the next plan needs."""
        return self._plan.state()

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""
        self._plan.load(state)


class AveragePlan:
    """Extended value iteration, with the interface of `EpisodePlan` and one layer of values.

    Attributes:
      gain: `(B,)` reward per step of the plan.
    """

    def __init__(self, model: MDP, replicates: int, sets: tuple[RectangularSet, ...] | None) -> None:
        check_restarts(model)
        self.model, self._sets = model.with_discount(1.0 - FALL), sets
        self.q = np.zeros((replicates, 1, model.n_rows))
        self.v = np.zeros((replicates, 1, model.n_states))
        self.gain = np.zeros(replicates)

    def layer(self, step: IntArray) -> IntArray:
        return np.full_like(step, -1)

    def update(
        self,
        which: IntArray,
        epochs: Epochs,
        reward: FloatArray,
        level: IntArray,
        radius: FloatArray,
        bonus: FloatArray,
    ) -> None:
        """Plans as `EpisodePlan`; `bonus` is the share of the span by which a row may exceed its frequencies."""
        model, hope = self.model, np.minimum(2.0 * bonus, 2.0)
        tolerance = 1.0 / np.sqrt(1.0 + epochs.visits.sum(axis=1))
        if self._sets is None:
            extended_value_iteration(
                model, which, epochs.alpha, epochs.total, reward, np.where(level > 0, radius, hope), tolerance,
                self.v[:, 0], self.q[:, 0], self.gain, level > 0, 1.0 - FALL,
            )  # fmt: skip
        else:
            for b in which:
                nature = PerRow((Optimistic(L1Ball(hope[b])), *self._sets[1:]), level[b].astype(np.float64))
                centre = centred(model, epochs.alpha[b, 0], epochs.total[b, 0], reward[b])
                self.q[b, 0], self.gain[b] = best_gain(
                    centre, nature, float(tolerance[b]), self.v[b, 0], int(b), 1.0 - FALL
                )
        if model.initial is not None:  # a terminal state is a restart
            again = self.v[which, 0] @ model.initial
            self.v[which, 0] = np.where(model.terminal, again[:, None], self.v[which, 0])

    def state(self) -> dict[str, Any]:
        return {"q": self.q.copy(), "v": self.v.copy(), "gain": self.gain.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.q, self.v, self.gain = (np.array(state[name]) for name in ("q", "v", "gain"))
