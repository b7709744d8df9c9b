"""An environment that is benign at first and then turns adversarial, where agents that trust averages fail.

For a number of episodes the dynamics are those of a model. From then on nature chooses, at every step and in some
pairs, the kernel of a set that is worst for the minimax values; all other pairs keep the model. An agent that knew
these pairs, and the model elsewhere, could guarantee the minimax value throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.exact import Exact
from urbe.ambiguity.per_row import PerRow
from urbe.ambiguity.rectangular import RectangularSet
from urbe.envs.base import Arrivals
from urbe.envs.finite import FiniteEnv, FiniteReplicates, Phase
from urbe.mdp.model import MDP
from urbe.solvers.methods import BackwardInduction
from urbe.solvers.solution import Solution
from urbe.solvers.solve import solve
from urbe.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TurningEnv:
    """A model whose pairs may turn adversarial after a benign phase.

    Args:
      model: the benign model, with an initial distribution.
      set: nature's choices in an adversarial pair; a set that is rectangular in (s, a).
      adversarial: the pairs that turn: `(R,)`, `(S, A)` or by pair, true or 1 for those that do.
      horizon: H, steps of an episode.
      benign: episodes before the turn; 0 turns at once.

    >>> import urbe
    >>> world = TurningEnv(urbe.library.seven_states(0.8), urbe.L1Ball(2.0), True, horizon=3, benign=100)
    >>> round(world.minimax_at_start, 3), round(world.optimal_at_start, 3)
    (0.14, 0.8)
    """

    model: MDP
    set: RectangularSet
    adversarial: Any
    horizon: int
    benign: int

    def __post_init__(self) -> None:
        checks.whole_number("horizon", self.horizon, 1)
        checks.whole_number("benign", self.benign, 0)
        _ = self._inner  # raises at construction rather than in a run

    @cached_property
    def turns(self) -> BoolArray:
        """`(R,)` which pairs turn adversarial."""
        given = self.adversarial
        if isinstance(given, Mapping):
            given = {pair: float(flag) for pair, flag in given.items()}
        else:
            given = np.asarray(given, dtype=np.float64)
        flags: BoolArray = self.model.per_row("adversarial", given) != 0.0
        return flags

    @cached_property
    def minimax(self) -> Solution:
        """The minimax solution: values and policies by step of the model with adversarial pairs."""
        nature = PerRow((Exact(), self.set), self.turns.astype(np.float64))
        return solve(self.model, nature, BackwardInduction(self.horizon))

    @property
    def minimax_at_start(self) -> float:
        """The minimax value of an episode."""
        return self._at_start(self.minimax)

    @cached_property
    def optimal_at_start(self) -> float:
        """The best value of an episode of the benign phase."""
        return self._at_start(solve(self.model, method=BackwardInduction(self.horizon)))

    @property
    def feasible(self) -> MDP:
        """The model with every successor that is possible before or after the turn."""
        return self._inner.feasible

    def regret(self, reward: FloatArray) -> FloatArray:
        """`(B, episodes)` cumulated shortfall of episode rewards, `(B, episodes)`, against the minimax value.

        It is negative while an agent earns more than the minimax value.
        """
        total: FloatArray = np.cumsum(self.minimax_at_start - np.asarray(reward, dtype=np.float64), axis=-1)
        return total

    def start(self, generators: list[np.random.Generator]) -> TurningReplicates:
        return TurningReplicates(self, self._inner, generators)

    @cached_property
    def _inner(self) -> FiniteEnv:
        """The benign model, then nature's answer at each step."""
        kernels = [self.minimax.kernel_at(step) for step in range(self.horizon)]
        return FiniteEnv(tuple(Phase(model, 1) for model in (self.model, *kernels)))

    def _at_start(self, solution: Solution) -> float:
        assert self.model.initial is not None  # checked when the inner environment was made
        return float(solution.value[0] @ self.model.initial)


class TurningReplicates(FiniteReplicates):
    """Replicates of a `TurningEnv`; after the turn, every step of an episode has its own kernel."""

    def __init__(self, world: TurningEnv, inner: FiniteEnv, generators: list[np.random.Generator]) -> None:
        super().__init__(inner, generators)
        self._benign, self._horizon, self._turned, self._step = world.benign, world.horizon, False, 0

    def begin(self, episode: int) -> IntArray:
        self._turned, self._step = episode >= self._benign, 0
        return super().begin(0)

    def step(self, replicate: IntArray, state: IntArray, action: IntArray) -> Arrivals:
        if self._step == self._horizon:
            raise ValueError(
                f"Episodes of this environment have {self._horizon} steps, but another step was taken; run it with a "
                "task of the same horizon."
            )
        self._phase = 1 + self._step if self._turned else 0
        self._step += 1
        return super().step(replicate, state, action)
