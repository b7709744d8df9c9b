"""Q-learning, plain and with a nature that may interfere; `urbe.agents.td` has the update they share.

No model is kept: a step costs O(actions), and O(states) where nature looks at all values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Streams, Task
from urbe.agents.decay import Decay
from urbe.agents.td import CONTAMINATION, L1, L2, LINF, NONE, QLearner


def _rate() -> Decay:
    return Decay(1.0, power=0.7)


def _exploration() -> Decay:
    return Decay(1.0, power=0.5, delay=10.0)


@dataclass(frozen=True)
class QLearning:
    """Q(s, a) += eta [ r + gamma V(s') - Q(s, a) ]  [WatkinsDayan1992]; numbers may be given one per replicate.

    Args:
      rate: eta, in [0, 1]; a `Decay` falls with the number of times the pair was tried.
      exploration: probability of an action at random; a `Decay` falls with the number of visits to the state.
      initial: Q before any step; above all values it makes the agent try everything.

    >>> import urbe
    >>> from urbe.agents import Single, Task
    >>> task = Task(urbe.Posterior.before(urbe.library.riverswim(6)), horizon=20)
    >>> agent = Single(QLearning(rate=0.5), task, seed=0)
    >>> agent.observe(state=0, action=0, reward=0.005, next_state=0)
    >>> float(agent.agent.q[0, 0, 0])
    0.0025
    """

    rate: ArrayLike | Decay = field(default_factory=_rate)
    exploration: ArrayLike | Decay = field(default_factory=_exploration)
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = np.zeros(len(streams.replicates))
        return QLearner(task, streams, NONE, size, self.rate, self.exploration, self.initial)


@dataclass(frozen=True)
class ContaminationQ:
    """Q(s, a) += eta [ r + gamma ((1 - R) V(s') + R min_x V(x)) - Q(s, a) ]  [WangZou2021].

    With probability R the next state is nature's to choose, among all states. With rewards r(s, a) and a discount below
    1 it converges to the robust values of `Contamination(R, support="all")`, as fast as Q-learning to the plain ones.

    Args:
      fraction: R, in [0, 1]; 0 is Q-learning.
      rate, exploration, initial: as for `QLearning`.
    """

    fraction: ArrayLike = 0.1
    rate: ArrayLike | Decay = field(default_factory=_rate)
    exploration: ArrayLike | Decay = field(default_factory=_exploration)
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

    The steps come from a row p, but what counts is the worst of p + X. Where p is unknown, so is the simplex around it:
    p + x may have entries below 0, so that this is the fixed point of a slightly larger set, and the values are at most
    the robust ones. It is sure to converge when discount (1 + radius L) < 1, with L = 1, sqrt(S), S for L1, ellipsoid
    and box, and also where p + X stays within the simplex.

    Args:
      radius: of X, at least 0; 0 is Q-learning.
      shape: of X.
      rate, exploration, initial: as for `QLearning`.
    """

    radius: ArrayLike = 0.05
    shape: Shape = Shape.L1
    rate: ArrayLike | Decay = field(default_factory=_rate)
    exploration: ArrayLike | Decay = field(default_factory=_exploration)
    initial: ArrayLike = 0.0

    def start(self, task: Task, streams: Streams) -> QLearner:
        size = checks.per_replicate("radius", self.radius, len(streams.replicates), 0.0, np.inf)
        return QLearner(task, streams, self.shape.value, size, self.rate, self.exploration, self.initial)
