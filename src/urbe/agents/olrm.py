"""OLRM [Lim2013]: optimistic where the world behaves, robust where it was caught misbehaving.

Every pair is taken for stochastic until it disappoints. Plans, for H steps, k the number of the epoch, N the visits:

    Q_h = min_{||x - p||_1 <= radius} x . z                                           a pair that is flagged
    Q_h = p . z + bonus_scale H span sqrt(2 / N log(2 S A H k^2 / delta)), at most    any other
          what the remaining steps can pay; that much when N = 0

with p the frequencies at the beginning of the epoch. After m visits of a pair the disappointments

    D = sum [ planned z - z that came ],   planned z as in Q_h without the bonus,

are compared with 5 check_scale H span sqrt(m S log(4 S A H m / delta)). More than that, and the pair is flagged: nature
is at work there. Benign adversaries are never flagged, and a flag is never removed: when a pair recovers, the agent
does not learn of it. In theory both scales are 1; with them the check takes tens of thousands of visits.

Departure: several nested balls may be given; a pair that disappoints a ball's worst case moves on to the next. Rewards
need not lie in [0, 1]: `span` is the distance between the least and the largest one, zero included. Constants are
those of our reading of the paper, which leaves them open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.agents.base import Streams, Task
from urbe.agents.choose import Noise
from urbe.agents.disappointment import disappointment
from urbe.agents.epochs import Epochs
from urbe.agents.l1_plan import Plan
from urbe.agents.learner import Knowledge, Learner
from urbe.posteriors.beliefs import BeliefKind, Stationary, Visit
from urbe.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class OLRM:
    """The agent's parameters; the scales may be given one per replicate.

    Args:
      bonus_scale, check_scale: see the module.
      belief: how the counts follow the data; rewards must be known.
      radii: of the L1 balls a pair goes through, increasing, in [0, 2]; 2 is any feasible successor.
      flagged: pairs known to be adversarial from the start (true or false for all, `(R,)`, `(S, A)` or by pair).
      delta: failure probability, in (0, 1).
    """

    bonus_scale: ArrayLike = 1.0
    check_scale: ArrayLike = 1.0
    belief: BeliefKind = field(default_factory=Stationary)
    radii: tuple[float, ...] = (2.0,)
    flagged: Any = False
    delta: float = 0.05

    def start(self, task: Task, streams: Streams) -> Learner:
        """See `AgentKind`."""
        return Learner(task, streams, self.belief, MixedPlans(self, task, streams), Noise.NONE)


class MixedPlans:
    """See the module; a `Strategy`.

    Attributes:
      epochs: of the replicates.
      level: `(B, R)` which ball a pair has come to; 0 is none.
    """

    def __init__(self, kind: OLRM, task: Task, streams: Streams) -> None:
        model, n, horizon = task.prior.model, len(streams.replicates), task.horizon
        if task.prior.rewards is not None:
            raise ValueError("The rewards of the task are uncertain, but OLRM is for known ones: its bounds need them.")
        self._bonus_scale = checks.per_replicate("bonus_scale", kind.bonus_scale, n, 0.0, np.inf)[:, None]
        self._check_scale = checks.per_replicate("check_scale", kind.check_scale, n, 0.0, np.inf)
        self._delta = checks.probability("delta", kind.delta)
        self._radii = np.array([0.0, *(checks.number("radii", radius, 0.0, 2.0) for radius in kind.radii)])
        if (np.diff(self._radii[1:]) <= 0.0).any():
            raise ValueError(f"radii is {kind.radii}, expected increasing radii: each ball holds the one before.")
        most, least = model.rows.reward.max(initial=0.0), model.rows.reward.min(initial=0.0)
        self._reach = horizon * (most - least)
        self._cap = np.cumsum(most * model.discount ** np.arange(horizon))[::-1].copy()
        self._log = np.log(2.0 * model.n_states * model.n_actions * horizon / self._delta)
        self._plan, self.epochs = Plan(model, horizon, n), Epochs(model, streams)
        known = model.per_row("flagged", _as_numbers(kind.flagged)) != 0.0
        self.level = np.tile(np.where(known, len(kind.radii), 0), (n, 1))
        self._gap, self._checks = np.zeros(self.level.shape), np.zeros(self.level.shape)

    @property
    def q(self) -> FloatArray:
        """See `Strategy`."""
        return self._plan.q

    @property
    def u(self) -> FloatArray:
        """See `Strategy`; not read, as there is no noise."""
        return self._plan.u

    def due(self, known: Knowledge, replicate: IntArray, step: int) -> BoolArray:  # noqa: ARG002
        """See `Strategy`."""
        return self.epochs.over[replicate]

    def plan(self, known: Knowledge, which: IntArray) -> None:
        """See `Strategy`."""
        epochs = self.epochs
        epochs.begin(which, known.transitions)
        log = self._log + 2.0 * np.log(np.maximum(epochs.index, 1))[:, None]
        with np.errstate(divide="ignore"):
            width = self._reach * np.sqrt(2.0 / epochs.visits * log)
        bonus = np.where((self.level > 0) | (self._bonus_scale == 0.0), 0.0, self._bonus_scale * width)
        self._plan.update(
            which, epochs.alpha, epochs.total, known.rewards.mean, self._radii[self.level],
            np.ones(self.level.shape, dtype=np.bool_), bonus=bonus, cap=self._cap,
        )  # fmt: skip

    def observe(self, visit: Visit) -> None:
        """See `Strategy`; the values compared with are those the action was chosen by."""
        b, row, model = visit.replicate, visit.row, self._plan.model
        self.epochs.visit(b, row)
        level, radius = self.level[b, row], self._radii[self.level[b, row]]
        self._gap[b, row] += disappointment(model, visit, self.epochs.alpha, self.epochs.total, radius, self._plan.v)
        self._checks[b, row] += 1.0
        m = self._checks[b, row]
        allowed = 5.0 * self._reach * np.sqrt(m * model.n_states * (self._log + np.log(2.0 * m)))
        caught = (self._gap[b, row] > self._check_scale[b] * allowed) & (level < len(self._radii) - 1)
        if caught.any():
            b, row = b[caught], row[caught]
            self.level[b, row] += 1
            self._gap[b, row], self._checks[b, row] = 0.0, 0.0
            self.epochs.over[b] = True

    def state(self) -> dict[str, Any]:
        """See `Strategy`."""
        numbers = {"level": self.level.copy(), "gap": self._gap.copy(), "checks": self._checks.copy()}
        return {"epochs": self.epochs.state(), "plan": self._plan.state(), **numbers}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Strategy`."""
        self.epochs.load(state["epochs"])
        self._plan.load(state["plan"])
        self.level, self._gap = np.array(state["level"]), np.array(state["gap"])
        self._checks = np.array(state["checks"])


def _as_numbers(flagged: Any) -> Any:
    """Truth values as 0 and 1."""
    if isinstance(flagged, Mapping):
        return {pair: float(flag) for pair, flag in flagged.items()}
    return np.asarray(flagged, dtype=np.float64)
